"""What a report on what distinguishes sources says in words: findings, gaps and the headline."""

import math
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rag_sourcebias.core.finding import (
    Interval,
    number,
    short_names,
    shorten,
    source_name,
)
from rag_sourcebias.explain.data import (
    PAIRS_HELD,
    ExplainResults,
    GapDecomposition,
    GapFactor,
    ModelPerplexity,
    SourceExplanation,
    SpectrumComparison,
)
from rag_sourcebias.report import document as d
from rag_sourcebias.report.legacy import called, count, ends_about_zero, join, next_step

ASSOCIATION = "These are associations: none is shown to cause a preference"
#: What may not have been computed, by the field that is then empty.
PARTS = {
    "cosine": "cosine of versions",
    "spectrum": "singular values",
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


class Compared(NamedTuple):
    """One source of a report, with what it and the baseline are called.

    Parameters
    ----------
    base, other : str
        In a sentence.
    short_base, short_other : str
        In tables and pictures.
    """

    report: ExplainResults
    found: SourceExplanation
    base: str
    other: str
    short_base: str
    short_other: str

    @property
    def name(self) -> d.Name:
        """Its source, as a heading writes it."""
        return d.Name(source_name(self.found.source))

    def factor(self, found: GapFactor) -> str:
        """Return a difference that the score gap may go with."""
        for model in self.found.perplexity:
            if found.name == f"perplexity, {model.model}":
                return f"perplexity under {model_name(model)}"
        return _FACTORS.get(found.name, found.name)


def compared(report: ExplainResults) -> tuple[Compared, ...]:
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
        )
        for found in report.sources
    )


# Findings: one place makes each sentence from its numbers, for the headline and for the outputs


class Finding(NamedTuple):
    """One difference between the versions.

    Parameters
    ----------
    topic : str
        What differs, or may: "length".
    text : str
        A whole sentence with the interval.
    brief : str
        The difference in a few words, to stand behind "… versions"; empty where the interval does
        not leave out no difference.
    """

    topic: str
    text: str
    brief: str = ""


def findings(s: Compared) -> list[Finding]:
    """Return what was measured on one source, its scores first."""
    found = []
    if s.found.decomposition:
        found.append(_gap_finding(s, s.found.decomposition))
    found.append(_length_finding(s))
    if s.found.spectrum:
        found.append(_spectrum_finding(s, s.found.spectrum))
    found.extend(_perplexity_finding(s, model) for model in s.found.perplexity)
    return found


def _gap_finding(s: Compared, found: GapDecomposition) -> Finding:
    gap, digits = found.gap, score_digits(found.gap)
    ends = with_ends(gap, digits=digits)
    parts = "; ".join(
        f"{with_ends(factor.component, digits=digits)} with {s.factor(factor)}"
        for factor in found.factors
    )
    rest = f"Of it go {parts}; {with_ends(found.remainder, digits=digits)} remains."
    if not gap.excludes(0):
        text = (
            f"That {s.other} and {s.base} versions get different scores for the same query is not "
            f"established: {ends}. {rest}"
        )
        return Finding("scores", text)
    word = "higher" if gap.estimate > 0 else "lower"
    size = number(abs(gap.estimate), digits=digits)
    return Finding(
        "scores",
        text=f"For the same query {s.other} versions score {word} than {s.base} ones: {ends}. "
        f"{rest}",
        brief=f"score {size} {word} than {s.base} ones for the same query",
    )


def _length_finding(s: Compared) -> Finding:
    found = in_percent(s.found.texts.log_length_ratio)
    ends = with_ends(found, digits=1, unit="%")
    if not found.excludes(0):
        text = (
            f"That {s.other} versions are longer or shorter than {s.base} ones is not established: "
            f"{ends} words."
        )
        return Finding("length", text)
    word = "shorter" if found.estimate < 0 else "longer"
    brief = f"are {number(abs(found.estimate))}% {word}"
    text = f"In words, {s.other} versions {brief} than the {s.base} ones they rewrite ({ends})."
    return Finding("length", text, brief)


def _spectrum_finding(s: Compared, found: SpectrumComparison) -> Finding:
    parts = [("first tenth", "at the head", found.head)]
    if found.tail is not None:
        parts.append(("last half", "in the tail", found.tail))
    ends = ", ".join(f"{name} {with_ends(part, digits=1, unit='%')}" for name, _, part in parts)
    clear = " and ".join(
        f"{number(abs(part.estimate))}% {'larger' if part.estimate > 0 else 'smaller'} {where}"
        for _, where, part in parts
        if part.excludes(0)
    )
    if clear:
        text = f"Singular values of {s.other} vectors are {clear} ({ends}; {prepared(found)})."
    else:
        text = f"That singular values differ is not established ({ends}; {prepared(found)})."
    if found.tail is None:
        text += (
            f" The last half is not judged: {count(found.n)} pairs are too few for "
            f"{count(len(found.human))} values (at least {number(1 / PAIRS_HELD)} pairs per value "
            "are needed)."
        )
    elif found.head.lower > 0 and found.tail.upper < 0:
        text += (
            " They are concentrated in fewer directions, as Dai et al. (2024) found for LLM texts."
        )
    return Finding("spectrum", text, clear and f"have singular values {clear}")


def prepared(found: SpectrumComparison) -> str:
    """Say how vectors were prepared before their spectra were compared."""
    centred = "each source's mean subtracted" if found.centred else "not centred"
    return f"{centred}, {'rows scaled to length 1' if found.normalised else 'lengths as they are'}"


