"""What a judged evaluation says in words: the headline, each mean, and how to read the numbers."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, TypeAlias

from rag_sourcebias.core.values import JUDGE_NOTES, Interval
from rag_sourcebias.judged.data import (
    JudgedComparison,
    JudgedMean,
    JudgedRanks,
    JudgedReport,
    QueryIntervals,
)
from rag_sourcebias.report.blocks import (
    Bar,
    First,
    FirstRow,
    capital,
    count,
    ends_about_zero,
    estimate,
    join,
    level,
    number,
    shorten,
)
from rag_sourcebias.stats.regression import LONG_TAIL

Role: TypeAlias = Literal[
    "absent", "unused", "useless", "complete", "exact", "helps", "same", "costs", "unknown", "short"
]
_METHODS = {
    "regression": "regression on the judge",
    "labels": "labels alone",
    "ppi": "PPI with fixed power",
    "ppi++": "PPI with tuned power",
    "ppi-crossfit": "cross-fitted PPI",
    "ppi-paper": "PPI of Oosterhuis et al.",
    "bootstrap": "bootstrap of the labels",
    "crc": "conformal risk control of Oosterhuis et al.",
}
_TARGETS = {
    "population": "the mean over all {units} like these, of which these are a random sample",
    "pool": "the mean people would give exactly these {units}, labelled and not",
    "unlabeled": "the mean people would give the unlabelled {units} of this set",
}
#: The worth of the judge in a few words; saved and lost labels are counted.
_SHORT: dict[Role, str] = {
    "absent": "From labels alone, as asked",
    "unused": "The judge was not used",
    "useless": "This judge is useless: use labels alone",
    "complete": "People labelled every item",
    "exact": "The judge follows people on every label",
    "same": "The judge makes no clear difference",
    "unknown": "Labels alone give no interval",
    "short": "Too short by construction: its width saves no label",
}
_FAR = 2.5  # standard deviations of human values from their mean to a judge on its own scale
_ALL_SAID = 2  # means of which the headline says everything; of more, a summary
_FIRST_ROWS = 10  # systems of a first screen
_NAMED = 3  # means that the headline names


# The headline: no more certain than its intervals


def headline(report: JudgedReport) -> str:
    """Return what a reader in a hurry should take away."""
    total = len(report.means)
    if total <= _ALL_SAID:
        return " ".join(sentence(report, m) for m in report.means) or "No mean was estimated."
    each = [mean.interval.n_labeled for mean in report.means]
    spans = (_span(report, measure) for measure in dict.fromkeys(m.measure for m in report.means))
    wrong = sum(_excludes_judge(report, mean) for mean in report.means)
    which = f"all {total}" if wrong == total else f"{wrong} of {total}"
    return " ".join((
        *(who_is_best(ranks) for ranks in report.ranks),
        f"{level(report.config.confidence_level)} intervals for {total} means, each from "
        f"{_range_of_labels(report, each, human=True)}: {'; '.join(spans)}.",
        f"The judge alone would have been outside the interval for {which}." if wrong else
        f"The means of the judge alone lie inside all {total} intervals.",
        *_worths(report),
    ))  # fmt: skip


def _range_of_labels(report: JudgedReport, counts: list[int], *, human: bool = False) -> str:
    low, high = min(counts), max(counts)
    return f"{count(low)} to " * (low != high) + _labels(report, high, human=human)


def _span(report: JudgedReport, measure: str) -> str:
    means = [mean for mean in report.means if mean.measure == measure]
    low, high = (pick(means, key=lambda m: m.interval.estimate) for pick in (min, max))
    if low is high:
        return f"{name_of(low, ' of ')} is {with_interval(report, low)}"
    return (
        f"{measure} runs from {with_interval(report, low)} for {shorten(low.system, 40)} to "
        f"{with_interval(report, high)} for {shorten(high.system, 40)}"
    )


def _worths(report: JudgedReport) -> Iterator[str]:
    """Say for how many means the judge was of use, and for which it was not."""
    others: dict[Role, str] = {
        "same": "it makes no clear difference",
        "costs": "labels alone give a narrower interval",
        "useless": "this judge is useless and labels alone are the better choice",
        "unused": "it was not used",
        "short": "CRC is too short by construction, and saves no label",
    }
    roles = [(role(report, mean), mean) for mean in report.means]
    if helped := [mean for kind, mean in roles if kind == "helps"]:
        saved = _range_of_labels(report, [mean.labels_saved or 0 for mean in helped])
        yield (
            f"With its help {len(helped)} of {len(report.means)} intervals are narrower, worth "
            f"at least {saved}{' each' if len(helped) > 1 else ''}."
        )
    for found, words in others.items():
        if names := [shorten(name_of(mean, " of "), 48) for kind, mean in roles if kind == found]:
            named = join(names) if len(names) <= _NAMED else f"{len(names)} means"
            yield f"For {named}, {words}."


# The first screen


def first(report: JudgedReport) -> First:
    """Return the first screen: what people would say, what the judge says, and what is next."""
    if not report.means:
        return First(answer="No mean was estimated.")
    one = report.means[0]
    wrong = any(_excludes_judge(report, mean) for mean in report.means)
    useless = any(role(report, mean) == "useless" for mean in report.means)
    return First(
        answer=_plain_mean(report, one) if len(report.means) == 1 else _plain_best(report),
        verdict=_plain_judge(report),
        standing="other" if wrong or useless else "baseline",
        doubts=_plain_doubts(report),
        caption=""
        if len(report.means) == 1
        else f"What people would say: {_measure(one.measure)}; squares: the judge alone"
        + "; #: places it may have; blue: may be best" * bool(report.ranks),
        rows=_mean_rows(report),
        why=_next(report),
        command=_command(report),
    )


def _command(report: JudgedReport) -> str:
    """Return what draws or plans more labels, of the files that were read where these are known."""
    if report.kind == "ranking":
        files = report.inputs or "--run bm25.run --labels judge.tsv"
        return f"rag-sourcebias labels {files} --half-width 0.5"
    told = _each(report, report.ranks[0].to_tell or 0) if report.ranks else 0
    narrower = 0.75 * report.means[0].interval.half_width or 0.03
    file = report.inputs or "answers.csv"
    if told:
        return f"rag-sourcebias labels {file} -n {told} --output sheet.csv"
    return f"rag-sourcebias labels {file} --half-width {narrower:.1g}"


def _next(report: JudgedReport) -> str:
    """Say what more labels would tell, or ask how many."""
    ranks = report.ranks[0] if report.ranks else None
    if ranks is None or sum(best == 1 for best in ranks.best) == 1:
        return "How many more labels?" if report.kind == "items" else "How many more judgments?"
    top = " and ".join(shorten(name, 40) for name in ranks.systems[:2])
    if ranks.to_tell is None:
        return f"{top} are too close for labels to tell apart; for narrower intervals:"
    more = _labels(report, _each(report, ranks.to_tell - ranks.n_labeled), more=True)
    return f"Next: about {more} would tell {top} apart, if they differ as estimated:"


def _each(report: JudgedReport, n: int) -> int:
    """Return n shared items in labels: of items, each system has its own."""
    return n * len(report.ranks[0].systems) if report.kind == "items" else n


def _plain_mean(report: JudgedReport, mean: JudgedMean) -> str:
    found = mean.interval
    low, high = (value_of(report, mean, end) for end in (found.lower, found.upper))
    labels = _labels(report, found.n_labeled, human=True)
    about = f"{_measure(mean.measure)} of {mean.system}" if mean.system else _measure(mean.measure)
    return (
        f"{capital(about)} is about {value_of(report, mean, found.estimate)}, between {low} and "
        f"{high}, going by {labels}."
    )


def _plain_best(report: JudgedReport) -> str:
    """Say who is best, or who may be, and else what can be told apart."""
    if report.ranks:
        ranks = report.ranks[0]
        names = [shorten(name, 40) for name in ranks.systems]
        may = [name for name, best in zip(names, ranks.best, strict=True) if best == 1]
        if len(may) == 1:
            return f"{may[0]} is the best of {len(names)} systems in {_measure(ranks.measure)}."
        listed = join(may, "or") if len(may) <= _NAMED + 1 else f"one of {len(may)}"
        return f"Which of {len(names)} systems is best cannot be told: it may be {listed}."
    measure = report.means[0].measure
    of = [c for c in report.comparisons if (c.kind, c.measure) == ("difference", measure)]
    clear = [c for c in of if c.interval.excludes(0)]
    if not of:
        return f"{len(report.means)} means were estimated from labels and a judge."
    told = f"{len(clear)} of {len(of)} comparisons of systems are clear"
    if not clear:
        return f"None of {len(of)} comparisons of systems is clear."
    top = clear[0]
    higher, lower = top.first, top.second
    if top.interval.estimate < 0:
        higher, lower = lower, higher
    return f"{higher} scores higher than {lower}" + (f"; {told}." if len(of) > 1 else ".")


def _measure(name: str) -> str:
    """Return a measure as a plain word: what a ranking is worth is its quality."""
    return "the quality of rankings" if "@" in name else name


def _plain_judge(report: JudgedReport) -> str:
    """Say of how many means the judge alone would have been wrong, and whether it is of use."""
    wrong = [m for m in report.means if _excludes_judge(report, m)]
    roles, n = {role(report, m) for m in report.means}, len(report.means)
    if n == 1:
        mean = report.means[0]
        says, high = value_of(report, mean, mean.judge_alone), mean.judge_alone
        far = "high" if high > mean.interval.estimate else "low"
        alone = (
            f"Alone, the judge would have said {says}: too {far}."
            if wrong
            else f"Alone, the judge says {says}, which the labels do not contradict."
        )
        return alone if not other_scale(report, mean) else "The judge answers on another scale."
    many = "all" if len(wrong) == n else f"{len(wrong)} of"
    if wrong:
        return f"Alone, the judge would have been wrong about {many} {n} means."
    return f"The labels contradict the judge about none of {n} means{_unless(roles)}."


def _unless(roles: set[Role]) -> str:
    return ", but it is of no use for some" if "useless" in roles else ""


def _plain_doubts(report: JudgedReport) -> tuple[str, ...]:
    """Say where the judge does not help."""
    useless = [m for m in report.means if role(report, m) == "useless"]
    unused = [m for m in report.means if role(report, m) == "unused"]
    told = []
    if useless:
        of = "" if len(report.means) == 1 else f" for {_who_of(useless)}"
        told.append(f"This judge is useless{of}: use labels alone.")
    if unused:
        of = "" if len(report.means) == 1 else f" for {_who_of(unused)}"
        told.append(f"The judge was not used{of}.")
    tailed = [m for m in report.means if LONG_TAIL in m.interval.notes]
    if tailed:
        of = "" if len(report.means) == 1 else f" of {_who_of(tailed)}"
        told.append(
            f"A few labels{of} lie far from the rest: without known bounds the interval may hold "
            "the truth less often than it says."
        )
    return tuple(told)


def _who_of(means: list[JudgedMean]) -> str:
    names = [shorten(mean.system or mean.measure, 40) for mean in means]
    return join(names) if len(names) <= _NAMED else f"{len(names)} means"


def _mean_rows(report: JudgedReport) -> tuple[FirstRow, ...]:
    """Return each system with its ends, of the first measure; or one mean beside the judge's."""
    same = [m for m in report.means if m.measure == report.means[0].measure]
    ranks, places = report.ranks[0] if report.ranks else None, dict[str, tuple[int, int]]()
    if ranks is not None:
        places = dict(zip(ranks.systems, zip(ranks.best, ranks.worst, strict=True), strict=True))
        last = (len(places) + 1,) * 2  # a system that could not be ranked
        same.sort(key=lambda m: (*places.get(m.system, last), -m.interval.estimate))
    same = same[:_FIRST_ROWS]
    ends = [end for m in same for end in (m.interval.lower, m.interval.upper)]
    ends += [m.judge_alone for m in same if not other_scale(report, m)]
    margin = 0.04 * (max(ends) - min(ends)) or 0.5
    span = (min(ends) - margin, max(ends) + margin)
    rows = []
    for mean in same:
        found, judge = mean.interval, mean.judge_alone
        best, worst = places.get(mean.system, (1, 0))
        place = f"  #{best}" + f"–{worst}" * (worst > best) if worst else ""
        rows.append(
            FirstRow(
                name=shorten(mean.system, 40) if len(same) > 1 else "with labels",
                bar=Bar.over(
                    (found.lower, found.estimate, found.upper),
                    span,
                    side="baseline" if best == 1 else "even",
                    solid=True,
                    was=judge if len(same) > 1 and not other_scale(report, mean) else None,
                ),
                text=value_of(report, mean, found.estimate) + place,
            )
        )
        if len(same) == 1 and not other_scale(report, mean):
            bar = Bar.over((judge, judge, judge), span, side="other", solid=True)
            said = value_of(report, mean, judge)
            rows.append(FirstRow(name="judge alone", bar=bar, text=said))
    return tuple(rows)


