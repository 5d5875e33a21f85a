"""What the report on correctness scores says in sentences, and how it writes their numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace

from rag_sourcebias.answers.data import (
    AdjustmentCode,
    AnswerBias,
    AnswerBiasReport,
    AnswerFinding,
    AnswerScorer,
    AnswerStyle,
    AnswerUse,
    RankInversions,
    SystemDifference,
    extremes,
)
from rag_sourcebias.answers.measure import AUC_LOSS, answer_finding
from rag_sourcebias.core.values import Interval
from rag_sourcebias.report.blocks import (
    MISSING,
    Bar,
    First,
    FirstRow,
    count,
    counted,
    data_argument,
    ends_about_zero,
    estimate,
    join,
    number,
    opened,
    roughly,
    shorten,
)

_NAME = 40  # characters of a system in a sentence
_LONG = 48  # and of a system or score in the headline
_FIRST_ROWS = 6  # scores of a first screen
_WEAK = 0.1  # correlations below are called none
_PAIRS, _SCORES = 3, 2  # pairs of systems and scores that are named

# Of one score, of several, and in a few words.
_STYLES = {
    AnswerStyle.REWARDS: ("rewards a system's style", "reward a system's style", "rewards style"),
    AnswerStyle.SLIGHT: (
        "rewards style only slightly",
        "reward style only slightly",
        "rewards style, but slightly",
    ),
    AnswerStyle.ALIKE: (
        "shows no more than a small effect of style",
        "show no more than a small effect of style",
        "no more than a small effect of style",
    ),
    AnswerStyle.CANNOT_TELL: (
        "may reward style or not: these are too few to tell",
        "may reward style or not: these are too few to tell",
        "cannot tell whether style counts",
    ),
    AnswerStyle.TOO_FEW: (
        "may reward style or not: these are too few for an interval",
        "may reward style or not: these are too few for an interval",
        "too few questions",
    ),
}
# Of the adjusted score.
_LEFT: dict[AnswerStyle | None, str] = {
    AnswerStyle.REWARDS: "still measurable",
    AnswerStyle.SLIGHT: "measurable, but small",
    AnswerStyle.ALIKE: "small, if anything",
}
_ADJUSTMENTS = {
    AdjustmentCode.CUTS: "cuts the spread",
    AdjustmentCode.COSTS: "lowers, or may lower, the AUC within systems",
    AdjustmentCode.FAILS: "does not help",
    AdjustmentCode.IDLE: "finds no clear effect to remove",
}


def both(scorer: AnswerScorer) -> tuple[AnswerBias, ...]:
    """Return what the score rewards as it is and, if it is adjusted, adjusted."""
    return (scorer.raw,) if scorer.adjusted is None else (scorer.raw, scorer.adjusted)


def finding_of(scorer: AnswerScorer) -> AnswerFinding:
    """Return the verdict; that of a report of version 0.1 follows from its intervals."""
    return scorer.finding or answer_finding(scorer)


def _lead(bias: AnswerBias) -> SystemDifference | None:
    """Return who gains most over whom, where the interval of their difference excludes 0."""
    widest = max(bias.differences, key=lambda d: abs(d.difference.estimate), default=None)
    if widest is None or not widest.difference.excludes(0):
        return None
    if (found := widest.difference).estimate > 0:
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
    sizes = (*(bias.spread.within_sd for bias in both(scorer)), scorer.raw.spread.unfairness)
    size = next(filter(None, sizes), math.nan)
    return min(6, max(0, math.ceil(1.5 - math.log10(size)))) if math.isfinite(size) else 3


def ends(scorer: AnswerScorer, found: Interval | None) -> str:
    """Return the ends of an interval in the unit of a score; nothing of none."""
    return "" if found is None else ends_about_zero(found, digits=_digits(scorer))


def with_ends(scorer: AnswerScorer, amount: float, found: Interval | None) -> str:
    """Return a value in the unit of a score, with the ends of its interval if there is one."""
    return f"{value(scorer, amount)} {ends(scorer, found)}".rstrip()


def unfairness(scorer: AnswerScorer, bias: AnswerBias) -> str:
    """Return the standard deviation of the systems' means, with its interval if there is one."""
    return with_ends(scorer, bias.spread.unfairness, bias.unfairness)


