"""Style reports from simulated similarities; every number but those of an index is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.style.audit import measure_style_bias
from rag_sourcebias.style.data import StyleConfig
from rag_sourcebias.style.page import StyleReport

CONFIG = StyleConfig(resamples=500)
STYLES = ("human", "0", "3", "formal")
QUERIES = ("original", "0", "3")
#: Similarity gained by each of STYLES, in standard deviations of a similarity.
SHIFTS = (0.0, 0.9, -1.3, 0.1)


def similarities(
    n: int = 60,
    shifts: Sequence[float] = SHIFTS,
    *,
    queries: Sequence[str] = QUERIES,
    styles: Sequence[str] = STYLES,
    seed: int = 1,
) -> np.ndarray:
    """Return similarities of shape (n, q, d); matching styles gain 0.6."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, len(queries), len(styles))) + np.asarray(shifts)
    for i, form in enumerate(queries):
        if form in styles:
            scores[:, i, list(styles).index(form)] += 0.6
    return scores


def styled_texts(n: int, queries: Sequence[str] = QUERIES, styles: Sequence[str] = STYLES):
    """Return texts of 20 to 60 words; the content is never looked at."""
    rng = np.random.default_rng(2)
    return StyledTexts(
        query_ids=tuple(f"q{i}" for i in range(n)),
        queries={s: tuple(f"{s} {i}" for i in range(n)) for s in queries},
        documents={
            s: tuple(f"{s} {i}" + " word" * int(rng.integers(20, 60)) for i in range(n))
            for s in styles
        },
        name="simulated",
        license="CC BY 4.0",
        attribution="nobody",
    )


def style_report(
    systems: dict[str, np.ndarray] | np.ndarray | None = None,
    *,
    queries: Sequence[str] = QUERIES,
    styles: Sequence[str] = STYLES,
    config: StyleConfig = CONFIG,
    **changes: object,
) -> StyleReport:
    """Measure a report without anything from an index; warnings are left out unless given."""
    if systems is None:
        systems = similarities(queries=queries)
    if not isinstance(systems, dict):
        systems = {"MiniLM": systems}
    n = len(next(iter(systems.values())))
    texts = styled_texts(n, queries, styles)
    settings = {name: {"dtype": "float32"} for name in systems}
    report = measure_style_bias(systems, texts, config=config, settings=settings)
    return dataclasses.replace(report, **{"warnings": (), **changes})  # type: ignore[arg-type]
