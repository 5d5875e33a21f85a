"""Which time steps show a stretch of a log."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rag_sourcebias.monitor.dashboard.parameters import ParameterError
from rag_sourcebias.monitor.log.schema import WIDTHS

__all__ = ["NAMED", "chosen_step"]

NAMED = {"minute": 60, "hour": 3_600, "day": 86_400}
_AUTO = 400
_MOST = 2_000
_HOUR, _DAY = 3_600, 86_400
_LENGTHS = (
    *(60, 120, 300, 600, 1_200, 1_800),
    *(hours * _HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 7, 14, 28, 91, 364)),
)


def chosen_step(
    name: str,
    extent: Mapping[int, tuple[int, int]],
    *,
    since: float | None,
    until: float | None,
) -> int:
    """Return the seconds of a step.

    Parameters
    ----------
    name : str
        "auto" takes the shortest that makes at most 400 steps and is kept for that time, or one
        of :data:`NAMED`.
    extent : mapping of int to (int, int)
        Time that rollups cover, by width; not empty.
    since, until : float or None
        Seconds since 1970 that are asked for.

    Raises
    ------
    ParameterError
        If a named step makes more than 2,000 of them.
    """
    start: float = _first(extent)
    end: float = min(last for _, last in extent.values())  # that of the finest width
    start = start if since is None else max(start, since)
    end = end if until is None else min(end, until)
    if name != "auto":
        step = NAMED[name]
        if _steps(start, end, step) > _MOST:
            raise ParameterError(
                f"parameter step={name} makes more than {_MOST:,} steps: ask for a longer step, "
                "or for less time between since and until"
            )
        return step
    for step in _LENGTHS:
        if _steps(start, end, step) <= _AUTO and _is_kept(step, start, extent):
            return step
    return math.ceil((end - start) / (_AUTO - 1) / _DAY) * _DAY


def _first(extent: Mapping[int, tuple[int, int]]) -> int:
    """Return when the log begins: the finest rollups know it best, where they go back as far."""
    finest = extent[min(extent)][0]
    earlier = (first for width, (first, _) in extent.items() if first < finest // width * width)
    return min(earlier, default=finest)


def _steps(start: float, end: float, step: int) -> int:
    return max(math.ceil(end / step) - math.floor(start / step), 0)


def _is_kept(step: int, start: float, extent: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether rollups of this step go back to the start, as those of hours do."""
    first = min(start for start, _ in extent.values())
    width = max(w for w in WIDTHS if step % w == 0)
    kept = extent.get(width, (0, 0))[0] // _HOUR * _HOUR
    wanted = max(start, extent.get(_HOUR, (first, 0))[0])
    return width >= _HOUR or kept <= wanted
