"""A corpus in the files of a folder, read a shard at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import version_of
from rag_sourcebias.io.beir_rows import check_rows, document_text
from rag_sourcebias.io.beir_tags import declared_tags, report_strange
from rag_sourcebias.io.files import read_jsonl_part
from rag_sourcebias.io.shard_parquet import read_parquet_part
from rag_sourcebias.io.shard_parts import FileState, Part
from rag_sourcebias.io.tags import read_tags
from rag_sourcebias.types import Corpus, DocTags, TagTable
from rag_sourcebias.types.shards import Shard

__all__ = ["CorpusFile", "FolderCorpus"]

_warned: set[str] = set()  # fingerprints: every process says it once, not once for every shard


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """A file of a corpus and its parts; ``source`` is None where documents name their own."""

    state: FileState
    source: str | None
    parts: tuple[Part, ...]


@dataclass(kw_only=True, eq=False)
class FolderCorpus:
    """Reads documents from files whose parts are known; see :func:`open_sharded`.

    It implements :class:`~rag_sourcebias.protocols.ShardedCorpus`. It holds paths and positions
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
    _endings: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._places = tuple((file, part) for file in self.files for part in file.parts)
        self._endings = tuple(f"@{source}" for source in self.sources)
        sizes = [part.n_documents for _, part in self._places]
        starts = accumulate(sizes, initial=0)
        self.shards = tuple(
            Shard(index=index, first_row=start, n_documents=size)
            for index, (start, size) in enumerate(zip(starts, sizes, strict=False))
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
        file, part = self._part(shard)
        file.state.check()
        texts: list[str] = []
        items: list[tuple[str, DocTags]] = []
        strange: list[str] = []
        table = None
        if self.tags_file is not None:
            self.tags_file.check()
            table = _tags_of(self.tags_file)
        for doc_id, row in _rows(file.state.path, part):
            texts.append(document_text(row, titles=self.titles))
            if file.source is not None:
                items.append(version_of(file.source, doc_id, row))
                continue
            tags, refused = declared_tags(doc_id, row, table)
            strange += refused
            items.append((doc_id, tags))
        if strange and self.fingerprint not in _warned:
            _warned.add(self.fingerprint)
            report_strange(f"{file.state.path}, shard {shard.index} (said once)", strange)
        return Corpus(texts=tuple(texts), tags=TagTable.from_tags(items))

    def judged_as(self, doc_id: str) -> str:
        """Return the ``_id`` of a document, by which judgments know it.

        In the paired layout it is what stands before ``@<source>`` (``"a@b@human"`` is judged as
        ``"a@b"``), in the plain one the document id.

        Raises
        ------
        DataError
            If the id does not end with a source of the corpus.
        """
        if not self._endings:
            return doc_id
        for ending in self._endings:
            if doc_id.endswith(ending):
                return doc_id[: -len(ending)]
        raise DataError(
            f"document id {doc_id!r} is not of corpus {self.name!r}: expected '<_id>@<source>' "
            f"with a source of {list(self.sources)}"
        )

    def _part(self, shard: Shard) -> tuple[CorpusFile, Part]:
        if not 0 <= shard.index < len(self.shards) or self.shards[shard.index] != shard:
            raise DataError(
                f"{shard} is not of corpus {self.name!r}, which has {len(self.shards)} shards "
                f"with {self.n_documents} documents"
            )
        return self._places[shard.index]


def _rows(path: Path, part: Part) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix == ".parquet":
        return check_rows(path, read_parquet_part(path, part), unit="row")
    lines = read_jsonl_part(path, offset=part.start, first_line=part.first_row, n_lines=part.length)
    return check_rows(path, lines)


@lru_cache(maxsize=1)
def _tags_of(state: FileState) -> TagTable:
    return read_tags(state.path)
