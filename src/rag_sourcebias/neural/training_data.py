"""The model card of a debiased model."""

import hashlib
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from rag_sourcebias.core.codec import read_fitted, write_fitted
from rag_sourcebias.core.data import Corpus, Dataset, IntArray, Query
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    require,
    require_at_least,
    require_one_of,
)
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.tags import TrainingPairs
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.neural.hinge import Reduction, TwinHinge
from rag_sourcebias.retrieval.cache import Similarity
from rag_sourcebias.retrieval.search import DenseSpec

# Settings of a debiased training.


Precision = Literal["auto", "float32", "bf16"]
RankColumnNames = Literal["human", "both", "all"]

_MINE_DEPTH = 50  # of the ranking that hard negatives are drawn from: few are relevant unseen


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How an encoder is trained to treat twins alike ([K] Eq. 1–2).

    Parameters
    ----------
    debias_weight, reduction, scale, similarity
        As for :class:`~rag_sourcebias.neural.hinge.TwinHinge`. ``scale`` is that of the hinge; the
        ranking loss, ``MultipleNegativesRankingLoss``, has its usual one (20 for cosine, 1 for
        dot).
    rank_columns : {"human", "both", "all"}
        As for :class:`~rag_sourcebias.neural.losses.DebiasedRankingLoss`.
    batch_size : int
        Pairs in a step; at least 2 without hard negatives.
    epochs, max_steps : int, optional
        One of them; one epoch where neither is given.
    learning_rate : float
        Peak; falls linearly to 0 after the warm-up.
    warmup_ratio : float
        Share of the steps in which the learning rate rises, in [0, 1).
    max_length : int, optional
        Tokens after which training texts are cut. The trained model keeps its own maximum length.
    hard_negatives : int
        Per pair and source, out of the 50 documents that the untrained encoder ranks highest in
        the corpus of each source. 0 leaves the other documents of a batch.
    min_grade : int
        Lowest relevance grade that makes a pair a positive.
    seed : int
        Of the order of the data, the choice of negatives and dropout.
    precision : {"auto", "float32", "bf16"}
        ``"auto"`` is bf16 on a GPU that has it, else float32.
    eval_every : int, optional
        Steps between two points of the history; without it only start and end are recorded.
    checkpoint_every : int
        Steps after which training can be taken up again; the last two checkpoints are kept.

    Raises
    ------
    DataError
        If a value is not one of these, or two contradict each other.
    """

    debias_weight: float = 0.01
    reduction: Reduction = "sum"
    scale: float = 20.0
    similarity: Similarity = "cosine"
    rank_columns: RankColumnNames = "human"
    batch_size: int = 16
    epochs: int | None = None
    max_steps: int | None = None
    learning_rate: float = 2e-5
    warmup_ratio: float = 0.1
    max_length: int | None = None
    hard_negatives: int = 1
    min_grade: int = 1
    seed: int = 0
    precision: Precision = "auto"
    eval_every: int | None = None
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        _ = self.hinge  # says which of its settings is refused
        require_one_of("rank_columns", self.rank_columns, get_args(RankColumnNames))
        require_one_of("precision", self.precision, get_args(Precision))
        require_at_least(
            1,
            batch_size=self.batch_size,
            epochs=self.epochs,
            max_steps=self.max_steps,
            max_length=self.max_length,
            min_grade=self.min_grade,
            eval_every=self.eval_every,
            checkpoint_every=self.checkpoint_every,
        )
        require_at_least(0, hard_negatives=self.hard_negatives, seed=self.seed)
        require(
            (
                0 < self.learning_rate < math.inf,
                f"learning_rate is {self.learning_rate!r}; accepted is a number above 0",
            ),
            (
                0 <= self.warmup_ratio < 1,
                f"warmup_ratio is {self.warmup_ratio!r}; accepted is a number in [0, 1)",
            ),
            (
                self.epochs is None or self.max_steps is None,
                f"epochs is {self.epochs} and max_steps {self.max_steps}; give one of them",
            ),
            (
                self.batch_size > 1 or self.hard_negatives or self.rank_columns == "all",
                "there is nothing to rank in a batch of 1 without hard negatives; give batch_size "
                "or hard_negatives of at least 2 or 1",
            ),
        )

    @property
    def hinge(self) -> TwinHinge:
        """The penalty on twins."""
        return TwinHinge(
            weight=self.debias_weight,
            reduction=self.reduction,
            scale=self.scale,
            similarity=self.similarity,
        )

    def to_dict(self) -> dict[str, str]:
        """Return what a report states, as text; settings left out are not listed."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.epochs is None and self.max_steps is None:
            values["epochs"] = 1
        return {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in values.items()
            if value is not None
        }


