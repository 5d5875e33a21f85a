"""The engine that needs nothing: one shard after another, in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, Float32Array, IntArray, Shard
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder, Engine, ShardedCorpus
from rag_sourcebias.retrieval.cache import (
    ENCODED_TOGETHER,
    Similarity,
    checked_vectors,
    query_vectors,
)
from rag_sourcebias.retrieval.search import (
    Best,
    best_documents,
    merge_best,
    parts_of,
    tie_order,
)
from rag_sourcebias.retrieval.shards import ShardedDataset, VectorFile, Vectors
from rag_sourcebias.source.shards.facts import (
    CorpusFacts,
    Work,
    WorkFolder,
    digests,
    facts_of,
    identity,
    joined_tags,
    recoded,
    task,
)

# Where the vectors of a shard are, and how they are read.


@dataclass(frozen=True, eq=False)
class EncodedVectors:
    """Vectors of the work folder, see :class:`~rag_sourcebias.source.shards.work.Places`."""

    folders: tuple[WorkFolder, ...]
    n_shards: int
    file: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]

    def read(self, shard: Shard) -> Float32Array:
        """Return the vectors of a shard, from all files that hold some of them."""
        result: Float32Array | None = None
        for number in np.unique(self.file).tolist():
            stored = self.folders[number // self.n_shards].map_array(number % self.n_shards)
            here = np.flatnonzero(self.file == number)
            if self.index[here].max() >= len(stored):
                path = self.folders[number // self.n_shards].file(number % self.n_shards, "npy")
                raise DataError(f"{path} holds too few vectors; delete it and start again")
            if result is None:
                result = np.empty((shard.n_documents, stored.shape[1]), dtype=np.float32)
            result[here] = stored[self.index[here]]
        return np.empty((0, 0), dtype=np.float32) if result is None else result


@dataclass(frozen=True, slots=True, eq=False)
class GivenVectors:
    """Vectors of a file whose rows are those of the corpus."""

    file: VectorFile
    similarity: Similarity

    def read(self, shard: Shard) -> Float32Array:
        """Return the vectors of a shard, normalised for cosine similarity."""
        rows = shard.rows
        return checked_vectors(
            self.file.take(rows),
            what=str(self.file.path),
            names=[f"row {row}" for row in rows],
            similarity=self.similarity,
        )


StoredVectors: TypeAlias = EncodedVectors | GivenVectors  # what a worker reads


# What retrieves from a sharded corpus: an encoder, or vectors that exist already.


@dataclass(frozen=True, kw_only=True)
class ShardedRetriever:
    """Recipe of a dense retriever over a corpus that is worked on shard by shard.

    Parameters
    ----------
    name : str
    make_encoder : callable, optional
        Returns the encoder; called once in every worker, so that it can be pickled and the encoder
        need not.
    vectors : Vectors, optional
        Vectors of documents and queries that exist already, instead of an encoder.
    similarity : {"cosine", "dot"}
    """

    name: str
    make_encoder: Callable[[], Encoder] | None = field(default=None, repr=False)
    vectors: Vectors | None = field(default=None, repr=False)
    similarity: Similarity = "cosine"

    def settings(self, encoder: Encoder | None) -> Mapping[str, str]:
        """Settings a report must state."""
        file = "" if self.vectors is None else self.vectors.documents.path.name
        own = {"vectors": file} if encoder is None else encoder.settings
        return {**own, "similarity": self.similarity, "search": "exact"}

    def fingerprint(self, encoder: Encoder | None) -> str:
        """Identity of everything that changes the vectors as they are searched."""
        if self.vectors is not None:
            files = self.vectors.documents.fingerprint, self.vectors.queries.fingerprint
            return identity(*files, self.similarity)
        return identity("" if encoder is None else encoder.fingerprint, self.similarity)


# Second step: the vector of every distinct text, in files of the work folder. Texts are handed to
# the encoder as ``retrieval.cache.encode_corpus`` does, so that the vectors are the same to the
# last digit.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Places:
    """Where the vector of each document is stored.

    Equal texts share a vector, so that exact copies tie exactly in whatever shard they are.

    Parameters
    ----------
    file : int32 array of shape (n,)
        Number of the file: that of the shard in which the text occurs first.
    index : int32 array of shape (n,)
        Row within that file.
    own : bool array of shape (n,)
        Whether the text occurs first in this very row, so that this shard encodes it.
    """

    file: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    own: npt.NDArray[np.bool_]


def places(facts: CorpusFacts, *, known: tuple[CorpusFacts, Places] | None = None) -> Places:
    """Find where every text occurs first, and with that where its vector is stored.

    Parameters
    ----------
    known : CorpusFacts and Places, optional
        Of a corpus whose vectors exist already, with as many shards: texts that it holds are not
        encoded again. Files of this corpus are counted on from its files.
    """
    n_known = 0 if known is None else len(known[0])
    text = facts.text if known is None else np.concatenate((known[0].text, facts.text))
    # as strings of bytes, which sort in a fraction of the time of rows
    _, first, same = np.unique(text.view("S16").ravel(), return_index=True, return_inverse=True)
    owner = first[same][n_known:]
    own = owner == np.arange(n_known, n_known + len(facts))
    shard_of = np.repeat(np.arange(len(facts.shards)), [s.n_documents for s in facts.shards])
    starts = np.array([s.first_row for s in facts.shards])
    before = np.cumsum(own) - own  # texts encoded before each row, then within its shard
    file = shard_of.astype(np.int32)
    index = (before - before[starts][shard_of]).astype(np.int32)
    if known is not None:
        file = np.concatenate((known[1].file, file + len(known[0].shards)))
        index = np.concatenate((known[1].index, index))
    return Places(file=file[owner].astype(np.int32), index=index[owner], own=own)


class _EncodeItem(NamedTuple):
    shard: Shard
    own: npt.NDArray[np.bool_]


def _encode(
    corpus: ShardedCorpus,
    folder: WorkFolder,
    encoder: Encoder,
    similarity: Similarity,
    item: _EncodeItem,
) -> None:
    held, rows = corpus.read(item.shard), np.flatnonzero(item.own)
    part = (rows + item.shard.first_row) // ENCODED_TOGETHER
    groups = np.split(rows, np.flatnonzero(np.diff(part)) + 1) if len(rows) else []
    found = [
        checked_vectors(
            encoder.encode_documents([held.texts[row] for row in group]),
            what=f"encoder {encoder.name!r}, documents",
            names=[held.doc_ids[row] for row in group],
            similarity=similarity,
        )
        for group in groups
    ]
    folder.write(
        item.shard.index,
        np.concatenate(found) if found else np.empty((0, 0), dtype=np.float32),
    )


def _prepare(
    corpus: ShardedCorpus,
    folder: WorkFolder,
    make_encoder: Callable[[], Encoder],
    similarity: Similarity,
) -> Callable[[_EncodeItem], None]:
    return partial(_encode, corpus, folder, make_encoder(), similarity)


# Third step: the best documents of every query in each shard, merged.


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


_TOGETHER = 65_536
"""Documents searched by one task: shards are put together up to it.

