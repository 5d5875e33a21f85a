"""Shares of the corpus, from what a store of tags holds."""

from __future__ import annotations

from typing import Literal, Protocol

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.baselines import CorpusShare
from rag_sourcebias.types.documents import TagTable

__all__ = ["corpus_share"]


class _Tagged(Protocol):
    def table(self) -> TagTable: ...


def corpus_share(
    store: _Tagged | TagTable, *, by: Literal["source", "style"] = "source"
) -> CorpusShare:
    """Return the shares of the documents of a tag store (or table), untagged ones included.

    Parameters
    ----------
    store : TagTable, or a tag store with the method table
        Every document of it counts once.
    by : {"source", "style"}

    Returns
    -------
    CorpusShare
        In [0, 1], with sum 1; ``""`` stands for documents without a tag.

    Raises
    ------
    DataError
        If it holds no documents.
    """
    table = store if isinstance(store, TagTable) else store.table()
    if by not in ("source", "style"):
        raise DataError(f"by={by!r} is neither 'source' nor 'style'")
    if not len(table):
        raise DataError("the tag store holds no documents: there is no share of the corpus")
    names, codes = (
        (table.sources, table.source_codes) if by == "source" else (table.styles, table.style_codes)
    )
    counts = {name: int((codes == code).sum()) for code, name in enumerate(names)}
    counts[""] = int((codes < 0).sum())
    return CorpusShare({name: n / len(table) for name, n in sorted(counts.items()) if n})
