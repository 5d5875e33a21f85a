"""The report of a judged evaluation: what it says, in the order in which it says it."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from rag_sourcebias.core.finding import MISSING, Frame, number, shorten
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.judged.data import (
    JudgeAudit,
    JudgedComparison,
    JudgedMean,
    JudgedRanks,
    JudgedResults,
    QueryIntervals,
)
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import Bar, CaseWords, Document, First, FirstRow, case_blocks
from rag_sourcebias.report.legacy import (
    capital,
    count,
    counted,
    ends_about_zero,
    estimate,
    grid,
    interval,
    join,
    level,
    next_step,
)
from rag_sourcebias.report.render import Outcome, Report

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
_FIRST_ROWS = 10  # systems of a first screen
_NAMED = 4  # systems that a sentence names
_NAME = 40  # characters of a name in a sentence


# The first screen


def first(report: JudgedResults) -> First:
    """Return the first screen: what people would say, what the judge says, and what is next."""
    one = report.means[0]
    about = _measure(one.measure)
    if one.system:
        about = f"{about} of {one.system}"
    i = one.interval
    middle, low, high = (value_of(report, one, v) for v in (i.estimate, i.lower, i.upper))
    answer = (
        f"{capital(about)} is about {middle}, between {low} and {high}, going by "
        f"{_labels(report, i.n_labeled, 'human ')}."
    )
    caption = f"What people would say: {_measure(one.measure)}"
    if report.same_scale:
        caption += "; squares: the judge alone"
    if len(report.means) > 1:
        answer = _plain_best(report)
    if report.ranks:
        caption += "; #: places it may have; blue: may be best"
    contradicted = [mean for mean in report.means if excludes_judge(report, mean)]
    useless = [mean for mean in report.means if role(report, mean) == "useless"]
    return First(
        answer=answer,
        verdict=_plain_judge(report, contradicted, useless),
        standing="other" if contradicted or useless else "baseline",
        doubts=tuple(_plain_doubts(report, useless)),
        caption=caption,
        rows=_mean_rows(report),
        next=next_step(_next(report), _command(report)) if report.inputs else None,
    )


def _command(report: JudgedResults) -> str:
    """Return what draws or plans more labels of what was read."""
    labels = f"rag-sourcebias labels {report.inputs}"
    if report.kind == "ranking":
        return f"{labels} --half-width 0.5 --target pool"
    if report.ranks and report.ranks[0].to_tell:
        n = _each(report, report.ranks[0].to_tell)
        return f"{labels} -n {n} --output sheet.csv"
    mean = report.means[0]
    narrower = 0.75 * mean.interval.half_width or 0.03
    share = report.n_labeled / (report.n_labeled + report.n_unlabeled)
    # labels of all items come near to this, with a margin for how surely it is known
    least = 1.2 * mean.labels_alone.half_width * math.sqrt(share) if mean.labels_alone else math.inf
    if report.config.target != "population" or narrower < least:
        labels = f"{labels} --target pool"
    return f"{labels} --half-width {narrower:.2g}"


def _next(report: JudgedResults) -> str:
    """Say what more labels would tell, or ask how many."""
    if not report.ranks or len(_may_be_best(report.ranks[0])) == 1:
        many = "labels?" if report.kind == "items" else "judgments, for DCG@10 ± 0.5?"
        return f"How many more {many}"
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


def _places(ranks: JudgedRanks) -> dict[str, tuple[float, int, int]]:
    """Return what each system is ranked by, and the best and the worst place it may have."""
    found = zip(ranks.score, ranks.best, ranks.worst, strict=True)
    return dict(zip(ranks.systems, found, strict=True))


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
    clear = [c for c in compared if higher(c)]
    if not clear:
        return f"None of {len(compared)} comparisons of systems is clear."
    top = clear[0]
    best = higher(top)
    worse = top.second if best == top.first else top.first
    answer = f"{best} scores higher than {worse}"
    if len(compared) > 1:
        answer += f"; {len(clear)} of {len(compared)} comparisons of systems are clear"
    return f"{answer}."


def _measure(name: str) -> str:
    """Return a measure as a plain word: what a ranking is worth is its quality."""
    return "the quality of rankings" if "@" in name else name


def _plain_judge(
    report: JudgedResults, contradicted: list[JudgedMean], useless: list[JudgedMean]
) -> str:
    """Say of how many means the judge alone would have been wrong, and whether it is of use."""
    n = len(report.means)
    if not report.same_scale:
        return "The judge answers on another scale."
    if n == 1:
        mean = report.means[0]
        says = value_of(report, mean, mean.judge_alone)
        if not contradicted:
            return f"Alone, the judge says {says}, which the labels do not contradict."
        far = "high" if mean.judge_alone > mean.interval.estimate else "low"
        return f"Alone, the judge would have said {says}: too {far}."
    if contradicted:
        many = "all" if len(contradicted) == n else f"{len(contradicted)} of"
        return f"Alone, the judge would have been wrong about {many} {n} means."
    but = ", but it is of no use for some" if useless else ""
    return f"The labels contradict the judge about none of {n} means{but}."


def _plain_doubts(report: JudgedResults, useless: list[JudgedMean]) -> Iterator[str]:
    """Say where the judge does not help."""
    if useless:
        yield f"This judge is useless{_who(report, useless, 'for')}: use labels alone."
    if unused := [m for m in report.means if role(report, m) == "unused"]:
        yield f"The judge was not used{_who(report, unused, 'for')}."
    if tailed := [m for m in report.means if _has(m, InferCode.LONG_TAIL)]:
        yield (
            f"A few labels{_who(report, tailed, 'of')} lie far from the rest: without known bounds "
            "the interval may hold the truth less often than it says."
        )


def _who(report: JudgedResults, means: list[JudgedMean], link: str) -> str:
    if len(report.means) == 1:
        return ""
    if len(means) >= _NAMED:
        return f" {link} {len(means)} means"
    names = [shorten(mean.system or mean.measure, _NAME) for mean in means]
    return f" {link} {join(names)}"


def _mean_rows(report: JudgedResults) -> tuple[FirstRow, ...]:
    """Return each system of the first measure with its ends, and the judge's mean."""
    means = [m for m in report.means if m.measure == report.means[0].measure][:_FIRST_ROWS]
    places = _places(report.ranks[0]) if report.ranks else {}
    drawn = [end for m in means for end in (m.interval.lower, m.interval.upper)]
    if report.same_scale:
        drawn += [m.judge_alone for m in means]
    margin = 0.04 * (max(drawn) - min(drawn)) or 0.5
    span = (min(drawn) - margin, max(drawn) + margin)
    rows = []
    for mean in means:
        found = mean.interval
        text, best = value_of(report, mean, found.estimate), 1
        if mean.system in places:
            _, best, worst = places[mean.system]
            text += f"  #{best}" if best == worst else f"  #{best}–{worst}"
        bar = Bar.over(
            (found.lower, found.estimate, found.upper),
            span,
            side="baseline" if best == 1 else "even",
            solid=True,
            was=mean.judge_alone if report.same_scale else None,
        )
        name = shorten(mean.system or mean.measure, _NAME)
        rows.append(FirstRow(name=name, bar=bar, text=text))
    return tuple(rows)


