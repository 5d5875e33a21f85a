"""What is known of a sharded corpus without holding it, and pairs cut to equal length."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import write_atomic
from rag_sourcebias.core.data import Corpus, Shard, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import ShardedCorpus
from rag_sourcebias.intake.arrays import map_array, read_arrays
from rag_sourcebias.measure.texts import count_pairs, cut_texts, word_counts, words_kept
from rag_sourcebias.retrieval.cache import ENCODED_TOGETHER

IntArray = npt.NDArray[np.int32]
T = TypeVar("T")
#: What an engine does with items: prepare a function, apply it to each, return the results.
Work = Callable[[Callable[[], Callable[[Any], T]], Sequence[Any]], list[T]]


def joined_tags(tables: Sequence[TagTable]) -> TagTable:
    """Return one table with the rows of all, and only the names that some row has."""
    return TagTable.from_tags(
        (doc_id, table.get(doc_id)) for table in tables for doc_id in table.doc_ids
    )


def recoded(codes: IntArray, names: Sequence[str], every: Sequence[str]) -> IntArray:
    """Return codes of names as codes of these names among more of them; -1 stays -1."""
    return np.array([*map(every.index, names), -1], dtype=np.int32)[codes]


# What a sharded corpus over another one has of it.


@dataclass(frozen=True, slots=True)
class OverCorpus:
    """A corpus made of another one: its name and its judgments are the other's.

    Parameters
    ----------
    corpus : ShardedCorpus
        The one beneath.
    """

    corpus: ShardedCorpus

    @property
    def name(self) -> str:
        """Name of the corpus."""
        return self.corpus.name

    def judged_as(self, doc_id: str) -> str:
        """Return the id by which judgments know a document."""
        return self.corpus.judged_as(doc_id)


# Where an audit over shards keeps what it has done, so that a killed one goes on from there.


_REMEDY = "delete it and start again to redo it"
_MARK = "work-folder"
Arrays = dict[str, npt.NDArray[Any]]


def identity(*parts: object) -> str:
    """Return a short name for everything that changes what is stored under it."""
    return blake2b(json.dumps([str(part) for part in parts]).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """One file per shard and step, complete or absent.

    All workers read and write it: on several machines it lies on storage that they share.

    Parameters
    ----------
    path : Path
        Created on first use.
    root : Path
        The whole work folder, which is not created where it is missing.
    mark : str
        What a file in it says: another folder may lie under its path on another machine.
    """

    path: Path
    root: Path
    mark: str

    @classmethod
    def opened(cls, path: Path) -> WorkFolder:
        """Return a work folder by which workers can tell whether they see the same one.

        Raises
        ------
        DataError
            If it cannot be created or read.
        """
        file = path / _MARK
        try:
            path.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), file.open("x", encoding="utf-8") as stream:
                stream.write(uuid4().hex)
            return cls(path, path, file.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise _unwritable(file, error) from error

    def sub(self, *names: str) -> WorkFolder:
        """Return a folder within."""
        return replace(self, path=self.path.joinpath(*names))

    def file(self, index: int, ending: str) -> Path:
        """Return the file of a shard."""
        return self.path / f"{index:06d}.{ending}"

    def map_array(self, index: int) -> npt.NDArray[Any]:
        """Return the array of a shard, read from disk where it is used.

        Raises
        ------
        DataError
            If the file is missing or damaged.
        """
        return map_array(self.file(index, "npy"), remedy=_REMEDY)

    def read_arrays(self, index: int) -> Arrays:
        """Return the arrays of a shard.

        Raises
        ------
        DataError
            If the file is missing or damaged.
        """
        return read_arrays(self.file(index, "npz"), remedy=_REMEDY)

    def write(self, index: int, values: npt.NDArray[Any] | Arrays) -> None:
        """Store one array for a shard, or several by their names."""
        path, seen = self.file(index, "npz" if isinstance(values, dict) else "npy"), None
        with suppress(OSError):
            seen = (self.root / _MARK).read_text(encoding="utf-8", errors="replace")
        if seen != self.mark:
            raise DataError(
                f"work folder {self.root} is {'missing' if seen is None else 'another folder'} on "
                f"{platform.node()}: all machines must see it under this path; put it on storage "
                "that they share"
            )
        content = BytesIO()
        if isinstance(values, dict):
            np.savez(content, allow_pickle=False, **values)
        else:
            np.save(content, values)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error
        # Two workers may do one shard, when the first was taken for lost: the last one wins.
        write_atomic(path, content.getvalue())


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path} cannot be written: {error.strerror or error}; choose another work folder"
    )


# First step: what has to be known of every document, without its text.


def task(function: Callable[..., T], *shared: object) -> Callable[[], Callable[[Any], T]]:
    """Return what an engine prepares in a worker: a function of an item, its last argument."""
    return partial(partial, function, *shared)


def _scan(corpus: ShardedCorpus, folder: WorkFolder, shard: Shard) -> None:
    held = corpus.read(shard)
    tags = held.tags
    folder.write(
        shard.index,
        {
            "doc": digests(held.doc_ids)[:, 0],
            "judged": digests([corpus.judged_as(d) for d in held.doc_ids])[:, 0],
            "text": digests(held.texts),
            # The last one is taken by code −1, no pair.
            "pair": np.append(digests(tags.pair_ids)[:, 0], np.uint64(0))[tags.pair_codes],
            "words": word_counts(held.texts).astype(np.int32),
            "source": tags.source_codes,
            "sources": np.array([name.encode() for name in tags.sources], dtype=np.bytes_),
        },
    )


def digests(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """128-bit BLAKE2b digests of texts as two numbers each; shape ``(len(texts), 2)``."""
    joined = b"".join(
        # Lone surrogates occur in scraped text.
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        for text in texts
    )
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, 2)


# What is known of a corpus without holding it: about 50 bytes a document.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorpusFacts:
    """Columns of a whole corpus, one row per document.

    Parameters
    ----------
    shards : tuple of Shard
    sources : tuple of str
        Sorted; ``source_codes`` (n,) index into it, −1 is untagged.
    words : int32 array of shape (n,)
    doc, judged, pair : uint64 arrays of shape (n,)
        Digests of the id, of the id that judgments use, and of the pair id (0 for none).
    text : uint64 array of shape (n, 2)
    """

    shards: tuple[Shard, ...]
    sources: tuple[str, ...]
    source_codes: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]
    doc: npt.NDArray[np.uint64]
    judged: npt.NDArray[np.uint64]
    pair: npt.NDArray[np.uint64]
    text: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.words)

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts untagged ones when there are any."""
        found = np.bincount(self.source_codes + 1, minlength=len(self.sources) + 1).tolist()
        untagged = {"": found[0]} if found[0] else {}
        return dict(zip(self.sources, found[1:], strict=True)) | untagged

    def n_pairs(self) -> int:
        """Number of pairs with documents of more than one source."""
        return count_pairs(self.pair_codes, self.source_codes)

    @property
    def pair_codes(self) -> npt.NDArray[np.int64]:
        """Number of each pair, -1 for none; shape (n,)."""
        _, code = np.unique(self.pair, return_inverse=True)
        return np.where(self.pair > 0, code, -1)