# The order of a training: which pairs make up each step, known before it starts.


def plan_batches(pairs: TrainingPairs, settings: TrainingSettings) -> IntArray:
    """Rows of each step, shape (steps, batch size); the same for the same seed.

    Each epoch goes through the rows in an order of its own. No batch holds a query twice, nor a
    document that is relevant to another query of the batch: losses that take the other documents
    of a batch as negatives would push it away. Rows that fit into no full batch are left out of
    that epoch.

    Raises
    ------
    InsufficientDataError
        If the rows do not fill one batch.
    """
    relevant: dict[str, set[int]] = {}
    for query_id, twin in zip(pairs.query_ids, pairs.rows.tolist(), strict=True):
        relevant.setdefault(query_id, set()).add(twin)
    epochs = settings.epochs or (1 if settings.max_steps is None else None)
    steps: list[list[int]] = []
    epoch = 0
    while epoch != epochs and (settings.max_steps is None or len(steps) < settings.max_steps):
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(pairs)).tolist()
        packed = _pack(order, pairs, relevant, settings.batch_size)
        if not packed:
            raise InsufficientDataError(
                f"{len(pairs)} (query, pair) rows of {len(relevant)} queries and "
                f"{len(pairs.twins)} pairs do not fill one batch of {settings.batch_size} in which "
                "every query is another one and every document is relevant to one of them only; "
                "lower batch_size or give more data",
                n=len(pairs),
                n_needed=settings.batch_size,
            )
        steps += packed
        epoch += 1
    return np.array(steps[: settings.max_steps], dtype=np.int64)


def _pack(
    order: list[int], pairs: TrainingPairs, relevant: dict[str, set[int]], size: int
) -> list[list[int]]:
    """Fill batches in order; what clashes waits for the next batch."""
    batches: list[list[int]] = []
    waiting = order[::-1]
    while len(waiting) >= size:
        batch: list[int] = []
        later: list[int] = []
        queries: set[str] = set()
        twins: set[int] = set()
        taken: set[int] = set()  # twins that are relevant to a query of the batch
        while waiting and len(batch) < size:
            row = waiting.pop()
            query, twin = pairs.query_ids[row], int(pairs.rows[row])
            if query in queries or twin in taken or not twins.isdisjoint(relevant[query]):
                later.append(row)
                continue
            batch.append(row)
            queries.add(query)
            twins.add(twin)
            taken |= relevant[query]
        if len(batch) < size:
            break
        batches.append(batch)
        waiting += later[::-1]
    return batches


# Hard negatives: documents an encoder confuses with the relevant ones.


