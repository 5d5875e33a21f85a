"""Tag-aware parity calibration: documents of one source get other scores, in the same order.

An encoder may give the rewrite of a text a systematically higher score than the text. Scores of
both versions for the same queries say by how much (:mod:`rag_sourcebias.mitigate.parity_fit`), and
scores of documents tagged as that source are then moved by an increasing function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.source import source_codes_for
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.documents import DocTags, TagTable
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import Run

__all__ = ["ParityCalibration", "ParityForm", "ScoreMap"]

ParityForm = Literal["offset", "quantiles"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreMap:
    """Strictly increasing function of a score: linear between knots, of slope 1 beyond them.

    Parameters
    ----------
    knots, values : float64 arrays of shape (k,)
        Both strictly increasing; ``values[j]`` is what ``knots[j]`` becomes. One knot is an offset.
    """

    knots: FloatArray
    values: FloatArray

    def __post_init__(self) -> None:
        for name, found in (("knots", self.knots), ("values", self.values)):
            if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
                raise DataError(f"{name} of a score map are {found}; expected finite numbers")
            if not (np.diff(found) > 0).all():
                raise DataError(f"{name} of a score map must rise strictly, got {found}")
        if len(self.knots) != len(self.values):
            raise DataError(f"score map of {len(self.knots)} knots and {len(self.values)} values")

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the new scores, of the same shape."""
        beyond = scores - np.clip(scores, self.knots[0], self.knots[-1])
        moved: FloatArray = np.interp(scores, self.knots, self.values) + beyond
        return moved

    def inverse(self) -> ScoreMap:
        """Return the map that takes new scores back to the old ones."""
        return ScoreMap(knots=self.values, values=self.knots)


@dataclass(frozen=True, kw_only=True, eq=False)
class ParityCalibration:
    """A fitted calibration; a :class:`~rag_sourcebias.protocols.Rescorer`.

    Documents of the baseline, of a source that was not fitted, and of unknown source keep their
    scores.

    Parameters
    ----------
    encoder : str
        Fingerprint of the encoder (or reranker) whose scores were fitted; no other's scores may
        be calibrated with it.
    baseline : str
    form : {"offset", "quantiles"}
    sources : tuple of str, length S
    maps : tuple of ScoreMap, length S
    gaps : tuple of Interval, length S
        Mean of baseline score minus source score over the twins, clustered by query.
    n_pairs : tuple of int, length S
    """

    encoder: str
    baseline: str
    form: ParityForm
    sources: tuple[str, ...]
    maps: tuple[ScoreMap, ...]
    gaps: tuple[Interval, ...]
    n_pairs: tuple[int, ...]

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],  # noqa: ARG002
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,
    ) -> list[float] | None:
        """Return calibrated scores; None when no document is of a fitted source.

        Raises
        ------
        DataError
            If the retriever gave no scores.
        """
        sources = [tag.source for tag in tags]
        if not any(source in self.sources for source in sources):
            return None
        if scores is None:
            raise DataError(
                f"parity calibration needs the retriever's scores of the {len(doc_ids)} documents, "
                "there are none; keep them with InstrumentedRetriever(score_key=…)"
            )
        moved = self.apply(np.asarray(scores, dtype=np.float64), sources)
        return [float(score) for score in moved]

    def apply(self, scores: FloatArray, sources: Sequence[str | None]) -> FloatArray:
        """Return calibrated scores of documents of the given sources; shape (n,)."""
        return self._moved(scores, sources, self.maps)

    def undo(self, scores: FloatArray, sources: Sequence[str | None]) -> FloatArray:
        """Return the scores that :meth:`apply` was given, to rounding; shape (n,)."""
        return self._moved(scores, sources, tuple(found.inverse() for found in self.maps))

    def apply_to(self, run: Run, tags: TagTable) -> Run:
        """Return the run in the order of its calibrated scores; ties keep their order.

        Documents below the depth of the run cannot come up: retrieve deeper than is shown.
        """
        if run.scores is None:
            raise DataError(f"run {run.name!r} has no scores; parity calibration needs them")
        codes = source_codes_for(run.doc_ids, tags)[run.doc_codes]
        scores = run.scores.astype(np.float64)
        for source, found in zip(self.sources, self.maps, strict=True):
            if source in tags.sources:
                rows = codes == tags.sources.index(source)
                scores[rows] = found(scores[rows])
        return Run.from_arrays(
            query_ids=run.query_ids,
            query_codes=run.query_codes,
            doc_codes=run.doc_codes,
            doc_ids=run.doc_ids,
            scores=scores,
            name=run.name,
            sort_by_score=True,
        )

    def _moved(
        self, scores: FloatArray, sources: Sequence[str | None], maps: tuple[ScoreMap, ...]
    ) -> FloatArray:
        if len(scores) != len(sources):
            raise DataError(f"{len(scores)} scores but {len(sources)} sources; need as many")
        moved = np.array(scores, dtype=np.float64)
        for source, found in zip(self.sources, maps, strict=True):
            rows = np.fromiter((s == source for s in sources), dtype=bool, count=len(sources))
            moved[rows] = found(moved[rows])
        return moved
