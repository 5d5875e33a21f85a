"""A paired corpus of several shards, and reports compared number by number."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.source.page import SkewReport

WORDS = [f"word{i}" for i in range(60)]
N_PAIRS = 1_500


def paired_data(seed: int = 3) -> Dataset:
    """Paired documents, some of them copies, of two sources and more rows than two parts."""
    rng = np.random.default_rng(seed)
    human = [" ".join(rng.choice(WORDS, rng.integers(5, 14))) for _ in range(N_PAIRS)]
    human[40:44] = [human[39]] * 4
    llm = [
        text if i % 50 == 0 else " ".join([*text.split()[::-1], *rng.choice(WORDS, 2)])
        for i, text in enumerate(human)
    ]
    items = [
        (f"{i}@{source}", DocTags(source=source, pair_id=str(i), origin="declared"))
        for source in ("human", "llm:x")
        for i in range(N_PAIRS)
    ]
    queries = tuple(
        Query(query_id=f"q{i}", text=" ".join(rng.choice(human[i].split(), 3))) for i in range(40)
    )
    judged = [
        (f"q{i}", f"{j}@{source}", grade)
        for i in range(40)
        for j, grade in ((i, 2), (i + 40, 1))
        for source in ("human", "llm:x")
    ]
    return Dataset(
        name="folder",
        corpus=Corpus(texts=(*human, *llm), tags=TagTable.from_tags(items)),
        queries=queries,
        qrels=Qrels.from_rows(judged),
        design="rewrites",
    )


class Once(HashingEncoder):
    """As a cache in memory does: what was encoded before is not encoded again."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, np.ndarray] = {}

    def encode_documents(self, texts: Any) -> np.ndarray:
        missing = [text for text in texts if text not in self.known]
        if missing:
            self.known.update(zip(missing, self._encode(missing), strict=True))
        return np.stack([self.known[text] for text in texts])


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from flat(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from flat(one, f"{path}[{key}]")
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            yield from flat(one, f"{path}[{number}]")
    elif isinstance(value, np.ndarray):
        yield path, (value.dtype.str, value.tobytes())
    else:
        yield path, repr(value)


ELSEWHERE = re.compile(r"\.created|\.environment|.*\.evidence\[\d+\]\.(asked|\w+\.(text|length))$")


def assert_same(one: SkewReport, other: SkewReport) -> None:
    """Compare all but dates, versions, and the texts of evidence: those of shards are not kept."""
    left, right = dict(flat(one)), dict(flat(other))
    differ = {k for k in left.keys() | right.keys() if left.get(k) != right.get(k)}
    assert {k for k in differ if not ELSEWHERE.match(k)} == set()
    assert any(".evidence[" in k for k in left)
    assert len(left) > 300
