"""The report on correctness scores: what it says, in the order in which it says it.

Systems are compared on questions that all of them answered correctly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from rag_sourcebias.inference.answer_finding import AUC_LOSS, SMALL, answer_finding
from rag_sourcebias.report import answers_plots as plots
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import sections
from rag_sourcebias.report.answers_plots import VERDICTS, Described, Spot
from rag_sourcebias.report.bars import Bar
from rag_sourcebias.report.facts import environment_table
from rag_sourcebias.report.format import (
    MISSING,
    count,
    ends_about_zero,
    interval,
    join,
    level,
    number,
    score,
    shorten,
)
from rag_sourcebias.report.tables import Table
from rag_sourcebias.report.text_plots import text_plot
from rag_sourcebias.report.text_tables import text_key, text_notes, text_table
from rag_sourcebias.types.answer_parts import (
    AdjustmentCode,
    AnswerFinding,
    AnswerStyle,
    AnswerUse,
    RankInversions,
)
from rag_sourcebias.types.answer_report import (
    AnswerBias,
    AnswerBiasReport,
    AnswerScorer,
    SystemCorrectness,
    SystemDifference,
)
from rag_sourcebias.types.intervals import Interval

__all__ = ["document", "headline"]

_WEAK = 0.1  # correlations below are called none
_SHOWN = 6  # pictures of one kind; more are folded away
_PAIRS, _SCORES = 3, 2  # pairs of systems and scores that are named
_LONG, _NAME, _SHORT, _COLUMN = 48, 40, 24, 10  # characters of a name
_SIDES = ("other", "baseline")  # colours of the score as it is, and adjusted
Drawn: TypeAlias = Sequence[tuple[str, Callable[[str], str]]]  # captions with pictures


def document(report: AnswerBiasReport) -> b.Document:
    """Return everything there is to say about correctness scores."""
    parts = (
        _findings,
        _means,
        _length,
        _thresholds,
        _order,
        _auc,
        _correctness,
        _texts,
        _reading,
        _caveats,
        _data,
    )
    counts = (
        (len(report.question_ids), "answer"),
        (len(report.systems), "system"),
        (len(set(report.question_ids)), "question"),
    )
    return b.Document(
        kind="Answer style report",
        title=f"Answer style: {report.name}",
        name=report.name,
        headline=headline(report),
        facts=tuple((_counted(n, what),) for n, what in counts),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


# What was found, and the systems that gain and lose most


def _both(scorer: AnswerScorer) -> tuple[AnswerBias, ...]:
    """Return the score as it is and adjusted, if it is."""
    return (scorer.raw,) if scorer.adjusted is None else (scorer.raw, scorer.adjusted)


def _finding(scorer: AnswerScorer) -> AnswerFinding:
    # A report of version 0.1 has intervals but no finding.
    return scorer.finding or answer_finding(scorer)


@dataclass(frozen=True, slots=True)
class _Extremes:
    """The systems whose correct answers score highest and lowest, and how far apart.

    ``effect`` is in standard deviations within systems, ``ends`` in the unit of the score.
    """

    best: str
    worst: str
    effect: float | None
    ends: tuple[float, float] | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return self.ends is not None and not self.ends[0] <= 0 <= self.ends[1]


def _extremes(bias: AnswerBias) -> _Extremes:
    spread = bias.spread
    order = sorted(range(len(spread.systems)), key=lambda i: spread.means[i])
    best, worst = spread.systems[order[-1]], spread.systems[order[0]]
    for d in bias.differences:
        low, high = d.difference.lower, d.difference.upper
        if (d.first, d.second) == (best, worst):
            return _Extremes(best, worst, d.effect, (low, high))
        if (d.first, d.second) == (worst, best):
            return _Extremes(best, worst, None if d.effect is None else -d.effect, (-high, -low))
    gap = spread.means[order[-1]] - spread.means[order[0]]
    return _Extremes(best, worst, _in_sds(bias, gap))


# The headline: no more certain than its intervals


_SAYS = (
    (AnswerStyle.REWARDS, "rewards a system's style", "reward a system's style"),
    (AnswerStyle.SLIGHT, "rewards style only slightly", "reward style only slightly"),
    (
        AnswerStyle.ALIKE,
        "shows no more than a small effect of style",
        "show no more than a small effect of style",
    ),
    (AnswerStyle.CANNOT_TELL, *("may reward style or not: these are too few to tell",) * 2),
    (AnswerStyle.TOO_FEW, *("may reward style or not: these are too few for an interval",) * 2),
)


def headline(report: AnswerBiasReport) -> str:
    """Return what a reader in a hurry should take away."""
    found = report.scorers
    if not found:
        return "No score was examined."
    told = (_useless(found), _style_told(report), _gains(found), _adjustments(found))
    return " ".join(filter(None, told))


def _useless(found: Sequence[AnswerScorer]) -> str:
    """Name the scores that do not tell right from wrong: what else they reward matters little."""
    group = [s for s in found if _finding(s).use is AnswerUse.USELESS]
    if not group:
        return ""
    one = len(group) == 1
    verb = "is useless: it does" if one else "are useless: they do"
    shown = f" (AUC within systems {_auc_ends(group[0].raw.auc_within)})" if one else ""
    return f"{_who(group, of=len(found))} {verb} not tell right from wrong{shown}."


def _style_told(report: AnswerBiasReport) -> str:
    found, k = report.scorers, len(report.systems)
    sizes = sorted({s.raw.spread.n_questions for s in found})
    span = f"{count(sizes[0])} to " * (len(sizes) > 1) + _counted(sizes[-1], "question")
    who = {1: "the system", 2: "both systems"}.get(k, f"all {k} systems")
    clauses = [
        f"{_who(group, of=len(found))} {one if len(group) == 1 else many}"
        for kind, one, many in _SAYS
        if (group := [s for s in found if _finding(s).style is kind])
    ]
    return f"On {span} that {who} answered correctly, {'; '.join(clauses)}."


def _who(group: Sequence[AnswerScorer], *, of: int) -> str:
    if len(group) > _SCORES:
        return f"all {of} scores" if len(group) == of else f"{len(group)} of {of} scores"
    return join([shorten(s.name, _LONG) for s in group])


def _gains(found: Sequence[AnswerScorer]) -> str:
    """Say whose equally correct answers score highest and lowest, where that is clear."""
    groups: dict[tuple[str, str], list[AnswerScorer]] = {}
    for s in found:
        ends = _extremes(s.raw)
        if ends.clear and _finding(s).style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT):
            groups.setdefault((ends.best, ends.worst), []).append(s)
    if not groups:
        return ""
    order = sorted(groups.values(), key=len, reverse=True)
    text = f"Equally correct, {_gap(order[0], under=len(found) > 1)}"
    if len(order) == 2:
        text += f"; {_gap(order[1], under=True)}"
    elif len(order) > 2:
        text += f"; under the other {sum(map(len, order[1:]))}, other systems gain most"
    return f"{text}."


def _gap(group: Sequence[AnswerScorer], *, under: bool) -> str:
    most = max(group, key=lambda s: _extremes(s.raw).effect or 0.0)
    ends = _extremes(most.raw)
    text = f"answers of {shorten(ends.best, _LONG)} score {_gap_clause(most)} above those of "
    text += shorten(ends.worst, _LONG)
    if not under:
        return text
    text += f" under {shorten(most.name, _LONG)}"
    if len(group) == 1:
        return text
    return f"{text}, and less far under {'one other' if len(group) == 2 else len(group) - 1}"


def _gap_clause(scorer: AnswerScorer) -> str:
    """Return how far the extremes lie apart: ``3.50 [3.42, 3.57] standard deviations``."""
    found, spread = _extremes(scorer.raw), scorer.raw.spread
    if spread.within_sd is None or found.effect is None:
        return _value(scorer, max(spread.means) - min(spread.means))
    text = number(found.effect, digits=2)
    if found.ends is not None:
        low, high = (number(end / spread.within_sd, digits=2) for end in found.ends)
        text += f" [{low}, {high}]"
    return f"{text} standard deviations"


def _adjustments(found: Sequence[AnswerScorer]) -> str:
    tried = [
        s
        for s in found
        if _finding(s).adjustment is not AdjustmentCode.ABSENT
        and _finding(s).style is not AnswerStyle.TOO_FEW
    ]
    if len(tried) < 2:
        return _adjustment_of_one(tried[0]) if tried else ""

    def scores(group: Sequence[AnswerScorer]) -> str:
        every = "both scores" if len(tried) == 2 else f"all {len(tried)} scores"
        return every if len(group) == len(tried) else _who(group, of=len(tried))

    parts = []
    if good := [s for s in tried if _finding(s).adjustment is AdjustmentCode.CUTS]:
        cuts = sorted(s.spread_cut or 0.0 for s in good)
        span = " to ".join(dict.fromkeys((_percent(cuts[0]), _percent(cuts[-1]))))
        tested = all(s.auc_change_within is not None for s in good)
        cost = ", at no measurable loss of AUC within systems" if tested else ""
        parts.append(f"cuts the spread by {span} under {scores(good)}{cost}")
    for kind, text in (
        (AdjustmentCode.COSTS, "lowers the AUC within systems (or may) under"),
        (AdjustmentCode.FAILS, "does not help under"),
        (AdjustmentCode.IDLE, "finds no clear effect to remove under"),
    ):
        if group := [s for s in tried if _finding(s).adjustment is kind]:
            parts.append(f"{text} {scores(group)}")
    text = f"The adjustment {'; it '.join(parts)}."
    if group := [s for s in found if _overshoot(s)]:
        who = _who(group, of=len(found))
        text += f" Under {who} it goes too far: what is left favours others."
    return text


def _adjustment_of_one(scorer: AnswerScorer) -> str:
    if _finding(scorer).adjustment is AdjustmentCode.IDLE:
        return "There was no clear effect for the adjustment to remove."
    if scorer.spread_cut is None:
        return f"After the adjustment {_auc_clause(scorer)}."
    link = "but" if _finding(scorer).adjustment is AdjustmentCode.COSTS else "and"
    text = f"The adjustment {_cut_clause(scorer.spread_cut)}, {link} {_auc_clause(scorer)}."
    if other := _overshoot(scorer):
        text += f" It goes too far: what is left favours {shorten(other, _LONG)}."
    return text


def _overshoot(scorer: AnswerScorer) -> str:
    """Return the system that an adjustment favours which helps but goes too far, or nothing."""
    after, finding = scorer.adjusted, _finding(scorer)
    if (
        after is None
        or finding.adjustment is not AdjustmentCode.CUTS
        or finding.left is not AnswerStyle.REWARDS
    ):
        return ""
    now = _extremes(after)
    return now.best if now.clear and now.best != _extremes(scorer.raw).best else ""


# Sentences about one score


def _sentence(scorer: AnswerScorer, *, brief: bool = False) -> str:
    """Return everything about one score, without its name; ``brief`` for beside its numbers."""
    told = [
        _use_sentence(scorer),
        _style_sentence(scorer, brief=brief),
        _length_sentence(scorer.raw),
        _adjustment_sentence(scorer, brief=brief),
    ]
    if not brief:
        told += [_threshold_sentence(scorer), _order_sentence(scorer)]
    return " ".join(filter(None, told))


def _use_sentence(scorer: AnswerScorer) -> str:
    said = {
        AnswerUse.USELESS: "The score is useless: it does not tell right from wrong",
        AnswerUse.CANNOT_TELL: "Cannot tell whether the score tells right from wrong",
    }.get(_finding(scorer).use)
    ends = _auc_ends(scorer.raw.auc_within)
    return "" if said is None else f"{said} (AUC within systems {ends})."


def _style_sentence(scorer: AnswerScorer, *, brief: bool) -> str:
    spread, found = scorer.raw.spread, _extremes(scorer.raw)
    where = _counted(spread.n_questions, "question")
    if not brief:
        where = f"{_unfairness(scorer)}; {where}"
    needed, style = _finding(scorer).n_needed, _finding(scorer).style
    if style is AnswerStyle.TOO_FEW:
        if len(spread.systems) < 2:
            return "With one system there is no other style to compare with."
        plan = f"; {_counted(needed, 'question')} are needed" if needed else ""
        return (
            f"All systems answered only {_counted(spread.n_questions, 'question')} correctly: too "
            "few for an interval, so that the unfairness of "
            f"{_value(scorer, spread.unfairness)} says little{plan}."
        )
    if style is AnswerStyle.ALIKE:
        return f"Equally correct answers of all systems score much alike ({where})."
    if style is AnswerStyle.CANNOT_TELL:
        plan = f" About {_counted(needed, 'question')} are needed to tell." if needed else ""
        return (
            "Cannot tell whether equally correct answers score alike: the interval of the "
            f"unfairness holds 0 and more than small differences ({where}).{plan}"
        )
    if not found.clear:
        return (
            f"Equally correct answers do not score alike ({where}), but which system gains most "
            "cannot be told."
        )
    slight = " only" if style is AnswerStyle.SLIGHT else ""
    return (
        f"Equally correct answers of {shorten(found.best, _NAME)} score{slight} "
        f"{_gap_clause(scorer)} above those of {shorten(found.worst, _NAME)} ({where})."
    )


def _unfairness(scorer: AnswerScorer) -> str:
    raw = scorer.raw
    size = _in_sds(raw, raw.spread.unfairness)
    text = f"unfairness {_with_ends(scorer, raw.spread.unfairness, raw.unfairness)}"
    if size is None:
        return text
    return f"{text}, {number(size, digits=2)} standard deviations within systems"


def _length_sentence(bias: AnswerBias) -> str:
    rho = bias.length_correlation
    if rho is None:
        return ""
    shown = f"Spearman {number(rho, digits=2)} among correct answers to the same question"
    if abs(rho) < _WEAK:
        return f"Length hardly matters ({shown})."
    return f"The longer an answer, the {'lower' if rho < 0 else 'higher'} its score ({shown})."


def _adjustment_sentence(scorer: AnswerScorer, *, brief: bool) -> str:
    """Return what the adjusted score gains and costs; ``brief`` leaves its unfairness out."""
    after = scorer.adjusted
    if after is None or _finding(scorer).style is AnswerStyle.TOO_FEW:
        return ""
    now = _with_ends(scorer, after.spread.unfairness, after.unfairness)
    if scorer.spread_cut is None:
        spread = f"leaves the spread of the systems at {now}"
    else:
        spread = _cut_clause(scorer.spread_cut) + ("" if brief else f", to {now}")
    tail = {
        AdjustmentCode.COSTS: _cost(scorer.auc_change_within),
        AdjustmentCode.FAILS: " It does not help here.",
        AdjustmentCode.IDLE: " No clear effect was there to remove.",
    }.get(_finding(scorer).adjustment, _left(scorer, after))
    return f"The adjustment {spread}; {_auc_clause(scorer)}.{tail}"


def _cut_clause(cut: float) -> str:
    return f"{'cuts' if cut >= 0 else 'widens'} the spread of the systems by {_percent(abs(cut))}"


def _cost(change: Interval | None) -> str:
    """Say what a falling AUC means."""
    if change is None or not change.excludes(0):
        return " The fall may be chance, but nothing shows that the adjusted score is as good."
    size = "a little less well" if change.estimate > -AUC_LOSS else "less well"
    return f" It tells right from wrong {size}: weigh that against the spread."


def _left(scorer: AnswerScorer, after: AnswerBias) -> str:
    """Say what an adjustment that helps leaves behind, and in whose favour."""
    kind, found = _finding(scorer).left, _extremes(after)
    if kind is AnswerStyle.ALIKE:
        return " What is left cannot be told from none."
    if kind not in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT):
        return ""
    size = "still measurable" if kind is AnswerStyle.REWARDS else "measurable, but small"
    whom = ""
    if found.clear and found.effect is not None:
        whom = (
            f": {shorten(found.best, _NAME)} over {shorten(found.worst, _NAME)} by "
            f"{number(found.effect, digits=2)} standard deviations"
        )
    return f" What is left is {size}{whom}."


def _auc_clause(scorer: AnswerScorer) -> str:
    """Return what the adjustment does to telling right from wrong within systems, and over all."""
    adjusted, change = scorer.adjusted, scorer.auc_change_within
    if adjusted is None or scorer.raw.auc_within is None or adjusted.auc_within is None:
        return "whether it still tells right from wrong within systems cannot be tested here"
    if change is None:
        text = f"the AUC within systems stays at {_auc_ends(adjusted.auc_within)}"
    else:
        way = "goes"
        if change.excludes(0):
            way = "rises" if change.estimate > 0 else "falls"
        found = (change.estimate, change.lower, change.upper)
        moved, low, high = (number(v, digits=3, signed=True) for v in found)
        text = (
            f"the AUC within systems {way} from {_auc_of(scorer.raw.auc_within)} to "
            f"{_auc_of(adjusted.auc_within)} (change {moved} [{low}, {high}], paired by question)"
        )
    return (
        f"{text}, and over all systems, put side by side, from {_auc_of(scorer.raw.auc)} to "
        f"{_auc_of(adjusted.auc)}"
    )


def _auc_sentence(scorer: AnswerScorer) -> str:
    """Return what happens to the AUC, within systems together and within each."""
    after = scorer.adjusted
    if after is None or scorer.raw.auc_within is None or after.auc_within is None:
        return ""
    fallen = [
        (new - old, name, old, new)
        for name, old in scorer.raw.system_aucs.items()
        if old is not None
        and (new := after.system_aucs.get(name)) is not None
        and _auc_of(new) != _auc_of(old)
        and new < old
    ]
    text = _capital(_auc_clause(scorer))
    if not fallen:
        return f"{text}; within no single system does it fall."
    _, name, old, new = min(fallen)
    which = "for" if len(fallen) == 1 else f"for {len(fallen)} of them, most for"
    return (
        f"{text}; within single systems it falls {which} {shorten(name, _NAME)}, from "
        f"{_auc_of(old)} to {_auc_of(new)}."
    )


def _threshold_sentence(scorer: AnswerScorer) -> str:
    """Return on how many questions equally correct answers get different verdicts."""
    raw = scorer.raw.verdicts
    if not raw.n_questions or len(raw.systems) < 2:
        return ""
    text = (
        f"At {_value(scorer, scorer.raw.threshold)}, equally correct answers get different verdicts"
        f" on {_percent(raw.n_flipped / raw.n_questions)} of the questions "
        f"({count(raw.n_flipped)} of {count(raw.n_questions)})"
    )
    if scorer.adjusted is not None:
        after = scorer.adjusted.verdicts
        text += (
            f", adjusted (at {_value(scorer, scorer.adjusted.threshold)}) on "
            f"{_percent(after.n_flipped / after.n_questions)} ({count(after.n_flipped)})"
        )
    return text + "."


def _order_sentence(scorer: AnswerScorer) -> str:
    """Return which pairs of systems the score puts in another order than people do."""
    raw = scorer.raw.inversions
    if raw is None or not raw.n_pairs:
        return ""
    adjusted = scorer.adjusted.inversions if scorer.adjusted is not None else None
    n = len(raw.inversions)
    if n:
        shown = [
            f"{shorten(better, _SHORT)} under {shorten(other, _SHORT)}"
            for better, other in raw.inversions[:_PAIRS]
        ]
        names = join(shown) if n <= _PAIRS else f"{', '.join(shown)} and {n - _PAIRS} more"
        verb = "stands" if n == 1 else "stand"
        text = f"By mean score {n} of {raw.n_pairs} pairs of systems {verb} in another order than "
        text += f"by people ({names})"
    else:
        pairs = "the one pair" if raw.n_pairs == 1 else f"all {raw.n_pairs} pairs"
        text = f"The mean score puts {pairs} of systems in the order of people"
    if adjusted is not None and (n or adjusted.inversions):
        text += f"; adjusted, {len(adjusted.inversions) or 'none'} of {adjusted.n_pairs}"
        text += "" if n else " in another"
    return f"{text}."


def _beyond_chance(scorer: AnswerScorer) -> list[str]:
    """Say how many pairs of systems are in the other order beyond chance."""
    told = []
    for called, bias in zip(("Raw", "Adjusted"), _both(scorer), strict=False):
        found = bias.inversions
        if found is None or not found.inversions or found.beyond_chance is None:
            continue
        n, sure = len(found.inversions), found.beyond_chance
        names = ", ".join(f"{better} over {other}" for better, other in sure)
        shown = f" ({names} by people, the reverse by score)" if sure else ""
        told.append(
            f"{called} score: {len(sure)} of {n} inversion{'' if n == 1 else 's'} of the order of "
            f"systems {'is' if n == 1 else 'are'} beyond chance, by people and by score{shown}."
        )
    return told


# Sections


def _findings(report: AnswerBiasReport) -> b.Section:
    found = report.scorers
    biases = [bias for s in found for bias in _both(s)]
    aucs = [auc.lower for x in biases for auc in (x.auc, x.auc_within) if auc is not None]
    lowest = min([0.5, *aucs])
    most = [
        (x, x.spread.unfairness if x.unfairness is None else x.unfairness.upper) for x in biases
    ]
    sizes = [size for x, end in most if (size := _in_sds(x, end)) is not None]
    widest = 1.03 * max([1e-9, *sizes])
    adjusted = " Blue: adjusted." if len(biases) > len(found) else ""
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            _effects_grid(report),
            b.Paragraph(
                text="Standard deviations from the mean of the systems, on equally correct "
                "answers.",
                look="note",
                to=b.TERMINAL,
            ),
            b.Cards(
                cards=tuple(_card(s, widest, lowest) for s in found), look="answers", to=b.PAGE
            ),
            b.Statements(
                rows=tuple((s.name, "", _sentence(s)) for s in found),
                to=(*b.MARKDOWN, *b.TERMINAL),
            ),
            b.Paragraph(
                text=f"{level(report.config.confidence_level)} intervals. Unfairness is in the "
                "unit of the score, its bars are in standard deviations within systems from 0, so "
                f"that scores compare; those of the AUC run from {number(lowest, digits=2)} to 1. "
                f"Orange, hollow: the score as it is.{adjusted}",
                look="note",
                to=b.PAGE,
            ),
            b.Grid(
                table=_scorers_table(report),
                caption="All scores",
                to=b.FILES if len(found) > 1 else b.MARKDOWN,
            ),
        ),
    )


def _effects_grid(report: AnswerBiasReport) -> b.Grid:
    """Return how far each system's correct answers lie from the mean of all systems."""
    words = [s.mean_words_correct for s in report.systems]
    rows = [("", "words", *(_or_missing(w) for w in words))]
    sides = [""]
    for scorer in report.scorers:
        for called, side, bias in zip(
            ("as it is", "adjusted"), _SIDES, _both(scorer), strict=False
        ):
            effects = (_effect_of(bias, s.name) for s in report.systems)
            rows.append((scorer.name, called, *effects))
            sides.append(side)
    names = (shorten(s.name, _COLUMN - 1) for s in report.systems)
    return b.Grid(
        table=Table(columns=("", "", *names), rows=tuple(rows), n_heads=2),
        caption="",
        width=_COLUMN,
        sides=tuple(sides),
        to=b.TERMINAL,
    )


