"""What a check must reject: a series of ours, spoilt in a way that any series can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from entries import Series


def backwards(series: Series) -> Series:
    """The last value at the first x, and so on."""
    ends = {k: None if v is None else v[::-1] for k, v in _ends(series).items()}
    return replace(series, y=series.y[::-1], **ends)


def next_cell(series: Series) -> Series:
    """Every value one place further, as printed cells read off by one would be."""
    ends = {k: None if v is None else (*v[1:], v[0]) for k, v in _ends(series).items()}
    return replace(series, y=(*series.y[1:], series.y[0]), **ends)


def exchanged(series: Series) -> Series:
    """The other sign everywhere: what is compared changes places, the largest is the smallest."""
    lower = None if series.upper is None else tuple(-v for v in series.upper)
    upper = None if series.lower is None else tuple(-v for v in series.lower)
    return replace(series, y=tuple(-v for v in series.y), lower=lower, upper=upper)


def about_zero(series: Series) -> Series:
    """Intervals as wide as they are, with nothing to find."""
    lower, upper = (
        None if ends is None else tuple(e - y for e, y in zip(ends, series.y, strict=True))
        for ends in (series.lower, series.upper)
    )
    return replace(series, y=(0.0,) * len(series.y), lower=lower, upper=upper)


def nothing_at_the_end(series: Series) -> Series:
    """0 at the last x, as from an encoder that finds nothing."""
    return replace(series, y=(*series.y[:-1], 0.0), lower=None, upper=None)


def _ends(series: Series) -> dict[str, tuple[float, ...] | None]:
    return {"lower": series.lower, "upper": series.upper}


CHANGES: dict[str, Callable[[Series], Series]] = {
    "values in reverse order": backwards,
    "each value one cell further": next_cell,
    "sides exchanged": exchanged,
    "ranking upside down": exchanged,
    "the same intervals about 0": about_zero,
    "0 at the last x": nothing_at_the_end,
}
"""Changes that need no data and no model, by what the page calls them."""
