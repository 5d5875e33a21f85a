"""What docs/debias.md shows works: its commands exist, its examples run one after another."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from benchmark_modules import load
from favoured_twins import FavouringEncoder, favoured_dataset
from static_model import static_model

from rag_sourcebias.debias.command import METHODS
from rag_sourcebias.debias.projection import fit_projection

PAGE = (Path(__file__).parents[2] / "docs" / "debias.md").read_text(encoding="utf-8")


def test_every_method_is_named() -> None:
    named = set(re.findall(r"^\| `debias --method (\w+)` \|", PAGE, flags=re.MULTILINE))
    assert named == set(METHODS)


def test_tables_beside_the_evidence_are_those_of_the_results() -> None:
    folder = Path(__file__).parents[2] / "docs" / "evidence"
    (page,) = load("debias", "page")
    for name, text in page.tables().items():
        assert (folder / f"{name}.csv").read_text(encoding="utf-8") == text, (
            "run python benchmarks/debias/page.py"
        )


def written_model(folder: Path) -> Path:
    """Write the model folder of the examples, and the model it was made of."""
    from rag_sourcebias.neural.loading import SentenceEncoder, write_projected_model

    words = [f"w{i}" for i in range(40)]
    base = static_model(folder / "base", words)
    encoder = SentenceEncoder(base)
    human = encoder.encode_documents([" ".join(words[i : i + 5]) for i in range(30)])
    other = human + 0.3 * encoder.encode_documents(["w39"])
    projection = fit_projection(human, other, encoder=encoder.fingerprint)
    write_projected_model(base, projection, folder / "my-model")
    return base


@pytest.mark.frameworks
def test_python_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import chromadb
    from langchain_chroma import Chroma
    from langchain_core.documents import Document
    from llama_index.core import VectorStoreIndex
    from llama_index.core.llms import MockLLM
    from llama_index.core.schema import TextNode

    from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
    from rag_sourcebias_integrations.langchain.embeddings import EncoderEmbeddings
    from rag_sourcebias_integrations.llama_index.embeddings import EncoderEmbedding

    monkeypatch.chdir(tmp_path)
    dataset, encoder = favoured_dataset(), FavouringEncoder()
    rows = list(zip(dataset.corpus.doc_ids, dataset.corpus.texts, strict=True))[:120]
    store = Chroma(
        "page",
        embedding_function=EncoderEmbeddings(encoder),
        collection_configuration={"hnsw": {"space": "cosine"}},
    )
    tagged = [(i, text, {"rsb_source": text.split()[5]}) for i, text in rows]
    store.add_documents([Document(text, id=i, metadata=tags) for i, text, tags in tagged])
    nodes = [
        TextNode(id_=i, text=text, metadata=tags, excluded_embed_metadata_keys=[*tags])
        for i, text, tags in tagged
    ]
    index = VectorStoreIndex(nodes, embed_model=EncoderEmbedding(encoder))
    base = written_model(tmp_path)
    client = chromadb.EphemeralClient()
    collection = client.create_collection("shop", embedding_function=EncoderEmbeddingFunction(base))
    collection.add(ids=["a", "b"], documents=["w1 w2", "w3 w4"])
    np.save("vectors.npy", np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32))
    monkeypatch.setattr("llama_index.core.settings._Settings.llm", MockLLM())
    names: dict[str, object] = {
        "dataset": dataset,
        "encoder": encoder,
        "store": store,
        "debiased_store": store,
        "index": index,
        "client": client,
        "collection": collection,
    }
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        shown = block.replace("which river floods", "topic 3")
        exec(compile(shown, "docs/debias.md", "exec"), names)
    assert names["compressor"].dropped.total == 0
    assert len(names["documents"]) == 10
    assert names["engine"].query("topic 3").source_nodes
    assert names["postprocessor"].dropped.total == 0
    projected = np.load("new.npy")
    assert np.abs(projected @ names["projection"].directions).max() < 1e-5
    assert client.get_collection("shop").count() == 2