def _card(scorer: AnswerScorer, widest: float, lowest: float) -> b.Card:
    found = _extremes(scorer.raw)
    biases = list(zip(("", ", adjusted"), _SIDES, _both(scorer), strict=False))
    rows = []
    for tail, side, bias in biases:
        unfair, sd = bias.unfairness, bias.spread.within_sd
        row = b.CardRow(
            name=f"unfairness{tail}",
            value=_value(scorer, bias.spread.unfairness),
            ends="no interval" if unfair is None else _ends(scorer, unfair),
            bar=_bar(unfair, (0.0, widest), sd, side) if unfair is not None and sd else None,
        )
        rows.append(row)
    if scorer.adjusted is not None:
        rows.append(b.CardRow(name="spread cut by", value=_percent(scorer.spread_cut), ends=""))
    rows += [
        b.CardRow(
            name=f"{name}{tail}",
            value=_auc_of(auc),
            ends=interval(auc, digits=3),
            bar=_bar(auc, (lowest, 1.0), 1.0, side),
        )
        for name, of in (("AUC", "auc"), ("AUC within systems", "auc_within"))
        for tail, side, bias in biases
        if (auc := getattr(bias, of)) is not None
    ]
    several = len(scorer.raw.spread.systems) > 1
    short = {
        AnswerStyle.REWARDS: f"rewards style: favours {shorten(found.best, _NAME)} most"
        if found.clear
        else "rewards style",
        AnswerStyle.SLIGHT: "rewards style, but slightly",
        AnswerStyle.ALIKE: "no more than a small effect of style",
        AnswerStyle.CANNOT_TELL: "cannot tell whether style counts",
        AnswerStyle.TOO_FEW: "too few questions" if several else "one system only",
    }[_finding(scorer).style]
    return b.Card(
        name=scorer.name,
        standing=_finding(scorer).style,
        short=f"useless: {short}" if _finding(scorer).use is AnswerUse.USELESS else short,
        text=_sentence(scorer, brief=True),
        rows=tuple(rows),
    )


