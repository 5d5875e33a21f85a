"""The before/after report: hand-made changes, and every number against its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from parity_offsets import offset
from tagged_texts import dataset_of

from rag_sourcebias.core.data import Dataset, Qrels, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.audit import (
    judged_pairs,
    measure_debias,
    score_debias,
    two_sources,
    unchanged_qualities,
)
from rag_sourcebias.debias.data import (
    DebiasConfig,
    DebiasMethod,
    QualityChange,
)
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.debias.words import first, verdict_text, verdicts
from rag_sourcebias.infer.equivalence import (
    delta_change_interval,
    delta_change_test,
    noninferiority_test,
)
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    adjust_p_values,
    clustered_difference,
    difference_test,
    relative_delta_interval,
)

LLM, SECOND = "llm:x", "llm:y"
CONFIG = DebiasConfig(cutoffs=(1, 3), skew_cutoff=3, quality_cutoff=3, resamples=500)


def make(
    n: int = 60, *, sources=("human", LLM), name="made", paired: bool = True, judged=None
) -> Dataset:
    """Topic i has one document per source and, for every third, two useless ones per source."""
    rows, grades = [], {}
    for i in range(n):
        for source in sources:
            doc = f"{source}-{i}"
            rows.append((doc, source, f"p{i}" if paired else None, f"topic{i} by {source}"))
            if judged is None or source in judged:
                grades.setdefault(f"q{i}", {})[doc] = 1
            for j in range(2 if i % 3 == 0 else 0):
                rows.append((f"{doc}-{j}", source, None, f"topic{i} useless {j} by {source}"))
    return dataset_of(rows, {f"q{i}": f"topic{i}" for i in range(n)}, grades, name=name)


class Spec:
    """Scores by topic; ``bonus`` for the LLM's, noise by the text, and some queries lose all."""

    def __init__(self, name, *, bonus=0.0, noise=1.0, lost=0, seed=0) -> None:
        self.name, self.bonus, self.noise, self.lost, self.seed = name, bonus, noise, lost, seed

    @property
    def settings(self):
        return {"bonus": str(self.bonus), "noise": str(self.noise), "seed": str(self.seed)}

    def build(self, corpus):
        self.corpus = corpus
        return self

    def retrieve(self, queries, depth):
        found = {}
        for i, query in enumerate(queries):
            scores = {
                doc: self._score(text) for doc, text in self.corpus if text.split()[0] == query.text
            }
            best = sorted(scores.items(), key=lambda item: -item[1])[:depth]
            found[query.query_id] = dict(best if i >= self.lost else [])
        return Run.from_dict(found, name="inner")

    def _score(self, text):
        rng = np.random.default_rng([self.seed, *(ord(c) for c in text)])
        return self.noise * rng.normal() + self.bonus * ("llm" in text) - ("useless" in text)


BEFORE = Spec("before", bonus=0.8)
AFTER = Spec("after", bonus=0.1)


@pytest.fixture(scope="module")
def report() -> DebiasReport:
    return measure_debias(BEFORE, [AFTER], [make()], config=CONFIG)


@pytest.mark.parametrize(
    ("first", "second", "worse"),
    [(0.9, 0.0, False), (0.1, 2.0, True), (0.5, -3.0, True), (-0.9, 0.0, False), (-0.5, 3.0, True)],
)
def test_worse_is_further_from_0_in_either_direction(first, second, worse) -> None:
    config = replace(CONFIG, cutoffs=(3,))
    before, after = Spec("before", bonus=first), Spec("after", bonus=second)
    found = measure_debias(before, [after], [make()], config=config)
    (skew,) = found.datasets[0].outcomes[1].skew
    assert skew.worse == worse
    assert skew.change.excludes(0.0)


def test_pairs_are_judged_where_a_version_is_relevant() -> None:
    dataset = make(6)
    grades = {f"q{i}": {f"human-{i}": i % 2, f"{LLM}-{i}": 0} for i in range(6)}
    pairs = judged_pairs(replace(dataset, qrels=Qrels.from_dict(grades)), "human", LLM)
    assert [dataset.corpus.tags.pair_ids[code] for code in pairs] == ["p1", "p3", "p5"]


