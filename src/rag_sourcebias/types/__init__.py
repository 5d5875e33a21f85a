"""The data model: frozen, validated, free of any framework."""

from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, DocTags, Query, TagTable
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.rankings import RankedList, Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import (
    SCHEMA_VERSION,
    AuditConfig,
    DataSummary,
    ExposureShare,
    SkewCell,
    SkewReport,
    SoleCorpusCheck,
    SourceScores,
    SystemSkew,
    TwinSkew,
)

__all__ = [
    "SCHEMA_VERSION",
    "AuditConfig",
    "Corpus",
    "DataSummary",
    "Dataset",
    "DocTags",
    "ExposureShare",
    "Interval",
    "Qrels",
    "Query",
    "RankedList",
    "Run",
    "SkewCell",
    "SkewReport",
    "SoleCorpusCheck",
    "SourceScores",
    "SystemSkew",
    "TagTable",
    "TwinSkew",
]
