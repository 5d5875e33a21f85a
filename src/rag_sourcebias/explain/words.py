"""What a report on what distinguishes sources says in words: findings, gaps and the headline."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rag_sourcebias.core.values import Interval
from rag_sourcebias.explain.data import (
    PAIRS_HELD,
    ExplainReport,
    GapDecomposition,
    GapFactor,
    LexicalShift,
    ModelPerplexity,
    SourceExplanation,
    SourceGeometry,
    SpectrumComparison,
)
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.blocks import (
    MISSING,
    count,
    join,
    number,
    share,
    short_names,
    shorten,
    source_name,
)

ASSOCIATION = "These are associations: none is shown to cause a preference"
_PERPLEXITY = "; a lower perplexity is a property of rewrites, not an explanation"
#: What may not have been computed, by the field that is then empty.
PARTS = {
    "lexical": "words of queries",
    "cosine": "cosine of versions",
    "spectrum": "singular values",
    "geometry": "geometry of the vectors",
    "map": "map",
    "perplexity": "perplexity",
    "decomposition": "parts of the score gap",
}
#: Differences that the score gap may go with, as they are called on the page.
_FACTORS = {
    "log length ratio": "length",
    "query words": "words of queries",
    "source direction": "position along the source direction",
}
_NAME = 60  # characters in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
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
        """Its source, as a heading writes it."""
        return b.Name(source_name(self.found.source))

    def factor(self, found: GapFactor) -> str:
        """Return a difference that the score gap may go with."""
        models = {f"perplexity, {model.model}": model for model in self.found.perplexity}
        if found.name in models:
            return f"perplexity under {model_name(models[found.name])}"
        return _FACTORS.get(found.name, found.name)

    def part(self, found: GapFactor, *, width: int | None = None) -> str:
        """Return the same with a mark where its part of the gap is extrapolated."""
        name, mark = self.factor(found), " (extrapolated)" * found.extrapolated
        return f"{name if width is None else shorten(name, width - len(mark))}{mark}"


def compared(report: ExplainReport) -> tuple[Compared, ...]:
    """Return every source of a report with its names."""
    baseline = report.config.baseline_source
    names = short_names((baseline, *(found.source for found in report.sources)))
    return tuple(
        Compared(
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
    told : str
        A whole sentence with the interval, where it is shown.
    open : str
        What is not established, where it is not shown, with the interval.
    brief : str
        The difference in a few words, to stand behind the source; only where the headline uses it.
    """

    topic: str
    shown: bool
    told: str
    open: str
    brief: str

    @property
    def text(self) -> str:
        return self.told if self.shown else self.open


def findings(s: Compared) -> tuple[list[_Finding], list[_Finding]]:
    """Return what was measured on one source: of its scores, if anything, and of all else."""
    gap, words, values, lies = (
        s.found.decomposition, s.found.lexical, s.found.spectrum, s.found.geometry
    )  # fmt: skip
    alike = lies.anisotropy_difference if lies else None
    return [_gap_finding(s, gap)] if gap else [], [
        _length_finding(s),
        *([_lexical_finding(s, words)] if words else ()),
        *([_spectrum_finding(s, values)] if values else ()),
        *([_probe_finding(s, lies)] if lies else ()),
        *([_anisotropy_finding(s, alike)] if alike else ()),
        *(_perplexity_finding(s, model) for model in s.found.perplexity),
    ]


def _gap_finding(s: Compared, found: GapDecomposition) -> _Finding:
    gap, digits, parts = found.gap, score_digits(found.gap), _parts_sentence(s, found)
    ends, size = with_ends(gap, digits=digits), number(abs(gap.estimate), digits=digits)
    shown, word = gap.excludes(0), "higher" if gap.estimate > 0 else "lower"
    return _Finding(
        "scores",
        shown,
        f"For the same query {s.other} versions score {word} than {s.base} ones by {size} on "
        f"average ({ends}). {parts}",
        f"That {s.other} and {s.base} versions get different scores for the same query is not "
        f"established: {ends} on average. {parts}",
        f"{size} {word}" if shown else ends,
    )


