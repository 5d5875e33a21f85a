import numpy as np
import pytest
from judged_reports import mean_of

from rag_sourcebias.core.data import DocTags, LabelDistributions, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.judged.audit import grade_audits, judge_ranking_with_intervals
from rag_sourcebias.judged.crc import JudgedRanking, calibrate_dual, crc_interval
from rag_sourcebias.judged.data import JudgedConfig
from rag_sourcebias.judged.page import worth_of

FAST = JudgedConfig()
N_QUERIES, N_LABELED, N_DOCS = 120, 40, 20


@pytest.fixture(scope="module")
def data():
    """Half the documents are LLM text, which the judge over-rates; two runs rank them."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, (N_QUERIES, N_DOCS))
    llm = np.arange(N_DOCS) % 2 == 1
    seen = np.clip(grades + rng.normal(0.2 + 0.8 * llm, 0.7, grades.shape), 0, 3)
    floor = np.floor(seen).astype(int)
    probs = np.zeros((N_QUERIES, N_DOCS, 4))
    part = seen - floor
    for q in range(N_QUERIES):
        for d in range(N_DOCS):
            probs[q, d, floor[q, d]] += 1 - part[q, d]
            probs[q, d, min(floor[q, d] + 1, 3)] += part[q, d]
    names = [[f"q{q}d{d}" for d in range(N_DOCS)] for q in range(N_QUERIES)]
    judge = LabelDistributions.from_rows(
        (f"q{q}", names[q][d], probs[q, d]) for q in range(N_QUERIES) for d in range(N_DOCS)
    )
    chosen = sorted(rng.choice(N_QUERIES, N_LABELED, replace=False).tolist())
    human = Qrels.from_rows(
        (f"q{q}", names[q][d], int(grades[q, d])) for q in chosen for d in range(N_DOCS)
    )
    runs = [
        Run.from_dict(
            {
                f"q{q}": dict(zip(names[q], grades[q] + rng.normal(0, noise, N_DOCS), strict=True))
                for q in range(N_QUERIES)
            },
            name=name,
        )
        for name, noise in (("good", 1.0), ("poor", 6.0))
    ]
    tags = TagTable.from_tags(
        (name, DocTags(source="llm:x" if llm[d] else "human"))
        for row in names
        for d, name in enumerate(row)
    )
    truth = LabelDistributions.from_qrels(
        Qrels.from_rows(
            (f"q{q}", names[q][d], int(grades[q, d]))
            for q in range(N_QUERIES)
            for d in range(N_DOCS)
        ),
        n_grades=4,
    )
    return runs, human, judge, tags, truth


def test_means_are_regressions_of_per_query_values(data):
    runs, human, judge, _, truth = data
    measures = ["NDCG@10", "DCG@10", "MAP@20"]
    config = JudgedConfig(target="pool")
    report = judge_ranking_with_intervals(
        runs, human, {"judge": judge}, measures=measures, config=config
    )
    place = [judge.query_ids.index(q) for q in human.query_ids]
    rest = np.setdiff1d(np.arange(N_QUERIES), place)
    for run in runs:
        for measure in measures:
            f = JudgedRanking.join(run, judge).values(measure)
            y = JudgedRanking.join(run, truth).values(measure)
            found = mean_of(report, measure, run.name)
            expected = mean_interval(y[place], f[place], f[rest], target="pool")
            assert found.interval.estimate == pytest.approx(expected.estimate)
            assert found.interval.lower == pytest.approx(expected.lower)
            assert found.interval.lower <= y.mean() <= found.interval.upper
            assert found.judge_alone == pytest.approx(f.mean())


def test_systems_are_compared_on_the_same_queries(data):
    runs, human, judge, _, truth = data
    report = judge_ranking_with_intervals(runs, human, {"judge": judge}, config=FAST)
    (found,) = report.comparisons
    assert (found.kind, found.first, found.second) == ("difference", "good", "poor")
    true = np.subtract(*[JudgedRanking.join(r, truth).values("NDCG@10").mean() for r in runs])
    assert found.interval.lower <= true <= found.interval.upper
    assert found.interval.lower > 0
    assert (report.n_labeled, report.n_unlabeled) == (N_LABELED, N_QUERIES - N_LABELED)


def test_a_judge_that_flatters_llm_text_does_not_make_a_skew(data):
    runs, human, judge, tags, truth = data
    report = judge_ranking_with_intervals(runs[:1], human, {"judge": judge}, tags=tags, config=FAST)
    (found,) = [c for c in report.comparisons if c.kind == "relative_delta"]
    assert (found.first, found.second) == ("human", "llm:x")
    is_llm = np.array([tags.get(truth.doc_ids[c]).source == "llm:x" for c in truth.doc_codes])
    ranking = JudgedRanking.join(runs[0], truth)
    of = {s: ranking.values("NDCG@10", counted=is_llm == s).mean() for s in (False, True)}
    true = 200 * (of[False] - of[True]) / (of[False] + of[True])
    assert found.interval.lower <= true <= found.interval.upper
    audit = report.audits["grades"]
    bias = {group.group: group.bias.estimate for group in audit.groups}
    assert bias.keys() == {"human", "llm:x"}
    assert bias["llm:x"] > bias["human"] + 0.3
    assert audit.n == N_LABELED * N_DOCS
    assert not any("no source tag" in warning for warning in report.warnings)


def test_every_pair_with_both_labels_is_compared():
    human = Qrels.from_dict({f"q{i}": {f"d{j}": (i + j) % 3 for j in range(4)} for i in range(12)})
    judge = LabelDistributions.from_qrels(human, n_grades=3)
    audit = grade_audits(judge, judge, None, FAST)["grades"]
    assert (audit.n, audit.bias.estimate) == (48, 0.0)


def test_intervals_of_single_queries(data):
    runs, human, judge, _, truth = data
    report = judge_ranking_with_intervals(
        runs[:1], human, {"judge": judge}, measures=["DCG@10", "NDCG@10"], config=FAST
    )
    (found,) = report.per_query  # NDCG has none
    true = JudgedRanking.join(runs[0], truth).values("DCG@10")
    inside = (found.lower <= true) & (true <= found.upper)
    assert inside.mean() > 0.88
    assert np.count_nonzero(~np.isnan(found.human)) == N_LABELED
    few = Qrels.from_rows(
        (human.query_ids[q], human.doc_ids[d], int(g))
        for q, d, g in zip(human.query_codes, human.doc_codes, human.grades, strict=True)
        if q < 12
    )
    report = judge_ranking_with_intervals(
        runs[:1], few, {"judge": judge}, measures=["DCG@10"], config=FAST
    )
    assert report.per_query == ()
    assert any("no intervals of single queries for DCG@10" in w for w in report.warnings)


def test_refusals(data):
    runs, human, judge, tags, _ = data
    extra = Qrels.from_rows([("q0", "q0d0", 1), ("stranger", "q0d0", 1)])
    with pytest.raises(DataError, match=r"1 of 2 queries with human labels.*first 'stranger'"):
        judge_ranking_with_intervals(runs, extra, {"judge": judge}, config=FAST)
    with pytest.raises(DataError, match=r"grade 7 of query 'q0'.*outside the scale 0 … 3"):
        judge_ranking_with_intervals(
            runs, Qrels.from_rows([("q0", "q0d0", 7)]), {"judge": judge}, config=FAST
        )
    with pytest.raises(DataError, match="baseline source 'people'"):
        judge_ranking_with_intervals(
            runs, human, {"judge": judge}, tags=tags, baseline_source="people", config=FAST
        )


def test_crc_is_offered_for_the_unlabelled_queries_with_its_warning(data):
    runs, human, judge, *_ = data
    config = JudgedConfig(method="crc", target="unlabeled", per_query=False)
    report = judge_ranking_with_intervals(
        runs, human, {"judge": judge}, measures=["DCG@10"], config=config
    )
    joined = JudgedRanking.join(runs[0], judge)
    labels = joined.ranked_labels("DCG@10")
    place = np.array([judge.query_ids.index(q) for q in human.query_ids])
    rest = np.setdiff1d(np.arange(N_QUERIES), place)
    truth = LabelDistributions.from_qrels(human, n_grades=4)
    y = JudgedRanking.join(runs[0], truth).values("DCG@10")
    order = np.argsort(place)
    expected = crc_interval(
        calibrate_dual(labels.take(place[order]), y[order], confidence_level=0.95),
        labels.take(rest),
    )
    found = report.means[0].interval
    assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper))
    assert report.means[0].labels_saved is None  # a width that covers less saves nothing
    assert report.warnings[0].startswith("CRC leaves out the sampling error")
    assert worth_of(report, report.means[0]).startswith("Too short by construction")
    with pytest.raises(DataError, match="NDCG@10 is not a weighted sum"):
        judge_ranking_with_intervals(
            runs, human, {"judge": judge}, config=config, measures=["NDCG@10"]
        )


def test_a_run_that_has_nothing_for_some_queries_is_named(data):
    runs, human, judge, *_ = data
    half = [
        Run.from_dict({q: {d: 1.0} for q in queries for d in (f"{q}d0",)}, name=name)
        for name, queries in (
            ("low", [f"q{q}" for q in range(60)]),
            ("high", [f"q{q}" for q in range(60, 120)]),
        )
    ]
    found = judge_ranking_with_intervals(half, human, {"judge": judge}, config=FAST).warnings
    assert found[0] == (
        "2 of 2 runs, most of all low: 60 judged queries have no document, first 'q60'; "
        "they count 0"
    )
    part = human.take(np.arange(len(human)) % 5 != 0)
    whole = judge_ranking_with_intervals(runs[:1], part, {"judge": judge}, config=FAST).warnings
    assert not any("no document" in w for w in whole)
    assert any("have no label by people" in w for w in whole)
