"""The report of a mitigation, before and after: what it says, in the order in which it says it."""

from collections.abc import Iterable, Iterator

import numpy as np

from rag_sourcebias.core.finding import (
    MISSING,
    Frame,
    Interval,
    number,
    p_value,
    short_names,
    shorten,
    source_name,
)
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.debias.data import (
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasResults,
    DebiasSearch,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.debias.words import (
    DebiasVerdict,
    QualityKind,
    change_ends,
    criteria,
    data_name,
    delta_ends,
    first,
    headline,
    loss,
    percent,
    percent_ends,
    quality_kind,
    quality_names,
    search_sentence,
    short,
    significant,
    verdict_text,
    verdicts,
    weight_text,
)
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.report import document as doc
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.legacy import (
    alpha_of,
    count,
    counted,
    delta,
    estimate,
    level,
    score,
    settings,
    share,
)

_KINDS = {
    "projection": "projection",
    "training": "training",
    "calibration": "calibration of scores",
    "twins": "twin smoothing",
    "model": "another model",
}
_NEW = {
    "transfer": "yes",
    "held out": "pairs only",
    "fitted": "no",
    "overlap": "no",
    "own": "own copies",
    "unknown": "not known",
}
_NARROWEST = 10.0  # points of Relative Δ on either side of the target
_MARKS: dict[QualityKind, pic.Key] = {
    "kept": ("loss excluded", "baseline", True),
    "open": ("not excluded", "even", False),
    "unknown": ("not excluded", "even", False),
    "lost": ("loss shown", "other", True),
}


def document(report: DebiasResults) -> doc.Document:
    """Return everything there is to say about a mitigation."""
    parts = (
        _findings, _skew, _quality, _search, _training, _methods, _reading, _caveats, _data,
    )  # fmt: skip
    before = dict.fromkeys(d.outcomes[0].name for d in report.datasets)
    after = list(dict.fromkeys(v.system for v in verdicts(report)))
    return doc.Document(
        kind="Debias report: before and after",
        title=f"Before and after: {', '.join(after)}",
        name=after[0] if len(after) == 1 else f"{len(after)} changed systems",
        first=first(report),
        headline=(headline(report),),
        facts=(
            doc.Name(f"compared with {', '.join(before)}"),
            counted(len(report.datasets), "data set"),
        ),
        created=report.created,
        warnings=_warnings(report),
        sections=tuple(found for make in parts if (found := make(report)) is not None),
    )


def _warnings(report: DebiasResults) -> tuple[str, ...]:
    """Return what to know before any number is trusted; of single data sets with their name."""
    several = len(report.datasets) > 1
    told = [
        f"{data_name(report, dataset)}: {text}" if several else text
        for dataset in report.datasets
        for text in dataset.warnings
    ]
    return tuple(dict.fromkeys([*report.warnings, *told]))


def _where(report: DebiasResults, dataset: DebiasDataset, outcome: DebiasOutcome) -> str:
    return f"{outcome.name} on {data_name(report, dataset)}"


def _measured(frame: Frame, caption: str) -> tuple[doc.Block, ...]:
    """Return a table, whose caption Markdown says beneath it."""
    said = doc.Only(outputs=("markdown",), blocks=(doc.Say(text=f"{caption}."),))
    return doc.Table(frame=frame, caption=caption), said


# Findings


def _findings(report: DebiasResults) -> doc.Section:
    every, c = verdicts(report), report.config
    blocks = (
        legacy.listing((f"{v.system} on {v.on}", verdict_text(v)) for v in every),
        legacy.on_paper(
            doc.Say(text=f"All criteria are met where: {criteria(report)}."),
            doc.Table(
                frame=_verdicts_table(report, every),
                caption="Every system on every data set: Relative Δ of "
                f"NDCG@{c.skew_cutoff}, change of NDCG@{c.quality_cutoff}",
            ),
        ),
    )
    return doc.Section(id="findings", title="Findings", brief=True, blocks=blocks)


def _verdicts_table(report: DebiasResults, every: tuple[DebiasVerdict, ...]) -> Frame:
    rows = [
        (
            v.system,
            v.on,
            short(v),
            _NEW[v.role],
            MISSING if v.skew.before is None else delta(v.skew.before.estimate),
            delta_ends(v.skew.after),
            *(percent(change.relative) for _, change, _ in v.quality),
        )
        for v in every
    ]
    names = quality_names(report).values()
    columns = ("system", "data", "verdict", "new data", "before", "after", *names)
    return legacy.table(columns, rows, n_heads=4)


# Skew and quality


def _skew(report: DebiasResults) -> doc.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    rows = tuple(
        (
            _where(report, dataset, outcome),
            f"@{s.cutoff}",
            delta_ends(s.before),
            delta_ends(s.after) + " ✓" * (s.code is SkewCode.ALIKE),
            delta_ends(s.change) + "*" * significant(report, s),
            p_value(s.p_value),
            p_value(s.p_adjusted),
        )
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:]
        for s in outcome.skew
    )
    columns = ("system and data", "NDCG", "before", "after", "change", "p", "adjusted p")
    caption = (
        f"Relative Δ of NDCG with {level(c.confidence_level)} intervals. ✓ the interval lies "
        f"within {c.tolerance:g} points of {c.target:g}. * adjusted p of the change below "
        f"{alpha_of(c.confidence_level):.3g}"
    )
    return doc.Section(
        id="skew",
        brief=True,
        nav="Skew",
        title="Skew before and after",
        lead="All sources are searched together. Relative Δ is 0 where both are treated alike, "
        f"positive where {base} text ranks higher; the decision is made at NDCG@{c.skew_cutoff}.",
        note="The dashed line is the target, the band its tolerance. At smaller cutoffs "
        "intervals are wide: lines that end at the edge of the picture go on.",
        blocks=(
            doc.Pictures(items=_skew_pictures(report), small=True),
            *_measured(legacy.table(columns, rows, n_heads=2), caption),
        ),
    )