# Systems in order


def who_is_best(ranks: JudgedRanks) -> str:
    """Say which system is best, or which may be."""
    names = [shorten(name, 40) for name in ranks.systems]
    may = [name for name, best in zip(names, ranks.best, strict=True) if best == 1]
    total, held = len(names), f"({level(ranks.confidence_level)}, all compared at once)"
    if len(may) == 1:
        return f"{may[0]} is best of {total} systems in {ranks.measure} {held}."
    if len(may) == total:
        return (
            f"Which of the {total} systems is best in {ranks.measure} cannot be told: each may be "
            f"{held}."
        )
    left = [name for name in names if name not in may]
    named = join(may, "or") if len(may) <= 2 * _NAMED else f"one of {len(may)}, {may[0]} among them"
    but = join(left, "nor") if len(left) <= _NAMED else f"one of the other {len(left)}"
    return (
        f"Which system is best in {ranks.measure} cannot be told: it may be {named}, not {but} "
        f"{held}."
    )


def ranking(report: JudgedReport, ranks: JudgedRanks) -> str:
    """Say who is best, how far the judge's own order agrees, and what would tell more."""
    first, second = (shorten(name, 40) for name in ranks.systems[:2])
    known = (ranks.tau, ranks.tau_lower, ranks.tau_upper)
    tau, low, high = (number(value, digits=2) for value in known)
    agrees = (
        "The judge alone orders the systems like their corrected means by "
        f"Kendall's τ = {tau} [{low}, {high}]."
    )
    more = (
        f"About {count(ranks.to_tell)} labelled {units_of(report)}"
        f"{' of each system' * (report.kind == 'items')} would tell {first} from "
        f"{second}, if they differ as much as estimated; there are {count(ranks.n_labeled)}."
    ) if ranks.to_tell is not None else (
        f"{first} and {second}, the first two, are too close for a number of labels that would "
        "tell them apart."
        if ranks.worst[0] > 1 and ranks.best[1] == 1 else ""
    )  # fmt: skip
    return " ".join(filter(None, (who_is_best(ranks), agrees, more)))


