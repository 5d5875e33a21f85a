"""Ranks of versions out of a run."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, Run, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.style.measure import run_style_ranks

TAGS = TagTable.from_tags(
    [
        (f"{pair}-{style}", DocTags(source="x", style=style, pair_id=pair))
        for pair in ("p", "r")
        for style in ("a", "b", "c")
    ]
    + [("noise", DocTags(source="human")), ("other", DocTags(style="a"))]
)


def run_of(**queries):
    return Run.from_dict(queries)


def test_other_documents_do_not_count():
    run = run_of(
        q={
            "noise": 9.0,
            "p-b": 8.0,
            "r-a": 7.0,
            "p-c": 6.0,
            "unknown": 5.0,
            "p-a": 4.0,
            "r-b": 3.0,
        },
    )
    found = run_style_ranks(run, TAGS, pair_of={"q": "p"})
    assert found.styles == ("a", "b", "c")
    assert found.ranks.tolist() == [[3.0, 1.0, 2.0]]


def test_document_is_inferred_where_only_one_was_retrieved():
    run = run_of(
        q={"p-c": 3.0, "p-b": 2.0, "p-a": 1.0, "noise": 0.5},
        s={"r-a": 3.0, "other": 2.5, "r-b": 2.0, "r-c": 2.0},
    )
    found = run_style_ranks(run, TAGS)
    assert found.query_ids == ("q", "s")
    assert found.ranks.tolist() == [[3.0, 2.0, 1.0], [1.0, 2.5, 2.5]]


def test_the_order_of_a_run_without_scores_decides():
    run = Run.from_arrays(
        query_ids=["q"],
        query_codes=np.zeros(3, int),
        doc_codes=np.array([2, 0, 1]),
        doc_ids=["p-a", "p-b", "p-c"],
    )
    assert run_style_ranks(run, TAGS).ranks.tolist() == [[2.0, 3.0, 1.0]]


def test_versions_that_were_not_retrieved_share_the_last_ranks():
    run = run_of(q={"noise": 3.0, "p-b": 2.0}, s={"noise": 1.0})
    found = run_style_ranks(run, TAGS, pair_of={"q": "p", "s": "r"})
    assert found.ranks.tolist() == [[2.5, 1.0, 2.5], [2.0, 2.0, 2.0]]


def test_versions_that_do_not_exist_are_missing():
    tags = TAGS.take(np.array([0, 1, 2, 3, 4]))  # r has no version in style c
    run = run_of(q={"p-a": 2.0, "p-b": 1.0, "p-c": 0.5}, s={"r-a": 2.0, "r-b": 1.0})
    with pytest.raises(DataError, match="first for query 's', style 'c'"):
        run_style_ranks(run, tags)
    found = run_style_ranks(run, tags, missing="balanced")
    assert (found.query_ids, found.dropped) == (("q",), ("s",))


def test_versions_without_a_style_tag():
    tags = TagTable.from_tags(
        [
            ("h", DocTags(source="human", pair_id="p")),
            ("z", DocTags(source="x", style="z", pair_id="p")),
            ("a", DocTags(source="x", style="a", pair_id="p")),
            ("elsewhere", DocTags(style="unpaired style")),
        ]
    )
    run = run_of(q={"z": 3.0, "h": 2.0, "a": 1.0})
    with pytest.raises(MissingTagsError, match=r"1 version\(s\) have no style tag, first 'h'"):
        run_style_ranks(run, tags)


def test_duplicated_versions_are_refused():
    tags = TagTable.from_tags(
        (name, DocTags(style=style, pair_id="p")) for name, style in (("1", "a"), ("2", "a"))
    )
    with pytest.raises(DataError, match=r"document 'p' has 2 versions in style 'a' \(1, 2\)"):
        run_style_ranks(run_of(q={"1": 1.0, "2": 0.5}), tags)


def test_one_style_is_refused():
    tags = TagTable.from_tags([("1", DocTags(style="a", pair_id="p"))])
    with pytest.raises(DataError, match=r"there is 1 style \('a'\)"):
        run_style_ranks(run_of(q={"1": 1.0}), tags)


@pytest.mark.parametrize(
    ("retrieved", "message"),
    [
        ({"p-a": 2.0, "r-a": 1.0}, "1 queries, first 'q', retrieved several documents"),
        ({"noise": 2.0}, "retrieved no version of any document; say with pair_of"),
        ({}, "retrieved no version of any document"),
    ],
)
def test_unclear_document(retrieved, message):
    with pytest.raises(DataError, match=message):
        run_style_ranks(run_of(q=retrieved), TAGS)


@pytest.mark.parametrize("pair_of", [{}, {"q": "nowhere"}])
def test_wrong_pair_of(pair_of):
    with pytest.raises(DataError, match=r"query 'q': document .* is no pair_id of the tags"):
        run_style_ranks(run_of(q={"p-a": 1.0}), TAGS, pair_of=pair_of)


def test_nothing_is_paired():
    tags = TagTable.from_tags([("1", DocTags(style="a"))])
    with pytest.raises(MissingTagsError, match="no document has a pair_id"):
        run_style_ranks(run_of(q={"1": 1.0}), tags)