def _target(report: DebiasResults, *, level: bool = False) -> tuple[pic.Guide, ...]:
    at, off = report.config.target, report.config.tolerance
    return (
        pic.Guide(at=at, look="dashed", colour="ink", level=level, name="target"),
        pic.Guide(at=at - off, to=at + off, colour="grid", level=level),
    )


def _skew_pictures(report: DebiasResults) -> tuple[tuple[str, pic.Picture], ...]:
    span = _skew_span(report)
    drawn = []
    for dataset in report.datasets:
        name = data_name(report, dataset)
        names = short_names((report.config.baseline_source, dataset.other)).values()
        base, other = (shorten(text, 20) for text in names)
        rows = tuple(
            _skew_row(report, outcome.name, skew)
            for outcome in dataset.outcomes[1:]
            for skew in outcome.skew
        )
        picture = pic.Intervals(
            title=f"Relative Δ before and after on {name}",
            rows=rows,
            x=pic.Axis(label=f"← {other} higher  |  {base} higher →", span=span),
            guides=_target(report),
            keys=_CHANGED,
            joined=True,
        )
        drawn.append((name, picture))
    return tuple(drawn)


_CHANGED: tuple[pic.Key, ...] = (
    ("before", "even", False),
    ("after", "baseline", False),
    ("after, significant", "baseline", True),
)


def _skew_row(report: DebiasResults, system: str, skew: SkewChange) -> pic.Row:
    marks = []
    if skew.before is not None:
        marks.append(pic.mark(skew.before, "even", solid=False))
    if skew.after is not None:
        marks.append(pic.mark(skew.after, "baseline", solid=significant(report, skew)))
    return pic.Row(
        label=f"@{skew.cutoff}",
        group=system,
        marks=tuple(marks),
        note="" if skew.after is not None else "no interval",
    )


def _skew_span(report: DebiasResults) -> tuple[float, float]:
    """Return the ends of the axis.

    Intervals at cutoffs below the one that decides may be so wide that nothing else could be seen:
    they may leave the picture.
    """
    target = report.config.target
    values = [0.0, target - _NARROWEST, target + _NARROWEST]
    for change in (s for d in report.datasets for o in d.outcomes for s in o.skew):
        for found in (change.before, change.after):
            if found is not None:
                steady = change.cutoff >= report.config.skew_cutoff
                values += [found.lower, found.upper] if steady else [found.estimate]
    margin = 0.04 * (max(values) - min(values))
    return max(-210.0, min(values) - margin), min(210.0, max(values) + margin)