def _bar(found: Interval, scale: tuple[float, float], unit: float, side: str) -> Bar:
    left, dot, right = (
        round(100 * min(1.0, max(0.0, (end / unit - scale[0]) / (scale[1] - scale[0]))), 2)
        for end in (found.lower, found.estimate, found.upper)
    )
    width = round(right - left, 2)
    return Bar(left=left, width=width, dot=dot, side=side, solid=side == "baseline")


def _scorers_table(report: AnswerBiasReport) -> Table:
    rows = []
    for s in report.scorers:
        raw, after = s.raw, s.adjusted
        row = (
            s.name,
            _with_ends(s, raw.spread.unfairness, raw.unfairness),
            _or_missing(_in_sds(raw, raw.spread.unfairness), digits=2),
            _or_missing(raw.length_correlation, digits=2, signed=True),
            _auc_of(raw.auc),
            MISSING if after is None else _with_ends(s, after.spread.unfairness, after.unfairness),
            _percent(s.spread_cut),
            _auc_of(None if after is None else after.auc),
        )
        rows.append(row)
    columns = ("score", "unfairness", "in sd", "ρ with length", "AUC", "adjusted", "cut by", "AUC")
    return _compact(report.scorers, columns, rows, 1)


def _compact(
    scorers: Sequence[AnswerScorer],
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    n_heads: int,
) -> Table:
    """Return a table; of a single score without the first of several heads, which names it.

    Columns of nothing but missing values, such as those of an adjustment that was not made, go.
    """
    first = 1 if len(scorers) == 1 and n_heads > 1 else 0
    kept = [
        i
        for i in range(first, len(columns))
        if i < n_heads or any(row[i] != MISSING for row in rows)
    ]
    return Table(
        columns=tuple(columns[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in rows),
        n_heads=n_heads - first,
    )


def _figures(items: Drawn, *, small: bool = False) -> list[b.Block]:
    shown, more = tuple(items[:_SHOWN]), tuple(items[_SHOWN:])
    found: list[b.Block] = [b.Figures(items=shown, small=small)] if shown else []
    if more:
        blocks = (b.Figures(items=more, small=small),)
        found.append(b.Fold(summary=f"{len(more)} more", blocks=blocks, to=b.PAGE))
    return found


def _notes(
    report: AnswerBiasReport,
    told: Callable[[AnswerScorer], Sequence[str]],
    to: tuple[b.Output, ...] = b.FILES,
) -> list[b.Block]:
    """Return what there is to say of each score; of a single one without its name."""
    rows = [(s.name, text) for s in report.scorers if (text := " ".join(filter(None, told(s))))]
    if len(report.scorers) == 1:
        return [b.Paragraph(text=text, to=to) for _, text in rows]
    return [b.Items(rows=tuple(rows), to=to)] if rows else []


def _means(report: AnswerBiasReport) -> b.Section | None:
    if not report.scorers:
        return None
    limit, lengths = plots.means_limit(report.scorers), _length_pictures(report)
    pictures: Drawn = [
        (s.name, partial(plots.means_plot, scorer=s, said=_means_described(s), limit=limit))
        for s in report.scorers
        if s.raw.spread.within_sd is not None
    ]
    if len(report.scorers) == 1 and pictures and lengths:
        # One picture alone leaves a hole.
        pictures = [
            ("Mean score", pictures[0][1]),
            ("Mean score against length", lengths[0][1]),
        ]
    differences, key = _differences_table(report), _differences_key(report)
    every = (
        b.Heading(text="Every pair of systems", to=b.MARKDOWN),
        b.Paragraph(text=f"{key}.", to=b.MARKDOWN),
        b.Fold(summary="Every pair of systems", blocks=(b.Grid(table=differences, caption=key),)),
    )
    return b.Section(
        id="means",
        nav="Systems",
        title="Systems on equally correct answers",
        lead="Mean score of each system over the questions that all of them answered correctly, as "
        "distance from the mean of the systems in standard deviations of the scores within a "
        "system. A score of correctness alone would put all systems on the line. Lines are "
        "intervals of one mean; differences between systems are known better, because they are "
        "taken question by question.",
        blocks=(
            *_figures(pictures, small=True),
            b.Grid(
                table=_means_table(report),
                caption="Mean score of equally correct answers; sd is the distance from the mean "
                "of the systems",
            ),
            *(every if differences.rows else ()),
        ),
    )


def _means_described(scorer: AnswerScorer) -> Described:
    texts = []
    for i, system in enumerate(scorer.raw.spread.systems):
        parts = []
        for called, bias in zip(("", "adjusted "), _both(scorer), strict=False):
            effects = bias.spread.effects
            tail = "" if effects is None else f" ({_effect(effects[i])} sd)"
            parts.append(f"{called}{_value(scorer, bias.spread.means[i])}{tail}")
        texts.append(f"{system}: {', '.join(parts)}.")
    title = f"Mean score of equally correct answers by system, {scorer.name}"
    return Described(title, " ".join(texts))


def _means_table(report: AnswerBiasReport) -> Table:
    words = {s.name: s.mean_words_correct for s in report.systems}

    def mean(scorer: AnswerScorer, bias: AnswerBias | None, place: int) -> str:
        if bias is None:
            return MISSING
        return _with_ends(scorer, bias.spread.means[place], bias.means[place])

    rows = [
        (
            s.name,
            system,
            _or_missing(words.get(system)),
            mean(s, s.raw, place),
            _effect_of(s.raw, system),
            mean(s, s.adjusted, place),
            _effect_of(s.adjusted, system),
        )
        for s in report.scorers
        for place, system in enumerate(s.raw.spread.systems)
    ]
    columns = ("score", "system", "words", "mean score", "sd", "adjusted", "adjusted, sd")
    return _compact(report.scorers, columns, rows, 2)


def _differences_key(report: AnswerBiasReport) -> str:
    own = report.config.confidence_level
    found = {d.difference.confidence_level for s in report.scorers for d in s.raw.differences}
    if found <= {own}:
        return f"Each interval holds {level(own)} on its own; of many, some exclude 0 by chance"
    return f"Each interval holds {level(max(found))}, so that all together hold {level(own)}"


def _differences_table(report: AnswerBiasReport) -> Table:
    def cells(scorer: AnswerScorer, d: SystemDifference | None) -> tuple[str, str]:
        if d is None:
            return MISSING, MISSING
        gap = _value(scorer, d.difference.estimate, signed=True)
        return f"{gap} {_ends(scorer, d.difference)}", _effect(d.effect)

    rows = []
    for s in report.scorers:
        after = () if s.adjusted is None else s.adjusted.differences
        moved = {(d.first, d.second): d for d in after}
        rows += [
            (s.name, d.first, d.second, *cells(s, d), *cells(s, moved.get((d.first, d.second))))
            for d in s.raw.differences
        ]
    columns = ("score", "first", "second", "first − second", "sd", "adjusted", "adjusted, sd")
    return _compact(report.scorers, columns, rows, 3)


def _length(report: AnswerBiasReport) -> b.Section | None:
    pictures = _length_pictures(report)
    if not pictures or len(report.scorers) == 1:
        return None  # of a single score it stands beside the means
    return b.Section(
        id="length",
        nav="Length",
        title="Length and score",
        lead="The same means against the length of correct answers. A slope means that the score "
        "pays for short or for long answers. The adjusted marks should lie level.",
        blocks=tuple(_figures(pictures)),
    )


def _length_pictures(report: AnswerBiasReport) -> Drawn:
    words = {s.name: s.mean_words_correct or 0.0 for s in report.systems}
    spots = {}
    for s in report.scorers:
        before = s.raw.spread.effects
        after = s.adjusted.spread.effects if s.adjusted is not None else None
        spots[s.name] = [
            Spot(system, words[system], before[i], None if after is None else after[i])
            for i, system in enumerate(s.raw.spread.systems)
            if before is not None and words.get(system)
        ]
    values = [v for found in spots.values() for spot in found for v in spot[2:]]
    ends = [-0.25, 0.25, *(v for v in values if v is not None)]
    margin = 0.16 * (max(ends) - min(ends))
    axis = (min(ends) - margin, max(ends) + margin)

    def described(name: str) -> Described:
        text = " ".join(
            f"{spot.system}: {number(spot.words)} words, {_effect(spot.effect)} sd"
            f"{'' if spot.adjusted is None else f', adjusted {_effect(spot.adjusted)}'}."
            for spot in spots[name]
        )
        return Described(f"Score against length by system, {name}", text)

    return [
        (name, partial(plots.length_plot, spots=found, said=described(name), ends=axis))
        for name, found in spots.items()
        if len(found) > 1
    ]


def _thresholds(report: AnswerBiasReport) -> b.Section | None:
    pictures, table = [], []
    for s in report.scorers:
        rows = [
            (system, _error_shares(s.raw, i), _error_shares(s.adjusted, i))
            for i, system in enumerate(s.raw.verdicts.systems)
        ]
        table += [
            (s.name, system, *map(_percent, (before[0], after[0], before[1], after[1])))
            for system, before, after in rows
        ]
        told = (
            f"{system}: "
            + "; ".join(
                f"{what} {_percent(old).replace(MISSING, 'none')}"
                + ("" if new is None else f", adjusted {_percent(new)}")
                for what, old, new in zip(VERDICTS, before, after, strict=True)
            )
            for system, before, after in rows
        )
        said = Described(
            f"Verdicts that contradict people, by system, {s.name}", f"{'. '.join(told)}."
        )
        draw = partial(plots.verdicts_plot, rows=rows, said=said, adjusted=s.adjusted is not None)
        pictures.append((s.name, draw))
    if not table:
        return None
    columns = ("score", "system", VERDICTS[0], "adjusted", VERDICTS[1], "adjusted")
    return b.Section(
        id="thresholds",
        nav="Verdicts",
        title="Verdicts at a threshold",
        lead="An answer counts as correct if its score reaches the threshold. Where such verdicts "
        "contradict people more for one system than for another, its style is rewarded or "
        "punished. A threshold that fits all systems needs both rows of each system alike.",
        blocks=(
            *_notes(report, lambda s: [_threshold_sentence(s)], b.PAGE),
            *_figures(pictures),
            b.Grid(
                table=_compact(report.scorers, columns, table, 2),
                caption="Verdicts that contradict people, as share of the correct and of the "
                "wrong answers",
            ),
        ),
    )


def _error_shares(bias: AnswerBias | None, place: int) -> tuple[float | None, float | None]:
    """Return the share of a system's correct answers that fail and of its wrong ones that pass."""
    if bias is None:
        return None, None
    right = bias.verdicts.pass_correct[place]
    return None if right is None else 1 - right, bias.verdicts.pass_wrong[place]


def _order(report: AnswerBiasReport) -> b.Section | None:
    pictures, rows = [], []
    for s in report.scorers:
        raw = s.raw.inversions
        if raw is None:
            continue
        moved = _moved(s, raw)
        people, placed, after = map(_ranks, (raw.correctness, raw.mean_scores, moved))
        told = []
        for i, system in enumerate(raw.systems):
            right, mean = f"{score(raw.correctness[i])}%", _value(s, raw.mean_scores[i])
            now = _value(s, moved[i]) if moved else ""
            adjusted = f"{now}, {after[i]}" if moved else MISSING
            rows.append((s.name, system, f"{right}, {people[i]}", f"{mean}, {placed[i]}", adjusted))
            tail = f", adjusted {now}" if moved else ""
            told.append(f"{system}: {right} correct by people, score {mean}{tail}.")
        said = Described(f"Order of systems by people and by score, {s.name}", " ".join(told))
        if raw.n_pairs:
            draw = partial(plots.order_plot, raw=raw, moved=moved, said=said)
            pictures.append((s.name, draw))
    if not rows:
        return None
    columns = ("score", "system", "correct, by people", "mean score", "adjusted")
    return b.Section(
        id="order",
        nav="Order",
        title="Order of the systems",
        lead="Who is best, by people and by mean score, over all questions with a verdict and a "
        "score of every system. Dashed orange lines lead to a place that people do not give. "
        "Systems that lie close may change places by chance.",
        blocks=(
            *_notes(report, lambda s: [_order_sentence(s), *_beyond_chance(s)], b.PAGE),
            *_notes(report, _beyond_chance, b.MARKDOWN),
            *_figures(pictures),
            b.Grid(
                table=_compact(report.scorers, columns, rows, 2),
                caption="Systems by people and by score, with their place",
            ),
        ),
    )


def _moved(scorer: AnswerScorer, raw: RankInversions) -> tuple[float, ...]:
    """Return the mean of each system by the adjusted score, if there is one."""
    after = None if scorer.adjusted is None else scorer.adjusted.inversions
    if after is None:
        return ()
    return tuple(after.mean_scores[after.systems.index(system)] for system in raw.systems)


def _ranks(values: tuple[float, ...]) -> tuple[str, ...]:
    """Return the place of each value; equal ones share the better.

    Examples
    --------
    >>> _ranks((0.2, 0.9, 0.9, 0.1))
    ('3rd', '1st', '1st', '4th')
    """

    def ordinal(place: int) -> str:
        teen = place % 100 in (11, 12, 13)
        return f"{place}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"

    return tuple(ordinal(1 + sum(other > v for other in values)) for v in values)


def _auc(report: AnswerBiasReport) -> b.Section | None:
    rows = []
    for s in report.scorers:
        if s.raw.auc is None:
            continue
        after = s.adjusted
        pooled, within = (None, None) if after is None else (after.auc, after.auc_within)
        moved = {} if after is None else after.system_aucs
        rows += [
            (s.name, "all systems", _auc_ends(s.raw.auc), _auc_ends(pooled)),
            (s.name, "within systems", _auc_ends(s.raw.auc_within), _auc_ends(within)),
            *(
                (s.name, system, _auc_of(found), _auc_of(moved.get(system)))
                for system, found in s.raw.system_aucs.items()
            ),
        ]
    if not rows:
        return None
    columns = ("score", "system", "AUC", "adjusted")
    return b.Section(
        id="auc",
        nav="Right from wrong",
        title="Telling right from wrong",
        lead="AUC is the probability that a correct answer scores above a wrong one: 0.5 is "
        "chance, 1 perfect. Over all systems it also moves by putting systems side by side. The "
        "AUC within systems compares answers of one system only: it says whether a score tells "
        "right from wrong.",
        blocks=(
            *_notes(report, lambda s: [_auc_sentence(s)]),
            b.Grid(
                table=_compact(report.scorers, columns, rows, 2),
                caption="AUC of correct against wrong answers",
            ),
        ),
    )


def _correctness(report: AnswerBiasReport) -> b.Section | None:
    useful = any(c.with_scores is not None for s in report.scorers for c in s.correctness)
    # Where no score helps, every score has the same labels: they are said once.
    scorers = report.scorers if useful else report.scorers[:1]
    table = _correctness_table(scorers)
    if not table.rows:
        return None

    def described(s: AnswerScorer) -> Described:
        texts = (
            f"{c.system}: labels alone {_correct_ends(c.labels_alone)}, with the score "
            f"{_correct_ends(c.with_scores)}"
            f"{'' if c.truth is None else f', all labels {score(c.truth)}'}."
            for c in s.correctness
        )
        return Described(f"Human correctness by system from few labels, {s.name}", " ".join(texts))

    pictures = [
        (s.name, partial(plots.correctness_plot, found=s.correctness, said=described(s)))
        for s in scorers
        if any(c.labels_alone is not None for c in s.correctness)
    ]
    return b.Section(
        id="correctness",
        nav="Human correctness",
        title="Human correctness from few labels" if useful else "Human correctness",
        lead="The share of answers that people would call correct, from a sample of labels alone "
        "and with the score of all other answers. What the score gets wrong is corrected for each "
        "system on its own, so that style cannot favour one. The score can only make intervals "
        "narrower, or fail to."
        if useful
        else "The share of answers that people call correct, from all labels there are. No score "
        "can add to them; with labels for some answers only, each score would be used on the "
        "others.",
        blocks=(
            *_figures(pictures),
            b.Grid(table=table, caption="Answers people call correct"),
        ),
    )


def _correctness_table(scorers: Sequence[AnswerScorer]) -> Table:
    rows = [
        (
            s.name,
            c.system,
            count(c.n_labeled),
            count(c.n_unlabeled) if c.n_unlabeled else MISSING,
            _correct_ends(c.labels_alone),
            _correct_ends(c.with_scores),
            _narrower(c),
            _or_missing(c.truth, scale=100),
        )
        for s in scorers
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
    return _compact(scorers, columns, rows, 2)


def _narrower(c: SystemCorrectness) -> str:
    alone, helped = c.labels_alone, c.with_scores
    if alone is None or helped is None or not alone.half_width:
        return MISSING
    return _percent(1 - helped.half_width / alone.half_width)


def _texts(report: AnswerBiasReport) -> b.Section | None:
    found = report.text_statistics
    if not found:
        return None

    def draw(uid: str) -> str:
        title = "The texts of the correct answers"
        return text_plot(found, original=None, uid=uid, title=title)

    return b.Section(
        id="text",
        nav="Texts",
        title="The texts",
        lead="How the correct answers of the systems differ before any score sees them.",
        blocks=(
            b.Paragraph(text=text_key(found), to=b.PAGE),
            b.Figures(items=(("Correct answers by system", draw),)),
            b.Grid(
                table=text_table(found),
                caption="Statistics of the correct answers, against the references",
            ),
        ),
    )


def _reading(report: AnswerBiasReport) -> b.Section:
    rows = [
        (
            "What is unfairness?",
            "The standard deviation of the systems' mean scores over questions that all of them "
            "answered correctly, in the unit of the score. It is 0 for a score that sees only "
            "correctness. Scores have different ranges, so compare them by the same number in "
            "standard deviations within systems.",
        ),
        (
            "Why is a difference style?",
            "Because people called all of these answers correct, to the same questions. What is "
            "left is how they are written: length, wording, extra facts, format. If people were "
            "kinder to one system, or “correct” was judged coarsely, that is in it too.",
        ),
        (
            "When is an effect called small?",
            f"When the systems lie apart by less than {number(SMALL)} standard deviations within "
            "systems. With enough questions even that can be measured.",
        ),
        (
            "What do the intervals cover?",
            f"With {level(report.config.confidence_level)} confidence the value for all questions "
            "like these, one number at a time, for exactly these systems. The two systems named "
            "are those that lie furthest apart, so with few questions their distance is "
            "overstated.",
        ),
    ]
    if any(s.adjusted is not None for s in report.scorers):
        rows.append(
            (
                "What does the adjustment do?",
                "It learns from correct answers how the score changes with style, such as length, "
                "and subtracts that; each answer is adjusted by a fit that has not seen its "
                "question. It is worth using if the spread falls and the AUC does not. Where one "
                "system alone writes answers of some length, what is its own and what is length "
                "cannot be told apart, and both go.",
            )
        )
    rows.append(
        (
            "Are differing verdicts all style?",
            "No. Equally correct answers to one question also differ by the chances of wording, "
            "which no adjustment removes, so their share does not fall to 0. What should fall is "
            "the difference between systems.",
        )
    )
    if report.config.threshold is None:
        rows.append(
            (
                "Where do the thresholds come from?",
                "Each is the one that separates correct from wrong answers best on these data, "
                "separately for the score as it is and adjusted. On new answers it will do a "
                "little worse.",
            )
        )
    return sections.reading(rows)


def _caveats(report: AnswerBiasReport) -> b.Section:
    assumed: dict[str, dict[str, None]] = {}
    noted = [(s.name, note) for s in report.scorers for note in s.notes]
    for system in report.systems:
        if system.n_empty:
            verb = "is" if system.n_empty == 1 else "are"
            text = f"{_counted(system.n_empty, 'answer')} {verb} empty and take part in nothing"
            noted.append((system.name, text))
    noted += [("texts", note) for note in text_notes(report.text_statistics)]
    used = [(s.name, *found) for s in report.scorers for found in _intervals(s)]
    for name, where, interval_ in used:
        noted += [(name, note) for note in interval_.notes]
        for text in interval_.assumptions:
            assumed.setdefault(text, {})[where] = None
    for statistic in report.text_statistics:
        for text in () if statistic.mean is None else statistic.mean.assumptions:
            assumed.setdefault(text, {})["text statistics"] = None
    return sections.caveats(
        assumed,
        dict.fromkeys(row for row in noted if row[1] not in report.warnings),
        warned=bool(report.warnings),
    )


def _intervals(scorer: AnswerScorer) -> Iterator[tuple[str, Interval]]:
    found: list[tuple[str, Interval | None]] = []
    for bias in _both(scorer):
        found.append(("unfairness", bias.unfairness))
        found += [("mean scores", mean) for mean in bias.means]
        found += [("differences", d.difference) for d in bias.differences]
        found += [("AUC", bias.auc), ("AUC within systems", bias.auc_within)]
    for c in scorer.correctness:
        found.append(("human correctness from labels alone", c.labels_alone))
        found.append(("human correctness with the score", c.with_scores))
    yield from ((where, interval_) for where, interval_ in found if interval_ is not None)


def _data(report: AnswerBiasReport) -> b.Section:
    c = report.config
    data = (
        ("name", report.name),
        ("questions", count(len(set(report.question_ids)))),
        ("systems", count(len(report.systems))),
        ("answers", count(len(report.question_ids))),
        ("answers people judged", count(int(np.count_nonzero(~np.isnan(report.correct))))),
        ("licence", report.license or "not stated"),
        ("attribution", report.attribution or "not stated"),
    )
    chosen = "what separates correct from wrong best, per score"
    settings = (
        ("threshold", chosen if c.threshold is None else f"{c.threshold:g}"),
        ("adjustment", f"yes, {c.folds} folds of questions" if c.adjust else "no"),
        ("ddof of the unfairness", str(c.ddof)),
        ("labels per system", "all there are" if c.labels is None else count(c.labels)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    scores = []
    for s in report.scorers:
        parts = [f"{k} = {v}" for k, v in s.settings.items()]
        parts.append(f"threshold = {_value(s, s.raw.threshold)}")
        if s.adjusted is not None:
            parts.append(f"threshold of the adjusted score = {_value(s, s.adjusted.threshold)}")
        if s.adjustment:
            parts.append(f"adjustment = {s.adjustment}")
        scores.append((s.name, "; ".join(parts)))
    tables = (
        ("Data", Table(columns=("data", ""), rows=data)),
        ("Audit", Table(columns=("setting", ""), rows=settings)),
        ("Scores", Table(columns=("score", "settings"), rows=tuple(scores))),
        ("Environment", environment_table(report)),
    )
    return sections.data(
        tables, b.Grid(table=_systems_table(report), caption="Answers of each system")
    )


def _systems_table(report: AnswerBiasReport) -> Table:
    return Table(
        columns=(
            "system",
            "answers",
            "correct",
            "wrong",
            "not judged",
            "empty",
            "mean words",
            "of correct ones",
        ),
        rows=tuple(
            (
                s.name,
                count(s.n_answers),
                count(s.n_correct),
                count(s.n_wrong),
                count(s.n_answers - s.n_correct - s.n_wrong),
                count(s.n_empty),
                number(s.mean_words),
                _or_missing(s.mean_words_correct),
            )
            for s in report.systems
        ),
    )


# Numbers


def _or_missing(
    value: float | None, *, digits: int = 1, scale: float = 1.0, signed: bool = False
) -> str:
    return MISSING if value is None else number(scale * value, digits=digits, signed=signed)


def _digits(scorer: AnswerScorer) -> int:
    """Return the decimals of a score: about two digits of its spread within systems, and one."""
    known = [bias.spread.within_sd for bias in _both(scorer)]
    found = [sd for sd in (*known, scorer.raw.spread.unfairness) if sd]
    if not found or not math.isfinite(found[0]):
        return 3
    return min(6, max(0, math.ceil(1.5 - math.log10(found[0]))))


def _value(scorer: AnswerScorer, value: float, *, signed: bool = False) -> str:
    """Return a value in the unit of a score."""
    return number(value, digits=_digits(scorer), signed=signed)


def _ends(scorer: AnswerScorer, found: Interval) -> str:
    return ends_about_zero(found, digits=_digits(scorer))


def _with_ends(scorer: AnswerScorer, estimate: float, found: Interval | None) -> str:
    text = _value(scorer, estimate)
    return text if found is None else f"{text} {_ends(scorer, found)}"


def _in_sds(bias: AnswerBias, value: float) -> float | None:
    """Return a length on the scale of a score in its standard deviations within systems."""
    sd = bias.spread.within_sd
    return None if sd is None else value / sd


def _effect(in_sds: float | None) -> str:
    return _or_missing(in_sds, digits=2, signed=True)


def _effect_of(bias: AnswerBias | None, system: str) -> str:
    """Return how far a system's correct answers lie from the mean of the systems."""
    if bias is None or bias.spread.effects is None or system not in bias.spread.systems:
        return MISSING
    return _effect(bias.spread.effects[bias.spread.systems.index(system)])


def _auc_of(found: float | Interval | None) -> str:
    return _or_missing(found.estimate if isinstance(found, Interval) else found, digits=3)


def _auc_ends(found: Interval | None) -> str:
    return MISSING if found is None else f"{_auc_of(found)} {interval(found, digits=3)}"


def _correct_ends(found: Interval | None) -> str:
    """Return a share of correct answers, ×100, with the ends of its interval."""
    return MISSING if found is None else f"{score(found.estimate)} {interval(found, scale=100)}"


def _percent(share: float | None) -> str:
    """Return a share as a percentage, with a decimal where it is small."""
    digits = 0 if not share or abs(share) >= 0.0995 else 1
    return MISSING if share is None else f"{number(100 * share, digits=digits)}%"


def _counted(n: int, what: str) -> str:
    return f"{count(n)} {what}{'' if n == 1 else 's'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