def _parts_sentence(s: Compared, found: GapDecomposition) -> str:
    """Say which parts of the gap go with which difference, and what remains."""
    digits = score_digits(found.gap)
    clear = [factor for factor in found.factors if factor.component.excludes(0)]
    names = [s.factor(f) for f in found.factors if not f.component.excludes(0)]
    left = "remains and may be 0"
    if found.remainder.excludes(0):
        left = "goes with none of them" if clear else "remains"
    rest = f"; {with_ends(found.remainder, digits=digits)} {left}."
    if not clear:
        return f"No part of it is shown to go with a measured difference{rest}"
    parts = [
        f"{with_ends(factor.component, digits=digits)} "
        f"{'with' if at else 'goes with'} {s.part(factor)}"
        for at, factor in enumerate(clear)
    ]
    among = " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    tail = f"; no part is shown to go with {among}" if names else ""
    return f"Of it {join(parts)}{tail}{rest}"


def _length_finding(s: Compared) -> _Finding:
    found = in_percent(s.found.texts.log_length_ratio)
    word = "shorter" if found.estimate < 0 else "longer"
    brief = f"are {number(abs(found.estimate))}% {word}"
    # A name that users gave is left as it is.
    who = s.other.capitalize() if s.found.source in ("", "human") else s.other
    return _Finding(
        "length",
        found.excludes(0),
        f"{who} versions {brief} than the {s.base} ones they rewrite (in words, "
        f"{with_ends(found, unit='%')}).",
        f"That {s.other} versions are longer or shorter than {s.base} ones is not established: "
        f"{with_ends(found, unit='% words')}.",
        brief,
    )


def _lexical_finding(s: Compared, found: LexicalShift) -> _Finding:
    gap, ends = found.coverage_gap, with_ends(found.coverage_gap, scale=100, unit=" points")
    word, points = "more" if gap.estimate > 0 else "less", number(100 * abs(gap.estimate))
    return _Finding(
        "words of queries",
        gap.excludes(0),
        f"Relevant {s.other} versions hold {word} of a query's words than {s.base} ones: {ends} of "
        f"the query's idf weight; with idf of each source's own corpus "
        f"{with_ends(found.gap_own_idf, scale=100)}.",
        f"That {s.other} versions hold more or less of a query's words than {s.base} ones is "
        f"not established: {ends} of the query's idf weight.",
        f"hold {word} of the words of queries ({points} points of idf weight)",
    )


def _spectrum_finding(s: Compared, found: SpectrumComparison) -> _Finding:
    parts = [(found.head, "first tenth", "at the head")]
    rest = shape = (
        f" The last half is not judged: {count(found.n)} pairs are too few for "
        f"{count(len(found.human))} values, as resamples repeat pairs (at least "
        f"{number(1 / PAIRS_HELD)} pairs per value are needed)."
    )
    if found.tail is not None:
        parts.append((found.tail, "last half", "in the tail"))
        rest, shape = "", f" {_shape(found.head, found.tail)}"
    ends = ", ".join(f"{name} {with_ends(part, unit='%')}" for part, name, _ in parts)
    clear = " and ".join(
        f"{number(abs(part.estimate))}% {'larger' if part.estimate > 0 else 'smaller'} {where}"
        for part, _, where in parts
        if part.excludes(0)
    )
    return _Finding(
        "spectrum",
        bool(clear),
        f"Singular values of {s.other} vectors are {clear} ({ends}; {prepared(found)}).{shape}",
        f"That the singular values of {s.other} and {s.base} vectors differ is not established "
        f"({ends}; {prepared(found)}).{rest}",
        f"have singular values {clear}",
    )


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


def prepared(found: SpectrumComparison) -> str:
    """Say how vectors were prepared before their spectra were compared."""
    centred = "each source's mean subtracted" if found.centred else "not centred"
    return f"{centred}, {'rows scaled to length 1' if found.normalised else 'lengths as they are'}"


