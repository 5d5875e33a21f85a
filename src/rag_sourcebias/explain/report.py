"""The report on what distinguishes sources for an encoder: what it says, in that order."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from rag_sourcebias.core.values import Histogram, Interval
from rag_sourcebias.explain.data import (
    ExplainReport,
    GapDecomposition,
    ModelPerplexity,
    SourceExplanation,
    SpectrumComparison,
    VectorMap,
)
from rag_sourcebias.explain.evidence import evidence_section
from rag_sourcebias.explain.words import (
    ASSOCIATION,
    PARTS,
    Compared,
    compared,
    ends_of,
    findings,
    first,
    headline,
    in_percent,
    in_share,
    missing_parts,
    model_name,
    prepared,
    score_digits,
    unmeasured,
    with_ends,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    MISSING,
    capital,
    count,
    counted,
    level,
    number,
    share,
    short_names,
    shorten,
    source_name,
)

_MAPS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}
_TERMS = 8  # words of each source in a terminal
_FACTOR, _SHORT = 44, 16  # characters in pictures
_DRAWN, _JOINED = 500, 200  # pairs on a map; more lines between versions than that are a blur
_NARROWEST = 2.0  # percent: less than this is nothing to see
#: Short name, title and lead of each section on what was measured.
_SECTIONS = {
    "gap": (
        "Score gap",
        "What goes with the score gap",
        "The encoder's score of the other version minus that of the original, for queries to "
        "which both are relevant, as a sum: one part for each measured difference between "
        "versions, and a remainder. Parts are associations. Differences go together, so that a "
        "part may belong to another one, or to something that was not measured. Lines are "
        "{level} intervals, clustered by query.",
    ),
    "texts": (
        "Texts",
        "The texts",
        "Length and wording of both versions of a document. Jaccard is the share of all "
        "distinct words of a pair that both versions hold; overlap the share of the "
        "{base} version's words that the other keeps. Dashed lines are means.",
    ),
    "words": (
        "Words",
        "Words of queries, and words that mark a source",
        "What a lexical retriever such as BM25 sees. A word that rewriting drops stands in "
        "only one of the two versions, so that its idf is higher in the mixed corpus than in the "
        "corpus of the source that keeps it, and every document that has it gains: an artefact of "
        "mixing, not of relevance.",
    ),
    "vectors": (
        "Vectors",
        "The vectors",
        "Singular values of the matrix of all vectors of a source, largest first, compared "
        "index by index (Dai et al. 2024, Fig. 6); where vectors lie and whether that shows who "
        "wrote a text; and how near the two versions of a document are. Ends of the band may "
        "leave the picture.",
    ),
    "perplexity": (
        "Perplexity",
        "Perplexity",
        "Mean −log probability of a text's tokens, in nats, under language models: of the "
        "next token (causal) or of a masked one (pseudo-perplexity; Dai et al. 2024, Fig. 7). "
        "Rewrites often have less. Whether an encoder prefers them for that reason is disputed, "
        "and cannot be read off here. Values beyond the picture are in its outermost bins.",
    ),
}

Row = tuple[str, ...]


def document(report: ExplainReport) -> b.Document:
    """Return everything there is to say about what distinguishes the sources of a report."""
    sources, name = compared(report), report.data.name or "unnamed data"
    encoder = (("encoder ", b.Name(report.encoder)),) if report.encoder else ()
    return b.Document(
        kind="What distinguishes the sources",
        title=f"What distinguishes the sources: {name}",
        name=name,
        first=first(report),
        headline=headline(report),
        facts=(*encoder, (f"{counted(len(sources), 'source')} beside the baseline",)),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=(
            _found(report, sources),
            *filter(None, (evidence_section(sources),)),
            *(_measured(sources) if sources else ()),
            b.reading(_questions(report)),
            _doubts(report),
            _data(report),
        ),
    )


def _measured(sources: Sequence[Compared]) -> Iterator[b.Section]:
    made: dict[str, Callable[[Compared], Iterator[b.Block]]] = {
        "gap": _gap,
        "texts": _texts,
        "words": _words,
        "vectors": _vectors,
        "perplexity": _perplexity,
    }
    stated = level(sources[0].report.config.confidence_level)
    for name, (nav, title, lead) in _SECTIONS.items():
        blocks = (
            block
            for s in sources
            for block in (*([b.Heading(text=s.name)] if len(sources) > 1 else ()), *made[name](s))
        )
        yield b.Section(
            id=name,
            nav=nav,
            title=title,
            lead=lead.format(level=stated, base=sources[0].short_base),
            blocks=tuple(blocks),
        )


# Sections


def _found(report: ExplainReport, sources: Sequence[Compared]) -> b.Section:
    stated = f"{level(report.config.confidence_level)} intervals, each by itself"
    text = f"{ASSOCIATION}. In brackets are {stated}; tables give method and n of every one."
    blocks: tuple[b.Block, ...] = (
        (
            b.Paragraph(text=text, look="note", to=b.PAGE),
            b.Paragraph(text=f"{ASSOCIATION}.", to=b.MARKDOWN),
            *(block for s in sources for block in _of_source(s)),
            b.Paragraph(text=f"In brackets: {stated}.", look="note", to=b.TERMINAL),
        )
        if sources
        else (b.Paragraph(text="There is no source in this report."),)
    )
    return b.Section(id="findings", title="Findings", blocks=blocks)


def _of_source(s: Compared) -> Iterator[b.Block]:
    yield b.Heading(
        text=s.name,
        tags=(f"{count(s.found.n_pairs)} of {count(s.found.n_available)} pairs",),
        to=b.EVERYWHERE,
    )
    scores, others = findings(s)
    yield b.Findings(
        rows=(
            *((f.topic, f.shown, f.text) for f in (*scores, *others)),
            *((names, None, f"{why}.") for names, why in unmeasured(s)),
        )
    )
    if words := s.found.lexical:
        yield b.Items(
            rows=tuple(
                (f"more in {source_name(source)} texts", ", ".join(t.term for t in terms[:_TERMS]))
                for source, terms in (
                    (s.report.config.baseline_source, words.more_human),
                    (s.found.source, words.more_other),
                )
                if terms
            ),
            to=b.TERMINAL,
        )


def _absent(s: Compared, *parts: str) -> Iterator[b.Paragraph]:
    missing = missing_parts(s)
    for part in (part for part in parts if part in missing):
        yield b.Paragraph(
            text=f"Not computed: {PARTS[part]}. {capital(missing[part])}.", look="absent"
        )


def _gap(s: Compared) -> Iterator[b.Block]:
    yield from _absent(s, "decomposition")
    found = s.found.decomposition
    if found is None:
        return
    yield b.Figures(items=(("The score gap and its parts", _gap_picture(s, found)),), small=True)
    shares = (in_share(found.r_squared), in_share(found.remainder_share))
    cells: list[tuple[str, Interval, Row]] = [
        ("score gap", found.gap, ("100%", shares[0], "", "")),
        *(
            (
                s.part(factor),
                factor.component,
                (
                    in_share(factor.share),
                    in_share(factor.variance_share),
                    number(factor.mean, digits=2),
                    f"{factor.no_difference:g}",
                ),
            )
            for factor in found.factors
        ),
        ("remainder", found.remainder, (shares[1], "", "", "")),
    ]
    row = partial(_row, s, digits=score_digits(found.gap), signed=True)
    rows = ((row(label, value), more) for label, value, more in cells)
    more = ("share of gap", "share of variance", "mean", "no difference at")
    yield b.Grid(
        table=b.Table(
            columns=("", *_columns(s, *more)),
            rows=tuple((*made[:3], *others, *made[3:]) for made, others in rows),
        ),
        caption=f"{s.of}Score gap of {count(found.n)} relevant pairs of {count(found.n_queries)} "
        "queries, and its parts",
    )


def _gap_picture(s: Compared, found: GapDecomposition) -> pic.Intervals:
    """Show the gap, every part and the remainder; filled marks have intervals that leave out 0."""
    base, other = shorten(s.short_base, _SHORT), shorten(s.short_other, _SHORT)

    def row(name: str, part: Interval, colour: pic.Colour = "even") -> pic.Row:
        return pic.Row(group=name, marks=(pic.mark(part, colour, solid=part.excludes(0)),))

    parts = [
        *((s.part(factor, width=_FACTOR), factor.component) for factor in found.factors),
        ("remainder: none of these", found.remainder),
    ]
    return pic.Intervals(
        title=f"Parts of the score gap, {other} minus {base}",
        rows=(
            row("score gap", found.gap),
            *(row(name, p, "other" if p.estimate > 0 else "baseline") for name, p in parts),
        ),
        x=pic.Axis(
            label=f"← {base} scores higher  |  {other} scores higher →",
            digits=score_digits(found.gap),
        ),
        guides=(pic.Guide(at=0),),
        filled="excludes 0",
        bars=True,
    )


def _texts(s: Compared) -> Iterator[b.Block]:
    found, base, other = s.found.texts, s.short_base, s.short_other

    def middle(values: Histogram, *, digits: int = 2) -> str:
        return f"{number(values.mean, digits=digits)} ({number(values.median, digits=digits)})"

    kept, both = f"Overlap with the {base} text", "words in both / words"
    yield b.Figures(
        items=(
            _histogram("Jaccard index", f"{both} in either", ("", found.jaccard, "even")),
            _histogram(kept, f"{both} of {base}", ("", found.overlap, "even")),
        ),
        small=True,
    )
    label, length = "words of a version against the original", in_percent(found.log_length_ratio)
    yield b.Grid(
        table=b.Table(
            columns=("", *_columns(s)),
            rows=(_row(s, label, length, digits=1, signed=True, unit="%"),),
        ),
        caption=f"{s.of}Length",
    )
    rows = (
        (f"words per text, {base}", number(found.mean_words_human)),
        (f"words per text, {other}", number(found.mean_words_other)),
        ("Jaccard index, mean (median)", middle(found.jaccard)),
        (f"share of {base} words kept, mean (median)", middle(found.overlap)),
        (f"distinct words, {base}", count(found.vocabulary_human)),
        (f"distinct words, {other}", count(found.vocabulary_other)),
        ("distinct words of both", count(found.vocabulary_shared)),
        *(
            [("cosine of versions, mean (median)", middle(s.found.cosine, digits=3))]
            if s.found.cosine
            else []
        ),
    )
    yield b.Facts(tables=(("", b.Table(columns=("", ""), rows=rows)),))


def _words(s: Compared) -> Iterator[b.Block]:
    yield from _absent(s, "lexical")
    found, base, other = s.found.lexical, s.short_base, s.short_other
    if found is None:
        return
    held = partial(_row, s, digits=1, unit="%", scale=100)
    points = partial(_row, s, digits=1, signed=True, unit=" pts", scale=100)
    idf, change = partial(_row, s, signed=True), "change of idf by mixing, words only"
    yield b.Grid(
        table=b.Table(
            columns=("", *_columns(s)),
            rows=(
                held(f"query weight held, {base}", found.coverage_human),
                held(f"query weight held, {other}", found.coverage_other),
                points(f"difference, {other} minus {base}", found.coverage_gap),
                points("the same with idf of each source's own corpus", found.gap_own_idf),
                idf(f"{change} {base} has", found.idf_change_human_only),
                idf(f"{change} {other} has", found.idf_change_other_only),
            ),
        ),
        caption=f"{s.of}{count(found.n_pairs)} relevant pairs of {count(found.n_queries)} "
        "judged queries: share of a query's idf weight that a version holds, and what "
        "mixing does to idf",
    )
    terms = tuple(
        (
            f"more in {name} texts",
            term.term,
            count(term.n_human),
            count(term.n_other),
            number(term.log_odds, digits=2, signed=True),
        )
        for name, terms in ((base, found.more_human), (other, found.more_other))
        for term in terms
    )
    yield (
        b.Grid(
            table=b.Table(
                columns=("where", "word", base, other, "log odds ratio"), rows=terms, n_heads=2
            ),
            caption=f"{s.of}Words that distinguish the sources most, and how many documents hold "
            "them",
        )
        if terms
        else b.Paragraph(text="No word distinguishes the sources.")
    )


def _vectors(s: Compared) -> Iterator[b.Block]:
    found, lies = s.found.spectrum, s.found.geometry
    if pictures := tuple(_vector_pictures(s)):
        yield b.Figures(items=pictures, small=True)
    yield from _absent(s, "spectrum", "geometry", "map", "cosine")
    if found:
        m, row = len(found.human), partial(_row, s, digits=1, signed=True, unit="%")
        few = ": too few pairs" * (found.tail is None)
        yield b.Grid(
            table=b.Table(
                columns=("singular values", *_columns(s)),
                rows=(
                    row(f"first tenth (1 to {max(1, m // 10)})", found.head),
                    row(f"last half ({m // 2 + 1} to {m}){few}", found.tail),
                ),
            ),
            caption=f"{s.of}Mean difference of singular values",
        )
        yield b.Paragraph(text=f"Spectra: {prepared(found)}.", to=b.MARKDOWN)
    if lies:
        percent = partial(_row, s, digits=1, unit="%", scale=100)
        cosine = partial(_row, s, digits=3)
        yield b.Grid(
            table=b.Table(
                columns=("", *_columns(s)),
                rows=(
                    percent(
                        "linear probe, unseen documents right (chance 50%)", lies.probe_accuracy
                    ),
                    percent(
                        "linear probe, pairs ordered right (chance 50%)", lies.probe_pair_accuracy
                    ),
                    percent("squared distance that all pairs share", lies.common_share),
                    cosine("cosine of the versions of a document", lies.twin_cosine),
                    cosine(f"anisotropy, {s.short_base}", lies.anisotropy_human),
                    cosine(f"anisotropy, {s.short_other}", lies.anisotropy_other),
                    cosine("anisotropy, difference", lies.anisotropy_difference, signed=True),
                    (
                        "length of the mean shift",
                        number(lies.shift, digits=3),
                        "",
                        count(lies.n),
                        "mean",
                    ),
                ),
            ),
            caption=f"{s.of}Where the vectors lie",
        )


def _vector_pictures(s: Compared) -> Iterator[tuple[str, pic.Picture]]:
    if s.found.spectrum:
        yield _spectrum_picture(s, s.found.spectrum)
    if s.found.map:
        yield _map_picture(s, s.found.map)
    if s.found.cosine:
        yield _histogram(
            "Cosine of the two versions of a document",
            "cosine",
            ("", s.found.cosine, "even"),
            digits=3,
        )


def _spectrum_picture(s: Compared, found: SpectrumComparison) -> tuple[str, pic.Lines]:
    """Show (other − human) / human of every singular value in percent, with a band of all.

    The means over the first tenth and over the last half have their own. Ends of the band may leave
    the picture.
    """
    m, held = len(found.human), found.n_supported
    caption = (
        f"Relative singular values: {prepared(found)}; {count(found.n)} pairs, "
        f"{level(found.confidence_level)} band from {count(found.resamples)} resamples"
        f"{f', which end at value {count(held)}' * (held < m)}"
    )
    parts = [
        (found.head, "First tenth", 1, max(1, m // 10)),
        *([] if found.tail is None else [(found.tail, "last half", m // 2 + 1, m)]),
    ]
    low, high = found.band_lower[:held], found.band_upper[:held]
    inside = [
        *found.difference,
        *(end for part, *_ in parts for end in (part.lower, part.upper)),
        *(-_NARROWEST, _NARROWEST, np.quantile(low, 0.1), np.quantile(high, 0.9)),
    ]
    lowest, highest = float(min(inside)), float(max(inside))
    margin = 0.05 * (highest - lowest)
    index, values = tuple(map(float, range(1, m + 1))), tuple(found.difference.tolist())
    band = partial(pic.Curve, mark="none", band=True)
    base, other = shorten(s.short_base, 20), shorten(s.short_other, 20)
    told = ", ".join(f"{name} {with_ends(part, unit='%')}" for part, name, *_ in parts)
    return caption, pic.Lines(
        title=f"Singular values of {other} vectors relative to {base} ones",
        description=f"{caption}. {told}.",
        curves=(
            band(
                x=index[:held],
                y=values[:held],
                ends=tuple(zip(low.tolist(), high.tolist(), strict=True)),
                colour="other",
            ),
            pic.Curve(
                x=index, y=values, colour="other", name="each value", mark="none", line="solid"
            ),
            *(
                band(
                    x=(float(start), start + max(end - start, m / 60)),
                    y=(part.estimate, part.estimate),
                    ends=((part.lower, part.upper),) * 2,
                    colour="ink",
                    name="mean, head and tail",
                    line="solid",
                )
                for part, _, start, end in parts
            ),
        ),
        x=pic.Axis(label="index of the singular value, largest first", span=(0, m + 1)),
        y=pic.Axis(label=f"{other} against {base}, %", span=(lowest - margin, highest + margin)),
        guides=(pic.Guide(at=0, level=True),),
    )


def _map_picture(s: Compared, placed: VectorMap) -> tuple[str, pic.Points]:
    """Show each version as a mark; few pairs are joined by lines."""
    n, shares = len(placed.human), placed.variance_shares
    rows = np.unique(np.linspace(0, n - 1, min(_DRAWN, n)).astype(int))
    explains = f"{share(sum(shares))} of the variance, " if shares else ""
    some = f"{count(_DRAWN)} of " if n > _DRAWN else ""
    text = (
        f"{_MAPS.get(placed.method, placed.method)}, {explains}{some}{count(n)} pairs"
        f"{' drawn' * (n > _DRAWN)}"
    )
    labels = [
        f"axis {at + 1}" + (f", {share(shares[at])} of variance" if at < len(shares) else "")
        for at in (0, 1)
    ]
    shown: tuple[tuple[str, pic.Colour, np.ndarray], ...] = (
        (s.short_base, "baseline", placed.human[rows]),
        (s.short_other, "other", placed.other[rows]),
    )
    return f"Map: {text}", pic.Points(
        title=f"Vectors of {s.short_base} and {s.short_other} versions in a plane",
        description=f"{text}.",
        curves=tuple(
            pic.Curve(
                x=tuple(at[:, 0].tolist()), y=tuple(at[:, 1].tolist()), colour=colour,
                name=shorten(name, 20),
            )
            for name, colour, at in shown
        ),
        x=pic.Axis(label=labels[0]),
        y=pic.Axis(label=labels[1]),
        joined=len(rows) <= _JOINED,
        square=True,
    )  # fmt: skip


def _perplexity(s: Compared) -> Iterator[b.Block]:
    yield from _absent(s, "perplexity")
    models = s.found.perplexity
    if not models:
        return
    label = "log-perplexity, nats per token"
    yield b.Figures(
        items=tuple(
            _histogram(
                f"{model_name(m)}, {m.kind}",
                label,
                (s.short_base, m.human, "baseline"),
                (s.short_other, m.other, "other"),
            )
            for m in models
        ),
        small=True,
    )
    yield b.Grid(
        table=b.Table(
            columns=("model", "", *_columns(s)),
            rows=tuple(row for model in models for row in _perplexity_rows(s, model)),
            n_heads=2,
        ),
        caption=f"{s.of}Log-perplexity in nats per token, and its difference between the "
        "versions of a text",
    )


def _perplexity_rows(s: Compared, found: ModelPerplexity) -> Iterator[Row]:
    gap, model, bounded = found.gap, f"{model_name(found)} ({found.kind})", found.bounded
    left_out = f"; {count(gap.n_left_out)} left out" if gap.n_left_out else ""
    rows = (
        *(
            (f"log-perplexity, {source}", number(mean, digits=2), "", count(gap.n),
             f"mean{left_out}")
            for source, mean in ((s.short_base, gap.mean_human), (s.short_other, gap.mean_other))
        ),
        _row(s, "gap", gap.gap, signed=True),
        _row(s, "gap at equal length", gap.gap_equal_length, signed=True),
        *([_row(s, "gain from reading the original first", bounded.mean, signed=True)]
          if bounded else ()),
        _row(s, "pairs in which it is lower", gap.share_lower, digits=1, unit="%", scale=100),
        *([("ε that holds for 95 of 100 pairs", number(bounded.upper, digits=2), "",
            count(bounded.n), "quantile")] if bounded else ()),
    )  # fmt: skip
    return ((model, *row) for row in rows)


def _histogram(
    title: str, label: str, *shown: tuple[str, Histogram, pic.Colour], digits: int = 2
) -> tuple[str, pic.Histogram]:
    """Show the share of pairs per bin, with the mean as a dashed line."""
    told = [
        f"{name}{': ' * bool(name)}mean {number(found.mean, digits=digits)}, median "
        f"{number(found.median, digits=digits)}, {found.counts.sum():,} texts or pairs in bins "
        f"from {number(found.edges[0], digits=digits)} to {number(found.edges[-1], digits=digits)}."
        for name, found, _ in shown
    ]
    return title, pic.Histogram(
        title=title,
        description=" ".join(told),
        bars=tuple(
            pic.Bars(
                heights=tuple((100 * found.counts / max(1, found.counts.sum())).tolist()),
                colour=colour,
                name=f"{shorten(name, _SHORT)}, mean {number(found.mean, digits=digits)}"
                if name
                else "",
            )
            for name, found, colour in shown
        ),
        edges=tuple(shown[0][1].edges.tolist()),
        x=pic.Axis(label=label),
        y=pic.Axis(label="% of pairs"),
        guides=tuple(
            pic.Guide(at=found.mean, look="dashed", colour=colour if name else "ink")
            for name, found, colour in shown
            if math.isfinite(found.mean)
        ),
    )


# What to know


def _questions(report: ExplainReport) -> tuple[tuple[str, str], ...]:
    c, stated = report.config, level(report.config.confidence_level)
    base = short_names([c.baseline_source, *(s.source for s in report.sources)])[c.baseline_source]
    drawn = "" if c.limit is None else f", at most {count(c.limit)} drawn at random"
    first = c.perplexity_limit
    few = "" if first is None else f"; perplexities of at most {count(first)} of these"
    return (
        (
            "Does this page say why an encoder prefers a source?",
            "No. It says how the sources differ for this encoder, and which differences go with "
            "its scores. A difference may be there without any effect, and an effect may come "
            "from what was not measured. To learn about causes, change one thing and measure "
            "again: rescore, project a direction out, or train.",
        ),
        (
            "Is perplexity the reason?",
            "It was proposed as one. Later work points at how retrievers are supervised: their "
            "training texts differ from rewrites in ways that perplexity only goes along with. "
            "Here it is one difference among several.",
        ),
        (
            "What does “established” mean?",
            f"The {stated} interval leaves out no difference. Each interval stands by itself: of "
            "twenty differences that are not there, about one would look established. “Not "
            "established” is not “no difference”: there may be too few pairs.",
        ),
        (
            "What is the spectrum?",
            "Singular values measure how much of the vectors lies along each of their main "
            "directions. Larger first values and smaller last ones mean vectors that are "
            "concentrated in fewer directions. The shaded band holds all differences at once "
            "with the stated confidence. Without centring, the first value holds the mean "
            "vector. Curves depend on the number of documents, so compare only equal numbers.",
        ),
        (
            "What is the probe?",
            "A linear rule fitted to tell the sources apart, tried on documents of pairs it has "
            "not seen. 50% is chance. Common share is how much of the squared distance between "
            "versions is one shift that all pairs have: near 0 there is none, at times the "
            "estimate is below 0. Anisotropy is the mean cosine of different documents.",
        ),
        (
            "What are the parts of the score gap?",
            "A regression of the gap on how versions differ, evaluated at no difference: part = "
            "slope × (mean difference). Where no pair comes near no difference, that is "
            "extrapolation and marked so. Shares are given only if the gap is well apart from 0. "
            "Share of variance is averaged over the orders in which differences may enter.",
        ),
        (
            f"Which of the {base} texts were looked at?",
            f"Those with a version of the source{drawn} (seed {c.seed}){few}. Both spectra with "
            "their bands and the coordinates of the map are in the JSON.",
        ),
    )


def _doubts(report: ExplainReport) -> b.Section:
    """Return what intervals assume, and what a reader must know besides the warnings."""
    made = [
        (explained, what, i) for explained in report.sources for what, i in _intervals(explained)
    ]
    noted = [
        (explained.source, f"{what}: {note}") for explained, what, i in made for note in i.notes
    ]
    said = [
        (explained.source, note)
        for explained in report.sources
        for of in (explained, explained.decomposition)
        for note in (of.notes if of else ())
    ]
    return b.caveats(
        b.assumed((what, i.assumptions) for _, what, i in made),
        dict.fromkeys((source_name(source), note) for source, note in (*said, *noted)),
        warned=bool(report.warnings),
    )


def _intervals(explained: SourceExplanation) -> Iterator[tuple[str, Interval]]:
    words, values, g = explained.lexical, explained.spectrum, explained.geometry
    found, of_score = explained.decomposition, "parts of the score gap"
    named: list[tuple[str, tuple[Interval | None, ...]]] = [
        ("length", (explained.texts.log_length_ratio,)),
        *([("words of queries", (
            words.coverage_human, words.coverage_other, words.coverage_gap, words.gap_own_idf,
            words.idf_change_human_only, words.idf_change_other_only,
        ))] if words else ()),
        *([("spectrum", (values.head, values.tail))] if values else ()),
        *([
            ("probe", (g.probe_accuracy, g.probe_pair_accuracy)),
            ("common share", (g.common_share,)),
            ("cosine of versions", (g.twin_cosine,)),
            ("anisotropy", (g.anisotropy_human, g.anisotropy_other, g.anisotropy_difference)),
        ] if g else ()),
        *((f"perplexity under {model_name(model)}", (
            model.gap.gap, model.gap.share_lower, model.gap.gap_equal_length,
            model.bounded.mean if model.bounded else None,
        )) for model in explained.perplexity),
        *([
            ("score gap", (found.gap,)),
            (of_score, (found.remainder, *(f.component for f in found.factors))),
            ("share of variance", (found.r_squared, *(f.variance_share for f in found.factors))),
        ] if found else ()),
    ]  # fmt: skip
    return ((what, i) for what, intervals in named for i in intervals if i is not None)


def _data(report: ExplainReport) -> b.Section:
    c, facts = report.config, b.summary_table(report.data)

    def most(value: int | None) -> str:
        return "all" if value is None else f"at most {count(value)}"

    return b.data(
        (
            (
                "Data",
                b.Table(
                    columns=facts.columns,
                    rows=(
                        *facts.rows,
                        *(
                            (
                                f"pairs looked at, {source_name(found.source)}",
                                f"{count(found.n_pairs)} of {count(found.n_available)}",
                            )
                            for found in report.sources
                        ),
                    ),
                ),
            ),
            (
                "Settings",
                b.Table(
                    columns=("setting", ""),
                    rows=(
                        ("encoder", report.encoder or "none"),
                        ("baseline source", source_name(c.baseline_source)),
                        ("pairs", most(c.limit)),
                        ("pairs whose perplexity is computed", most(c.perplexity_limit)),
                        (
                            "map",
                            f"{_MAPS.get(c.map_method, c.map_method)}, {most(c.map_limit)} pairs",
                        ),
                        ("spectra: centred", "yes" if c.centre else "no"),
                        ("spectra: scaled to length 1", "yes" if c.normalise else "no"),
                        ("singular values", most(c.n_values)),
                        ("words per list", most(c.terms)),
                        ("confidence level", level(c.confidence_level)),
                        ("resamples", count(c.resamples)),
                        ("seed", str(c.seed)),
                    ),
                ),
            ),
            ("Environment", b.environment_table(report.environment, report.created)),
        )
    )


# Rows


def _row(
    s: Compared,
    label: str,
    found: Interval | None,
    *,
    digits: int = 2,
    signed: bool = False,
    unit: str = "",
    scale: float = 1.0,
) -> Row:
    """Return name, value, ends, n and method; the level too where it is not the report's."""
    if found is None:
        return (label, MISSING, "no interval", MISSING, "")
    ends = ends_of(scale * found.lower, scale * found.upper, digits=digits)
    if found.confidence_level != s.report.config.confidence_level:
        ends = f"{ends} ({level(found.confidence_level)})"
    return (
        label,
        f"{number(scale * found.estimate, digits=digits, signed=signed)}{unit}",
        ends,
        count(found.n_labeled),
        found.method,
    )


def _columns(s: Compared, *more: str) -> Row:
    return ("value", f"{level(s.report.config.confidence_level)} interval", *more, "n", "method")
