"""The report on correctness scores: what it says, in the order in which it says it.

Systems are compared on questions that all of them answered correctly. In pictures the score as it
is is orange, the adjusted score blue.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.answers.data import (
    AdjustmentCode,
    AnswerBias,
    AnswerBiasResults,
    AnswerFinding,
    AnswerScorer,
    AnswerScores,
    AnswerStyle,
    AnswerUse,
    RankInversions,
    SystemDifference,
    extremes,
    widest_difference,
)
from rag_sourcebias.answers.measure import SMALL, answer_finding, paired_correct
from rag_sourcebias.core.finding import MISSING, Frame, Interval, number, shorten
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import (
    Bar,
    CaseWords,
    Document,
    First,
    FirstRow,
    Standing,
    case_blocks,
    case_section,
    text_figures,
    text_frame,
    text_key,
    text_notes,
)
from rag_sourcebias.report.legacy import (
    count,
    counted,
    ends_about_zero,
    estimate,
    join,
    level,
    next_step,
    roughly,
    score,
    settings,
)
from rag_sourcebias.report.render import Outcome, Report

_NAME = 40  # characters of a system or score in a sentence
_WEAK = 0.1  # correlations below are called none
_PAIRS = 3  # pairs of systems that are named
_CLEAR = (AnswerStyle.REWARDS, AnswerStyle.SLIGHT)

_STYLES = {
    AnswerStyle.REWARDS: "rewards a system's style",
    AnswerStyle.SLIGHT: "rewards style only slightly",
    AnswerStyle.ALIKE: "shows no more than a small effect of style",
    AnswerStyle.CANNOT_TELL: "may reward style or not: these are too few to tell",
    AnswerStyle.TOO_FEW: "may reward style or not: these are too few for an interval",
}
_WORTH = {
    AdjustmentCode.ABSENT: "",
    AdjustmentCode.CUTS: "",
    AdjustmentCode.COSTS: " It tells right from wrong less well, or may: weigh that against the "
    "spread.",
    AdjustmentCode.FAILS: " It does not help here.",
    AdjustmentCode.IDLE: " No clear effect was there to remove.",
}


def both(scorer: AnswerScorer) -> tuple[AnswerBias, ...]:
    """Return what the score rewards as it is and, if it is adjusted, adjusted."""
    return (scorer.raw,) if scorer.adjusted is None else (scorer.raw, scorer.adjusted)


def finding_of(scorer: AnswerScorer) -> AnswerFinding:
    """Return the verdict, decided anew where there is none yet."""
    return scorer.finding or answer_finding(scorer)


# Numbers


def value(scorer: AnswerScorer, amount: float, *, signed: bool = False) -> str:
    """Return a value in the unit of a score."""
    return number(amount, digits=_digits(scorer), signed=signed)


def _digits(scorer: AnswerScorer) -> int:
    """Return the decimals of a score: about two digits of its spread within systems, and one."""
    size = scorer.raw.spread.within_sd or scorer.raw.spread.unfairness
    if not size or not math.isfinite(size):
        return 3
    return min(6, max(0, math.ceil(1.5 - math.log10(size))))


def with_ends(
    scorer: AnswerScorer, amount: float, found: Interval | None, *, signed: bool = False
) -> str:
    """Return a value in the unit of a score, with the ends of its interval if there is one."""
    text = value(scorer, amount, signed=signed)
    return text if found is None else f"{text} {ends_about_zero(found, digits=_digits(scorer))}"


def unfairness(scorer: AnswerScorer, bias: AnswerBias) -> str:
    """Return the standard deviation of the systems' means, with its interval if there is one."""
    return with_ends(scorer, bias.spread.unfairness, bias.unfairness)


def in_sds(bias: AnswerBias, length: float) -> str:
    """Return a length on the scale of a score in its standard deviations within systems."""
    sd = bias.spread.within_sd
    return number(None if sd is None else length / sd, digits=2)


def percent(share: float | None) -> str:
    """Return a share as a percentage, with a decimal where it is small."""
    if share is None:
        return MISSING
    digits = 0 if not share or abs(share) >= 0.0995 else 1
    return f"{number(100 * share, digits=digits)}%"


# The headline: no more certain than its intervals


