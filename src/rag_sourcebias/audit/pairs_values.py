"""What a report keeps of the checks of one source: counts, histograms, the worst pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.audit.pairs_criteria import writable
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.histograms import Histogram
from rag_sourcebias.types.pair_checks import PAIR_FLAGS, PairChecks
from rag_sourcebias.types.pair_report import CheckedPair, PairCheckConfig, PairCriteria, SourcePairs

__all__ = ["source_pairs"]

_VALUES = (
    "length_ratio", "jaccard", "overlap", "cosine", "copied", "repeated", "end_kept",
    "numbers_kept", "names_kept",
)  # fmt: skip
_EDGES = {
    "length_ratio": np.linspace(0, 3, 61),
    "jaccard": np.linspace(0, 1, 41),
    "overlap": np.linspace(0, 1, 41),
    "cosine": np.linspace(0, 1, 51),
}


def source_pairs(
    source: str,
    checks: PairChecks,
    texts: tuple[Sequence[str], Sequence[str]],
    criteria: PairCriteria,
    *,
    config: PairCheckConfig,
) -> SourcePairs:
    """Put together what is kept of one source.

    Parameters
    ----------
    texts : pair of sequences of str
        Baseline and other versions, in the order of ``checks``.
    """
    flagged = {
        flag: tuple(writable(checks.pair_ids[row]) for row in np.flatnonzero(checks.flag(flag)))
        for flag in PAIR_FLAGS
    }
    return SourcePairs(
        source=source,
        criteria=criteria,
        summary=checks.summary(),
        histograms={
            name: found
            for name, edges in _EDGES.items()
            if (found := _histogram(getattr(checks, name), edges)) is not None
        },
        flagged_ids={flag: ids for flag, ids in flagged.items() if ids},
        worst=tuple(
            _pair(checks, int(row), texts, config.text_limit) for row in checks.worst(config.worst)
        ),
        by_chance=checks.by_chance,
    )


def _histogram(values: FloatArray, edges: FloatArray) -> Histogram | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1]), bins=edges)
    return Histogram(
        edges=edges.copy(),
        counts=counts.astype(np.int64),
        mean=float(known.mean()),
        median=float(np.median(known)),
    )


def _pair(
    checks: PairChecks, row: int, texts: tuple[Sequence[str], Sequence[str]], limit: int
) -> CheckedPair:
    baseline, other = (side[row] for side in texts)
    values = {name: float(getattr(checks, name)[row]) for name in _VALUES}
    on = checks.flags[row]
    return CheckedPair(
        pair_id=writable(checks.pair_ids[row]),
        baseline_text=writable(baseline[:limit]),
        other_text=writable(other[:limit]),
        baseline_length=len(baseline),
        other_length=len(other),
        broken=bool(checks.broken[row]),
        flags=tuple(flag for flag, found in zip(PAIR_FLAGS, on, strict=True) if found),
        reasons=_all_writable(checks.reasons[row]),
        values={name: value for name, value in values.items() if not np.isnan(value)},
        numbers_missing=_all_writable(checks.numbers_missing[row]),
        numbers_added=_all_writable(checks.numbers_added[row]),
        names_missing=_all_writable(checks.names_missing[row]),
        names_added=_all_writable(checks.names_added[row]),
    )


def _all_writable(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(writable(text) for text in texts)
