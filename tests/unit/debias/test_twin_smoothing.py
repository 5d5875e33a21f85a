"""Copies of one document: who belongs together, what they are shown, and what a file keeps."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.audit import measure_debias, unchanged_qualities
from rag_sourcebias.debias.copies import alike_pairs
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.debias.twins import (
    TwinGroups,
    TwinRescorer,
    TwinSettings,
    group_documents,
    read_twins,
    write_twins,
)
from rag_sourcebias.debias.words import role_sentence, verdicts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.retrieval.search import BM25Spec

WORDS = [f"word{i}" for i in range(4000)]
SETTINGS = TwinSettings(space="text overlap", threshold=0.5, chosen="given")


def groups_of(ids: str, *pairs: tuple[str, str, float]) -> TwinGroups:
    return TwinGroups(SETTINGS, list(ids), pairs)


def clique(ids: list[str], similarity: float = 0.9) -> list[tuple[str, str, float]]:
    return [(a, b, similarity) for a, b in combinations(ids, 2)]


def served(rescorer: TwinRescorer, ids: list[str], scores: list[float], query: str) -> list[str]:
    new = rescorer(query, doc_ids=ids, texts=[""] * len(ids), tags=[DocTags()] * len(ids),
                   scores=scores)  # fmt: skip
    order = sorted(range(len(ids)), key=(new or scores).__getitem__, reverse=True)
    return [ids[i] for i in order]


def copied(n: int, copies: int, rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Texts of 60 words, and copies of each with a third of the words exchanged."""
    ids, texts = [], []
    for document in range(n):
        words = rng.choice(WORDS, 60)
        for copy in range(copies):
            changed = np.where(rng.random(60) < (0.3 if copy else 0), rng.choice(WORDS, 60), words)
            ids.append(f"d{document}-{copy}")
            texts.append(" ".join(changed))
    return ids, texts


# Who belongs together


def test_mutual_nearest_neighbours_come_first_and_no_chain_is_made() -> None:
    found = groups_of("abcd", ("a", "b", 0.9), ("b", "c", 0.8), ("c", "d", 0.7))
    assert found.groups == (("a", "b"), ("c", "d"))  # b is near c, but a is not


def test_a_group_has_only_documents_that_are_all_alike() -> None:
    every = [*clique(["a", "b", "c"]), ("c", "d", 0.95)]
    assert groups_of("abcd", *every).groups == (("a", "b"), ("c", "d"))
    assert groups_of("abcd", *every, ("a", "d", 0.6), ("b", "d", 0.6)).groups == (
        ("a", "b", "c", "d"),
    )


def literal(ids: list[str], alike: dict[frozenset[str], float]) -> set[tuple[str, ...]]:
    """Complete linkage as one would write it down: join the two groups that are most alike."""
    groups = [frozenset([i]) for i in ids]
    while True:
        best = max(
            (
                (min(alike.get(frozenset([a, b]), -1.0) for a in one for b in two), one, two)
                for one, two in combinations(groups, 2)
            ),
            key=lambda found: found[0],
            default=(-1.0, None, None),
        )
        if best[0] < 0:
            return {tuple(sorted(group)) for group in groups if len(group) > 1}
        groups = [g for g in groups if g not in best[1:]] + [best[1] | best[2]]


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_those_of_complete_linkage_also_after_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = [f"d{i}" for i in range(14)]
    alike = {
        frozenset(pair): float(rng.random()) for pair in combinations(ids, 2) if rng.random() < 0.4
    }
    rows = [(*sorted(pair), s) for pair, s in alike.items()]
    whole = TwinGroups(SETTINGS, ids, rows)
    assert set(whole.groups) == literal(ids, alike)

    gone = {str(i) for i in rng.choice(ids, 4, replace=False)}
    whole.remove(gone)
    left = [(a, b, s) for a, b, s in rows if not gone & {a, b}]
    assert set(whole.groups) == set(TwinGroups(SETTINGS, set(ids) - gone, left).groups)
    assert whole.within(ids).groups == whole.groups

    whole.add(gone, [(a, b, s) for a, b, s in rows if gone & {a, b}])
    assert set(whole.groups) == literal(ids, alike)


@pytest.mark.parametrize("copies", [2, 5])
def test_copies_are_found_without_a_label(copies: int) -> None:
    ids, texts = copied(120, copies, np.random.default_rng(0))
    found = group_documents(ids, texts)
    assert found.settings.chosen == "neighbours"
    assert all(len({i.split("-")[0] for i in group}) == 1 for group in found.groups)
    joined = sum(map(len, found.groups))
    assert joined >= 0.9 * len(ids)


