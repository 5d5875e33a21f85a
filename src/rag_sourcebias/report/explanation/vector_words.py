"""Sentences about the vectors of a source: spectrum, probe, anisotropy."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import percent_ends, share_ends, shown_ends
from rag_sourcebias.report.format import count, number, share
from rag_sourcebias.types.explain import PAIRS_HELD, SourceGeometry, SpectrumComparison
from rag_sourcebias.types.intervals import Interval

__all__ = ["anisotropy_finding", "prepared", "probe_finding", "spectrum_finding"]

Sentence = tuple[str, bool, str, str]
_CHANCE = 0.5


def prepared(found: SpectrumComparison) -> str:
    """Return how vectors were prepared before their spectra were compared."""
    centred = "each source's mean subtracted" if found.centred else "not centred"
    scaled = "rows scaled to length 1" if found.normalised else "lengths as they are"
    return f"{centred}, {scaled}"


def spectrum_finding(found: SpectrumComparison, *, other: str, base: str) -> Sentence:
    """Return (topic, whether a difference is established, a few words, a sentence)."""
    parts = [(found.head, "first tenth", "at the head")]
    if found.tail is not None:
        parts.append((found.tail, "last half", "in the tail"))
    ends = ", ".join(f"{name} {percent_ends(part)}" for part, name, _ in parts)
    ends = f"{ends}; {prepared(found)}"
    shown = [f"{_size(part)} {where}" for part, _, where in parts if part.excludes(0)]
    rest = f" {_too_few(found)}" if found.tail is None else ""
    if not shown:
        return (
            "spectrum",
            False,
            "singular values alike within their intervals",
            f"That the singular values of {other} and {base} vectors differ is not established "
            f"({ends}).{rest}",
        )
    text = f"Singular values of {other} vectors are {' and '.join(shown)}"
    brief = f"have singular values {' and '.join(shown)}"
    shape = "" if found.tail is None else f" {_shape(found.head, found.tail)}"
    return "spectrum", True, brief, f"{text} ({ends}).{rest}{shape}"


def _too_few(found: SpectrumComparison) -> str:
    return (
        f"The last half is not judged: {count(found.n)} pairs are too few for "
        f"{count(len(found.human))} values, as resamples repeat pairs (at least "
        f"{number(1 / PAIRS_HELD)} pairs per value are needed)."
    )


def _size(part: Interval) -> str:
    word = "larger" if part.estimate > 0 else "smaller"
    return f"{number(abs(part.estimate))}% {word}"


def _shape(head: Interval, tail: Interval) -> str:
    """Compare with [K] Fig. 6: more at the head, less in the tail."""
    signs = {
        (float(part.estimate > 0) - 0.5) * sign if part.excludes(0) else 0.0
        for part, sign in ((head, 1), (tail, -1))
    }
    if signs == {0.5}:
        return (
            "They are concentrated in fewer directions, the shape that Dai et al. (2024) found "
            "for LLM texts."
        )
    shape = "the shape that Dai et al. (2024) found for LLM texts, more at the head and less in"
    if signs == {0.5, 0.0}:
        return f"That is one half of {shape} the tail; the other is not established."
    return f"That is not {shape} the tail."


def probe_finding(found: SourceGeometry, *, other: str, base: str) -> Sentence:
    """Return the same of a linear probe that tells the sources apart."""
    accuracy = found.probe_accuracy
    ends = f"{share_ends(accuracy, null=50)} of documents it has not seen, chance 50%"
    if accuracy.lower <= _CHANCE:
        return (
            "position",
            False,
            f"a probe is right on {share(accuracy.estimate)}, chance 50%",
            f"That vectors show whether a text is {other} or {base} is not established: a linear "
            f"probe is right on {ends}.",
        )
    text = f"Vectors show whether a text is {other} or {base}: a linear probe is right on {ends}"
    if found.common_share is not None:
        text += (
            f"; of the squared distance between versions, {share_ends(found.common_share)} is "
            "a shift that all pairs have in common"
        )
    return (
        "position",
        True,
        f"are told apart by a linear probe of vectors ({share(accuracy.estimate)}, chance 50%)",
        f"{text}.",
    )


def anisotropy_finding(found: SourceGeometry, *, other: str, base: str) -> Sentence:
    """Return the same of how alike the vectors of different documents are."""
    gap = found.anisotropy_difference
    if gap is None:
        raise ValueError("anisotropy has no interval")
    ends = shown_ends(gap, digits=3)
    if not gap.excludes(0):
        return (
            "anisotropy",
            False,
            ends,
            f"That different {other} documents are more or less alike than {base} ones is not "
            f"established: mean cosine {ends}.",
        )
    word = "more" if gap.estimate > 0 else "less"
    return (
        "anisotropy",
        True,
        f"are {word} alike among themselves (mean cosine "
        f"{number(gap.estimate, digits=3, signed=True)})",
        f"Different {other} documents are {word} alike than {base} ones: mean cosine {ends}.",
    )
