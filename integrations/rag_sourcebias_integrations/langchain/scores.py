"""Scores of the documents a search returns, taken from the searches inside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

from rag_sourcebias.instrument import DroppedEvents, guarded
from rag_sourcebias_integrations.langchain.convert import documents_in, scores_in

__all__ = ["Scores", "note_search", "searching"]

_RELEVANCE = "similarity_search_with_relevance_scores"
_RAW = "similarity_search_with_score"


class Scores:
    """What the observed searches inside a retrieval returned."""

    def __init__(self) -> None:
        self._found: list[tuple[Any, str, Any]] = []

    def note(self, store: Any, name: str, result: Any) -> None:  # noqa: ANN401
        """Keep the result of a search that gives scores."""
        if name in (_RELEVANCE, _RAW):
            self._found.append((store, name, result))

    def of(self, documents: Sequence[Any], dropped: DroppedEvents) -> list[float] | None:
        """Return the scores of exactly these documents in this order, higher being better.

        None where no search gave the very objects in this order, where the store does not say
        how its raw scores (often distances) become relevance, or where that contradicts the
        order of the documents.
        """
        for store, name, result in reversed(self._found):
            with guarded(dropped, "scores could not be read"):
                scores = _scores(store, name, result, documents)
                if scores is not None:
                    return scores
        return None


_scores_of_run: ContextVar[Scores | None] = ContextVar("rag_sourcebias_scores", default=None)


@contextmanager
def searching() -> Iterator[Scores]:
    """Collect scores inside this block; inner blocks add to the outermost one."""
    outer = _scores_of_run.get()
    if outer is not None:
        yield outer
        return
    scores = Scores()
    _scores_of_run.set(scores)
    try:
        yield scores
    finally:
        _scores_of_run.set(None)


def note_search(store: Any, name: str, result: Any) -> None:  # noqa: ANN401
    """Hand a result to the retrieval that stands around it."""
    scores = _scores_of_run.get()
    if scores is not None:
        scores.note(store, name.removeprefix("a"), result)


def _scores(store: Any, name: str, result: Any, documents: Sequence[Any]) -> list[float] | None:  # noqa: ANN401
    inside = documents_in(result)
    if len(inside) != len(documents) or any(
        a is not b for a, b in zip(inside, documents, strict=True)
    ):
        return None
    scores = scores_in(result)
    if scores is not None and name == _RAW:
        try:
            relevance = store._select_relevance_score_fn()
        except (NotImplementedError, ValueError):  # LangChain's way to say that none is known
            return None
        scores = [float(relevance(score)) for score in scores]
    if scores is None or not all(map(math.isfinite, scores)):
        return None
    return scores if all(a >= b for a, b in pairwise(scores)) else None
