"""Statistics of groups of texts: length and similarity to references, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import InsufficientDataError, as_generator
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.samples import t_interval
from rag_sourcebias.measure.texts import (
    TEXT_STATISTICS,
    References,
    has_synonyms,
    text_scores,
    usable_references,
)

Texts = Sequence[str | None]


#: Probabilities of :attr:`TextStatistic.quantiles`.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, kw_only=True)
class TextStatistic:
    """One statistic of the texts of one group ([W] Fig. 1, 4, 6; [K] Fig. 3).

    Parameters
    ----------
    group : str
        A style, a source, or an answering system.
    name : {"words", "BLEU", "METEOR", "ROUGE-L", "Jaccard", "overlap"}
        All but words compare a text with the original of which it is a version (or the reference
        answer), in [0, 1].
    n : int
        Texts.
    mean : Interval or None
        None where an interval cannot be computed (too few texts, or all alike).
    average : float
    quantiles : tuple of float
        At .05, .25, .5, .75 and .95.
    """

    group: str
    name: str
    n: int
    mean: Interval | None
    average: float
    quantiles: tuple[float, ...]


def text_statistics(
    texts: Mapping[str, Texts],
    references: Mapping[str, References] | References | None,
    *,
    original: str | None = None,
    statistics: Sequence[str] = TEXT_STATISTICS,
    confidence_level: float = 0.95,
    sample: int = 2_000,
    rng: np.random.Generator | int = 0,
) -> tuple[TextStatistic, ...]:
    """Summarise groups of texts: their length, and what they keep of their references.

    Parameters
    ----------
    texts : mapping of group to sequence of (str or None)
        None where a text is missing; such texts are left out and counted in a note.
    references : mapping of group to sequence, sequence, or None
        What the texts of a group are compared with, row by row: a text, or several of which the
        most similar counts. One sequence serves all groups. A group that a mapping leaves out
        gets words only.
    original : str, optional
        The group that is itself the reference: it gets words only.
    statistics : sequence of str
        Out of ``"words"``, ``"BLEU"``, ``"METEOR"``, ``"ROUGE-L"``, ``"Jaccard"``, ``"overlap"``,
        which is the default.
    sample : int
        Similarities of a larger group are measured on this many of its texts, drawn at random
        (the same rows in groups of the same length), and a note says so. Words count every text.
    rng : numpy.random.Generator or int

    Returns
    -------
    tuple of TextStatistic
        By group, then by statistic. ``mean`` is Student's t over texts; its ``notes`` hold what a
        reader must know. A statistic that no text of the group has is left out.

    Raises
    ------
    DataError
        If a name is unknown, or a group and its references differ in length.
    MissingExtraError
        If the library of a statistic is not installed.

    Examples
    --------
    >>> found = text_statistics(
    ...     {"human": ["the cat sat", "a dog"], "llm": ["the cat", "some dog ran"]},
    ...     ["the cat sat", "a dog"],
    ...     original="human",
    ...     statistics=["words", "overlap"],
    ... )
    >>> [(s.group, s.name, round(s.average, 3)) for s in found]
    [('human', 'words', 2.5), ('llm', 'words', 2.5), ('llm', 'overlap', 0.583)]
    """
    rows = _Sample(sample, rng)
    return tuple(
        statistic
        for group, column in texts.items()
        for statistic in _of_group(
            group,
            column,
            None if group == original else references,
            statistics,
            confidence_level,
            rows,
        )
    )


class _Sample:
    """The rows on which similarities are measured, the same for groups of the same length."""

    def __init__(self, size: int, rng: np.random.Generator | int) -> None:
        self.size = size
        self._rng = as_generator(rng)
        self._orders: dict[int, npt.NDArray[np.int64]] = {}

    def of(
        self, texts: Texts, references: Sequence[tuple[str, ...]]
    ) -> tuple[list[int], list[Finding]]:
        """Return at most ``size`` rows that have text and reference, and notes on the others."""
        n = len(texts)
        if n not in self._orders:
            self._orders[n] = self._rng.permutation(n)
        usable = [i for i in self._orders[n] if texts[i] is not None and references[i]]
        lonely = sum(text is not None for text in texts) - len(usable)
        notes = [InferCode.NO_REFERENCE(n=lonely, of=n)] if lonely else []
        if len(usable) > self.size:
            notes.append(InferCode.TEXTS_DRAWN(n=self.size, of=len(usable)))
        return sorted(usable[: self.size]), notes


def _of_group(  # noqa: PLR0917 - one caller
    group: str,
    texts: Texts,
    references: Mapping[str, References] | References | None,
    statistics: Sequence[str],
    level: float,
    rows: _Sample,
) -> Iterator[TextStatistic]:
    if isinstance(references, Mapping):
        references = references.get(group)
    missing = sum(text is None for text in texts)
    counted = [InferCode.TEXTS_MISSING(n=missing, of=len(texts))] if missing else []
    compared: Texts = ()
    wanted: list[tuple[str, ...]] = []
    about_references: list[Finding] = []
    if references is not None and any(name != "words" for name in statistics):
        wanted = [usable_references(reference) for reference in references]
        chosen, about_references = rows.of(texts, wanted)
        compared, wanted = [texts[i] for i in chosen], [wanted[i] for i in chosen]
    for name in statistics:
        if name == "words":
            values, notes = text_scores(name, texts), counted
        else:
            values, notes = text_scores(name, compared, wanted), counted + about_references
            if name == "METEOR" and len(values):
                meteor = InferCode.METEOR_SYNONYMS if has_synonyms() else InferCode.METEOR_STEMS
                notes = [*notes, meteor()]
        values = values[~np.isnan(values)]
        if len(values):
            yield TextStatistic(
                group=group,
                name=name,
                n=len(values),
                mean=_mean(values, level, notes, top=None if name == "words" else 1.0),
                average=float(values.mean()),
                quantiles=tuple(float(q) for q in np.quantile(values, QUANTILES)),
            )


def _mean(
    values: FloatArray, level: float, notes: Sequence[Finding], *, top: float | None
) -> Interval | None:
    try:
        found = t_interval(values, confidence_level=level)
    except InsufficientDataError:
        return None
    return replace(
        found,
        lower=max(found.lower, 0.0),
        upper=found.upper if top is None else min(found.upper, top),
        method=InferCode.T(),
        assumptions=(InferCode.TEXTS_SAMPLED(), InferCode.MEAN_NORMAL()),
        notes=tuple(notes),
    )