@pytest.mark.parametrize("first", ["\u4e00", "\u30a1", "\u0e01"])
def test_scripts_without_spaces_have_copies_too(first: str) -> None:
    rng = np.random.default_rng(0)
    size = 46 if first == "\u0e01" else 80 if first == "\u30a1" else 2500
    letters = np.array([chr(ord(first) + i) for i in range(size)])
    words = ["".join(rng.choice(letters, 2 if size > 90 else 4)) for _ in range(4000)]

    def text(words: Any) -> str:
        return "".join(words)

    ids, texts = [], []
    for document in range(150):
        own = rng.choice(words, 60)
        for copy in range(2):
            other = np.where(rng.random(60) < 0.3 * copy, rng.choice(words, 60), own)
            ids.append(f"{document}-{copy}")
            texts.append(text(other))
    found = group_documents(ids, texts)
    assert found.settings.chosen == "neighbours"
    assert len(found.groups) > 0.9 * 150
    assert all(a.split("-")[0] == b.split("-")[0] for a, b in found.groups)
    alone = group_documents(ids[::2], texts[::2])  # the control: nothing is a copy
    assert alone.settings.chosen == "exact"
    assert not alone.groups


def test_without_copies_nothing_is_joined() -> None:
    ids, texts = copied(400, 1, np.random.default_rng(0))
    found = group_documents(ids, texts)
    assert found.settings.chosen == "exact"
    assert not found.groups
    exact = group_documents([*ids, "again"], [*texts, texts[7]])
    assert exact.groups == (("again", ids[7]),)


def test_a_space_whose_neighbours_do_not_say_the_same_is_refused() -> None:
    rng = np.random.default_rng(0)
    ids, texts = copied(200, 1, rng)
    vectors = np.repeat(rng.normal(size=(100, 64)), 2, axis=0) + 0.01 * rng.normal(size=(200, 64))
    with pytest.raises(DataError, match=r"only \d+ % share their words .* text overlap alone"):
        group_documents(ids, texts, vectors, space="wrong", threshold=0.9)
    ids, texts = copied(100, 2, rng)  # the control: the same vectors, texts that are copies
    assert len(group_documents(ids, texts, vectors, space="right", threshold=0.9).groups) > 80


@pytest.mark.parametrize(
    ("ids", "texts", "message"),
    [
        (["a"], ["one"], "at least 2 documents"),
        (["a", "a"], ["one", "two"], "an id of its own"),
        ([str(i) for i in range(300)], ["the same"] * 300, "documents have one text: leave"),
    ],
)
def test_what_is_refused(ids: list[str], texts: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        group_documents(ids, texts, np.ones((len(ids), 4)))


def test_a_template_is_left_alone_and_counted() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(700, 32))
    vectors[:150] = vectors[0]
    vectors[200] = vectors[201]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs, crowded = alike_pairs(vectors.astype(np.float32), 0.95)
    assert crowded == 150
    assert [(pairs.first[0], pairs.second[0])] == [(200, 201)]
    assert len(pairs.first) == 1


# What copies are shown


def test_copies_share_their_score_and_the_order_is_drawn_per_query() -> None:
    ids, scores = ["a", "h", "m", "b"], [4.0, 3.0, 1.5, 1.0]
    rescorer = TwinRescorer(groups_of("ahmb", ("h", "m", 0.9)))
    orders = Counter(tuple(served(rescorer, ids, scores, f"q{i}")) for i in range(400))
    assert set(orders) == {("a", "h", "m", "b"), ("a", "m", "h", "b")}
    assert 160 <= orders["a", "h", "m", "b"] <= 240  # exact binomial, reject at .001
    assert rescorer.tied(ids, scores)[1:3] == [3.0, 3.0]
    assert rescorer("q", doc_ids=["a", "b"], texts=["", ""], tags=[DocTags()] * 2,
                    scores=None) is None  # fmt: skip


def test_the_order_does_not_depend_on_how_the_documents_come() -> None:
    rescorer = TwinRescorer(groups_of("ahm", ("h", "m", 0.9)), seed=3)
    for query in "pqrs":
        there = served(rescorer, ["a", "h", "m"], [0.0, 2.0, 1.0], query)
        assert there == served(rescorer, ["m", "a", "h"], [1.0, 0.0, 2.0], query)