def _probe_finding(s: Compared, found: SourceGeometry) -> _Finding:
    accuracy = found.probe_accuracy
    claim = f"ectors show whether a text is {s.other} or {s.base}"
    ends = f"{in_share(accuracy, null=50)} of documents it has not seen, chance 50%"
    common = "" if found.common_share is None else (
        f"; of the squared distance between versions, {in_share(found.common_share)} is a shift "
        "that all pairs have in common"
    )  # fmt: skip
    return _Finding(
        "position",
        accuracy.lower > 0.5,
        f"V{claim}: a linear probe is right on {ends}{common}.",
        f"That v{claim} is not established: a linear probe is right on {ends}.",
        f"are told apart by a linear probe of vectors ({share(accuracy.estimate)}, chance 50%)",
    )


def _anisotropy_finding(s: Compared, gap: Interval) -> _Finding:
    word, mean = "more" if gap.estimate > 0 else "less", with_ends(gap, digits=3)
    return _Finding(
        "anisotropy",
        gap.excludes(0),
        f"Different {s.other} documents are {word} alike than {s.base} ones: mean cosine {mean}.",
        f"That different {s.other} documents are more or less alike than {s.base} ones is not "
        f"established: mean cosine {mean}.",
        f"are {word} alike among themselves (mean cosine "
        f"{number(gap.estimate, digits=3, signed=True)})",
    )


def _perplexity_finding(s: Compared, found: ModelPerplexity) -> _Finding:
    """Never as the cause of anything."""
    gap, equal, name = found.gap.gap, found.gap.gap_equal_length, model_name(found)
    word, size = ("more", "lower") if gap.estimate < 0 else ("less", "higher")
    ends, tail = with_ends(gap, digits=2), ""
    if equal is not None:
        told = with_ends(equal, digits=2)
        told = f"it is {told}" if equal.excludes(0) else f"no difference is established ({told})"
        tail = f"; at equal length {told}"
    return _Finding(
        f"perplexity under {name}",
        gap.excludes(0),
        f"{name} finds {s.other} versions {word} predictable: log-perplexity is {size} by "
        f"{number(abs(gap.estimate), digits=2)} nats per token ({ends}), lower in "
        f"{in_share(found.gap.share_lower, null=50)} of pairs{tail}. That is a property of the "
        "texts; it does not follow that an encoder's scores come from it.",
        f"That {name} predicts {s.other} versions better or worse than {s.base} ones is not "
        f"established: {ends} nats per token.",
        f"are {word} predictable to {name} "
        f"({number(gap.estimate, digits=2, signed=True)} nats per token)",
    )


def missing_parts(s: Compared) -> dict[str, str]:
    """Return why each part that is not there was not computed, without a full stop."""
    return {
        part: _reason(s, part).rstrip(".") for part in PARTS if getattr(s.found, part) in (None, ())
    }


def _reason(s: Compared, part: str) -> str:
    # A report of version 0.1 has reasons among its notes, and does not say which is for what.
    rules = (
        (part not in ("lexical", "perplexity") and not s.report.encoder, "no encoder was given"),
        (
            part in ("lexical", "decomposition") and not s.report.data.n_queries,
            "there are no judged queries with text",
        ),
        (bool(s.found.notes), "the caveats may say why"),
        (part == "perplexity", "no language model was given"),
        (True, "the report does not say why"),
    )
    return s.found.missing.get(part) or next(why for applies, why in rules if applies)


def unmeasured(s: Compared) -> list[tuple[str, str]]:
    """Return (parts, why) of all that was not computed, a reason once with all its parts."""
    missing = missing_parts(s)
    return [
        (join([PARTS[part] for part, one in missing.items() if one == why]), why)
        for why in dict.fromkeys(missing.values())
    ]


# The headline


def headline(report: ExplainReport) -> str:
    """Return what distinguishes the sources, what is open and what is missing."""
    if not report.sources:
        return "No source was compared."
    sources = compared(report)
    lower = any(p.gap.gap.upper < 0 for found in report.sources for p in found.perplexity)
    return " ".join(
        [
            *(_one(sources[0]) if len(sources) == 1 else map(_short, sources)),
            f"{ASSOCIATION}{_PERPLEXITY * lower}.",
        ]
    )


