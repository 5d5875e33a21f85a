"""From runs to a report: every number can be recomputed from what the report carries."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.infer.means import (
    SkewCode,
    adjust_p_values,
    clustered_mean,
    relative_delta_interval,
)
from rag_sourcebias.intake.belong import BelongCode
from rag_sourcebias.measure.relevance import relative_delta, source_scores
from rag_sourcebias.measure.texts import DataCode
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SourceCode

LLMS = ("llm:a", "llm:b")
CONFIG = AuditConfig(resamples=500, cutoffs=(1, 3))


def tag_table(n=60):
    return TagTable.from_tags(
        (f"{s}-{i}", DocTags(source=s, pair_id=f"p{i}")) for i in range(n) for s in ("human", *LLMS)
    )


def make_run(*, name="r", lead=0.0, n=60, seed=0):
    """Draw scores in which copies of llm:a stand ``lead`` higher than the others."""
    rng = np.random.default_rng(seed)
    tags = tag_table()
    return Run.from_dict(
        {
            f"q{i}": {
                d: float(rng.normal() + lead * d.startswith("llm:a") + 3 * d.endswith(f"-{i}"))
                for d in tags.doc_ids
            }
            for i in range(n)
        },
        name=name,
    )


def make_qrels(n=60):
    return Qrels.from_dict({f"q{i}": {f"{s}-{i}": 1 for s in ("human", *LLMS)} for i in range(n)})


@pytest.fixture(scope="module")
def report():
    runs = [make_run(name="fair"), make_run(name="skewed", lead=1.5, seed=1)]
    texts = tuple(f"word{i} {'more ' * (i % 4)}" for i in range(len(tag_table())))
    return measure_source_bias(
        runs,
        make_qrels(),
        tag_table(),
        config=CONFIG,
        corpus=Corpus(texts=texts, tags=tag_table()),
        settings={"fair": {"k1": "0.9"}},
        name="toy",
        design="rewrites",
    )


def test_cells_follow_from_the_per_query_scores(report):
    for system in report.systems[2::3]:  # of all sources; one at a time stand before it
        wanted = source_scores(
            make_run(name="x", lead=1.5 * (system.name == "skewed"), seed=system.name == "skewed"),
            make_qrels(),
            tag_table(),
            cutoffs=CONFIG.cutoffs,
        )
        np.testing.assert_array_equal(system.scores.values, wanted.values)
        assert len(system.cells) == 2 * 2 * 2  # measures × cutoffs × other sources
        for cell in system.cells:
            h = system.scores.of(cell.measure, "human")
            low = system.scores.of(cell.measure, cell.other)
            assert (cell.mean_baseline, cell.mean_other) == (h.mean(), low.mean())
            assert cell.relative_delta == relative_delta(h.mean(), low.mean())
            assert cell.interval == relative_delta_interval(h, low)


def test_the_primary_p_values_are_adjusted_over_all_systems_and_sources(report):
    one_by_one = [system for system in report.systems if system.variant == "mixed"]
    cells = [cell for system in one_by_one for cell in system.cells]
    primary = [c for c in cells if c.measure == "NDCG@3"]
    assert [c.p_adjusted for c in primary] == adjust_p_values([c.p_value for c in primary])
    assert report.n_tests == len(primary) == 4
    assert all(c.p_adjusted is None for c in cells if c.measure != "NDCG@3")
    assert all(v.n_tests == 4 for system in report.systems for v in system.verdicts)


def test_finds_the_skew_that_was_put_in(report):
    skewed, fair = report.system("skewed"), report.system("fair")
    assert skewed.cell("NDCG@3", "llm:a").p_adjusted < 0.05
    assert skewed.cell("NDCG@3", "llm:a").relative_delta < -50
    assert skewed.verdicts[0].other == "llm:a"
    assert skewed.verdicts[0].code is SkewCode.FAVOURS_OTHER
    assert not any(c.p_adjusted is not None and c.p_adjusted < 0.05 for c in fair.cells)
    assert skewed.twins[0].win_rate.lower > 0.5
    assert skewed.twins[0].margin.lower > 0
    assert fair.twins[0].win_rate.excludes(0.5) is False
    top1 = {e.source: e for e in skewed.exposure if e.browsing == "top-1"}
    assert top1["llm:a"].difference.lower > 0
    assert sum(e.share for e in top1.values()) == pytest.approx(1)
    assert skewed.awrf < fair.awrf <= 1


def test_exposure_beyond_the_share_of_documents_is_a_mean_over_queries(report):
    run = make_run(name="skewed", lead=1.5, seed=1)
    first = [ranking.doc_ids[0].rpartition("-")[0] for ranking in run.top(1)]
    exposures = [e for e in report.system("skewed", "together").exposure if e.browsing == "top-1"]
    for e in exposures:
        shown = np.array([float(source == e.source) for source in first])
        share = clustered_mean(shown, np.arange(60), bounds=(0.0, 1.0))
        assert (e.share, e.corpus_share) == (shown.mean(), pytest.approx(1 / 3))
        assert e.difference.lower == pytest.approx(share.lower - 1 / 3)
        assert e.difference.upper == pytest.approx(share.upper - 1 / 3)
    assert {e.source for e in exposures} == {"human", *LLMS}


def test_refusal_is_in_the_cell_and_not_raised():
    """One source is never retrieved, and with Fieller asked for by name there is no interval."""
    run = Run.from_dict({f"q{i}": {"human-0": 2.0} for i in range(40)})
    qrels = Qrels.from_dict({f"q{i}": {"human-0": 1, "llm:a-0": 1} for i in range(40)})
    tags = TagTable.from_tags(
        [("human-0", DocTags(source="human")), ("llm:a-0", DocTags(source="llm:a"))]
    )
    config = AuditConfig(resamples=100, interval_method="fieller")
    cell = measure_source_bias(run, qrels, tags, config=config).systems[0].cells[0]
    assert cell.relative_delta == 200.0
    assert cell.interval is None
    assert "one source scores on none of 40 queries" in str(cell.refusal)
    auto = measure_source_bias(run, qrels, tags).systems[0].cells[0]
    assert auto.interval.upper == 200.0
    assert 100 < auto.interval.lower < 200
    assert auto.refusal is None


def test_ties_are_reported():
    run = Run.from_dict({f"q{i}": dict.fromkeys(tag_table().doc_ids, 1.0) for i in range(4)})
    system = measure_source_bias(run, make_qrels(4), tag_table(), config=CONFIG).systems[0]
    (note,) = system.notes
    assert (note.code, note.numbers["n"]) == (SourceCode.TIES_AVERAGED, 4)
    assert all(cell.relative_delta == pytest.approx(0, abs=1e-9) for cell in system.cells)


def test_warnings_about_the_data():
    tags = TagTable.from_tags(
        [
            ("human-0", DocTags(source="human")),
            ("llm:a-0", DocTags(source="llm:a")),
            ("u", DocTags()),
        ]
    )
    qrels = Qrels.from_dict({"q0": {"human-0": 1, "llm:a-0": 1, "gone": 1}, "q1": {"human-0": 1}})
    run = Run.from_dict({"q0": {"human-0": 1.0}})
    corpus = Corpus(texts=("one two three", "one", ""), tags=tags)
    report = measure_source_bias(
        run, qrels, tags, corpus=corpus, config=CONFIG, design="independent"
    )
    told = {finding.code: finding.numbers for finding in report.findings}
    assert told[DataCode.UNTAGGED] == {"n": 1, "n_all": 3}
    assert told[DataCode.NOT_LISTED] == {"n": 1, "n_all": 3, "first": "gone"}
    assert told[DataCode.NO_RELEVANT] == {"source": "llm:a", "n": 1, "n_all": 2}
    assert told[DataCode.FEW_QUERIES] == {"n": 2, "cutoff": 1}
    assert told[DataCode.LENGTH] == {"source": "llm:a", "ratio": 1 / 3, "baseline": "human"}
    assert told[DataCode.INDEPENDENT] == {}
    lacks = {note.code: note.numbers for note in report.systems[0].notes}
    assert lacks[BelongCode.LACKING] == {"system": "run", "n": 1, "n_all": 2, "first": "q1"}
    warned = [finding for finding in report.findings if finding.severity == "warning"]
    assert report.warnings == tuple(map(str, warned))


def test_unpaired_documents_of_unknown_design_are_warned_of():
    bare = TagTable.from_tags(
        (d, DocTags(source=d.rpartition("-")[0])) for d in tag_table().doc_ids
    )
    for tags, design, told in (
        (tag_table(), "unknown", False),
        (bare, "unknown", True),
        (bare, "rewrites", False),
    ):
        report = measure_source_bias(make_run(), make_qrels(), tags, config=CONFIG, design=design)
        assert (DataCode.UNPAIRED in {finding.code for finding in report.findings}) == told


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"runs": []}, DataError, "no run was given"),
        ({"runs": [make_run(), make_run()]}, DataError, "run names must differ"),
        (
            {"tags": TagTable.from_tags([])},
            MissingTagsError,
            "none of 0 documents has a source tag",
        ),
        (
            {"tags": TagTable.from_tags([("human-0", DocTags(source="human"))])},
            DataError,
            "needs a second source",
        ),
        ({"config": AuditConfig(baseline_source="people")}, DataError, "baseline source 'people'"),
    ],
)
def test_errors(arguments, error, message):
    given = {"runs": make_run(), "qrels": make_qrels(), "tags": tag_table(), "config": CONFIG}
    given.update(arguments)
    with pytest.raises(error, match=message):
        measure_source_bias(given["runs"], given["qrels"], given["tags"], config=given["config"])
