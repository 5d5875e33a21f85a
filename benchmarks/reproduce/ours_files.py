"""Series out of result files whose layout is made for something else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from needs import NotMadeError

RESULTS = Path(__file__).resolve().parent.parent / "results"
Columns = dict[str, Any]


@cache
def read(name: str, command: str) -> dict:
    path = RESULTS / name
    if not path.is_file():
        raise NotMadeError(f"results/{name} is not there; made by python benchmarks/{command}")
    return json.loads(path.read_text(encoding="utf-8"))


def with_ends(x: Iterable[str], rows: Iterable[Sequence[float]]) -> Columns:
    """Values with their intervals, from rows of value, lower and upper end."""
    y, lower, upper = (list(column) for column in zip(*rows, strict=True))
    return {"x": list(x), "y": y, "lower": lower, "upper": upper}


def style_row(texts: str, system: str) -> dict:
    rows = read("style_bias.json", "style/run.py")[texts]
    return next(row for row in rows if row["system"] == system)


def style_ranks(texts: str, system: str, query_style: str = "original") -> Columns:
    """Average rank of each document style ([W] Fig. 2, 5, 8, 9)."""
    ranks = style_row(texts, system)["average_ranks"][query_style]
    return {"x": list(ranks), "y": list(ranks.values())}


def style_unfairness(texts: str, system: str) -> Columns:
    """Unfairness per query style ([W] Table 1)."""
    found = style_row(texts, system)["unfairness"]
    rows = [value if len(value) == 3 else (value[0], None, None) for value in found.values()]
    y, lower, upper = (list(column) for column in zip(*rows, strict=True))
    ends = {} if any(v is None for v in lower) else {"lower": lower, "upper": upper}
    return {"x": list(found), "y": y, **ends}


def style_spread(texts: str, systems: Sequence[str], what: str) -> Columns:
    """Mean or standard deviation of unfairness over query styles, or that of one style."""
    values = []
    for system in systems:
        unfairness = style_row(texts, system)["unfairness"]
        scores = {style: value[0] for style, value in unfairness.items()}
        over_styles = {"mean": fmean(scores.values()), "sd": pstdev(scores.values())}
        values.append((over_styles | scores)[what])
    return {"x": list(systems), "y": values}


def matching(texts: str, system: str) -> Columns:
    """Places that a document style gains when the query is in the same style."""
    gains = style_row(texts, system)["c_matching"]["gains"]
    found = {style: gain for style, gain in gains.items() if style != "all" and len(gain) == 3}
    return with_ends(found, found.values())


def answer_row(answers: str, encoder: str) -> dict:
    rows = read("answer_bias.json", "style/run.py")[answers]
    return next(row for row in rows if row["encoder"] == encoder)


def answer_means(answers: str, encoder: str) -> Columns:
    """Mean similarity of correct answers to the reference, by system ([W] Fig. 7)."""
    means = answer_row(answers, encoder)["means"]
    return {"x": list(means), "y": list(means.values())}


def answer_spread(answers: str, encoders: Sequence[str], what: str = "unfairness") -> Columns:
    """Standard deviation of the system means, by encoder ([W] Fig. 7)."""
    rows = [answer_row(answers, encoder)[what] for encoder in encoders]
    return with_ends(encoders, rows)


def mean_words(answers: str) -> Columns:
    """Mean words of correct answers, by system ([W] Fig. 6a)."""
    words = answer_row(answers, "all-MiniLM-L6-v2")["mean_words_correct"]
    return {"x": list(words), "y": list(words.values())}


def sweep(figure: str, source: str, method: str, column: str, kind: str = "") -> Columns:
    """Coverage or width over labels (figure 2) or over strength of a change (figure 3) of [R]."""
    rows = [
        row
        for row in figures()[figure]
        if row["source"] == source and row["method"] == method and row.get("kind", "") == kind
    ]
    x = "n" if figure == "figure 2" else "strength"
    found = {"x": [row[x] for row in rows], "y": [row[column] for row in rows]}
    return found | (shares(rows) if column == "coverage" else {})


def shares(rows: Sequence[dict]) -> Columns:
    """95 % intervals of a coverage, from its number of runs."""
    from rag_sourcebias.infer.means import wilson_interval

    found = [wilson_interval(row["coverage"] * row["runs"], row["runs"]) for row in rows]
    return {"lower": [one.lower for one in found], "upper": [one.upper for one in found]}


def figures() -> dict:
    return read("coverage_figures.json", "coverage/run.py")


def widths(source: str, methods: dict[str, str], n: int) -> Columns:
    """Width of each method's interval at n labels."""
    rows = {
        row["method"]: row["width"]
        for row in figures()["figure 2"]
        if row["source"] == source and row["n"] == n
    }
    return {"x": list(methods), "y": [rows[name] for name in methods.values()]}


