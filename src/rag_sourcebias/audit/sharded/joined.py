"""Tag tables of several shards put together, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_sourcebias.types.documents import TagTable

__all__ = ["joined_tags"]

IntArray = npt.NDArray[np.int32]


def joined_tags(tables: Sequence[TagTable], *, sources: Sequence[str] | None = None) -> TagTable:
    """Return one table with the rows of all, and only the names that some row has.

    Parameters
    ----------
    sources : sequence of str, optional
        Sources to have, sorted: a source may have no row and still be one of the corpus.
    """
    names, codes = _joined([(t.sources, t.source_codes) for t in tables], names=sources)
    pair_ids, pair_codes = _joined([(t.pair_ids, t.pair_codes) for t in tables])
    styles, style_codes = _joined([(t.styles, t.style_codes) for t in tables])
    origins = tuple(o for t in tables for o in t.origins or [None] * len(t))
    known = any(t.confidences is not None for t in tables)
    return TagTable(
        doc_ids=tuple(doc_id for table in tables for doc_id in table.doc_ids),
        sources=names,
        source_codes=codes,
        pair_ids=pair_ids,
        pair_codes=pair_codes,
        styles=styles,
        style_codes=style_codes,
        origins=origins if any(origins) else None,
        confidences=np.concatenate([_confidences(t) for t in tables]) if known else None,
    )


def _joined(
    columns: Sequence[tuple[Sequence[str], IntArray]], *, names: Sequence[str] | None = None
) -> tuple[tuple[str, ...], IntArray]:
    """Recode columns to one sorted list of names, by default those in use; −1 stays −1."""
    used = [[own[code] for code in np.unique(codes[codes >= 0])] for own, codes in columns]
    together = tuple(sorted({name for some in used for name in some}) if names is None else names)
    code_of = {name: code for code, name in enumerate(together)}
    result = [np.empty(0, dtype=np.int32)]
    for own, codes in columns:
        # The last one is taken by code −1.
        recode = np.array([*(code_of.get(name, -1) for name in own), -1], dtype=np.int32)
        result.append(recode[codes])
    return together, np.concatenate(result)


def _confidences(table: TagTable) -> npt.NDArray[np.float32]:
    if table.confidences is not None:
        return table.confidences
    return np.full(len(table), np.nan, dtype=np.float32)