# Means


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
    if not report.same_scale:
        judge += " on its own scale"
    facts.append(judge)
    if i.correlation is not None:
        facts.append(f"r = {number(i.correlation, digits=2)}")
    shown = estimate(i, digits=digits_of(report, mean.measure))
    return f"{shown} ({', '.join(facts)}). {worth_of(report, mean)}."


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


def excludes_judge(report: JudgedResults, mean: JudgedMean) -> bool:
    """Whether the interval shows that the judge alone is wrong."""
    return report.same_scale and mean.interval.excludes(mean.judge_alone)


def worth_of(report: JudgedResults, mean: JudgedMean) -> str:
    """Return the worth of the judge in a few words."""
    kind = role(report, mean)
    if kind == "unused" and _has(mean, InferCode.JUDGE_FEW):
        return "Too few labels to use the judge"
    return _WORTH[kind].format(labels=_labels(report, abs(mean.labels_saved or 0)))


# Comparisons, and how to read the numbers


def higher(c: JudgedComparison) -> str:
    """Return the side that scores higher, "" where that cannot be told."""
    if not c.interval.excludes(0):
        return ""
    return c.first if c.interval.estimate > 0 else c.second


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


def name_of(of: JudgedMean | QueryIntervals, link: str = ", ") -> str:
    """Return ``NDCG@10, BM25``, or the measure where there is one system."""
    return f"{of.measure}{link}{of.system}" if of.system else of.measure


def units_of(report: JudgedResults) -> str:
    """Return what is labelled: items or queries."""
    return "items" if report.kind == "items" else "queries"


