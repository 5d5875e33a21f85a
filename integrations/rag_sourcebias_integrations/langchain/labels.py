"""Where a retrieval happened, as far as LangChain says."""

from __future__ import annotations

from collections.abc import Mapping

from rag_sourcebias.instrument.events import MAX_LABELS

__all__ = ["RunLabels"]

_KEYS = ("retriever", "store")
_MOST_KNOWN = 1_000  # run names can be set for each call


class RunLabels:
    """Labels "retriever" and "store", where the user has not set them and there is room.

    Parameters
    ----------
    given : mapping of str to str
        The user's labels.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        free = [key for key in _KEYS if key not in given]
        self._free = frozenset(free[: max(0, MAX_LABELS - len(given))])
        self._known: dict[tuple[object, object], dict[str, str]] = {}

    def of(self, retriever: object, store: object) -> Mapping[str, str]:
        """Return the labels of one run; what is not text is left out."""
        found = self._known.get((retriever, store))
        if found is None:
            found = {
                key: value
                for key, value in zip(_KEYS, (retriever, store), strict=True)
                if key in self._free and isinstance(value, str)
            }
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[retriever, store] = found
        return found