def in_sds(bias: AnswerBias, length: float) -> str:
    """Return a length on the scale of a score in its standard deviations within systems."""
    sd = bias.spread.within_sd
    return number(None if sd is None else length / sd, digits=2)


def percent(share: float | None, *, signed: bool = False) -> str:
    """Return a share as a percentage, with a decimal where it is small."""
    digits = 0 if not share or abs(share) >= 0.0995 else 1
    return MISSING if share is None else f"{number(100 * share, digits=digits, signed=signed)}%"


def change_of_spread(scorer: AnswerScorer) -> str:
    """Return how much wider the systems lie apart by the adjusted score."""
    return percent(None if scorer.spread_cut is None else -scorer.spread_cut, signed=True)


# The headline: no more certain than its intervals


def headline(report: AnswerBiasReport) -> str:
    """Return what a reader in a hurry should take away."""
    found = report.scorers
    if not found:
        return "No score was examined."
    return " ".join(
        filter(None, (_useless(found), _styles(report), _gains(found), _adjustments(found)))
    )


def _useless(found: Sequence[AnswerScorer]) -> str:
    """Name the scores that do not tell right from wrong: what else they reward matters little."""
    group = [s for s in found if finding_of(s).use is AnswerUse.USELESS]
    verb = "is useless: it does" if len(group) == 1 else "are useless: they do"
    return f"{_who(group, of=len(found))} {verb} not tell right from wrong." if group else ""


def _styles(report: AnswerBiasReport) -> str:
    found, k = report.scorers, len(report.systems)
    sizes = sorted({s.raw.spread.n_questions for s in found})
    span = f"{count(sizes[0])} to " * (len(sizes) > 1) + counted(sizes[-1], "question")
    who = {1: "the system", 2: "both systems"}.get(k, f"all {k} systems")
    clauses = [
        f"{_who(group, of=len(found))} {one if len(group) == 1 else many}"
        for style, (one, many, _) in _STYLES.items()
        if (group := [s for s in found if finding_of(s).style is style])
    ]
    return f"On {span} that {who} answered correctly, {'; '.join(clauses)}."


def _who(group: Sequence[AnswerScorer], *, of: int) -> str:
    if len(group) > _SCORES:
        return f"all {of} scores" if len(group) == of else f"{len(group)} of {of} scores"
    return join([shorten(s.name, _LONG) for s in group])


def _gains(found: Sequence[AnswerScorer]) -> str:
    """Say whose equally correct answers score highest and lowest, where that is clear."""
    groups: dict[tuple[str, str], list[tuple[SystemDifference, AnswerScorer]]] = {}
    for s in found:
        lead, style = _lead(s.raw), finding_of(s).style
        if lead and style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT):
            groups.setdefault((lead.first, lead.second), []).append((lead, s))
    order = sorted(groups.values(), key=len, reverse=True)
    shown = order if len(order) < 3 else order[:1]
    clauses = [_gain(group, under=len(found) > 1) for group in shown]
    if rest := sum(map(len, order[len(shown) :])):
        clauses.append(f"under the other {rest}, other systems gain most")
    return f"Equally correct, {'; '.join(clauses)}." if clauses else ""


def _gain(group: Sequence[tuple[SystemDifference, AnswerScorer]], *, under: bool) -> str:
    lead, most = max(group, key=lambda row: row[0].effect or 0.0)
    text = (
        f"answers of {shorten(lead.first, _LONG)} score {_gap(most, lead)} above those of "
        f"{shorten(lead.second, _LONG)}"
    )
    if under:
        text += f" under {shorten(most.name, _LONG)}"
    if others := len(group) - 1:
        text += f", and less far under {'one other' if others == 1 else others}"
    return text


def _gap(scorer: AnswerScorer, lead: SystemDifference) -> str:
    """Return how far the extremes lie apart: ``3.50 [3.42, 3.57] standard deviations``."""
    sd, found = scorer.raw.spread.within_sd, lead.difference
    if sd is None:
        return value(scorer, found.estimate)
    return f"{estimate(found, scale=1 / sd, digits=2)} standard deviations"


