"""What the report on correctness scores says in sentences, and how it writes their numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace

from rag_sourcebias.answers.data import (
    AdjustmentCode,
    AnswerBias,
    AnswerBiasResults,
    AnswerFinding,
    AnswerScorer,
    AnswerStyle,
    AnswerUse,
    RankInversions,
    SystemDifference,
    extremes,
)
from rag_sourcebias.answers.measure import answer_finding
from rag_sourcebias.core.finding import MISSING, Interval, data_argument, number, shorten
from rag_sourcebias.report.document import Bar, First, FirstRow, Standing
from rag_sourcebias.report.legacy import (
    count,
    counted,
    ends_about_zero,
    estimate,
    join,
    next_step,
    roughly,
)

_NAME = 40  # characters of a system or score in a sentence
_WEAK = 0.1  # correlations below are called none
_PAIRS = 3  # pairs of systems that are named

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


def _lead(bias: AnswerBias) -> SystemDifference | None:
    """Return who gains most over whom, where the interval of their difference excludes 0."""
    widest = max(bias.differences, key=lambda d: abs(d.difference.estimate), default=None)
    if widest is None or not widest.difference.excludes(0):
        return None
    found = widest.difference
    if found.estimate > 0:
        return widest
    return SystemDifference(
        first=widest.second,
        second=widest.first,
        difference=replace(found, estimate=-found.estimate, lower=-found.upper, upper=-found.lower),
        effect=None if widest.effect is None else -widest.effect,
    )


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


def percent(share: float | None, *, signed: bool = False) -> str:
    """Return a share as a percentage, with a decimal where it is small."""
    if share is None:
        return MISSING
    digits = 0 if not share or abs(share) >= 0.0995 else 1
    return f"{number(100 * share, digits=digits, signed=signed)}%"


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
    lead = _lead(raw)
    if lead and finding.style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT):
        text += f" Equally correct, {_gain(scorer, lead)}."
    if finding.adjustment is AdjustmentCode.CUTS:
        text += f" The adjustment cuts the spread of the systems by {percent(scorer.spread_cut)}."
    return text


def _gain(scorer: AnswerScorer, lead: SystemDifference) -> str:
    """Say how far the extremes lie apart."""
    sd, found = scorer.raw.spread.within_sd, lead.difference
    gap = value(scorer, found.estimate)
    if sd is not None:
        gap = f"{estimate(found, scale=1 / sd, digits=2)} standard deviations"
    return (
        f"answers of {shorten(lead.first, _NAME)} score {gap} above those of "
        f"{shorten(lead.second, _NAME)}"
    )


# The first screen


def first(report: AnswerBiasResults) -> First:
    """Return the first screen: counts of questions, the verdict, and what to do next."""
    found = report.scorers
    if not found:
        return First(answer="No score was examined.")
    one = found[0] if len(found) == 1 else None
    rows = _system_rows(one) if one else ()
    clear = any(finding_of(s).style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT) for s in found)
    useless = [s.name for s in found if finding_of(s).use is AnswerUse.USELESS]
    doubts = (f"{join(useless)} cannot tell right from wrong answers.",) if useless else ()
    command = f"rag-sourcebias audit answers {_again(report)}"
    return First(
        answer=" ".join(_first_answer(report, s) for s in found),
        verdict=_first_verdict(one) if one else "",
        standing=_STANDINGS.get(finding_of(one).style, "") if one else "",
        doubts=doubts,
        caption="Mean score" if rows else "",
        rows=rows,
        next=next_step("Check a pass mark:", f"{command} --threshold 0.7")
        if clear
        else next_step("With more questions:", f"{command} --report report"),
    )


_STANDINGS: dict[AnswerStyle, Standing] = {AnswerStyle.REWARDS: "other", AnswerStyle.ALIKE: "even"}


def _again(report: AnswerBiasResults) -> str:
    """Return the data and the scores as the command takes them."""
    data = data_argument(report.name, "answers.csv")
    if data == "--sample":
        return data
    options = [
        f"--{'encoder' if s.settings else 'judge'} {data_argument(s.name, 'MODEL')}"
        for s in report.scorers
    ]
    return " ".join([data, *options])


def _first_answer(report: AnswerBiasResults, scorer: AnswerScorer) -> str:
    """Say in how many questions one of the two extreme systems scores above the other."""
    who, names = shorten(scorer.name, _NAME), extremes(scorer.raw)
    if names is None:
        return f"{who}: one system alone has no other to be compared with."
    high, low = names
    apart = [scores[high] - scores[low] for scores in _by_question(report, scorer)]
    above, below = sum(d > 0 for d in apart), sum(d < 0 for d in apart)
    if below > above:
        high, low, above = low, high, below
    return (
        f"In {count(above)} of {counted(len(apart), 'question')} that all systems answered "
        f"correctly, {who} scores the answer of {shorten(high, _NAME)} above that of "
        f"{shorten(low, _NAME)}."
    )


def _by_question(report: AnswerBiasResults, scorer: AnswerScorer) -> list[dict[str, float]]:
    """Return the scores by system of each question that every system answered correctly."""
    table: dict[str, dict[str, float]] = {}
    rows = zip(
        report.question_ids, report.answer_systems, report.correct, scorer.scores, strict=True
    )
    for question, system, correct, score in rows:
        if correct == 1 and math.isfinite(score):
            table.setdefault(question, {})[system] = float(score)
    return [scores for scores in table.values() if len(scores) == len(report.systems)]


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
    solid = finding_of(scorer).style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT)
    rows = []
    for at, (mean, name, _) in enumerate(found):
        side = "even"
        if solid and at == 0:
            side = "other"
        elif solid and at == len(found) - 1:
            side = "baseline"
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
    raw, finding, lead = scorer.raw, finding_of(scorer), _lead(scorer.raw)
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
    told = [_order(order) for order in orders if order is not None and order.n_pairs]
    return f"The score orders {'; adjusted, it orders '.join(told)}." if told else ""


def _order(found: RankInversions) -> str:
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