def _one(s: Compared) -> Iterator[str]:
    scores, others = findings(s)
    name = _called(s.report.encoder) if s.report.encoder else "no encoder"
    for found in scores:
        yield (
            f"{name} scores {s.other} versions {found.brief} than {s.base} ones."
            if found.shown
            else f"That {name} scores {s.other} and {s.base} versions differently is not "
            f"established ({found.brief})."
        )
    who = "the former" if scores else f"{s.other} versions, beside {s.base} ones,"
    which = "the two" if scores else f"{s.other} from {s.base} versions"
    told = f"nothing that was measured distinguishes {which} beyond doubt"
    if briefs := [found.brief for found in others if found.shown]:
        told = f"{who} {'; '.join([*briefs[:-1], 'and ' * (len(briefs) > 1) + briefs[-1]])}"
    yield f"In {count(s.found.n_pairs)} pairs {told}."
    if still_open := [found.topic for found in others if not found.shown]:
        yield f"Not established: {join(still_open)}."
    if missing := unmeasured(s):
        yield f"Not computed: {'; '.join(f'{names} ({why})' for names, why in missing)}."


def _short(s: Compared) -> str:
    scores, others = findings(s)
    what = join([found.topic for found in others if found.shown])
    still_open = [found.topic for found in (*scores, *others) if not found.shown]
    missing = [names for names, _ in unmeasured(s)]
    apart = (
        f"score {scores[0].brief} than {s.base} ones and differ from them"
        if scores and scores[0].shown
        else f"differ from {s.base} ones"
    )
    return (
        f"{s.other} versions {apart} in {what or 'nothing that is established'}"
        f"{'; not established: ' * bool(still_open)}{join(still_open)}"
        f"{'; not computed: ' * bool(missing)}{join(missing)}."
    )


# The first screen


def first(report: ExplainReport) -> b.First:
    """Return the first screen: what differs beyond doubt, what does not, and what comes next."""
    data = b.data_argument(report.data.name)
    check = f"rag-sourcebias check-pairs {data}"
    if not report.sources:
        return b.First(answer="No source was compared.", why="First:", command=check)
    sources = compared(report)
    rows = tuple(_difference_rows(sources))
    why, command = _next(report, data, sources)
    return b.First(
        answer=" ".join(map(_plain_length, sources)) if len(sources) > 1 else _plain(sources[0]),
        verdict=_plain_scores(sources[0]) if len(sources) == 1 else "",
        standing=_leaning(sources[0]) if len(sources) == 1 else "",
        doubts=("What goes together need not be the cause.",),
        caption="What differs" if rows else "",
        rows=rows,
        why=why,
        command=command,
    )


def _next(report: ExplainReport, data: str, sources: tuple[Compared, ...]) -> tuple[str, str]:
    """Return what to ask next, and the command: a remedy where there is something to remedy."""
    if not report.encoder:
        return "With an encoder:", f"rag-sourcebias explain {data} --encoder all-MiniLM-L6-v2"
    encoder = b.data_argument(report.encoder)
    apart = [s for s in sources if any(found.shown for found in findings(s)[0])]
    if not apart:
        asked = f"rag-sourcebias audit source {data} --retriever dense:{encoder}"
        return "Do their ranks differ?", asked
    source = f" --source {apart[0].found.source}" if len(sources) > 1 else ""
    remedy = f"rag-sourcebias debias {data} --encoder {encoder}{source} --output parity.json"
    return "Try a remedy, before and after:", remedy


def _plain_length(s: Compared) -> str:
    """Return by how much one source's versions are longer or shorter."""
    found = in_percent(s.found.texts.log_length_ratio)
    who = s.other[:1].upper() + s.other[1:]
    if not found.excludes(0):
        return f"{who} versions may be longer or shorter than {s.base} ones, or as long."
    word = "shorter" if found.estimate < 0 else "longer"
    return f"{who} versions are {number(abs(found.estimate), digits=0)}% {word} than {s.base} ones."


