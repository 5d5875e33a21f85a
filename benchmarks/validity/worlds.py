"""Worlds of known truth for rankings: who is relevant, and a ranker that prefers a source or not.

A world fixes queries, relevant documents, grades and tags; every draw makes new rankings. In a
null world the ranker does not see sources, or prefers either side equally often; its twin has a
preference planted, of a strength given in standard deviations of the ranking noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """The fixed part of a world of one size.

    ``relevant`` has one row (query, document) per judged document and ``source`` its source, 0
    for human; ``distractors`` documents per query are relevant to none.
    """

    qrels: Qrels
    tags: TagTable
    query: IntArray
    source: IntArray
    grade: IntArray
    pair: IntArray
    distractors: int
    clusters: dict[str, str] | None = None
    cluster_of: IntArray | None = None
    doc_ids: tuple[str, ...] = field(default=(), repr=False)


def setting(
    n: int,
    per_query: Callable[[int], list[tuple[int, int, int]]],
    *,
    sources: tuple[str, ...] = ("human", "llm:a"),
    distractors: int = 8,
    cluster_of: IntArray | None = None,
) -> Setting:
    """Build the fixed part: ``per_query(i)`` lists (source, grade, pair) of relevant documents.

    A pair judged for several queries is one document per source.
    """
    rows, docs, tags = [], {}, []
    for i in range(n):
        for source, grade, pair in per_query(i):
            name = f"p{pair}s{source}"
            if name not in docs:
                docs[name] = len(docs)
                tags.append((name, DocTags(source=sources[source], pair_id=f"p{pair}")))
            rows.append((f"q{i}", name, grade))
    extra = [f"q{i}x{j}" for i in range(n) for j in range(distractors)]
    tags += [(x, DocTags(source=sources[j % 2])) for j, x in enumerate(extra)]
    qrels = Qrels.from_rows(rows)
    clusters = None
    if cluster_of is not None:
        clusters = {f"q{i}": f"c{cluster}" for i, cluster in enumerate(cluster_of)}
    names = [qrels.doc_ids[d] for d in qrels.doc_codes]
    return Setting(
        qrels=qrels,
        tags=TagTable.from_tags(tags),
        query=qrels.query_codes.astype(np.int64),
        source=np.array([int(name.partition("s")[2]) for name in names]),
        grade=qrels.grades.astype(np.int64),
        pair=np.array([int(name[1:].partition("s")[0]) for name in names]),
        distractors=distractors,
        clusters=clusters,
        cluster_of=cluster_of,
        doc_ids=(*qrels.doc_ids, *extra),
    )


def ranked(world: Setting, relevant: FloatArray, rng: np.random.Generator, depth: int) -> Run:
    """Rank by scores; ``relevant`` has one per judged row, distractors score N(0, 1)."""
    n = len(world.qrels.query_ids)
    noise = rng.normal(size=n * world.distractors)
    query = np.concatenate((world.query, np.repeat(np.arange(n), world.distractors)))
    doc = np.concatenate(
        (world.qrels.doc_codes.astype(np.int64), len(world.qrels.doc_ids) + np.arange(len(noise)))
    )
    order = np.lexsort((-np.concatenate((relevant, noise)), query))
    query, doc = query[order], doc[order]
    first = np.searchsorted(query, np.arange(n))
    kept = np.arange(len(query)) - first[query] < depth
    sizes = np.bincount(query[kept], minlength=n)
    return Run(
        query_ids=world.qrels.query_ids,
        offsets=np.concatenate(([0], np.cumsum(sizes))),
        doc_codes=doc[kept].astype(np.int32),
        doc_ids=world.doc_ids,
        name="ranker",
    )


def topics(n: int, k: int, rng: np.random.Generator) -> tuple[FloatArray, dict[str, str]]:
    """Draw what topics of Zipf sizes add to k columns, shape (n, k), and the topic of each row."""
    weight = 1 / np.arange(1, 41)
    topic = rng.choice(len(weight), size=n, p=weight / weight.sum())
    return rng.normal(size=(len(weight), k))[topic], {str(i): f"t{t}" for i, t in enumerate(topic)}


@dataclass(frozen=True, kw_only=True)
class World:
    """One kind of world: ``build(n)`` gives its fixed part, ``scores`` what relevant rows score.

    ``favour`` is the strength planted in the twin at 100 queries; it grows as n falls, so that
    the oracle test has about the same power everywhere. ``win_rate`` is that of the LLM copy in
    the null world, ``together`` the number of queries in a cluster.
    ``browsing`` names the attention model where exposure is counted too.

    Where things have uneven sizes (``uneven``), more queries hold little more, so that the same
    strength is planted at all n. ``size`` bars false claims, ``share`` of the oracle's power is to
    be reached from ``least`` queries on, and ``flips`` makes sign flips of clusters the oracle.
    """

    name: str
    about: str
    build: Callable[[int], Setting]
    scores: Callable[[Setting, float, np.random.Generator], FloatArray]
    favour: float = 0.5
    merge: bool = False
    depth: int = 20
    sparse: bool = False
    win_rate: float = 0.5
    together: int = 1
    browsing: tuple[str, ...] = ()
    uneven: bool = False
    size: float = 0.05
    share: float = 0.9
    least: int = 0
    flips: bool = False

    def strength(self, n: int) -> float:
        """Strength planted at n queries."""
        if self.uneven:
            return self.favour
        return self.favour * (100 / n) ** 0.5 * (1 + 10 * self.together / n)

    def draw(self, n: int, strength: float, rng: np.random.Generator) -> tuple[Setting, Run]:
        """Return the fixed part and new rankings."""
        fixed = _built(self, n)
        return fixed, ranked(fixed, self.scores(fixed, strength, rng), rng, self.depth)


@lru_cache(maxsize=64)
def _built(world: World, n: int) -> Setting:
    return world.build(n)


def _blind(fixed: Setting, strength: float, rng: np.random.Generator) -> FloatArray:
    """Relevance, how hard the query is, noise; and the planted preference for human text."""
    hard = rng.normal(size=len(fixed.qrels.query_ids))[fixed.query]
    noise = rng.normal(size=len(fixed.query))
    return 0.6 * fixed.grade + hard + noise + strength * (fixed.source == 0)


def _zeros(fixed: Setting, strength: float, rng: np.random.Generator) -> FloatArray:
    """As blind, but for 85 % of the queries nothing relevant is found."""
    lost = rng.random(len(fixed.qrels.query_ids)) < 0.85
    return _blind(fixed, strength, rng) - 100.0 * lost[fixed.query]


def _tastes(shared: str) -> Callable[[Setting, float, np.random.Generator], FloatArray]:
    """As blind, with a preference of mean 0 that paraphrases, or queries of a document, share.

    Latent correlation .6 between queries of one cluster, or between rankings of one pair.
    """

    def scores(fixed: Setting, strength: float, rng: np.random.Generator) -> FloatArray:
        of = fixed.pair if shared == "pair" else fixed.cluster_of[fixed.query]  # type: ignore[index]
        common = rng.normal(size=int(of.max()) + 1)[of]
        own = rng.normal(size=len(fixed.qrels.query_ids))[fixed.query]
        taste = np.sqrt(0.6) * common + np.sqrt(0.4) * own
        return _blind(fixed, strength, rng) + 1.2 * taste * np.where(fixed.source == 0, 0.5, -0.5)

    return scores


def _reranked(fixed: Setting, strength: float, rng: np.random.Generator) -> FloatArray:
    """Any order at all: relevance plays no part."""
    return rng.normal(size=len(fixed.query)) + strength * (fixed.source == 0)


_GAP = float(1 / np.log2(3) - 1 / np.log2(4))  # between the discounts of ranks 2 and 3


def _skewed(fixed: Setting, strength: float, rng: np.random.Generator) -> FloatArray:
    """Mostly the LLM copy just above the human one, rarely the human one alone: equal means.

    Mostly a document of grade 0, then the LLM copy (.631), then the human one (.5): −.131. With
    probability .131/1.131 the human copy is first and the LLM copy is not found: +1.
    """
    rare = rng.random(len(fixed.qrels.query_ids)) < min(_GAP / (1 + _GAP) + strength, 1.0)
    human = fixed.source == 0
    usual = np.where(fixed.grade == 0, 1e3 + 3, np.where(human, 1e3 + 1, 1e3 + 2))
    alone = np.where(fixed.grade == 0, -1e3, np.where(human, 1e3, -1e3))
    return np.where(rare[fixed.query], alone, usual)


def _one_pair(n: int) -> Setting:
    return setting(n, lambda i: [(0, 1, i), (1, 1, i)])


def _half(n: int) -> Setting:
    return setting(n, lambda i: [(0, 1, i), (1, 1, i)] if i % 2 else [(0, 1, i)])


def _eight_two(n: int) -> Setting:
    return setting(
        n, lambda i: [(0, 1, 10 * i + j) for j in range(8)] + [(1, 1, 10 * i + j) for j in (8, 9)]
    )


def _three(n: int) -> Setting:
    return setting(
        n,
        lambda i: [(s, 1, i) for s in range(4)],
        sources=("human", "llm:a", "llm:b", "llm:c"),
    )


def _graded(n: int) -> Setting:
    """Human documents have the better grades; a ranker by grade is not biased."""
    return setting(
        n,
        lambda i: [
            (0, 3, 6 * i),
            (0, 2, 6 * i + 1),
            (0, 1, 6 * i + 2),
            (1, 3, 6 * i + 3) if i % 3 == 0 else (1, 2, 6 * i + 3),
            (1, 1, 6 * i + 4),
            (1, 1, 6 * i + 5),
        ],
    )


def _shared(n: int) -> Setting:
    """Every pair is judged for three queries."""
    return setting(n, lambda i: [(s, 1, (i + j) % n) for j in range(3) for s in (0, 1)])


def _popular(n: int, things: int, rng: np.random.Generator) -> IntArray:
    """Draw n of many things; the k-th of them in proportion to 1/k (Zipf)."""
    weight = 1 / np.arange(1, things + 1)
    return rng.choice(things, size=n, p=weight / weight.sum())


def _topics(n: int) -> Setting:
    topic = np.unique(_popular(n, 40, np.random.default_rng(n)), return_inverse=True)[1]
    return setting(n, lambda i: [(0, 1, i), (1, 1, i)], cluster_of=topic)


def _hits(n: int) -> Setting:
    rng = np.random.default_rng(n)
    asked = [np.unique(_popular(8, 2_000, rng)) for _ in range(n)]
    return setting(n, lambda i: [(s, 1, int(pair)) for pair in asked[i] for s in (0, 1)])


WORLDS = (
    World(
        name="one pair a query",
        about="one human document and its rewrite are relevant",
        build=_one_pair,
        scores=_blind,
        favour=0.55,
        browsing=("dcg",),
    ),
    World(
        name="half without a copy",
        about="every second query has no relevant LLM document",
        build=_half,
        scores=_blind,
        favour=0.8,
    ),
    World(
        name="8 human, 2 LLM",
        about="eight human and two LLM documents are relevant, no twins",
        build=_eight_two,
        scores=_blind,
        favour=0.45,
    ),
    World(
        name="three LLMs merged",
        about="one human document and three rewrites, merged into one source",
        build=_three,
        scores=_blind,
        favour=0.5,
        merge=True,
    ),
    World(
        name="paraphrases in fives",
        about="queries in clusters of five with a shared taste (latent correlation .6)",
        build=lambda n: setting(n, lambda i: [(0, 1, i), (1, 1, i)], cluster_of=np.arange(n) // 5),
        scores=_tastes("cluster"),
        favour=1.2,
        together=5,
    ),
    World(
        name="shared documents",
        about="every pair is judged for three queries, which share its taste (.6)",
        build=_shared,
        scores=_tastes("pair"),
        favour=0.6,
    ),
    World(
        name="85 % at zero",
        about="for 85 % of the queries no relevant document is found",
        build=_one_pair,
        scores=_zeros,
        favour=2.5,
        sparse=True,
    ),
    World(
        name="graded",
        about="grades 1 to 3, human documents have the better ones, ranked by grade",
        build=_graded,
        scores=_blind,
        favour=0.5,
    ),
    World(
        name="skewed, equal means",
        about="the LLM copy just ahead nine times, the human one far ahead once",
        build=lambda n: setting(n, lambda i: [(0, 1, i), (1, 1, i), (0, 0, n + i)]),
        scores=_skewed,
        favour=0.12,
        win_rate=1 / (1 + _GAP),
    ),
    World(
        name="random reranker",
        about="twenty documents in any order",
        build=lambda n: setting(n, lambda i: [(0, 1, i), (1, 1, i)], distractors=18),
        scores=_reranked,
        favour=0.7,
    ),
)

UNEVEN = (
    World(
        name="topics of Zipf sizes",
        about="queries of one of 40 topics, of Zipf sizes and declared, share a taste (.6)",
        build=_topics,
        scores=_tastes("cluster"),
        favour=1.2,
        uneven=True,
        size=0.06,
        flips=True,
    ),
    World(
        name="popular documents",
        about="eight of 2,000 pairs, drawn by Zipf, are judged for a query; queries share tastes",
        build=_hits,
        scores=_tastes("pair"),
        favour=0.6,
        uneven=True,
        share=0.8,
        least=100,
    ),
)