def headline(report: AnswerBiasResults) -> str:
    """Return what a reader in a hurry should take away."""
    if not report.scorers:
        return "No score was examined."
    return " ".join(f"{shorten(s.name, _NAME)}: {_short(report, s)}" for s in report.scorers)


def _short(report: AnswerBiasResults, scorer: AnswerScorer) -> str:
    finding, raw = finding_of(scorer), scorer.raw
    n, k = counted(raw.spread.n_questions, "question"), len(report.systems)
    text = f"on {n} that all {k} systems answered correctly, it {_STYLES[finding.style]}."
    if finding.use is AnswerUse.USELESS:
        text = f"it is useless, as it does not tell right from wrong; {text}"
    lead = widest_difference(raw)
    if lead and finding.style in _CLEAR:
        text += f" Equally correct, {_gain(scorer, lead)}."
    if finding.adjustment is AdjustmentCode.CUTS:
        text += f" The adjustment cuts the spread of the systems by {percent(scorer.spread_cut)}."
    return text


def _gain(scorer: AnswerScorer, lead: SystemDifference) -> str:
    """Say how far the extremes lie apart."""
    sd, found = scorer.raw.spread.within_sd, lead.difference
    names = [shorten(name, _NAME) for name in (lead.first, lead.second)]
    sign = math.copysign(1, found.estimate)
    if sign < 0:
        names.reverse()
    gap = value(scorer, abs(found.estimate))
    if sd is not None:
        gap = f"{estimate(found, scale=sign / sd, digits=2)} standard deviations"
    return f"answers of {names[0]} score {gap} above those of {names[1]}"


# The first screen


def first(report: AnswerBiasResults) -> First:
    """Return the first screen: counts of questions, the verdict, and what to do next."""
    found = report.scorers
    if not found:
        return First(answer="No score was examined.")
    one = found[0] if len(found) == 1 else None
    rows = _system_rows(one) if one else ()
    clear = any(finding_of(s).style in _CLEAR for s in found)
    useless = [s.name for s in found if finding_of(s).use is AnswerUse.USELESS]
    doubts = (f"{join(useless)} cannot tell right from wrong answers.",) if useless else ()
    command = f"rag-sourcebias audit answers {report.inputs} --threshold 0.7"
    return First(
        answer=" ".join(_first_answer(report, s) for s in found),
        verdict=_first_verdict(one) if one else "",
        standing=_STANDINGS.get(finding_of(one).style, "") if one else "",
        doubts=doubts,
        caption="Mean score" if rows else "",
        rows=rows,
        next=next_step("Check a pass mark:", command) if clear and report.inputs else None,
    )


_STANDINGS: dict[AnswerStyle, Standing] = {AnswerStyle.REWARDS: "other", AnswerStyle.ALIKE: "even"}


def _first_answer(report: AnswerBiasResults, scorer: AnswerScorer) -> str:
    """Say in how many questions one of the two extreme systems scores above the other."""
    who, names = shorten(scorer.name, _NAME), extremes(scorer.raw)
    if names is None:
        return f"{who}: one system alone has no other to be compared with."
    high, low = names
    answers = AnswerScores(
        question_ids=report.question_ids,
        systems=report.answer_systems,
        scores=scorer.scores,
        correct=report.correct,
        words=report.words,
    )
    pairs = paired_correct(answers)
    apart = pairs.scores[:, pairs.systems.index(high)] - pairs.scores[:, pairs.systems.index(low)]
    above, below = int((apart > 0).sum()), int((apart < 0).sum())
    if below > above:
        high, low, above = low, high, below
    return (
        f"In {count(above)} of {counted(len(apart), 'question')} that all systems answered "
        f"correctly, {who} scores the answer of {shorten(high, _NAME)} above that of "
        f"{shorten(low, _NAME)}."
    )


def _first_verdict(scorer: AnswerScorer) -> str:
    """Return the verdict of one score without a measure, a test or an interval."""
    finding, who = finding_of(scorer), shorten(scorer.name, _NAME)
    if len(scorer.raw.spread.systems) < 2:
        return ""
    if finding.style in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW):
        n = counted(scorer.raw.spread.n_questions, "question")
        more = f"; about {roughly(finding.n_needed)} are needed" if finding.n_needed else ""
        return f"Cannot tell whether {who} rewards style: {n} are too few{more}."
    return f"Verdict: {who} {_STYLES[finding.style]}."


