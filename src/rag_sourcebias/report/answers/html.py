"""The report of correctness scores as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count as counter
from typing import Any

from rag_sourcebias.report.answers import detail_tables, facts, tables
from rag_sourcebias.report.answers.adjusting import auc_sentence
from rag_sourcebias.report.answers.cards import cards, lowest_auc
from rag_sourcebias.report.answers.correctness_plot import correctness_plot
from rag_sourcebias.report.answers.headline import headline
from rag_sourcebias.report.answers.length_plot import length_plot, length_points, length_range
from rag_sourcebias.report.answers.meaning import (
    SECTIONS,
    correctness_section,
    differences_note,
    how_to_read,
    uses_scores,
)
from rag_sourcebias.report.answers.means_plot import means_limit, means_plot
from rag_sourcebias.report.answers.order_plot import order_plot
from rag_sourcebias.report.answers.verdicts import verdicts
from rag_sourcebias.report.answers.verdicts_plot import verdicts_plot
from rag_sourcebias.report.answers.view import assumptions, caveats, order_notes
from rag_sourcebias.report.answers.wording import (
    order_sentence,
    threshold_sentence,
)
from rag_sourcebias.report.format import level, number
from rag_sourcebias.report.page import Figures, render_page
from rag_sourcebias.report.text_plots import text_plot
from rag_sourcebias.report.text_tables import text_key, text_table
from rag_sourcebias.report.visible import visible_report
from rag_sourcebias.types.answer_report import AnswerBiasReport, AnswerScorer

__all__ = ["to_html"]

_SHOWN = 6  # pictures of one kind; more are folded away


def to_html(report: AnswerBiasReport) -> str:
    """Return the report as a self-contained HTML page.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    return render_page("answer_report.html.jinja", _context(visible_report(report)))


def _context(report: AnswerBiasReport) -> dict[str, Any]:
    return {
        "report": report,
        "title": f"Answer style: {report.name}",
        "headline": headline(report),
        "n_questions": len(set(report.question_ids)),
        "level": level(report.config.confidence_level),
        "cards": cards(report),
        "lowest": number(lowest_auc(report), digits=2),
        "adjusted": any(s.adjusted is not None for s in report.scorers),
        "scorers": tables.scorers_table(report) if len(report.scorers) > 1 else None,
        "sections": SECTIONS,
        "shown": _SHOWN,
        "plots": _shared(report, _plots(report)),
        "means": tables.means_table(report),
        "thresholds": tables.threshold_table(report),
        "threshold_notes": _notes(report, threshold_sentence),
        "orders": tables.order_table(report),
        "order_notes": _notes(report, order_sentence, order_notes),
        "aucs": tables.aucs_table(report),
        "differences": detail_tables.differences_table(report),
        "text": _text(report),
        "correctness_head": correctness_section(report),
        "auc_notes": _notes(report, auc_sentence),
        "differences_note": differences_note(report),
        "correctness": detail_tables.correctness_table(report),
        "systems": detail_tables.systems_table(report),
        "reading": how_to_read(report),
        "assumptions": assumptions(report),
        "caveats": caveats(report),
        "data": facts.data_table(report),
        "config": facts.config_table(report),
        "settings": facts.settings_table(report),
        "environment": facts.environment_table(report),
    }


def _notes(
    report: AnswerBiasReport,
    say: Callable[[AnswerScorer], str],
    more: Callable[[AnswerScorer], Sequence[str]] = lambda _: (),
) -> list[tuple[str, str]]:
    """Return (score, sentences) of each score; of a single one each sentence on its own."""
    found = [(s.name, [t for t in (say(s), *more(s)) if t]) for s in report.scorers]
    if len(found) == 1:
        return [("", text) for text in found[0][1]]
    return [(name, " ".join(texts)) for name, texts in found if texts]


def _plots(report: AnswerBiasReport) -> dict[str, Figures]:
    """Return pictures by section."""
    uid: Iterator[str] = (f"plot{n}" for n in counter(1))
    limit, ends = means_limit(report), length_range(report)
    found: dict[str, Figures] = {
        kind: [] for kind in ("means", "length", "thresholds", "order", "correctness")
    }
    for verdict in verdicts(report):
        s = verdict.scorer
        if s.raw.spread.within_sd is not None:
            found["means"].append((s.name, partial(means_plot, s, limit=limit, uid=next(uid))))
        if len(length_points(report, s)) > 1:
            draw = partial(length_plot, report, s, ends=ends, uid=next(uid))
            found["length"].append((s.name, draw))
        found["thresholds"].append((s.name, partial(verdicts_plot, s, uid=next(uid))))
        if s.raw.inversions is not None and s.raw.inversions.n_pairs:
            found["order"].append((s.name, partial(order_plot, s, uid=next(uid))))
        useful = uses_scores(report) or s is report.scorers[0]
        if useful and any(c.labels_alone is not None for c in s.correctness):
            found["correctness"].append((s.name, partial(correctness_plot, s, uid=next(uid))))
    return found


def _shared(report: AnswerBiasReport, plots: dict[str, Figures]) -> dict[str, Figures]:
    """Put means and length of a single score side by side: one picture alone leaves a hole."""
    if len(report.scorers) == 1 and plots["means"] and plots["length"]:
        plots["means"] = [
            ("Mean score", plots["means"][0][1]),
            ("Mean score against length", plots["length"][0][1]),
        ]
        plots["length"] = []
    return plots


def _text(report: AnswerBiasReport) -> dict[str, Any] | None:
    found = report.text_statistics
    if not found:
        return None
    title = "The texts of the correct answers"
    draw = partial(text_plot, found, original=None, uid="texts", title=title)
    return {
        "figures": [("Correct answers by system", draw)],
        "key": text_key(found),
        "table": text_table(found),
    }
