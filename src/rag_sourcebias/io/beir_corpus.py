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
from rag_sourcebias.io.beir_rows import document_text, metadata_of, metadata_text, read_rows
from rag_sourcebias.io.tags import read_tags
from rag_sourcebias.types import Corpus, DocTags, TagTable

__all__ = ["BeirCorpus", "read_corpus", "source_of_stem"]

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
    paired = _jsonl_files(folder / "corpus")
    plain = [p for p in _jsonl_files(folder) if _stem(p) == "corpus"]
    if bool(paired) == bool(plain) or len(plain) > 1:
        found = ", ".join(str(p.relative_to(folder)) for p in [*plain, *paired])
        raise DataError(
            f"{folder} holds {found or 'no corpus'}; expected either corpus/<source>.jsonl files "
            "(versions of a document share its _id) or one corpus.jsonl, each plain or .gz"
        )
    if paired:
        return _read_paired(paired, sources, titles=titles)
    return _read_plain(plain[0], sources, titles=titles)


def _jsonl_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name.endswith((".jsonl", ".jsonl.gz")))


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _read_paired(files: list[Path], sources: Sequence[str] | None, *, titles: bool) -> BeirCorpus:
    by_source: dict[str, Path] = {}
    for file in files:
        source = source_of_stem(_stem(file))
        if source in by_source:
            raise DataError(f"{by_source[source]} and {file} both hold source {source!r}; keep one")
        by_source[source] = file
    texts: list[str] = []
    items: list[tuple[str, DocTags]] = []
    rows: dict[str, list[int]] = {}
    for source in _selected(list(by_source), sources, str(files[0].parent)):
        for doc_id, row in read_rows(by_source[source]):
            rows.setdefault(doc_id, []).append(len(texts))
            texts.append(document_text(row, titles=titles))
            style = metadata_text(row, "style")
            tags = DocTags(source=source, pair_id=doc_id, style=style, origin="declared")
            items.append((f"{doc_id}@{source}", tags))
    corpus = Corpus(texts=tuple(texts), tags=TagTable.from_tags(items))
    return BeirCorpus(corpus=corpus, rows=rows, paired=True)


def _read_plain(file: Path, sources: Sequence[str] | None, *, titles: bool) -> BeirCorpus:
    table = _tag_table(file.parent)
    texts: list[str] = []
    items: list[tuple[str, DocTags]] = []
    strange: list[str] = []
    for doc_id, row in read_rows(file):
        texts.append(document_text(row, titles=titles))
        declared, refused = _declared(row)
        strange += refused
        items.append((doc_id, table.get(doc_id) if table and doc_id in table.row_of else declared))
    if strange:
        _logger.warning(
            "%s: %d metadata.source value(s) such as %r were not read as tags: only 'human' and "
            "'llm:<model>' are; use a tags.tsv for other names",
            file,
            len(strange),
            strange[0],
        )
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


def _tag_table(folder: Path) -> TagTable | None:
    names = [f"tags.{ending}{gz}" for ending in ("tsv", "csv", "jsonl") for gz in ("", ".gz")]
    files = [folder / name for name in names if (folder / name).is_file()]
    if len(files) > 1:
        raise DataError(f"{folder} holds {', '.join(f.name for f in files)}; keep one tag file")
    return read_tags(files[0]) if files else None


def _declared(row: Mapping[str, Any]) -> tuple[DocTags, list[str]]:
    """Return the tags a corpus row declares, and a source value that is no tag."""
    # Elsewhere the key often holds a path, an address or a publisher: never take that for a tag.
    value = metadata_of(row).get("source")
    known = isinstance(value, str) and (value == "human" or value.startswith("llm:"))
    source = value if known else None
    tags = DocTags(
        source=source,
        style=metadata_text(row, "style"),
        pair_id=metadata_text(row, "pair_id"),
        origin=None if source is None else "declared",
    )
    return tags, [] if source or not value else [str(value)]
