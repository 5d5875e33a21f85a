"""LlamaIndex results as the core records them: ids, scores and tags of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from rag_sourcebias.instrument import Recorder
from rag_sourcebias.instrument.events import CheckedLabels

__all__ = ["query_text", "record_nodes"]

_NODE, _SCORE = attrgetter("node"), attrgetter("score")
_ID, _METADATA = attrgetter("id_"), attrgetter("metadata")


def query_text(query: Any) -> str:  # noqa: ANN401 - a text, a QueryBundle or None
    """Text of a query in any of the forms in which LlamaIndex hands it around."""
    return query if isinstance(query, str) else getattr(query, "query_str", "")


def record_nodes(
    recorder: Recorder,
    nodes: Sequence[Any],
    *,
    query: Any,  # noqa: ANN401
    labels: CheckedLabels,
) -> None:
    """Record what a retriever returned; never raises.

    Parameters
    ----------
    recorder : Recorder
        Its ``doc_id`` is given the ``NodeWithScore``; without it the id is the node's.
    nodes : sequence of NodeWithScore
        Best first. Only read, now. Scores are recorded where every node has one.
    query : str or QueryBundle
    labels : CheckedLabels
    """
    try:
        plain = list(map(_NODE, nodes))
        scores = list(map(_SCORE, nodes))
        doc_id = recorder.doc_id
        recorder.record(
            map(_ID, plain) if doc_id is None else map(doc_id, nodes),
            metadata=map(_METADATA, plain),
            scores=None if None in scores else scores,
            query=query if isinstance(query, str) else query_text(query),
            labels=labels,
        )
    except Exception as error:  # noqa: BLE001 - as guarded, which costs more on this hot path
        recorder.dropped.add("result could not be read", error=error)
