"""Several data sets, several rewriters, other settings: figures beside the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from intervals import around

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.retrieval.search import BM25Spec
from rag_sourcebias.source.audit import BM25_SETTINGS, audit_source, measure_source_bias
from rag_sourcebias.source.combined import combine_reports, random_effects
from rag_sourcebias.source.findings import AuditConfig, SourceCode


def test_random_effects_cover_the_mean_of_studies_that_differ():
    rng, runs = np.random.default_rng(0), 400
    covered = fixed = 0
    for _ in range(runs):
        errors = rng.uniform(2, 8, 5)
        values = rng.normal(0, 15, 5) + errors * rng.normal(size=5)
        studies = [around(v, 1.96 * e) for v, e in zip(values, errors, strict=True)]
        covered += not random_effects(studies).excludes(0)
        weights = errors**-2.0
        fixed += abs(weights @ values / weights.sum()) < 1.96 * weights.sum() ** -0.5
    assert covered / runs > 0.91  # binomial tolerance at .001 below .95
    assert fixed / runs < 0.75  # studies taken as one: what the between-study variance is for


def test_fewer_than_three_data_sets_are_refused():
    with pytest.raises(InsufficientDataError, match="2 data sets are too few"):
        random_effects([around(1, 1.96), around(2, 1.96)])


def rankings(n_models: int, n: int, seed: int) -> tuple[Run, Qrels, TagTable]:
    """One human document and its rewrites per query, in any order."""
    rng = np.random.default_rng(seed)
    sources = ["human", *(f"llm:{m}" for m in range(n_models))]
    scores = {
        f"q{i}": {f"d{i}-{s}": float(v) for s, v in zip(sources, rng.normal(size=9), strict=False)}
        for i in range(n)
    }
    tags = TagTable.from_tags(
        (f"d{i}-{s}", DocTags(source=s, pair_id=f"d{i}")) for i in range(n) for s in sources
    )
    qrels = Qrels.from_dict({q: dict.fromkeys(found, 1) for q, found in scores.items()})
    return Run.from_dict(scores), qrels, tags


def test_reports_are_combined_by_retriever():
    reports = [measure_source_bias(*rankings(1, 40, seed), name=f"set {seed}") for seed in range(4)]
    (found,) = combine_reports(reports)
    assert found.numbers["system"] == "run"
    assert found.numbers["n"] == 4
    assert not found.numbers["delta"].excludes(0)
    again = combine_reports(reports[:2])[0]
    assert again.code is SourceCode.NOT_COMBINED
    assert again.numbers["refusal"].numbers["n_least"] == 3
    other = measure_source_bias(*rankings(1, 40, 9), config=AuditConfig(cutoffs=(1,)))
    with pytest.raises(DataError, match="differ in primary measure"):
        combine_reports([*reports, other])


def test_merged_rewriters_are_one_source_and_blind_ranks_no_skew():
    run, qrels, tags = rankings(3, 60, 2)
    report = measure_source_bias(run, qrels, tags, config=AuditConfig(merge_llms=True))
    (verdict,) = report.systems[0].verdicts
    assert verdict.other == "llm"
    assert not verdict.interval.excludes(0)
    assert InferCode.REWRITERS_FIXED(n=3) in verdict.interval.assumptions
    # as published, three copies against one look like a preference for the LLMs
    assert report.systems[0].cell("NDCG@1", "llm").interval.upper < 0


def test_the_strip_holds_the_other_settings_and_the_table_what_could_turn_the_sign():
    report = audit_source(load_sample(), [BM25Spec()], sole_corpus=False, length_matched=False)
    (system,) = report.systems
    asked = [f"k1={k1:g}, b={b:g}" for k1, b in BM25_SETTINGS if (k1, b) != (1.5, 0.75)]
    assert [one.setting for one in system.strip] == asked
    other = audit_source(
        load_sample(),
        [BM25Spec(k1=0.9, b=0.4)],
        sole_corpus=False,
        length_matched=False,
        settings_strip=False,
    )
    assert other.systems[0].strip == ()
    value = other.systems[0].verdicts[0].centred_delta
    assert system.strip[0].value == pytest.approx(value, abs=1e-12)
    (sign,) = (section for section in report.page().sections if section.id == "sign")
    shown = sign.blocks[0].frame
    assert shown == report.table("settings strip")
    assert shown.columns["setting"][:2] == ["mixed", asked[0]]
