"""The report of a judged evaluation: what it says, in the order in which it says it."""

from collections.abc import Iterable, Iterator, Sequence

from rag_sourcebias.core.finding import MISSING, Frame, Interval, number, p_value, shorten
from rag_sourcebias.judged.data import (
    Agreement,
    GroupBias,
    JudgeAudit,
    JudgedMean,
    JudgedRanks,
    JudgedResults,
    LabelCalibration,
    LabelledClusters,
    QueryIntervals,
)
from rag_sourcebias.judged.evidence import evidence_section
from rag_sourcebias.judged.words import (
    comparison,
    decimals,
    digits_of,
    first,
    headline,
    how_to_read,
    method_name,
    name_of,
    other_scale,
    ranking,
    role,
    sentence,
    units_of,
    value_of,
    within,
)
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.legacy import count, ends_about_zero, estimate, interval, level

_TICKS = 15  # places that all have a tick: more would run into one another
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
    if report.clusters:
        facts.append(_in_clusters(report.clusters))
    return d.Document(
        kind="Judged evaluation",
        name=report.name,
        first=first(report),
        headline=(headline(report),),
        facts=tuple(facts),
        created=report.created,
        cautions="Before you trust a number",
        warnings=_warnings(report),
        sections=tuple(_sections(report)),
    )


def _sections(report: JudgedResults) -> Iterator[d.Section]:
    if report.ranks:
        yield _ranking(report)
    yield _means(report)
    if report.evidence and not any(other_scale(report, mean) for mean in report.means):
        yield evidence_section(report)
    if report.comparisons:
        yield _comparisons(report)
    if report.per_query:
        yield _queries(report)
    if report.audits:
        yield _judge(report)
    yield legacy.reading(how_to_read(report))
    yield _doubts(report)
    yield _data(report)


def _in_clusters(found: LabelledClusters) -> str:
    how = {
        "clusters": "each labelled whole",
        "items": "single items labelled",
        "both": "labelled in two steps: clusters, then items",
    }
    return f"labels in {count(found.n_labeled)} of {count(found.n)} clusters, {how[found.drawn]}"


def _warnings(report: JudgedResults) -> tuple[str, ...]:
    """Return what must be read before any number: warnings, and audits that found no use."""
    warnings = list(report.warnings)
    for name, audit in report.audits.items():
        if audit.useless:
            warnings += [f"{name}: {note}" for note in audit.notes[:1]]
    return tuple(dict.fromkeys(warnings))


def _grid(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], caption: str, *, n_heads: int = 1
) -> d.Table:
    table = legacy.table(columns=columns, rows=tuple(rows), n_heads=n_heads)
    return d.Table(frame=table, caption=caption)


# Systems and means


def _ranking(report: JudgedResults) -> d.Section:
    """Return what a reader of several systems wants first: who is best, and who is tied."""
    columns = ("system", "estimate", "possible places", "judge alone", "place by the judge")
    blocks: list[d.Block] = []
    for ranks in report.ranks:
        digits, by_judge = digits_of(report, ranks.measure), _places_by_judge(ranks)
        rows = []
        for i, name in enumerate(ranks.systems):
            best, worst = ranks.best[i], ranks.worst[i]
            places = count(best) if best == worst else f"{count(best)} to {count(worst)}"
            score = number(ranks.score[i], digits=digits)
            judge = number(ranks.judge[i], digits=digits)
            rows.append((name, score, places, judge, count(by_judge[i])))
        blocks += [
            legacy.listing((("", ranking(report, ranks)),)),
            d.Pictures(items=((f"Places, {ranks.measure}", _places_picture(ranks)),)),
            legacy.on_paper(_grid(columns, rows, f"Systems in order of {ranks.measure}")),
        ]
    return d.Section(
        id="ranking",
        brief=True,
        title="Which system is best",
        lead="The places each system may have, as far as the labels tell. They rest on all pairs "
        "of systems on the same items and hold all at once. Systems whose places overlap may be "
        "tied. An estimate is drawn towards what the judge predicts, as far as chance explains "
        "the difference.",
        blocks=tuple(blocks),
    )


def _places_by_judge(ranks: JudgedRanks) -> list[int]:
    """Return the place of each system by the judge alone; equal values share a place."""
    return [1 + sum(other > value for other in ranks.judge) for value in ranks.judge]


