"""Encoders trained on the pairs of all rewriters but one, each kept when it is finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.tags import training_pairs
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.neural.train import train_debiased
from rag_sourcebias.neural.training_data import TrainingSettings, plan_batches

MODEL = "all-MiniLM-L6-v2"
DTYPE = "bfloat16"  # trained and judged in it, and so is the model as it was
STEPS, BATCH, LENGTH, SEED = 50, 8, 128, 0
VARIANTS: dict[str, dict] = {
    "training, hinge": {"debias_weight": 0.01},
    "training, rewrite as negative": {"debias_weight": 0.0, "rank_columns": "all"},
}
"""The weight is the default of the package and was not searched. In the second, the rewrite of the
relevant document is the first negative of its query."""

Fitting = dict[tuple[str, str], tuple[Dataset, set[str]]]
"""By name and LLM source: the data, and the pairs to leave out of them."""


def pooled(fitting: Fitting, most: int) -> Dataset:
    """At most so many judged pairs of each rewriter and set, as if one LLM had written them all.

    A query keeps its id through the rewriters, so that no batch has two versions of what it seeks.
    """
    rng, texts, tags, judged = np.random.default_rng(SEED), [], [], []
    queries: dict[str, str] = {}
    known: set[str] = set()
    for (name, source), (data, exclude) in fitting.items():
        pairs = training_pairs(data, source=source, exclude=exclude)
        twins = pairs.twins
        for row in rng.permutation(len(pairs.queries))[:most].tolist():
            at = int(pairs.rows[row])
            pair = f"{name}/{source}/{twins.pair_ids[at]}"
            query = f"{name}/{pairs.query_ids[row]}"
            queries[query] = pairs.queries[row]
            judged.append((query, f"{pair}/human", 1))
            if pair in known:
                continue
            known.add(pair)
            for text, by in ((twins.baseline_texts[at], "human"), (twins.source_texts[at], "llm")):
                texts.append(text)
                tags.append((f"{pair}/{by}", DocTags(source=by, pair_id=pair, origin="declared")))
    return Dataset(
        name="pairs of several rewriters",
        corpus=Corpus(texts=tuple(texts), tags=TagTable.from_tags(tags)),
        queries=tuple(Query(query_id=query, text=text) for query, text in queries.items()),
        qrels=Qrels.from_rows(judged),
    )


def settings_of(variant: str) -> TrainingSettings:
    return TrainingSettings(
        batch_size=BATCH,
        max_steps=STEPS,
        max_length=LENGTH,
        hard_negatives=0,
        seed=SEED,
        precision="bf16",
        checkpoint_every=20,
        **VARIANTS[variant],
    )


def without_trained(judged: Dataset, data: Dataset) -> Dataset:
    """Leave out the queries that were trained on with another rewriter's text: outfox has three.

    Both variants train on the same rows.
    """
    pairs = training_pairs(data)
    rows = np.unique(plan_batches(pairs, settings_of(next(iter(VARIANTS)))))
    used = {pairs.query_ids[row] for row in rows.tolist()}
    kept = (query for query in judged.queries if f"{judged.name}/{query.query_id}" not in used)
    return replace(judged, queries=tuple(kept))


def trained(
    variants: Iterable[str],
    place: Path,
    data: Callable[[], Dataset],
    say: Callable[[str], None],
) -> dict[str, SentenceEncoder]:
    """Train what is not there, and return the encoders by variant."""
    found = {}
    for variant in variants:
        folder = place / variant.replace(", ", "-").replace(" ", "-")
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            say(f"training {folder}")
            train_debiased(MODEL, data(), folder, settings=settings_of(variant), on_stage=say)
        found[variant] = SentenceEncoder(folder, dtype=DTYPE, name=variant)
    return found