def _system_rows(scorer: AnswerScorer) -> tuple[FirstRow, ...]:
    """Return the mean score of each system's correct answers, the highest first."""
    spread = scorer.raw.spread
    if len(spread.systems) < 2:
        return ()
    found = sorted(
        zip(spread.means, spread.systems, scorer.raw.means, strict=True), key=lambda row: -row[0]
    )
    lows = [mean if i is None else i.lower for mean, _, i in found]
    highs = [mean if i is None else i.upper for mean, _, i in found]
    span = (min(lows), max(highs))
    if span[0] == span[1]:
        span = (span[0] - 1, span[1] + 1)
    solid = finding_of(scorer).style in _CLEAR
    sides = {0: "other", len(found) - 1: "baseline"} if solid else {}
    rows = []
    for at, (mean, name, _) in enumerate(found):
        side = sides.get(at, "even")
        bar = Bar.over((lows[at], mean, highs[at]), span, side=side, solid=solid)
        rows.append(FirstRow(name=shorten(name, _NAME), bar=bar, text=value(scorer, mean)))
    return tuple(rows)


# Sentences about one score


def sentence(scorer: AnswerScorer) -> str:
    """Return everything about one score, without its name."""
    told = (
        _use_sentence(scorer),
        _style_sentence(scorer),
        _length_sentence(scorer.raw),
        _adjustment_sentence(scorer),
    )
    return " ".join(filter(None, told))


def _use_sentence(scorer: AnswerScorer) -> str:
    use, auc = finding_of(scorer).use, estimate(scorer.raw.auc_within, digits=3)
    if use is AnswerUse.USELESS:
        return (
            f"The score is useless: it does not tell right from wrong (AUC within systems {auc})."
        )
    if use is AnswerUse.CANNOT_TELL:
        return f"Cannot tell whether the score tells right from wrong (AUC within systems {auc})."
    return ""


def _style_sentence(scorer: AnswerScorer) -> str:
    raw, finding, lead = scorer.raw, finding_of(scorer), widest_difference(scorer.raw)
    if len(raw.spread.systems) < 2:
        return "With one system there is no other style to compare with."
    plan = ""
    if finding.n_needed:
        plan = f" About {counted(finding.n_needed, 'question')} are needed to tell."
    where = (
        f"unfairness {unfairness(scorer, raw)}, {in_sds(raw, raw.spread.unfairness)} standard "
        f"deviations within systems; {counted(raw.spread.n_questions, 'question')}"
    )
    match finding.style:
        case AnswerStyle.TOO_FEW:
            return f"Too few questions for an interval ({where}).{plan}"
        case AnswerStyle.ALIKE:
            return f"Equally correct answers of all systems score much alike ({where})."
        case AnswerStyle.CANNOT_TELL:
            return f"Cannot tell whether equally correct answers score alike ({where}).{plan}"
    if lead is None:
        return (
            f"Equally correct answers do not score alike ({where}), but which system gains most "
            "cannot be told."
        )
    slight = " The effect is small." if finding.style is AnswerStyle.SLIGHT else ""
    return f"Equally correct, {_gain(scorer, lead)} ({where}).{slight}"


def _length_sentence(bias: AnswerBias) -> str:
    rho = bias.length_correlation
    if rho is None:
        return ""
    text = "Length hardly matters"
    if abs(rho) >= _WEAK:
        text = f"The longer an answer, the {'lower' if rho < 0 else 'higher'} its score"
    return f"{text} (Spearman {number(rho, digits=2)} among correct answers to the same question)."


def _adjustment_sentence(scorer: AnswerScorer) -> str:
    """Return what the adjusted score gains and costs."""
    finding, after, cut = finding_of(scorer), scorer.adjusted, scorer.spread_cut
    if after is None or finding.style is AnswerStyle.TOO_FEW:
        return ""
    now = unfairness(scorer, after)
    spread = f"leaves the spread of the systems at {now}"
    if cut is not None:
        verb = "cuts" if cut >= 0 else "widens"
        spread = f"{verb} the spread of the systems by {percent(abs(cut))}, to {now}"
    return f"The adjustment {spread}; {_auc_clause(scorer, after)}.{_WORTH[finding.adjustment]}"


