"""What the intervals promise, against what was measured."""

from __future__ import annotations

import math

import simulated
from scipy.stats import binom


def bar(what: str, value: float | None, target: str, met: bool) -> dict:
    shown = None if value is None else round(float(value), 4)
    return {"what": what, "value": shown, "target": target, "met": bool(met)}


def of_simulations(found: dict) -> list[dict]:
    """Bars of the default method, odd judges, single queries and documents."""
    rows = []
    for target in simulated.TARGETS:
        cells = [
            r
            for r in found["default"]
            if r["method"] == simulated.DEFAULT and r["target"] == target
        ]
        lowest = min(r["coverage"] for r in cells)
        mean = sum(r["coverage"] for r in cells) / len(cells)
        name = f"default method, {target}, {len(cells)} cells"
        rows += [
            bar(f"{name}: lowest coverage", lowest, "≥ .935", lowest >= 0.935),
            bar(f"{name}: mean coverage", mean, "≥ .945", mean >= 0.945),
        ]
    width = {
        r["method"]: r["width"]
        for r in found["default"]
        if (r["preset"], r["n"], r["n_unlabeled"], r["target"])
        == ("TREC-DL", 100, 1000, "population")
    }
    ratio = width[simulated.DEFAULT] / width["ppi-paper"]
    rows.append(
        bar("… width / PPI of [R], TREC-DL, n = 100 + 1,000", ratio, "≤ .86", ratio <= 0.86)
    )
    odd = [r for r in found["odd judges"] if r["method"] == simulated.DEFAULT]
    finite = all(math.isfinite(r["width"]) and not r.get("failures") for r in odd)
    worst = min(odd, key=lambda r: r["coverage"])
    floor = 0.93 - _slack(worst["runs"])
    where = f"{worst['judge']}, n = {worst['n']}, {worst['target']}"
    rows.append(
        bar(
            f"odd judges, {len(odd)} cells, all finite: lowest coverage ({where})",
            worst["coverage"],
            f"finite; ≥ .93 (less 2 standard errors of {worst['runs']} runs)",
            finite and worst["coverage"] >= floor,
        )
    )
    widest = max(r["width"] for r in odd if r["judge"] == "perfect" and r["target"] == "pool")
    rows.append(bar("perfect judge, pool: width", widest, "0", widest < 1e-9))
    rows += per_query(found["per query"])
    rows += documents(found["documents"])
    return rows


def per_query(cells: list[dict]) -> list[dict]:
    default = [r for r in cells if r["rule"] == "residual"]
    lowest = min(r["coverage"] for r in default)
    rows = [
        bar("single queries: lowest coverage, n = 20, 39, 50, 112", lowest, "≥ .94", lowest >= 0.94)
    ]
    widths = {(r["preset"], r["rule"]): r["width"] for r in cells if r["n"] == 112}
    for preset in simulated.BAR_PRESETS:
        ratio = widths[preset, "residual"] / widths[preset, "paper"]
        what = f"… width / rule of [R], {preset}, n = 112"
        rows.append(bar(what, ratio, "≤ .95", ratio <= 0.95))
    return rows


def documents(cells: list[dict]) -> list[dict]:
    rows = []
    for preset in simulated.BAR_PRESETS:
        found = {
            (r["method"], r["target"]): r
            for r in cells
            if r["preset"] == preset and r["judge"] is None
        }
        ratio = (
            found["documents", "population"]["width"] / found["ppi-paper", "population"]["width"]
        )
        lowest = min(found["documents", t]["coverage"] for t in simulated.TARGETS)
        name = f"500 labels over documents of 1,000 queries, {preset}"
        rows += [
            bar(f"{name}: width / PPI of [R]", ratio, "≤ .5", ratio <= 0.5),
            bar(f"{name}: lowest coverage", lowest, "≥ .93", lowest >= 0.93),
        ]
    return rows


def of_real_sets(cells: list[dict]) -> list[dict]:
    """Bars of the resampled sets: no cell whose true rate is below .94 by an exact test at .001."""
    rows = []
    for target in ("population", "pool"):
        for scale in (False, True):
            chosen = [
                r
                for r in cells
                if (r["method"], r["target"], r["scale"]) == ("regression", target, scale)
                and r["coverage"] is not None
            ]
            if not chosen:
                continue
            worst = min(chosen, key=lambda r: r["coverage"])
            where = f"{worst['set']}, n = {worst['n']}"
            told = ", scale given" if scale else ""
            what = f"real sets, {target}{told}, {len(chosen)} cells: lowest coverage ({where})"
            below = [f"{r['set']}, n = {r['n']}" for r in chosen if rejected(r)]
            target_ = "true rate ≥ .94 in each" + (
                f"; rejected: {'; '.join(below)}" if below else ""
            )
            rows.append(bar(what, worst["coverage"], target_, not below))
    return [*rows, *widths(cells)]


def widths(cells: list[dict]) -> list[dict]:
    """Bars of the default's mean width beside labels alone and an estimate that knows the slope."""
    limited = [r for r in cells if r.get("limit")]
    if not limited:
        return []
    wide = ratios(cells)

    def cell(r: dict) -> tuple:
        return r["set"], r["scale"], r["n"]

    found = []
    for what, limit, chosen in (
        ("n = 15", 1.10, [r for r in limited if r["n"] == 15]),
        ("n ≥ 30", 1.05, [r for r in limited if r["n"] >= 30]),
        ("r ≥ .4", 1.00, [r for r in limited if r["r"] >= 0.4]),
    ):
        worst = max(chosen, key=lambda r: wide[cell(r)])
        ratio = wide[cell(worst)]
        found.append(
            bar(
                f"real sets, {what}, {len(chosen)} cells: largest mean width / labels alone "
                f"({worst['set']}, n = {worst['n']})",
                ratio,
                f"≤ {limit:.2f}",
                round(ratio, 3) <= limit,
            )
        )
    return found


def found_too_rarely(row: dict) -> bool:
    """Whether a planted difference is found in less than .9 of the oracle's draws (at .001)."""
    found = round(row["found"] * row["runs"])
    return bool(binom.cdf(found, row["runs"], 0.9 * row["oracle"]) < 0.001)


def ratios(cells: list[dict]) -> dict[tuple, float]:
    """Mean width of the default over that of labels alone, by set, scale told or not, and n."""
    widths_ = {
        (r["method"], r["set"], r["scale"], r["n"]): r["width"]
        for r in cells
        if r["target"] == "population"
    }
    return {
        key[1:]: width / widths_["labels", *key[1:]]
        for key, width in widths_.items()
        if key[0] == "regression" and widths_.get(("labels", *key[1:]))
    }


def rejected(row: dict) -> bool:
    """Whether a row's true coverage is below .94 by an exact test at .001."""
    return bool(binom.cdf(round(row["coverage"] * row["runs"]), row["runs"], 0.94) < 0.001)


def _slack(runs: int) -> float:
    return 2 * math.sqrt(0.93 * 0.07 / runs)
