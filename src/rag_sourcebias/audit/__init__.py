"""The verbs: what an audit does, end to end."""

from rag_sourcebias.audit.dataset import audit_source
from rag_sourcebias.audit.source import measure_source_bias

__all__ = ["audit_source", "measure_source_bias"]
