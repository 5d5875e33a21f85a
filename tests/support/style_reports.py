"""Style reports from simulated similarities; every number but those of an index is measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import clustered_mean
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.measure.relevance import relative_delta
from rag_sourcebias.style.audit import measure_style_bias
from rag_sourcebias.style.data import StyleConfig, StyleIndexScore, StyleQuality
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


def full_report() -> StyleReport:
    """Return two systems with every optional part, a warning, a note and dropped queries."""
    report = style_report(
        {"MiniLM": similarities(), "BM25": similarities(shifts=(0, 0, -0.9, 0), seed=4)},
        warnings=("60 queries are few",),
        document_statistics=statistics(STYLES),
        query_statistics=statistics(QUERIES),
    )
    systems = tuple(
        dataclasses.replace(
            s,
            quality=quality(QUERIES, 60),
            index_scores=index_scores(STYLES, 60),
            notes=("texts were stemmed",),
        )
        for s in report.systems
    )
    data = dataclasses.replace(report.data, dropped=("q98", "q99"), n_distractors=1200)
    return dataclasses.replace(report, systems=systems, data=data)


def quality(queries: Sequence[str], n: int) -> tuple[StyleQuality, ...]:
    """Return falling scores; the adjusted p-values of the second style are not significant."""
    rng, base, found = np.random.default_rng(5), {}, []
    for at, style in enumerate(queries):
        for measure in ("NDCG@1", "NDCG@5", "Recall@5"):
            values = rng.beta(4 - at, 2, size=n)
            first = base.setdefault(measure, values)
            change = None if at == 0 else clustered_mean(values - first, np.arange(n))
            found.append(
                StyleQuality(
                    query_style=style,
                    measure=measure,
                    mean=float(values.mean()),
                    score=clustered_mean(values, np.arange(n)),
                    change=change,
                    p_value=None if change is None else 0.0123 / at**2,
                    p_adjusted=None if change is None else 0.0738 / at**2,
                )
            )
    return tuple(found)


def index_scores(styles: Sequence[str], n: int) -> tuple[StyleIndexScore, ...]:
    rng, found = np.random.default_rng(6), []
    for at, style in enumerate(styles):
        values = rng.normal(0.5 - 0.1 * at, 0.1, size=n)
        delta = None if at == 0 else relative_delta(0.5, float(values.mean()))
        found.append(
            StyleIndexScore(
                doc_style=style,
                measure="NDCG@5",
                mean=float(values.mean()),
                score=clustered_mean(values, np.arange(n)),
                relative_delta=delta,
                interval=None
                if delta is None
                else Interval(
                    estimate=delta,
                    lower=delta - 30,
                    upper=delta + 30,
                    confidence_level=0.95,
                    method=InferCode.DELTA(),
                    n_labeled=n,
                    assumptions=(InferCode.RATIO_NORMAL(),),
                ),
            )
        )
    return tuple(found)


def statistics(groups: Sequence[str]) -> tuple[TextStatistic, ...]:
    rng = np.random.default_rng(7)
    found = []
    for at, group in enumerate(groups):
        for name in ("words", "BLEU"):
            if name == "BLEU" and at == 0:
                continue
            values = (100 if name == "words" else 0.3) * rng.gamma(8, (1 + 0.2 * at) / 8, size=40)
            found.append(
                TextStatistic(
                    group=group,
                    name=name,
                    n=40,
                    mean=clustered_mean(values, np.arange(40)),
                    average=float(values.mean()),
                    quantiles=tuple(np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()),
                )
            )
    return tuple(found)
