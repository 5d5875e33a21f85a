"""The seam to stores of documents whose metadata can hold tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.taggers import Tagger
from rag_sourcebias.types.documents import DocTags

__all__ = ["DocumentStore"]


@runtime_checkable
class DocumentStore(Protocol):
    """Documents in a vector store, read and tagged page by page with constant memory.

    A package offers one by an entry point in the group ``rag_sourcebias.stores``, named as the
    kind in ``--store KIND:PLACE``: a callable ``(place, collection)`` that opens it.
    """

    name: str

    def __len__(self) -> int:
        """Number of documents."""
        ...

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in a stable order."""
        ...

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and stored tags of every document, in a stable order."""
        ...

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Write the tags of every document into its metadata, nothing else of it being touched.

        Goes on where an interrupted pass of the same taggers stopped.

        Parameters
        ----------
        dry_run : bool
            Count only.
        overwrite : bool
            Replace tags that other taggers wrote.
        backup : str or Path, optional
            JSONL file that keeps the tags that are replaced.
        on_progress : callable, optional
            Told how many documents are done.

        Raises
        ------
        DataError
            If other taggers tagged the store before and ``overwrite`` is off.
        """
        ...
