"""Relative Δ with verified documents: equal to the audit where all are, and what is refused."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import queries_for_verdict
from rag_sourcebias.infer.verified import (
    Verification,
    draw_chances,
    draw_rows,
    p_of,
    relevant_slots,
    require_informative,
    tag_quality,
    verified_delta,
)
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig

N = 40


def data(seed: int = 0, *, lead: float = 0.0) -> tuple[Run, Qrels, dict[str, str]]:
    rng = np.random.default_rng(seed)
    run, qrels, sources = {}, {}, {}
    for q in range(N):
        docs = [f"{q}-{i}{s}" for i in range(2) for s in "hl"]
        run[f"q{q}"] = {
            **{d: float(rng.integers(6)) + lead * (d[-1] == "h") for d in docs},
            f"x{q}": 3.0,
        }
        qrels[f"q{q}"] = {d: 1 + int(d[-2]) * (1 + q % 2) for d in docs}  # 1 and 2, or 1 and 3
        sources |= {d: "human" if d[-1] == "h" else "llm:x" for d in docs}
    return Run.from_dict(run, name="r"), Qrels.from_dict(qrels), sources


def verified(sources: dict[str, str], truth: dict[str, str], chance: float = 1.0) -> Verification:
    return Verification(
        kind="slots",
        detector="d",
        tags=dict(sources),
        chance=dict.fromkeys(sources, chance),
        truth=truth,
        score={},
        decided=frozenset(),
        n_drawn=len(truth),
    )


@pytest.mark.parametrize("measure", ["NDCG", "P"])
@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_with_every_document_verified_it_is_the_figure_of_the_audit(measure, gain) -> None:
    run, qrels, sources = data()
    wrong = {d: "human" if i % 3 else "llm:x" for i, d in enumerate(sources)}
    slots = relevant_slots(run, qrels, measure, 3, gain=gain)
    assert np.abs(np.bincount(slots.query, weights=slots.centred)).max() < 1e-12
    tags = TagTable.from_tags((d, DocTags(source=s)) for d, s in sources.items())
    config = AuditConfig(measures=(measure,), cutoffs=(3,), gain=gain)
    cell = measure_source_bias(run, qrels, tags, config=config).systems[0].cells[0]
    # a tag that is sometimes right, or the correction is refused
    wrong |= {d: sources[d] for d in list(sources)[::2]}
    for centred, expected in ((True, cell.centred.value), (False, cell.relative_delta)):
        found = verified_delta(
            slots,
            qrels.doc_ids,
            verified(wrong, sources),
            centred=centred,
            units=np.arange(N),
        )
        assert found.estimate == pytest.approx(expected, abs=1e-9)


def test_exchanging_sources_mirrors_the_interval_of_clustered_queries() -> None:
    """Queries that were not seen are as extreme in either direction, and weigh as much."""
    run, qrels, sources = data(lead=1.0)
    exchanged = {"human": "llm:x", "llm:x": "human"}
    clusters = {q: f"topic {i // 4}" for i, q in enumerate(qrels.query_ids)}
    found = []
    for names in ({}, exchanged):
        tags = TagTable.from_tags((d, DocTags(source=names.get(s, s))) for d, s in sources.items())
        report = measure_source_bias(run, qrels, tags, clusters=clusters)
        found.append(report.systems[0].verdicts[0].interval)
    assert (found[1].lower, found[1].upper) == pytest.approx((-found[0].upper, -found[0].lower))
    assert found[0].n_labeled == 10


def test_a_report_of_detected_tags_carries_the_corrected_figures() -> None:
    run, qrels, sources = data()
    tagged = {d: "human" if i % 4 == 0 else s for i, (d, s) in enumerate(sources.items())}
    table = TagTable.from_tags((d, DocTags(source=s)) for d, s in tagged.items())
    report = measure_source_bias(run, qrels, table, verified=verified(tagged, sources))
    assert report.config.measures == ("NDCG",)
    (verdict,) = report.systems[0].verdicts
    slots = relevant_slots(run, qrels, "NDCG", 5)
    found = verified_delta(
        slots, qrels.doc_ids, verified(tagged, sources), centred=True, units=np.arange(N)
    )
    assert verdict.interval == found
    assert "160 verified by people" in report.warnings[0]
    with pytest.raises(DataError, match="add up over documents, NDCG and P"):
        measure_source_bias(
            run, qrels, table, verified=verified(tagged, sources),
            config=AuditConfig(measures=("MAP",)),
        )  # fmt: skip


@pytest.mark.parametrize("lead", [0.0, 3.0])
def test_cells_of_verified_tags_are_those_of_the_true_tags(lead: float) -> None:
    """Where all are verified: means per source, queries with several documents, and what it takes.

    One query more has a single relevant document: it counts in the means, and in no comparison.
    """
    run, qrels, sources = data(lead=lead)
    lists = {r.query_id: dict(zip(r.doc_ids, r.scores.tolist(), strict=True)) for r in run}
    grades = {q: {} for q in qrels.query_ids}
    for q, d, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True):
        grades[qrels.query_ids[q]][qrels.doc_ids[d]] = int(grade)
    run = Run.from_dict({**lists, "single": {"one": 1.0}}, name="r")
    qrels = Qrels.from_dict({**grades, "single": {"one": 1}})
    sources = {**sources, "one": "human"}
    tagged = {d: "human" if i % 4 == 0 else s for i, (d, s) in enumerate(sources.items())}
    table = TagTable.from_tags((d, DocTags(source=s)) for d, s in tagged.items())
    report = measure_source_bias(run, qrels, table, verified=verified(tagged, sources))
    (cell,) = (c for c in report.systems[0].cells if c.measure == "NDCG@5")
    slots = relevant_slots(run, qrels, "NDCG", 5)
    human = np.array([sources[qrels.doc_ids[d]] == "human" for d in slots.doc])
    assert cell.mean_baseline == pytest.approx(slots.plain[human].sum() / (N + 1))
    assert cell.mean_other == pytest.approx(slots.plain[~human].sum() / (N + 1))
    assert cell.mean_baseline + cell.mean_other == pytest.approx(slots.plain.sum() / (N + 1))
    assert cell.centred.n_queries == N
    decided = lead > 0
    assert (cell.p_value < 0.05) == decided
    needed = queries_for_verdict(cell.centred.interval, margin=report.config.margin)
    assert cell.n_needed == (None if decided else needed)
    assert needed is not None


def test_what_cannot_be_known_is_refused() -> None:
    run, qrels, sources = data()
    few = dict(list(sources.items())[:49])
    with pytest.raises(
        InsufficientDataError, match=r"49 of 49 documents are verified; at least 50"
    ):
        tag_quality(verified(sources, few))
    people = {d: s for d, s in sources.items() if s == "human"}
    with pytest.raises(InsufficientDataError, match="80 are by people and 0 by a model"):
        tag_quality(verified(sources, people))
    kinds = [list(group) for group in (people, sources.keys() - people.keys())]
    for n, enough in ((4, False), (5, True)):
        few_models = {d: sources[d] for d in kinds[0] + sorted(kinds[1])[:n]}
        if enough:
            assert tag_quality(verified(sources, few_models)).n_other == n
        else:
            with pytest.raises(InsufficientDataError, match="80 are by people and 4 by a model"):
                tag_quality(verified(sources, few_models))
    coin = {d: ("human", "llm:x")[i % 4 > 1] for i, d in enumerate(sources)}
    with pytest.raises(InsufficientDataError, match="the tags tell nothing"):
        require_informative(verified(coin, sources))
    slots = relevant_slots(run, qrels, "NDCG", 5)

    def delta(found: Verification) -> object:
        return verified_delta(slots, qrels.doc_ids, found, centred=True, units=np.arange(N))

    store = dataclasses.replace(verified(sources, sources), kind="store")
    with pytest.raises(DataError, match="shares of a store"):
        delta(store)
    part = verified(dict(list(sources.items())[:-4]), few | dict(list(sources.items())[50:60]))
    with pytest.raises(DataError, match="not among those that the verified ones were drawn from"):
        delta(part)
    nothing = Run.from_dict({q: {f"x{q[1:]}": 1.0} for q in qrels.query_ids}, name="r")
    slots = relevant_slots(nothing, qrels, "NDCG", 5)
    with pytest.raises(InsufficientDataError, match="relevant"):
        delta(verified(sources, sources))
    hits = {f"q{q}": {f"{q}-0h": 1.0, f"{q}-0l": 2.0} for q in range(5)}
    few_hits = Run.from_dict({q: hits.get(q, {"none": 1.0}) for q in qrels.query_ids}, name="r")
    slots = relevant_slots(few_hits, qrels, "NDCG", 5)
    with pytest.raises(InsufficientDataError, match="5 queries"):
        delta(verified(sources, sources))
    with pytest.raises(DataError, match="MAP does not add up"):
        relevant_slots(run, qrels, "MAP", 5)


def test_draws_have_their_chances_and_size() -> None:
    run, qrels, sources = data()
    guessed = np.array([int(d.partition("-")[0]) % 2 == 0 for d in qrels.doc_ids])
    chance = draw_chances([relevant_slots(run, qrels, "NDCG", 3)], guessed, 30)
    assert chance.sum() == pytest.approx(30)
    assert (chance[~guessed] == 0).all()
    assert (chance[guessed] > 0).all()
    rng = np.random.default_rng(0)
    times = np.zeros(len(chance))
    for _ in range(4_000):
        rows = draw_rows(chance, rng)
        assert len(set(rows.tolist())) == 30
        times[rows] += 1
    error = np.sqrt(chance * (1 - chance) / 4_000) + 1e-9
    assert (np.abs(times / 4_000 - chance) < 5 * error).all()
    assert len(sources) == len(chance)


def test_a_mark_at_the_very_end_draws_the_last_document() -> None:
    """Chances may sum to a little less than a whole number."""
    last = SimpleNamespace(permutation=lambda rows: rows, random=lambda: 1 - 1e-13)
    assert draw_rows(np.array([1.0, 1.0, 1 - 1e-12]), last).tolist() == [0, 1, 2]


def test_the_p_value_of_an_interval_is_that_of_a_normal_estimate() -> None:
    found = Interval(
        estimate=4.0,
        lower=1.0,
        upper=7.0,
        confidence_level=0.9,
        method=InferCode.LABELS_T(),
        n_labeled=50,
        assumptions=(),
    )
    assert p_of(found) == pytest.approx(2 * stats.norm.sf(4 * stats.norm.ppf(0.95) / 3))


def test_errors_of_tags_vary_as_shares_with_two_of_each_outcome_added() -> None:
    """Agresti and Coull (1998)."""
    sources = data()[2]
    wrong = dict(sources)
    for d in [d for d, source in sources.items() if source == "human"][:9]:
        wrong[d] = "llm:x"
    for d in [d for d, source in sources.items() if source == "llm:x"][:5]:
        wrong[d] = "human"
    quality = tag_quality(verified(wrong, sources))
    found, kept = (75 + 2) / 84, (71 + 2) / 84
    assert (quality.sensitivity, quality.specificity) == (75 / 80, 71 / 80)
    assert quality.variances == pytest.approx((found * (1 - found) / 84, kept * (1 - kept) / 84))


@pytest.mark.parametrize("centred", [True, False])
def test_of_half_of_the_documents_it_is_the_difference_estimator(centred: bool) -> None:
    """Predictions from tags, and what verified documents part from them over their chance."""
    run, qrels, sources = data()
    rows = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    judged = [(qrels.query_ids[q], qrels.doc_ids[d], int(grade)) for q, d, grade in rows]
    qrels = Qrels.from_rows([*judged, *((q, f"x{q[1:]}", 0) for q in qrels.query_ids)])
    rng = np.random.default_rng(5)
    other = {"human": "llm:x", "llm:x": "human"}
    tags = {d: other[s] if rng.random() < 0.15 else s for d, s in sources.items()}
    drawn = set(rng.permutation(list(sources))[: len(sources) // 2].tolist())
    found = verified_delta(
        slots := relevant_slots(run, qrels, "NDCG", 3),
        qrels.doc_ids,
        verified(tags, {d: sources[d] for d in drawn}, chance=0.5),
        centred=centred,
        units=np.arange(N),
        confidence_level=0.9,
    )
    ids = [qrels.doc_ids[d] for d in slots.doc]
    tag, truth = (
        np.array([1.0 if by[d] == "human" else -1.0 for d in ids]) for by in (tags, sources)
    )
    checked = np.array([d in drawn for d in ids])
    base, weight = slots.plain, slots.centred if centred else slots.plain
    root = np.sqrt(np.maximum(np.abs(weight) / 0.5, 1e-12))

    def predicted(rows):
        slope, start = np.polyfit(tag[rows], truth[rows], 1, w=root[rows])
        return start + slope * tag

    left_out = np.zeros(len(ids))
    for i in np.flatnonzero(checked):
        rest = checked.copy()
        rest[i] = False
        left_out[i] = truth[i] - predicted(rest)[i]
    guess = predicted(checked)
    value = 200 * np.sum(weight * (guess + checked * (truth - guess) / 0.5)) / base.sum()
    terms = 200 * weight * (guess + left_out / 0.5) - value * base
    by_query = np.bincount(slots.query, weights=terms) / base.sum()
    missed = 400 * (np.abs(weight) / 0.5)[checked].mean() / base.sum()  # by one wrong tag
    variance = np.sum(by_query**2) * N / (N - 1) + 2 * missed**2
    half = stats.t.ppf(0.95, N - 1) * np.sqrt(variance)
    assert found.estimate == pytest.approx(value)
    assert (found.lower, found.upper) == pytest.approx((value - half, value + half))
