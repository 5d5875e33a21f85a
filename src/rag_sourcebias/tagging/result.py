"""What tagging a store came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["TagResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagResult:
    """Counts of one pass of taggers over a store.

    Parameters
    ----------
    n_documents : int
        Documents looked at.
    n_written : int
        Documents whose tags were written, or would be in a dry run.
    n_unchanged : int
        Documents that already carried exactly these tags.
    n_untagged : int
        Documents whose source no tagger knows.
    sources, styles : mapping of str to int
        Documents of each source and of each style.
    n_missing : int
        Documents that were deleted from the store before their tags could be written.
    missing_ids : tuple of str
        The first of them.
    fingerprint : str
        Identity of the taggers.
    dry_run : bool
        Nothing was written.
    backup : str or None
        The file that keeps the tags that were replaced.
    """

    n_documents: int
    n_written: int
    n_unchanged: int
    n_untagged: int
    sources: Mapping[str, int] = field(default_factory=dict)
    styles: Mapping[str, int] = field(default_factory=dict)
    n_missing: int = 0
    missing_ids: tuple[str, ...] = ()
    fingerprint: str = ""
    dry_run: bool = False
    backup: str | None = None
