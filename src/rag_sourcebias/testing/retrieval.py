"""The contract of adapters that observe retrievals."""

from __future__ import annotations

from rag_sourcebias.testing.counting import CountingContract
from rag_sourcebias.testing.recording import RecordingContract
from rag_sourcebias.testing.robustness import RobustnessContract

__all__ = ["RetrievalContract"]


class RetrievalContract(CountingContract, RobustnessContract, RecordingContract):
    """Inherit, implement the hooks with the real framework, name what it does not have.

    Capabilities: "async" (:meth:`asearch`), "batch" (:meth:`search_batch`), "nested"
    (:meth:`build_nested`), "empty" (:meth:`build` of no documents can be searched), "metadata"
    (results carry the documents' metadata).
    """
