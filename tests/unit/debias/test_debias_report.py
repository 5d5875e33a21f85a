"""The before/after report as data: writing, reading and looking up."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.skew import DataSummary
from rag_sourcebias.core.values import Interval, NoninferiorityTest
from rag_sourcebias.debias.data import (
    DEBIAS_ROWS,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
    DebiasScores,
    QualityChange,
    SkewChange,
    TrainingHistory,
    TrainingPoint,
)


def interval(value: float) -> Interval:
    return Interval(
        estimate=value,
        lower=value - 1,
        upper=value + 1,
        confidence_level=0.95,
        method="delta",
        n_labeled=7,
        notes=("a note",),
    )


def scores(name: str) -> DebiasScores:
    return DebiasScores(
        name=name,
        query_ids=("q1", "q2"),
        cutoffs=(5, 10),
        values=np.arange(20, dtype=np.float64).reshape(5, 2, 2) / 20,
        settings={"model": name},
    )


def complete() -> DebiasReport:
    test = NoninferiorityTest(
        quality="mixed",
        relative_margin=0.01,
        level=0.05,
        change=-0.1,
        lower=-0.5,
        p_value=0.01,
        n_queries=2,
        n_seeds=1,
        note="noted",
    )
    quality = QualityChange(
        quality="mixed",
        cutoff=10,
        before=0.5,
        after=0.25,
        difference=interval(-0.25),
        p_value=0.5,
        test=test,
    )
    skew = SkewChange(
        cutoff=5,
        before=interval(-10),
        after=interval(2),
        change=interval(12),
        p_value=0.25,
        p_adjusted=0.5,
    )
    refused = SkewChange(cutoff=5, before=None, after=None, refusal="too few")
    data = DataSummary(
        name="made",
        design="rewrites",
        n_queries=2,
        n_judgments=4,
        documents={"human": 2, "llm:x": 2},
        n_pairs=2,
        mean_words={},
    )
    return DebiasReport(
        config=DebiasConfig(cutoffs=(10,), skew_cutoff=5),
        methods=(DebiasMethod(name="after", kind="projection", settings={"k": "v"}, n_pairs=3),),
        datasets=(
            DebiasDataset(
                data=data,
                other="llm:x",
                n_pairs=2,
                outcomes=(
                    DebiasOutcome(scores=scores("before"), skew=(refused,)),
                    DebiasOutcome(
                        scores=scores("after"), skew=(skew,), quality=(quality,), n_seen=1
                    ),
                ),
                warnings=("few",),
            ),
        ),
        family="Holm",
        n_tests=1,
        environment={"python": "3"},
        created="2026-01-01T00:00:00+00:00",
        training=(
            TrainingHistory(
                name="after",
                debias_weight=0.1,
                seed=0,
                n_pairs=3,
                n_steps=2,
                seconds=1.5,
                settings={},
                points=(TrainingPoint(step=0), TrainingPoint(step=2, rank_loss=1.0)),
            ),
        ),
        warnings=("read this",),
    )


def test_what_is_written_is_read() -> None:
    report = complete()
    again = DebiasReport.from_dict(json.loads(json.dumps(report.to_dict())))
    assert again.to_dict() == report.to_dict()
    assert (again.kind, again.config, again.methods) == ("debias", report.config, report.methods)
    assert again.training == report.training
    first, second = again.datasets[0].outcomes
    assert (first.skew, second.skew) == (
        report.datasets[0].outcomes[0].skew,
        report.datasets[0].outcomes[1].skew,
    )
    np.testing.assert_array_equal(second.scores.values, scores("after").values)
    assert second.quality[0].relative == -50


def test_another_version_is_refused() -> None:
    plain = complete().to_dict() | {"schema_version": 99}
    with pytest.raises(UnsupportedVersionError, match="99"):
        DebiasReport.from_dict(plain)


def test_parts_are_found_by_name_or_said_to_be_missing() -> None:
    (dataset,) = complete().datasets
    outcome = dataset.outcome("after")
    assert outcome.skew_at(5).p_value == 0.25
    assert outcome.quality_at("mixed", 10).test is not None
    for look, message in (
        (lambda: dataset.outcome("x"), r"no system 'x'; there are \['before', 'after'\]"),
        (lambda: outcome.skew_at(3), r"no cutoff 3; there are \[5\]"),
        (lambda: outcome.quality_at("mixed", 5), "no 'mixed' at cutoff 5 for system 'after'"),
        (lambda: outcome.scores.of("other", 3), r"no cutoff 3 here; there are \[5, 10\]"),
        (lambda: outcome.scores.of("best", 5), "no row 'best' here"),
    ):
        with pytest.raises(DataError, match=message):
            look()


def test_scores_are_looked_up_by_row_and_cutoff() -> None:
    found = scores("x")
    for row, name in enumerate(DEBIAS_ROWS):
        for column, cutoff in enumerate((5, 10)):
            np.testing.assert_array_equal(found.of(name, cutoff), found.values[row, column])
    with pytest.raises(DataError, match=r"scores have shape \(5, 2, 2\), expected \(5, 1, 2\)"):
        DebiasScores(name="x", query_ids=("a", "b"), cutoffs=(1,), values=found.values)


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