def test_every_number_is_its_definition(report: DebiasReport) -> None:
    dataset = make()
    before, after = (score_debias(s, dataset, CONFIG, other=LLM) for s in (BEFORE, AFTER))
    (found,) = report.datasets
    first, second = found.outcomes
    np.testing.assert_array_equal(first.scores.values, before.values)
    np.testing.assert_array_equal(second.scores.values, after.values)
    assert (first.name, second.name, first.quality) == ("before", "after", ())
    for cutoff in (1, 3):
        columns = [s.of(row, cutoff) for s in (before, after) for row in ("baseline", "other")]
        skew = second.skew_at(cutoff)
        assert skew.before == relative_delta_interval(*columns[:2])
        assert skew.after == relative_delta_interval(*columns[2:])
        assert skew.change == delta_change_interval(*columns)
        rng = np.random.default_rng((CONFIG.seed, cutoff))
        assert skew.p_value == delta_change_test(*columns, resamples=500, rng=rng)
        assert first.skew_at(cutoff).after == skew.before
        assert (first.skew_at(cutoff).before, first.skew_at(cutoff).p_value) == (None, None)
        for quality in ("human-only", "llm-only", "mixed"):
            old, new = before.of(quality, cutoff), after.of(quality, cutoff)
            change = second.quality_at(quality, cutoff)
            assert (change.before, change.after) == (old.mean(), new.mean())
            assert change.difference == clustered_difference(new - old, np.arange(60))
            assert change.p_value == difference_test(new - old, np.arange(60))
            expected = noninferiority_test(new[None], old[None], quality=quality)
            assert change.test == (expected if cutoff == 3 else None)


def test_p_values_are_adjusted_over_the_whole_report() -> None:
    specs = [AFTER, Spec("third", bonus=0.5, seed=1)]
    found = measure_debias(
        BEFORE, specs, [make(), make(40, name="two", sources=("human", LLM, SECOND))], config=CONFIG
    )
    assert [(d.data.name, d.other) for d in found.datasets] == [
        ("made", LLM),
        ("two", LLM),
        ("two", SECOND),
    ]
    rows = [s for d in found.datasets for o in d.outcomes[1:] for s in o.skew]
    assert found.n_tests == len(rows) == 3 * 2 * 2
    assert [s.p_adjusted for s in rows] == adjust_p_values([s.p_value for s in rows])
    assert found.family.startswith("Holm correction over all changed systems × data sets")
    # every LLM source has a mixed corpus of its own
    alone = measure_debias(
        BEFORE,
        specs,
        [two_sources(make(40, name="two", sources=("human", LLM, SECOND)), "human", SECOND)],
        config=CONFIG,
    )
    for one, other in zip(found.datasets[2].outcomes, alone.datasets[0].outcomes, strict=True):
        np.testing.assert_array_equal(one.scores.values, other.scores.values)
    assert found.datasets[2].data == alone.datasets[0].data
    assert found.datasets[1].data.documents == {"human": 68, LLM: 68}
    only = measure_debias(
        BEFORE,
        specs,
        [make(40, name="two", sources=("human", LLM, SECOND))],
        config=CONFIG,
        other=SECOND,
    )
    assert [d.other for d in only.datasets] == [SECOND]


def test_what_a_calibration_cannot_change_passes_without_a_test() -> None:
    again = Spec("named otherwise", bonus=0.8)
    after = RescoredSpec(again, offset(-0.7), name="calibrated")
    found = measure_debias(BEFORE, [after], [make()], config=CONFIG)
    outcome = found.datasets[0].outcome("calibrated")
    for quality in ("human-only", "llm-only"):
        change = outcome.quality_at(quality, 3)
        assert (change.difference.lower, change.difference.upper) == (0, 0)
        assert change.difference.method.code is InferCode.UNCHANGEABLE
        assert change.test.passed
        assert (change.test.lower, change.test.note) == (0.0, InferCode.UNCHANGEABLE())
    assert outcome.quality_at("mixed", 3).test.note != "unchanged by construction"
    (method,) = found.methods
    assert (method.name, method.kind, method.n_pairs) == ("calibrated", "calibration", 300)
    assert method.settings["gap llm:x"].startswith("-0.7000")
    # Behind another first stage it can change everything; so can any other rescorer.
    searched = make(5).corpus, ("human", LLM)
    assert unchanged_qualities(BEFORE, after, *searched) == ("human-only", "llm-only")
    assert unchanged_qualities(BEFORE, RescoredSpec(AFTER, offset(-0.7)), *searched) == ()
    assert unchanged_qualities(BEFORE, AFTER, *searched) == ()