def _quality(report: DebiasResults) -> doc.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    names = quality_names(report)
    shown = tuple(
        (
            _where(report, dataset, outcome), names[q.quality], score(q.before), score(q.after),
            percent_ends(q), p_value(q.p_value), *_test_cells(report, q),
        )
        for dataset in report.datasets
        for outcome in dataset.outcomes[1:]
        for q in outcome.quality
        if q.cutoff == c.quality_cutoff
    )  # fmt: skip
    margin, ends = loss(c.relative_margin), level(c.confidence_level)
    columns = (
        "system and data", "quality", "before", "after", "change", "p",
        "bound", f"loss of {margin} excluded", "needed",
    )  # fmt: skip
    caption = (
        f"NDCG@{c.quality_cutoff} ×100, change in percent with {ends} interval; p of no change, "
        f"not adjusted. Bound: one-sided, at {level(1 - c.level)}. Needed: queries with which no "
        "change at all would pass with probability 80%"
    )
    return doc.Section(
        id="quality",
        brief=True,
        nav="Quality",
        title="What it costs",
        lead=f"Change of NDCG@{c.quality_cutoff} where only {base} texts are searched, only the "
        "other source's, and both together with both versions relevant.",
        note=f"Lines are intervals; the upright tick is the one-sided bound at "
        f"{level(1 - c.level)}, which has to lie right of the dotted line: then a loss of {margin} "
        "or more is excluded.",
        blocks=(
            doc.Pictures(items=_quality_pictures(report), small=True),
            *_measured(legacy.table(columns, shown, n_heads=2), caption),
        ),
    )


def _quality_pictures(report: DebiasResults) -> tuple[tuple[str, pic.Picture], ...]:
    """Return the change of every quality in percent with the bound of its test."""
    drawn: dict[str, pic.Intervals] = {}
    c, measure = report.config, f"NDCG@{report.config.quality_cutoff}"
    for dataset in report.datasets:
        found = [
            (verdict.system, *measured)
            for verdict in verdicts(report)
            if verdict.dataset is dataset
            for measured in verdict.quality
        ]
        rows = tuple(
            pic.Row(
                label=name,
                group=system,
                marks=(
                    pic.Mark(
                        at=change.relative,
                        ends=change_ends(change),
                        colour=_MARKS[kind][1],
                        solid=_MARKS[kind][2],
                    ),
                ),
                ticks=() if change.test is None else (max(change.test.lower, -100.0),),
            )
            for system, name, change, kind in found
            if change.relative is not None
        )
        if not rows:
            continue
        data = data_name(report, dataset)
        drawn[data] = pic.Intervals(
            title=f"Change of {measure} on {data}",
            rows=rows,
            x=pic.Axis(label=f"change of {measure}, %"),
            guides=(
                pic.Guide(at=0, look="dashed", colour="ink"),
                pic.Guide(at=-100 * c.relative_margin, look="dotted", colour="other"),
            ),
            keys=tuple(dict.fromkeys(_MARKS[kind] for *_, kind in found)),
        )
    return tuple(zip(drawn, pic.aligned(list(drawn.values())), strict=True))


def _test_cells(report: DebiasResults, found: QualityChange) -> tuple[str, ...]:
    if found.test is None:
        return MISSING, "not tested", MISSING
    kind = quality_kind(report.config, found)
    return (
        f"{number(found.test.lower, signed=True)}%",
        {"kept": "yes", "lost": "no: it is shown"}.get(kind, "no"),
        count(found.test.n_needed) if kind == "open" else MISSING,
    )


# How it was found: search, training, methods


def _search(report: DebiasResults) -> doc.Section | None:
    search, names = report.search, quality_names(report)
    if search is None:
        return None
    rows = tuple(
        (
            weight_text(p.weight),
            delta_ends(p.relative_delta),
            *(estimate(q, scale=100) for q in (p.human_only, p.llm_only, p.mixed)),
        )
        for p in search.points
    )
    table = legacy.table((search.searched, "Relative Δ", *names.values()), rows)
    return doc.Section(
        id="search",
        brief=True,
        nav="Search",
        title="The search",
        lead=f"Skew and quality by {search.searched}, with intervals over queries and seeds.",
        blocks=(
            legacy.listing((("", search_sentence(search)),)),
            doc.Pictures(items=(("Relative Δ", _search_picture(report, search)),), small=True),
            doc.Table(
                frame=table,
                caption="Relative Δ and qualities ×100 with intervals",
            ),
        ),
    )


