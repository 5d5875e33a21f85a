"""What a sharded corpus over another one has of it."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.protocols import ShardedCorpus

__all__ = ["OverCorpus"]


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