def _labels(report: JudgedResults, n: int, before: str = "") -> str:
    """Return ``90 labels`` or ``1 labelled query``: what people's work is counted in."""
    if report.kind == "items":
        return counted(n, f"{before}label")
    before = before.replace("human ", "human-")
    return counted(n, f"{before}labelled query", f"{before}labelled queries")


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


_MEANS = "Means with the judge, from labels alone, and of the judge alone"
_LITTLE = 0.5  # of the range: an interval so wide says little about its query


def document(report: JudgedResults) -> d.Document:
    """Return everything there is to say about a judged evaluation."""
    facts = [
        f"{count(report.n_labeled)} {units_of(report)} labelled by people",
        f"{count(report.n_unlabeled)} only judged",
    ]
    if report.n_judge_missing:
        facts.append(f"{count(report.n_judge_missing)} without an answer of the judge")
    return d.Document(
        kind="Judged evaluation",
        name=report.name,
        first=first(report),
        headline=(f"{', '.join(facts)}.",),
        facts=(),
        created=report.created,
        warnings=_warnings(report),
        sections=tuple(_sections(report)),
    )


def _sections(report: JudgedResults) -> Iterator[d.Section]:
    if report.ranks:
        yield _ranking(report)
    yield _means(report)
    if report.evidence:
        yield evidence_section(report)
    if report.comparisons:
        yield _comparisons(report)
    if report.per_query:
        yield _queries(report)
    if report.audits:
        blocks = [block for name, audit in report.audits.items() for block in _audit(name, audit)]
        yield d.Section(
            id="judge", nav="The judge", title="The judge against people", blocks=tuple(blocks)
        )
    yield legacy.reading(how_to_read(report))
    yield _doubts(report)
    yield _data(report)


def _warnings(report: JudgedResults) -> tuple[str, ...]:
    """Return what must be read before any number: warnings, and audits that found no use."""
    warnings = list(report.warnings)
    for name, audit in report.audits.items():
        if audit.useless:
            warnings += [f"{name}: {note}" for note in audit.notes[:1]]
    return tuple(dict.fromkeys(warnings))


# Systems and means


def _ranking(report: JudgedResults) -> d.Section:
    """Return what a reader of several systems wants first: who is best, and who is tied."""
    sentences = []
    for ranks in report.ranks:
        tau, low, high = (
            number(value, digits=2) for value in (ranks.tau, ranks.tau_lower, ranks.tau_upper)
        )
        by = f" ({ranks.measure})" if len(report.ranks) > 1 else ""
        text = (
            "The judge alone orders the systems like their corrected means by Kendall's τ = "
            f"{tau} [{low}, {high}]{by}."
        )
        sentences.append(d.Say(text=text))
    return d.Section(
        id="ranking",
        brief=True,
        title="Which system is best",
        lead="The places each system may have stand beside its mean, as far as labels tell. They "
        "rest on all pairs of systems on the same items and hold all at once. Systems whose places "
        "overlap may be tied. The score that they are ranked by is drawn towards what the judge "
        "predicts, as far as chance explains the difference.",
        blocks=tuple(sentences),
    )


def _means(report: JudgedResults) -> d.Section:
    saved = "labels saved" if report.kind == "items" else "queries saved"
    columns = [
        "mean", "estimate", f"{level(report.config.confidence_level)} interval", "labels alone",
        "judge alone", "judge r", saved, "labelled", "judged only",
    ]  # fmt: skip
    if report.ranks:
        columns += ["ranked by", "possible places"]
    ranked = {ranks.measure: _places(ranks) for ranks in report.ranks}
    rows = []
    for mean in report.means:
        found, digits = mean.interval, digits_of(report, mean.measure)
        labels_saved = None if _judge_unused(report, mean) else mean.labels_saved
        cells = [
            name_of(mean),
            value_of(report, mean, found.estimate),
            interval(found, digits=digits),
            estimate(mean.labels_alone, digits=digits),
            value_of(report, mean, mean.judge_alone) if report.same_scale else MISSING,
            number(found.correlation, digits=2),
            number(labels_saved, digits=0, signed=True),
            count(found.n_labeled),
            count(found.n_unlabeled),
        ]
        if mean.measure in ranked:
            score, best, worst = ranked[mean.measure][mean.system]
            places = count(best) if best == worst else f"{count(best)} to {count(worst)}"
            cells += [number(score, digits=digits), places]
        elif ranked:
            cells += [MISSING, MISSING]
        rows.append(cells)
    measures = dict.fromkeys(mean.measure for mean in report.means)
    return d.Section(
        id="means",
        brief=True,
        title="Means",
        blocks=(
            legacy.listing((name_of(mean), sentence(report, mean)) for mean in report.means),
            d.Pictures(items=tuple((f"Mean {m}", _means_picture(report, m)) for m in measures)),
            legacy.on_paper(grid(columns, rows, _MEANS)),
        ),
    )


