"""What a judged evaluation says in words: the first screen, each mean, and who may be best."""

import math
from dataclasses import replace
from typing import Literal, TypeAlias

from rag_sourcebias.core.finding import Interval, number, shorten
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.judged.data import (
    JudgedComparison,
    JudgedMean,
    JudgedRanks,
    JudgedResults,
    QueryIntervals,
)
from rag_sourcebias.report.document import Bar, First, FirstRow
from rag_sourcebias.report.legacy import (
    capital,
    count,
    ends_about_zero,
    estimate,
    join,
    level,
    next_step,
)

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
_WORTH: dict[Role, str] = {
    "absent": "From labels alone, as asked",
    "unused": "The judge was not used",
    "useless": "This judge is useless: use labels alone",
    "complete": "People labelled every item",
    "exact": "The judge follows people on every label",
    "same": "The judge makes no clear difference",
    "unknown": "Labels alone give no interval",
    "short": "Too short by construction: its width saves no label",
    "helps": "The judge saves at least {labels}",
    "costs": "The judge costs about {labels}",
}
_FAR = 2.5  # standard deviations of human values from their mean to a judge on its own scale
_FIRST_ROWS = 10  # systems of a first screen
_NAMED = 4  # systems that a sentence names
_NAME = 40  # characters of a name in a sentence


# The first screen


def first(report: JudgedResults) -> First:
    """Return the first screen: what people would say, what the judge says, and what is next."""
    if not report.means:
        return First(answer="No mean was estimated.")
    one = report.means[0]
    answer, caption = _plain_mean(report, one), ""
    if len(report.means) > 1:
        answer = _plain_best(report)
        caption = f"What people would say: {_measure(one.measure)}; squares: the judge alone"
        if report.ranks:
            caption += "; #: places it may have; blue: may be best"
    contradicted = any(excludes_judge(report, mean) for mean in report.means)
    useless = any(role(report, mean) == "useless" for mean in report.means)
    return First(
        answer=answer,
        verdict=_plain_judge(report),
        standing="other" if contradicted or useless else "baseline",
        doubts=_plain_doubts(report),
        caption=caption,
        rows=_mean_rows(report),
        next=next_step(_next(report), _command(report)),
    )


def _command(report: JudgedResults) -> str:
    """Return what draws or plans more labels, of the files that were read where these are known."""
    if report.kind == "ranking":
        files = report.inputs or "--run bm25.run --labels judge.tsv"
        return f"rag-sourcebias labels {files} --half-width 0.5"
    file = report.inputs or "answers.csv"
    if report.ranks and report.ranks[0].to_tell:
        n = _each(report, report.ranks[0].to_tell)
        return f"rag-sourcebias labels {file} -n {n} --output sheet.csv"
    narrower = 0.75 * report.means[0].interval.half_width or 0.03
    return f"rag-sourcebias labels {file} --half-width {narrower:.1g}"


def _next(report: JudgedResults) -> str:
    """Say what more labels would tell, or ask how many."""
    if not report.ranks or len(_may_be_best(report.ranks[0])) == 1:
        return "How many more labels?" if report.kind == "items" else "How many more judgments?"
    ranks = report.ranks[0]
    top = " and ".join(shorten(name, _NAME) for name in ranks.systems[:2])
    if ranks.to_tell is None:
        return f"{top} are too close for labels to tell apart; for narrower intervals:"
    n = _each(report, ranks.to_tell - ranks.n_labeled)
    return f"Next: about {_labels(report, n, 'more ')} would tell {top} apart, if they differ as \
estimated:"


def _each(report: JudgedResults, n: int) -> int:
    """Return n shared items in labels: of items, each system has its own."""
    return n * len(report.ranks[0].systems) if report.kind == "items" else n


def _plain_mean(report: JudgedResults, mean: JudgedMean) -> str:
    found = mean.interval
    about = _measure(mean.measure)
    if mean.system:
        about = f"{about} of {mean.system}"
    return (
        f"{capital(about)} is about {value_of(report, mean, found.estimate)}, between "
        f"{value_of(report, mean, found.lower)} and {value_of(report, mean, found.upper)}, going "
        f"by {_labels(report, found.n_labeled, 'human ')}."
    )


def _may_be_best(ranks: JudgedRanks) -> list[str]:
    pairs = zip(ranks.systems, ranks.best, strict=True)
    return [shorten(name, _NAME) for name, best in pairs if best == 1]