def mine_negatives(
    dataset: Dataset,
    pairs: TrainingPairs,
    rows: IntArray,
    encoder: Encoder,
    *,
    per_source: int,
    seed: int,
    depth: int,
) -> IntArray:
    """Draw negatives of each row from what the encoder ranks highest for its query.

    A document with a grade above 0, every version of it, a blank document and a copy of the
    row's own texts are never drawn. Where the ranking has too few others, random documents of the
    source fill up.

    Parameters
    ----------
    dataset : Dataset
        The one the pairs come from.
    rows : int64 array of shape (m,)
        Rows of ``pairs``.
    encoder : Encoder
    per_source : int
    seed : int
    depth : int
        Documents of each source's ranking that are drawn from.

    Returns
    -------
    int64 array of shape (m, 2 · per_source)
        Rows of the corpus: of the baseline, then of the other source.

    Raises
    ------
    DataError
        If a source has fewer documents that may be drawn.
    """
    rng = np.random.default_rng(seed)
    wanted = dict.fromkeys(pairs.query_ids[row] for row in rows)
    queries = [query for query in dataset.queries if query.query_id in wanted]
    never = _relevant_rows(dataset, wanted)
    tags = dataset.corpus.tags
    columns = []
    for source in (pairs.twins.baseline, pairs.twins.source):
        ranked = _ranked(dataset.corpus, source, queries, encoder, depth)
        pool = np.flatnonzero(tags.source_codes == tags.sources.index(source)).tolist()
        drawn = []
        for row in rows.tolist():
            query_id, twin = pairs.query_ids[row], int(pairs.rows[row])
            own = (pairs.twins.baseline_texts[twin], pairs.twins.source_texts[twin])
            barred = never[query_id]
            best = _accepted(ranked[query_id], barred, own, dataset.corpus.texts)
            if len(best) >= per_source:
                drawn.append(rng.choice(best, per_source, replace=False).tolist())
                continue
            rest = _accepted(pool, {*barred, *best}, own, dataset.corpus.texts)
            missing = per_source - len(best)
            if len(rest) < missing:
                raise DataError(
                    f"query {query_id!r} has {len(best) + len(rest)} documents of one source that "
                    f"are not relevant to it, but hard_negatives asks for {per_source}; lower it "
                    "(0 takes the other documents of a batch), or give a larger corpus"
                )
            drawn.append([*best, *rng.choice(rest, missing, replace=False)])
        columns.append(np.array(drawn, dtype=np.int64))
    return np.concatenate(columns, axis=1)


def _accepted(
    candidates: Sequence[int], barred: Collection[int], own: Collection[str], texts: Sequence[str]
) -> list[int]:
    """Leave out what is barred or blank, and copies of the row's own texts."""
    return [
        row
        for row in candidates
        if row not in barred and texts[row] not in own and texts[row].strip()
    ]


def _relevant_rows(dataset: Dataset, queries: dict[str, None]) -> dict[str, set[int]]:
    """Rows of the corpus that are relevant to each query, with all their versions."""
    tags, qrels = dataset.corpus.tags, dataset.qrels
    versions: dict[int, list[int]] = {}
    for row, code in enumerate(tags.pair_codes.tolist()):
        versions.setdefault(code, []).append(row)
    found: dict[str, set[int]] = {query_id: set() for query_id in queries}
    positions = tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    for code, row, grade in zip(
        qrels.query_codes.tolist(), positions.tolist(), qrels.grades.tolist(), strict=True
    ):
        query_id = qrels.query_ids[code]
        if row < 0 or grade < 1 or query_id not in found:
            continue
        found[query_id].add(row)
        pair = int(tags.pair_codes[row])
        found[query_id].update(versions[pair] if pair >= 0 else ())
    return found


def _ranked(
    corpus: Corpus, source: str, queries: Sequence[Query], encoder: Encoder, depth: int
) -> dict[str, list[int]]:
    """Rows of the best documents of one source for each query."""
    part = corpus.of_source(source)
    run = DenseSpec(encoder).build(part).retrieve(queries, min(depth, len(part)))
    rows = corpus.tags.rows_for(run.doc_ids)[run.doc_codes].tolist()
    return {
        query_id: rows[run.offsets[i] : run.offsets[i + 1]]
        for i, query_id in enumerate(run.query_ids)
    }


# The columns of texts that a training goes through.


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingColumns:
    """Texts of the rows that are trained on, and the rows of each step.

    Parameters
    ----------
    texts : dict of str to list of str
        ``query``, ``human``, ``llm``, ``negative_1``, … in this order.
    batches : int64 array of shape (steps, batch size)
        Rows of the columns.
    """

    texts: dict[str, list[str]]
    batches: IntArray

    def __len__(self) -> int:
        return len(self.texts["query"])