def labels_needed(source: str, methods: dict[str, str], nominal: float = 0.93) -> Columns:
    """Fewest labels from which on coverage stays at the nominal level.

    500 runs leave a standard error of .01: .93 is two of them below .95. Where that is not
    reached with 100 labels the value is 105, the next step of the sweep.
    """
    y = []
    for method in methods.values():
        found = sweep("figure 2", source, method, "coverage")
        held = np.array(found["y"]) >= nominal
        last_miss = int(np.flatnonzero(~held).max(initial=-1))
        y.append(float([*found["x"], 105][last_miss + 1]))
    return {"x": list(methods), "y": y, "note": f"coverage ≥ {nominal}; 105 means more than 100"}


def coverage_single(source: str, scale: float = 1.0) -> Columns:
    """Share of single-query intervals that hold the true value, by τ ([R] Fig. 4).

    ``scale`` shortens the intervals about their middle.
    """
    rows, x = [], []
    for row in figures()["figure 4"][source]:
        truth, low, high = (np.array(row[k]) for k in ("truth", "lower", "upper"))
        middle, half = (low + high) / 2, scale * (high - low) / 2
        held = np.abs(truth - middle) <= half * (1 + 1e-12)
        x.append(row["strength"])
        rows.append({"coverage": float(held.mean()), "runs": len(held)})
    return {"x": x, "y": [row["coverage"] for row in rows], **shares(rows)}


def judged_systems(preset: str, by: str) -> Columns:
    """DCG@10 of four rankings by one labeller, in simulated data ([R] Table 1)."""
    found = read("coverage.json", "coverage/run.py")["table 1"][preset]
    values = found["DCG@10 by human, by judge"]
    column = ("human", "judge").index(by)
    return {"x": list(values), "y": [pair[column] for pair in values.values()]}


def overrating(sets: Sequence[str]) -> Columns:
    """Percent by which judges over-rate BM25 on real labels (DCG@10, gains 2^r − 1).

    With 95 % intervals over queries, linearised.
    """
    import os

    from rag_sourcebias.infer.samples import t_interval

    rows = []
    gains = 2.0 ** np.arange(4) - 1
    for stem in sets:
        path = Path(os.environ["RAG_SOURCEBIAS_DATA"]) / "interval_labels" / f"{stem}.npz"
        arrays = np.load(path)
        query = arrays["query_segments"]
        starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
        rank = np.arange(len(query)) - np.repeat(starts, np.diff(np.r_[starts, len(query)])) + 1
        weights = np.where(rank <= 10, 1 / np.log2(rank + 1.0), 0.0)
        human, judge = (
            np.add.reduceat(weights * (arrays[key] @ gains), starts)
            for key in ("true_label_dist", "pred_label_dist")
        )
        ratio = judge.mean() / human.mean()
        rows.append(t_interval(100 * (ratio - 1 + (judge - ratio * human) / human.mean())))
    return with_ends(sets, [(row.estimate, row.lower, row.upper) for row in rows])


def outfox(source: str, measure: str = "1") -> Columns:
    """Relative Δ between essays by people and by one LLM, per system of benchmarks/debias."""
    rows = read("debias.json", "debias/run.py")["systems"]["outfox"]
    found = {
        row["system"]: row["relative_delta"][measure]
        for row in rows
        if row["source"] == source and row["kind"] == "unchanged"
    }
    return with_ends(found, found.values())


def coverage_at(n: int, method: str, sources: Sequence[str]) -> Columns:
    """Coverage with n labels, by source of data ([R] Fig. 2)."""
    rows = [
        row
        for source in sources
        for row in figures()["figure 2"]
        if (row["source"], row["method"], row["n"]) == (source, method, n)
    ]
    return {"x": list(sources), "y": [row["coverage"] for row in rows], **shares(rows)}
