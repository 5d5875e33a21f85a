"""The adapter contract kit; needs pytest.

Inherit :class:`RetrievalContract`, :class:`TaggingContract` or :class:`EncoderContract` in a test
class, implement the hooks with the real framework, and pytest runs the contract against it.
"""

from rag_sourcebias.testing.documents import DOCUMENTS, QUERY, ContractDocument, tag_document
from rag_sourcebias.testing.encoders import EncoderContract, SidedEncoder
from rag_sourcebias.testing.hooks import ContractFailure
from rag_sourcebias.testing.kit import ContractKit
from rag_sourcebias.testing.retrieval import RetrievalContract
from rag_sourcebias.testing.tagging import TaggingContract

__all__ = [
    "DOCUMENTS",
    "QUERY",
    "ContractDocument",
    "ContractFailure",
    "ContractKit",
    "EncoderContract",
    "RetrievalContract",
    "SidedEncoder",
    "TaggingContract",
    "tag_document",
]
