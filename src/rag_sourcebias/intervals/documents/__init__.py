"""Labels spread over the documents of all queries: the sample and the interval from it."""

from rag_sourcebias.intervals.documents.design import (
    DocumentSample,
    LabeledDocuments,
    design_document_sample,
)
from rag_sourcebias.intervals.documents.estimate import DOCUMENT_LABELS_NEEDED, document_interval

__all__ = [
    "DOCUMENT_LABELS_NEEDED",
    "DocumentSample",
    "LabeledDocuments",
    "design_document_sample",
    "document_interval",
]
