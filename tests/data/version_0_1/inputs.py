"""What the files were made of, for the code of both versions."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

START = 1_800_000_000.0
WORDS = [f"word{i}" for i in range(40)]
LLM = "llm:x"
TRAIN = (
    *("debias", "train", "data", "--encoder", "plain", "--weight", "0.1", "--steps", "9"),
    *("--batch-size", "8", "--learning-rate", "0.02", "--checkpoint-every", "3"),
)


class Bins:
    """An encoder: counts of words in hashed bins."""

    def __init__(self, dimension: int = 12, *, salt: str = "") -> None:
        self.name, self.dimension, self.salt = "bins", dimension, salt
        self.n_texts = 0

    @property
    def fingerprint(self) -> str:
        return f"bins-{self.dimension}{self.salt}"

    @property
    def settings(self) -> Mapping[str, str]:
        return {"model": self.name}

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.n_texts += len(texts)
        rows = np.full((len(texts), self.dimension), 0.25, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[zlib.crc32(f"{self.salt}{word}".encode()) % self.dimension] += 1
        return rows


class Writer:
    """A language model that writes what it is given, the other way round."""

    name, fingerprint, max_concurrency = "writer", "fake:writer", 1

    def __init__(self) -> None:
        self.n_asked = 0

    @property
    def settings(self) -> dict[str, str]:
        return {"model": self.name}

    def complete(self, prompt: str, *, max_tokens: int, temperature: float, seed: int) -> Any:
        from rag_sourcebias.types.completions import Completion

        self.n_asked += 1
        words = prompt.split()[:-9:-1]
        return Completion(text=" ".join(words), prompt_tokens=9, completion_tokens=len(words))

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> Any:
        from rag_sourcebias.types.completions import LabelScores

        self.n_asked += 1
        return LabelScores(logprobs=tuple(-0.5 - i for i in range(len(labels))), prompt_tokens=7)


def requests() -> list[Any]:
    """Return what a completer was asked."""
    from rag_sourcebias.types.completions import Request

    texts = [Request(prompt=f"one two three {i}", sample=i) for i in range(3)]
    return [*texts, Request(prompt="Is it?", labels=("yes", "no"))]


def events(n: int = 120) -> list[Any]:
    """Return retrievals of which the share by language models rises."""
    from rag_sourcebias.instrument import RetrievalEvent, hash_query
    from rag_sourcebias.types import DocTags, RankedList

    rng = np.random.default_rng(0)
    kinds = (
        DocTags(source="human", style="formal"),
        DocTags(source=LLM, style="ünformal"),
        DocTags(),
    )
    found = []
    for i in range(n):
        share = 0.2 if i < 70 else 0.8
        chosen = rng.choice(3, size=5 if i % 40 else 0, p=[0.9 - share, share, 0.1])
        ids = tuple(f"d{int(row)}-{rank}" for rank, row in enumerate(chosen))
        query = hash_query(f"query {i % 50}", key=b"0123456789abcdef")
        found.append(
            RetrievalEvent(
                ranked=RankedList(query_id=query, doc_ids=ids),
                tags=tuple(kinds[int(row)] for row in chosen),
                labels={"collection": "docs" if i % 3 else "mail", "session": f"s{i // 4}"},
            )
        )
    return found


def timed(n: int = 120) -> list[tuple[Any, float]]:
    """Return retrievals with their times."""
    return [(event, START + 30.0 * i) for i, event in enumerate(events(n))]


def monitors() -> dict[str, Any]:
    """Return a new monitor of each kind."""
    from rag_sourcebias.monitor import (
        Aggregation,
        CorpusShare,
        PoolShare,
        ReferenceWindow,
        SkewMonitor,
        TagErrors,
    )

    # Today's default tests blocks, which have also taken the place of the rule of changes.
    today = "test" in inspect.signature(SkewMonitor).parameters
    old: dict[str, Any] = {"test": "independent"} if today else {}
    changes = {} if today else {"change_run_length": 500.0, "change_window": 9}
    errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other=LLM)
    return {
        "corpus": SkewMonitor(baseline=CorpusShare({"human": 0.6, LLM: 0.4}), **old, **changes),
        "pool": SkewMonitor(baseline=PoolShare(shown=2), groups=["human", LLM], labels=(), **old),
        "reference": SkewMonitor(
            baseline=ReferenceWindow(n=20),
            by="style",
            **old,
            aggregate=Aggregation(key="session", max_seconds=300.0, remember=0),
        ),
        "watched": SkewMonitor(tag_errors=errors, browsing="top-3", measures=("exposure",), **old),
    }


def canaries() -> Any:
    """Return queries of which the relevant documents exist twice."""
    from rag_sourcebias.monitor import CanaryQueries

    names = [f"q{i}" for i in range(24)]
    rows = [(q, f"{s}/{q}", s, 1) for q in names for s in ("human", LLM)]
    return CanaryQueries.from_tables(
        {q: f"text of {q}" for q in names}, rows, human="human", llm=LLM
    )


def probe(folder: Path) -> Any:
    """Return a probe of a retriever that puts two of three rewrites first."""
    from rag_sourcebias.monitor import CanaryProbe

    def ask(text: str) -> list[str]:
        name = text.removeprefix("text of ")
        twins = [f"human/{name}", f"{LLM}/{name}"]
        return twins if int(name[1:]) % 3 == 0 else twins[::-1]

    return CanaryProbe(
        ask,
        canaries(),
        per_round=10,
        log=folder / "canary.jsonl",
        labels={"collection": "docs"},
        rng=3,
        clock=lambda: START,
    )


def documents(n: int = 12) -> list[dict[str, str]]:
    """Return rows of a corpus."""
    rng = np.random.default_rng(1)
    return [
        {
            "_id": f"d{i}@{'human' if i % 2 else 'x'}",
            "text": " ".join(rng.choice(WORDS, 6)),
            "url": f"https://{'news' if i % 3 else 'blog'}.example.org/{i}",
        }
        for i in range(n)
    ]


def paired(n: int = 40) -> Any:
    """Return a paired data set: rewrites have other words beside those they keep."""
    from rag_sourcebias.types import Corpus, Dataset, DocTags, Qrels, Query, TagTable

    rng = np.random.default_rng(2)
    tags, texts, queries, judged = [], [], [], []
    for i in range(n):
        topic = [WORDS[i], *rng.choice(WORDS, 3)]
        for source in ("human", LLM):
            tags.append((f"p{i}@{source}", DocTags(source=source, pair_id=f"p{i}")))
            texts.append(
                " ".join([*topic, *rng.choice(WORDS[:20], 2), *["what"] * (source == LLM)])
            )
            judged.append((f"q{i}", f"p{i}@{source}", 1))
        queries.append(Query(query_id=f"q{i}", text=f"what {' '.join(topic[:2])}"))
    corpus = Corpus(texts=tuple(texts), tags=TagTable.from_tags(tags))
    return Dataset(
        name="small",
        corpus=corpus,
        queries=tuple(queries),
        qrels=Qrels.from_rows(judged),
        design="rewrites",
    )


def answers() -> Any:
    """Return scores of answers that long ones lose by."""
    from rag_sourcebias.types import AnswerScores

    rng = np.random.default_rng(3)
    n, k = 60, 3
    system = np.tile(np.arange(k), n)
    words = 1 + rng.poisson(np.array([2.0, 10.0, 30.0])[system])
    correct = (rng.random(n * k) < 0.8).astype(float)
    scores = 0.4 * correct - 0.15 * np.log1p(words) + 0.05 * rng.normal(size=n * k)
    return AnswerScores(
        question_ids=tuple(f"q{i}" for i in np.repeat(np.arange(n), k)),
        systems=tuple("abc"[i] for i in system),
        scores=scores,
        correct=correct,
        words=words,
    )


def twins() -> Any:
    """Return scores of both versions of documents."""
    from rag_sourcebias.mitigate.parity_fit import ScoredTwins

    rng = np.random.default_rng(4)
    worth = rng.normal(0.5, 0.1, 300)
    return ScoredTwins(
        source=LLM,
        baseline_scores=worth + rng.normal(0, 0.03, 300),
        source_scores=0.9 * worth + 0.1 + rng.normal(0, 0.03, 300),
        queries=np.arange(300) // 3,
    )
