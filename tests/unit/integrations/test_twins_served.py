"""Copies in LangChain, LlamaIndex and the audit: one seed, one order."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rag_sourcebias.core.data import Corpus, DocTags, Query, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.rescore import rescore_run
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, TwinSettings
from rag_sourcebias_integrations.langchain.embeddings import DebiasCompressor
from rag_sourcebias_integrations.llama_index.embeddings import DebiasPostprocessor

pytestmark = pytest.mark.frameworks
IDS = ["a", "h1", "m1", "b", "m2", "h2", "c"]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.55, 0.5, 0.1]
GROUPS = TwinGroups(
    TwinSettings(space="encoder", threshold=0.9), IDS, [("h1", "m1", 0.95), ("h2", "m2", 0.95)]
)


@pytest.mark.parametrize("show", ["all", "one"])
def test_one_seed_gives_one_order(show: str) -> None:
    orders = set()
    for query in map(str, range(30)):
        rescorer = TwinRescorer(GROUPS, seed=5, show=show)  # type: ignore[arg-type]
        documents = [
            Document(i, id=i, metadata={"rsb_score": s}) for i, s in zip(IDS, SCORES, strict=True)
        ]
        by_langchain = [
            d.id for d in DebiasCompressor(rescorer).compress_documents(documents, query)
        ]
        nodes = [
            NodeWithScore(node=TextNode(text=i, id_=i), score=s)
            for i, s in zip(IDS, SCORES, strict=True)
        ]
        by_llama = [
            n.node.node_id
            for n in DebiasPostprocessor(rescorer).postprocess_nodes(
                nodes, query_bundle=QueryBundle(query)
            )
        ]
        run = Run.from_lists([RankedList(query_id="q", doc_ids=tuple(IDS), scores=SCORES)])
        corpus = Corpus(texts=tuple(IDS), tags=TagTable.from_tags((i, DocTags()) for i in IDS))
        audited = rescore_run(run, rescorer, corpus, [Query(query_id="q", text=query)])
        by_audit = list(next(iter(audited)).doc_ids)
        assert by_langchain == by_llama == by_audit
        orders.add(tuple(by_audit))
    assert len(orders) == 4  # two groups, each in two orders


def test_groups_of_another_encoder_are_refused() -> None:
    rescorer = TwinRescorer(GROUPS)
    with pytest.raises(DataError, match="was fitted on scores of the encoder 'encoder'"):
        DebiasCompressor(rescorer, encoder="other")
    with pytest.raises(DataError, match="was fitted on scores of the encoder 'encoder'"):
        DebiasPostprocessor(rescorer, encoder="other")
    DebiasCompressor(rescorer, encoder="encoder")