def _places_picture(ranks: JudgedRanks) -> pic.Intervals:
    by_judge, total = _places_by_judge(ranks), len(ranks.systems)
    rows = []
    for i, name in enumerate(ranks.systems):
        ends = (ranks.best[i], ranks.worst[i])
        place = pic.Mark(at=i + 1, ends=ends, colour="baseline")
        rows.append(
            pic.Row(
                group=shorten(name, 40), marks=(place, pic.Mark(at=by_judge[i], colour="other"))
            )
        )
    ticks: tuple[tuple[float, str], ...] = ()
    if total <= _TICKS:
        ticks = tuple((float(place), str(place)) for place in range(1, total + 1))
    return pic.Intervals(
        title=f"Possible places of each system by {ranks.measure}",
        rows=tuple(rows),
        x=pic.Axis(label="place (1: best)", span=(0.5, total + 0.5), digits=0, ticks=ticks),
        keys=(("people and judge", "baseline", True), ("judge alone", "other", True)),
    )


def _means(report: JudgedResults) -> d.Section:
    saved = "labels saved" if report.kind == "items" else "queries saved"
    columns = (
        "mean", "estimate", f"{level(report.config.confidence_level)} interval", "labels alone",
        "judge alone", "judge r", saved, "labelled", "judged only",
    )  # fmt: skip
    rows = []
    for mean in report.means:
        found, digits = mean.interval, digits_of(report, mean.measure)
        labels_saved = None if _judge_unused(report, mean) else mean.labels_saved
        rows.append(
            (
                name_of(mean),
                value_of(report, mean, found.estimate),
                interval(found, digits=digits),
                estimate(mean.labels_alone, digits=digits),
                value_of(report, mean, mean.judge_alone),
                number(found.correlation, digits=2),
                number(labels_saved, digits=0, signed=True),
                count(found.n_labeled),
                count(found.n_unlabeled),
            )
        )
    measures = dict.fromkeys(mean.measure for mean in report.means)
    return d.Section(
        id="means",
        brief=True,
        title="Means",
        blocks=(
            legacy.listing((name_of(mean), sentence(report, mean)) for mean in report.means),
            d.Pictures(items=tuple((f"Mean {m}", _means_picture(report, m)) for m in measures)),
            legacy.on_paper(_grid(columns, rows, _MEANS)),
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
        if not other_scale(report, mean):
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
    clear = [c for c in report.comparisons if c.interval.excludes(0)]
    columns = (
        "measure", "first", "second", "what", "estimate",
        f"{level(report.config.confidence_level)} interval", "excludes 0", "judge r", "labelled",
    )  # fmt: skip
    rows = []
    for c in report.comparisons:
        digits = decimals(report, c)
        rows.append(
            (
                c.measure,
                c.first,
                c.second,
                f"Relative Δ{within(c)}, %" if c.kind == "relative_delta" else "difference",
                number(c.interval.estimate, digits=digits, signed=True),
                ends_about_zero(c.interval, digits=digits),
                "yes" if c.interval.excludes(0) else "no",
                number(c.interval.correlation, digits=2),
                count(c.interval.n_labeled),
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
    blocks: list[d.Block] = []
    if clear:
        blocks.append(d.Listing(rows=tuple(comparison(report, c) for c in clear)))
    if len(clear) < len(rows):
        left = f"{len(rows) - len(clear)} of {len(rows)} comparisons show no clear difference."
        blocks.append(d.Say(text=left))
    blocks.append(legacy.on_paper(_grid(columns, rows, "Every comparison", n_heads=4)))
    return d.Section(
        id="comparisons", title="Comparisons", brief=True, lead=lead, blocks=tuple(blocks)
    )


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


def _judge(report: JudgedResults) -> d.Section:
    blocks = _several(report) if report.judges else []
    for name, audit in report.audits.items():
        blocks += _audit(report, name, audit)
    return d.Section(
        id="judge", nav="The judge", title="The judge against people", blocks=tuple(blocks)
    )


def _several(report: JudgedResults) -> list[d.Block]:
    text = (
        f"{len(report.judges)} judges are combined: the mean of their standardised values and, "
        "where labels are enough, what they say beyond it. A judge adds what r without it is below "
        "Pearson's r of the mean of all; with few labels both are rough."
    )
    if spare := ", ".join(judge.name for judge in report.judges if judge.redundant):
        text += f" {spare}: almost the same values as another judge; one of them would do."
    rows = [
        (
            judge.name,
            count(judge.n_missing),
            number(judge.correlation, digits=2),
            number(judge.without, digits=2),
            judge.closest,
            number(judge.with_closest, digits=2),
        )
        for judge in report.judges
    ]
    columns = ("judge", "no value", "r with people", "r without it", "most like", "r with it")
    return [d.Say(text=text), _grid(columns, rows, "What each judge adds")]


def _audit(report: JudgedResults, name: str, audit: JudgeAudit) -> Iterator[d.Block]:
    yield d.Heading(text=d.Name(name))
    if any(other_scale(report, mean) for mean in report.means if mean.measure == name):
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
    groups: list[tuple[str, GroupBias | JudgeAudit]] = [(g.group, g) for g in audit.groups]
    groups.append(("all", audit))
    biases = [
        (
            group,
            count(found.n),
            number(found.human_mean, digits=3),
            number(found.judge_mean, digits=3),
            _signed(found.bias),
        )
        for group, found in groups
    ]
    columns: tuple[str, ...] = ("group", "n", "people", "judge", "judge − people")
    yield _grid(columns, biases, "Bias of the judge")
    if audit.differences:
        differences = [
            (f"{d.group} − {d.other}", _signed(d.difference), p_value(d.p_value),
             p_value(d.p_adjusted))
            for d in audit.differences
        ]  # fmt: skip
        columns = ("groups", "difference of bias", "p", "adjusted p")
        caption = "Differences of bias between groups; p-values adjusted by Holm's method"
        yield _grid(columns, differences, caption)
    if audit.calibration:
        yield _grades(audit.calibration)
    yield d.Facts(frames=(("", _audit_table(audit)),))


def _grades(fit: LabelCalibration) -> d.Table:
    columns = ("grade", "people, %", "judge, %", "difference, points", "ECE", "ECE if calibrated")
    rows = [
        (
            str(grade.grade),
            number(100 * grade.observed_share),
            number(100 * grade.predicted_share),
            estimate(grade.difference, scale=100, signed=True),
            number(grade.ece, digits=3),
            number(grade.ece_if_calibrated, digits=3),
        )
        for grade in fit.grades
    ]
    caption = "Grades given by people and by the judge; ECE is the expected calibration error"
    return _grid(columns, rows, caption)


def _signed(found: Interval | None) -> str:
    return estimate(found, digits=3, signed=True)


def _audit_table(audit: JudgeAudit) -> Frame:
    """Return how the judge and people agree; what is not known is left out."""
    rows = [
        ("items with both values", count(audit.n)),
        ("independent units among them", count(audit.n_clusters)),
        ("labelled, but not judged", count(audit.n_judge_missing)),
        ("Pearson's r", estimate(audit.pearson, digits=2)),
        ("Spearman's ρ", estimate(audit.spearman, digits=2)),
        ("Kendall's τ-b", number(audit.kendall, digits=2)),
        ("mean of judge − people", estimate(audit.bias, digits=3)),
        ("AUC", estimate(audit.auc, digits=2)),
    ]
    if audit.n_clusters == audit.n:  # the threshold counts items as independent
        useful = f"above {number(audit.useful_from, digits=2)}"
        rows.append(("r from which a judge is of use", useful))
    if audit.agreement:
        rows += _agreement_rows(audit.agreement)
    if audit.calibration:
        fit = audit.calibration
        rows += [
            ("gain, judge − people", estimate(fit.gain_error, digits=2)),
            (
                "slope of people's gain on the judge's (1 is calibrated)",
                number(fit.gain_slope, digits=2),
            ),
            (
                "skill of the probabilities (1 is perfect, 0 no better than the shares)",
                number(fit.rps_skill, digits=2),
            ),
            ("expected calibration error, mean of the grades", number(fit.ece, digits=3)),
        ]
    known = tuple(row for row in rows if row[1] != MISSING)
    return legacy.table(columns=("audit", ""), rows=known)


def _agreement_rows(agreement: Agreement) -> list[tuple[str, str]]:
    rounded = " (judge rounded)" if agreement.rounded else ""
    rows = [
        (
            f"share with the same of {agreement.n_grades} grades{rounded}",
            estimate(agreement.exact, digits=2),
        ),
        ("Cohen's κ", estimate(agreement.kappa, digits=2)),
    ]
    if agreement.n_grades > 2:
        rows += [
            ("κ, quadratic weights", estimate(agreement.kappa_quadratic, digits=2)),
            ("Krippendorff's α, ordinal", estimate(agreement.alpha_ordinal, digits=2)),
        ]
    return rows


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
    warned = bool(_warnings(report))
    return legacy.caveats(assumed, noted, warned=warned)


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
        ("method", f"{method_name(c.method)} ({c.method})"),
        ("target", c.target),
        ("confidence level", level(c.confidence_level)),
        ("seed", str(c.seed)),
    ]
    if report.kind == "ranking":
        gain = "2^r − 1" if c.gain == "exponential" else "r"
        settings += [("gain of a grade", gain), ("lowest relevant grade", str(c.min_grade))]
    return legacy.data(
        (
            ("Data", legacy.table(columns=("data", ""), rows=data)),
            ("Evaluation", legacy.table(columns=("setting", ""), rows=tuple(settings))),
            ("Environment", legacy.environment_table(report.environment, report.created)),
        )
    )