def _judge_unused(report: JudgedResults, mean: JudgedMean) -> bool:
    return role(report, mean) in ("absent", "unused")


def _means_picture(report: JudgedResults, measure: str) -> pic.Intervals:
    """Show each system: the interval with the judge, that of labels alone, the judge alone."""
    rows = []
    for mean in report.means:
        if mean.measure != measure:
            continue
        alone = mean.labels_alone
        marks = []
        if _judge_unused(report, mean):
            alone = mean.interval
        else:
            marks.append(pic.mark(mean.interval, "baseline"))
        if alone is not None:
            marks.append(pic.mark(alone, "even", solid=False))
        if report.same_scale:
            marks.append(pic.mark(None, "other", at=mean.judge_alone))
        rows.append(pic.Row(group=mean.system, marks=tuple(marks)))
    keys: tuple[pic.Key, ...] = (
        ("people and judge", "baseline", True),
        ("labels alone", "even", False),
        ("judge alone", "other", True),
    )
    drawn = {mark.colour for row in rows for mark in row.marks}
    return pic.Intervals(
        title=f"Mean {measure}, with and without the judge",
        rows=tuple(rows),
        x=pic.Axis(label=f"mean {measure}", digits=digits_of(report, measure)),
        keys=tuple(key for key in keys if key[1] in drawn),
    )


# Comparisons and single queries


def _comparisons(report: JudgedResults) -> d.Section:
    columns = (
        "measure", "first", "second", "higher", "estimate",
        f"{level(report.config.confidence_level)} interval", "judge r", "labelled", "what",
    )  # fmt: skip
    rows = []
    for c in report.comparisons:
        digits, what = digits_of(report, c.measure), "difference"
        if c.kind == "relative_delta":
            digits, what = 1, f"Relative Δ in {c.system}, %"
        rows.append(
            (
                c.measure,
                c.first,
                c.second,
                higher(c) or "cannot tell",
                number(c.interval.estimate, digits=digits, signed=True),
                ends_about_zero(c.interval, digits=digits),
                number(c.interval.correlation, digits=2),
                count(c.interval.n_labeled),
                what,
            )
        )
    lead = (
        "Positive: the first is higher. Each side is corrected by its own human labels: one "
        "correction for both would hide whom the judge favours."
    )
    alone = sum(c.family == 1 for c in report.comparisons)
    if alone > 1:
        lead += (
            f" The {count(alone)} intervals are not widened for their number: the more are looked "
            "at, the more exclude 0 by chance."
        )
    if alone < len(report.comparisons):
        lead += " The differences between all systems by one measure hold at once."
    table = grid(columns, rows, "Every comparison", n_heads=3)
    return d.Section(id="comparisons", title="Comparisons", brief=True, lead=lead, blocks=(table,))


def _queries(report: JudgedResults) -> d.Section:
    return d.Section(
        id="queries",
        brief=True,
        title="Single queries",
        lead="Of all queries, the stated share has its human value inside its interval, which is "
        "no promise for a particular kind of query. The intervals stand in report.json.",
        blocks=(d.Listing(rows=tuple(_query(report, q) for q in report.per_query)),),
    )


def _query(report: JudgedResults, query: QueryIntervals) -> str:
    """Say how much an interval of one query leaves open."""
    digits = digits_of(report, query.measure)
    width = float((query.upper - query.lower).mean()) if query.query_ids else 0.0
    text = (
        f"{name_of(query, ' of ')}: the {level(query.confidence_level)} interval of a single query "
        f"is {number(width, digits=digits)} wide on average"
    )
    if query.highest <= 0:
        return f"{text}."
    share = width / query.highest
    text += (
        f", {number(100 * share, digits=0)}% of the range from 0 to "
        f"{number(query.highest, digits=digits)}."
    )
    return text if share <= _LITTLE else f"{text} It says little about any one query."


# The judge