# One mean: what was found, and whether the judge was any use


def role(report: JudgedReport, mean: JudgedMean) -> Role:
    """Return what the judge did to one interval.

    ``"absent"``: labels alone were asked for. ``"unused"``: the method set the judge aside.
    ``"useless"``: its correlation with people is too small to be of use, whatever the widths say.
    ``"exact"``: it agrees with people so well that the interval has no width. ``"complete"``:
    people labelled every item of the pool, so that nothing is estimated. ``"short"``: CRC, which
    covers less than it says. ``"helps"`` and ``"costs"``: by the labels it saves and by the width
    alike.
    """
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved or 0
    narrower = 0.0 if alone is None else alone.half_width - found.half_width
    rules: tuple[tuple[bool, Role], ...] = (
        (report.config.method in {"labels", "bootstrap"}, "absent"),
        (report.config.method == "crc", "short"),
        (found.target == "pool" and not found.n_unlabeled, "complete"),
        (found.judge in {"few", "constant"}, "unused"),
        (found.judge == "weak" or _weak(found), "useless"),
        (found.half_width == 0, "exact"),
        (alone is None or mean.labels_saved is None, "unknown"),
        (saved > 0 and narrower > 0, "helps"),
        (saved < 0 and narrower < 0, "costs"),
    )
    return next((kind for applies, kind in rules if applies), "same")


