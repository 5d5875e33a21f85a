"""Where a retrieval happened, as far as LangChain says."""

from __future__ import annotations

from rag_sourcebias.instrument import Recorder
from rag_sourcebias.instrument.events import CheckedLabels

__all__ = ["RunLabels"]

_MOST_KNOWN = 1_000  # run names can be set for each call


class RunLabels:
    """Labels "retriever" and "store", where the user has not set them and there is room.

    Parameters
    ----------
    recorder : Recorder
        Has the user's labels.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[tuple[object, object], CheckedLabels] = {}

    def of(self, retriever: object, store: object) -> CheckedLabels:
        """Return the labels of one run; what is not text is left out."""
        found = self._known.get((retriever, store))
        if found is None:
            found = self._recorder.labels_beside({"retriever": retriever, "store": store})
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[retriever, store] = found
        return found
