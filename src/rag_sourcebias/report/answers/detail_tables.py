"""Pairs of systems, human correctness, and the systems themselves as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.answers.meaning import uses_scores
from rag_sourcebias.report.answers.numbers import correct_ends, digits_of, effect, percent, value
from rag_sourcebias.report.answers.tables import by_scorer
from rag_sourcebias.report.format import MISSING, count, ends_about_zero, number, score
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.answer_report import (
    AnswerBias,
    AnswerBiasReport,
    AnswerScorer,
    SystemCorrectness,
    SystemDifference,
)

__all__ = ["correctness_table", "differences_table", "systems_table"]


def differences_table(report: AnswerBiasReport) -> Table:
    """Return every difference between two systems on equally correct answers."""
    rows = []
    for s in report.scorers:
        for d in s.raw.differences:
            after = _same(s.adjusted, d)
            rows.append(
                (
                    s.name,
                    d.first,
                    d.second,
                    _difference(s, d),
                    effect(d.effect),
                    MISSING if after is None else _difference(s, after),
                    MISSING if after is None else effect(after.effect),
                )
            )
    columns = ("score", "first", "second", "first − second", "sd", "adjusted", "adjusted, sd")
    return by_scorer(report, columns, rows, 3)


def _same(bias: AnswerBias | None, wanted: SystemDifference) -> SystemDifference | None:
    if bias is None:
        return None
    key = (wanted.first, wanted.second)
    return next((d for d in bias.differences if (d.first, d.second) == key), None)


def _difference(scorer: AnswerScorer, d: SystemDifference) -> str:
    estimate = value(scorer, d.difference.estimate, signed=True)
    return f"{estimate} {ends_about_zero(d.difference, digits=digits_of(scorer))}"


def correctness_table(report: AnswerBiasReport) -> Table:
    """Return human correctness from labels, with and without each score.

    Where no score helps, every score has the same labels: they are said once.
    """
    rows = [
        (
            s.name,
            c.system,
            count(c.n_labeled),
            count(c.n_unlabeled) if c.n_unlabeled else MISSING,
            correct_ends(c.labels_alone),
            correct_ends(c.with_scores),
            _narrower(c),
            MISSING if c.truth is None else score(c.truth),
        )
        for s in (report.scorers if uses_scores(report) else report.scorers[:1])
        for c in s.correctness
    ]
    columns = (
        "score",
        "system",
        "labels",
        "scored only",
        "from labels, %",
        "with the score, %",
        "narrower by",
        "all labels, %",
    )
    found = by_scorer(report, columns, rows, 2)
    if found.n_heads > 1 and not uses_scores(report):
        return Table(columns=found.columns[1:], rows=tuple(row[1:] for row in found.rows))
    return found


def _narrower(c: SystemCorrectness) -> str:
    alone, helped = c.labels_alone, c.with_scores
    if alone is None or helped is None or not alone.half_width:
        return MISSING
    return percent(1 - helped.half_width / alone.half_width)


def systems_table(report: AnswerBiasReport) -> Table:
    """Return what each system answered."""
    rows = tuple(
        (
            s.name,
            count(s.n_answers),
            count(s.n_correct),
            count(s.n_wrong),
            count(s.n_answers - s.n_correct - s.n_wrong),
            count(s.n_empty),
            number(s.mean_words),
            MISSING if s.mean_words_correct is None else number(s.mean_words_correct),
        )
        for s in report.systems
    )
    columns = (
        "system",
        "answers",
        "correct",
        "wrong",
        "not judged",
        "empty",
        "mean words",
        "of correct ones",
    )
    return Table(columns=columns, rows=rows)