def _weak(found: Interval) -> bool:
    return found.correlation is not None and abs(found.correlation) <= _needed(found)


def _needed(found: Interval) -> float:
    return 1 / math.sqrt(max(found.n_labeled - 2, 1))


def sentence(report: JudgedReport, mean: JudgedMean) -> str:
    """Return everything about one mean: estimate, interval, labels, the judge alone, its worth."""
    i, units = mean.interval, units_of(report)
    judged = f" and {count(i.n_unlabeled)} {units} that only the judge saw"
    labels = _labels(report, i.n_labeled, human=True) + judged * (i.n_unlabeled > 0)
    where = {
        "population": "",
        "pool": f" over exactly these {count(i.n_labeled + i.n_unlabeled)} {units}",
        "unlabeled": f" over the {count(i.n_unlabeled)} unlabelled {units}",
    }.get(i.target, f" over the {i.target}")
    return (
        f"Mean {name_of(mean, ' of ')}{where} is {with_interval(report, mean)} "
        f"({level(i.confidence_level)} interval from {labels}). {worth_of(report, mean)}"
    )


def other_scale(report: JudgedReport, mean: JudgedMean) -> bool:
    """Whether the judge seems to answer on another scale than people.

    Then its mean is far from theirs and its values are no grades of theirs, and neither the one nor
    the other is an error of the judge.
    """
    audit = report.audits.get(mean.measure)
    if report.kind == "ranking" or audit is None or audit.agreement is not None:
        return False
    alone = mean.labels_alone or mean.interval
    deviation = alone.half_width * math.sqrt(alone.n_labeled) / 2  # about that of the human values
    return abs(mean.judge_alone - mean.interval.estimate) > _FAR * max(deviation, 1e-12)