def test_a_calibration_says_which_source_it_does_not_know_and_which_gap_may_be_none() -> None:
    def warned(gap: tuple[float, float], *, sources=(LLM,), data=None) -> str:
        found = offset(-0.7)
        ends = replace(found.gaps[0], estimate=sum(gap) / 2, lower=gap[0], upper=gap[1])
        after = RescoredSpec(
            BEFORE, replace(found, sources=sources, gaps=(ends,)), name="calibrated"
        )
        report = measure_debias(BEFORE, [after], [data or make()], config=CONFIG)
        return " ".join(text for d in report.datasets for text in d.warnings)

    assert "the gap of llm:x that it takes out, -0.35 [-0.8, +0.1], may be 0" in warned((-0.8, 0.1))
    assert "may be 0" not in warned((-0.8, -0.1))
    two = make(sources=("human", LLM, SECOND))
    told = warned((-0.8, -0.1), data=two)
    assert "calibrated: llm:y was not calibrated, its scores stay as they are" in told
    assert "llm:x was not calibrated" not in told
    assert "calibrated is llm:y" in warned((-0.8, -0.1), sources=(SECOND,))


def test_an_equal_system_has_the_same_skew_but_no_proof_of_its_quality() -> None:
    found = measure_debias(BEFORE, [Spec("copy", bonus=0.8)], [make()], config=CONFIG)
    outcome = found.datasets[0].outcome("copy")
    skew = outcome.skew_at(3)
    assert (skew.change.estimate, skew.p_value, skew.p_adjusted) == (0, 1.0, 1.0)
    assert (skew.change.lower, skew.change.upper) == (0, 0)
    test = outcome.quality_at("human-only", 3).test
    assert not test.passed
    assert test.note == InferCode.FEW_CHANGED(changed=0, n=60)
    (warning,) = (w for w in found.datasets[0].warnings if w.startswith("copy:"))
    assert "60 queries are too few to prove that NDCG@3 lost less than 1 %" in warning
    assert f"human-only {test.n_needed:,}" in warning


def with_holes(judged: int) -> Dataset:
    """All is judged, but for the LLM's documents of all queries from ``judged`` on."""
    dataset = make()
    grades = {
        f"q{i}": {
            doc: int(doc.count("-") < 2)
            for doc, text in zip(dataset.corpus.doc_ids, dataset.corpus.texts, strict=True)
            if text.split()[0] == f"topic{i}" and ("human" in doc or i < judged)
        }
        for i in range(60)
    }
    return replace(dataset, qrels=Qrels.from_dict(grades))


def test_a_verdict_that_rests_on_what_nobody_judged_is_none() -> None:
    fair = Spec("after")
    known, holes = (
        measure_debias(BEFORE, [fair], [with_holes(judged)], config=CONFIG) for judged in (60, 40)
    )
    found = holes.datasets[0].outcomes[1]
    skew = found.skew_at(3)
    assert skew.after.excludes(0.0)  # as it was judged human text is favoured
    counted = [found.scores.counted.of(row, 3) for row in ("baseline", "other")]
    assert not relative_delta_interval(*counted).excludes(0.0)
    assert (skew.holes, skew.n_needed, holes.verdict) == (True, None, "cannot_tell")
    run = fair.build(with_holes(40).corpus).retrieve(with_holes(40).queries, 100)
    seen = [(each.query_id, doc) for each in run.top(3) for doc in each.doc_ids]
    judged = np.mean([int(query[1:]) < 40 for query, doc in seen if "human" not in doc])
    assert found.scores.judged == (1.0, judged)
    (row,) = verdicts(holes)
    first_screen = first(holes)
    assert "judgments have holes, and the answer depends on" in first_screen.verdict
    assert f"and {judged:.0%} after" in first_screen.doubts[0]
    assert "cannot tell: judgments have holes" in verdict_text(row)
    # the control: all was judged
    assert known.datasets[0].outcomes[1].scores.filled is None
    assert "judged" not in " ".join(first(known).doubts)


