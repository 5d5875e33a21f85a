"""Counts of a pass of taggers over documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.types.documents import DocTags

__all__ = ["PassCounts"]


@dataclass(slots=True)
class PassCounts:
    """What a :class:`TagResult` counts, while the pass goes on."""

    n_written: int = 0
    n_unchanged: int = 0
    sources: Counter[str | None] = field(default_factory=Counter)
    styles: Counter[str | None] = field(default_factory=Counter)

    def add(self, tags: DocTags, *, written: bool) -> None:
        """Count one document."""
        self.n_written += written
        self.n_unchanged += not written
        self.sources[tags.source] += 1
        self.styles[tags.style] += 1

    def result(self, *, fingerprint: str, dry_run: bool, backup: str | None = None) -> TagResult:
        """Return the counts of the pass that has ended."""
        return TagResult(
            n_documents=self.n_written + self.n_unchanged,
            n_written=self.n_written,
            n_unchanged=self.n_unchanged,
            n_untagged=self.sources[None],
            sources=_known(self.sources),
            styles=_known(self.styles),
            fingerprint=fingerprint,
            dry_run=dry_run,
            backup=backup,
        )


def _known(counter: Counter[str | None]) -> dict[str, int]:
    return dict(sorted((name, n) for name, n in counter.items() if name is not None))