def _perplexity_finding(s: Compared, found: ModelPerplexity) -> Finding:
    """Say how well a model predicts both versions, never as the cause of anything."""
    gap, name = found.gap.gap, model_name(found)
    topic, ends = f"perplexity under {name}", with_ends(gap)
    if found.gap.gap_equal_length is not None:
        ends += f"; at equal length {with_ends(found.gap.gap_equal_length)}"
    if not gap.excludes(0):
        text = (
            f"That {name} predicts {s.other} versions better or worse is not established: {ends} "
            "nats per token."
        )
        return Finding(topic, text)
    word = "more" if gap.estimate < 0 else "less"
    return Finding(
        topic,
        text=f"{name} finds {s.other} versions {word} predictable: log-perplexity differs by "
        f"{ends} nats per token. That is a property of the texts; it does not follow that an "
        "encoder's scores come from it.",
        brief=f"are {word} predictable to {name} "
        f"({number(gap.estimate, digits=2, signed=True)} nats per token)",
    )


def unmeasured(s: Compared) -> list[tuple[str, str]]:
    """Return (parts, why) of all that was not computed, a reason once with all its parts."""
    groups: dict[str, list[str]] = {}
    for part, name in PARTS.items():
        if getattr(s.found, part) in (None, ()):
            why = s.found.missing.get(part, "the report does not say why").rstrip(".")
            groups.setdefault(why, []).append(name)
    return [(join(names), why) for why, names in groups.items()]


# The headline


def headline(report: ExplainResults) -> str:
    """Return what distinguishes the sources, what is open and what is missing."""
    told = [sentence for s in compared(report) for sentence in _source_sentences(s)]
    return " ".join([*told, f"{ASSOCIATION}."])


def _source_sentences(s: Compared) -> Iterator[str]:
    found = findings(s)
    briefs = [one.brief for one in found if one.brief]
    pairs = f"In {count(s.found.n_pairs)} pairs, {s.other} versions"
    if briefs:
        yield f"{pairs} {'; '.join(briefs)}."
    else:
        yield f"{pairs} differ from {s.base} ones in nothing beyond doubt."
    if still_open := [one.topic for one in found if not one.brief]:
        yield f"Not established: {join(still_open)}."
    if missing := unmeasured(s):
        yield f"Not computed: {'; '.join(f'{names} ({why})' for names, why in missing)}."


# The first screen


def first(report: ExplainResults) -> d.First:
    """Return the first screen: what differs beyond doubt, and what comes next."""
    sources = compared(report)
    why, command = _next(report, sources)
    verdict: str = ""
    standing: d.Standing = ""
    if len(sources) == 1:
        verdict, standing = _scores(sources[0])
    return d.First(
        answer=" ".join(map(_plain, sources)),
        verdict=verdict,
        standing=standing,
        doubts=("What goes together need not be the cause.",),
        next=next_step(why, command) if report.inputs else None,
    )


def _next(report: ExplainResults, sources: tuple[Compared, ...]) -> tuple[str, str]:
    """Return what to ask next, and the command: a remedy where there is something to remedy."""
    data, encoder = report.inputs, shlex.quote(report.model)
    if not report.encoder:
        return "With an encoder:", f"rag-sourcebias explain {data} --encoder all-MiniLM-L6-v2"
    for s in sources:
        if s.found.decomposition and s.found.decomposition.gap.excludes(0):
            source = f" --source {shlex.quote(s.found.source)}" if len(sources) > 1 else ""
            return (
                "Try a remedy, before and after:",
                f"rag-sourcebias debias {data} --encoder {encoder}{source} --output parity.json",
            )
    asked = f"rag-sourcebias audit source {data} --retriever dense:{encoder}"
    return "Do their ranks differ?", asked


def _plain(s: Compared) -> str:
    """Say in which of the measured things two sources differ."""
    topics = [found.topic for found in findings(s) if found.brief and found.topic != "scores"]
    pairs = f"In {count(s.found.n_pairs)} pairs"
    if not topics:
        return f"{pairs}, no difference of {s.other} from {s.base} versions is beyond doubt."
    return f"{pairs}, {s.other} and {s.base} versions differ in {join(topics)}."


def _scores(s: Compared) -> tuple[str, d.Standing]:
    """Say which source the encoder scores higher, if either, and its colour."""
    if s.found.decomposition is None:
        return "", ""
    gap, who = s.found.decomposition.gap, called(s.report.encoder)
    if not gap.excludes(0):
        return f"Cannot tell whether {who} scores versions of one source higher.", ""
    if gap.estimate > 0:
        return f"{who} scores {s.other} versions higher than {s.base} ones on average.", "other"
    return f"{who} scores {s.base} versions higher than {s.other} ones on average.", "baseline"


# Names and numbers


def model_name(found: ModelPerplexity) -> str:
    """Return a language model without its kind, which is told apart from it."""
    return called(found.model.removeprefix(f"{found.kind}:"))


def in_percent(found: Interval) -> Interval:
    """Turn a mean log ratio into percent."""
    middle, low, high = (100 * math.expm1(v) for v in (found.estimate, found.lower, found.upper))
    return replace(found, estimate=middle, lower=low, upper=high)


def with_ends(found: Interval, *, digits: int = 2, unit: str = "") -> str:
    """Return a difference with its interval."""
    value = number(found.estimate, digits=digits, signed=True)
    return f"{value}{unit} {ends_about_zero(found, digits=digits)}"


def score_digits(found: Interval) -> int:
    """Return how many decimals tell an interval of scores from 0, between 2 and 6."""
    size = max(found.half_width, abs(found.estimate) / 10)
    return 3 if size <= 0 else min(6, max(2, 1 - math.floor(math.log10(size))))