def _search_picture(report: DebiasResults, search: DebiasSearch) -> pic.Lines:
    """Return Relative Δ against the weight, with the target ([K] Fig. 8)."""
    points, guides = search.points, _target(report, level=True)
    places = tuple(float(place) for place in range(len(points)))  # evenly spaced
    if (met := search.zero_crossing) is not None:
        weights = [p.weight for p in points]
        ends = (met.lower, met.upper, met.estimate)
        low, high, at = map(float, np.interp(ends, weights, places))
        guides += (
            pic.Guide(at=low, to=high, colour="other"),
            pic.Guide(at=at, look="dotted", colour="other", name="meets the target"),
        )
    ticks = tuple((x, weight_text(p.weight)) for x, p in zip(places, points, strict=True))
    return pic.Lines(
        title=f"Relative Δ against {search.searched}",
        curves=(
            pic.Curve(
                x=places,
                y=tuple(p.relative_delta.estimate for p in points),
                ends=tuple((p.relative_delta.lower, p.relative_delta.upper) for p in points),
                line=True,
            ),
        ),
        x=pic.Axis(label=f"{search.searched} (evenly spaced)", ticks=ticks),
        y=pic.Axis(label="Relative Δ"),
        guides=guides,
    )


def _training(report: DebiasResults) -> doc.Section | None:
    if not report.training:
        return None
    columns = ("system", "weight", "triples", "steps", "time", "hinge > 0")
    runs = legacy.table(columns, map(_run, report.training), n_heads=2)
    return doc.Section(
        id="training",
        title="Training",
        lead="The share of training pairs on which the LLM version still scored above the human "
        "one (a positive hinge), from the first to the last point.",
        blocks=(doc.Table(frame=runs, caption="Training runs"),),
    )


def _run(run: TrainingHistory) -> tuple[str, ...]:
    hinges = [share(p.hinge_share) for p in run.points if p.hinge_share is not None]
    return (
        run.name,
        f"{weight_text(run.debias_weight)}, seed {run.seed}",
        count(run.n_pairs),
        count(run.n_steps),
        f"{number(run.seconds, digits=0)} s",
        f"{hinges[0]} → {hinges[-1]}" if hinges else MISSING,
    )


def _methods(report: DebiasResults) -> doc.Section:
    return doc.Section(
        id="methods",
        title="What was done",
        lead="How each changed system was made. A method fitted on pairs that are also judged may "
        "look better than it is.",
        blocks=(
            doc.Facts(frames=tuple((doc.Name(m.name), _method(report, m)) for m in report.methods)),
        ),
    )


def _method(report: DebiasResults, method: DebiasMethod) -> Frame:
    seen = [
        f"{count(o.n_seen)} of {count(d.n_pairs)} on {d.data.name}"
        for d in report.datasets
        for o in d.outcomes[1:]
        if o.name == method.name
    ]
    cost = (
        "not measured"
        if method.encode_cost is None
        else f"{number(100 * (method.encode_cost - 1), signed=True)}% of the time before"
    )
    rows = (
        ("kind", _KINDS[method.kind]),
        ("fitted on", method.fitted_on or "not known"),
        ("pairs", "not known" if method.n_pairs is None else count(method.n_pairs)),
        ("encode cost", cost),
        ("judged pairs seen in fitting", "; ".join(seen) or "not judged"),
        *((str(key), str(value)) for key, value in method.settings.items()),
    )
    return legacy.table((method.name, ""), rows)


# How to read it, what to doubt, what it was made with


def _reading(report: DebiasResults) -> doc.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    rows = [
        (
            "What is Relative Δ?",
            "The ranking of the mixed corpus is scored twice: once counting only relevant "
            f"{base} texts, once only those of the other source. Relative Δ is the difference of "
            "the two means in percent of their average: positive where "
            f"{base} text ranks higher, negative where the other does.",
        ),
        (
            "When does a system meet all criteria?",
            f"{criteria(report)}. No estimate is enough for that. An interval that neither lies "
            "there nor excludes the target cannot tell; then the queries needed are named.",
        ),
        (
            "What does “a loss is excluded” mean?",
            f"A one-sided paired test at level {c.level:g} rejects that the loss is "
            f"{loss(c.relative_margin)} or more. “Not excluded” does not mean that quality fell: "
            "often there are too few queries, and the number that could settle it is given.",
        ),
        (
            f"What are {', '.join(quality_names(report).values())}?",
            "NDCG on the corpus of one source alone, twice, and on the mixed corpus where both "
            "versions count as relevant. A mitigation that only reorders the sources leaves the "
            "first two as they are.",
        ),
        (
            "What do intervals and p-values cover?",
            f"Each {level(c.confidence_level)} interval covers the value for all queries like "
            "these, one at a time. Before and after are paired by query, so the change is known "
            "better than two separate intervals suggest; where few queries changed, its interval "
            "is cautious and may hold 0 although the test is significant. p is of no change; "
            f"{count(report.n_tests)} tests are adjusted together: {report.family.rstrip('.')}. "
            f"Below {alpha_of(c.confidence_level):.3g} the adjusted value is called significant.",
        ),
    ]
    return legacy.reading(rows)


