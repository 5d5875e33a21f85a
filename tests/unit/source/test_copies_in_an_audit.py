"""Copies in an audit: what is said of them, and that a group counts as one document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rag_sourcebias as rsb
from rag_sourcebias.core.data import Corpus, Dataset, Qrels, Query, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.documents import read_groups, read_tags
from rag_sourcebias.measure.texts import CopyCode
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.source.audit import audit_source, measure_source_bias
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport
from support import command_line

N, CONFIG = 30, AuditConfig(measures=("NDCG", "MAP"), cutoffs=(3, 5), resamples=100)
TAGS = {
    name: source
    for q in range(N)
    for name, source in [
        (f"h{q}", "human"),
        (f"n{q}", "human"),
        *((f"l{q}{c}", "llm:x") for c in "abc"),
    ]
}
GROUPS = {f"l{q}{c}": f"l{q}" for q in range(N) for c in "abc"}


def ranked(rng: np.random.Generator, copies: str) -> Run:
    results = {}
    for q in range(N):
        names = [f"h{q}", f"n{q}", f"l{q}a"]
        found = {names[i]: 10.0 - rank for rank, i in enumerate(rng.permutation(3))}
        found |= {f"l{q}{c}": found[f"l{q}a"] - 0.1 * i for i, c in enumerate(copies)}
        results[f"q{q}"] = dict(sorted(found.items(), key=lambda item: -item[1]))
    return Run.from_dict(results)


def judged(copies: str) -> Qrels:
    return Qrels.from_dict({
        f"q{q}": {f"h{q}": 1, f"n{q}": 0} | {f"l{q}{c}": 1 for c in copies} for q in range(N)
    })  # fmt: skip


def figures(report: SkewReport) -> list[tuple[object, ...]]:
    return [
        (c.measure, c.mean_baseline, c.mean_other, c.centred.value, c.relative_delta)
        for system in report.systems
        for c in system.cells
    ]


def test_figures_are_those_of_data_without_the_copies() -> None:
    tags = read_tags(TAGS)
    with_copies, without = (ranked(np.random.default_rng(4), copies) for copies in ("abc", "a"))
    found = measure_source_bias(
        with_copies, judged("abc"), tags, config=CONFIG, copies=GROUPS, name="x"
    )
    expected = measure_source_bias(without, judged("a"), tags, config=CONFIG, copies="no")
    assert figures(found) == figures(expected)
    one_by_one = measure_source_bias(with_copies, judged("abc"), tags, config=CONFIG, copies="no")
    assert figures(one_by_one) != figures(expected)  # the control
    # a reader sees all copies
    assert found.systems[0].exposure == one_by_one.systems[0].exposure


@pytest.mark.parametrize("judged_copies", ["a", "b", "abc"])
def test_a_judged_copy_stands_for_its_group(judged_copies: str) -> None:
    tags, run = read_tags(TAGS), ranked(np.random.default_rng(4), "abc")
    found = measure_source_bias(run, judged(judged_copies), tags, config=CONFIG, copies=GROUPS)
    assert figures(found) == figures(
        measure_source_bias(run, judged("abc"), tags, config=CONFIG, copies=GROUPS)
    )


def test_ends_hold_for_any_copy() -> None:
    """Of three copies far apart the best is high by chance: that is no skew."""
    rng, tags = np.random.default_rng(2), read_tags(TAGS)
    every, firsts = {}, {}
    for q in range(N):
        docs = rng.permutation([f"h{q}", f"n{q}", *(f"l{q}{c}" for c in "abc")]).tolist()
        best = next(doc for doc in docs if doc.startswith("l"))
        left = [f"l{q}a" if doc == best else doc for doc in docs if doc[0] != "l" or doc == best]
        every[f"q{q}"] = {doc: -rank for rank, doc in enumerate(docs)}
        firsts[f"q{q}"] = {doc: -rank for rank, doc in enumerate(left)}
    run, alone = (
        measure_source_bias(
            Run.from_dict(results), judged(copies), tags, config=CONFIG, copies=asked
        )
        .systems[0]
        .cell("NDCG@3", "llm:x")
        for results, copies, asked in ((every, "abc", GROUPS), (firsts, "a", "no"))
    )
    assert run.centred.value == alone.centred.value < 0
    assert run.centred.interval is not None
    assert alone.centred.interval is not None
    assert run.centred.interval.lower == alone.centred.interval.lower
    assert run.centred.interval.upper > alone.centred.interval.upper + 5
    assert run.p_value is not None
    assert alone.p_value is not None
    assert run.p_value > 10 * alone.p_value


TEXTS = {
    "human": "the tide rises twice a day because the moon pulls at the water of the sea",
    "llm:x": "because of the pull of our moon sea levels go up two times in every single day",
}


def dataset(n_copies: int) -> Dataset:
    texts, tags = {}, {}
    for q in range(N):
        for source, text in TEXTS.items():
            words = " ".join(f"{word}{q}" for word in text.split())
            copies = n_copies if source != "human" else 0
            for c in range(copies + 1):
                name = f"{source[0]}{q}.{c}"
                texts[name], tags[name] = words.replace("day", f"day{c}"), source
    table = read_tags(tags)
    return Dataset(
        name="tides",
        corpus=Corpus(texts=tuple(texts.values()), tags=table),
        queries=tuple(Query(query_id=f"q{q}", text=f"moon{q} sea{q}") for q in range(N)),
        qrels=Qrels.from_dict({f"q{q}": {f"h{q}.0": 1, f"l{q}.0": 1} for q in range(N)}),
        design="independent",
    )


def test_near_duplicates_are_found_counted_and_said() -> None:
    report = audit_source(dataset(2), [BM25Spec()], config=CONFIG, sole_corpus=False)
    (found,) = [one for one in report.findings if one.code is CopyCode.ALIKE]
    assert str(found).startswith(
        "90 of 90 documents of llm:x text share most of their words, in 30 groups;"
    )
    assert str(found) in report.warnings
    alone = audit_source(dataset(0), [BM25Spec()], config=CONFIG, sole_corpus=False)
    assert [one.code for one in alone.findings if one.code in set(CopyCode)] == [
        CopyCode.NONE_FOUND
    ]


def test_versions_across_sources_are_no_copies() -> None:
    data = dataset(0)
    same = replace(data, corpus=replace(data.corpus, texts=tuple(data.corpus.texts[::2]) * 2))
    report = audit_source(same, [BM25Spec()], config=CONFIG, sole_corpus=False)
    texts = np.array(same.corpus.texts)
    sources = same.corpus.tags.source_codes
    within = sum(len(texts[sources == c]) - len(set(texts[sources == c])) for c in (0, 1))
    said = sum(int(f.numbers["n"]) for f in report.findings if f.code is CopyCode.ALIKE)
    assert (within == 0) == (said == 0)


def test_without_texts_it_is_said_that_nobody_looked() -> None:
    tags, run = read_tags(TAGS), ranked(np.random.default_rng(4), "abc")
    report = measure_source_bias(run, judged("abc"), tags, config=CONFIG)
    assert CopyCode.NO_TEXTS in [one.code for one in report.findings]
    assert "were not looked for" in "".join(report.warnings)


@pytest.mark.parametrize(
    "given",
    [
        GROUPS,
        {"doc_id": list(GROUPS), "group": list(GROUPS.values())},
        [{"doc_id": name, "group": group} for name, group in GROUPS.items()],
    ],
)
def test_groups_are_read_from_any_carrier(given: object) -> None:
    assert read_groups(given) == GROUPS
    data = {"qrels": {f"q{q}": [f"h{q}", f"l{q}b"] for q in range(N)}, "tags": TAGS}
    results = {q: list(docs.doc_ids) for q, docs in
               ((r.query_id, r) for r in ranked(np.random.default_rng(4), "abc"))}  # fmt: skip
    report = rsb.audit(results, data, copies=given, cutoffs=[5])
    (found,) = [one for one in report.findings if one.code is CopyCode.FOUND]
    assert (found.numbers["n"], found.numbers["groups"]) == (3 * N, N)


def test_a_document_without_copies_has_an_empty_group() -> None:
    assert read_groups({"a": "1", "b": "", "c": None}) == {"a": "1"}
    with pytest.raises(DataError, match="group"):
        read_groups({"doc_id": ["a"], "cluster": ["b"]})


def test_in_a_terminal(tmp_path: Path) -> None:
    lines = [
        f"{ranking.query_id} Q0 {doc} {rank} {-rank} x"
        for ranking in ranked(np.random.default_rng(4), "abc")
        for rank, doc in enumerate(ranking.doc_ids, 1)
    ]
    (tmp_path / "x.run").write_text("\n".join(lines))
    lines = [f"q{q} 0 {doc} 1" for q in range(N) for doc in (f"h{q}", f"l{q}a")]
    (tmp_path / "qrels.txt").write_text("\n".join(lines))
    command_line.write_csv(tmp_path / "tags.csv", ["doc_id", "source"], TAGS.items())
    command_line.write_csv(tmp_path / "copies.csv", ["doc_id", "group"], GROUPS.items())
    common = ["audit", "source", "--run", "x.run", "--qrels", "qrels.txt", "--tags", "tags.csv"]
    found = command_line.succeed(*common, "--copies", "copies.csv", cwd=tmp_path)
    assert "near-duplicates of one another, in 30 groups" in found
    command_line.succeed(*common, "--copies", "no", "--report", "out", cwd=tmp_path)
    plain = (tmp_path / "out" / "report.html").read_text()
    assert "Near-duplicates within a source count one by one" in plain
    refused = command_line.refused(*common, "--copies", "nowhere.csv", cwd=tmp_path)
    assert "nowhere.csv does not exist" in refused
