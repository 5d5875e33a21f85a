"""What a reader must know about a paired corpus before trusting an audit of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rag_sourcebias.audit.pairs_criteria import PairRows
from rag_sourcebias.audit.pairs_sole import shared_queries
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.pair_report import NamedIds, SourcePairs

__all__ = ["pair_warnings"]

_FEW_PAIRS = 20
_MUCH = 0.05
_MANY_UNRELATED = 0.2


def pair_warnings(
    dataset: Dataset | None,
    rows: Mapping[str, PairRows],
    parts: Sequence[SourcePairs],
    baseline: str,
) -> Iterator[str]:
    """Yield the warnings, those about the whole corpus first.

    Parameters
    ----------
    dataset : Dataset or None
        Where each corpus was searched alone.
    """
    first = parts[0].criteria
    if first.untagged.n:
        yield (
            f"{_some(first.untagged)} of {first.n_documents} documents have no source: they "
            "belong to no pair"
        )
    if all(part.criteria.labels_copied is None for part in parts):
        yield (
            "there are no judgments: whether labels were copied was not checked, and no corpus "
            "could be searched alone"
        )
    for part in parts:
        yield from _of_source(part, baseline)
        if dataset is None:
            continue
        kept = shared_queries(dataset, rows[part.source])
        if not kept.all():
            yield (
                f"{part.source}: {np.count_nonzero(~kept)} of {len(kept)} judged queries have "
                "no text or no relevant document in one of the two corpora, and are left out "
                "of the comparison of corpora searched alone"
            )


def _of_source(part: SourcePairs, baseline: str) -> Iterator[str]:
    c, name = part.criteria, part.source
    if c.baseline_alone.n or c.other_alone.n:
        alone = [
            f"{_some(found)} of {source}"
            for found, source in ((c.baseline_alone, baseline), (c.other_alone, name))
            if found.n
        ]
        yield (
            f"{name}: documents without a counterpart: {'; '.join(alone)}; they are not checked, "
            "and not searched when each corpus is searched alone"
        )
    if c.repeated.n:
        yield (
            f"{name}: {_some(c.repeated)} share their pair with another document of the same "
            "source; only the first one is checked"
        )
    if 0 < c.n_pairs < _FEW_PAIRS and part.by_chance is None:
        yield (
            f"{name}: {c.n_pairs} pairs are too few to know how alike mismatched pairs are, so "
            "rewrites of another text are not recognised"
        )
    for found, what in (
        (c.labels_missing, "judgments that the counterpart lacks"),
        (c.labels_differ, "judgments with another grade than the counterpart's"),
        (c.labels_added, "judgments of counterparts only"),
    ):
        if found.n:
            yield f"{name}: {what}: {_some(found)} beside {c.n_labels} of {baseline}"
    unrelated = part.summary.flagged.get("unrelated", 0)
    if part.by_chance is not None and unrelated > _MANY_UNRELATED * c.n_pairs:
        yield (
            f"{name}: {unrelated} of {c.n_pairs} rewrites are no more like their original than "
            f"mismatched pairs ({part.by_chance:.2f}): either they are no rewrites of them, or "
            "all texts of this corpus resemble one another; use an encoder, or switch the "
            "threshold chance off"
        )
    if part.broken_share > _MUCH:
        yield (
            f"{name}: {part.summary.n_broken} of {part.summary.n_pairs} pairs are no rewrites of "
            "the whole text: mend or leave them out before an audit"
        )


def _some(found: NamedIds) -> str:
    """Return a number with the first ids."""
    more = ", …" if found.n > len(found.first) else ""
    return f"{found.n} (first {', '.join(found.first)}{more})" if found.first else str(found.n)
