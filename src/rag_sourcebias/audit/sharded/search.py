"""Third step: the best documents of every query in each shard, merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.sharded.facts import CorpusFacts
from rag_sourcebias.audit.sharded.folder import WorkFolder
from rag_sourcebias.audit.sharded.stored import StoredVectors
from rag_sourcebias.protocols import Engine
from rag_sourcebias.retrieval.exact import Best, best_documents, merge_best, parts_of
from rag_sourcebias.retrieval.faiss_index import approximate_best
from rag_sourcebias.retrieval.topk import tie_order
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.shards import Shard

__all__ = ["MIXED", "Searched", "View", "search", "views_of"]

MIXED = "mixed"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """Documents that are searched as one corpus: all of them, or those of one source.

    Parameters
    ----------
    name : str
        ``"mixed"``, or the source.
    source : int or None
        Code of the source; None for all.
    priority : uint64 array of shape (n,)
        Order among ties of the documents of the view, those of other documents unused.
    """

    name: str
    source: int | None
    priority: npt.NDArray[np.uint64]


class Searched(NamedTuple):
    """What is searched: queries, how many documents for each, and with which index."""

    queries: Float32Array
    depth: int
    index_type: str  # "exact", or a description for faiss.index_factory


_TOGETHER = 65_536
"""Documents searched by one task: shards are put together up to it.

What a shard finds costs as much as the product that finds it, unless a shard before has shown
how good a document must be.
"""


class _Item(NamedTuple):
    """Consecutive shards, numbered by the first of them, and the columns of their documents."""

    shards: tuple[Shard, ...]
    source_codes: npt.NDArray[np.int32]
    views: tuple[View, ...]
    vectors: tuple[StoredVectors, ...]


def views_of(facts: CorpusFacts, *, alone: bool) -> list[View]:
    """Return the mixed corpus and, if wanted, the corpus of each source alone."""
    views = [View(name=MIXED, source=None, priority=tie_order(len(facts)))]
    for code, name in enumerate(facts.sources) if alone else ():
        rows = np.flatnonzero(facts.source_codes == code)
        priority = np.zeros(len(facts), dtype=np.uint64)
        priority[rows] = tie_order(len(rows))
        views.append(View(name=name, source=code, priority=priority))
    return views


@dataclass(frozen=True, slots=True)
class _Search:
    searched: Searched
    folder: WorkFolder

    def __call__(self, item: _Item) -> None:
        number = item.shards[0].index
        for position, view in enumerate(item.views):
            folder = self.folder.sub(f"view-{position}")
            if folder.file(number, "npz").exists():
                continue
            found = self._best(item, view)
            folder.write_arrays(
                number,
                {
                    "query": found.query,
                    "row": found.row,
                    "score": found.score,
                    "priority": found.priority,
                },
            )

    def _best(self, item: _Item, view: View) -> Best:
        searched = self.searched
        if view.source is not None or searched.index_type == "exact":
            parts = (
                part
                for rows, priority, vectors in _documents(item, view)
                for part in parts_of(vectors, priority, rows=rows)
            )
            return best_documents(searched.queries, parts, depth=searched.depth)
        found = [
            approximate_best(
                searched.queries,
                vectors,
                rows=rows,
                priority=priority,
                depth=searched.depth,
                description=searched.index_type,
            )
            for rows, priority, vectors in _documents(item, view)
        ]
        return merge_best(found, depth=searched.depth)


def _documents(
    item: _Item, view: View
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64], Float32Array]]:
    """Yield rows, priorities and vectors of the documents of a view, shard by shard."""
    first = item.shards[0].first_row
    for shard, stored in zip(item.shards, item.vectors, strict=True):
        own = slice(shard.rows.start - first, shard.rows.stop - first)
        vectors, priority = stored.read(shard), view.priority[own]
        rows = np.arange(shard.rows.start, shard.rows.stop)
        if view.source is None:
            yield rows, priority, vectors
        else:
            kept = item.source_codes[own] == view.source
            if kept.any():
                yield rows[kept], priority[kept], vectors[kept]


def search(
    facts: CorpusFacts,
    views: Sequence[View],
    vectors: Callable[[Shard], StoredVectors],
    folder: WorkFolder,
    engine: Engine,
    *,
    searched: Searched,
    on_done: Callable[[int, int], None] | None = None,
) -> Mapping[str, Best]:
    """Search every shard, and merge what was found; by name of the view.

    Parameters
    ----------
    vectors : callable
        From a shard to where its vectors are.
    """
    groups = _grouped(facts.shards)
    folder = folder.sub(f"by-{_TOGETHER}")
    items = list(_items(groups, facts, views, vectors, folder))
    engine.map(partial(_Search, searched, folder), items, on_done=on_done)
    return {
        view.name: _merged(folder.sub(f"view-{number}"), groups, searched)
        for number, view in enumerate(views)
    }


def _items(
    groups: Sequence[tuple[Shard, ...]],
    facts: CorpusFacts,
    views: Sequence[View],
    vectors: Callable[[Shard], StoredVectors],
    folder: WorkFolder,
) -> Iterator[_Item]:
    for shards in groups:
        files = (folder.sub(f"view-{i}").file(shards[0].index, "npz") for i in range(len(views)))
        if all(file.exists() for file in files):
            continue
        part = slice(shards[0].rows.start, shards[-1].rows.stop)
        # Copies: what is sent to a worker must not carry the columns of the whole corpus.
        own = tuple(
            View(name=view.name, source=view.source, priority=view.priority[part].copy())
            for view in views
        )
        stored = tuple(vectors(shard) for shard in shards)
        yield _Item(shards, facts.source_codes[part].copy(), own, stored)


def _grouped(shards: Sequence[Shard]) -> list[tuple[Shard, ...]]:
    """Put consecutive shards together, at least one in a group."""
    groups: list[tuple[Shard, ...]] = []
    for shard in shards:
        if groups and shard.rows.stop - groups[-1][0].rows.start <= _TOGETHER:
            groups[-1] += (shard,)
        else:
            groups.append((shard,))
    return groups


def _merged(folder: WorkFolder, groups: Sequence[tuple[Shard, ...]], searched: Searched) -> Best:
    result = Best.none(len(searched.queries))
    for shards in groups:
        stored = folder.read_arrays(shards[0].index)
        one = Best(n_queries=len(searched.queries), **stored)
        result = merge_best([result, one], depth=searched.depth)
    return result
