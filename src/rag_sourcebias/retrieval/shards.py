"""Vectors that an encoder wrote to files: read a block of rows at a time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate, permutations
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import PathLike, check_file
from rag_sourcebias.core.data import Corpus, Qrels, Query, Shard, TagTable
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import ShardedCorpus
from rag_sourcebias.intake.arrays import map_array
from rag_sourcebias.intake.beir import (
    checked_folder,
    corpus_files,
    read_judged_queries,
    tag_file,
)
from rag_sourcebias.intake.documents import (
    as_corpus,
    document_columns,
    documents_in,
    overlaid,
    read_tags,
    report_strange,
)
from rag_sourcebias.intake.files import open_bytes, open_file, packing_of, read_jsonl_part
from rag_sourcebias.intake.tables import Table, open_parquet, read_parquet, table_of_objects

# Where the shards of a corpus file lie: byte positions of JSON lines, row groups of Parquet.


class Part(NamedTuple):
    """Consecutive rows of one file that make a shard.

    ``start`` is the byte (of JSON lines) or the row group (of Parquet) at which it starts,
    ``first_row`` the number of the first line or row in the file, from 1, and ``length`` the
    number of lines, blank ones among them, or of row groups.
    """

    start: int
    first_row: int
    length: int
    n_documents: int


class FileState(NamedTuple):
    """A file as it was at one moment."""

    path: Path
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Look at a file.

        Raises
        ------
        DataError
            If it is missing, or no ordinary file.
        """
        found = check_file(path)
        return cls(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns)

    def check(self) -> None:
        """Make sure that the file is still as it was.

        Raises
        ------
        DataError
            If it is missing, or its size or time of change is another.
        """
        now = FileState.of(self.path)
        if now != self:
            raise DataError(
                f"{self.path} changed since it was opened ({self.size} bytes then, {now.size} "
                "now): positions and results found before do not belong to it; open it again"
            )


def state_fingerprint(states: Iterable[FileState], folder: Path, *settings: object) -> str:
    """Identify files by their names within a folder, sizes and times, and settings."""
    files = [[os.path.relpath(s.path, folder), s.size, s.mtime_ns] for s in states]
    return hashlib.sha256(json.dumps([files, *settings]).encode()).hexdigest()


def index_jsonl(path: Path, shard_documents: int) -> list[Part]:
    """Find the parts of a plain JSON-lines file in one pass, without parsing it.

    Memory is that of the longest line.

    Parameters
    ----------
    path : Path
    shard_documents : int
        Documents of each part but the last.

    Raises
    ------
    DataError
        If the file cannot be read or holds no document.
    """
    parts: list[Part] = []
    start = position = first_row = n_documents = number = 0
    with open_bytes(path, lines=True) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                if n_documents == shard_documents:
                    parts.append(Part(start, first_row, number - first_row, n_documents))
                    n_documents = 0
                if not n_documents:
                    start = position
                    first_row = number
                position += len(raw)
                # Only a line that does not start as an object has to be looked at closely.
                if raw[:1] == b"{" or raw.decode("utf-8-sig", errors="replace").strip():
                    n_documents += 1
        except OSError as error:
            raise DataError(f"{path}:{number + 1}: cannot be read further: {error}") from error
    if n_documents:
        parts.append(Part(start, first_row, number + 1 - first_row, n_documents))
    if not parts:
        raise DataError(f"{path} is empty; expected one JSON object with _id and text per line")
    return parts


# Corpora in Parquet files, read some row groups at a time.


def index_parquet(path: Path, shard_documents: int) -> list[Part]:
    """Divide a file into parts of whole row groups; only its footer is read.

    Parameters
    ----------
    path : Path
        With the columns ``_id`` (text or whole numbers) and ``text``, and maybe ``title``,
        ``source``, ``style`` and ``pair_id``, all text; others are ignored.
    shard_documents : int
        At most as many documents in a part, unless one row group has more.

    Returns
    -------
    list of Part
        Empty for a file without rows.

    Raises
    ------
    DataError
        If the file is not Parquet, lacks a column, or a column is of another type.
    MissingExtraError
        If pyarrow is not installed.
    """
    with open_parquet(path) as file:
        names: dict[str, list[str]] = {name: [] for name in file.schema_arrow.names}
        document_columns(Table(path=str(path), lines=[1], columns=names))
        sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    parts: list[Part] = []
    start = first_row = n_documents = 0
    for group, size in enumerate(sizes):
        if n_documents and n_documents + size > shard_documents:
            parts.append(Part(start, first_row + 1, group - start, n_documents))
            start, first_row, n_documents = group, first_row + n_documents, 0
        n_documents += size
    if n_documents:
        parts.append(Part(start, first_row + 1, len(sizes) - start, n_documents))
    return parts