def _excludes_judge(report: JudgedReport, mean: JudgedMean) -> bool:
    return not other_scale(report, mean) and mean.interval.excludes(mean.judge_alone)


def worth_of(report: JudgedReport, mean: JudgedMean) -> str:
    """Return what the judge alone says of one mean, and whether it was any use, in labels."""
    says, gap = value_of(report, mean, mean.judge_alone), mean.judge_alone - mean.interval.estimate
    by = f"too {'high' if gap > 0 else 'low'} by about {value_of(report, mean, abs(gap))}"
    told = by if _excludes_judge(report, mean) else "which the interval does not contradict"
    judge = (
        f"The mean of the judge is {says}, far from people's: it seems to answer on another "
        "scale, so this is not comparable."
        if other_scale(report, mean)
        else f"The judge alone would have said {says}, {told}."
    )
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved or 0
    r, labels = number(found.correlation, digits=2), _labels(report, abs(saved))
    who = "The judge" if found.correlation is None else f"The judge (r = {r} with people)"
    said = "" if alone is None else f", {estimate(alone, digits=digits_of(report, mean.measure))}"
    change = 0.0 if not alone or not alone.half_width else 1 - found.half_width / alone.half_width
    percent = f"{number(100 * abs(change), digits=0 if abs(change) >= 0.095 else 1)}%"
    threshold = f", and it takes more than {number(_needed(found), digits=2)}"
    worths: dict[Role, str] = {
        "absent": f"The judge was not used ({method_name(report.config.method)} was asked for).",
        "unused": f"This interval comes from the labels alone: {JUDGE_NOTES.get(found.judge, '')}.",
        "useless": f"{who} is useless here{threshold * _weak(found)}: use labels alone{said}.",
        "complete": "People labelled every item of the pool: this is its mean, and nothing is "
        "estimated.",
        "exact": f"{who} follows people on every labelled item, which leaves the interval no "
        "width. That says nothing of where they would part on the others.",
        "unknown": f"{who} cannot be held against labels alone, which give no interval here.",
        "short": f"CRC has no term for the sampling error of the unlabelled {units_of(report)}: "
        "on fresh draws its intervals hold their mean less often than they say. Its width saves no "
        f"label{said and ', beside labels alone'}{said[1:]}.",
        "same": f"{who} makes no clear difference: the interval is {percent} "
        f"{'narrower' if change > 0 else 'wider'} than that of labels alone{said}, which may be "
        "chance."
        if change
        else f"{who} makes no difference: labels alone give as narrow an interval.",
        "helps": f"{who} narrows the interval by {percent}: labels alone would need at least "
        f"{_labels(report, saved, more=True)} for this width.",
        "costs": f"{who} made this interval {percent} wider than labels alone{said}: it cost the "
        f"worth of about {labels}.",
    }
    return f"{judge} {worths[role(report, mean)]}"


