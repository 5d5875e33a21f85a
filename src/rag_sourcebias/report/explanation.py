"""The report on what distinguishes sources for an encoder: what it says, in that order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import explanation_plots as plots
from rag_sourcebias.report import sections
from rag_sourcebias.report.facts import environment_table, summary_table
from rag_sourcebias.report.format import (
    MISSING,
    count,
    join,
    level,
    number,
    share,
    short_names,
    shorten,
    source_name,
)
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain import (
    PAIRS_HELD,
    GapDecomposition,
    GapFactor,
    SourceGeometry,
    SpectrumComparison,
)
from rag_sourcebias.types.explain_report import (
    ExplainReport,
    Histogram,
    LexicalShift,
    ModelPerplexity,
    SourceExplanation,
)
from rag_sourcebias.types.intervals import Interval

__all__ = ["document", "headline"]

_ASSOCIATION = "These are associations: none is shown to cause a preference"
_PERPLEXITY = "; a lower perplexity is a property of rewrites, not an explanation"
#: What may not have been computed, by the field that is then empty.
_PARTS = {
    "lexical": "words of queries",
    "cosine": "cosine of versions",
    "spectrum": "singular values",
    "geometry": "geometry of the vectors",
    "map": "map",
    "perplexity": "perplexity",
    "decomposition": "parts of the score gap",
}
_OF_VECTORS = ("cosine", "spectrum", "geometry", "map", "decomposition")
#: Differences that the score gap may go with, as they are called on the page.
_FACTORS = {
    "log length ratio": "length",
    "query words": "words of queries",
    "source direction": "position along the source direction",
}
_MAPS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}
_CHANCE = 0.5
_TERMS = 8  # words of each source in a terminal
_NAME, _FACTOR = 60, 44  # characters, in a sentence and in a picture

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """One source of a report, with what it and the baseline are called.

    Parameters
    ----------
    base, other : str
        In a sentence.
    short_base, short_other : str
        In tables and pictures.
    of : str
        What stands before a caption where there are several sources.
    """

    report: ExplainReport
    found: SourceExplanation
    base: str
    other: str
    short_base: str
    short_other: str
    of: str

    @property
    def name(self) -> b.Name:
        return b.Name(source_name(self.found.source))

    def factor(self, found: GapFactor) -> str:
        """Return a difference that the score gap may go with."""
        models = {f"perplexity, {model.model}": model for model in self.found.perplexity}
        if found.name in models:
            return f"perplexity under {_model_name(models[found.name])}"
        return _FACTORS.get(found.name, found.name)

    def part(self, found: GapFactor, *, width: int | None = None) -> str:
        """Return the same with a mark where its part of the gap is extrapolated."""
        name, mark = self.factor(found), " (extrapolated)" * found.extrapolated
        return f"{name if width is None else shorten(name, width - len(mark))}{mark}"


def _sources(report: ExplainReport) -> tuple[_Source, ...]:
    baseline = report.config.baseline_source
    names = short_names((baseline, *(found.source for found in report.sources)))
    return tuple(
        _Source(
            report=report,
            found=found,
            base=shorten(source_name(baseline), _NAME),
            other=shorten(source_name(found.source), _NAME),
            short_base=names[baseline],
            short_other=names[found.source],
            of=f"{source_name(found.source)}: " if len(report.sources) > 1 else "",
        )
        for found in report.sources
    )


def document(report: ExplainReport) -> b.Document:
    """Return everything there is to say about what distinguishes the sources of a report."""
    sources, name = _sources(report), report.data.name or "unnamed data"
    encoder = (("encoder ", b.Name(report.encoder)),) if report.encoder else ()
    beside = f"{len(sources)} source{'s' * (len(sources) != 1)} beside the baseline"
    measured = (_gap, _texts, _words, _vectors, _perplexity) if sources else ()
    return b.Document(
        kind="What distinguishes the sources",
        title=f"What distinguishes the sources: {name}",
        name=name,
        headline=headline(report),
        facts=(*encoder, (beside,)),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=(
            _found(report, sources),
            *(make(sources) for make in measured),
            sections.reading(_questions(report)),
            sections.caveats(_assumptions(report), _caveats(report), warned=bool(report.warnings)),
            sections.data(_data(report)),
        ),
    )


# Findings: one place makes each sentence from its numbers, for the headline and for the outputs


@dataclass(frozen=True, slots=True)
class _Finding:
    """One difference between the versions.

    Parameters
    ----------
    topic : str
        What differs, or may: "length".
    shown : bool
        Whether its interval leaves out no difference.
    text : str
        A whole sentence with the interval.
    brief : str
        The difference in a few words, to stand behind the source; only where the headline uses it.
    """

    topic: str
    shown: bool
    text: str
    brief: str = ""


def _findings(s: _Source) -> tuple[_Finding | None, list[_Finding]]:
    """Return what was measured on one source: of its scores, and of all else."""
    found, scores = s.found, None
    others = [_length_finding(s)]
    if found.decomposition is not None:
        scores = _gap_finding(s, found.decomposition)
    if found.lexical is not None:
        others.append(_lexical_finding(s, found.lexical))
    if found.spectrum is not None:
        others.append(_spectrum_finding(s, found.spectrum))
    if found.geometry is not None:
        others.append(_probe_finding(s, found.geometry))
        if found.geometry.anisotropy_difference is not None:
            others.append(_anisotropy_finding(s, found.geometry.anisotropy_difference))
    return scores, [*others, *(_perplexity_finding(s, model) for model in found.perplexity)]


def _gap_finding(s: _Source, found: GapDecomposition) -> _Finding:
    gap, ends = found.gap, _scored(found.gap)
    if not gap.excludes(0):
        return _Finding(
            "scores",
            False,
            f"That {s.other} and {s.base} versions get different scores for the same query is not "
            f"established: {ends} on average. {_parts_sentence(s, found)}",
            ends,
        )
    word = "higher" if gap.estimate > 0 else "lower"
    size = number(abs(gap.estimate), digits=_score_digits(gap))
    text = (
        f"For the same query {s.other} versions score {word} than {s.base} ones by {size} on "
        f"average ({ends}). {_parts_sentence(s, found)}"
    )
    brief = f"{size} {word}"
    return _Finding("scores", True, text, brief)


def _parts_sentence(s: _Source, found: GapDecomposition) -> str:
    """Say which parts of the gap go with which difference, and what remains."""
    digits = _score_digits(found.gap)
    clear = [factor for factor in found.factors if factor.component.excludes(0)]
    rest, left = _scored(found.remainder, digits=digits), "remains and may be 0"
    if found.remainder.excludes(0):
        left = "goes with none of them" if clear else "remains"
    if not clear:
        return f"No part of it is shown to go with a measured difference; {rest} {left}."
    parts = [
        f"{_scored(factor.component, digits=digits)} {'with' if at else 'goes with'} "
        f"{s.part(factor)}"
        for at, factor in enumerate(clear)
    ]
    tail = ""
    if names := [s.factor(f) for f in found.factors if not f.component.excludes(0)]:
        *most, last = names
        among = f"{', '.join(most)} or {last}" if most else last
        tail = f"; no part is shown to go with {among}"
    return f"Of it {join(parts)}{tail}; {rest} {left}."


def _length_finding(s: _Source) -> _Finding:
    found = s.found.texts.log_length_ratio
    middle, low, high = map(_log_as_percent, (found.estimate, found.lower, found.upper))
    change = f"{number(middle, signed=True)}%"
    ends = _range(low, high, digits=1)
    if not found.excludes(0):
        return _Finding(
            "length",
            False,
            f"That {s.other} versions are longer or shorter than {s.base} ones is not established: "
            f"{change} words {ends}.",
        )
    brief = f"are {number(abs(middle))}% {'shorter' if middle < 0 else 'longer'}"
    # A name that users gave is left as it is.
    who = s.other.capitalize() if s.found.source in ("", "human") else s.other
    text = (
        f"{who} versions {brief} than the {s.base} ones they rewrite (in words, {change} {ends})."
    )
    return _Finding("length", True, text, brief)


def _lexical_finding(s: _Source, found: LexicalShift) -> _Finding:
    gap, topic = found.coverage_gap, "words of queries"
    ends = _ends(gap, scale=100, unit=" points")
    if not gap.excludes(0):
        return _Finding(
            topic,
            False,
            f"That {s.other} versions hold more or less of a query's words than {s.base} ones is "
            f"not established: {ends} of the query's idf weight.",
        )
    word = "more" if gap.estimate > 0 else "less"
    text = (
        f"Relevant {s.other} versions hold {word} of a query's words than {s.base} ones: {ends} of "
        f"the query's idf weight; with idf of each source's own corpus "
        f"{_ends(found.gap_own_idf, scale=100)}."
    )
    points = number(100 * abs(gap.estimate))
    brief = f"hold {word} of the words of queries ({points} points of idf weight)"
    return _Finding(topic, True, text, brief)


def _spectrum_finding(s: _Source, found: SpectrumComparison) -> _Finding:
    parts = [(found.head, "first tenth", "at the head")]
    rest = shape = ""
    if found.tail is not None:
        parts.append((found.tail, "last half", "in the tail"))
        shape = f" {_shape(found.head, found.tail)}"
    else:
        rest = (
            f" The last half is not judged: {count(found.n)} pairs are too few for "
            f"{count(len(found.human))} values, as resamples repeat pairs (at least "
            f"{number(1 / PAIRS_HELD)} pairs per value are needed)."
        )
    ends = ", ".join(f"{name} {_ends(part, unit='%')}" for part, name, _ in parts)
    clear = " and ".join(
        f"{number(abs(part.estimate))}% {'larger' if part.estimate > 0 else 'smaller'} {where}"
        for part, _, where in parts
        if part.excludes(0)
    )
    if not clear:
        return _Finding(
            "spectrum",
            False,
            f"That the singular values of {s.other} and {s.base} vectors differ is not established "
            f"({ends}; {_prepared(found)}).{rest}",
        )
    text = (
        f"Singular values of {s.other} vectors are {clear} ({ends}; {_prepared(found)})."
        f"{rest}{shape}"
    )
    brief = f"have singular values {clear}"
    return _Finding("spectrum", True, text, brief)


def _shape(head: Interval, tail: Interval) -> str:
    """Compare with [K] Fig. 6: more at the head, less in the tail."""
    clear = [part.estimate * sign > 0 for part, sign in ((head, 1), (tail, -1)) if part.excludes(0)]
    shape = "the shape that Dai et al. (2024) found for LLM texts"
    if not all(clear):
        return f"That is not {shape}, more at the head and less in the tail."
    if len(clear) == 2:
        return f"They are concentrated in fewer directions, {shape}."
    return (
        f"That is one half of {shape}, more at the head and less in the tail; the other is not "
        "established."
    )


def _prepared(found: SpectrumComparison) -> str:
    """Say how vectors were prepared before their spectra were compared."""
    centred = "each source's mean subtracted" if found.centred else "not centred"
    return f"{centred}, {'rows scaled to length 1' if found.normalised else 'lengths as they are'}"


def _probe_finding(s: _Source, found: SourceGeometry) -> _Finding:
    accuracy = found.probe_accuracy
    claim = f"ectors show whether a text is {s.other} or {s.base}"
    ends = f"{_shared(accuracy, null=50)} of documents it has not seen, chance 50%"
    if accuracy.lower <= _CHANCE:
        text = f"That v{claim} is not established: a linear probe is right on {ends}."
        return _Finding("position", False, text)
    common = "" if found.common_share is None else (
        f"; of the squared distance between versions, {_shared(found.common_share)} is a shift "
        "that all pairs have in common"
    )  # fmt: skip
    return _Finding(
        "position",
        True,
        f"V{claim}: a linear probe is right on {ends}{common}.",
        f"are told apart by a linear probe of vectors ({share(accuracy.estimate)}, chance 50%)",
    )


def _anisotropy_finding(s: _Source, gap: Interval) -> _Finding:
    ends = _ends(gap, digits=3)
    if not gap.excludes(0):
        return _Finding(
            "anisotropy",
            False,
            f"That different {s.other} documents are more or less alike than {s.base} ones is not "
            f"established: mean cosine {ends}.",
        )
    word = "more" if gap.estimate > 0 else "less"
    mean = number(gap.estimate, digits=3, signed=True)
    return _Finding(
        "anisotropy",
        True,
        f"Different {s.other} documents are {word} alike than {s.base} ones: mean cosine {ends}.",
        f"are {word} alike among themselves (mean cosine {mean})",
    )


def _perplexity_finding(s: _Source, found: ModelPerplexity) -> _Finding:
    """Never as the cause of anything."""
    gap, name = found.gap.gap, _model_name(found)
    topic, ends = f"perplexity under {name}", _ends(gap, digits=2)
    if not gap.excludes(0):
        return _Finding(
            topic,
            False,
            f"That {name} predicts {s.other} versions better or worse than {s.base} ones is not "
            f"established: {ends} nats per token.",
        )
    word, size = ("more", "lower") if gap.estimate < 0 else ("less", "higher")
    tail, equal = "", found.gap.gap_equal_length
    if equal is not None:
        tail = f"; at equal length it is {_ends(equal, digits=2)}"
        if not equal.excludes(0):
            tail = f"; at equal length no difference is established ({_ends(equal, digits=2)})"
    change = number(gap.estimate, digits=2, signed=True)
    return _Finding(
        topic,
        True,
        f"{name} finds {s.other} versions {word} predictable: log-perplexity is {size} by "
        f"{number(abs(gap.estimate), digits=2)} nats per token ({ends}), lower in "
        f"{_shared(found.gap.share_lower, null=50)} of pairs{tail}. That is a property of the "
        "texts; it does not follow that an encoder's scores come from it.",
        f"are {word} predictable to {name} ({change} nats per token)",
    )


def _missing(s: _Source) -> dict[str, str]:
    """Return why each part that is not there was not computed, without a full stop."""
    empty = (part for part in _PARTS if getattr(s.found, part) in (None, ()))
    return {part: _reason(s, part) for part in empty}


def _reason(s: _Source, part: str) -> str:
    if part in s.found.missing:
        return s.found.missing[part].rstrip(".")
    # A report of version 0.1 has reasons among its notes, and does not say which is for what.
    if part in _OF_VECTORS and not s.report.encoder:
        return "no encoder was given"
    if part in ("lexical", "decomposition") and not s.report.data.n_queries:
        return "there are no judged queries with text"
    if s.found.notes:
        return "the caveats may say why"
    return "no language model was given" if part == "perplexity" else "the report does not say why"


def _unmeasured(s: _Source) -> list[tuple[str, str]]:
    """Return (parts, why) of all that was not computed, a reason once with all its parts."""
    found: dict[str, list[str]] = {}
    for part, why in _missing(s).items():
        found.setdefault(why, []).append(_PARTS[part])
    return [(join(names), why) for why, names in found.items()]


# The headline


def headline(report: ExplainReport) -> str:
    """Return what distinguishes the sources, what is open and what is missing."""
    if not report.sources:
        return "No source was compared."
    sources = _sources(report)
    told = _one(sources[0]) if len(sources) == 1 else map(_short, sources)
    lower = any(p.gap.gap.upper < 0 for found in report.sources for p in found.perplexity)
    return " ".join([*told, f"{_ASSOCIATION}{_PERPLEXITY if lower else ''}."])


def _one(s: _Source) -> Iterator[str]:
    scores, others = _findings(s)
    name = _called(s.report.encoder) if s.report.encoder else "no encoder"
    if scores is not None and scores.shown:
        yield f"{name} scores {s.other} versions {scores.brief} than {s.base} ones."
    elif scores is not None:
        yield (
            f"That {name} scores {s.other} and {s.base} versions differently is not established "
            f"({scores.brief})."
        )
    start = f"In {count(s.found.n_pairs)} pairs"
    if any(found.shown for found in others):
        who = "the former" if scores else f"{s.other} versions, beside {s.base} ones,"
        *most, last = [found.brief for found in others if found.shown]
        yield f"{start} {who} {'; '.join([*most, f'and {last}'] if most else [last])}."
    else:
        which = "the two" if scores else f"{s.other} from {s.base} versions"
        yield f"{start} nothing that was measured distinguishes {which} beyond doubt."
    if still_open := [found.topic for found in others if not found.shown]:
        yield f"Not established: {join(still_open)}."
    if missing := _unmeasured(s):
        yield f"Not computed: {'; '.join(f'{names} ({why})' for names, why in missing)}."


def _short(s: _Source) -> str:
    scores, others = _findings(s)
    apart = [found.topic for found in others if found.shown]
    what = join(apart) if apart else "nothing that is established"
    text = f"{s.other} versions differ from {s.base} ones in {what}"
    if scores is not None and scores.shown:
        text = (
            f"{s.other} versions score {scores.brief} than {s.base} ones and differ from them in "
            f"{what}"
        )
    measured = others if scores is None else [scores, *others]
    if still_open := [found.topic for found in measured if not found.shown]:
        text += f"; not established: {join(still_open)}"
    if missing := _unmeasured(s):
        text += f"; not computed: {join([names for names, _ in missing])}"
    return f"{text}."


# Sections


def _found(report: ExplainReport, sources: Sequence[_Source]) -> b.Section:
    stated = f"{level(report.config.confidence_level)} intervals, each by itself"
    blocks: list[b.Block] = [b.Paragraph(text="There is no source in this report.")]
    if sources:
        text = f"{_ASSOCIATION}. In brackets are {stated}; tables give method and n of every one."
        blocks = [b.Paragraph(text=text, look="note")]
    for s in sources:
        pairs = f"{count(s.found.n_pairs)} of {count(s.found.n_available)} pairs"
        scores, others = _findings(s)
        rows = [
            *((f.topic, f.shown, f.text) for f in ([scores] if scores else []) + others),
            *((names, None, f"{why}.") for names, why in _unmeasured(s)),
        ]
        blocks += [
            b.Heading(text=s.name, tags=(pairs,), to=b.EVERYWHERE),
            b.Findings(rows=tuple(rows)),
        ]
        if words := s.found.lexical:
            lists = ((report.config.baseline_source, words.more_human),
                     (s.found.source, words.more_other))  # fmt: skip
            marking = tuple(
                (f"more in {source_name(source)} texts", ", ".join(t.term for t in terms[:_TERMS]))
                for source, terms in lists
                if terms
            )
            blocks.append(b.Items(rows=marking, to=b.TERMINAL))
    if sources:
        blocks.append(b.Paragraph(text=f"In brackets: {stated}.", look="note", to=b.TERMINAL))
    return b.Section(id="findings", title="Findings", blocks=tuple(blocks))


def _by_source(
    sources: Sequence[_Source], blocks_of: Callable[[_Source], Iterator[b.Block]]
) -> tuple[b.Block, ...]:
    blocks: list[b.Block] = []
    for s in sources:
        if len(sources) > 1:
            blocks.append(b.Heading(text=s.name))
        blocks += blocks_of(s)
    return tuple(blocks)


def _absent(s: _Source, *parts: str) -> Iterator[b.Paragraph]:
    missing = _missing(s)
    for part in parts:
        if part in missing:
            why = missing[part][:1].upper() + missing[part][1:]
            yield b.Paragraph(text=f"Not computed: {_PARTS[part]}. {why}.", look="absent")


def _gap(sources: Sequence[_Source]) -> b.Section:
    def blocks(s: _Source) -> Iterator[b.Block]:
        yield from _absent(s, "decomposition")
        if found := s.found.decomposition:
            digits = _score_digits(found.gap)
            rows = [
                ("score gap", found.gap),
                *((s.part(factor, width=_FACTOR), factor.component) for factor in found.factors),
                ("remainder: none of these", found.remainder),
            ]
            picture = partial(
                plots.gap_plot,
                rows=rows,
                base=s.short_base,
                other=s.short_other,
                description=" ".join(f"{name}: {_scored(i, digits=digits)}." for name, i in rows),
            )
            yield b.Figures(items=(("The score gap and its parts", picture),), small=True)
            caption = (
                f"{s.of}Score gap of {count(found.n)} relevant pairs of {count(found.n_queries)} "
                "queries, and its parts"
            )
            yield b.Grid(table=_gap_table(s, found), caption=caption)

    return b.Section(
        id="gap",
        nav="Score gap",
        title="What goes with the score gap",
        lead="The encoder's score of the other version minus that of the original, for queries to "
        "which both are relevant, as a sum: one part for each measured difference between "
        "versions, and a remainder. Parts are associations. Differences go together, so that a "
        "part may belong to another one, or to something that was not measured. Lines are "
        f"{level(sources[0].report.config.confidence_level)} intervals, clustered by query.",
        blocks=_by_source(sources, blocks),
    )


def _gap_table(s: _Source, found: GapDecomposition) -> Table:
    digits = _score_digits(found.gap)

    def row(label: str, value: Interval, *others: str) -> Row:
        made = _row(s, label, value, digits=digits, signed=True)
        return (*made[:3], *others, *made[3:])

    def of_gap(value: Interval | None) -> str:
        return MISSING if value is None else _shared(value)

    parts = (
        row(
            s.part(factor),
            factor.component,
            of_gap(factor.share),
            _shared(factor.variance_share),
            number(factor.mean, digits=2),
            f"{factor.no_difference:g}",
        )
        for factor in found.factors
    )
    more = ("share of gap", "share of variance", "mean", "no difference at")
    heads = _table(s, ()).columns
    return Table(
        columns=(*heads[:3], *more, *heads[3:]),
        rows=(
            row("score gap", found.gap, "100%", _shared(found.r_squared), "", ""),
            *parts,
            row("remainder", found.remainder, of_gap(found.remainder_share), "", "", ""),
        ),
    )


def _texts(sources: Sequence[_Source]) -> b.Section:
    def blocks(s: _Source) -> Iterator[b.Block]:
        found, base = s.found.texts, s.short_base
        kept = f"Overlap with the {base} text"
        items = (
            _histogram("Jaccard index", "words in both / words in either", found.jaccard),
            _histogram(kept, f"words in both / words of {base}", found.overlap),
        )
        yield b.Figures(items=items, small=True)
        length = _row(
            s, "words of a version against the original", found.log_length_ratio,
            digits=1, signed=True, unit="%", change=_log_as_percent,
        )  # fmt: skip
        yield b.Grid(table=_table(s, [length]), caption=f"{s.of}Length")
        yield b.Facts(tables=(("", _texts_table(s)),))

    return b.Section(
        id="texts",
        nav="Texts",
        title="The texts",
        lead="Length and wording of both versions of a document. Jaccard is the share of all "
        "distinct words of a pair that both versions hold; overlap the share of the "
        f"{sources[0].short_base} version's words that the other keeps. Dashed lines are means.",
        blocks=_by_source(sources, blocks),
    )


def _texts_table(s: _Source) -> Table:
    found, base, other = s.found.texts, s.short_base, s.short_other

    def middle(values: Histogram, *, digits: int = 2) -> str:
        return f"{number(values.mean, digits=digits)} ({number(values.median, digits=digits)})"

    rows = [
        (f"words per text, {base}", number(found.mean_words_human)),
        (f"words per text, {other}", number(found.mean_words_other)),
        ("Jaccard index, mean (median)", middle(found.jaccard)),
        (f"share of {base} words kept, mean (median)", middle(found.overlap)),
        (f"distinct words, {base}", count(found.vocabulary_human)),
        (f"distinct words, {other}", count(found.vocabulary_other)),
        ("distinct words of both", count(found.vocabulary_shared)),
    ]
    if s.found.cosine is not None:
        rows.append(("cosine of versions, mean (median)", middle(s.found.cosine, digits=3)))
    return Table(columns=("", ""), rows=tuple(rows))


def _words(sources: Sequence[_Source]) -> b.Section:
    def blocks(s: _Source) -> Iterator[b.Block]:
        yield from _absent(s, "lexical")
        if found := s.found.lexical:
            yield b.Grid(
                table=_lexical_table(s, found),
                caption=f"{s.of}{count(found.n_pairs)} relevant pairs of {count(found.n_queries)} "
                "judged queries: share of a query's idf weight that a version holds, and what "
                "mixing does to idf",
            )
            rows = tuple(
                (
                    f"more in {name} texts",
                    term.term,
                    count(term.n_human),
                    count(term.n_other),
                    number(term.log_odds, digits=2, signed=True),
                )
                for name, terms in (
                    (s.short_base, found.more_human),
                    (s.short_other, found.more_other),
                )
                for term in terms
            )
            columns = ("where", "word", s.short_base, s.short_other, "log odds ratio")
            caption = (
                f"{s.of}Words that distinguish the sources most, and how many documents hold them"
            )
            yield (
                b.Grid(table=Table(columns=columns, rows=rows, n_heads=2), caption=caption)
                if rows
                else b.Paragraph(text="No word distinguishes the sources.")
            )

    return b.Section(
        id="words",
        nav="Words",
        title="Words of queries, and words that mark a source",
        lead="What a lexical retriever such as BM25 sees. A word that rewriting drops stands in "
        "only one of the two versions, so that its idf is higher in the mixed corpus than in the "
        "corpus of the source that keeps it, and every document that has it gains: an artefact of "
        "mixing, not of relevance.",
        blocks=_by_source(sources, blocks),
    )


def _lexical_table(s: _Source, found: LexicalShift) -> Table:
    base, other = s.short_base, s.short_other
    held = partial(_row, s, digits=1, unit="%", change=_as_percent)
    points = partial(_row, s, digits=1, signed=True, unit=" pts", change=_as_percent)
    idf = partial(_row, s, signed=True)
    return _table(
        s,
        [
            held(f"query weight held, {base}", found.coverage_human),
            held(f"query weight held, {other}", found.coverage_other),
            points(f"difference, {other} minus {base}", found.coverage_gap),
            points("the same with idf of each source's own corpus", found.gap_own_idf),
            idf(f"change of idf by mixing, words only {base} has", found.idf_change_human_only),
            idf(f"change of idf by mixing, words only {other} has", found.idf_change_other_only),
        ],
    )


def _vectors(sources: Sequence[_Source]) -> b.Section:
    def blocks(s: _Source) -> Iterator[b.Block]:
        if items := tuple(_vector_pictures(s)):
            yield b.Figures(items=items, small=True)
        yield from _absent(s, "spectrum", "geometry", "map", "cosine")
        if found := s.found.spectrum:
            caption = f"{s.of}Mean difference of singular values"
            yield b.Grid(table=_spectrum_table(s, found), caption=caption)
            yield b.Paragraph(text=f"Spectra: {_prepared(found)}.", to=b.MARKDOWN)
        if lies := s.found.geometry:
            yield b.Grid(table=_geometry_table(s, lies), caption=f"{s.of}Where the vectors lie")

    return b.Section(
        id="vectors",
        nav="Vectors",
        title="The vectors",
        lead="Singular values of the matrix of all vectors of a source, largest first, compared "
        "index by index (Dai et al. 2024, Fig. 6); where vectors lie and whether that shows who "
        "wrote a text; and how near the two versions of a document are. Ends of the band may "
        "leave the picture.",
        blocks=_by_source(sources, blocks),
    )


def _vector_pictures(s: _Source) -> Iterator[tuple[str, Callable[[str], str]]]:
    sides = {"base": s.short_base, "other": s.short_other}
    if found := s.found.spectrum:
        caption = (
            f"Relative singular values: {_prepared(found)}; {count(found.n)} pairs, "
            f"{level(found.confidence_level)} band from {count(found.resamples)} resamples"
        )
        if found.n_supported < len(found.human):
            caption += f", which end at value {count(found.n_supported)}"
        told = f"First tenth {_ends(found.head, unit='%')}"
        if found.tail is not None:
            told += f", last half {_ends(found.tail, unit='%')}"
        described = f"{caption}. {told}."
        yield caption, partial(plots.spectrum_plot, found=found, description=described, **sides)
    if placed := s.found.map:
        n = len(placed.human)
        text = _MAPS.get(placed.method, placed.method)
        if placed.variance_shares:
            text += f", {share(sum(placed.variance_shares))} of the variance"
        drawn = f"{count(plots.MOST)} of {count(n)} pairs drawn"
        text += f", {drawn if n > plots.MOST else f'{count(n)} pairs'}"
        picture = partial(plots.map_plot, found=placed, description=f"{text}.", **sides)
        yield f"Map: {text}", picture
    if s.found.cosine is not None:
        title = "Cosine of the two versions of a document"
        yield _histogram(title, "cosine", s.found.cosine, digits=3)


def _spectrum_table(s: _Source, found: SpectrumComparison) -> Table:
    m = len(found.human)
    parts = (
        (f"first tenth (1 to {max(1, m // 10)})", found.head),
        (f"last half ({m // 2 + 1} to {m})", found.tail),
    )
    rows = [
        _row(s, f"{label}: too few pairs" if part is None else label, part,
             digits=1, signed=True, unit="%")
        for label, part in parts
    ]  # fmt: skip
    return _table(s, rows, name="singular values")


def _geometry_table(s: _Source, found: SourceGeometry) -> Table:
    percent = partial(_row, s, digits=1, unit="%", change=_as_percent)
    cosine = partial(_row, s, digits=3)
    return _table(
        s,
        [
            percent("linear probe, unseen documents right (chance 50%)", found.probe_accuracy),
            percent("linear probe, pairs ordered right (chance 50%)", found.probe_pair_accuracy),
            percent("squared distance that all pairs share", found.common_share),
            cosine("cosine of the versions of a document", found.twin_cosine),
            cosine(f"anisotropy, {s.short_base}", found.anisotropy_human),
            cosine(f"anisotropy, {s.short_other}", found.anisotropy_other),
            cosine("anisotropy, difference", found.anisotropy_difference, signed=True),
            ("length of the mean shift", number(found.shift, digits=3), "", count(found.n), "mean"),
        ],
    )


def _perplexity(sources: Sequence[_Source]) -> b.Section:
    def blocks(s: _Source) -> Iterator[b.Block]:
        yield from _absent(s, "perplexity")
        if models := s.found.perplexity:
            yield b.Figures(items=tuple(_perplexity_picture(s, m) for m in models), small=True)
            rows = tuple(row for model in models for row in _perplexity_rows(s, model))
            yield b.Grid(
                table=Table(columns=("model", *_table(s, ()).columns), rows=rows, n_heads=2),
                caption=f"{s.of}Log-perplexity in nats per token, and its difference between the "
                "versions of a text",
            )

    return b.Section(
        id="perplexity",
        nav="Perplexity",
        title="Perplexity",
        lead="Mean −log probability of a text's tokens, in nats, under language models: of the "
        "next token (causal) or of a masked one (pseudo-perplexity; Dai et al. 2024, Fig. 7). "
        "Rewrites often have less. Whether an encoder prefers them for that reason is disputed, "
        "and cannot be read off here. Values beyond the picture are in its outermost bins.",
        blocks=_by_source(sources, blocks),
    )


def _perplexity_picture(s: _Source, found: ModelPerplexity) -> tuple[str, Callable[[str], str]]:
    title = f"{_model_name(found)}, {found.kind}"
    shown = (
        plots.Drawn(name=s.short_base, found=found.human, side="baseline"),
        plots.Drawn(name=s.short_other, found=found.other, side="other"),
    )
    label = "log-perplexity, nats per token"
    return title, partial(plots.histogram_plot, shown=shown, label=label, title=title)


def _perplexity_rows(s: _Source, found: ModelPerplexity) -> Iterator[Row]:
    """Return means, gap, share of pairs and gap at equal length of one model."""
    gap, model, bounded = found.gap, f"{_model_name(found)} ({found.kind})", found.bounded
    left_out = f"; {count(gap.n_left_out)} left out" if gap.n_left_out else ""
    for source, mean in ((s.short_base, gap.mean_human), (s.short_other, gap.mean_other)):
        value = number(mean, digits=2)
        yield model, f"log-perplexity, {source}", value, "", count(gap.n), f"mean{left_out}"
    yield model, *_row(s, "gap", gap.gap, signed=True)
    yield model, *_row(s, "gap at equal length", gap.gap_equal_length, signed=True)
    if bounded is not None:
        gained = "gain from reading the original first"
        yield model, *_row(s, gained, bounded.mean, signed=True)
    lower = "pairs in which it is lower"
    yield model, *_row(s, lower, gap.share_lower, digits=1, unit="%", change=_as_percent)
    if bounded is not None:
        upper, n = number(bounded.upper, digits=2), count(bounded.n)
        yield model, "ε that holds for 95 of 100 pairs", upper, "", n, "quantile"


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


def _assumptions(report: ExplainReport) -> dict[str, dict[str, None]]:
    """Return what intervals assume, and for which numbers."""
    found: dict[str, dict[str, None]] = {}
    for explained in report.sources:
        for what, interval in _intervals(explained):
            for text in interval.assumptions:
                found.setdefault(text, {})[what] = None
    return found


def _caveats(report: ExplainReport) -> tuple[tuple[str, str], ...]:
    """Return (source, what a reader must know), each once, without the warnings."""
    found = []
    for explained in report.sources:
        parted = explained.decomposition
        notes = (*explained.notes, *(() if parted is None else parted.notes))
        told = (f"{what}: {note}" for what, i in _intervals(explained) for note in i.notes)
        found += [(source_name(explained.source), note) for note in (*notes, *told)]
    return tuple(dict.fromkeys(found))


def _intervals(explained: SourceExplanation) -> Iterator[tuple[str, Interval]]:
    """Return every interval with what it is of."""
    named: list[tuple[str, tuple[Interval | None, ...]]] = [
        ("length", (explained.texts.log_length_ratio,))
    ]
    if words := explained.lexical:
        shares = (words.coverage_human, words.coverage_other, words.coverage_gap)
        changes = (words.idf_change_human_only, words.idf_change_other_only)
        named.append(("words of queries", (*shares, words.gap_own_idf, *changes)))
    if values := explained.spectrum:
        named.append(("spectrum", (values.head, values.tail)))
    if g := explained.geometry:
        named += [
            ("probe", (g.probe_accuracy, g.probe_pair_accuracy)),
            ("common share", (g.common_share,)),
            ("cosine of versions", (g.twin_cosine,)),
            ("anisotropy", (g.anisotropy_human, g.anisotropy_other, g.anisotropy_difference)),
        ]
    for model in explained.perplexity:
        gaps = (model.gap.gap, model.gap.share_lower, model.gap.gap_equal_length)
        gained = None if model.bounded is None else model.bounded.mean
        named.append((f"perplexity under {_model_name(model)}", (*gaps, gained)))
    if found := explained.decomposition:
        named += [
            ("score gap", (found.gap,)),
            ("parts of the score gap", (found.remainder, *(f.component for f in found.factors))),
            ("share of variance", (found.r_squared, *(f.variance_share for f in found.factors))),
        ]
    return ((what, i) for what, intervals in named for i in intervals if i is not None)


def _data(report: ExplainReport) -> tuple[tuple[str, Table], ...]:
    c, facts = report.config, summary_table(report.data)

    def most(value: int | None) -> str:
        return "all" if value is None else f"at most {count(value)}"

    pairs = (
        (f"pairs looked at, {source_name(found.source)}",
         f"{count(found.n_pairs)} of {count(found.n_available)}")
        for found in report.sources
    )  # fmt: skip
    settings = (
        ("encoder", report.encoder or "none"),
        ("baseline source", source_name(c.baseline_source)),
        ("pairs", most(c.limit)),
        ("pairs whose perplexity is computed", most(c.perplexity_limit)),
        ("map", f"{_MAPS.get(c.map_method, c.map_method)}, {most(c.map_limit)} pairs"),
        ("spectra: centred", "yes" if c.centre else "no"),
        ("spectra: scaled to length 1", "yes" if c.normalise else "no"),
        ("singular values", most(c.n_values)),
        ("words per list", most(c.terms)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    return (
        ("Data", Table(columns=facts.columns, rows=(*facts.rows, *pairs))),
        ("Settings", Table(columns=("setting", ""), rows=settings)),
        ("Environment", environment_table(report)),
    )


# Names, numbers and rows


def _called(text: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    name = shorten(text, _NAME)
    return f"“{name}”" if any(c in " ,;:" for c in name) else name


def _model_name(found: ModelPerplexity) -> str:
    """Return a language model without its kind, which is told apart from it."""
    return _called(found.model.removeprefix(f"{found.kind}:"))


def _histogram(
    title: str, label: str, found: Histogram, *, digits: int = 2
) -> tuple[str, Callable[[str], str]]:
    shown = (plots.Drawn(name="", found=found, side="even"),)
    picture = partial(plots.histogram_plot, shown=shown, label=label, title=title, digits=digits)
    return title, picture


def _as_percent(value: float) -> float:
    return 100 * value


def _log_as_percent(value: float) -> float:
    """Turn a mean log ratio into percent."""
    return 100 * math.expm1(value)


def _range(low: float, high: float, *, digits: int, null: float = 0.0) -> str:
    """Return the ends of an interval in so many decimals that they lie as the true ones do.

    An interval that leaves out ``null`` must not look as if it held it; two more are the most.
    """
    outside, at = not low <= null <= high, digits
    while at < digits + 2 and outside == (round(low, at) <= null <= round(high, at)):
        at += 1
    return f"[{number(low, digits=at)}, {number(high, digits=at)}]"


def _ends(
    found: Interval,
    *,
    scale: float = 1.0,
    digits: int = 1,
    signed: bool = True,
    unit: str = "",
    null: float = 0.0,
) -> str:
    """Return a value with its interval."""
    ends = _range(scale * found.lower, scale * found.upper, digits=digits, null=null)
    return f"{number(scale * found.estimate, digits=digits, signed=signed)}{unit} {ends}"


def _shared(found: Interval, *, null: float = 0.0) -> str:
    """Return a share in [0, 1] in percent with its interval; ``null`` in percent."""
    return _ends(found, scale=100, signed=False, unit="%", null=null)


def _score_digits(found: Interval) -> int:
    """Return how many decimals tell an interval of scores from 0, between 2 and 6."""
    size = max(found.half_width, abs(found.estimate) / 10)
    return 3 if size <= 0 else min(6, max(2, 1 - math.floor(math.log10(size))))


def _scored(found: Interval, *, digits: int | None = None) -> str:
    """Return a difference of scores with its interval."""
    return _ends(found, digits=_score_digits(found) if digits is None else digits)


def _row(
    s: _Source,
    label: str,
    found: Interval | None,
    *,
    digits: int = 2,
    signed: bool = False,
    unit: str = "",
    change: Callable[[float], float] = float,
) -> Row:
    """Return name, value, ends, n and method; the level too where it is not the report's."""
    if found is None:
        return (label, MISSING, "no interval", MISSING, "")
    ends = _range(change(found.lower), change(found.upper), digits=digits)
    if found.confidence_level != s.report.config.confidence_level:
        ends = f"{ends} ({level(found.confidence_level)})"
    value = f"{number(change(found.estimate), digits=digits, signed=signed)}{unit}"
    return (label, value, ends, count(found.n_labeled), found.method)


def _table(s: _Source, rows: Sequence[Row], *, name: str = "") -> Table:
    ends = f"{level(s.report.config.confidence_level)} interval"
    return Table(columns=(name, "value", ends, "n", "method"), rows=tuple(rows))