def _auc_clause(scorer: AnswerScorer, after: AnswerBias) -> str:
    before, change = scorer.raw.auc_within, scorer.auc_change_within
    if before is None or after.auc_within is None:
        return "whether it still tells right from wrong within systems cannot be tested here"
    old, new = (number(auc.estimate, digits=3) for auc in (before, after.auc_within))
    if change is None:
        return f"the AUC within systems stays at {new}"
    way = "goes"
    if change.excludes(0):
        way = "rises" if change.estimate > 0 else "falls"
    return (
        f"the AUC within systems {way} from {old} to {new} (change "
        f"{estimate(change, digits=3, signed=True)}, paired by question)"
    )


def threshold_sentence(scorer: AnswerScorer) -> str:
    """Return on how many questions equally correct answers get different verdicts."""
    if len(scorer.raw.verdicts.systems) < 2:
        return ""
    shown = []
    for bias in both(scorer):
        verdicts, mark = bias.verdicts, value(scorer, bias.threshold)
        shown.append(
            f"with a pass mark of {mark} on {count(verdicts.n_flipped)} of "
            f"{counted(verdicts.n_questions, 'question')}"
        )
    return f"Equally correct answers get different verdicts {'; adjusted, '.join(shown)}."


def order_sentence(scorer: AnswerScorer) -> str:
    """Return which pairs of systems the score puts in another order than people do."""
    orders = [bias.inversions for bias in both(scorer)]
    told = [_order_clause(order) for order in orders if order is not None and order.n_pairs]
    return f"The score orders {'; adjusted, it orders '.join(told)}." if told else ""


