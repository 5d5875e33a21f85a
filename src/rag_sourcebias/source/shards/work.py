"""The engine that needs nothing: one shard after another, in this process."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

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
    WorkFolder,
    digests,
    gather,
    identity,
    joined_tags,
    scan,
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


# Second step: the vector of every distinct text, in files of the work folder.


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
    owner = _first_rows(text)[n_known:]
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


def _first_rows(text: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    order = np.lexsort((text[:, 1], text[:, 0]))  # stable: the first row leads its group
    ordered = text[order]
    leads = np.concatenate(([True], (ordered[1:] != ordered[:-1]).any(axis=1)))
    first = np.empty(len(text), dtype=np.int64)
    first[order] = order[leads][np.cumsum(leads) - 1]
    return first


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


def encode(
    corpus: ShardedCorpus,
    own: npt.NDArray[np.bool_],
    folder: WorkFolder,
    engine: Engine,
    *,
    make_encoder: Callable[[], Encoder],
    similarity: Similarity,
    on_done: Callable[[int, int], None] | None = None,
) -> None:
    """Encode the texts that occur first in their row; finished shards are left as they are.

    Texts are handed to the encoder as :func:`rag_sourcebias.retrieval.cache.encode_corpus` does,
    so that the vectors are the same to the last digit.
    """
    left = [
        _EncodeItem(shard, own[shard.rows.start : shard.rows.stop])
        for shard in corpus.shards
        if not folder.file(shard.index, "npy").exists()
    ]
    engine.map(partial(_prepare, corpus, folder, make_encoder, similarity), left, on_done=on_done)


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


class Searched(NamedTuple):
    """What is searched: queries, and how many documents for each."""

    queries: Float32Array
    depth: int


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


def _search(searched: Searched, folder: WorkFolder, item: _SearchItem) -> None:
    number = item.shards[0].index
    for position, view in enumerate(item.views):
        own = folder.sub(f"view-{position}")
        if not own.file(number, "npz").exists():
            found = _best(searched, item, view)
            own.write(
                number,
                {
                    "query": found.query,
                    "row": found.row,
                    "score": found.score,
                    "priority": found.priority,
                },
            )


def _best(searched: Searched, item: _SearchItem, view: View) -> Best:
    parts = (
        part
        for rows, priority, vectors in _documents(item, view)
        for part in parts_of(vectors, priority, rows=rows)
    )
    return best_documents(searched.queries, parts, depth=searched.depth)


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
    engine.map(
        task(_search, searched, folder),
        list(_items(groups, facts, views, vectors, folder)),
        on_done=on_done,
    )
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


def _merged(folder: WorkFolder, groups: Sequence[tuple[Shard, ...]], searched: Searched) -> Best:
    n_queries = len(searched.queries)
    result = Best.none(n_queries)
    for shards in groups:
        one = Best(n_queries=n_queries, **folder.read_arrays(shards[0].index))
        result = merge_best([result, one], depth=searched.depth)
    return result


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
    engine: Engine,
    *,
    rows: IntArray,
    with_text: IntArray,
    on_done: Callable[[int, int], None] | None = None,
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
    parts = engine.map(task(_collect, corpus), items, on_done=on_done)
    tags = joined_tags([part.tags for part in parts], sources=facts.sources)
    texts = tuple(text for part in parts for text in part.texts)
    return Corpus(texts=texts, tags=replace(tags, whole=facts.counts())), wanted


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
    begin: Callable[[str], None]
    advance: Callable[[int, int], None] | None
    _encoded: dict[str, tuple[Known, Places, WorkFolder]] = field(default_factory=dict)

    def scanned(self, corpus: ShardedCorpus, what: str) -> Known:
        """Read a corpus once, for what has to be known of all its documents."""
        folder = self.folder.sub(identity(corpus.fingerprint))
        self.begin(what)
        found = scan(corpus, folder.sub("scan"), self.engine, on_done=self.advance)
        return Known(corpus, gather(corpus, found), folder)

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
        depth: int,
        alone: bool,
    ) -> Found:
        """Search a corpus, and read what was found and what is judged."""
        queries = self._queries(retriever, encoder)
        stored, name = self._vectors(known, retriever, encoder), retriever.name
        self.begin(f"{name}: searching {len(known.facts):,} documents")
        best = search(
            known.facts,
            views_of(known.facts, alone=alone),
            stored,
            known.folder.sub(
                "found",
                identity(retriever.fingerprint(encoder), depth, alone, queries.tobytes().hex()),
            ),
            self.engine,
            searched=Searched(queries, depth),
            on_done=self.advance,
        )
        self.begin(f"{name}: reading what was found")
        ids = digests(self.dataset.judged.doc_ids)[:, 0]
        judged = np.flatnonzero(np.isin(known.facts.judged, ids))  # all versions of documents
        corpus, rows = collect(
            known.corpus,
            known.facts,
            self.engine,
            rows=np.concatenate([one.row for one in best.values()]),
            with_text=judged,  # twins are compared by their texts
            on_done=self.advance,
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
        encode(
            known.corpus,
            own.own,
            folder,
            self.engine,
            make_encoder=retriever.make_encoder,
            similarity=retriever.similarity,
            on_done=self.advance,
        )
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
