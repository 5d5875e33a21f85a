"""Bars on true rates: a cell misses its bar when an exact binomial test rejects it at .001."""

from __future__ import annotations

from typing import Any

LEVEL = 0.001


def missed(successes: int, runs: int, bar: float, *, at_least: bool) -> bool:
    """Whether a true rate on the good side of the bar is rejected by what was counted."""
    from scipy.stats import binomtest

    if not runs:
        return False
    side = "less" if at_least else "greater"
    return bool(binomtest(successes, runs, bar, alternative=side).pvalue < LEVEL)


def row(
    world: str, n: int, kind: str, successes: int, runs: int, bar: float | None, **more: Any
) -> dict[str, Any]:
    """One figure of the validity page; bars of size, alarm and refusal are upper ones."""
    at_least = kind in ("power", "coverage")
    return {
        "world": world,
        "n": n,
        "kind": kind,
        "rate": successes / runs if runs else None,
        "successes": successes,
        "runs": runs,
        "bar": bar,
        "at_least": at_least,
        "met": None if bar is None else not missed(successes, runs, bar, at_least=at_least),
        **more,
    }
