"""The report of a source audit: its tables, its figures, and the order in which they are read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

from rag_sourcebias.core.finding import (
    SHORT,
    Evidence,
    Frame,
    Interval,
    Wording,
    number,
    shorten,
    split_measure,
)
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.document import (
    Document,
    about,
    about_section,
    differing,
    renamed,
    side_of,
    text_figures,
    text_frame,
    text_key,
    text_notes,
)
from rag_sourcebias.report.render import Outcome, Report
from rag_sourcebias.source.findings import (
    Comparison,
    SkewCell,
    SkewResults,
    SourceCode,
    SystemSkew,
    answer,
    comparisons,
    doubts,
    headline,
    label,
    names_of,
    next_step,
    notes_of,
    others_of,
    plain_verdict,
    questions,
    shown_first,
    sides_of,
    star,
    verdict_sentences,
)

_MAX_ROWS = 6  # comparisons of a first screen
_BESIDE_AN_AXIS = 16  # characters of a name
_QUESTION = 160  # characters of a query in a line
_WIDEST = 200.0  # points of Relative Δ; the published form has no larger ones

# Tables.


class _Column(NamedTuple):
    """Where a row has the value of a column, its head, and how it is written."""

    path: str
    head: str = ""
    look: str = ""


class _Row(NamedTuple):
    """A system, and what was found of it."""

    system: SystemSkew
    found: Any


def _frame(rows: Iterable[object], n_heads: int, columns: Mapping[str, _Column]) -> Frame:
    every = list(rows)
    values = {name: list(map(attrgetter(column.path), every)) for name, column in columns.items()}
    if len(set(values.get("against", ()))) == 1:
        n_heads -= 1
        del values["against"]
    columns = {name: columns[name] for name in values}
    return Frame(
        columns=values,
        heads={name: column.head for name, column in columns.items() if column.head},
        formats={name: column.look for name, column in columns.items() if column.look},
        n_heads=n_heads,
    )


def frames(report: SkewResults) -> dict[str, Frame]:
    """Return every table of a report, by its name."""
    tables = {name: make(report) for name, make in TABLES.items()}
    return tables | _about(report)


def _columns(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    every = list(rows)
    return {name: [row[at] for row in every] for at, name in enumerate(names)}


_SYSTEM, _VARIANT = _Column("system.name"), _Column("system.variant")
_AGAINST = _Column("system.against")  # left out where every system has the same other source


def _cells(report: SkewResults) -> Iterator[SkewCell]:
    for system in report.systems:
        yield from system.cells


def _rows(report: SkewResults, part: str) -> Iterator[_Row]:
    """Yield what every system has under a name, such as its twins."""
    for system in report.systems:
        for found in getattr(system, part):
            yield _Row(system, found)


def _verdicts(report: SkewResults) -> Frame:
    columns = {
        "system": _SYSTEM,
        "variant": _VARIANT,
        "other": _Column("verdict.other"),
        "verdict": _Column("verdict.code.value"),
        "measure": _Column("verdict.measure"),
        "centred_delta": _Column("verdict.figure", "centred Δ", "signed"),
        "p": _Column("verdict.p_value", "", "p"),
        "p_adjusted": _Column("verdict.p_adjusted", "adjusted p", "p"),
        "n_tests": _Column("verdict.n_tests", "tests"),
        "n_queries": _Column("verdict.n_queries", "queries"),
        "n_needed": _Column("verdict.n_needed", "needed"),
        "unit": _Column("tally.unit", "counted"),
        "n_baseline": _Column("tally.baseline", "baseline higher"),
        "n_ties": _Column("tally.ties", "ties"),
        "n_other": _Column("tally.other", "other higher"),
    }
    return _frame(comparisons(report), 5, columns)


def _delta(report: SkewResults) -> Frame:
    baseline, other = sides_of(report)
    columns = {
        "system": _SYSTEM,
        "measure": _Column("found.measure"),
        "variant": _VARIANT,
        "other": _Column("found.other"),
        "mean_baseline": _Column("found.mean_baseline", baseline, "score"),
        "mean_other": _Column("found.mean_other", other, "score"),
        "centred_delta": _Column("found.centred.figure", "centred Δ", "signed"),
        "relative_delta": _Column("found.figure", "published Δ", "signed"),
        "p": _Column("found.p_value", "", "p"),
        "p_adjusted": _Column("found.p_adjusted", "adjusted p", "p"),
        "significant": _Column("found.significant", "*", "star"),
        "n_queries": _Column("found.n_queries", "queries"),
        "n_needed": _Column("found.n_needed", "needed"),
    }
    return _frame(_rows(report, "cells"), 4, columns)


def _settings_strip(report: SkewResults) -> Frame:
    """Return the primary measure as deployed, repeated, and under other settings."""
    rows: list[tuple[Any, ...]] = []
    for system in report.systems:
        rows += [(system.name, v.other, system.variant, v.figure) for v in system.verdicts]
        rows += [(system.name, s.other, s.setting, s.figure) for s in system.strip]
        if system.across is not None:
            rows.append((system.name, "all", "sources as a sample", system.across.figure))
    return Frame(
        columns=_columns(("system", "other", "setting", "centred_delta"), rows),
        heads={"centred_delta": "centred Δ"},
        formats={"centred_delta": "signed"},
        n_heads=3,
    )


def _generators(report: SkewResults) -> Frame:
    """Return centred Relative Δ of each source alone beside the baseline, and all in one index."""
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    if len(others_of(report)) > 1:
        for system, cell in _rows(report, "cells"):
            if system.variant in _INDICES:
                key = (system.name, cell.other, _INDICES[system.variant])
                rows.setdefault(key, {})[cell.measure] = cell.centred.figure
    measures = list(next(iter(rows.values()), {}))
    return Frame(
        columns=_columns(
            ("system", "other", "index", *measures),
            ((*key, *(found[measure] for measure in measures)) for key, found in rows.items()),
        ),
        formats=dict.fromkeys(measures, "signed"),
        n_heads=3,
    )


_INDICES = {"mixed": "two sources", "together": "all sources"}


def _judged(report: SkewResults) -> Frame:
    """Return what was judged of the first ranks, and the primary measure with the rest counted."""
    baseline, other = sides_of(report)
    columns = {
        "system": _SYSTEM,
        "variant": _VARIANT,
        "other": _Column("found.other"),
        "cutoff": _Column("found.cutoff", "first ranks"),
        "judged_baseline": _Column("found.judged_baseline", f"judged of {baseline}", "percent"),
        "judged_other": _Column("found.judged_other", f"judged of {other}", "percent"),
        "centred_delta": _Column("found.figure", "centred Δ, unjudged counted", "signed"),
        "p": _Column("found.p_value", "", "p"),
        "p_adjusted": _Column("found.p_adjusted", "adjusted p", "p"),
        "difference": _Column("found.difference", "changed by", "signed"),
        "turns_at": _Column("found.turns_at", "turns at", "percent"),
    }
    return _frame(_rows(report, "holes"), 4, columns)


def _sole_corpus(report: SkewResults) -> Frame:
    baseline, other = sides_of(report)
    columns = {
        "system": _SYSTEM,
        "other": _Column("found.other"),
        "measure": _Column("found.measure"),
        "mean_baseline": _Column("found.mean_baseline", baseline, "score"),
        "mean_other": _Column("found.mean_other", other, "score"),
        "difference": _Column("found.difference", "difference ×100", "points"),
        "p": _Column("found.p_value", "", "p"),
    }
    return _frame(_rows(report, "sole_corpus"), 3, columns)


def _twins(report: SkewResults) -> Frame:
    columns = {
        "system": _SYSTEM,
        "variant": _VARIANT,
        "other": _Column("found.other"),
        "n_pairs": _Column("found.n_pairs", "pairs"),
        "n_unseen": _Column("found.n_unseen", "neither found"),
        "win_rate": _Column("found.win_rate", "win rate of the other", "2"),
        "margin": _Column("found.margin", "score margin (sd)", "2"),
        "win_rate_equal_length": _Column(
            "found.win_rate_equal_length", "win rate at equal length", "2"
        ),
    }
    return _frame(_rows(report, "twins"), 3, columns)


def _exposure(report: SkewResults) -> Frame:
    columns = {
        "system": _SYSTEM,
        "variant": _VARIANT,
        "against": _AGAINST,
        "attention": _Column("found.browsing"),
        "source": _Column("found.source"),
        "share": _Column("found.share", "", "percent"),
        "corpus_share": _Column("found.corpus_share", "of the corpus", "percent"),
        "difference": _Column("found.difference", "difference (points)", "points"),
    }
    return _frame(_rows(report, "exposure"), 5, columns)


def _runs(report: SkewResults) -> Frame:
    columns = {
        "system": _Column("name"),
        "variant": _Column("variant"),
        "against": _Column("against"),
        "awrf": _Column("awrf", "AWRF", "3"),
        "n_untagged": _Column("n_untagged", "untagged entries"),
        "n_duplicates": _Column("n_duplicates", "repeated entries"),
        "n_empty": _Column("n_empty", "queries without results"),
    }
    return _frame(report.systems, 3, columns)


def _cases(report: SkewResults) -> Frame:
    baseline, other = sides_of(report)
    columns = {
        "system": _SYSTEM,
        "query": _Column("found.item"),
        "other": _Column("found.second.label"),
        "difference": _Column("found.value", "difference ×100", "points"),
        "rank_baseline": _Column("found.first.value", f"rank, {baseline}", "whole"),
        "rank_other": _Column("found.second.value", f"rank, {other}", "whole"),
        "document_baseline": _Column("found.first.doc_id", f"document, {baseline}"),
        "document_other": _Column("found.second.doc_id", f"document, {other}"),
    }
    return _frame(_rows(report, "evidence"), 3, columns)


def _text_statistics(report: SkewResults) -> Frame:
    return text_frame(report.text_statistics, original=report.config.baseline_source, head="source")


def _queries(report: SkewResults) -> Frame:
    """Return the score of every query, by system, measure and source."""
    rows = (
        (system.name, system.variant, system.against, measure, source, query, score)
        for system in report.systems
        for measure, source in product(system.scores.measures, system.scores.sources)
        for query, score in zip(
            system.scores.query_ids, system.scores.of(measure, source).tolist(), strict=True
        )
    )
    names = ("system", "variant", "against", "measure", "source", "query", "score")
    columns = _columns(names, rows)
    if len(others_of(report)) == 1:
        del columns["against"]
    return Frame(columns=columns, n_heads=len(columns) - 1)


def _assumptions(report: SkewResults) -> Frame:
    rows = {
        (name, str(interval.method), str(assumption)): None
        for name, interval in _intervals(report)
        if interval is not None
        for assumption in interval.assumptions
    }
    return Frame(columns=_columns(("figure", "method", "assumption"), rows), n_heads=3)


def _intervals(report: SkewResults) -> Iterator[tuple[str, Interval | None]]:
    for system in report.systems:
        for cell in system.cells:
            yield "published Relative Δ", cell.interval
            yield "centred Relative Δ", cell.centred.interval
        for twin in system.twins:
            yield "twin win rate", twin.win_rate
            yield "twin score margin", twin.margin
            yield "equal-length win rate", twin.win_rate_equal_length
        for entry in system.exposure:
            yield "exposure", entry.difference
        for check in system.sole_corpus:
            yield "sole-corpus difference", check.difference


def _about(report: SkewResults) -> dict[str, Frame]:
    """Return what the report was made of and with."""
    config = report.config
    settings = {
        "baseline source": config.baseline_source,
        "measures": ", ".join(config.measures),
        "cutoffs": ", ".join(map(str, config.cutoffs)),
        "primary measure": config.primary_measure,
        "margin": config.margin,
        "ties": config.ties,
        "gain": config.gain,
        "confidence level": str(config.confidence_level),
        "interval method": config.interval_method,
        "correction": config.correction,
        "tests": report.n_tests,
        "resamples": config.resamples,
        "attention models": ", ".join(config.browsing),
        "seed": config.seed,
    }
    deployed = (system for system in report.systems if system.variant == "mixed")
    systems = {system.name: system.settings for system in deployed}
    environment = {**report.environment, "created": report.created}
    return about(report.data, settings, systems, environment)


TABLES: Mapping[str, Callable[[SkewResults], Frame]] = {
    "verdicts": _verdicts,
    "delta": _delta,
    "generators": _generators,
    "settings strip": _settings_strip,
    "judged": _judged,
    "sole corpus": _sole_corpus,
    "twins": _twins,
    "exposure": _exposure,
    "runs": _runs,
    "cases": _cases,
    "queries": _queries,
    "text statistics": _text_statistics,
    "assumptions": _assumptions,
}
"""Tables of what was found, by their names."""


# The page.


def page(report: SkewResults) -> d.Document:
    """Return everything there is to say about a source audit, in the order in which it is read."""
    data = report.data
    found = tuple(c for c in comparisons(report) if c.system.variant == "mixed")
    sections = (
        _verdicts_section(report, found),
        _cases_section(report, found),
        _cutoffs_section(report),
        _numbers_section(report),
        _tabled(report, "generators"),
        _tabled(report, "settings strip"),
        _tabled(report, "judged"),
        _tabled(report, "twins"),
        _tabled(report, "sole corpus"),
        _tabled(
            report,
            "exposure",
            d.Table(caption="Fairness and gaps of each run", frame=_runs(report)),
        ),
        _texts_section(report),
        d.Section(
            id="reading",
            title="How to read this",
            blocks=(d.Questions(rows=questions(report)),),
        ),
        _caveats_section(report),
        about_section(_about(report)),
    )
    size = SourceCode.SIZE(
        n_queries=data.n_queries,
        n_judgments=data.n_judgments,
        n_documents=sum(data.documents.values()),
        design=data.design,
    )
    return d.Document(
        kind="Source bias report",
        name=data.name,
        first=_first(report, found),
        headline=(headline(report),),
        facts=(size, *(one for one in report.findings if one.severity == "note")),
        created=report.created,
        warnings=tuple(one for one in report.findings if one.severity == "warning"),
        sections=tuple(section for section in sections if section is not None),
    )


def _tabled(
    report: SkewResults, table: str, *more: d.Block, lead: d.Words = "", brief: bool = False
) -> d.Section | None:
    """Return a section that starts with a table; none for a table without rows."""
    frame = TABLES[table](report)
    if not len(frame):
        return None
    told = _SECTIONS[table]
    return d.Section(
        id=told.id,
        title=told.title,
        lead=lead or told.lead,
        brief=brief,
        blocks=(d.Table(caption=told.title, frame=frame), *more),
    )


class _Told(NamedTuple):
    """A section that starts with a table."""

    id: str
    title: str
    lead: str = ""


_SECTIONS = {
    "cases": _Told("evidence", "The queries behind it"),
    "generators": _Told(
        "generators",
        "One generator at a time",
        "Centred Relative Δ of every measure, with the documents of one other source at a time "
        "beside the baseline’s, and with all sources in one index. In that, versions of one "
        "document compete with one another; verdicts rest on two sources at a time.",
    ),
    "settings strip": _Told(
        "sign",
        "What turns the sign",
        "The primary measure under other usual settings of the retriever, with pairs cut to equal "
        "length and with exact search. Where these point in different directions, the verdict "
        "holds for the setting as deployed only. What shrinks at equal length was partly about "
        "length; a gap to exact search is an effect of the index.",
    ),
    "twins": _Told(
        "twins",
        "Twins",
        "Two versions of one relevant document, one per source: which ranks higher? A win rate of "
        "0.50 is even-handed; below, the baseline's version tends to win, above, the other's. The "
        "equal-length rate is what a logistic regression expects for twins of the same length and "
        "average word overlap. Pairs of which neither version was found are left out.",
    ),
    "judged": _Told(
        "judged",
        "What was judged",
        "Documents that nobody judged count as not relevant. Where those of one source were judged "
        "less often, that alone can look like a skew. So each retrieved document that was not "
        "judged is also given the grade of a judged one of its source that stands on similar "
        "ranks, and a verdict must stand both ways. “Changed by” is the difference, with the "
        "interval that says whether holes matter. “Turns at” is the share of those "
        "documents, of both sources alike, which, if relevant, gives another verdict.",
    ),
    "sole corpus": _Told(
        "sole-corpus",
        "Sole-corpus control",
        "Each source searched alone. A large difference here means that the versions do not say "
        "the same thing, so the mixed result is not source bias alone. A small one does not prove "
        "that they do. These p-values are not adjusted.",
    ),
    "exposure": _Told(
        "exposure",
        "Exposure",
        "Which share of a reader's attention each source receives, judged or not, against its "
        "share of the corpus. AWRF is attention-weighted rank fairness: 1 means in proportion to "
        "the corpus. A source may earn more attention by being more relevant.",
    ),
    "text statistics": _Told(
        "texts",
        "What the texts look like",
        "How long the texts of each source are and how much of the original's wording the other "
        "versions keep, before any retriever sees them.",
    ),
}


# First screen.


def _first(report: SkewResults, found: tuple[Comparison, ...]) -> d.First:
    if not found:
        return d.First(answer="No two sources were compared.")
    alone = len(found) == 1
    rows = found[:_MAX_ROWS]
    baseline, other = sides_of(report)
    reach = _reach([comparison.verdict.figure for comparison in rows])
    left, right = (
        (
            SourceCode.REACH(reach=end),
            SourceCode.HIGHER(source=shorten(side, _BESIDE_AN_AXIS)),
        )
        for end, side in ((-reach, other), (reach, baseline))
    )
    first = d.First(
        answer=answer(report, found),
        doubts=tuple(doubts(report, found)),
        caption=SourceCode.EFFECT(
            baseline=baseline, other=other, level=report.config.confidence_level
        ),
        rows=tuple(_first_row(report, one, reach, alone=alone) for one in rows),
        scale=(left, ("0",), right),
        shown=tuple(shown_first(report, rows)),
        next=next_step(report, found),
    )
    if not alone:
        hidden = len(found) - len(rows)
        more = (SourceCode.MORE_BELOW(n=hidden),) if hidden else ()
        return replace(first, shown=first.shown + more)
    standing = _STANDINGS.get(found[0].verdict.code, "")
    return replace(first, verdict=plain_verdict(report, found[0]), standing=standing)


_STANDINGS: Mapping[SkewCode, d.Standing] = {
    SkewCode.FAVOURS_BASELINE: "baseline",
    SkewCode.FAVOURS_OTHER: "other",
    SkewCode.ALIKE: "even",
}


def _first_row(
    report: SkewResults, comparison: Comparison, reach: float, *, alone: bool
) -> d.FirstRow:
    verdict = comparison.verdict
    row = d.FirstRow(
        bar=_bar(verdict.figure, reach, solid=bool(verdict.favoured)),
        text=Wording().format_field(verdict.figure, "signed"),
    )
    if alone:
        return row
    names, system = names_of(report), shorten(comparison.system.name, SHORT)
    subject: d.Words = d.Name(system)
    if len(others_of(report)) > 1:
        subject = SourceCode.SUBJECT(system=system, other=names[verdict.other])
    return replace(row, name=subject, note=_short(names, comparison))


def _short(names: Mapping[str, str], comparison: Comparison) -> d.Words:
    """Return a verdict in a few words."""
    verdict = comparison.verdict
    contrary = ", ".join(comparison.contrary)
    if verdict.favoured:
        code = SourceCode.FAVOURED_TEXT_BUT if contrary else SourceCode.FAVOURED_TEXT
        return code(source=names[verdict.favoured], contrary=contrary)
    if verdict.holes:
        return "cannot tell: judgments have holes"
    if verdict.code is SkewCode.CANNOT_TELL and verdict.n_needed is not None:
        return SourceCode.OPEN_NEEDED(n_needed=verdict.n_needed)
    return _SHORT[verdict.code]


_SHORT = {
    SkewCode.ALIKE: "treats both alike",
    SkewCode.CANNOT_TELL: "cannot tell",
    SkewCode.REFUSED: "no verdict",
}


# Verdicts.


def _verdicts_section(report: SkewResults, found: tuple[Comparison, ...]) -> d.Section:
    baseline, other = sides_of(report)
    reach = _reach_of_all(report)
    key = SourceCode.CARDS(
        level=report.config.confidence_level, reach=reach, baseline=baseline, other=other
    )
    scores = _scores(report)
    table = d.Table(
        caption="Scores ×100 and centred Relative Δ", frame=scores, sides=_sides(scores), brief=True
    )
    return d.Section(
        id="verdicts",
        title="Verdicts",
        brief=True,
        blocks=(
            d.Cards(
                cards=tuple(_card(report, comparison, reach) for comparison in found),
                look="source",
                middle=True,
            ),
            d.Say(text=key, aside=True),
            table,
            d.Say(text=star(report)),
        ),
    )


def _reach(figures: Iterable[Interval | float | None]) -> float:
    """Return where bars and axes of Relative Δ end."""
    ends = [20.0]  # of a scale on which a margin of 5 can be seen
    for figure in figures:
        if isinstance(figure, Interval):
            ends += [abs(figure.lower), abs(figure.upper)]
        elif figure is not None:
            ends.append(abs(figure))
    return min(_WIDEST, 10 * (max(ends) // 10 + 1))


def _reach_of_all(report: SkewResults) -> float:
    return _reach(cell.centred.figure for cell in _cells(report))


def _card(report: SkewResults, comparison: Comparison, reach: float) -> d.Card:
    names, system, verdict = names_of(report), comparison.system, comparison.verdict
    tags: tuple[d.Words, ...] = ()
    if len(others_of(report)) > 1:
        tags = (SourceCode.AGAINST(other=names[verdict.other]),)
    leading = split_measure(verdict.measure)[0]
    rows = [
        _card_row(cell, reach)
        for cell in system.cells
        if cell.other == verdict.other and split_measure(cell.measure)[0] == leading
    ]
    for again, _ in comparison.repeats:
        cell = again.cell(verdict.measure, verdict.other)
        rows.append(_card_row(cell, reach, tag=again.variant))
    return d.Card(
        name=system.name,
        standing=_LOOKS.get(verdict.code, "none"),
        short=_short(names, comparison),
        texts=tuple(verdict_sentences(report, comparison)),
        rows=tuple(rows),
        tags=tags,
    )


_LOOKS = {
    SkewCode.FAVOURS_BASELINE: "prefers baseline",
    SkewCode.FAVOURS_OTHER: "prefers other",
}


def _card_row(cell: SkewCell, reach: float, *, tag: str = "") -> d.CardRow:
    interval = cell.centred.interval
    ends = None if interval is None else Wording().format_field(interval, "ends:signed")
    return d.CardRow(
        name=cell.measure,
        tag=tag,
        value=number(cell.centred.value, signed=True),
        ends=ends,
        bar=_bar(interval, reach, solid=cell.significant),
        star=cell.significant,
    )


def _bar(figure: Interval | float | None, reach: float, *, solid: bool) -> d.Bar | None:
    if not isinstance(figure, Interval):
        return None
    return d.Bar.over(
        (figure.lower, figure.estimate, figure.upper),
        (-reach, reach),
        side=_side(figure.estimate),
        solid=solid,
    )


def _side(delta: float) -> pic.Colour:
    if delta == 0:
        return "even"
    return "baseline" if delta > 0 else "other"


def _scores(report: SkewResults) -> Frame:
    """Return what a terminal has room for of all numbers, as deployed."""
    baseline, other = sides_of(report)
    columns = {
        "system": _SYSTEM,
        "measure": _Column("found.measure"),
        "other": _Column("found.other"),
        "mean_baseline": _Column("found.mean_baseline", baseline, "score"),
        "mean_other": _Column("found.mean_other", other, "score"),
        "centred_delta": _Column("found.centred.value", "centred Δ", "signed"),
        "significant": _Column("found.significant", "*", "star"),
    }
    if len(others_of(report)) == 1:
        del columns["other"]
    rows = [row for row in _rows(report, "cells") if row.system.variant == "mixed"]
    return _frame(rows, 2, columns)


def _sides(scores: Frame) -> tuple[tuple[str, ...], ...]:
    """Return the colour of the figure in each row of the scores."""
    at = list(scores.columns).index("centred_delta")
    rows = []
    for delta, significant in zip(
        scores.columns["centred_delta"], scores.columns["significant"], strict=True
    ):
        sides = [""] * len(scores.columns)
        if delta:
            sides[at] = _side(delta)
        if significant:
            sides[at] = f"strong {sides[at]}"
        rows.append(tuple(sides))
    return tuple(rows)


# The queries behind a verdict.


def _cases_section(report: SkewResults, found: tuple[Comparison, ...]) -> d.Section | None:
    baseline, other = sides_of(report)
    folds = tuple(
        _case(case, baseline, other)
        for system in report.systems
        for case in system.evidence
        if case.first.text or case.second.text
    )
    more: tuple[d.Block, ...] = folds or (
        d.Say(text="No texts were kept: ids stand for them.", aside=True),
    )
    return _tabled(
        report,
        "cases",
        d.Say(text=SourceCode.SLOPES(baseline=baseline, other=other), aside=True),
        d.Pictures(items=tuple(_slopes(report, one) for one in found if one.system.evidence)),
        *more,
        lead=SourceCode.CASES(baseline=baseline),
    )


def _slopes(report: SkewResults, comparison: Comparison) -> tuple[str, pic.Picture]:
    """Draw the score of each case for the one source and the other."""
    names, verdict, scores = names_of(report), comparison.verdict, comparison.system.scores
    at = [
        scores.query_ids.index(case.item)
        for case in comparison.system.evidence
        if case.second.label == verdict.other and case.item in scores.query_ids
    ]
    sources: tuple[tuple[str, pic.Colour], ...] = (
        (verdict.baseline, "baseline"),
        (verdict.other, "other"),
    )
    curves = tuple(
        pic.Curve(
            x=(place,) * len(at),
            y=tuple((100 * scores.of(verdict.measure, source)[at]).tolist()),
            colour=colour,
        )
        for place, (source, colour) in enumerate(sources)
    )
    ticks = tuple(
        (place, shorten(names[source], _BESIDE_AN_AXIS))
        for place, (source, _) in enumerate(sources)
    )
    caption = str(SourceCode.SLOPES_OF(measure=verdict.measure, system=comparison.system.name))
    return caption, pic.Points(
        title=caption,
        curves=curves,
        x=pic.Axis(ticks=ticks, span=(-0.3, 1.3)),
        y=pic.Axis(span=(-5, 105)),  # room for the marks
        joined=True,
    )


def _case(case: Evidence, baseline: str, other: str) -> d.Fold:
    gone, new = differing(case.first.text, case.second.text, case.asked)
    ranks = SourceCode.RANKS(
        cases=(case.item,),
        baseline=baseline,
        rank=case.first.value,
        other=other,
        rank_other=case.second.value,
    )
    versions = d.Versions(
        name=case.item,
        where="query",
        about=case.asked,
        values=str(ranks),
        sides=(
            side_of("gone", baseline, case.first, gone),
            side_of("new", other, case.second, new),
        ),
    )
    return d.Fold(
        summary=SourceCode.CASE(query=case.item, asked=shorten(case.asked, _QUESTION), ranks=ranks),
        blocks=(versions,),
    )


# Figures of the primary measure.


def _cutoffs_section(report: SkewResults) -> d.Section:
    baseline, _ = sides_of(report)
    return d.Section(
        id="cutoffs",
        title="By cutoff",
        lead=SourceCode.CUTOFFS(level=report.config.confidence_level, baseline=baseline),
        blocks=(d.Pictures(items=tuple(_by_cutoff(report))),),
    )


def _by_cutoff(report: SkewResults) -> Iterator[tuple[str, pic.Picture]]:
    """Draw centred Relative Δ, a row per system and cutoff, by other source and measure."""
    names, reach = names_of(report), 1.05 * _reach_of_all(report)  # room for the marks at the ends
    baseline = names[report.config.baseline_source]
    rows: dict[tuple[str, str], list[pic.Row]] = {}
    for system, cell in _rows(report, "cells"):
        if system.variant == "mixed":
            measure, cutoff = split_measure(cell.measure)
            row = _cutoff_row(system.name, str(cutoff), cell)
            rows.setdefault((measure, cell.other), []).append(row)
    for (measure, other), shown in rows.items():
        caption = str(SourceCode.BY_CUTOFF(measure=measure, other=names[other]))
        direction = SourceCode.DIRECTION(
            other=shorten(names[other], _BESIDE_AN_AXIS),
            baseline=shorten(baseline, _BESIDE_AN_AXIS),
        )
        yield (
            caption,
            pic.Intervals(
                title=caption,
                rows=tuple(shown),
                x=pic.Axis(label=str(direction), span=(-reach, reach)),
                guides=(pic.Guide(at=0),),
                filled="significant",
            ),
        )


def _cutoff_row(system: str, cutoff: str, cell: SkewCell) -> pic.Row:
    row = pic.Row(label=f"@{cutoff}", group=system)
    value, interval = cell.centred.value, cell.centred.interval
    if value is None:
        return replace(row, note="undefined")
    if interval is None:
        return replace(
            row, marks=(pic.Mark(at=value, colour="muted", solid=False),), note="no interval"
        )
    mark = pic.mark(interval, _side(value), solid=cell.significant)
    return replace(row, marks=(mark,))


# All numbers.


def _numbers_section(report: SkewResults) -> d.Section:
    reach = _reach_of_all(report)
    config = report.config
    missing = tuple(_missing(report))
    blocks: list[d.Block] = [
        d.Table(
            caption="Scores ×100, centred and published Relative Δ, and tests",
            frame=_delta(report),
            bars=tuple(
                _bar(cell.centred.figure, reach, solid=cell.significant) for cell in _cells(report)
            ),
            bars_at=6,
            scale=str(SourceCode.BARS(reach=reach)),
        ),
        d.Say(text=star(report)),
        d.Say(
            text=SourceCode.EXPLORATORY(
                level=config.confidence_level, measure=config.primary_measure
            )
        ),
        d.Say(
            text="Centred Δ: beyond what permuted source labels give; verdicts and all other "
            "tables are about it. Published Δ: the difference as it is. Needed: queries with which "
            "a verdict is reached four times in five."
        ),
        d.Table(caption="Verdicts", frame=_verdicts(report)),
    ]
    if missing:
        blocks.append(d.Heading(text="Why some intervals are missing"))
        blocks.append(
            d.Listing(rows=tuple(why for _, why in missing), of=tuple(who for who, _ in missing))
        )
    return d.Section(id="numbers", title="All numbers", blocks=tuple(blocks))


def _missing(report: SkewResults) -> Iterator[tuple[str, d.Words]]:
    names = names_of(report)
    for system, cell in _rows(report, "cells"):
        refusals = {str(refusal): refusal for refusal in (cell.refusal, cell.centred.refusal)}
        for refusal in refusals.values():
            if refusal is not None:
                why = SourceCode.MISSING(
                    measure=cell.measure, other=names[cell.other], refusal=refusal
                )
                yield label(system), why


# Texts, caveats, and what the report was made of.


def _texts_section(report: SkewResults) -> d.Section | None:
    names = names_of(report)
    statistics = renamed(report.text_statistics, names)
    notes = text_notes(statistics)
    return _tabled(
        report,
        "text statistics",
        d.Listing(
            rows=tuple(note for note, _ in notes),
            of=tuple(", ".join(groups) for _, groups in notes),
        ),
        *(d.Say(text=text, aside=True) for text in text_key(statistics)),
        d.Pictures(items=text_figures(statistics, original=names[report.config.baseline_source])),
        brief=True,
    )


def _caveats_section(report: SkewResults) -> d.Section:
    notes = {
        (label(system), str(note)): note for system in report.systems for note in notes_of(system)
    }
    blocks: list[d.Block] = []
    assumptions = _assumptions(report)
    if len(assumptions):
        blocks.append(d.Table(caption="What the intervals assume", frame=assumptions))
    blocks.append(d.Heading(text="Caveats"))
    if notes:
        of = tuple(name for name, _ in notes)
        blocks.append(d.Listing(rows=tuple(notes.values()), of=of))
    else:
        blocks.append(d.Say(text="There are none besides the warnings at the top."))
    return d.Section(id="caveats", title="Assumptions and caveats", blocks=tuple(blocks))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SkewReport(SkewResults, Report):
    """The result of a source audit; its parameters are those of what it stores."""

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Every table, by its name; the first has the verdicts."""
        return frames(self)

    def page(self) -> Document:
        """Return everything there is to say, in the order in which it is read."""
        return page(self)

    def _outcomes(self) -> Iterator[Outcome]:
        several = len(others_of(self)) > 1
        for system in self.systems:
            for verdict in system.verdicts if system.variant == "mixed" else ():
                subject, words = system.name, ""
                if several:
                    subject = str(SourceCode.SUBJECT(system=subject, other=verdict.other))
                if verdict.favoured:
                    words = str(SourceCode.FAVOURED(source=verdict.favoured))
                yield Outcome(
                    subject,
                    verdict.code.value,
                    str(SourceCode.FIGURE(measure=verdict.measure)),
                    verdict.interval,
                    verdict.centred_delta,
                    words=words,
                )
