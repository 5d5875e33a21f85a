"""Which values and texts of a pair are beyond a threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.corpora.check_reasons import Found
from rag_sourcebias.corpora.check_writing import is_refusal, stops_open
from rag_sourcebias.types.arrays import BoolArray, FloatArray
from rag_sourcebias.types.pair_checks import PAIR_FLAGS, PairThresholds

__all__ = ["flags_of"]

Texts = tuple[tuple[str, ...], ...]
# The end of a rewrite that is as long as the original was reworded, not cut off.
_CUT_LENGTH = 0.9


def flags_of(
    pairs: Sequence[tuple[str, str]],
    words: Sequence[tuple[list[str], list[str]]],
    thresholds: PairThresholds,
    found: Found,
) -> BoolArray:
    """Return the flags of every pair, shape (n, len(PAIR_FLAGS))."""
    empty = np.array([not (a and b) for a, b in words], dtype=np.bool_)
    flags = {name: np.zeros(len(pairs), dtype=np.bool_) for name in PAIR_FLAGS}
    flags |= _of_values(found.values, thresholds, by_chance=found.by_chance)
    flags |= _of_facts(found.values, found.lists, thresholds)
    if thresholds.writing:
        open_end = np.array([stops_open(human, other) for human, other in pairs], dtype=np.bool_)
        flags["refusal"] = np.array([is_refusal(h, o) for h, o in pairs], dtype=np.bool_)
        flags["leftover"] = np.array([bool(left) for left in found.leftovers], dtype=np.bool_)
        flags["truncated"] = flags["truncated"] | open_end
        flags["copy"] = np.array([a == b for a, b in words], dtype=np.bool_)
        flags["near_copy"] = flags["near_copy"] & ~flags["copy"]
    if thresholds.language:
        flags["language"] = np.array(
            [a != b and a and b for a, b in found.languages], dtype=np.bool_
        )
    # Without words on one side nothing else can be said about a pair.
    flags = {name: flag & ~empty for name, flag in flags.items()} | {"empty": empty}
    return np.stack([flags[name] for name in PAIR_FLAGS], axis=1)


def _of_values(
    values: Mapping[str, FloatArray], thresholds: PairThresholds, *, by_chance: float | None
) -> dict[str, BoolArray]:
    flags, ratio, cosine = {}, values["length_ratio"], values["cosine"]
    if thresholds.length_ratio is not None:
        lowest, highest = thresholds.length_ratio
        flags["length"] = (ratio < lowest) | (ratio > highest)
    if thresholds.copied is not None:
        flags["near_copy"] = values["copied"] > thresholds.copied
    if thresholds.repeated is not None:
        flags["loop"] = values["repeated"] > thresholds.repeated
    if thresholds.end_kept is not None:
        flags["truncated"] = (values["end_kept"] < thresholds.end_kept) & (ratio < _CUT_LENGTH)
    unrelated = np.zeros(len(ratio), dtype=np.bool_)
    if by_chance is not None:
        unrelated |= np.where(np.isnan(cosine), values["overlap"], cosine) <= by_chance
    if thresholds.cosine is not None:
        unrelated |= cosine < thresholds.cosine
    return flags | {"unrelated": unrelated}


def _of_facts(
    values: Mapping[str, FloatArray], lists: Mapping[str, Texts], thresholds: PairThresholds
) -> dict[str, BoolArray]:
    count = {name: np.array([len(row) for row in rows]) for name, rows in lists.items()}
    flags = {}
    if thresholds.numbers_kept is not None:
        low = values["numbers_kept"] < thresholds.numbers_kept
        flags["numbers"] = low | (count["numbers_added"] > 0)
    if thresholds.names_kept is not None:
        low = (values["names_kept"] < thresholds.names_kept) & (count["names_missing"] > 1)
        swapped = (count["names_missing"] > 0) & (count["names_added"] > 0)
        flags["names"] = low | swapped | (count["names_added"] > 1)
    return flags
