"""What all outputs show of an answer-style report besides numbers, gathered once."""

from __future__ import annotations

from collections.abc import Iterator

from rag_sourcebias.report.text_tables import text_notes
from rag_sourcebias.types.answer_report import AnswerBias, AnswerBiasReport, AnswerScorer
from rag_sourcebias.types.intervals import Interval

__all__ = ["assumptions", "caveats", "order_notes"]


def order_notes(scorer: AnswerScorer) -> tuple[str, ...]:
    """Return what was noted about chance in the order of systems."""
    found = (note for note in scorer.notes if "inversion" in note)
    return tuple(f"{note[:1].upper()}{note[1:]}." for note in found)


def _of_bias(bias: AnswerBias) -> Iterator[tuple[str, Interval | None]]:
    yield "unfairness", bias.unfairness
    for mean in bias.means:
        yield "mean scores", mean
    for d in bias.differences:
        yield "differences", d.difference
    yield "AUC", bias.auc
    yield "AUC within systems", bias.auc_within


def _intervals(scorer: AnswerScorer) -> Iterator[tuple[str, Interval | None]]:
    yield from _of_bias(scorer.raw)
    if scorer.adjusted is not None:
        yield from _of_bias(scorer.adjusted)
    for c in scorer.correctness:
        yield "human correctness from labels alone", c.labels_alone
        yield "human correctness with the score", c.with_scores


def assumptions(report: AnswerBiasReport) -> dict[str, tuple[str, ...]]:
    """Return what the intervals assume, and for which numbers."""
    found: dict[str, dict[str, None]] = {}
    for scorer in report.scorers:
        for where, interval in _intervals(scorer):
            for text in () if interval is None else interval.assumptions:
                found.setdefault(text, {})[where] = None
    for statistic in report.text_statistics:
        for text in () if statistic.mean is None else statistic.mean.assumptions:
            found.setdefault(text, {})["text statistics"] = None
    return {text: tuple(where) for text, where in found.items()}


def caveats(report: AnswerBiasReport) -> tuple[tuple[str, str], ...]:
    """Return (score or system, what to know), without warnings and what other sections say."""
    found = [(s.name, note) for s in report.scorers for note in s.notes if "inversion" not in note]
    for system in report.systems:
        if system.n_empty:
            answers = "answer is" if system.n_empty == 1 else "answers are"
            text = f"{system.n_empty:,} {answers} empty and take part in nothing"
            found.append((system.name, text))
    if texts := text_notes(report.text_statistics):
        found += [("texts", note) for note in texts]
    for scorer in report.scorers:
        notes = [n for _, i in _intervals(scorer) if i is not None for n in i.notes]
        found += [(scorer.name, note) for note in notes]
    return tuple(dict.fromkeys(f for f in found if f[1] not in report.warnings))