def _audit(name: str, audit: JudgeAudit) -> Iterator[d.Block]:
    yield d.Heading(text=d.Name(name))
    if not audit.same_scale:
        text = (
            "The judge seems to answer on another scale than people, so judge − people is no error "
            "of the judge. How far the two go together is what counts."
        )
    else:
        text = (
            "The mean of judge − people: above 0 the judge is too kind, below 0 too hard. The "
            "human labels correct the estimates on this page for it. A bias that is alike in all "
            "groups does a comparison no harm; one that differs turns a comparison by the judge "
            "alone."
        )
    yield d.Say(text=text)
    yield d.Facts(frames=(("", legacy.table(("audit", ""), audit.rows())),))


# What to doubt, and what it was made with


def _doubts(report: JudgedResults) -> d.Section:
    """Return what the intervals assume, and for which numbers; and what to know of each."""
    assumed: list[tuple[str, Iterable[object]]] = []
    noted: list[tuple[str, str]] = []
    for mean in report.means:
        for found in (mean.interval, mean.labels_alone):
            if found is not None:
                assumed.append((f"means, {found.method}", found.assumptions))
        noted += [(name_of(mean), str(note)) for note in mean.interval.notes]
    for c in report.comparisons:
        what = "Relative Δ" if c.kind == "relative_delta" else "differences"
        assumed.append((f"{what}, {c.interval.method}", c.interval.assumptions))
        who = f"{c.measure}, {c.first} against {c.second}"
        noted += [(who, str(note)) for note in c.interval.notes]
    for query in report.per_query:
        assumed.append((f"single queries, rule “{query.rule}”", query.assumptions))
    for name, audit in report.audits.items():
        notes = audit.notes[1:] if audit.useless else audit.notes  # the first is a warning then
        noted += [(f"audit of {name}", note) for note in notes if note not in report.warnings]
    return legacy.caveats(assumed, noted, warned=bool(_warnings(report)))


def _data(report: JudgedResults) -> d.Section:
    c = report.config
    what, judged = ("items", "items") if report.kind == "items" else ("queries", "pairs")
    data = (
        ("name", report.name),
        (f"{what} with human labels", count(report.n_labeled)),
        (f"{what} that only the judge saw", count(report.n_unlabeled)),
        (f"{judged} the judge gave no value", count(report.n_judge_missing)),
    )
    settings = [
        ("method", f"{_METHODS.get(c.method, c.method)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
        ("seed", str(c.seed)),
    ]
    if report.kind == "ranking":
        gain = "2^r − 1" if c.gain == "exponential" else "r"
        settings += [("gain of a grade", gain), ("lowest relevant grade", str(c.min_grade))]
    tables = (("Data", "data", data), ("Evaluation", "setting", settings))
    return legacy.data(tables, report.environment, report.created)


def evidence_section(report: JudgedResults) -> d.Section:
    """Return the items that people and the judge see most differently."""
    digits = digits_of(report, report.means[0].measure)
    words = CaseWords(
        noun="item",
        adds="judge − people",
        sides=("people", "judge"),
        got="value",
        write=lambda value: number(value, digits=digits),
        add=lambda value: number(value, digits=digits, signed=True),
    )
    caption = "Items that the judge and people see most differently"
    return d.Section(
        id="evidence",
        nav="Evidence",
        title="Where the judge is furthest off",
        lead="The labelled items on which the judge lies furthest from people, and some on which "
        "it errs the other way. Read them before you trust the judge.",
        blocks=tuple(case_blocks(report.evidence, words, caption=caption)),
    )


_PER_QUERY = ("estimate", "lower", "upper", "human")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JudgedReport(Report, JudgedResults):
    """The result of a judged evaluation, which shows itself."""

    def page(self) -> Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure, every query, and cases with texts."""
        cases = legacy.cases(self.evidence)
        return legacy.frames(self, self.page(), queries=self._queries(), cases=cases)

    def _queries(self) -> Iterator[dict[str, Any]]:
        for found in self.per_query:
            for at, query in enumerate(found.query_ids):
                row = {"measure": found.measure, "system": found.system, "query_id": query}
                yield row | {name: float(getattr(found, name)[at]) for name in _PER_QUERY}

    def _outcomes(self) -> Iterator[Outcome]:
        for mean in self.means:
            apart = mean.judge_alone - mean.interval.estimate
            code = "judge_too_high" if apart > 0 else "judge_too_low"
            if not excludes_judge(self, mean):
                code = "judge_not_contradicted"
            several = len({other.measure for other in self.means}) > 1
            subject = f"{mean.system}, {mean.measure}" if several else mean.system or mean.measure
            yield Outcome(subject, code, mean.measure, mean.interval, digits=3)