def _caveats(report: DebiasResults) -> doc.Section:
    intervals = [(where, what, i) for where, what, i in _intervals(report) if i is not None]
    assumptions = [(f"{what}, {found.method}", found.assumptions) for _, what, found in intervals]
    noted = [*_refusals(report)]
    noted += [(where, f"{what}: {note}") for where, what, i in intervals for note in i.notes]
    return legacy.caveats(assumptions, noted, warned=bool(_warnings(report)))


def _intervals(report: DebiasResults) -> Iterator[tuple[str, str, Interval | None]]:
    """Yield (where, of what, interval) of everything that may have one."""
    for dataset in report.datasets:
        for outcome in dataset.outcomes:
            where = _where(report, dataset, outcome)
            for s in outcome.skew:
                yield where, "Relative Δ", s.before
                yield where, "Relative Δ", s.after
                yield where, "change of Relative Δ", s.change
            for q in outcome.quality:
                yield where, "change of quality", q.difference
    if (search := report.search) is not None:
        for p in search.points:
            yield "search", "Relative Δ of the search", p.relative_delta
            for quality in (p.human_only, p.llm_only, p.mixed):
                yield "search", "quality in the search", quality
        yield "search", "crossing of the target", search.zero_crossing


def _refusals(report: DebiasResults) -> Iterator[tuple[str, str]]:
    """Yield (where, why) of intervals and tests that are missing, and of tests made otherwise."""
    names = quality_names(report)
    every = [(_where(report, d, o), o) for d in report.datasets for o in d.outcomes]
    for where, outcome in every:
        yield from (
            (f"{where}, Relative Δ@{s.cutoff}", s.refusal) for s in outcome.skew if s.refusal
        )
        reasons: dict[tuple[str, str], list[int]] = {}
        for q in outcome.quality:
            if q.refusal:
                reasons.setdefault((names[q.quality], q.refusal), []).append(q.cutoff)
        for (name, why), cutoffs in reasons.items():
            yield f"{where}, {name} NDCG@{', @'.join(map(str, cutoffs))}", why
    for where, outcome in every:
        for q in outcome.quality:
            if q.test is not None and q.test.note:
                yield where, f"test of {q.quality} quality: {q.test.note}"


def _data(report: DebiasResults) -> doc.Section:
    c, base = report.config, source_name(report.config.baseline_source)
    tables: list[tuple[doc.Words, str, Iterable[tuple[str, str]]]] = []
    systems: dict[str, str] = {}
    for dataset in report.datasets:
        rows = (
            *legacy.summary_rows(dataset.data),
            ("compared", f"{base} with {source_name(dataset.other)}"),
            ("pairs with a relevant version", count(dataset.n_pairs)),
        )
        tables.append((doc.Name(data_name(report, dataset)), "data", rows))
        for outcome in dataset.outcomes:
            systems.setdefault(outcome.name, settings(outcome.scores.settings))
    systems |= {f"training of {run.name}": settings(run.settings) for run in report.training}
    comparison = (
        ("baseline source", base),
        ("cutoffs of NDCG", ", ".join(map(str, c.cutoffs))),
        ("skew is judged at", f"NDCG@{c.skew_cutoff}"),
        ("quality is judged at", f"NDCG@{c.quality_cutoff}"),
        ("target of Relative Δ", f"{c.target:g} ± {c.tolerance:g}"),
        ("largest loss accepted", loss(c.relative_margin)),
        ("level of the loss tests", f"{c.level:g}"),
        ("confidence level", level(c.confidence_level)),
        ("family", report.family or MISSING),
        ("tests in the family", count(report.n_tests)),
        ("ties", c.ties),
        ("gain", c.gain),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    tables += [("Comparison", "setting", comparison), ("Systems", "system", systems.items())]
    return legacy.data(tables, report.environment, report.created)
