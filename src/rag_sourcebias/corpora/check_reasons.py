"""Why pairs were flagged, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.pair_checks import PAIR_FLAGS

__all__ = ["Found", "reasons_of"]

_MOST = 8
Columns = Mapping[str, npt.NDArray[np.float64]]
Lists = Mapping[str, tuple[tuple[str, ...], ...]]


class Found(NamedTuple):
    """What the checks found, columns of as many rows as pairs.

    Parameters
    ----------
    values : mapping of str to float64 array
    lists : mapping of str to tuple of tuple of str
        Numbers and names missing and added.
    languages : tuple of (str, str)
    leftovers : tuple of str
    by_chance : float or None
        Likeness that mismatched pairs reach.
    """

    values: Columns
    lists: Lists
    languages: tuple[tuple[str, str], ...]
    leftovers: tuple[str, ...]
    by_chance: float | None


def reasons_of(
    flags: npt.NDArray[np.bool_], found: Found, *, end_kept: float | None
) -> tuple[tuple[str, ...], ...]:
    """Write one sentence for each flag of each pair; ``end_kept`` is the threshold."""
    values, lists, languages, leftovers, by_chance = found
    alike = "overlap" if np.isnan(values["cosine"]).all() else "cosine"

    def reason(row: int, flag: str) -> str:
        if flag in ("numbers", "names"):
            parts = [
                f"{what}: {_first(words)}"
                for what in ("missing", "added")
                if (words := lists[f"{flag}_{what}"][row])
            ]
            return f"{flag} {'; '.join(parts)}"
        return {
            "empty": "one side has no words",
            "refusal": "the model declined",
            "leftover": f"not part of the text: {leftovers[row]!r:.120}",
            "loop": f"{values['repeated'][row]:.0%} more of it repeats itself than of the original",
            "language": "written in {1!r}, the original in {0!r}".format(*languages[row]),
            "unrelated": f"{alike} {values[alike][row]:.2f}"
            + (f"; mismatched pairs reach {by_chance:.2f}" if by_chance is not None else ""),
            "truncated": "stops before the original ends "
            f"({values['end_kept'][row]:.0%} of its end is kept, relative to the rest)"
            if end_kept is not None and values["end_kept"][row] < end_kept
            else "ends inside a sentence",
            "copy": "the original word by word",
            "near_copy": f"{values['copied'][row]:.0%} of its five-word runs are the original's",
            "length": f"{values['length_ratio'][row]:.2f} times the original's length",
        }[flag]

    return tuple(
        tuple(reason(row, PAIR_FLAGS[column]) for column in np.flatnonzero(flags[row]))
        if flags[row].any()
        else ()
        for row in range(len(flags))
    )


def _first(words: tuple[str, ...]) -> str:
    more = f" and {len(words) - _MOST} more" if len(words) > _MOST else ""
    return ", ".join(words[:_MOST]) + more
