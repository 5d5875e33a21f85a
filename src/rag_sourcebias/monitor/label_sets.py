"""Which set of labels a retrieval belongs to, with a cap on how many sets there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_sourcebias.errors import DataError

__all__ = ["OTHER", "Key", "LabelSets", "short_text"]

OTHER = "other"
_MOST_TEXT = 200  # characters of a name or value that are kept
Key = tuple[tuple[str, str], ...]


def short_text(text: str) -> str:
    """Return at most 200 characters, without half characters, which JSON files cannot hold."""
    return text[:_MOST_TEXT].encode("utf-8", "replace").decode()


class LabelSets:
    """Map the labels of events to keys; the first ``most`` sets are told apart.

    Parameters
    ----------
    names : sequence of str
        Labels that count; others, which may be different for every request, are left out.
    most : int
        Sets told apart, at least 1. Retrievals of further ones share the set whose values are
        all ``"other"``.

    Raises
    ------
    DataError
        If a name is not text or occurs twice, or ``most`` is below 1.
    """

    def __init__(self, names: Sequence[str], *, most: int) -> None:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise DataError(f"labels must be a sequence of names, got {names!r}")
        if len(set(names)) != len(names):
            raise DataError(f"labels {list(names)} name one twice")
        if most < 1:
            raise DataError(f"max_label_sets must be at least 1, got {most}")
        self.names, self._most = tuple(names), most
        self._rest: Key = tuple((name, OTHER) for name in self.names)
        self._known: set[Key] = set()

    def key(self, labels: Mapping[str, str]) -> Key:
        """Return the key of these labels; one that is absent is left out of it."""
        found = tuple((k, short_text(labels[k])) for k in self.names if k in labels)
        if found in self._known:
            return found
        if len(self._known) >= self._most:
            return self._rest
        self._known.add(found)
        return found

    def add(self, key: Key) -> None:
        """Take a key of a stored state as known."""
        if key != self._rest:
            self._known.add(key)

    def forget(self, key: Key) -> None:
        """Make room again."""
        self._known.discard(key)
