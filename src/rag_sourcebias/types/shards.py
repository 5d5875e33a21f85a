"""Parts of a corpus that does not have to fit in memory."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Shard"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Consecutive rows of a corpus, read and worked on together.

    Parameters
    ----------
    index : int
        Number of the shard, from 0.
    first_row : int
        Row of its first document within the whole corpus.
    n_documents : int
    """

    index: int
    first_row: int
    n_documents: int

    @property
    def rows(self) -> range:
        """Rows of the whole corpus that the shard holds."""
        return range(self.first_row, self.first_row + self.n_documents)