def _plain_best(report: JudgedResults) -> str:
    """Say who is best, or who may be, and else what can be told apart."""
    if report.ranks:
        ranks = report.ranks[0]
        may, total = _may_be_best(ranks), len(ranks.systems)
        if len(may) == 1:
            return f"{may[0]} is the best of {total} systems in {_measure(ranks.measure)}."
        named = join(may, "or") if len(may) <= _NAMED else f"one of {len(may)}"
        return f"Which of {total} systems is best cannot be told: it may be {named}."
    measure = report.means[0].measure
    compared = [c for c in report.comparisons if (c.kind, c.measure) == ("difference", measure)]
    if not compared:
        return f"{len(report.means)} means were estimated from labels and a judge."
    clear = [c for c in compared if c.interval.excludes(0)]
    if not clear:
        return f"None of {len(compared)} comparisons of systems is clear."
    higher, lower = clear[0].first, clear[0].second
    if clear[0].interval.estimate < 0:
        higher, lower = lower, higher
    answer = f"{higher} scores higher than {lower}"
    if len(compared) > 1:
        answer += f"; {len(clear)} of {len(compared)} comparisons of systems are clear"
    return f"{answer}."


def _measure(name: str) -> str:
    """Return a measure as a plain word: what a ranking is worth is its quality."""
    return "the quality of rankings" if "@" in name else name


def _plain_judge(report: JudgedResults) -> str:
    """Say of how many means the judge alone would have been wrong, and whether it is of use."""
    n = len(report.means)
    contradicted = [mean for mean in report.means if excludes_judge(report, mean)]
    if n == 1:
        mean = report.means[0]
        if other_scale(report, mean):
            return "The judge answers on another scale."
        says = value_of(report, mean, mean.judge_alone)
        if not contradicted:
            return f"Alone, the judge says {says}, which the labels do not contradict."
        far = "high" if mean.judge_alone > mean.interval.estimate else "low"
        return f"Alone, the judge would have said {says}: too {far}."
    if contradicted:
        many = "all" if len(contradicted) == n else f"{len(contradicted)} of"
        return f"Alone, the judge would have been wrong about {many} {n} means."
    if any(role(report, mean) == "useless" for mean in report.means):
        return (
            f"The labels contradict the judge about none of {n} means, but it is of no use for "
            "some."
        )
    return f"The labels contradict the judge about none of {n} means."


def _plain_doubts(report: JudgedResults) -> tuple[str, ...]:
    """Say where the judge does not help."""
    doubts = []
    if useless := [m for m in report.means if role(report, m) == "useless"]:
        who = _who(report, useless, "for")
        doubts.append(f"This judge is useless{who}: use labels alone.")
    if unused := [m for m in report.means if role(report, m) == "unused"]:
        doubts.append(f"The judge was not used{_who(report, unused, 'for')}.")
    if tailed := [m for m in report.means if _has(m, InferCode.LONG_TAIL)]:
        doubts.append(
            f"A few labels{_who(report, tailed, 'of')} lie far from the rest: without known bounds "
            "the interval may hold the truth less often than it says."
        )
    return tuple(doubts)


def _who(report: JudgedResults, means: list[JudgedMean], link: str) -> str:
    if len(report.means) == 1:
        return ""
    if len(means) >= _NAMED:
        return f" {link} {len(means)} means"
    names = [shorten(mean.system or mean.measure, _NAME) for mean in means]
    return f" {link} {join(names)}"


def _mean_rows(report: JudgedResults) -> tuple[FirstRow, ...]:
    """Return each system with its ends, of the first measure; or one mean beside the judge's."""
    means = [m for m in report.means if m.measure == report.means[0].measure]
    places: dict[str, tuple[int, int]] = {}
    if report.ranks:
        ranks = report.ranks[0]
        ends = zip(ranks.best, ranks.worst, strict=True)
        places = dict(zip(ranks.systems, ends, strict=True))
        last = (len(places) + 1,) * 2  # a system that could not be ranked
        means.sort(key=lambda m: (*places.get(m.system, last), -m.interval.estimate))
    means = means[:_FIRST_ROWS]
    span = _scale(report, means)
    if len(means) == 1:
        mean = means[0]
        rows = [FirstRow(
            name="with labels",
            bar=_bar(mean.interval, span, "baseline"),
            text=value_of(report, mean, mean.interval.estimate),
        )]  # fmt: skip
        if not other_scale(report, mean):
            judge = mean.judge_alone
            bar = Bar.over((judge, judge, judge), span, side="other", solid=True)
            text = value_of(report, mean, judge)
            rows.append(FirstRow(name="judge alone", bar=bar, text=text))
        return tuple(rows)
    rows = []
    for mean in means:
        text, best = value_of(report, mean, mean.interval.estimate), 1
        if mean.system in places:
            best, worst = places[mean.system]
            text += f"  #{best}" if best == worst else f"  #{best}–{worst}"
        was = None if other_scale(report, mean) else mean.judge_alone
        bar = _bar(mean.interval, span, "baseline" if best == 1 else "even", was=was)
        rows.append(FirstRow(name=shorten(mean.system, _NAME), bar=bar, text=text))
    return tuple(rows)


