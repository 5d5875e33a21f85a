"""The report on what distinguishes sources for an encoder: what it says, in that order."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.core.data import Histogram
from rag_sourcebias.core.finding import MISSING, Frame, Interval, number, shorten, source_name
from rag_sourcebias.explain.data import (
    ExplainResults,
    GapDecomposition,
    ModelPerplexity,
    SpectrumComparison,
    VectorMap,
)
from rag_sourcebias.explain.words import (
    ASSOCIATION,
    Compared,
    compared,
    findings,
    first,
    headline,
    in_percent,
    model_name,
    prepared,
    score_digits,
    unmeasured,
)
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.legacy import count, counted, ends_about_zero, interval, level, share
from rag_sourcebias.report.render import Outcome, Report

_ESTABLISHED = {True: "established", False: "not established"}
_MAPS = {"pca": "PCA", "tsne": "t-SNE"}
_SHORT = 20  # characters of a name in pictures
_DRAWN, _JOINED = 500, 200  # pairs on a map; more lines between versions than that are a blur
_COLUMNS = ("", "value", "interval", "n", "method")

Row = tuple[str, ...]


def document(report: ExplainResults) -> d.Document:
    """Return everything there is to say about what distinguishes the sources of a report."""
    sources, name = compared(report), report.data.name or "unnamed data"
    encoder = (d.Name(f"encoder {report.encoder}"),) if report.encoder else ()
    return d.Document(
        kind="What distinguishes the sources",
        name=name,
        first=first(report),
        headline=(headline(report),),
        facts=(*encoder, f"{counted(len(sources), 'source')} beside the baseline"),
        created=report.created,
        warnings=report.warnings,
        sections=(
            _findings_section(report, sources),
            *_measured(sources),
            legacy.reading(_QUESTIONS),
            _doubts(report),
            _data(report),
        ),
    )


def _measured(sources: Sequence[Compared]) -> Iterator[d.Section]:
    """Return a section for each thing that was measured."""
    sections = (
        ("gap", "Score gap", "What goes with the score gap", _GAP, _gap),
        ("texts", "Texts", "The texts", _TEXTS, _texts),
        ("vectors", "Vectors", "The vectors", _VECTORS, _vectors),
        ("perplexity", "Perplexity", "Perplexity", _PERPLEXITY, _perplexity),
    )
    for place, nav, title, lead, blocks_of in sections:
        blocks: list[d.Block] = []
        for s in sources:
            found = list(blocks_of(s))
            if found and len(sources) > 1:
                blocks.append(d.Heading(text=s.name))
            blocks.extend(found)
        if blocks:
            yield d.Section(id=place, nav=nav, title=title, lead=lead, blocks=tuple(blocks))


_GAP = (
    "The encoder's score of the other version minus that of the original, for queries to which "
    "both are relevant, as a sum: one part for each measured difference between versions, and a "
    "remainder. Parts are associations: a part may belong to another one, or to something that "
    "was not measured. Intervals are clustered by query."
)
_TEXTS = (
    "Length and wording of both versions of a document. Jaccard is the share of all distinct words "
    "of a pair that both versions hold; overlap the share of the original's words that the other "
    "keeps. Dashed lines are means."
)
_VECTORS = (
    "Singular values of the matrix of all vectors of a source, largest first, compared index by "
    "index (Dai et al. 2024, Fig. 6), and how near the two versions of a document are."
)
_PERPLEXITY = (
    "Mean −log probability of a text's tokens, in nats, under language models: of the next token "
    "(causal) or of a masked one (pseudo-perplexity; Dai et al. 2024, Fig. 7). Values beyond the "
    "picture are in its outermost bins."
)


# Sections


def _findings_section(report: ExplainResults, sources: Sequence[Compared]) -> d.Section:
    blocks: list[d.Block] = [
        d.Say(
            text=f"{ASSOCIATION}. In brackets are {level(report.config.confidence_level)} "
            "intervals, each by itself.",
            aside=True,
        )
    ]
    for s in sources:
        pairs = f"{count(s.found.n_pairs)} of {count(s.found.n_available)} pairs"
        rows = [
            (f"{found.topic} ({_ESTABLISHED[bool(found.brief)]})", found.text)
            for found in findings(s)
        ]
        rows += [(f"{names} (not computed)", f"{why}.") for names, why in unmeasured(s)]
        blocks.append(d.Heading(text=s.name, tags=(pairs,)))
        blocks.append(legacy.listing(rows))
    shown = d.Only(outputs=("page", "markdown", "terminal"), blocks=tuple(blocks))
    return d.Section(id="findings", title="Findings", blocks=(shown,))


def _gap(s: Compared) -> Iterator[d.Block]:
    if s.found.decomposition is None:
        return
    found: GapDecomposition = s.found.decomposition
    digits = score_digits(found.gap)
    rows = [(*_row("score gap", found.gap, digits=digits), "")]
    for factor in found.factors:
        name = s.factor(factor) + (" (extrapolated)" if factor.extrapolated else "")
        part = _row(name, factor.component, digits=digits)
        rows.append((*part, number(factor.mean, digits=2)))
    remainder = _row("remainder", found.remainder, digits=digits)
    rows.append((*remainder, ""))
    yield legacy.grid(
        (*_COLUMNS, "mean difference"),
        rows,
        f"{s.name}: score gap of {count(found.n)} relevant pairs of "
        f"{count(found.n_queries)} queries, and its parts",
    )


def _texts(s: Compared) -> Iterator[d.Block]:
    found, base, other = s.found.texts, s.short_base, s.short_other
    length = in_percent(found.log_length_ratio)
    n = count(s.found.n_pairs)
    yield d.Pictures(
        items=(
            _histogram("Jaccard index", "words in both / words in either", [("", found.jaccard)]),
            _histogram("Overlap", f"words in both / words of {base}", [("", found.overlap)]),
        ),
        small=True,
    )
    rows = (
        (f"words per text, {base}", number(found.mean_words_human), "", n, "mean"),
        (f"words per text, {other}", number(found.mean_words_other), "", n, "mean"),
        _row("words against the original, %", length, digits=1),
        ("Jaccard index", number(found.jaccard.mean, digits=2), "", n, "mean"),
        ("overlap", number(found.overlap.mean, digits=2), "", n, "mean"),
    )
    yield legacy.grid(_COLUMNS, rows, f"{s.name}: length and shared words")


def _vectors(s: Compared) -> Iterator[d.Block]:
    pictures: list[tuple[str, pic.Picture]] = []
    rows: list[Row] = []
    if s.found.spectrum:
        found = s.found.spectrum
        m = len(found.human)
        pictures.append(_spectrum_picture(s, found))
        rows.append(_row(f"singular values, 1 to {max(1, m // 10)}, %", found.head, digits=1))
        rows.append(_row(f"singular values, {m // 2 + 1} to {m}, %", found.tail, digits=1))
    if s.found.map:
        pictures.append(_map_picture(s, s.found.map))
    if s.found.cosine:
        cosine = s.found.cosine
        pictures.append(_histogram("Cosine of the versions", "cosine", [("", cosine)], digits=3))
        n = count(int(cosine.counts.sum()))
        rows.append(("cosine of the versions", number(cosine.mean, digits=3), "", n, "mean"))
    if pictures:
        yield d.Pictures(items=tuple(pictures), small=True)
    if rows:
        caption = f"{s.name}: mean difference of singular values, and cosine"
        yield legacy.grid(_COLUMNS, rows, caption)


def _spectrum_picture(s: Compared, found: SpectrumComparison) -> tuple[str, pic.Picture]:
    """Show (other − human) / human of every singular value in percent, with a band of all.

    Ends of the band may leave the picture.
    """
    m, held = len(found.human), found.n_supported
    caption = (
        f"Relative singular values: {prepared(found)}; {count(found.n)} pairs, "
        f"{level(found.confidence_level)} band from {count(found.resamples)} resamples"
    )
    low, high = found.band_lower[:held], found.band_upper[:held]
    lowest = min(float(found.difference.min()), float(np.quantile(low, 0.1)))
    highest = max(float(found.difference.max()), float(np.quantile(high, 0.9)))
    margin = 0.05 * (highest - lowest) + 0.1
    index = tuple(float(at) for at in range(1, m + 1))
    values = tuple(found.difference.tolist())
    other = shorten(s.short_other, _SHORT)
    return caption, pic.Lines(
        title=f"Singular values of {other} vectors relative to the originals",
        description=f"{caption}.",
        curves=(
            pic.Curve(
                x=index[:held],
                y=values[:held],
                ends=tuple(zip(low.tolist(), high.tolist(), strict=True)),
                colour="other",
                marked=False,
                band=True,
            ),
            pic.Curve(
                x=index, y=values, colour="other", name="each value", marked=False, line=True
            ),
        ),
        x=pic.Axis(label="index of the singular value, largest first", span=(0, m + 1)),
        y=pic.Axis(label="difference, %", span=(lowest - margin, highest + margin)),
        guides=(pic.Guide(at=0, level=True),),
    )


def _map_picture(s: Compared, placed: VectorMap) -> tuple[str, pic.Picture]:
    """Show each version as a mark; few pairs are joined by lines."""
    n = len(placed.human)
    rows = np.unique(np.linspace(0, n - 1, min(_DRAWN, n)).astype(int))
    text = f"Map by {_MAPS[placed.method]}, {count(len(rows))} pairs"
    if placed.variance_shares:
        text += f", {share(sum(placed.variance_shares))} of the variance"
    sides: tuple[tuple[str, pic.Colour, np.ndarray], ...] = (
        (s.short_base, "baseline", placed.human[rows]),
        (s.short_other, "other", placed.other[rows]),
    )
    return text, pic.Points(
        title=f"Vectors of {s.short_base} and {s.short_other} versions in a plane",
        description=f"{text}.",
        curves=tuple(
            pic.Curve(
                x=tuple(at[:, 0].tolist()),
                y=tuple(at[:, 1].tolist()),
                colour=colour,
                name=shorten(name, _SHORT),
            )
            for name, colour, at in sides
        ),
        x=pic.Axis(label="axis 1"),
        y=pic.Axis(label="axis 2"),
        joined=len(rows) <= _JOINED,
        square=True,
    )


def _perplexity(s: Compared) -> Iterator[d.Block]:
    for found in s.found.perplexity:
        name = f"{model_name(found)} ({found.kind})"
        versions = [(s.short_base, found.human), (s.short_other, found.other)]
        label = "log-perplexity, nats per token"
        yield d.Pictures(items=(_histogram(name, label, versions),), small=True)
        caption = f"{s.name}: log-perplexity under {name}, nats per token"
        yield legacy.grid(_COLUMNS, _perplexity_rows(s, found), caption)


def _perplexity_rows(s: Compared, found: ModelPerplexity) -> Iterator[Row]:
    gap, n = found.gap, count(found.gap.n)
    yield f"log-perplexity, {s.short_base}", number(gap.mean_human, digits=2), "", n, "mean"
    yield f"log-perplexity, {s.short_other}", number(gap.mean_other, digits=2), "", n, "mean"
    yield _row("gap", gap.gap)
    yield _row("gap at equal length", gap.gap_equal_length)
    lower = gap.share_lower
    yield (
        "pairs in which it is lower, %",
        number(100 * lower.estimate),
        interval(lower, scale=100),
        count(lower.n_labeled),
        str(lower.method),
    )
    if found.bounded:
        upper, n = number(found.bounded.upper, digits=2), count(found.bounded.n)
        yield _row("gain from reading the original first", found.bounded.mean)
        yield "ε that holds for 95 of 100 pairs", upper, "", n, "quantile"


def _histogram(
    title: str, label: str, versions: Sequence[tuple[str, Histogram]], *, digits: int = 2
) -> tuple[str, pic.Picture]:
    """Show the share of pairs per bin of one or both versions, with the mean as a dashed line."""
    colours: tuple[pic.Colour, ...] = ("even",) if len(versions) == 1 else ("baseline", "other")
    shown = tuple(zip(versions, colours, strict=True))
    return title, pic.Histogram(
        title=title,
        description=" ".join(
            f"{name} mean {number(found.mean, digits=digits)}, median "
            f"{number(found.median, digits=digits)}.".strip()
            for (name, found), _ in shown
        ),
        bars=tuple(
            pic.Bars(
                heights=tuple((100 * found.counts / max(1, found.counts.sum())).tolist()),
                colour=colour,
                name=shorten(name, _SHORT),
            )
            for (name, found), colour in shown
        ),
        edges=tuple(versions[0][1].edges.tolist()),
        x=pic.Axis(label=label),
        y=pic.Axis(label="% of pairs"),
        guides=tuple(
            pic.Guide(at=found.mean, look="dashed", colour=colour)
            for (_, found), colour in shown
            if math.isfinite(found.mean)
        ),
    )


# What to know


_QUESTIONS = (
    (
        "Does this page say why an encoder prefers a source?",
        "No. It says how the sources differ for this encoder, and which differences go with its "
        "scores. To learn about causes, change one thing and measure again: project a direction "
        "out, or train.",
    ),
    (
        "Is perplexity the reason?",
        "It was proposed as one. Later work points at how retrievers are supervised. Here it is "
        "one difference among several.",
    ),
    (
        "What does “established” mean?",
        "The interval leaves out no difference. Each interval stands by itself: of twenty "
        "differences that are not there, about one would look established. “Not established” is "
        "not “no difference”: there may be too few pairs.",
    ),
    (
        "What is the spectrum?",
        "Singular values measure how much of the vectors lies along each of their main "
        "directions. The shaded band holds all differences at once with the stated confidence. "
        "Without centring, the first value holds the mean vector.",
    ),
    (
        "What are the parts of the score gap?",
        "A regression of the gap on how versions differ: part = slope × mean difference. Where no "
        "pair comes near no difference, that is extrapolation and marked so.",
    ),
)


def _doubts(report: ExplainResults) -> d.Section:
    """Return what intervals assume, and what a reader must know besides the warnings."""
    assumptions: list[tuple[str, Iterable[object]]] = []
    notes: list[tuple[str, str]] = []
    for explained in report.sources:
        name = source_name(explained.source)
        notes.extend((name, str(note)) for note in explained.texts.log_length_ratio.notes)
        notes.extend((name, note) for note in explained.notes)
        if explained.spectrum:
            assumptions.append(("spectrum", explained.spectrum.head.assumptions))
        if explained.decomposition:
            assumptions.append(
                ("parts of the score gap", explained.decomposition.remainder.assumptions)
            )
            notes.extend((name, note) for note in explained.decomposition.notes)
    return legacy.caveats(assumptions, notes, warned=bool(report.warnings))


def _data(report: ExplainResults) -> d.Section:
    c = report.config
    settings = (
        ("encoder", report.encoder or "none"),
        ("baseline source", source_name(c.baseline_source)),
        ("pairs whose perplexity is computed", _at_most(c.perplexity_limit)),
        ("map", f"{_MAPS[c.map_method]}, {_at_most(c.map_limit)} pairs"),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    tables = (
        ("Data", "data", legacy.summary_rows(report.data)),
        ("Settings", "setting", settings),
    )
    return legacy.data(tables, report.environment, report.created)


def _at_most(limit: int | None) -> str:
    return "all" if limit is None else f"at most {count(limit)}"


def _row(label: str, found: Interval | None, *, digits: int = 2) -> Row:
    """Return the name, value, ends, n and method of a difference."""
    if found is None:
        return (label, MISSING, "no interval", MISSING, "")
    return (
        label,
        number(found.estimate, digits=digits, signed=True),
        ends_about_zero(found, digits=digits),
        count(found.n_labeled),
        str(found.method),
    )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExplainReport(Report, ExplainResults):
    """What distinguishes sources, which shows itself."""

    def page(self) -> d.Document:
        """Return what there is to read, in its order."""
        return document(self)

    @property
    def frames(self) -> dict[str, Frame]:
        """The first table of the page, every figure."""
        return legacy.frames(self, self.page())

    def _outcomes(self) -> Iterator[Outcome]:
        for found in self.sources:
            gap = None if found.decomposition is None else found.decomposition.gap
            code = "not_computed"
            if gap is not None:
                code = "scored_higher" if gap.estimate > 0 else "scored_lower"
                code = code if gap.excludes(0.0) else "cannot_tell"
            yield Outcome(found.source, code, "score gap", gap, digits=3)
