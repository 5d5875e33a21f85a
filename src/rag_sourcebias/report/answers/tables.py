"""Means, verdicts, order and AUC as tables of text, shared by Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.answers.numbers import (
    auc,
    auc_ends,
    in_sds,
    ordinal,
    percent,
    value,
    with_ends,
)
from rag_sourcebias.report.answers.order_plot import ranks
from rag_sourcebias.report.answers.verdicts_plot import error_shares
from rag_sourcebias.report.answers.wording import effect_of
from rag_sourcebias.report.format import MISSING, number, score
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.answer_report import AnswerBias, AnswerBiasReport, AnswerScorer

__all__ = [
    "aucs_table",
    "by_scorer",
    "means_table",
    "order_table",
    "scorers_table",
    "threshold_table",
]


def by_scorer(
    report: AnswerBiasReport,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    n_heads: int,
) -> Table:
    """Return a table whose first column is the score, without that column where there is one.

    Columns of nothing but missing values, such as those of an adjustment that was not made, go.
    """
    first = 1 if len(report.scorers) == 1 else 0
    kept = [
        i
        for i in range(first, len(columns))
        if i < n_heads or not rows or any(row[i] != MISSING for row in rows)
    ]
    return Table(
        columns=tuple(columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
        n_heads=n_heads - first,
    )


def scorers_table(report: AnswerBiasReport) -> Table:
    """Return one row per score."""
    rows = []
    for s in report.scorers:
        after = s.adjusted
        size = in_sds(s.raw, s.raw.spread.unfairness)
        rows.append(
            (
                s.name,
                with_ends(s, s.raw.spread.unfairness, s.raw.unfairness),
                MISSING if size is None else number(size, digits=2),
                MISSING if s.raw.length_correlation is None else _rho(s.raw.length_correlation),
                auc(s.raw.auc),
                MISSING
                if after is None
                else with_ends(s, after.spread.unfairness, after.unfairness),
                percent(s.spread_cut),
                auc(None if after is None else after.auc),
            )
        )
    columns = (
        "score",
        "unfairness",
        "in sd",
        "ρ with length",
        "AUC",
        "adjusted",
        "cut by",
        "AUC",
    )
    kept = [i for i in range(len(columns)) if not i or any(row[i] != MISSING for row in rows)]
    return Table(
        columns=tuple(columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
    )


def _rho(value_: float) -> str:
    return number(value_, digits=2, signed=True)


def means_table(report: AnswerBiasReport) -> Table:
    """Return the mean score of each system's correct answers, raw and adjusted."""
    words = {s.name: s.mean_words_correct for s in report.systems}
    rows = []
    for s in report.scorers:
        for system in s.raw.spread.systems:
            length = words.get(system)
            rows.append(
                (
                    s.name,
                    system,
                    MISSING if length is None else number(length),
                    _mean(s, s.raw, system),
                    effect_of(s.raw, system),
                    MISSING if s.adjusted is None else _mean(s, s.adjusted, system),
                    MISSING if s.adjusted is None else effect_of(s.adjusted, system),
                )
            )
    columns = ("score", "system", "words", "mean score", "sd", "adjusted", "adjusted, sd")
    return by_scorer(report, columns, rows, 2)


def _mean(scorer: AnswerScorer, bias: AnswerBias, system: str) -> str:
    place = bias.spread.systems.index(system)
    return with_ends(scorer, bias.spread.means[place], bias.means[place])


def threshold_table(report: AnswerBiasReport) -> Table:
    """Return verdicts that contradict people, by system."""
    rows = []
    for s in report.scorers:
        for system in s.raw.verdicts.systems:
            fail, ok = error_shares(s.raw, system)
            fail2, ok2 = error_shares(s.adjusted, system)
            rows.append((s.name, system, *map(percent, (fail, fail2, ok, ok2))))
    columns = (
        "score",
        "system",
        "correct, fail",
        "adjusted",
        "wrong, pass",
        "adjusted",
    )
    return by_scorer(report, columns, rows, 2)


def order_table(report: AnswerBiasReport) -> Table:
    """Return the place of each system by people and by score."""
    rows = []
    for s in report.scorers:
        raw = s.raw.inversions
        if raw is None:
            continue
        after = None if s.adjusted is None else s.adjusted.inversions
        people, placed = ranks(raw.correctness), ranks(raw.mean_scores)
        moved: tuple[float, ...] = ()
        if after is not None:
            moved = tuple(after.mean_scores[after.systems.index(x)] for x in raw.systems)
        for i, system in enumerate(raw.systems):
            rows.append(
                (
                    s.name,
                    system,
                    f"{score(raw.correctness[i])}%, {ordinal(people[i])}",
                    f"{value(s, raw.mean_scores[i])}, {ordinal(placed[i])}",
                    f"{value(s, moved[i])}, {ordinal(ranks(moved)[i])}" if moved else MISSING,
                )
            )
    columns = ("score", "system", "correct, by people", "mean score", "adjusted")
    return by_scorer(report, columns, rows, 2)


def aucs_table(report: AnswerBiasReport) -> Table:
    """Return the AUC of correct against wrong answers, of each system and of all."""
    rows = []
    for s in report.scorers:
        if s.raw.auc is None:
            continue
        after = s.adjusted
        rows.append(
            (
                s.name,
                "all systems",
                auc_ends(s.raw.auc),
                MISSING if after is None else auc_ends(after.auc),
            )
        )
        rows.append(
            (
                s.name,
                "within systems",
                auc_ends(s.raw.auc_within),
                MISSING if after is None else auc_ends(after.auc_within),
            )
        )
        for system, found in s.raw.system_aucs.items():
            now = None if after is None else after.system_aucs.get(system)
            rows.append((s.name, system, auc(found), auc(now)))
    return by_scorer(report, ("score", "system", "AUC", "adjusted"), rows, 2)