# A corpus in the files of a folder, read a shard at a time.


_warned: set[str] = set()  # fingerprints: every process says it once, not once for every shard


class CorpusFile(NamedTuple):
    """A file of a corpus and its parts; ``source`` is None where documents name their own."""

    state: FileState
    source: str | None
    parts: tuple[Part, ...]


@dataclass(kw_only=True, eq=False)
class FolderCorpus:
    """Reads documents from files whose parts are known; see :func:`open_sharded`.

    It implements :class:`~rag_sourcebias.core.ShardedCorpus`. It holds paths and positions
    only (a pickle takes some 50 bytes per shard), and can be sent to any process that sees the
    files under the same paths.

    Parameters
    ----------
    name : str
    fingerprint : str
    files : tuple of CorpusFile
        In row order.
    titles : bool
        Whether a title goes before its text.
    tags_file : FileState or None
        Tags of a plain corpus. Read once in each process and kept: it has to fit in memory.
    """

    name: str
    fingerprint: str
    files: tuple[CorpusFile, ...] = field(repr=False)
    titles: bool
    tags_file: FileState | None = None
    shards: tuple[Shard, ...] = field(init=False, repr=False)
    _places: tuple[tuple[CorpusFile, Part], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._places = tuple((file, part) for file in self.files for part in file.parts)
        sizes = [part.n_documents for _, part in self._places]
        self.shards = tuple(
            Shard(index=index, first_row=start, n_documents=size)
            for index, (start, size) in enumerate(
                zip(accumulate(sizes, initial=0), sizes, strict=False)
            )
        )

    @property
    def n_documents(self) -> int:
        """Number of documents of all shards."""
        return self.shards[-1].rows.stop

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources in the order of their files; empty for a plain corpus."""
        return tuple(file.source for file in self.files if file.source is not None)

    def read(self, shard: Shard) -> Corpus:
        """Read the documents of a shard, in row order, with their tags.

        Raises
        ------
        DataError
            If a file changed since the corpus was opened, a row is malformed, an ``_id`` occurs
            twice in the shard, or the shard is not of this corpus. That an ``_id`` occurs in two
            shards goes unseen here.
        """
        if shard not in self.shards[shard.index : shard.index + 1]:
            raise DataError(
                f"{shard} is not of corpus {self.name!r}, which has {len(self.shards)} shards "
                f"with {self.n_documents} documents"
            )
        file, part = self._places[shard.index]
        file.state.check()
        documents = documents_in(_table(file.state.path, part), source=file.source)
        corpus = as_corpus([documents], titles=self.titles)
        if documents.strange and self.fingerprint not in _warned:
            _warned.add(self.fingerprint)
            where = f"{file.state.path}, shard {shard.index} (said once)"
            report_strange(where, documents.strange)
        if self.tags_file is None:
            return corpus
        self.tags_file.check()
        return replace(corpus, tags=overlaid(corpus.tags, _tags_of(self.tags_file)))

    def judged_as(self, doc_id: str) -> str:
        """Return the ``_id`` of a document, by which judgments know it.

        In the paired layout it is what stands before ``@<source>`` (``"a@b@human"`` is judged as
        ``"a@b"``), in the plain one the document id.

        Raises
        ------
        DataError
            If the id does not end with a source of the corpus.
        """
        sources = self.sources
        for source in sources:
            if doc_id.endswith(f"@{source}"):
                return doc_id.removesuffix(f"@{source}")
        if sources:
            raise DataError(
                f"document id {doc_id!r} is not of corpus {self.name!r}: expected '<_id>@<source>' "
                f"with a source of {list(sources)}"
            )
        return doc_id


def _table(path: Path, part: Part) -> Table:
    if path.suffix == ".parquet":
        groups = slice(part.start, part.start + part.length)
        return read_parquet(path, part=groups, first=part.first_row)
    rows = read_jsonl_part(path, offset=part.start, first_line=part.first_row, n_lines=part.length)
    return table_of_objects(rows, str(path))


@lru_cache(maxsize=1)
def _tags_of(state: FileState) -> TagTable:
    return read_tags(state.path)


# A data set whose corpus is read a shard at a time.


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardedDataset:
    """What :class:`~rag_sourcebias.Dataset` is, without texts and ids of the corpus.

    Parameters
    ----------
    name : str
    corpus : ShardedCorpus
    queries : tuple of Query
        Those with judgments, in the order of their file.
    query_rows : int64 array of shape (len(queries),)
        Their positions, from 0, among all queries of that file.
    n_query_rows : int
        Number of all queries of that file.
    judged : Qrels
        As the file of judgments gives them: its document ids are those that
        ``corpus.judged_as`` returns, and it may name queries and documents that do not exist.
        :func:`~rag_sourcebias.intake.beir.assemble_judged` makes judgments of documents.
    where : str
        Path of the file of judgments, for messages.
    design : {"rewrites", "independent", "unknown"}
        As for :class:`~rag_sourcebias.Dataset`.
    license, attribution : str
    """

    name: str
    corpus: ShardedCorpus
    queries: tuple[Query, ...] = field(repr=False)
    query_rows: npt.NDArray[np.int64] = field(repr=False)
    n_query_rows: int
    judged: Qrels = field(repr=False)
    where: str
    design: Literal["rewrites", "independent", "unknown"] = "unknown"
    license: str = ""
    attribution: str = ""


# Folders with a corpus too large for memory: BEIR layouts, or Parquet files.
# *Paired* and *plain* folders are those of :func:`read_beir`, and give the same documents, ids and
# tags in the same order. Corpus files may not be compressed: a shard starts in the middle of one.
# *Parquet*: ``corpus.parquet``, or any number of ``corpus/*.parquet`` in the order of their names.
# Columns are ``_id`` and ``text``, and maybe ``title``, ``source``, ``style`` and ``pair_id``.
# They mean what they mean in a plain folder: judgments use ``_id``, which no two rows of the
# corpus share, a source is ``"human"`` or ``"llm:<model>"``, and a tag file goes before the
# columns.
# ``queries.jsonl`` and ``qrels/<split>.tsv`` are those of any BEIR folder. They are read at once,
# and so are the tags of a tag file, in each process. A corpus whose tags do not fit in memory
# declares them in its rows.


def open_sharded(
    folder: PathLike,
    *,
    split: str = "test",
    name: str | None = None,
    titles: bool = True,
    shard_documents: int = 50_000,
) -> ShardedDataset:
    """Open a folder whose corpus is then read a shard at a time.

    JSON-lines files are read once, to find where each shard starts; their rows are checked when
    a shard is read.

    Parameters
    ----------
    folder : path
    split : str
        Only queries with judgments in this split are kept.
    name : str or None
        None takes the name of the folder.
    titles : bool
        Whether a title goes before its text.
    shard_documents : int
        Documents of a shard; the last one of a file has fewer. A shard of Parquet has whole row
        groups: fewer documents, or those of one row group that has more.

    Returns
    -------
    ShardedDataset
        Design ``"rewrites"`` for the paired layout, else ``"unknown"``. No text or id of the
        corpus is in it.

    Raises
    ------
    DataError
        If a part is missing or empty, queries or judgments are malformed, a corpus file is
        compressed, or no judgment fits the queries.
    MissingExtraError
        If there are Parquet files and pyarrow is not installed.
    """
    root = checked_folder(folder)
    asked = read_judged_queries(root, split=split)
    corpus = open_corpus(root, name=name, titles=titles, shard_documents=shard_documents)
    return ShardedDataset(
        name=corpus.name,
        corpus=corpus,
        queries=asked.queries,
        query_rows=asked.rows,
        n_query_rows=asked.n_rows,
        judged=asked.judged,
        where=asked.where,
        design="rewrites" if corpus.sources else "unknown",
    )


def open_corpus(
    folder: PathLike,
    *,
    name: str | None = None,
    titles: bool = True,
    shard_documents: int = 50_000,
) -> FolderCorpus:
    """Open the corpus of a folder, without queries and judgments; see :func:`open_sharded`."""
    require_at_least(1, shard_documents=shard_documents)
    # Absolute: other processes may run in other folders.
    root = checked_folder(folder).absolute()
    files = [_indexed(*found, shard_documents) for found in corpus_files(root)]
    # Spark and others write files without rows, which is no mistake as long as others have some.
    if not any(file.parts for file in files):
        raise DataError(f"{files[0].state.path} is empty; expected rows with _id and text")
    sources = [file.source for file in files if file.source is not None]
    for source, longer in permutations(sources, 2):
        if longer.endswith(f"@{source}"):
            raise DataError(
                f"sources {source!r} and {longer!r} cannot be told apart at the end of a document "
                "id; rename one of their files"
            )
    tags = None if sources else tag_file(root)
    tags_state = None if tags is None else FileState.of(tags)
    states = [file.state for file in files]
    if tags_state is not None:
        states.append(tags_state)
    return FolderCorpus(
        name=name or root.resolve().name,
        fingerprint=state_fingerprint(states, root, titles, shard_documents),
        files=tuple(files),
        titles=titles,
        tags_file=tags_state,
    )


def _indexed(source: str | None, path: Path, shard_documents: int) -> CorpusFile:
    with open_file(path) as stream:
        packed = packing_of(stream) is not None
    if packed:
        raise DataError(
            f"{path} is compressed: a shard starts in the middle of its file, which only an "
            f"unpacked one allows; unpack it, or use read_beir, which holds all in memory"
        )
    # Looked at before it is read: a change in between is then seen later.
    state = FileState.of(path)
    index = index_parquet if path.suffix == ".parquet" else index_jsonl
    return CorpusFile(state=state, source=source, parts=tuple(index(path, shard_documents)))


# Vectors that an encoder wrote to files: read a block of rows at a time.


class VectorFile:
    """A ``.npy`` file with one vector per row, float32 or float16.

    The file is mapped only while rows are read, so that memory is that of the rows asked for, and
    the object can be sent to any process that sees the file under the same path.

    Parameters
    ----------
    path : path
        As ``numpy.save`` writes it.

    Raises
    ------
    DataError
        If the file is missing, not ``.npy``, shorter than it says, or its array is not of shape
        (n, d) with d at least 1 and of one of the two types.
    """

    def __init__(self, path: PathLike) -> None:
        self._state = FileState.of(Path(path).absolute())
        array = map_array(self.path)
        if array.ndim != 2 or array.shape[1] < 1:
            raise DataError(
                f"{self.path} holds an array of shape {array.shape}; expected (n, d), one vector "
                "per row"
            )
        if array.dtype not in (np.float32, np.float16):
            raise DataError(f"{self.path} holds {array.dtype}; expected float32 or float16")
        self.shape: tuple[int, int] = (array.shape[0], array.shape[1])

    @property
    def path(self) -> Path:
        """Path of the file, absolute."""
        return self._state.path

    @property
    def fingerprint(self) -> str:
        """Identity of the file: its name, size and time of change."""
        return state_fingerprint([self._state], self.path.parent)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: range | npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Read the rows asked for, in that order; shape (rows, d).

        Whether their values are finite is looked at where they are searched.

        Raises
        ------
        DataError
            If the file changed since it was opened.
        """
        self._state.check()
        # a slice is copied once, rows one by one twice
        places = slice(rows.start, rows.stop) if isinstance(rows, range) else rows
        return np.array(map_array(self.path)[places], dtype=np.float32, order="C")


class Vectors(NamedTuple):
    """Vectors of all documents, in row order of the corpus, and of all queries, in file order."""

    documents: VectorFile
    queries: VectorFile


def open_vectors(
    documents: PathLike, queries: PathLike, *, n_documents: int, n_queries: int
) -> Vectors:
    """Open the vectors of a corpus and of its queries.

    Parameters
    ----------
    documents : path
        ``.npy``; row i belongs to row i of the corpus. Rows of a folder are in the order of its
        file names, and within a file of its lines.
    queries : path
        ``.npy``; one row for each line of ``queries.jsonl``, those without judgments too.
    n_documents, n_queries : int
        Rows expected.

    Raises
    ------
    DataError
        If a file is not of that form, has another number of rows, or the dimensions differ.
    """
    found = Vectors(documents=VectorFile(documents), queries=VectorFile(queries))
    for file, expected, what in (
        (found.documents, n_documents, "documents"),
        (found.queries, n_queries, "queries in queries.jsonl, judged or not"),
    ):
        if len(file) != expected:
            raise DataError(
                f"{file.path} holds {len(file)} vectors, but there are {expected} {what}; row i "
                "belongs to the i-th of them"
            )
    if found.documents.shape[1] != found.queries.shape[1]:
        raise DataError(
            f"{found.documents.path} holds vectors of dimension {found.documents.shape[1]}, but "
            f"{found.queries.path} of {found.queries.shape[1]}; both must come from one encoder"
        )
    return found
