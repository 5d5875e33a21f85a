"""Part of docs/coverage.md: systems compared at once, and plans."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from bars import found_too_rarely, grid, rejected


def differences_part(found: dict) -> list[str]:
    """How often the difference of two systems is covered, and found beside an oracle."""
    cells, worlds = found["cells"], found["worlds"]
    few = [row for row in cells if found_too_rarely(row)]
    rows = [
        [
            row["kind"],
            f"{row['r']:.2f}",
            str(row["n"]),
            *(f"{row[key]:.3f}" for key in ("difference", "coverage", "pool", "found", "oracle")),
            f"{row['found'] / row['oracle']:.2f}{' NO' * found_too_rarely(row)}",
            f"{row['at most']:.2f}",
            f"{row['coverage there']:.2f}",
        ]
        for row in cells
    ]
    head = ["values", "r before rounding", "labels", "difference", "coverage", "pool", "found"]
    head += ["oracle", "found / oracle", "at most", "coverage there"]
    low = [
        f"{row.get('world', row.get('kind'))} {_settings(row)}, {row['n']} labels, "
        f"{TARGET_OF[key]}: {row[key]:.3f}"
        for row in (*cells, *worlds)
        for key in TARGET_OF
        if rejected(row | {"coverage": row[key]})
    ]
    impossible = [row for row in cells if row["at most"] < 0.9 * row["oracle"]]
    return [
        "## Two systems on the same items",
        "Simulated items, 500 of them judged only; the second system is so much better that a "
        "normal test with the known error finds it in eight of ten draws. The oracle knows the "
        "population's slope and the critical value that is right for its *t*, and learns the "
        "error; it should be reached to .9 (NO where an exact test rejects that at .001): "
        + (f"not so in {len(few)} of {len(cells)} cells. " if few else "so in all cells. ")
        + "Labels that look like these may come from a world without a difference, in which "
        "people part from this judge on items that the labels missed. *At most*: how often a rule "
        "can find the difference that misses in no more than .06 of draws from the null world that "
        "looks most alike (the judge's values as here, people's as close as Kullback and Leibler's "
        "divergence allows; the most powerful test). *Coverage there*: of our intervals in it. "
        f"In {len(impossible)} cells .9 of the oracle and .94 in that world cannot both be had. "
        "We find the difference, and rely on a judge that is right about most labels being wrong "
        "by about one grade elsewhere: where its errors are rare, far and in favour of one system, "
        "few labels cannot tell, and an interval may say that systems differ where they do not.",
        grid(head, rows),
        "Worlds of known difference, null ones and a judge's favourites among them (real sets "
        f"resampled, {worlds[0]['runs']:,} draws of each cell, 10 to 120 labels):",
        grid(
            ["items", "cells", "lowest coverage", "pool", "cells below .94", "narrowest"],
            [_world(name, worlds) for name in dict.fromkeys(row["world"] for row in worlds)],
        ),
        "Below .94 by an exact test at .001: " + ("; ".join(low) if low else "none") + ".",
        "Made by `python benchmarks/coverage/differences.py`.",
    ]


TARGET_OF = {"coverage": "population", "pool": "pool"}


def _settings(row: dict) -> str:
    values = row.get("settings", [row.get("r")])
    return "(" + ", ".join(str(value) for value in values) + ")"


def _world(name: str, rows: list[dict]) -> list[str]:
    among = [row for row in rows if row["world"] == name]
    below = [sum(rejected(row | {"coverage": row[key]}) for row in among) for key in TARGET_OF]
    return [
        name,
        str(len(among)),
        *(f"{min(row[key] for row in among):.3f}" for key in TARGET_OF),
        " + ".join(map(str, below)),
        f"{min(row['narrowest'] for row in among):.3f}",
    ]


def systems_part(found: dict) -> list[str]:
    """How often some difference, direction or place was wrong; widths and Kendall's τ."""
    cells = found["cells"]
    rows = [
        [
            row["population"].replace("simulated ", "simulated: "),
            str(row["systems"]),
            str(row["n"]),
            str(row["runs"]),
            *(f"{row[key]:.3f}" for key in WRONG),
            "–" if row[ONE] is None else f"{row[ONE]:.3f}",
            f"{row['width']:.3f}",
            *(f"{row[key][1]:.3f}" if row.get(key) else "–" for key in RIVALS),
            "–" if _equal(row) else " / ".join(f"{row[key]:.2f}" for key in TAUS),
        ]
        for row in cells
    ]
    head = [
        "items of", "systems", "labels", "runs", "some difference missed", "direction wrong",
        "place missed", "one difference missed", "median width",
        "… of the narrowest rival true in all cells", "… in this one", "τ: both / judge / labels",
    ]  # fmt: skip
    return [
        "## Several systems at once",
        "Each run draws the systems, the labelled items and 200 others from real or simulated "
        "items (a simulated population: kind of value, systems, spread of their levels, error of "
        "the judge). How often *some* difference of all pairs lay outside its interval, excluded 0 "
        "in the wrong direction, or some system's place was not among those named; how often one "
        "difference by itself was missed; and Kendall's τ of the ranking, of the judge's and of "
        "that by labels alone with the true order. Each miss should be at most .05; a bar is "
        "missed where an exact test rejects it at .001. Rivals are labels alone, PPI and PPI++, "
        "each at Bonferroni's level and with the quantile of the largest difference; which of them "
        f"is true in this cell is known afterwards only ({found.get('rival runs', 0)} draws; "
        "true: some difference missed in at most .06 of them).",
        _bars(found["bars"]),
        grid(head, rows),
        "Made by `python benchmarks/coverage/systems.py`, and `rivals.py` for the other widths.",
    ]


