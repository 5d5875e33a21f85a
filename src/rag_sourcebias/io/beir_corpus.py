"""The corpus part of a BEIR folder, in its paired and its plain layout."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_rows import document_text, metadata_text, read_rows
from rag_sourcebias.io.beir_tags import declared_tags, report_strange, tag_file
from rag_sourcebias.io.tags import read_tags
from rag_sourcebias.types import Corpus, DocTags, TagTable
from rag_sourcebias.types.names import require_name

__all__ = [
    "BeirCorpus",
    "corpus_files",
    "read_corpus",
    "source_of_stem",
    "version_of",
]

_logger = logging.getLogger("rag_sourcebias.io")


class BeirCorpus(NamedTuple):
    """A corpus and how the ids of its judgments map to it.

    ``rows`` gives, for each id that judgments may use, the corpus rows of its versions (an empty
    tuple for a document that exists but was not selected).
    """

    corpus: Corpus
    rows: Mapping[str, Sequence[int]]
    paired: bool


def source_of_stem(stem: str) -> str:
    """Return the source that a corpus file ``<stem>.jsonl`` holds.

    ``human`` is human and ``llm:…`` is kept; anything else names a model. ``%2F`` stands for a
    slash, which no file name can hold.

    Examples
    --------
    >>> source_of_stem("human"), source_of_stem("llama-2-7b-chat"), source_of_stem("llm:x")
    ('human', 'llm:llama-2-7b-chat', 'llm:x')
    """
    name = unquote(stem)
    return name if name == "human" or name.startswith("llm:") else f"llm:{name}"


def read_corpus(folder: Path, *, sources: Sequence[str] | None, titles: bool) -> BeirCorpus:
    """Read ``corpus/<source>.jsonl`` files or ``corpus.jsonl``, whichever the folder has."""
    files = corpus_files(folder)
    if None in files:
        return _read_plain(files[None], sources, titles=titles)
    return _read_paired({s: f for s, f in files.items() if s is not None}, sources, titles=titles)


def corpus_files(folder: Path) -> dict[str | None, Path]:
    """Find the files of a corpus, in row order, by the source each holds.

    The key of a plain ``corpus.jsonl``, whose documents have sources of their own, is None.

    Raises
    ------
    DataError
        If there are none, files of both layouts, or two files of one source.
    """
    paired = _jsonl_files(folder / "corpus")
    plain = [p for p in _jsonl_files(folder) if _stem(p) == "corpus"]
    if bool(paired) == bool(plain) or len(plain) > 1:
        found = ", ".join(str(p.relative_to(folder)) for p in [*plain, *paired])
        raise DataError(
            f"{folder} holds {found or 'no corpus'}; expected either corpus/<source>.jsonl files "
            "(versions of a document share its _id) or one corpus.jsonl, each plain or .gz"
        )
    by_source: dict[str | None, Path] = {None: plain[0]} if plain else {}
    for file in paired:
        source = require_name(source_of_stem(_stem(file)), "source", str(file))
        if source in by_source:
            raise DataError(f"{by_source[source]} and {file} both hold source {source!r}; keep one")
        by_source[source] = file
    return by_source


def _jsonl_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _read_paired(
    by_source: Mapping[str, Path], sources: Sequence[str] | None, *, titles: bool
) -> BeirCorpus:
    texts: list[str] = []
    items: list[tuple[str, DocTags]] = []
    rows: dict[str, list[int]] = {}
    folder = str(next(iter(by_source.values())).parent)
    for source in _selected(list(by_source), sources, folder):
        for doc_id, row in read_rows(by_source[source]):
            rows.setdefault(doc_id, []).append(len(texts))
            texts.append(document_text(row, titles=titles))
            items.append(version_of(source, doc_id, row))
    corpus = Corpus(texts=tuple(texts), tags=TagTable.from_tags(items))
    return BeirCorpus(corpus=corpus, rows=rows, paired=True)


def version_of(source: str, doc_id: str, row: Mapping[str, Any]) -> tuple[str, DocTags]:
    """Return id and tags of a document in the paired layout."""
    style = metadata_text(row, "style")
    tags = DocTags(source=source, pair_id=doc_id, style=style, origin="declared")
    return f"{doc_id}@{source}", tags


def _read_plain(file: Path, sources: Sequence[str] | None, *, titles: bool) -> BeirCorpus:
    tags_file = tag_file(file.parent)
    table = read_tags(tags_file) if tags_file else None
    texts: list[str] = []
    items: list[tuple[str, DocTags]] = []
    strange: list[str] = []
    for doc_id, row in read_rows(file):
        texts.append(document_text(row, titles=titles))
        tags, refused = declared_tags(doc_id, row, table)
        strange += refused
        items.append((doc_id, tags))
    report_strange(file, strange)
    corpus = Corpus(texts=tuple(texts), tags=TagTable.from_tags(items))
    if table:
        extra = [d for d in table.doc_ids if d not in corpus.tags.row_of]
        if extra:
            _logger.warning(
                "%s: tags of %d document(s) that are not in the corpus were dropped, first %s",
                file.parent,
                len(extra),
                extra[:3],
            )
    rows: dict[str, tuple[int, ...]] = {d: (row,) for row, d in enumerate(corpus.doc_ids)}
    if sources is not None:
        chosen = _selected(list(corpus.tags.sources), sources, str(file))
        codes = [corpus.tags.sources.index(s) for s in chosen]
        keep: npt.NDArray[np.intp] = np.flatnonzero(np.isin(corpus.tags.source_codes, codes))
        rows = dict.fromkeys(corpus.doc_ids, ())
        corpus = corpus.take(keep)
        rows.update((d, (row,)) for row, d in enumerate(corpus.doc_ids))
    return BeirCorpus(corpus=corpus, rows=rows, paired=False)


def _selected(found: list[str], asked: Sequence[str] | None, where: str) -> list[str]:
    if asked is None:
        return found
    missing = [source for source in asked if source not in found]
    if missing or not asked:
        raise DataError(f"{where} has no source {missing or asked}; sources are {sorted(found)}")
    return [source for source in found if source in asked]