def _scale(report: JudgedResults, means: list[JudgedMean]) -> tuple[float, float]:
    """Return a scale on which intervals and judge values of some means can be drawn."""
    ends = [end for m in means for end in (m.interval.lower, m.interval.upper)]
    ends += [m.judge_alone for m in means if not other_scale(report, m)]
    margin = 0.04 * (max(ends) - min(ends)) or 0.5
    return min(ends) - margin, max(ends) + margin


def _bar(found: Interval, span: tuple[float, float], side: str, *, was: float | None = None) -> Bar:
    ends = (found.lower, found.estimate, found.upper)
    return Bar.over(ends, span, side=side, solid=True, was=was)


# Means


def headline(report: JudgedResults) -> str:
    """Return what a reader in a hurry should take away."""
    total = len(report.means)
    if total == 0:
        return "No mean was estimated."
    if total == 1:
        mean = report.means[0]
        return f"{name_of(mean)}: {sentence(report, mean)}"
    outside = sum(excludes_judge(report, mean) for mean in report.means)
    return (
        f"{level(report.config.confidence_level)} intervals for {total} means. The judge alone is "
        f"outside {outside} of them."
    )


def sentence(report: JudgedResults, mean: JudgedMean) -> str:
    """Return one mean with its interval, its labels, the judge alone, and the judge's worth."""
    i = mean.interval
    labels = f"{count(i.n_labeled)} labelled"
    if i.n_unlabeled:
        labels += f" + {count(i.n_unlabeled)} judged"
    facts = [level(i.confidence_level), labels]
    if i.target != "population":
        facts.append(f"of the {i.target}")
    judge = f"judge alone {value_of(report, mean, mean.judge_alone)}"
    if other_scale(report, mean):
        judge += " on its own scale"
    facts.append(judge)
    if i.correlation is not None:
        facts.append(f"r = {number(i.correlation, digits=2)}")
    return f"{with_interval(report, mean)} ({', '.join(facts)}). {worth_of(report, mean)}."


def role(report: JudgedResults, mean: JudgedMean) -> Role:
    """Return what the judge did to one interval.

    ``"absent"``: labels alone were asked for. ``"unused"``: the method set the judge aside.
    ``"useless"``: its correlation with people is too small to be of use, whatever the widths say.
    ``"exact"``: it agrees with people so well that the interval has no width. ``"complete"``:
    people labelled every item of the pool, so that nothing is estimated. ``"short"``: CRC, which
    covers less than it says. ``"helps"`` and ``"costs"``: by the labels it saves and by the width
    alike.
    """
    found, alone, saved = mean.interval, mean.labels_alone, mean.labels_saved
    if report.config.method in ("labels", "bootstrap"):
        return "absent"
    if report.config.method == "crc":
        return "short"
    if found.target == "pool" and not found.n_unlabeled:
        return "complete"
    if _has(mean, InferCode.JUDGE_FEW, InferCode.JUDGE_CONSTANT):
        return "unused"
    needed = 1 / math.sqrt(max(found.n_labeled - 2, 1))
    uncorrelated = found.correlation is not None and abs(found.correlation) <= needed
    if uncorrelated or _has(mean, InferCode.JUDGE_WEAK):
        return "useless"
    if found.half_width == 0:
        return "exact"
    if alone is None or saved is None:
        return "unknown"
    narrower = alone.half_width - found.half_width
    if saved > 0 and narrower > 0:
        return "helps"
    if saved < 0 and narrower < 0:
        return "costs"
    return "same"


def _has(mean: JudgedMean, *codes: InferCode) -> bool:
    return any(note.code in codes for note in mean.interval.notes)


def other_scale(report: JudgedResults, mean: JudgedMean) -> bool:
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


def excludes_judge(report: JudgedResults, mean: JudgedMean) -> bool:
    """Whether the interval shows that the judge alone is wrong."""
    return not other_scale(report, mean) and mean.interval.excludes(mean.judge_alone)


