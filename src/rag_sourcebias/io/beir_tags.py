"""Tags of a plain BEIR corpus: from a tag file, or declared by its rows."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_rows import metadata_of, metadata_text
from rag_sourcebias.types import DocTags, TagTable

__all__ = ["declared_tags", "report_strange", "tag_file"]

_logger = logging.getLogger("rag_sourcebias.io")


def tag_file(folder: Path) -> Path | None:
    """Return the tag file beside a plain corpus, None if there is none.

    Raises
    ------
    DataError
        If there are several.
    """
    names = [f"tags.{ending}{gz}" for ending in ("tsv", "csv", "jsonl") for gz in ("", ".gz")]
    files = [folder / name for name in names if os.path.lexists(folder / name)]
    if len(files) > 1:
        raise DataError(f"{folder} holds {', '.join(f.name for f in files)}; keep one tag file")
    return files[0] if files else None


def declared_tags(
    doc_id: str, row: Mapping[str, Any], table: TagTable | None
) -> tuple[DocTags, list[str]]:
    """Return the tags of a plain document, and a source value that is no tag.

    A row of the tag table goes before what the document's own row declares.
    """
    # Elsewhere the key often holds a path, an address or a publisher: never take that for a tag.
    value = metadata_of(row).get("source")
    known = isinstance(value, str) and (value == "human" or value.startswith("llm:"))
    source = value if known else None
    refused = [] if source or not value else [str(value)]
    if table and doc_id in table.row_of:
        return table.get(doc_id), refused
    tags = DocTags(
        source=source,
        style=metadata_text(row, "style"),
        pair_id=metadata_text(row, "pair_id"),
        origin=None if source is None else "declared",
    )
    return tags, refused


def report_strange(where: object, strange: Sequence[str]) -> None:
    """Warn about source values that were not read as tags, if there are any."""
    if strange:
        _logger.warning(
            "%s: %d metadata.source value(s) such as %r were not read as tags: only 'human' and "
            "'llm:<model>' are; use a tags.tsv for other names",
            where,
            len(strange),
            strange[0],
        )