def facts_of(corpus: ShardedCorpus, folder: WorkFolder, work: Work[None]) -> CorpusFacts:
    """Read every shard once, but for those that the folder knows, and put together what is known.

    Raises
    ------
    DataError
        If a document id occurs twice, or the corpus is empty.
    """
    shards = tuple(corpus.shards)
    if not shards:
        raise DataError(f"corpus {corpus.name!r} has no documents")
    left = [shard for shard in shards if not folder.file(shard.index, "npz").exists()]
    work(task(_scan, corpus, folder), left)
    found = [folder.read_arrays(shard.index) for shard in shards]
    names = [[name.decode() for name in one["sources"].tolist()] for one in found]
    sources = tuple(sorted({name for some in names for name in some}))
    codes = [recoded(one["source"], some, sources) for some, one in zip(names, found, strict=True)]
    columns = ("words", "doc", "judged", "pair", "text")
    facts = CorpusFacts(
        shards=shards,
        sources=sources,
        source_codes=np.concatenate(codes),
        **{name: np.concatenate([one[name] for one in found]) for name in columns},
    )
    order = np.argsort(facts.doc, kind="stable")
    same = np.flatnonzero(facts.doc[order][1:] == facts.doc[order][:-1])
    for at in same.tolist():
        first, second = (_doc_id(corpus, facts, int(row)) for row in order[at : at + 2])
        if first == second:  # not just two ids with one digest
            raise DataError(
                f"document id {first!r} occurs twice in {corpus.name!r}; each document needs its "
                "own id"
            )
    return facts