def test_seen_pairs_are_counted_and_warned_of() -> None:
    dataset = make()
    texts = [f"topic{i} by human" for i in range(7)] + ["topic3 useless 0 by human", "else"]
    found = measure_debias(BEFORE, [AFTER], [dataset], config=CONFIG, fitted_texts=texts)
    assert [o.n_seen for o in found.datasets[0].outcomes] == [0, 7]
    assert any(
        "judged on pairs that a method was fitted on: 7 of 60" in w
        for w in found.datasets[0].warnings
    )
    unpaired = measure_debias(
        BEFORE, [AFTER], [make(paired=False)], config=CONFIG, fitted_texts=texts
    )
    assert unpaired.datasets[0].n_pairs == 0
    assert unpaired.datasets[0].outcomes[1].n_seen == 0


def test_methods_are_kept_and_unchecked_fits_are_warned_of() -> None:
    method = DebiasMethod(name="after", kind="projection", settings={"a": "b"}, n_pairs=5)
    third = Spec("third")
    found = measure_debias(BEFORE, [third, AFTER], [make(30)], methods=[method], config=CONFIG)
    assert found.methods == (
        DebiasMethod(name="third", kind="model", settings=third.settings),
        method,
    )
    (warning,) = found.warnings
    assert "the texts that after was fitted on were not given" in warning


def test_what_cannot_be_had_is_refused_in_words() -> None:
    found = measure_debias(BEFORE, [AFTER], [make(12)], config=CONFIG)
    skew = found.datasets[0].outcome("after").skew_at(3)
    assert (skew.change, skew.before is None, skew.p_value is None) == (None, False, False)
    assert skew.refusal == "change: an interval needs at least 20 queries, not 12"
    change = found.datasets[0].outcome("after").quality_at("mixed", 3)
    assert change.test is None
    assert change.refusal == "test: a test needs at least 20 queries, not 12"
    silent = measure_debias(BEFORE, [Spec("silent", lost=99)], [make(30)], config=CONFIG)
    outcome = silent.datasets[0].outcome("silent")
    assert outcome.skew_at(1).after is None
    assert outcome.skew_at(1).p_adjusted is None
    assert outcome.skew_at(1).refusal.startswith("after: neither source scores on any of 30")
    assert outcome.quality_at("mixed", 3).relative == -100
    assert silent.n_tests == 0


def test_bad_input_is_named() -> None:
    data = make(30)
    for before, after, datasets, message in (
        (BEFORE, [], [data], "give at least one changed system"),
        (BEFORE, [AFTER], [], "give at least one data set"),
        (BEFORE, [Spec("before")], [data], "system names must differ, 'before' occurs 2 times"),
        (BEFORE, [AFTER], [data, make(25)], "data set names must differ, 'made' occurs 2 times"),
        (
            BEFORE,
            [AFTER],
            [make(9, sources=("human",))],
            "only source 'human' is tagged; a comparison",
        ),
        (BEFORE, [AFTER], [make(9, sources=(LLM,))], "no document has the baseline source 'human'"),
        (BEFORE, [AFTER], [make(9, judged=("human",))], "'llm:x' has no relevant document"),
    ):
        with pytest.raises(DataError, match=message):
            measure_debias(before, after, datasets, config=CONFIG)
    with pytest.raises(DataError, match="no document of source 'llm:z'"):
        measure_debias(BEFORE, [AFTER], [data], other="llm:z", config=CONFIG)


def test_settings_are_checked_and_completed() -> None:
    assert DebiasConfig(cutoffs=(1, 3), skew_cutoff=5, quality_cutoff=10).cutoffs == (1, 3, 5, 10)
    with pytest.raises(DataError, match=r"cutoffs .* must be at least 1"):
        DebiasConfig(cutoffs=(0,))
    with pytest.raises(DataError, match="tolerance 0 must be above 0"):
        DebiasConfig(tolerance=0)
    nothing = QualityChange(
        quality="mixed", cutoff=5, before=0.0, after=0.1, difference=None, p_value=None
    )
    assert nothing.relative is None