def _order_clause(found: RankInversions) -> str:
    if not found.inversions:
        return f"{counted(found.n_pairs, 'pair')} of systems as people do"
    sure = _pairs(found.beyond_chance) or "none"
    return (
        f"{len(found.inversions)} of {counted(found.n_pairs, 'pair')} of systems differently from "
        f"people ({_pairs(found.inversions)}; beyond chance: {sure})"
    )


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Name pairs of systems: better by people, but lower by score."""
    names = [f"{shorten(a, _NAME)} under {shorten(b, _NAME)}" for a, b in pairs[:_PAIRS]]
    more = len(pairs) - len(names)
    return f"{', '.join(names)} and {more} more" if more else join(names)


_KEYS: tuple[pic.Key, ...] = (("score as it is", "other", True), ("adjusted", "baseline", True))


def document(report: AnswerBiasResults) -> d.Document:
    """Return everything there is to say about correctness scores."""
    sections = (
        _findings(report),
        evidence_section(report),
        _means(report),
        _differences(report),
        _thresholds(report),
        _order(report),
        _auc(report),
        _texts(report),
        _reading(report),
        _caveats(report),
        _data(report),
    )
    return d.Document(
        kind="Answer style report",
        title=f"Answer style: {report.name}",
        name=report.name,
        first=first(report),
        headline=(headline(report),),
        facts=(
            counted(len(report.question_ids), "answer"),
            counted(len(report.systems), "system"),
            counted(len(set(report.question_ids)), "question"),
        ),
        created=report.created,
        warnings=report.warnings,
        sections=tuple(filter(None, sections)),
    )


def _findings(report: AnswerBiasResults) -> d.Section:
    rows = []
    for s in report.scorers:
        for name, bias in zip(("as it is", "adjusted"), both(s), strict=False):
            rows.append(
                (
                    s.name,
                    name,
                    unfairness(s, bias),
                    in_sds(bias, bias.spread.unfairness),
                    number(bias.length_correlation, digits=2, signed=True),
                    estimate(bias.auc_within, digits=3),
                )
            )
    columns = ("score", "", "unfairness", "in sd", "ρ with length", "AUC within systems")
    return d.Section(
        id="findings",
        brief=True,
        title="Findings",
        blocks=(
            legacy.listing(tuple((s.name, sentence(s)) for s in report.scorers)),
            legacy.grid(
                columns,
                rows,
                f"All scores, with {level(report.config.confidence_level)} intervals",
                n_heads=2,
            ),
        ),
    )


def _grid(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], caption: str) -> d.Table:
    """Return a table under two heads; columns of an adjustment that was not made go."""
    full = [(*row, *[MISSING] * (len(columns) - len(row))) for row in rows]
    kept = [at for at in range(len(columns)) if at < 2 or any(row[at] != MISSING for row in full)]
    return legacy.grid(
        [columns[at] for at in kept],
        [[row[at] for at in kept] for row in full],
        caption,
        n_heads=2,
    )


def _said(report: AnswerBiasResults, tell: Callable[[AnswerScorer], str]) -> d.Listing:
    rows = tuple((s.name, text) for s in report.scorers if (text := tell(s)))
    return legacy.listing(rows)


# Equally correct answers


def _means(report: AnswerBiasResults) -> d.Section | None:
    if not report.scorers:
        return None
    words = {s.name: number(s.mean_words_correct) for s in report.systems}
    rows = []
    for s in report.scorers:
        for place, system in enumerate(s.raw.spread.systems):
            cells = [s.name, system, words.get(system, MISSING)]
            for bias in both(s):
                cells.append(with_ends(s, bias.spread.means[place], bias.means[place]))
                effects = bias.spread.effects
                effect = None if effects is None else effects[place]
                cells.append(number(effect, digits=2, signed=True))
            rows.append(tuple(cells))
    drawn = [s for s in report.scorers if len(s.raw.spread.systems) > 1 and s.raw.spread.effects]
    pictures = pic.aligned([_means_picture(s) for s in drawn])
    items = tuple(zip((s.name for s in drawn), pictures, strict=True))
    return d.Section(
        id="means",
        nav="Systems",
        title="Systems on equally correct answers",
        lead="Mean score of each system over the questions that all of them answered correctly, "
        "and its distance from the mean of the systems in standard deviations of the scores within "
        "a system. A score of correctness alone would put all systems on the line.",
        blocks=(
            *((d.Pictures(items=items, small=True),) if items else ()),
            _grid(
                ("score", "system", "words", "mean score", "sd", "adjusted", "adjusted, sd"),
                rows,
                "Mean score of equally correct answers; sd is the distance from the mean of the "
                "systems",
            ),
        ),
    )


def _means_picture(scorer: AnswerScorer) -> pic.Intervals:
    """Show means in standard deviations from that of the systems ([W] Fig. 7)."""
    rows = []
    for place, system in enumerate(scorer.raw.spread.systems):
        marks = []
        for bias, (_, colour, _) in zip(both(scorer), _KEYS, strict=False):
            mean, sd, effects = bias.means[place], bias.spread.within_sd, bias.spread.effects
            if effects is None:
                continue
            at, ends = effects[place], None
            if mean is not None and sd:
                ends = (
                    at + (mean.lower - mean.estimate) / sd,
                    at + (mean.upper - mean.estimate) / sd,
                )
            marks.append(pic.Mark(at=at, ends=ends, colour=colour))
        rows.append(pic.Row(label=system, marks=tuple(marks)))
    return pic.Intervals(
        title=f"Mean score of equally correct answers by system, {scorer.name}",
        rows=tuple(rows),
        x=pic.Axis(label="standard deviations from the mean of the systems", digits=2),
        guides=(pic.Guide(at=0),),
        keys=_KEYS[: len(both(scorer))],
    )


def _differences(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        found = [{(pair.first, pair.second): pair for pair in bias.differences} for bias in both(s)]
        for pair in found[0]:
            cells = [s.name, f"{pair[0]} − {pair[1]}"]
            for differences in found:
                if pair in differences:
                    own = differences[pair]
                    apart = own.difference
                    cells.append(with_ends(s, apart.estimate, apart, signed=True))
                    cells.append(number(own.effect, digits=2, signed=True))
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="pairs",
        nav="Pairs",
        title="Every pair of systems",
        lead="Differences of mean scores, question by question. Each interval holds on its own; of "
        "many, some exclude 0 by chance.",
        blocks=(
            _grid(
                ("score", "first − second", "difference", "sd", "adjusted", "adjusted, sd"),
                rows,
                "Differences between systems on equally correct answers",
            ),
        ),
    )


# Verdicts, order, right from wrong


def _thresholds(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        for place, system in enumerate(s.raw.verdicts.systems):
            cells = [s.name, system]
            for bias in both(s):
                right = bias.verdicts.pass_correct[place]
                cells.append(percent(None if right is None else 1 - right))
                cells.append(percent(bias.verdicts.pass_wrong[place]))
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="thresholds",
        brief=True,
        nav="Verdicts",
        title="Verdicts at a threshold",
        lead="An answer counts as correct if its score reaches the threshold. Where such verdicts "
        "contradict people more for one system than for another, its style is rewarded or "
        "punished.",
        blocks=(
            _said(report, threshold_sentence),
            legacy.on_paper(
                _grid(
                    (
                        "score",
                        "system",
                        "correct, fail",
                        "wrong, pass",
                        "adjusted: correct, fail",
                        "wrong, pass",
                    ),
                    rows,
                    "Verdicts that contradict people, as share of the correct and of the wrong "
                    "answers",
                )
            ),
        ),
    )


def _order(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        found = [bias.inversions for bias in both(s) if bias.inversions is not None]
        if not found:
            continue
        for place, system in enumerate(found[0].systems):
            cells = [s.name, system, f"{score(found[0].correctness[place])}%"]
            cells += [value(s, order.mean_scores[place]) for order in found]
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="order",
        brief=True,
        nav="Order",
        title="Order of the systems",
        lead="Who is best, by people and by mean score, over all questions with a verdict and a "
        "score of every system. Systems that lie close may change places by chance.",
        blocks=(
            _said(report, order_sentence),
            legacy.on_paper(
                _grid(
                    ("score", "system", "correct, by people", "mean score", "adjusted"),
                    rows,
                    "Systems by people and by score",
                )
            ),
        ),
    )


def _auc(report: AnswerBiasResults) -> d.Section | None:
    rows: list[tuple[str, ...]] = []
    for s in report.scorers:
        if s.raw.auc is None:
            continue
        pooled = (estimate(bias.auc, digits=3) for bias in both(s))
        within = (estimate(bias.auc_within, digits=3) for bias in both(s))
        rows.append((s.name, "all systems", *pooled))
        rows.append((s.name, "within systems", *within))
        for system in s.raw.system_aucs:
            own = (number(bias.system_aucs.get(system), digits=3) for bias in both(s))
            rows.append((s.name, system, *own))
    if not rows:
        return None
    return d.Section(
        id="auc",
        nav="Right from wrong",
        title="Telling right from wrong",
        lead="AUC is the probability that a correct answer scores above a wrong one: 0.5 is "
        "chance, 1 perfect. Over all systems it also moves by putting systems side by side. The "
        "AUC within systems compares answers of one system only: it says whether a score tells "
        "right from wrong.",
        blocks=(
            _grid(
                ("score", "system", "AUC", "adjusted"),
                rows,
                "AUC of correct against wrong answers",
            ),
        ),
    )


def _texts(report: AnswerBiasResults) -> d.Section | None:
    found = report.text_statistics
    if not found:
        return None
    return d.Section(
        id="text",
        nav="Texts",
        title="The texts",
        lead="How the correct answers of the systems differ before any score sees them.",
        note=" ".join(map(str, text_key(found))),
        blocks=(
            d.Pictures(items=text_figures(found, of="Correct answers")),
            d.Table(
                frame=text_frame(found),
                caption="Statistics of the correct answers, against the references",
            ),
        ),
    )


# How to read it, what to doubt, what it was made with


def _reading(report: AnswerBiasResults) -> d.Section:
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
    if report.config.adjust:
        rows.append(
            (
                "What does the adjustment do?",
                "It learns from correct answers how the score changes with length, and subtracts "
                "that; each answer is adjusted by a fit that has not seen its question. It is "
                "worth using if the spread falls and the AUC does not. Where one system alone "
                "writes answers of some length, what is its own and what is length cannot be told "
                "apart, and both go.",
            )
        )
    if report.config.threshold is None:
        rows.append(
            (
                "Where do the thresholds come from?",
                "Each is the one that separates correct from wrong answers best on these data. On "
                "new answers it will do a little worse.",
            )
        )
    return legacy.reading(rows)


def _caveats(report: AnswerBiasResults) -> d.Section:
    noted: list[tuple[str, str]] = []
    made: list[tuple[str, Iterable[object]]] = []
    for s in report.scorers:
        noted += [(s.name, note) for note in s.notes]
        made += [(what, found.assumptions) for what, found in _intervals(s)]
    for system in report.systems:
        if system.n_empty:
            noted.append((system.name, f"without {counted(system.n_empty, 'empty answer')}"))
    noted += [("texts", text) for text in legacy.note_rows(text_notes(report.text_statistics))]
    return legacy.caveats(
        made,
        [row for row in noted if row[1] not in report.warnings],
        warned=bool(report.warnings),
    )


def _intervals(scorer: AnswerScorer) -> Iterator[tuple[str, Interval]]:
    """Return an interval of each kind, for what it assumes."""
    bias: AnswerBias = scorer.raw
    kinds = (
        ("unfairness", bias.unfairness),
        *(("mean scores", mean) for mean in bias.means),
        *(("differences", pair.difference) for pair in bias.differences),
        ("AUC", bias.auc),
        ("AUC within systems", bias.auc_within),
    )
    return ((what, found) for what, found in kinds if found is not None)


def _data(report: AnswerBiasResults) -> d.Section:
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
    audit = (
        ("threshold", "the best, per score" if c.threshold is None else f"{c.threshold:g}"),
        ("adjustment", f"yes, {c.folds} folds of questions" if c.adjust else "no"),
        ("ddof of the unfairness", str(c.ddof)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    scores = []
    for s in report.scorers:
        about = {**s.settings, "threshold": value(s, s.raw.threshold)}
        if s.adjusted is not None:
            about["threshold of the adjusted score"] = value(s, s.adjusted.threshold)
            about["adjustment"] = s.adjustment
        scores.append((s.name, settings(about)))
    tables = (("Data", "data", data), ("Audit", "setting", audit), ("Scores", "score", scores))
    rows = (
        (
            s.name,
            *map(count, (s.n_answers, s.n_correct, s.n_wrong, s.n_empty)),
            *map(number, (s.mean_words, s.mean_words_correct)),
        )
        for s in report.systems
    )
    columns = (
        "system", "answers", "correct", "wrong", "empty", "mean words", "of correct ones",
    )  # fmt: skip
    systems = legacy.grid(columns, rows, "Answers of each system")
    return legacy.data(tables, report.environment, report.created, systems)


def evidence_section(report: AnswerBiasResults) -> d.Section | None:
    """Return the questions behind each score's verdict."""
    return case_section(
        ((scorer.name, _cases(scorer)) for scorer in report.scorers if scorer.evidence),
        title="The questions behind it",
        lead="Both answers are correct, so a fair score would give them the same. Words that the "
        "other answer lacks are marked.",
    )