def worth_in_short(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind, labels = role(report, mean), _labels(report, abs(mean.labels_saved or 0))
    helps, costs = f"The judge saves at least {labels}", f"The judge costs about {labels}"
    few = kind == "unused" and mean.interval.judge == "few"
    return (
        "Too few labels to use the judge"
        if few
        else {**_SHORT, "helps": helps, "costs": costs}[kind]
    )


# Comparisons, and how to read the numbers


def comparison(report: JudgedReport, c: JudgedComparison) -> str:
    """Return one comparison: who is higher and by how much, or that it cannot be told."""
    i, first, second = c.interval, c.first, c.second
    clear, relative = i.excludes(0), c.kind == "relative_delta"
    # A sentence that names the higher side first states the difference in that direction.
    if clear and i.estimate < 0:
        first, second = second, first
        if not relative:
            i = replace(i, estimate=-i.estimate, lower=-i.upper, upper=-i.lower)
    digits = decimals(report, c)
    size = number(i.estimate, digits=digits, signed=relative or not clear)
    numbers = f"{size} {ends_about_zero(i, digits=digits)}"
    what = f"Relative Δ of {c.measure}{within(c)}" if relative else c.measure
    if not clear:
        return f"{first} against {second}: cannot be told apart ({what} {numbers}, includes 0)."
    told = f": {what} {numbers}" if relative else f" in {what} by {numbers}"
    return f"{first} is higher than {second}{told}."


def within(c: JudgedComparison) -> str:
    """Return `` in <run>`` where two sources of one run are compared."""
    return f" in {c.system}" if c.system else ""


def decimals(report: JudgedReport, c: JudgedComparison) -> int:
    """Return the decimals of a comparison."""
    return 1 if c.kind == "relative_delta" else digits_of(report, c.measure)


def how_to_read(report: JudgedReport) -> tuple[tuple[str, str], ...]:
    """Return questions a reader may have, with their answers."""
    units, target = units_of(report), report.config.target
    return (
        (
            "What does an interval promise?",
            f"In {level(report.config.confidence_level)} of evaluations like this one the interval "
            f"holds {_TARGETS.get(target, target).format(units=units)}, as people would judge it. "
            f"It counts the chance in which {units} were labelled; it cannot count people who "
            "disagree with each other, or labels that were not drawn at random.",
        ),
        (
            "How can a judge narrow it?",
            "The judge has seen everything, people only a part. Where the two agree in what they "
            f"find better and worse, the judge's values tell how the labelled {units} differ from "
            "the rest. How far it rates too high or too low does not matter: the human labels "
            "correct that. Only the correlation r counts, and it must exceed 1/√(n − 2).",
        ),
        (
            "What does “saved” mean?",
            "How many more labels the labels alone would need for an interval as narrow: at least "
            "so many in about 80% of samples like this. It compares the two widths, less what "
            "chance may have added to the judge's correlation. Savings of 0–10% are common. A "
            "negative number means that the judge made this interval wider; that can happen by "
            "chance with a judge that helps on average. Do not pick whichever interval "
            "came out narrower: that spoils the promise of both.",
        ),
        (
            "Why not trust the judge alone?",
            f"Its mean has no error bar that counts its own mistakes. More judged {units} make it "
            "more precise and no more right.",
        ),
        *(
            [
                (
                    "What is Relative Δ?",
                    "The difference of two mean scores in percent of their average, from −200 to "
                    "+200. Positive: the first, the baseline, is higher. Each source is corrected "
                    "by its own human labels, since judges treat sources differently.",
                )
            ]
            if any(c.kind == "relative_delta" for c in report.comparisons)
            else ()
        ),
        *(
            [
                (
                    "What does the interval of one query promise?",
                    "That of all queries, the stated share has its human value inside. It is no "
                    "promise for a particular kind of query, and it is wide, because a judge that "
                    "is right on average is often wrong about one query.",
                )
            ]
            if report.per_query
            else ()
        ),
    )


# Names and numbers


def method_name(method: str) -> str:
    """Return a method as a reader knows it."""
    return _METHODS.get(method, method)


def name_of(of: JudgedMean | QueryIntervals, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{of.measure}{link}{of.system}" if of.system else of.measure


def units_of(report: JudgedReport) -> str:
    """Return what is labelled: items or queries."""
    return "items" if report.kind == "items" else "queries"


def _labels(report: JudgedReport, n: int, *, human: bool = False, more: bool = False) -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    unit = (
        f"{'human-' * human}labelled {'query' if n == 1 else 'queries'}"
        if report.kind == "ranking"
        else f"{'human ' * human}label{'s' * (n != 1)}"
    )
    return f"{count(n)} {'more ' * more}{unit}"


def digits_of(report: JudgedReport, measure: str) -> int:
    """Return the decimals of a measure: two significant digits of its narrowest half width."""
    half = [
        i.half_width
        for mean in report.means
        if mean.measure == measure
        for i in (mean.interval, mean.labels_alone)
        if i is not None and i.half_width > 0
    ]
    known = half and math.isfinite(min(half))
    return min(4, max(1, 1 - math.floor(math.log10(min(half))))) if known else 3


def value_of(report: JudgedReport, mean: JudgedMean, value: float) -> str:
    """Return a value with the decimals of its measure."""
    return number(value, digits=digits_of(report, mean.measure))


def with_interval(report: JudgedReport, mean: JudgedMean) -> str:
    """Return the mean with its interval, such as ``0.829 [0.795, 0.862]``."""
    return estimate(mean.interval, digits=digits_of(report, mean.measure))
