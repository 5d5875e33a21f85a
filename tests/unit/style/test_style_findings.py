"""The pure functions behind ``benchmarks/style``: what [W] found, read off a report."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.answers.audit import measure_answer_bias
from rag_sourcebias.answers.data import AnswerTexts
from rag_sourcebias.style.audit import measure_style_bias
from rag_sourcebias.style.data import StyleConfig, StyledTexts

STYLES = ("human", *map(str, range(9)))
FORMS = ("original", *map(str, range(9)))


def load():
    """Load a module of the benchmark, which is no package."""
    path = Path(__file__).parents[3] / "benchmarks" / "style" / "findings.py"
    spec = importlib.util.spec_from_file_location("style_findings", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


findings = load()


def style_report(likes: dict[str, float], *, own: float, n: int = 40):
    """Similarities where each style has a bonus, and a query's own style another."""
    rng = np.random.default_rng(3)
    scores = rng.normal(0, 0.3, (n, len(FORMS), len(STYLES)))
    scores += np.array([likes.get(style, 0.0) for style in STYLES])
    for i, form in enumerate(FORMS[1:], start=1):
        scores[:, i, STYLES.index(form)] += own
    texts = StyledTexts(
        query_ids=tuple(f"q{i}" for i in range(n)),
        queries={form: tuple(f"{form} query {i}" for i in range(n)) for form in FORMS},
        documents={s: tuple(f"{s} text {i}" + " w" * (i % 7) for i in range(n)) for s in STYLES},
    )
    return measure_style_bias({"x": scores}, texts, config=StyleConfig(resamples=2_000))


def test_figures_of_styles():
    report = style_report({"human": 2, "2": 1, "3": -2, "6": -2, "7": -2, "8": -2}, own=1.5)
    (row,) = findings.style_figures(report)
    ranks = row["average_ranks"]["original"]
    assert sum(ranks.values()) == pytest.approx(55, abs=0.01)
    assert min(ranks, key=ranks.get) == "human"
    assert set(sorted(ranks, key=ranks.get)[-4:]) == {"3", "6", "7", "8"}
    together = row["c_matching"]["gains"]["all"]
    assert together[1] > 0


def test_figures_of_answers():
    rng = np.random.default_rng(1)
    words = np.tile([1, 6, 40], 150) + rng.integers(0, 3, 450)
    correct = (rng.random(450) < 0.8).astype(float)
    answers = AnswerTexts(
        question_ids=tuple(f"q{i // 3}" for i in range(450)),
        systems=("short", "middle", "long") * 150,
        answers=tuple("word " * n for n in words),
        references=(("word",),) * 450,
        correct=correct,
    )
    noise = rng.normal(0, 0.05, 450)
    scores = 0.5 + 0.3 * correct - 0.15 * np.log1p(words) + noise
    report = measure_answer_bias({"cosine": scores}, answers, text_statistics=False)
    (row,) = findings.answer_figures(report, fitted_on="the same")
    assert row["unfairness"][0] > row["adjusted_unfairness"][0]
    assert row["means"]["short"] > row["means"]["long"]