def _cases(scorer: AnswerScorer) -> Iterator[d.Block]:
    high, low = scorer.evidence[0].first.label, scorer.evidence[0].second.label
    words = CaseWords(
        noun="question",
        adds="difference",
        sides=(shorten(high, 24), shorten(low, 24)),
        got="score",
        write=lambda value: number(value, digits=3),
        add=lambda value: number(value, digits=3, signed=True),
        about="Reference",
    )
    caption = f"Questions in which {scorer.name} parts correct answers most"
    return case_blocks(scorer.evidence, words, caption=caption)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AnswerBiasReport(Report, AnswerBiasResults):
    """The result of an audit of correctness scores, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        return legacy.frames(
            self,
            self.page(),
            queries=(row for scorer in self.scorers for row in self._scores(scorer)),
            cases=(
                row
                for scorer in self.scorers
                for row in legacy.cases(scorer.evidence, scorer=scorer.name)
            ),
        )

    def _scores(self, scorer: AnswerScorer) -> Iterator[dict[str, Any]]:
        """Yield every answer with its score, and its adjusted score where there is one."""
        columns = {"score": scorer.scores}
        if len(scorer.adjusted_scores):
            columns["adjusted"] = scorer.adjusted_scores
        ids = zip(self.question_ids, self.answer_systems, strict=True)
        for at, (question, system) in enumerate(ids):
            row = {"scorer": scorer.name, "question_id": question, "system": system}
            yield row | {name: float(scores[at]) for name, scores in columns.items()}

    def _outcomes(self) -> Iterator[Outcome]:
        for scorer in self.scorers:
            if (found := scorer.finding) is not None:
                useless = found.use is AnswerUse.USELESS
                yield Outcome(
                    scorer.name,
                    (found.use if useless else found.style).value,
                    "AUC within systems" if useless else "unfairness",
                    scorer.raw.auc_within if useless else scorer.raw.unfairness,
                    digits=3,
                    words={"rewards": "rewards style", "slight": "rewards style slightly"}.get(
                        "" if useless else found.style.value, ""
                    ),
                )