@pytest.mark.parametrize("k", [2, 3, 10, 50])
def test_k_copies_are_shown_as_often_as_one_document(k: int) -> None:
    copies = [f"c{i}" for i in range(k)]
    groups = TwinGroups(SETTINGS, [*copies, "x", "y"], clique(copies))
    ids = [*copies[: k // 2], "x", *copies[k // 2 :], "y"]
    scores = [float(len(ids) - i) for i in range(len(ids))]
    first: Counter[str] = Counter()
    for query in range(40 * k):
        order = served(TwinRescorer(groups, show="one"), ids, scores, str(query))
        top = order[:3]
        assert sum(i in copies for i in top) == 1
        assert {"x", "y"} < set(top)
        assert sorted(order) == sorted(ids)
        first.update(i for i in top if i in copies)
    assert set(first) == set(copies)
    assert max(first.values()) < 90  # 40 are expected; 7 standard deviations
    together = served(TwinRescorer(groups), ids, scores, "q")
    places = [together.index(i) for i in copies]
    assert max(places) - min(places) == k - 1


def dataset(texts: list[str], ids: list[str]) -> Dataset:
    tags = [
        DocTags(source="llm:x" if i.endswith("-1") else "human", pair_id=i.split("-")[0],
                origin="declared")
        for i in ids
    ]  # fmt: skip
    queries = []
    for i, text in zip(ids, texts, strict=True):
        if i.endswith("-0"):  # words that the copy no longer has: the original is favoured
            other = set(texts[ids.index(i.replace("-0", "-1"))].split())
            words = text.split()
            lost = [w for w in words if w not in other][:3]
            queries.append(Query(query_id=i, text=" ".join([*lost, *words[:8]])))
    return Dataset(
        name="copies",
        corpus=Corpus(texts=tuple(texts), tags=TagTable.from_tags(zip(ids, tags, strict=True))),
        queries=tuple(queries),
        qrels=Qrels.from_rows(
            [(q.query_id, f"{q.query_id[:-2]}-{n}", 1) for q in queries for n in (0, 1)]
        ),
    )


def test_a_copy_no_longer_displaces_its_original() -> None:
    ids, texts = copied(60, 2, np.random.default_rng(1))
    data = dataset(texts, ids)
    first = BM25Spec()
    spec = RescoredSpec(first, TwinRescorer.fit(data.corpus))
    report = measure_debias(first, [spec], [data])
    skew = report.datasets[0].outcomes[1].skew_at(5)
    assert skew.before is not None
    assert skew.after is not None
    assert skew.before.estimate > 30
    assert abs(skew.after.estimate) < 3
    assert report.methods[0].kind == "twins"
    human = report.datasets[0].outcomes[1].quality_at("human-only", 5)
    assert human.after == human.before
    kept = report.datasets[0].outcomes[1].quality_at("human-only", 10).test
    assert kept is not None
    assert kept.passed  # no human text has a copy among human texts
    assert kept.note == InferCode.UNCHANGEABLE()
    assert "Copies were found in these texts themselves" in role_sentence(verdicts(report)[0])
    both = TwinGroups(SETTINGS, data.corpus.doc_ids, [(ids[0], ids[2], 0.9)])  # two human texts
    specs = (first, RescoredSpec(first, TwinRescorer(both)))
    sources = data.corpus, ("human", "llm:x")
    assert unchanged_qualities(*specs, *sources) == ("llm-only",)
    assert spec.settings["rescore.kind"] == "twins"
    # served at one seed, the run has the very order of the rescorer
    run = spec.build(data.corpus).retrieve(data.queries, 10)
    plain = first.build(data.corpus).retrieve(data.queries, 100)
    scores = next(iter(plain)).scores
    assert scores is not None
    order = served(spec.rescorer, list(next(iter(plain)).doc_ids), scores.tolist(),
                   data.queries[0].text)  # fmt: skip
    assert list(next(iter(run)).doc_ids) == order[:10]


# What a file keeps


def test_a_file_gives_the_same_groups_and_writes_what_changed(tmp_path: Any) -> None:
    ids, texts = copied(80, 3, np.random.default_rng(2))
    found = group_documents(ids, texts, collection="wiki")
    path = tmp_path / "twins.sqlite"
    write_twins(found, path)
    again = read_twins(path, collection="wiki")
    assert again.groups == found.groups
    assert again.settings == found.settings
    assert len(again) == len(ids)
    group = again.groups[0]
    again.remove([group[0]])
    again.add(["new"], [("new", group[1], 0.99)])
    assert again._unsaved is not None  # only what was touched is written
    assert len(again._unsaved) <= 4
    write_twins(again, path)
    third = read_twins(path)
    assert third.groups == again.groups
    assert len(third) == len(ids)
    assert third.weights is not None


def test_groups_of_something_else_are_refused(tmp_path: Any) -> None:
    ids, texts = copied(80, 2, np.random.default_rng(2))
    rng = np.random.default_rng(0)
    vectors = np.repeat(rng.normal(size=(80, 16)), 2, axis=0)
    path = tmp_path / "twins.sqlite"
    write_twins(group_documents(ids, texts, vectors, space="minilm", threshold=0.9,
                                collection="wiki"), path)  # fmt: skip
    with pytest.raises(DataError, match=r"joins neighbours of the encoder 'minilm'.*'mpnet'"):
        read_twins(path, encoder="mpnet")
    with pytest.raises(DataError, match="of the collection 'wiki', not of 'news'"):
        read_twins(path, collection="news")
    assert read_twins(path, encoder="minilm", collection="wiki").groups
    rescorer = TwinRescorer.read(path, encoder="minilm", seed=4)
    rescorer.write(path)
    assert TwinRescorer.read(path).groups.groups == rescorer.groups.groups
    path.write_bytes(b"no database")
    with pytest.raises(DataError, match=r"twins\.sqlite"):
        read_twins(path)
