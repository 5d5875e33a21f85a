"""Leaving out pairs that are no rewrites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.pairs.checks import check_pairs, sound_pairs
from rag_sourcebias.pairs.data import PairChecks

OTHER = "llm:claude"


def spoilt(n: int) -> tuple[Dataset, list[str], PairChecks]:
    """The sample with n refusals in place of rewrites, and the checks of its pairs."""
    data = load_sample()
    corpus, tags = data.corpus, data.corpus.tags
    rows = [row for row, doc in enumerate(corpus.doc_ids) if tags.get(doc).source == OTHER][:n]
    texts = list(corpus.texts)
    for row in rows:
        texts[row] = "I'm sorry, but I can't help with rewriting this text."
    spoiled = [str(tags.get(corpus.doc_ids[row]).pair_id) for row in rows]
    data = replace(data, corpus=Corpus(tags=tags, texts=tuple(texts)))
    of = {(tags.get(doc).pair_id, tags.get(doc).source): t for doc, t in data.corpus}
    ids = sorted({str(pair) for pair, _ in of})
    checks = check_pairs([of[i, "human"] for i in ids], [of[i, OTHER] for i in ids], pair_ids=ids)
    return data, spoiled, checks


def judgments(data: Dataset) -> list[tuple[str, str, int]]:
    q = data.qrels
    return [
        (q.query_ids[query], q.doc_ids[doc], int(grade))
        for query, doc, grade in zip(q.query_codes, q.doc_codes, q.grades, strict=True)
    ]


def test_broken_pairs_go_on_both_sides_and_their_judgments_with_them() -> None:
    data, spoiled, checks = spoilt(12)
    kept = sound_pairs(data, {OTHER: checks})
    left = {kept.corpus.tags.get(doc).pair_id for doc in kept.corpus.doc_ids}
    assert left.isdisjoint(spoiled)
    assert len(left) == int((~checks.broken).sum())
    assert kept.corpus.tags.counts() == {"human": len(left), OTHER: len(left)}
    assert set(kept.qrels.doc_ids) <= set(kept.corpus.doc_ids)
    rows = set(judgments(data)) - set(judgments(kept))
    lost = {query for query, doc, grade in rows if doc in kept.corpus.doc_ids and grade > 0}
    assert not lost
    relevant = {query for query, _, grade in judgments(kept) if grade > 0}
    assert {q.query_id for q in kept.queries} == set(kept.qrels.query_ids) == relevant
    assert (kept.license, kept.design) == (data.license, data.design)


def test_nothing_left_is_refused() -> None:
    data, _, checks = spoilt(0)
    none = replace(checks, flags=np.ones_like(checks.flags))
    with pytest.raises(InsufficientDataError, match="no pair is sound in llm:claude"):
        sound_pairs(data, {OTHER: none})