What a shard finds costs as much as the product that finds it, unless a shard before has shown
how good a document must be.
"""


class _SearchItem(NamedTuple):
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


def _search(queries: Float32Array, depth: int, folder: WorkFolder, item: _SearchItem) -> None:
    for position, view in enumerate(item.views):
        parts = (
            part
            for rows, priority, vectors in _documents(item, view)
            for part in parts_of(vectors, priority, rows=rows)
        )
        found = best_documents(queries, parts, depth=depth)
        folder.sub(f"view-{position}").write(
            item.shards[0].index,
            {
                "query": found.query,
                "row": found.row,
                "score": found.score,
                "priority": found.priority,
            },
        )


def _documents(
    item: _SearchItem, view: View
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
    work: Work[None],
    *,
    queries: Float32Array,
    depth: int,
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
    work(task(_search, queries, depth, folder), items)
    found = {}
    for number, view in enumerate(views):
        best = Best.none(len(queries))
        for shards in groups:
            arrays = folder.sub(f"view-{number}").read_arrays(shards[0].index)
            best = merge_best([best, Best(n_queries=len(queries), **arrays)], depth=depth)
        found[view.name] = best
    return found


def _items(
    groups: Sequence[tuple[Shard, ...]],
    facts: CorpusFacts,
    views: Sequence[View],
    vectors: Callable[[Shard], StoredVectors],
    folder: WorkFolder,
) -> Iterator[_SearchItem]:
    for shards in groups:
        if all(
            folder.sub(f"view-{i}").file(shards[0].index, "npz").exists() for i in range(len(views))
        ):
            continue
        part = slice(shards[0].rows.start, shards[-1].rows.stop)
        # Copies: what is sent to a worker must not carry the columns of the whole corpus.
        own = tuple(
            View(name=view.name, source=view.source, priority=view.priority[part].copy())
            for view in views
        )
        yield _SearchItem(
            shards, facts.source_codes[part].copy(), own, tuple(vectors(shard) for shard in shards)
        )


def _grouped(shards: Sequence[Shard]) -> list[tuple[Shard, ...]]:
    """Put consecutive shards together, at least one in a group."""
    groups: list[tuple[Shard, ...]] = []
    for shard in shards:
        if groups and shard.rows.stop - groups[-1][0].rows.start <= _TOGETHER:
            groups[-1] += (shard,)
        else:
            groups.append((shard,))
    return groups


# Fourth step: texts and tags of what was retrieved or judged, the only ones a report needs.


class _CollectItem(NamedTuple):
    shard: Shard
    rows: IntArray
    with_text: npt.NDArray[np.bool_]


def _collect(corpus: ShardedCorpus, item: _CollectItem) -> Corpus:
    found = corpus.read(item.shard).take(item.rows - item.shard.first_row)
    return Corpus(
        texts=tuple(
            text if wanted else ""
            for text, wanted in zip(found.texts, item.with_text.tolist(), strict=True)
        ),
        # Names that only other documents of the shard have are not sent along.
        tags=joined_tags([found.tags]),
    )


def collect(
    corpus: ShardedCorpus,
    facts: CorpusFacts,
    work: Work[Corpus],
    *,
    rows: IntArray,
    with_text: IntArray,
) -> tuple[Corpus, IntArray]:
    """Read the documents of the given rows from the shards that hold them.

    Parameters
    ----------
    rows, with_text : int64 arrays
        Rows of the whole corpus, in any order; the text of a document that is not among
        ``with_text`` is left empty.

    Returns
    -------
    corpus : Corpus
        Its tag table knows the number of documents per source of the whole corpus.
    rows : int64 array of shape (n,)
        Rows of its documents within the whole corpus, rising.
    """
    wanted = np.unique(np.concatenate((rows, with_text)))
    texted = np.isin(wanted, with_text)
    items = []
    for shard in facts.shards:
        start, stop = np.searchsorted(wanted, (shard.rows.start, shard.rows.stop))
        if stop > start:
            items.append(_CollectItem(shard, wanted[start:stop].copy(), texted[start:stop].copy()))
    parts = work(task(_collect, corpus), items)
    tags = joined_tags([part.tags for part in parts])
    tags = replace(
        tags,
        sources=facts.sources,  # one may have no row and still be one of the corpus
        source_codes=recoded(tags.source_codes, tags.sources, facts.sources),
        whole=facts.counts(),
    )
    return Corpus(texts=tuple(text for part in parts for text in part.texts), tags=tags), wanted


# One retriever on a sharded corpus: from texts to runs, each step kept in the work folder.


class Known(NamedTuple):
    """A corpus that was scanned: its facts and where its files are kept."""

    corpus: ShardedCorpus
    facts: CorpusFacts
    folder: WorkFolder


class Found(NamedTuple):
    """What a retriever found, by view, and the documents in it together with the judged ones."""

    best: Mapping[str, Best]
    corpus: Corpus
    rows: IntArray  # of its documents, see collect


@dataclass(slots=True)
class Job:
    """Everything that stays the same during an audit."""

    dataset: ShardedDataset
    folder: WorkFolder
    engine: Engine
    depth: int
    begin: Callable[[str], None]
    advance: Callable[[int, int], None] | None
    _encoded: dict[str, tuple[Known, Places, WorkFolder]] = field(default_factory=dict)

    def scanned(self, corpus: ShardedCorpus, what: str) -> Known:
        """Read a corpus once, for what has to be known of all its documents."""
        folder = self.folder.sub(identity(corpus.fingerprint))
        self.begin(what)
        return Known(corpus, facts_of(corpus, folder.sub("scan"), self.work), folder)

    @property
    def work(self) -> Work[Any]:
        """What is done with shards, and told of."""
        return partial(self.engine.map, on_done=self.advance)

    def _queries(self, retriever: ShardedRetriever, encoder: Encoder | None) -> Float32Array:
        if encoder is not None:
            return query_vectors(encoder, self.dataset.queries, similarity=retriever.similarity)
        if retriever.vectors is None:
            raise DataError(f"retriever {retriever.name!r} has neither an encoder nor vectors")
        return checked_vectors(
            retriever.vectors.queries.take(self.dataset.query_rows),
            what=str(retriever.vectors.queries.path),
            names=[query.query_id for query in self.dataset.queries],
            similarity=retriever.similarity,
        )

    def find(
        self,
        known: Known,
        retriever: ShardedRetriever,
        encoder: Encoder | None,
        *,
        alone: bool,
    ) -> Found:
        """Search a corpus, and read what was found and what is judged."""
        queries = self._queries(retriever, encoder)
        stored, name = self._vectors(known, retriever, encoder), retriever.name
        asked = retriever.fingerprint(encoder), self.depth, alone, queries.tobytes().hex()
        self.begin(f"{name}: searching {len(known.facts):,} documents")
        best = search(
            known.facts,
            views_of(known.facts, alone=alone),
            stored,
            known.folder.sub("found", identity(*asked)),
            self.work,
            queries=queries,
            depth=self.depth,
        )
        self.begin(f"{name}: reading what was found")
        ids = digests(self.dataset.judged.doc_ids)[:, 0]
        judged = np.flatnonzero(np.isin(known.facts.judged, ids))  # all versions of documents
        corpus, rows = collect(
            known.corpus,
            known.facts,
            self.work,
            rows=np.concatenate([one.row for one in best.values()]),
            with_text=judged,  # twins are compared by their texts
        )
        return Found(best, corpus, rows)

    def _vectors(
        self, known: Known, retriever: ShardedRetriever, encoder: Encoder | None
    ) -> Callable[[Shard], StoredVectors]:
        if retriever.vectors is not None:
            given = GivenVectors(retriever.vectors.documents, retriever.similarity)
            return lambda _: given
        if encoder is None or retriever.make_encoder is None:
            raise DataError(f"retriever {retriever.name!r} has neither an encoder nor vectors")
        identified = retriever.fingerprint(encoder)
        # Texts that the uncut corpus holds already keep their vectors.
        before = self._encoded.get(identified)
        earlier = None if before is None or before[0] is known else before
        own = places(known.facts, known=None if earlier is None else (earlier[0].facts, earlier[1]))
        folder = known.folder.sub("vectors", identified)
        self.begin(f"{retriever.name}: encoding {own.own.sum():,} texts")
        left = [
            _EncodeItem(shard, own.own[shard.rows.start : shard.rows.stop])
            for shard in known.corpus.shards
            if not folder.file(shard.index, "npy").exists()
        ]
        prepare = partial(
            _prepare, known.corpus, folder, retriever.make_encoder, retriever.similarity
        )
        self.work(prepare, left)
        self._encoded.setdefault(identified, (known, own, folder))
        folders = (folder,) if earlier is None else (earlier[2], folder)
        return partial(_encoded_of, folders, len(known.facts.shards), own)


def _encoded_of(
    folders: tuple[WorkFolder, ...], n_shards: int, own: Places, shard: Shard
) -> EncodedVectors:
    part = slice(shard.rows.start, shard.rows.stop)
    return EncodedVectors(folders, n_shards, own.file[part].copy(), own.index[part].copy())


# The engine that needs nothing: one shard after another, in this process.


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


class LocalEngine:
    """Work on one item at a time, so that memory is bounded by the largest one."""

    name = "local"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {"engine": self.name}

    def map(
        self,
        prepare: Callable[[], Callable[[ItemT], ResultT]],
        items: Sequence[ItemT],
        *,
        on_done: Callable[[int, int], None] | None = None,
    ) -> list[ResultT]:
        """Apply a function to every item; see :class:`rag_sourcebias.core.Engine`."""
        if not items:
            return []
        function = prepare()
        results = []
        for done, item in enumerate(items, start=1):
            results.append(function(item))
            if on_done is not None:
                on_done(done, len(items))
        return results

    def close(self) -> None:
        """Do nothing: nothing was started."""
