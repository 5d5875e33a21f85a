"""Source bias on a mixed corpus: per-source scores and Relative Δ ([K] §3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, MissingTagsError
from rag_sourcebias.measures.judged import Ties
from rag_sourcebias.measures.ranking import Gain, group_scores
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import SourceScores

__all__ = ["relative_delta", "source_codes_for", "source_scores"]


def relative_delta(mean_baseline: float, mean_other: float) -> float | None:
    """Relative Δ in percent: (M_H − M_L) / ((M_H + M_L) / 2) · 100 ([K] §3.1).

    Parameters
    ----------
    mean_baseline, mean_other : float
        Aggregated measures (means over queries), at least 0, in any common scale.

    Returns
    -------
    float or None
        In [−200, 200], positive when the baseline is ranked higher; None when both are 0.

    Examples
    --------
    >>> round(relative_delta(22.0, 17.0), 1)
    25.6
    """
    if mean_baseline < 0 or mean_other < 0:
        raise DataError(f"measures {mean_baseline} and {mean_other} must be at least 0")
    total = mean_baseline + mean_other
    if total == 0:
        return None
    return 200.0 * ((mean_baseline - mean_other) / total)  # in this order never beyond ±200


def source_codes_for(doc_ids: Sequence[str], tags: TagTable) -> npt.NDArray[np.int64]:
    """Source code of each document, -1 for untagged or unknown ones; shape (len(doc_ids),)."""
    rows = tags.rows_for(doc_ids)
    if not len(tags):
        return rows
    return np.where(rows >= 0, tags.source_codes[rows], -1).astype(np.int64)


def source_scores(
    run: Run,
    qrels: Qrels,
    tags: TagTable,
    *,
    sources: Sequence[str] | None = None,
    measures: Sequence[str] = ("NDCG", "MAP"),
    cutoffs: Sequence[int] = (1, 3, 5),
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> SourceScores:
    """Score a mixed run once per source ([K] §3.1).

    For each target source, documents of other sources count as not relevant but keep their
    ranks, and the ideal ranking holds relevant documents of the target only.

    Parameters
    ----------
    run : Run
        Retrieved once from the union of all sources.
    qrels : Qrels
        Judgments of documents of every source.
    tags : TagTable
        Documents that are not in it, or have no source, keep their ranks and belong to no source.
    sources : sequence of str, optional
        Sources to score; all of the table by default.

    Returns
    -------
    SourceScores

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If a source has no relevant document at all.
    """
    if not tags.sources:
        raise MissingTagsError(
            "no document has a source tag; give tags for at least two sources, "
            'such as "human" and "llm:<model>"'
        )
    names = tuple(sources) if sources is not None else tags.sources
    for name in names:
        if name not in tags.sources:
            raise DataError(f"no document has source {name!r}; sources are {list(tags.sources)}")
    recode = np.full(len(tags.sources) + 1, -1, dtype=np.int64)
    for code, name in enumerate(names):
        recode[tags.sources.index(name)] = code
    groups = recode[source_codes_for(qrels.doc_ids, tags)]
    scores = group_scores(
        run, qrels, groups, names, measures=measures, cutoffs=cutoffs, ties=ties, gain=gain
    )
    judged = scores.n_relevant.sum(axis=1)
    for name, count in zip(names, judged, strict=True):
        if count == 0:
            raise DataError(
                f"source {name!r} has no relevant document in the qrels, so it cannot be scored; "
                "give judgments for its documents (copies take the grade of their original)"
            )
    return scores