WRONG = ("some difference missed", "some direction wrong", "some rank missed")
ONE = "one difference missed"
RIVALS = ("rival everywhere", "rival here")
TAUS = ("tau", "tau of judge", "tau of labels")


def _equal(row: dict) -> bool:
    return ", 0, " in row["population"]


MEDIAN = "width / median judge's"


def judges_part(found: dict) -> list[str]:
    """Coverage with several judges, and width beside their mean and the median judge."""
    shown = {
        "population": "items of", "judges": "judges", "n": "labels", "coverage": "coverage",
        "r between": "r between judges", "r of median judge": "r with people, median judge",
        "r of mean": "… their mean", "width / mean's": "width / that by their mean",
        "width / median judge's": "… by the median judge", "known slopes": "… with known slopes",
    }  # fmt: skip
    rows = [
        [f"{row[key]:.3f}" if isinstance(row[key], float) else str(row[key]) for key in shown]
        for row in found["cells"]
    ]
    return [
        "## Several judges",
        "Each judge by itself against all of them; *with known slopes*: what an interval by the "
        "judges' mean would be as a multiple of one by the median judge if both slopes were known, "
        f"which is all that averaging can gain. {found['runs']:,} draws a cell, a fifth of them "
        "for widths; cells that miss .90 although known slopes could meet it, ten times as many: "
        + "; ".join(
            f"{row['population']}, {row['n']} labels, {row[MEDIAN]:.3f} ± {row['error']:.3f}"
            for row in found["cells"]
            if row["runs"] > found["runs"]
        )
        + ". A mean misses its bar where a normal test rejects it at .001.",
        _bars(found["bars"]),
        grid(list(shown.values()), rows),
        "Made by `python benchmarks/coverage/judges.py`.",
    ]


def labels_part(found: dict) -> list[str]:
    """Whether plans reach their width."""
    plans = []
    for pilot, oracle in dict.fromkeys((r["pilot"], r["oracle"]) for r in found["plans"]):
        at = [r for r in found["plans"] if (r["pilot"], r["oracle"]) == (pilot, oracle)]
        plans.append([
            str(pilot), str(oracle), *_spread([r["reached"] for r in at], 2),
            *_spread([r["labels"] for r in at], 2),
        ])  # fmt: skip
    planned = [
        "labels of the pilot", "labels an oracle takes", "width reached", "lowest", "highest",
        "labels / oracle's", "lowest", "highest",
    ]  # fmt: skip
    return [
        "## Plans",
        "Pilots from which `labels` says how many labels reach a half-width.",
        _bars(found["bars"]),
        grid(planned, plans),
        f"{len({r['set'] for r in found['plans']})} populations, real and simulated, "
        f"{min(r['asked'] for r in found['plans']):,} pilots a cell, less "
        "those whose labels are all alike. A rate misses its bar where an exact binomial test "
        "rejects it at .001, a mean number of labels where a normal test does. Made by "
        "`python benchmarks/coverage/labels.py`.",
    ]


def _spread(values: Sequence[float], digits: int) -> list[str]:
    return [f"{pick(values):.{digits}f}" for pick in (mean, min, max)]


def _bars(rows: Sequence[dict]) -> str:
    lines = [
        [row["what"], f"{row['value']:.3f}", "; ".join(row["missed"]) or "none"] for row in rows
    ]
    return grid(["what", "worst", "cells that miss it"], lines)


def swayed_part(found: dict) -> list[str]:
    """Effects of order, length and family on real judges."""
    names = {
        "length": "judge − human per doubling of length",
        "verbosity": "judge value per doubling of length, at equal human value",
        "first_place": "shown first less shown second",
        "flips": "share of verdicts that change with the order",
        "self_preference": "own family above others, at equal human value",
    }
    rows = [
        [
            row["judge"],
            names[row["what"]],
            f"{row['estimate']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]",
            "" if row["p"] is None else f"{row['p']:g}",
            str(row["n"]),
        ]
        for row in found["rows"]
    ]
    return [
        "## What sways real judges",
        "Effects that `judge audit` measures, on a scale from 0 (loses) to 1 (wins). CrowdRAG-25 "
        "has pairs judged in both orders, with crowd votes; there length is that of the first text "
        "over the second. In the PandaLM test set each answer of a pair is an item, shown in one "
        "order only: the effect of order cannot be told. No answer there is by the family of "
        "gpt-3.5-turbo. p-values are adjusted over the effects of one judge.",
        grid(["judge", "effect", "estimate", "p", "items"], rows),
        "Made by `python benchmarks/coverage/swayed.py`.",
    ]
