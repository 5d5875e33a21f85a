"""Labels spread over the documents of all queries: the sample and the interval from it."""

from rag_sourcebias.intervals.documents.design import design_document_sample
from rag_sourcebias.intervals.documents.enough import DOCUMENT_LABELS_NEEDED
from rag_sourcebias.intervals.documents.estimate import document_interval
from rag_sourcebias.intervals.documents.sample import DocumentSample, LabeledDocuments

__all__ = [
    "DOCUMENT_LABELS_NEEDED",
    "DocumentSample",
    "LabeledDocuments",
    "design_document_sample",
    "document_interval",
]