def _doc_id(corpus: ShardedCorpus, facts: CorpusFacts, row: int) -> str:
    shard = next(shard for shard in facts.shards if row in shard.rows)
    return corpus.read(shard).doc_ids[row - shard.first_row]


# Shards that begin and end where texts are cut into calls of the encoder.


@dataclass(frozen=True, slots=True)
class AlignedCorpus(OverCorpus):
    """A corpus in shards of a whole number of encoder calls, whatever file the rows are in.

    The texts that an encoder gets together then do not depend on the shards. Rows of two shards
    of the corpus beneath are read from both.

    Parameters
    ----------
    corpus : ShardedCorpus
    documents : int
        Documents of a shard, rounded up to a multiple of 1,024.
    """

    documents: int

    @property
    def fingerprint(self) -> str:
        """Identity of the corpus beneath and of the size of shards."""
        return identity(self.corpus.fingerprint, self._size)

    @property
    def shards(self) -> Sequence[Shard]:
        """Shards of equal size, but for the last one."""
        last = self.corpus.shards[-1].rows.stop if self.corpus.shards else 0
        return tuple(
            Shard(index=index, first_row=start, n_documents=min(self._size, last - start))
            for index, start in enumerate(range(0, last, self._size))
        )

    def read(self, shard: Shard) -> Corpus:
        """Read the documents of a shard from the shards beneath that hold them."""
        parts = []
        for under in self.corpus.shards:
            start = max(shard.rows.start, under.rows.start)
            stop = min(shard.rows.stop, under.rows.stop)
            if start < stop:
                found = _read(_Held(self.corpus), under)
                if stop - start < under.n_documents:
                    found = found.take(np.arange(start, stop) - under.first_row)
                parts.append(found)
        if len(parts) == 1:
            return parts[0]
        return Corpus(
            texts=tuple(text for part in parts for text in part.texts),
            tags=joined_tags([part.tags for part in parts]),
        )

    @property
    def _size(self) -> int:
        return -(-self.documents // ENCODED_TOGETHER) * ENCODED_TOGETHER


@dataclass(frozen=True, slots=True)
class _Held:
    corpus: ShardedCorpus

    def __hash__(self) -> int:
        return hash(self.corpus.fingerprint)


# The next shard usually needs the rest of the one that was read last.
@lru_cache(maxsize=1)
def _read(held: _Held, shard: Shard) -> Corpus:
    return held.corpus.read(shard)


# The corpus whose pairs are cut to equal length, shard by shard.


@dataclass(frozen=True, slots=True)
class CutCorpus(OverCorpus):
    """A corpus with every version of a document as short as its shortest version, in words.

    :func:`rag_sourcebias.source.audit.match_lengths` for corpora that do not fit in memory.

    Parameters
    ----------
    corpus : ShardedCorpus
    folder : WorkFolder
        Holds the words to keep of each document.
    """

    folder: WorkFolder

    @property
    def fingerprint(self) -> str:
        """Identity of the uncut corpus, and that it is cut."""
        return identity(self.corpus.fingerprint, "equal length")

    @property
    def shards(self) -> Sequence[Shard]:
        """Shards of the uncut corpus."""
        return self.corpus.shards

    def read(self, shard: Shard) -> Corpus:
        """Read a shard and cut its texts."""
        corpus = self.corpus.read(shard)
        return replace(corpus, texts=cut_texts(corpus.texts, self.folder.map_array(shard.index)))


def cut(corpus: ShardedCorpus, facts: CorpusFacts, folder: WorkFolder) -> CutCorpus:
    """Cut every version of a document to the words of its shortest one."""
    kept = words_kept(facts.pair_codes, facts.words).astype(np.int32)
    for shard in facts.shards:
        if not folder.file(shard.index, "npy").exists():
            folder.write(shard.index, kept[shard.rows.start : shard.rows.stop])
    return CutCorpus(corpus, folder)
