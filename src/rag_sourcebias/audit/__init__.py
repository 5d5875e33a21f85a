"""The verbs: whole audits that return reports.

Judged evaluations are loaded when first used: an audit of rankings needs nothing of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rag_sourcebias.audit.dataset import audit_source
from rag_sourcebias.audit.source import measure_source_bias

if TYPE_CHECKING:
    from rag_sourcebias.audit.judged import (
        judge_items_with_intervals,
        judge_ranking_with_intervals,
        judge_with_intervals,
    )

__all__ = [
    "audit_source",
    "judge_items_with_intervals",
    "judge_ranking_with_intervals",
    "judge_with_intervals",
    "measure_source_bias",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public object
    if name in __all__:
        return getattr(import_module("rag_sourcebias.audit.judged"), name)
    raise AttributeError(f"module 'rag_sourcebias.audit' has no attribute {name!r}")
