"""Figures about texts and vectors: [K] Fig. 3 to 7 and App. B, [W] Fig. 1, 4 and 6."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from needs import NotMadeError
from ours_source import dataset, encoder

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.tags import complete_pairs, source_of
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.explain.audit import explain_sources
from rag_sourcebias.explain.data import ExplainConfig
from rag_sourcebias.explain.vectors import spectrum as spectra
from rag_sourcebias.infer.texts import text_statistics as statistics_of
from rag_sourcebias.intake.answers import read_answer_texts
from rag_sourcebias.intake.styled import load_styled_sample, read_styled_texts

Columns = dict[str, Any]
SEED = 0
PAIRS = 800


@cache
def explained(data: str, split: str, model: str | None) -> Any:
    found = encoder(model) if model else None
    return explain_sources(dataset(data, split), encoder=found).sources[0]


def modes(data: str, split: str = "test") -> Columns:
    """Where the distributions of Jaccard index and overlap are highest ([K] Fig. 3)."""
    texts = explained(data, split, None).texts
    y = []
    for found in (texts.jaccard, texts.overlap):
        counts = np.convolve(found.counts, np.ones(5) / 5, mode="same")  # 40 bins: ± .05
        best = int(counts.argmax())
        y.append(float((found.edges[best] + found.edges[best + 1]) / 2))
    return {"x": ["Jaccard", "overlap"], "y": y}


def twin_cosines(data: str, model: str, split: str = "test", mismatched: bool = False) -> Columns:
    """Share of pairs with a cosine above .95, and the median cosine ([K] Fig. 5).

    ``mismatched``: each rewrite beside the original of another document.
    """
    if mismatched:
        human, other = pair_vectors(data, model, split, PAIRS)
        cosines = (human * np.roll(other, 1, axis=0)).sum(axis=1)
        share = float((cosines > 0.95).mean())
        return {"x": ["share above .95", "median"], "y": [share, float(np.median(cosines))]}
    cosine = explained(data, split, model).cosine
    above = cosine.counts[cosine.edges[:-1] >= 0.95 - 1e-9].sum() / cosine.counts.sum()
    return {"x": ["share above .95", "median"], "y": [float(above), cosine.median]}


@cache
def pair_vectors(data: str, model: str, split: str, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of both versions of some pairs, drawn at random."""
    corpus = dataset(data, split).corpus
    source = source_of(corpus.tags, None, "human")
    rows = complete_pairs(corpus, "human", source)
    drawn = np.random.default_rng(SEED).permutation(len(rows.codes))[:limit]
    human, other = (
        encoder(model).encode_documents([corpus.texts[i] for i in side[drawn]])
        for side in (rows.baseline, rows.source)
    )
    return human, other


def spectrum(
    data: str,
    model: str,
    options: Sequence[str] = (),
    split: str = "test",
    limit: int = PAIRS,
    shuffled: bool = False,
) -> Columns:
    """Relative singular values, first tenth and last half, in percent ([K] Fig. 6).

    The last half of 384 values takes 640 pairs: a resample holds 0.6 of them. ``shuffled``: which
    vector of a pair is the human one is drawn at random.
    """
    human, other = pair_vectors(data, model, split, limit)
    if shuffled:
        swapped = np.random.default_rng(SEED).random((len(human), 1)) < 0.5
        human, other = np.where(swapped, other, human), np.where(swapped, human, other)
    found = spectra(
        human,
        other,
        resamples=50,
        centre="centre" in options,
        normalise="normalise" in options,
        rng=SEED,
    )
    if found.tail is None:
        raise NotMadeError("too few pairs for the tail of a spectrum")
    parts = (found.head, found.tail)
    return {
        "x": ["head", "tail"],
        "y": [p.estimate for p in parts],
        "lower": [p.lower for p in parts],
        "upper": [p.upper for p in parts],
        "note": f"{found.n} pairs",
    }


@cache
def read_by_model(data: str, model: str, limit: int) -> Any:
    from rag_sourcebias.explain.command import perplexity_models

    models = perplexity_models([model], cache=cache_dir())
    config = ExplainConfig(limit=limit, perplexity_limit=limit)
    report = explain_sources(dataset(data), perplexities=models, config=config)
    return report.sources[0].perplexity[0]


def perplexity(data: str, model: str, what: str, limit: int = 160) -> Columns:
    """Mean log-perplexity of both versions, their gap, or the theorem's ε ([K] Fig. 7, App. B)."""
    found = read_by_model(data, model, limit)
    gap = found.gap
    if what == "means":
        return {"x": ["human", "LLM"], "y": [gap.mean_human, gap.mean_other]}
    if what == "epsilon":
        if found.bounded is None:
            raise NotMadeError("a masked model reads no text after another")
        mean = found.bounded.mean
        upper = found.bounded.upper  # a quantile, for which there is no interval
        return {
            "x": ["mean of ε", "ε that holds for 95 %"],
            "y": [mean.estimate, upper],
            "lower": [mean.lower, upper],
            "upper": [mean.upper, upper],
        }
    pairs = [("as they are", gap.gap), ("at equal length", gap.gap_equal_length)]
    rows = [(x, i.estimate, i.lower, i.upper) for x, i in pairs if i is not None]
    x, y, lower, upper = (list(column) for column in zip(*rows, strict=True))
    return {"x": x, "y": y, "lower": lower, "upper": upper, "note": f"{gap.n} pairs"}


def styled(texts: str) -> StyledTexts:
    if texts == "sample":
        return load_styled_sample()
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    return read_styled_texts(root / texts / "styles.jsonl", name=texts)


@cache
def described(texts: str, side: str) -> tuple:
    if texts.startswith("EVOUNA "):
        return answers_described(texts.removeprefix("EVOUNA "))
    found = styled(texts)
    versions = found.documents if side == "documents" else found.queries
    first = next(iter(versions))
    return statistics_of(versions, versions[first], original=first, rng=SEED)


def answers_described(name: str) -> tuple:
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    found = read_answer_texts(root / "evouna" / f"{name}.json.gz", name=name)
    groups: dict[str, list[str]] = {}
    references: dict[str, list] = {}
    for system, answer, reference, right in zip(
        found.systems, found.answers, found.references, found.correct, strict=True
    ):
        if right == 1 and answer:
            groups.setdefault(system, []).append(answer)
            references.setdefault(system, []).append(reference)
    return statistics_of(groups, references, sample=200, rng=SEED)


def text_statistics(texts: str, statistic: str, side: str = "documents") -> Columns:
    """Mean of one statistic by style or system."""
    found = [s for s in described(texts, side) if s.name == statistic]
    if not found:
        raise NotMadeError(f"no {statistic} of {texts}")
    return {"x": [s.group for s in found], "y": [s.average for s in found]}
