"""One card per score for the top of the page: unfairness and AUC before and after."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.report.answers.adjusting import adjustment_sentence
from rag_sourcebias.report.answers.numbers import (
    auc,
    ends,
    in_sds,
    percent,
    value,
)
from rag_sourcebias.report.answers.verdicts import AnswerVerdict, verdicts
from rag_sourcebias.report.answers.wording import (
    length_sentence,
    short,
    style_sentence,
    use_sentence,
)
from rag_sourcebias.report.bars import Bar, CardRow
from rag_sourcebias.report.format import MISSING, interval
from rag_sourcebias.types.answer_report import AnswerBias, AnswerBiasReport
from rag_sourcebias.types.intervals import Interval

__all__ = ["Card", "cards", "lowest_auc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a reader should know of one score."""

    name: str
    style: str
    short: str
    text: str
    rows: tuple[CardRow, ...]


def lowest_auc(report: AnswerBiasReport) -> float:
    """Return where the bars of the AUC begin: at chance, unless something is worse."""
    found = [b for s in report.scorers for b in (s.raw, s.adjusted) if b is not None]
    aucs = [auc for b in found for auc in (b.auc, b.auc_within) if auc is not None]
    return min([0.5, *(auc.lower for auc in aucs)])


def cards(report: AnswerBiasReport) -> tuple[Card, ...]:
    """Return a card for every score."""
    found = [b for s in report.scorers for b in (s.raw, s.adjusted) if b is not None]
    widest = max([1e-9, *(w for b in found if (w := _most(b)) is not None)])
    lowest = lowest_auc(report)
    return tuple(_card(v, 1.03 * widest, lowest) for v in verdicts(report))


def _most(bias: AnswerBias) -> float | None:
    i = bias.unfairness
    return in_sds(bias, bias.spread.unfairness if i is None else i.upper)


def _card(verdict: AnswerVerdict, widest: float, lowest: float) -> Card:
    scorer = verdict.scorer
    rows = [_unfairness("unfairness", verdict, scorer.raw, widest, side="other")]
    if scorer.adjusted is not None:
        row = _unfairness("unfairness, adjusted", verdict, scorer.adjusted, widest, side="baseline")
        cut = MISSING if scorer.spread_cut is None else percent(scorer.spread_cut)
        rows += [row, CardRow(name="spread cut by", estimate=cut, ends="", bar=None)]
    for where in ("AUC", "AUC within systems"):
        for name, bias, side in (
            (where, scorer.raw, "other"),
            (f"{where}, adjusted", scorer.adjusted, "baseline"),
        ):
            found = None if bias is None else bias.auc if where == "AUC" else bias.auc_within
            if found is not None:
                rows.append(
                    CardRow(
                        name=name,
                        estimate=auc(found),
                        ends=interval(found, digits=3),
                        bar=_bar(found, (lowest, 1.0), 1.0, side=side),
                    )
                )
    parts = (
        use_sentence(verdict),
        style_sentence(verdict, brief=True),
        length_sentence(scorer.raw),
        adjustment_sentence(verdict, brief=True),
    )
    return Card(
        name=scorer.name,
        style=verdict.style,
        short=short(verdict),
        text=" ".join(p for p in parts if p),
        rows=tuple(rows),
    )


def _unfairness(
    name: str, verdict: AnswerVerdict, bias: AnswerBias, widest: float, *, side: str
) -> CardRow:
    scorer, sd, found = verdict.scorer, bias.spread.within_sd, bias.unfairness
    return CardRow(
        name=name,
        estimate=value(scorer, bias.spread.unfairness),
        ends="no interval" if found is None else ends(scorer, found),
        bar=None if found is None or not sd else _bar(found, (0.0, widest), sd, side=side),
    )


def _bar(found: Interval, scale: tuple[float, float], unit: float, *, side: str) -> Bar:
    def place(number: float) -> float:
        share = (number / unit - scale[0]) / (scale[1] - scale[0])
        return round(100 * min(1.0, max(0.0, share)), 2)

    left, right = place(found.lower), place(found.upper)
    return Bar(
        left=left,
        width=round(right - left, 2),
        dot=place(found.estimate),
        side=side,
        solid=side == "baseline",
    )
