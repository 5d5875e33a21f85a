"""Several generators: an audit of two sources for each, and the index of all beside them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias import audit
from rag_sourcebias.core.data import Dataset, Qrels, Run, TagTable
from rag_sourcebias.infer.means import adjust_p_values
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec
from rag_sourcebias.source.audit import audit_source, measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SkewResults, SourceCode, SystemSkew
from support.hashing_encoder import HashingEncoder

MODELS = ("llm:claude", "llm:doubled", "llm:short")
CONFIG = AuditConfig(cutoffs=(1, 5), resamples=100)


def folder(at: Path, models: tuple[str, ...]) -> Dataset:
    """Read back a folder of the sample, whose other models cut and repeat the human texts."""
    sample = load_sample()
    texts: dict[str, dict[str, str]] = {}
    for doc_id, text in zip(sample.corpus.doc_ids, sample.corpus.texts, strict=True):
        name, source = doc_id.split("@")
        texts.setdefault(source, {})[name] = text
    words = {name: text.split() for name, text in texts["human"].items()}
    texts["llm:short"] = {name: " ".join(each[: len(each) // 2]) for name, each in words.items()}
    texts["llm:doubled"] = {name: " ".join(each[:40] * 2) for name, each in words.items()}
    (at / "corpus").mkdir(parents=True)
    (at / "qrels").mkdir()
    for source in ("human", *models):
        lines = [json.dumps({"_id": n, "title": "", "text": t}) for n, t in texts[source].items()]
        (at / "corpus" / f"{source}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    queries = [json.dumps({"_id": q.query_id, "text": q.text}) for q in sample.queries]
    (at / "queries.jsonl").write_text("\n".join(queries), encoding="utf-8")
    judged = [f"{q.query_id}\t{q.query_id}\t1" for q in sample.queries]
    head = "query-id\tcorpus-id\tscore"
    (at / "qrels" / "test.tsv").write_text("\n".join([head, *judged]), encoding="utf-8")
    return read_beir(at)


def numbers(system: SystemSkew) -> list[float | None]:
    cells = [
        (cell.relative_delta, cell.centred.value, cell.p_value, *ends)
        for cell in system.cells
        for ends in [(i.lower, i.upper) for i in [cell.centred.interval] if i is not None]
    ]
    other = [
        (e.share, e.corpus_share) for e in system.exposure
    ] + [(check.mean_baseline, check.mean_other) for check in system.sole_corpus]  # fmt: skip
    strip = [(setting.value,) for setting in system.strip]
    twins = [(twin.win_rate.estimate,) for twin in system.twins if twin.win_rate is not None]
    return [number for row in (*cells, *other, *strip, *twins) for number in row]


def test_each_generator_has_the_numbers_of_a_folder_of_its_own(tmp_path: Path) -> None:
    specs = [BM25Spec(), DenseSpec(HashingEncoder())]
    models = MODELS[:2]
    every = audit_source(folder(tmp_path / "all", models), specs, config=CONFIG)
    assert {s.variant for s in every.systems} == {"mixed", "together", "length-matched"}
    for model in models:
        alone = audit_source(folder(tmp_path / model, (model,)), specs, config=CONFIG)
        for system in alone.systems:
            found = numbers(every.system(system.name, system.variant, other=model))
            assert len(found) > 20
            assert found == pytest.approx(numbers(system), abs=1e-12, nan_ok=True)


def test_verdicts_are_corrected_over_generators_and_the_index_of_all_stands_beside(
    tmp_path: Path,
) -> None:
    report = audit_source(folder(tmp_path, MODELS), [BM25Spec()], config=CONFIG)
    verdicts = [v for s in report.systems if s.variant == "mixed" for v in s.verdicts]
    assert [v.other for v in verdicts] == sorted(MODELS)
    assert report.n_tests == len(MODELS)
    assert [v.p_adjusted for v in verdicts] == adjust_p_values([v.p_value for v in verdicts])
    together = report.system("bm25", "together")
    assert together.against == ", ".join(MODELS)
    table = report.frames["generators"]
    assert list(table.columns)[3:] == ["NDCG@1", "NDCG@5", "MAP@1", "MAP@5"]
    rows = zip(*(table.columns[name] for name in ("other", "index", "NDCG@5")), strict=True)
    assert {(other, index): figure for other, index, figure in rows} == {
        (cell.other, index): cell.centred.figure
        for index, variant in (("two sources", "mixed"), ("all sources", "together"))
        for system in report.systems
        if system.variant == variant
        for cell in system.cells
        if cell.measure == "NDCG@5"
    }
    runs = report.frames["runs"].columns
    mixed = [at for at, variant in enumerate(runs["variant"]) if variant == "mixed"]
    assert [runs["against"][at] for at in mixed] == sorted(MODELS)
    assert "generators" in {section.id for section in report.page().sections}


def competing(n: int = 60) -> tuple[Run, Qrels, TagTable]:
    """Rankings whose order is a, human, b in most queries: b is below where a is out of the way."""
    rng = np.random.default_rng(0)
    results = {
        f"q{i}": {f"a{i}": 3.0, f"h{i}": 2.0 + rng.choice([0, 2]), f"b{i}": 2.2, f"u{i}": 1.0}
        for i in range(n)
    }
    qrels = {f"q{i}": {f"{x}{i}": 1 for x in "ahb"} for i in range(n)}
    sources = {"a": "llm:a", "h": "human", "b": "llm:b", "u": None}
    tags = {f"{x}{i}": source for i in range(n) for x, source in sources.items()}
    return Run.from_dict(results), Qrels.from_dict(qrels), read_tags(tags)


def without(run: Run, qrels: Qrels, tags: TagTable, letter: str) -> tuple[Run, Qrels, TagTable]:
    lists = {r.query_id: dict(zip(r.doc_ids, r.scores.tolist(), strict=True)) for r in run}
    kept = {q: {d: s for d, s in row.items() if d[0] != letter} for q, row in lists.items()}
    judged = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    rows = [(qrels.query_ids[q], qrels.doc_ids[d], int(g)) for q, d, g in judged]
    left = {d: tags.get(d).source for d in tags.doc_ids if d[0] != letter}
    return (
        Run.from_dict(kept),
        Qrels.from_rows(row for row in rows if row[1][0] != letter),
        read_tags(left),
    )


@pytest.mark.parametrize(("left_out", "other"), [("a", "llm:b"), ("b", "llm:a")])
def test_finished_rankings_are_restricted_and_it_is_said(left_out: str, other: str) -> None:
    world = competing()
    report = measure_source_bias(*world, config=CONFIG)
    by_hand = measure_source_bias(*without(*world, left_out), config=CONFIG)
    found = report.system("run", other=other)
    assert numbers(found) == pytest.approx(numbers(by_hand.systems[0]), abs=1e-12)
    assert codes(report)[SourceCode.RESTRICTED]
    assert not codes(by_hand)[SourceCode.RESTRICTED]
    assert "generators" not in {section.id for section in by_hand.page().sections}


def codes(report: SkewResults) -> dict[SourceCode, bool]:
    return {code: any(f.code is code for f in report.findings) for code in SourceCode}


def test_signs_that_differ_are_said() -> None:
    """Human text stands above that of b more often, but below that of a where it does."""
    places = [(9.0, 8.0, 7.0) if i % 10 < 6 else (1.0, 8.0, 9.0) for i in range(60)]
    rows = {
        f"q{i}": dict(zip((f"a{i}", f"h{i}", f"b{i}"), places[i], strict=True)) for i in range(60)
    }
    qrels = {q: dict.fromkeys(row, 1) for q, row in rows.items()}
    names = {"a": "llm:a", "h": "human", "b": "llm:b"}
    tags = {doc: names[doc[0]] for row in rows.values() for doc in row}
    report = audit(rows, {"qrels": qrels, "tags": tags}, cutoffs=(1,))
    (finding,) = (one for one in report.findings if one.code is SourceCode.SIGNS_DIFFER)
    alone = report.system("results", other="llm:b").verdicts[0]
    together = report.system("results", "together").verdicts[1]
    assert (finding.numbers["delta"], finding.numbers["together"]) == (
        alone.figure,
        together.figure,
    )
    assert alone.centred_delta == pytest.approx(40.0)
    assert together.centred_delta == pytest.approx(-200.0)
    assert (finding.numbers["other"], together.other) == ("llm:b", "llm:b")