def _adjustments(found: Sequence[AnswerScorer]) -> str:
    parts = []
    tried = [s for s in found if finding_of(s).style is not AnswerStyle.TOO_FEW]
    for code, does in _ADJUSTMENTS.items():
        group = [s for s in tried if finding_of(s).adjustment is code]
        if not group:
            continue
        cuts, cost = "", ""
        if code is AdjustmentCode.CUTS:
            sizes = sorted(s.spread_cut or 0.0 for s in group)
            cuts = f" by {' to '.join(dict.fromkeys(map(percent, (sizes[0], sizes[-1]))))}"
            if all(s.auc_change_within is not None for s in group):
                cost = ", at no measurable loss of AUC within systems"
        under = f" under {_who(group, of=len(found))}" if len(found) > 1 else ""
        parts.append(f"{does}{cuts}{under}{cost}")
    if not parts:
        return ""
    text = f"The adjustment {'; it '.join(parts)}."
    if over := {s: name for s in tried if (name := _overshoots(s))}:
        under = f"Under {_who(list(over), of=len(found))} it" if len(found) > 1 else "It"
        names = [shorten(name, _LONG) for name in dict.fromkeys(over.values())]
        text += f" {under} goes too far: what is left favours {join(names)}."
    return text


def _overshoots(scorer: AnswerScorer) -> str:
    """Return the system that an adjustment favours which helps but goes too far, or nothing."""
    finding, before = finding_of(scorer), _lead(scorer.raw)
    now = None if scorer.adjusted is None else _lead(scorer.adjusted)
    helps = finding.adjustment is AdjustmentCode.CUTS and finding.left is AnswerStyle.REWARDS
    return now.first if helps and before and now and now.first != before.first else ""


# The first screen


def first(report: AnswerBiasReport) -> First:
    """Return the first screen: counts of questions, the verdict, and what to do next."""
    found = report.scorers
    if not found:
        return First(answer="No score was examined.")
    one, styles = len(found) == 1, {finding_of(s).style for s in found}
    rewards = AnswerStyle.REWARDS in styles
    rows = _system_rows(found[0]) if one else _scorer_rows(report)
    useless = [s for s in found if finding_of(s).use is AnswerUse.USELESS]
    doubts = [f"{_who(useless, of=len(found))} cannot tell right from wrong answers."]
    open_ = rewards or AnswerStyle.SLIGHT in styles
    return First(
        answer=_first_answer(report, found[0]) if one else _first_tally(found),
        verdict=_first_verdict(found[0]) if one else "",
        standing={AnswerStyle.REWARDS: "other", AnswerStyle.ALIKE: "even"}.get(
            finding_of(found[0]).style, ""
        )
        if one
        else "",
        doubts=tuple(doubts) if useless else (),
        caption=("Mean score" if one else "Questions, all answers correct") if rows else "",
        rows=rows,
        why="Check a pass mark:" if open_ else "With more questions:",
        command=f"rag-sourcebias audit answers {_again(report)} "
        + ("--threshold 0.7" if open_ else "--report report"),
    )


def _again(report: AnswerBiasReport) -> str:
    """Return the data and the scores as the command takes them."""
    data = data_argument(report.name, "answers.csv")
    scores = [
        f"--{'encoder' if one.settings else 'judge'} {data_argument(one.name, 'MODEL')}"
        for one in report.scorers[:2]
    ]
    return data if data == "--sample" else " ".join((data, *scores))


def _by_question(report: AnswerBiasReport, scorer: AnswerScorer) -> list[dict[str, float]]:
    """Return the scores by system of each question that every system answered correctly."""
    systems, table = len(report.systems), dict[str, dict[str, float]]()
    rows = zip(
        report.question_ids, report.answer_systems, report.correct, scorer.scores, strict=True
    )
    for question, system, correct, score in rows:
        if correct == 1 and math.isfinite(score):
            table.setdefault(question, {})[system] = float(score)
    return [scores for scores in table.values() if len(scores) == systems]


def _counts(
    report: AnswerBiasReport, scorer: AnswerScorer, ends: tuple[str, str]
) -> tuple[int, int, int]:
    """Count questions in which the first system scores above the second, below it, or neither."""
    high, low = ends
    apart = [scores[high] - scores[low] for scores in _by_question(report, scorer)]
    return sum(d > 0 for d in apart), sum(d < 0 for d in apart), sum(d == 0 for d in apart)