def worth_of(report: JudgedResults, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind = role(report, mean)
    if kind == "unused" and _has(mean, InferCode.JUDGE_FEW):
        return "Too few labels to use the judge"
    return _WORTH[kind].format(labels=_labels(report, abs(mean.labels_saved or 0)))


# Comparisons, and how to read the numbers


def ranking(report: JudgedResults, ranks: JudgedRanks) -> str:
    """Say how far the judge's own order agrees, and what would tell the first two apart."""
    tau, low, high = (
        number(value, digits=2) for value in (ranks.tau, ranks.tau_lower, ranks.tau_upper)
    )
    agrees = (
        "The judge alone orders the systems like their corrected means by "
        f"Kendall's τ = {tau} [{low}, {high}]."
    )
    best, second = (shorten(name, _NAME) for name in ranks.systems[:2])
    if ranks.to_tell is not None:
        units = units_of(report)
        if report.kind == "items":
            units += " of each system"
        return (
            f"{agrees} About {count(ranks.to_tell)} labelled {units} would tell {best} from "
            f"{second}, if they differ as much as estimated; there are {count(ranks.n_labeled)}."
        )
    if ranks.worst[0] > 1 and ranks.best[1] == 1:
        return (
            f"{agrees} {best} and {second}, the first two, are too close for a number of labels "
            "that would tell them apart."
        )
    return agrees


def comparison(report: JudgedResults, c: JudgedComparison) -> str:
    """Return a clear comparison: who is higher, and by how much."""
    i, higher, lower = c.interval, c.first, c.second
    relative = c.kind == "relative_delta"
    # A sentence that names the higher side first states the difference in that direction.
    if i.estimate < 0:
        higher, lower = lower, higher
        if not relative:
            i = replace(i, estimate=-i.estimate, lower=-i.upper, upper=-i.lower)
    digits = decimals(report, c)
    size = number(i.estimate, digits=digits, signed=relative)
    numbers = f"{size} {ends_about_zero(i, digits=digits)}"
    if relative:
        return f"{higher} is higher than {lower}: Relative Δ of {c.measure}{within(c)} {numbers}."
    return f"{higher} is higher than {lower} in {c.measure} by {numbers}."


def within(c: JudgedComparison) -> str:
    """Return `` in <run>`` where two sources of one run are compared."""
    return f" in {c.system}" if c.system else ""


def decimals(report: JudgedResults, c: JudgedComparison) -> int:
    """Return the decimals of a comparison."""
    return 1 if c.kind == "relative_delta" else digits_of(report, c.measure)


def how_to_read(report: JudgedResults) -> tuple[tuple[str, str], ...]:
    """Return questions a reader may have, with their answers."""
    units, target = units_of(report), report.config.target
    return (
        (
            "What does an interval promise?",
            f"In {level(report.config.confidence_level)} of evaluations like this one the interval "
            f"holds {_TARGETS[target].format(units=units)}, as people would judge it. It counts "
            f"the chance in which {units} were labelled; it cannot count people who disagree with "
            "each other, or labels that were not drawn at random.",
        ),
        (
            "What does “saved” mean?",
            "How many more labels the labels alone would need for an interval as narrow: at least "
            "so many in about 80% of samples like this. A negative number means that the judge "
            "made this interval wider. Do not pick whichever interval came out narrower: that "
            "spoils the promise of both.",
        ),
        (
            "Why not trust the judge alone?",
            f"Its mean has no error bar that counts its own mistakes. More judged {units} make it "
            "more precise and no more right.",
        ),
    )


# Names and numbers


def method_name(method: str) -> str:
    """Return a method as a reader knows it."""
    return _METHODS.get(method, method)


def name_of(of: JudgedMean | QueryIntervals, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{of.measure}{link}{of.system}" if of.system else of.measure


def units_of(report: JudgedResults) -> str:
    """Return what is labelled: items or queries."""
    return "items" if report.kind == "items" else "queries"


def _labels(report: JudgedResults, n: int, before: str = "") -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    if report.kind == "items":
        noun = "label" if n == 1 else "labels"
    else:
        noun = "labelled query" if n == 1 else "labelled queries"
        before = before.replace("human ", "human-")
    return f"{count(n)} {before}{noun}"


def digits_of(report: JudgedResults, measure: str) -> int:
    """Return the decimals of a measure: two significant digits of its narrowest half width."""
    half = [
        i.half_width
        for mean in report.means
        if mean.measure == measure
        for i in (mean.interval, mean.labels_alone)
        if i is not None and i.half_width > 0
    ]
    if not half or not math.isfinite(min(half)):
        return 3
    return min(4, max(1, 1 - math.floor(math.log10(min(half)))))


def value_of(report: JudgedResults, mean: JudgedMean, value: float) -> str:
    """Return a value with the decimals of its measure."""
    return number(value, digits=digits_of(report, mean.measure))


def with_interval(report: JudgedResults, mean: JudgedMean) -> str:
    """Return the mean with its interval, such as ``0.829 [0.795, 0.862]``."""
    return estimate(mean.interval, digits=digits_of(report, mean.measure))