def training_columns(
    dataset: Dataset,
    pairs: TrainingPairs,
    settings: TrainingSettings,
    encoder: Encoder,
) -> TrainingColumns:
    """Lay out the rows that the planned steps use.

    Parameters
    ----------
    encoder : Encoder
        Untrained: finds the hard negatives.

    Raises
    ------
    InsufficientDataError, DataError
        As :func:`plan_batches` and :func:`mine_negatives`.
    """
    plan = plan_batches(pairs, settings)
    rows, flat = np.unique(plan, return_inverse=True)
    twins = pairs.twins
    position = pairs.rows[rows].tolist()
    texts = {
        "query": [pairs.queries[row] for row in rows],
        "human": [twins.baseline_texts[row] for row in position],
        "llm": [twins.source_texts[row] for row in position],
    }
    if settings.hard_negatives:
        negatives = mine_negatives(
            dataset,
            pairs,
            rows,
            encoder,
            per_source=settings.hard_negatives,
            seed=settings.seed,
            depth=_MINE_DEPTH,
        )
        for number, column in enumerate(negatives.T.tolist(), start=1):
            texts[f"negative_{number}"] = [dataset.corpus.texts[row] for row in column]
    return TrainingColumns(texts=texts, batches=flat.reshape(plan.shape))


def data_identity(dataset: Dataset, pairs: TrainingPairs) -> str:
    """Return a string that changes with the texts and judgments a training would see."""
    digest = hashlib.blake2b(digest_size=12)
    for part in (dataset.corpus.texts, pairs.query_ids, pairs.queries, pairs.twins.pair_ids):
        digest.update(f"{len(part)}\0".encode())
        for text in part:
            digest.update(f"{text}\0".encode(errors="surrogatepass"))
    for array in (dataset.corpus.tags.source_codes, pairs.rows, dataset.qrels.grades):
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{dataset.name} ({digest.hexdigest()})"


# How a model was trained, kept in its folder.


HISTORY_FILE = "training_history.json"
_KIND = "training history"
_SCHEMA_VERSION = 1


def write_history(history: TrainingHistory, folder: Path) -> None:
    """Add the history to a model folder.

    Raises
    ------
    DataError
        If it cannot be written.
    """
    write_fitted(history, folder / HISTORY_FILE, kind=_KIND, version=_SCHEMA_VERSION)


def read_history(folder: str | Path) -> TrainingHistory:
    """Read how a model that :func:`~rag_sourcebias.neural.train.train_debiased` wrote was trained.

    Raises
    ------
    DataError
        If the folder is no such model.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    return read_fitted(
        TrainingHistory,
        Path(folder).expanduser() / HISTORY_FILE,
        kind=_KIND,
        version=_SCHEMA_VERSION,
    )


# The model card of a debiased model.


_HEAD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- sentence-similarity
- feature-extraction
- source-bias
---

# {name}

{model}, trained to score a document written by a person and its rewrite by a language model alike
(loss: ranking loss + {weight:g} × hinge on twins, [Dai et al., KDD
2024](https://arxiv.org/abs/2310.20501)).

## Use

It is loaded as any model of sentence-transformers, by the path of this folder:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/{name}")
queries = model.encode_query(["a question"])
documents = model.encode_document(["a document"])
scores = model.similarity(queries, documents)
```

Vectors of the model it was trained from do not mix with its vectors: embed an index anew.

"""


def model_card(history: TrainingHistory, *, model: str, data: str) -> str:
    """Return the text of a README.

    Parameters
    ----------
    model : str
        Trained from.
    data : str
        Name of the data set.
    """
    rows = [f"| {_cell(key)} | {_cell(value)} |\n" for key, value in history.settings.items()]
    return (
        _HEAD.format(name=history.name, model=model, weight=history.debias_weight)
        + "Measure its skew on data of your own before it is used: over-correction comes early, "
        "and what was learnt on one data set may not hold on another.\n"
        f"\n## Training\n\n{history.n_pairs} triples (query, human document, LLM document) of "
        f"{data}, {history.n_steps} steps.\n\n| setting | value |\n| --- | --- |\n" + "".join(rows)
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
