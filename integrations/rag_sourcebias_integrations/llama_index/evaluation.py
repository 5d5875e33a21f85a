"""An evaluator whose mean score comes with an interval, from a few human scores."""

import dataclasses
import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.evaluation.base import BaseEvaluator

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Code, Interval
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias_integrations._require import require_kind


class EvaluationCode(Code, home="llama_index"):
    """What to know of an interval for what an evaluator scored."""

    LEFT_OUT = (
        "{n} of {of:item|items} got no score from the evaluator and are left out, {labeled} of "
        "them with a human score"
    )


class IntervalEvaluator(BaseEvaluator):
    """Wrap an evaluator; its results pass through unchanged and their scores are kept.

    Works wherever an evaluator does (``BatchEvalRunner`` included). An item is known by its query,
    or by ``item_id="..."`` given to ``evaluate``; the same item evaluated again replaces its
    score, and a call that raises leaves none.

    Parameters
    ----------
    inner : BaseEvaluator

    Raises
    ------
    DataError
        If ``inner`` is no evaluator.
    """

    def __init__(self, inner: Any) -> None:  # noqa: ANN401
        require_kind(inner, BaseEvaluator, "LlamaIndex evaluator")
        self._inner = inner
        # by item and response
        self._scores: dict[tuple[str, str | None], float] = {}
        self._lock = threading.Lock()

    async def aevaluate(
        self,
        query: str | None = None,
        response: str | None = None,
        contexts: Sequence[str] | None = None,
        *,
        item_id: str | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Evaluate by the wrapped evaluator."""
        with self._lock:
            names = (item_id, query, response, f"item {len(self._scores) + 1}")
            item = next(name for name in names if name is not None), response
            self._scores[item] = math.nan
        found = await self._inner.aevaluate(
            query=query, response=response, contexts=contexts, **kwargs
        )
        if not found.invalid_result and found.score is not None:
            self._scores[item] = float(found.score)
        return found

    @property
    def scores(self) -> list[tuple[str, float]]:
        """Item ids and scores in the order in which items were first begun; NaN without a score."""
        with self._lock:
            return [(name, score) for (name, _), score in self._scores.items()]

    def interval(
        self,
        human: Mapping[str, float] | Sequence[float | None],
        **options: Any,  # noqa: ANN401
    ) -> Interval:
        """Interval for the mean that people would give over all items evaluated so far.

        Parameters
        ----------
        human : mapping of str to float, or sequence of float or None
            Human scores by item id, or one entry per item in the order of :attr:`scores`; None or
            NaN where there is none.
        **options
            As for :func:`rag_sourcebias.mean_interval`: method, confidence_level,
            bounds, target, …

        Returns
        -------
        Interval
            Items without a score of the evaluator are left out; a note says how many.

        Raises
        ------
        DataError
            If ids are unknown or not unique, or a sequence has another length.
        InsufficientDataError
            With too few human scores.
        """
        scores = self.scores
        judge = np.array([score for _, score in scores], np.float64)
        labels = _aligned([item_id for item_id, _ in scores], human)
        scored = np.isfinite(judge)
        labelled = np.isfinite(labels)
        both = scored & labelled
        found = mean_interval(labels[both], judge[both], judge[scored & ~labelled], **options)
        if scored.all():
            return found
        lost = int((~scored).sum())
        lost_labels = int((~scored & labelled).sum())
        note = EvaluationCode.LEFT_OUT(n=lost, of=len(scores), labeled=lost_labels)
        return dataclasses.replace(found, notes=(*found.notes, note))

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: dict[str, Any]) -> None:
        """Prompts belong to the wrapped evaluator."""

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {"evaluator": self._inner}


def _aligned(
    item_ids: Sequence[str], human: Mapping[str, float] | Sequence[float | None]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Human scores in the order of the items, NaN where there is none."""
    if isinstance(human, Mapping):
        known = Counter(item_ids)
        unknown = sorted(human.keys() - known)
        if unknown:
            raise DataError(
                f"human scores for {len(unknown)} items that were not evaluated, such as "
                f"{unknown[0]!r:.80}; an item is known by its query, or by item_id"
            )
        twice = sorted(name for name in human if known[name] > 1)
        if twice:
            raise DataError(
                f"item {twice[0]!r:.80} was evaluated with several responses; give each call of "
                "evaluate its own item_id"
            )
        human = [human.get(name) for name in item_ids]
    if len(human) != len(item_ids):
        raise DataError(
            f"{len(human)} human scores for {len(item_ids)} evaluated items; expected one "
            "entry per item, None where there is no human score"
        )
    return np.array(human, np.float64)  # None becomes NaN
