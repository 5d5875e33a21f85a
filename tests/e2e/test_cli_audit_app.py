"""``audit app``: applications as their tutorials write them, and what they show of each source."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from command_line import inside, read_csv, write_csv

import rag_sourcebias as rsb

pytestmark = pytest.mark.frameworks

# One encoder for all: hashed words, so that nothing is loaded.
WORDS = """
import zlib
import numpy as np

def vector(text):
    found = np.zeros(64)
    for word in text.lower().split():
        found[zlib.crc32(word.encode()) % 64] += 1
    return (found / np.linalg.norm(found)).tolist()
"""
LANGCHAIN = """
from langchain_chroma import Chroma
from langchain_core.embeddings import Embeddings
from words import vector

class Words(Embeddings):
    def embed_documents(self, texts):
        return [vector(text) for text in texts]

    def embed_query(self, text):
        return vector(text)

vector_store = Chroma(
    collection_name="docs", embedding_function=Words(), persist_directory="db"
)
retriever = vector_store.as_retriever(search_kwargs={"k": 5})

def fill(texts, tags):
    vector_store.add_texts(texts, metadatas=tags)
"""
LLAMA_INDEX = """
import chromadb
from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.vector_stores.chroma import ChromaVectorStore
from words import vector

class Words(BaseEmbedding):
    def _get_query_embedding(self, query):
        return vector(query)

    async def _aget_query_embedding(self, query):
        return vector(query)

    def _get_text_embedding(self, text):
        return vector(text)

collection = chromadb.PersistentClient("db").get_or_create_collection("docs")
store = ChromaVectorStore(chroma_collection=collection)
index = VectorStoreIndex.from_vector_store(store, embed_model=Words())
retriever = index.as_retriever(similarity_top_k=5)

def fill(texts, tags):
    for text, tag in zip(texts, tags):
        index.insert(Document(text=text, metadata=tag, excluded_embed_metadata_keys=list(tag)))
"""


@pytest.mark.parametrize("program", [LANGCHAIN, LLAMA_INDEX], ids=["langchain", "llama-index"])
def test_an_application_says_what_it_shows(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = "langchain_app" if program is LANGCHAIN else "llama_index_app"
    Path("words.py").write_text(WORDS, encoding="utf-8")
    # chromadb knows a folder by its name, whatever the working folder is
    whole = program.replace('"db"', repr(str(tmp_path / "db")))
    Path(f"{name}.py").write_text(whole, encoding="utf-8")
    sample = rsb.load_sample()
    tags = [{"rsb_source": sample.corpus.tags.get(doc).source} for doc in sample.corpus.doc_ids]
    module = __import__(name)
    module.fill(list(sample.corpus.texts), tags)
    asked = [query.text for query in sample.queries[:40]]
    Path("asked.txt").write_text("\n".join(asked) + "\n", encoding="utf-8")
    code, shown, told = inside(
        *("audit", "app", f"app:{name}:retriever", "--store", "chroma:db"),
        *("--questions", "asked.txt", "--sheet", "sheet", "--report", "out"),
        cwd=tmp_path,
    )
    sys.modules.pop("words"), sys.modules.pop(name)
    assert code == 0, told
    report = rsb.read_report("out/report.json")
    stored = json.loads(Path("out/report.json").read_text(encoding="utf-8"))
    first = stored["shares"][0]
    assert (first["source"], first["documents"], stored["n_answered"]) == ("human", 160, 40)
    plain = " ".join(shown.split())
    assert f"Human text is 50.0% of 320 documents and gets {first['shown']:.1%} of" in plain
    # the printed command answers the question once people have judged
    rows = read_csv(tmp_path / "sheet/sheet.csv")
    graded = [{**row, "grade": str(number % 2)} for number, row in enumerate(rows)]
    write_csv(tmp_path / "sheet/sheet.csv", list(rows[0]), [list(row.values()) for row in graded])
    step = report.page().first.next
    assert step is not None
    code, shown, told = inside(*shlex.split(step.command)[1:], cwd=tmp_path)
    assert code == 0, told
    assert "ranks human text above LLM text" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--questions", "none.txt"], "none.txt"),
        (["--questions", "empty.txt"], "no question"),
        (["--questions", "asked.txt", "--store", "chroma:nowhere"], "nowhere"),
        (["--questions", "asked.txt", "--tags", "asked.txt"], "asked.txt"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "asked.txt").write_text("a question\nanother\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    documents = [json.dumps({"_id": f"d{n}", "text": f"text {n}"}) for n in range(3)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(documents), encoding="utf-8")
    usual = ["audit", "app", "bm25", "--store", "corpus:corpus.jsonl"]
    code, _, told = inside(*usual, *words, cwd=tmp_path)
    assert code == 2
    assert message in told
    assert "Traceback" not in told


def test_a_store_without_tags_says_so(tmp_path: Path) -> None:
    (tmp_path / "asked.txt").write_text("text number one\n", encoding="utf-8")
    documents = [json.dumps({"_id": f"d{n}", "text": f"text {n}"}) for n in range(3)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(documents), encoding="utf-8")
    code, shown, told = inside(
        *("audit", "app", "bm25", "--store", "corpus:corpus.jsonl", "--questions", "asked.txt"),
        cwd=tmp_path,
    )
    assert code == 0, told
    assert "has a tag of its source" in " ".join(shown.split())