def _plain(s: Compared) -> str:
    """Say in how many of the measured things the two sources differ."""
    _, others = findings(s)
    clear = [found for found in others if found.shown]
    pairs = f"In {count(s.found.n_pairs)} pairs"
    if not clear:
        return f"{pairs}, no difference of {s.other} from {s.base} versions is beyond doubt."
    names = join([_plain_topic(found.topic) for found in clear])
    return f"{pairs}, {s.other} and {s.base} versions differ in {names}."


def _plain_topic(topic: str) -> str:
    """Return a topic of findings in words that need no statistics."""
    model = topic.removeprefix("perplexity under ")
    return _PLAIN.get(topic, topic) if model == topic else f"how well {model} predicts them"


_PLAIN = {
    "words of queries": "how many words of a query they hold",
    "spectrum": "how varied their vectors are",
    "position": "where their vectors lie",
    "anisotropy": "how alike their vectors are",
}


def _plain_scores(s: Compared) -> str:
    """Say which source the encoder scores higher, or that this is open."""
    if (found := s.found.decomposition) is None:
        return ""
    who = _called(s.report.encoder or "the encoder")
    if not found.gap.excludes(0):
        return f"Cannot tell whether {who} scores versions of one source higher."
    winner, loser = (s.other, s.base) if found.gap.estimate > 0 else (s.base, s.other)
    return f"{who} scores {winner} versions higher than {loser} ones on average."


def _leaning(s: Compared) -> str:
    gap = s.found.decomposition.gap if s.found.decomposition else None
    if gap is None or not gap.excludes(0):
        return ""
    return "other" if gap.estimate > 0 else "baseline"


def _difference_rows(sources: tuple[Compared, ...]) -> Iterator[b.FirstRow]:
    """Return of each source how many of its measured differences are established."""
    for s in sources:
        _, others = findings(s)
        clear = sum(found.shown for found in others)
        missing = len(unmeasured(s))
        yield b.FirstRow(
            name="" if len(sources) == 1 else s.name,
            parts=(
                ("established", clear, "baseline"),
                ("open", len(others) - clear, "other"),
                ("not measured", missing, "even"),
            ),
            text="" if len(sources) == 1 else f"{clear} / {len(others) - clear} / {missing}",
        )


# Names and numbers


def _called(text: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    name = shorten(text, _NAME)
    return f"“{name}”" if any(c in " ,;:" for c in name) else name


def model_name(found: ModelPerplexity) -> str:
    """Return a language model without its kind, which is told apart from it."""
    return _called(found.model.removeprefix(f"{found.kind}:"))


def in_percent(found: Interval) -> Interval:
    """Turn a mean log ratio into percent."""
    middle, low, high = (100 * math.expm1(v) for v in (found.estimate, found.lower, found.upper))
    return replace(found, estimate=middle, lower=low, upper=high)


def ends_of(low: float, high: float, *, digits: int, null: float = 0.0) -> str:
    """Return the ends of an interval in so many decimals that they lie as the true ones do.

    An interval that leaves out ``null`` must not look as if it held it; two more are the most.
    """
    held, finest = low <= null <= high, digits + 2
    at = next(
        (at for at in range(digits, finest) if held == (round(low, at) <= null <= round(high, at))),
        finest,
    )
    return f"[{number(low, digits=at)}, {number(high, digits=at)}]"


def with_ends(
    found: Interval,
    *,
    scale: float = 1.0,
    digits: int = 1,
    signed: bool = True,
    unit: str = "",
    null: float = 0.0,
) -> str:
    """Return a value with its interval."""
    ends = ends_of(scale * found.lower, scale * found.upper, digits=digits, null=null)
    return f"{number(scale * found.estimate, digits=digits, signed=signed)}{unit} {ends}"


def in_share(found: Interval | None, *, null: float = 0.0) -> str:
    """Return a share in [0, 1] in percent with its interval; ``null`` in percent."""
    return with_ends(found, scale=100, signed=False, unit="%", null=null) if found else MISSING


def score_digits(found: Interval) -> int:
    """Return how many decimals tell an interval of scores from 0, between 2 and 6."""
    size = max(found.half_width, abs(found.estimate) / 10)
    return 3 if size <= 0 else min(6, max(2, 1 - math.floor(math.log10(size))))
