"""Near-duplicates by words, and what they change in runs and judgments."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.measure.texts import (
    COPY_SHARE,
    Copies,
    CopyCode,
    compared_words,
    near_duplicates,
)

TAGS = TagTable.from_tags(
    [(f"h{i}", DocTags(source="human")) for i in range(4)]
    + [(f"l{i}", DocTags(source="llm:x", pair_id="p" if i == 2 else None)) for i in range(4)]
)
QRELS = Qrels.from_dict({"q": {"l1": 1, "l2": 0, "h0": 2, "l3": 2}, "p": {"h1": 1}})
GROUPS = {"l0": "a", "l1": "a", "l2": "a", "h0": "a", "h3": "b"}


def written(rng: np.random.Generator, n: int, size: int) -> list[str]:
    """Texts of words of which a few are frequent, as in any language."""
    rank = rng.zipf(1.3, size=(n, size)) % 5_000
    return [" ".join(f"word{code}" for code in row) for row in rank]


def changed(text: str, share: float, rng: np.random.Generator) -> str:
    words = text.split()
    for at in rng.choice(len(words), round(share * len(words)), replace=False):
        words[at] = f"other{rng.integers(5_000)}"
    return " ".join(words)


def shared(first: str, second: str) -> float:
    """Jaccard of runs of three words, by its definition."""
    runs = [set(zip(w, w[1:], w[2:], strict=False)) for w in map(compared_words, (first, second))]
    return len(runs[0] & runs[1]) / max(len(runs[0] | runs[1]), 1)


def graded(qrels: Qrels) -> dict[tuple[str, str], int]:
    names = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    return {(qrels.query_ids[q], qrels.doc_ids[d]): int(grade) for q, d, grade in names}


@pytest.mark.parametrize("size", [20, 60, 200])
def test_planted_copies_are_found_and_no_others(size: int) -> None:
    rng = np.random.default_rng(size)
    texts = written(rng, 300, size)
    kinds = {
        "verbatim": list(texts[:100]),
        "a tenth changed": [changed(text, 0.1, rng) for text in texts[100:200]],
        "cut by a fifth": [" ".join(t.split()[: size * 4 // 5]) for t in texts[200:]],
    }
    group = near_duplicates([*texts, *(text for kind in kinds.values() for text in kind)])
    assert (group[:300] == np.arange(300)).all()
    for i, kind in enumerate(kinds):
        rows = np.arange(100 * i, 100 * i + 100)
        assert (group[300 + rows] == rows).mean() >= 0.95, kind


def test_groups_are_those_of_comparing_all_with_all() -> None:
    rng = np.random.default_rng(5)
    texts = written(rng, 40, 50)
    texts += [changed(text, share, rng) for text in texts for share in (0.05, 0.15, 0.2, 0.3)]
    expected = np.arange(len(texts))
    for row, text in enumerate(texts):
        for other in range(row):
            if shared(text, texts[other]) >= COPY_SHARE:
                expected[expected == expected[row]] = expected[other]
    found = near_duplicates(texts)
    assert len(set(expected.tolist())) < 150  # there is something to join
    assert [set(np.flatnonzero(found == of)) for of in found] == [
        set(np.flatnonzero(expected == of)) for of in expected
    ]


def test_hostile_texts() -> None:
    long = "many words again " * 6_000
    texts = [
        "",
        "  ",
        "word",
        "Word ",
        "",
        "other",
        long,
        long + "end",
        "\ud800",
        "一二三四五六七八",
    ]
    assert near_duplicates(texts).tolist() == [0, 1, 2, 2, 4, 5, 6, 6, 8, 9]
    assert near_duplicates([]).tolist() == []


def test_templates_are_no_copies_of_one_another() -> None:
    rng = np.random.default_rng(1)
    (head,) = written(rng, 1, 40)
    texts = [f"{head} {text}" for text in written(rng, 250, 20)]
    assert (near_duplicates(texts) == np.arange(250)).all()


PAGES = 12  # of one form, too few to be told from copies by how many they are


def form(rng: np.random.Generator, numbers: int) -> list[str]:
    """Pages of one form that differ in a name and some numbers."""
    head, tail = written(rng, 2, 40)
    codes = rng.integers(100, 10_000, (PAGES, numbers))
    return [f"{head} name{i} {' '.join(map(str, row))} {tail}" for i, row in enumerate(codes)]


def test_pages_with_numbers_of_their_own_are_no_copies() -> None:
    rng = np.random.default_rng(3)
    pages = form(rng, 5)
    shared = form(rng, 0)  # the control: only the name is another
    twice = [changed(page, 0.1, rng) for page in pages]
    found = near_duplicates([*pages, *shared, *twice])
    assert (found[:PAGES] == np.arange(PAGES)).all()
    assert (found[PAGES : 2 * PAGES] == PAGES).all()
    assert (found[2 * PAGES :] == np.arange(PAGES)).mean() > 0.9


#: (grades of page d for query q, whether the pages are copies)
JUDGED = {
    "each has its own query": (lambda q, d: 1 if q == d else None, False),
    "the others were judged not to be relevant": (lambda q, d: int(q == d), False),
    "two are relevant to each query": (lambda q, d: 1 if d in (q, q + 1) else None, False),
    "all are relevant to every query": (lambda q, d: 1, True),
    "one was judged": (lambda q, d: 1 if d == 0 else None, True),
    "nearly half of all was not judged": (lambda q, d: None if (3 * q + d) % 5 < 2 else 1, True),
    "two have a query each": (lambda q, d: 1 if q == d < 2 else None, True),
    "two have a query each, as does a third": (lambda q, d: 1 if q == d < 3 else None, False),
    "another one was refused twice": (lambda q, d: int(d == 0) if max(q, d) < 2 else None, False),
    "one error": (lambda q, d: int(d == 0) if q == 0 and d < 2 else None, True),
}


@pytest.mark.parametrize("kind", JUDGED)
def test_judgments_tell_pages_of_a_form_from_copies(kind: str) -> None:
    grade, copies = JUDGED[kind]
    pages = form(np.random.default_rng(4), 0)
    texts = [*pages, pages[5].upper(), "another text"]
    ids = [f"d{i}" for i in range(len(texts))]
    tags = TagTable.from_tags((name, DocTags(source="human")) for name in ids)
    rows = [(f"q{q}", ids[d], grade(q, d)) for q in range(PAGES) for d in range(PAGES)]
    found = Copies.by_words(texts, tags, Qrels.from_rows(row for row in rows if row[2] is not None))
    assert len(found.stands_for) == (PAGES if copies else 1)
    same = [found.stands_for.get(name, name) for name in (ids[5], ids[PAGES])]
    assert same[0] == same[1]  # the same text is a copy, whatever was judged
    said = [(one.code, one.numbers["n"]) for one in found.findings]
    one_by_one = [(CopyCode.ALIKE, 2), (CopyCode.FORMS, PAGES + 1)]
    assert said == ([(CopyCode.ALIKE, PAGES + 1)] if copies else one_by_one)


def test_a_group_of_one_source_counts_once_at_its_best_rank() -> None:
    copies = Copies.given(GROUPS, TAGS, QRELS)
    # l2 has a version of another source and was judged
    assert copies.stands_for == {"l0": "l2", "l1": "l2"}
    run = Run.from_dict(
        {"q": {"h0": 9, "l0": 8, "h1": 7, "l2": 6, "l1": 5, "l3": 4}, "p": {"l1": 1}}
    )
    assert [list(r.doc_ids) for r in copies.ranked(run)] == [
        ["h0", "l2", "h1", "l3"],
        ["l2"],
    ]
    judged = copies.judged(QRELS)
    assert graded(judged) == {
        ("q", "l2"): 1,
        ("q", "h0"): 2,
        ("q", "l3"): 2,
        ("p", "h1"): 1,
    }
    (said,) = copies.findings
    assert (said.numbers["source"], said.numbers["n"], said.numbers["groups"]) == ("llm:x", 3, 1)


def test_a_copy_at_random_is_one_of_its_group() -> None:
    copies = Copies.given(GROUPS, TAGS, QRELS)
    run = Run.from_dict({f"q{i}": {"l0": 3, "h0": 2, "l2": 1} for i in range(3_000)})
    drawn = copies.ranked(run, np.random.default_rng(0))
    kinds = [tuple(ranking.doc_ids) for ranking in drawn]
    shares = {kind: kinds.count(kind) / len(kinds) for kind in set(kinds)}
    # l1 was not retrieved
    assert shares.keys() == {("l2", "h0"), ("h0", "l2"), ("h0",)}
    assert np.allclose(list(shares.values()), 1 / 3, atol=0.04)


def test_nothing_changes_without_copies() -> None:
    run = Run.from_dict({"q": {"h0": 2, "l0": 1}})
    copies = Copies.given({"h0": "a", "l0": "a", "h1": "b"}, TAGS, QRELS)
    assert copies.ranked(run) is run
    assert graded(copies.judged(QRELS)) == graded(QRELS)
    assert [finding.code.name for finding in copies.findings] == ["NONE_FOUND"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["human", "llama-2-7b-chat-tmp0.2"])
def test_nfcorpus(name: str) -> None:
    place = Path(os.environ["RAG_SOURCEBIAS_DATA"]) / "nfcorpus" / "corpus" / f"{name}.jsonl"
    with place.open(encoding="utf-8") as file:
        texts = [f"{row['title']} {row['text']}" for row in map(json.loads, file)]
    own = near_duplicates(texts)
    # the set itself holds 41 abstracts twice; nothing else is joined
    assert 20 <= np.count_nonzero(own != np.arange(len(own))) <= 41
    rng = np.random.default_rng(3)
    rows = np.flatnonzero(own == np.arange(len(own)))[:600]
    texts += [texts[row] for row in rows[:200]]
    texts += [changed(texts[row], 0.1, rng) for row in rows[200:400]]
    texts += [" ".join(texts[r].split()[: -(len(texts[r].split()) // 5)]) for r in rows[400:]]
    found = near_duplicates(texts)
    assert (found[len(own) :] == rows).reshape(3, 200).mean(axis=1).min() >= 0.95