def _first_answer(report: AnswerBiasReport, scorer: AnswerScorer) -> str:
    who = shorten(scorer.name, _NAME)
    if (ends := extremes(scorer.raw)) is None:
        return f"{who}: one system alone has no other to be compared with."
    above, below, ties = _counts(report, scorer, ends)
    if not (total := above + below + ties):
        return "No question was answered correctly by every system."
    high, low = (shorten(name, _NAME) for name in ends)
    if below > above:
        high, low, above = low, high, below
    tied = f" ({count(ties)} {'is a tie' if ties == 1 else 'are ties'})" * bool(ties)
    return (
        f"In {count(above)} of {counted(total, 'question')} that all systems answered correctly, "
        f"{who} scores the answer of {high} above that of {low}{tied}."
    )


def _first_verdict(scorer: AnswerScorer) -> str:
    """Return the verdict of one score without a measure, a test or an interval."""
    finding, who = finding_of(scorer), shorten(scorer.name, _NAME)
    if len(scorer.raw.spread.systems) < 2:
        return ""
    n = counted(scorer.raw.spread.n_questions, "question")
    if finding.style in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW):
        least = "at least" if finding.style is AnswerStyle.TOO_FEW else "about"
        more = f"; {least} {roughly(finding.n_needed)} are needed" if finding.n_needed else ""
        return f"Cannot tell whether {who} rewards style: {n} are too few{more}."
    return {
        AnswerStyle.REWARDS: f"Verdict: {who} rewards how a system writes, not only whether it is "
        "right.",
        AnswerStyle.SLIGHT: f"Verdict: {who} rewards how a system writes, but only slightly.",
    }.get(finding.style, f"Verdict: how a system writes changes {who} little, if at all.")


def _system_rows(scorer: AnswerScorer) -> tuple[FirstRow, ...]:
    """Return the mean score of each system's correct answers, the highest first."""
    spread = scorer.raw.spread
    found = sorted(
        zip(spread.means, spread.systems, scorer.raw.means, strict=True), key=lambda row: -row[0]
    )
    if len(found) < 2:
        return ()
    ends = [end for mean, _, i in found for end in ((i.lower, i.upper) if i else (mean,))]
    span = (min(ends), max(ends)) if max(ends) > min(ends) else (min(ends) - 1, max(ends) + 1)
    middle = [found[i] for i in sorted({0, 1, len(found) - 2, len(found) - 1})]
    style = finding_of(scorer).style
    solid = style in (AnswerStyle.REWARDS, AnswerStyle.SLIGHT)
    return tuple(
        FirstRow(
            name=shorten(name, _NAME),
            bar=Bar.over(
                (i.lower, mean, i.upper) if i else (mean,) * 3,
                span,
                side="even"
                if not solid
                else "other"
                if at == 0
                else "baseline"
                if last
                else "even",
                solid=solid,
            ),
            text=value(scorer, mean),
        )
        for at, (mean, name, i) in enumerate(middle)
        for last in (at == len(middle) - 1,)
    )


