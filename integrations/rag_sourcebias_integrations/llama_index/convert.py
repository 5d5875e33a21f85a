"""LlamaIndex results as the core records them: ids, scores and tags of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_sourcebias.instrument import Recorder, guarded
from rag_sourcebias.instrument.events import MAX_LABELS

__all__ = ["query_text", "record_nodes"]


def query_text(query: Any) -> str:  # noqa: ANN401 - a text, a QueryBundle or None
    """Text of a query in any of the forms in which LlamaIndex hands it around."""
    return query if isinstance(query, str) else getattr(query, "query_str", "")


def record_nodes(
    recorder: Recorder,
    nodes: Sequence[Any],
    *,
    query: Any,  # noqa: ANN401
    labels: Mapping[str, str],
) -> None:
    """Record what a retriever returned; never raises.

    Parameters
    ----------
    recorder : Recorder
        Its ``doc_id`` is given the ``NodeWithScore``; without it the id is the node's.
    nodes : sequence of NodeWithScore
        Best first. Only read, now. Scores are recorded where every node has one.
    query : str or QueryBundle
    labels : mapping of str to str
        Those the user gave come first: by name, and where there would be too many.
    """
    with guarded(recorder.dropped, "result could not be read"):
        plain = [found.node for found in nodes]
        scores = [found.score for found in nodes]
        recorder.record(
            [node.id_ for node in plain]
            if recorder.doc_id is None
            else [recorder.doc_id(found) for found in nodes],
            metadata=[node.metadata for node in plain],
            scores=None if None in scores else scores,
            query=query_text(query),
            labels=_beside(labels, recorder),
        )


def _beside(labels: Mapping[str, str], recorder: Recorder) -> Mapping[str, str]:
    given = recorder.labels
    if not given:
        return labels
    added = [(key, value) for key, value in labels.items() if key not in given]
    return dict(added[: MAX_LABELS - len(given)])