def _scorer_rows(report: AnswerBiasReport) -> tuple[FirstRow, ...]:
    rows = []
    for scorer in report.scorers[:_FIRST_ROWS]:
        if (ends := extremes(scorer.raw)) is None:
            continue
        above, below, ties = _counts(report, scorer, ends)
        high, low = (shorten(name, _NAME // 2) for name in ends)
        rows.append(
            FirstRow(
                name=f"{shorten(scorer.name, _NAME)}: {high} over {low}",
                parts=(
                    ("first higher", above, "other"),
                    ("tie", ties, "even"),
                    ("second higher", below, "baseline"),
                ),
                text=f"{count(above)} / {count(ties)} / {count(below)}",
            )
        )
    return tuple(rows)


def _first_tally(found: Sequence[AnswerScorer]) -> str:
    clauses = []
    for style, (one, many, _) in _STYLES.items():
        group = [s for s in found if finding_of(s).style is style]
        if group and style in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW):
            clauses.append(f"for {_who(group, of=len(found))} there are too few questions to tell")
        elif group:
            clauses.append(f"{_who(group, of=len(found))} {one if len(group) == 1 else many}")
    return f"{opened('; '.join(clauses))}."


# Sentences about one score


def sentence(scorer: AnswerScorer, *, brief: bool = False) -> str:
    """Return everything about one score, without its name; ``brief`` for beside its numbers."""
    told = [
        _use_sentence(scorer),
        _style_sentence(scorer, brief=brief),
        _length_sentence(scorer.raw),
        _adjustment_sentence(scorer, brief=brief),
        *(() if brief else (threshold_sentence(scorer), order_sentence(scorer))),
    ]
    return " ".join(filter(None, told))


def in_brief(scorer: AnswerScorer) -> str:
    """Return the verdict in a few words."""
    lead, finding = _lead(scorer.raw), finding_of(scorer)
    text = _STYLES[finding.style][2]
    if finding.style is AnswerStyle.REWARDS and lead:
        text += f": favours {shorten(lead.first, _NAME)} most"
    elif len(scorer.raw.spread.systems) < 2:
        text = "one system only"
    return f"useless: {text}" if finding.use is AnswerUse.USELESS else text


def _use_sentence(scorer: AnswerScorer) -> str:
    said = {
        AnswerUse.USELESS: "The score is useless: it does not tell right from wrong",
        AnswerUse.CANNOT_TELL: "Cannot tell whether the score tells right from wrong",
    }.get(finding_of(scorer).use)
    return (
        f"{said} (AUC within systems {estimate(scorer.raw.auc_within, digits=3)})." if said else ""
    )


def _style_sentence(scorer: AnswerScorer, *, brief: bool) -> str:
    raw, finding, lead = scorer.raw, finding_of(scorer), _lead(scorer.raw)
    size, needed = raw.spread.unfairness, finding.n_needed
    where = questions = counted(raw.spread.n_questions, "question")
    if not brief:
        sds = (
            f", {in_sds(raw, size)} standard deviations within systems"
            if raw.spread.within_sd is not None
            else ""
        )
        where = f"unfairness {unfairness(scorer, raw)}{sds}; {questions}"
    if finding.style is AnswerStyle.TOO_FEW:
        if len(raw.spread.systems) < 2:
            return "With one system there is no other style to compare with."
        plan = f"; {counted(needed, 'question')} are needed" if needed else ""
        return (
            f"All systems answered only {questions} correctly: too few for an interval, so that "
            f"the unfairness of {value(scorer, size)} says little{plan}."
        )
    if finding.style is AnswerStyle.ALIKE:
        return f"Equally correct answers of all systems score much alike ({where})."
    if finding.style is AnswerStyle.CANNOT_TELL:
        plan = f" About {counted(needed, 'question')} are needed to tell." if needed else ""
        return (
            "Cannot tell whether equally correct answers score alike: the interval of the "
            f"unfairness holds 0 and more than small differences ({where}).{plan}"
        )
    if lead is None:
        return (
            f"Equally correct answers do not score alike ({where}), but which system gains most "
            "cannot be told."
        )
    slight = " only" if finding.style is AnswerStyle.SLIGHT else ""
    return (
        f"Equally correct answers of {shorten(lead.first, _NAME)} score{slight} "
        f"{_gap(scorer, lead)} above those of {shorten(lead.second, _NAME)} ({where})."
    )


def _length_sentence(bias: AnswerBias) -> str:
    rho = bias.length_correlation
    if rho is None:
        return ""
    text = (
        f"The longer an answer, the {'lower' if rho < 0 else 'higher'} its score"
        if abs(rho) >= _WEAK
        else "Length hardly matters"
    )
    return f"{text} (Spearman {number(rho, digits=2)} among correct answers to the same question)."


def _adjustment_sentence(scorer: AnswerScorer, *, brief: bool) -> str:
    """Return what the adjusted score gains and costs; ``brief`` leaves its unfairness out."""
    after, cut = scorer.adjusted, scorer.spread_cut
    if after is None or finding_of(scorer).style is AnswerStyle.TOO_FEW:
        return ""
    now = unfairness(scorer, after)
    spread = f"leaves the spread of the systems at {now}"
    if cut is not None:
        spread = f"{'cuts' if cut >= 0 else 'widens'} the spread of the systems by "
        spread += percent(abs(cut)) + ("" if brief else f", to {now}")
    worth = _worth(scorer, after)
    auc = _auc_clause(scorer.raw, after, scorer.auc_change_within)
    return f"The adjustment {spread}; {auc}.{worth and f' {worth}'}"


def _auc_clause(raw: AnswerBias, after: AnswerBias, change: Interval | None) -> str:
    if raw.auc_within is None or after.auc_within is None:
        return "whether it still tells right from wrong within systems cannot be tested here"
    if change is None:
        return f"the AUC within systems stays at {estimate(after.auc_within, digits=3)}"
    way = ("rises" if change.estimate > 0 else "falls") if change.excludes(0) else "goes"
    old, new = (number(auc.estimate, digits=3) for auc in (raw.auc_within, after.auc_within))
    return (
        f"the AUC within systems {way} from {old} to {new} (change "
        f"{estimate(change, digits=3, signed=True)}, paired by question)"
    )


def _worth(scorer: AnswerScorer, after: AnswerBias) -> str:
    """Say whether the adjustment is worth it, what it leaves behind, and in whose favour."""
    finding, change, lead = finding_of(scorer), scorer.auc_change_within, _lead(after)
    if finding.adjustment is AdjustmentCode.COSTS:
        if change is None or not change.excludes(0):
            return "The fall may be chance, but nothing shows that the adjusted score is as good."
        size = "a little less well" if change.estimate > -AUC_LOSS else "less well"
        return f"It tells right from wrong {size}: weigh that against the spread."
    if finding.adjustment is AdjustmentCode.FAILS:
        return "It does not help here."
    if finding.adjustment is AdjustmentCode.IDLE:
        return "No clear effect was there to remove."
    if finding.left not in _LEFT:
        return ""
    whom = ""
    if lead and lead.effect is not None and finding.left is not AnswerStyle.ALIKE:
        whom = (
            f": {shorten(lead.first, _NAME)} over {shorten(lead.second, _NAME)} by "
            f"{number(lead.effect, digits=2)} standard deviations"
        )
    return f"What is left is {_LEFT[finding.left]}{whom}."


def threshold_sentence(scorer: AnswerScorer) -> str:
    """Return on how many questions equally correct answers get different verdicts."""
    verdicts = [bias.verdicts for bias in both(scorer)]
    if not verdicts[0].n_questions or len(verdicts[0].systems) < 2:
        return ""
    shown = [
        f"on {percent(v.n_flipped / v.n_questions)} of the questions ({count(v.n_flipped)} of "
        f"{count(v.n_questions)})"
        for v in verdicts
    ]
    marks = [value(scorer, bias.threshold) for bias in both(scorer)]
    adjusted = f"; adjusted, with one of {marks[1]}, {shown[1]}" if len(marks) > 1 else ""
    return (
        f"With a pass mark of {marks[0]}, equally correct answers get different verdicts "
        f"{shown[0]}{adjusted}."
    )


def order_sentence(scorer: AnswerScorer) -> str:
    """Return which pairs of systems the score puts in another order than people do."""
    found = [bias.inversions for bias in both(scorer)]
    if found[0] is None or not found[0].n_pairs:
        return ""
    told = (_order(order) for order in found if order is not None and order.n_pairs)
    return f"The score orders {'; adjusted, it orders '.join(told)}."


def _order(found: RankInversions) -> str:
    if not (n := len(found.inversions)):
        pairs = "the one pair" if found.n_pairs == 1 else f"all {found.n_pairs} pairs"
        return f"{pairs} of systems as people do"
    named = _pairs(found.inversions)
    if found.beyond_chance is not None:
        named += f"; beyond chance: {_pairs(found.beyond_chance) or 'none'}"
    return f"{n} of {found.n_pairs} pairs of systems differently from people ({named})"


def _pairs(pairs: Sequence[tuple[str, str]]) -> str:
    """Name pairs of systems: better by people, but lower by score."""
    names = [f"{shorten(a, _NAME)} under {shorten(b, _NAME)}" for a, b in pairs[:_PAIRS]]
    more = len(pairs) - len(names)
    return f"{', '.join(names)} and {more} more" if more else join(names)
