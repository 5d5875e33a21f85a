"""Every item's way from its requests to its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.judges.distributions import Verdict
from rag_sourcebias.llm.ask import Outcome
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.types.completions import Usage
from rag_sourcebias.types.judgments import JudgeItem, Judgments

__all__ = ["Tally"]


class Tally:
    """Collect the outcomes of items, whatever their order.

    Parameters
    ----------
    items : sequence of JudgeItem
    n_grades : int
    per_item : int
        Requests of each item; they follow one another.

    Raises
    ------
    DataError
        If there are no items or a pair occurs twice.
    """

    def __init__(self, items: Sequence[JudgeItem], *, n_grades: int, per_item: int) -> None:
        if not items:
            raise DataError("no items to judge")
        pairs = Counter((item.query_id, item.doc_id) for item in items)
        (query, doc), most = pairs.most_common(1)[0]
        if most > 1:
            raise DataError(
                f"query {query!r}, document {doc!r} is to be judged {most} times; give each pair "
                "once"
            )
        self.items = items
        self._n_grades = n_grades
        self._per_item = per_item
        self._outcomes: dict[int, list[Outcome]] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._tokens = np.zeros((2, len(items)), dtype=np.int64)

    @property
    def done(self) -> int:
        """Items that have ended."""
        return len(self._verdicts)

    def add(self, outcome: Outcome) -> list[Outcome] | None:
        """Add an outcome; return all of its item, in order, once they are complete."""
        row = outcome.index // self._per_item
        outcomes = self._outcomes.setdefault(row, [])
        outcomes.append(outcome)
        if outcome.answer is not None:
            self._tokens[:, row] += outcome.answer.prompt_tokens, outcome.answer.completion_tokens
        if len(outcomes) < self._per_item:
            return None
        return sorted(self._outcomes.pop(row), key=lambda one: one.index)

    def close(self, row: int, verdict: Verdict) -> None:
        """Set what became of an item."""
        self._verdicts[row] = verdict

    def judgments(
        self, *, judge: str, settings: Mapping[str, str], usage: Usage, prices: Prices | None
    ) -> Judgments:
        """Return all rows."""
        verdicts = [self._verdicts[row] for row in range(len(self.items))]
        none = np.full(self._n_grades, np.nan)
        prompt, completion = self._tokens
        paid = total = None
        if prices is not None:
            paid = prices.cost(
                prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
            )
            total = prices.cost(
                prompt_tokens=int(prompt.sum()), completion_tokens=int(completion.sum())
            )
        return Judgments(
            query_ids=tuple(item.query_id for item in self.items),
            doc_ids=tuple(item.doc_id for item in self.items),
            probs=np.array([none if v.probs is None else v.probs for v in verdicts]),
            status=tuple(v.status for v in verdicts),
            reasons=tuple(v.reason for v in verdicts),
            mass=np.array([v.mass for v in verdicts]),
            n_bounded=np.array([v.n_bounded for v in verdicts], dtype=np.int64),
            prompt_tokens=prompt,
            completion_tokens=completion,
            judge=judge,
            settings=dict(settings),
            usage=usage,
            cost=paid,
            total_cost=total,
            currency=prices.currency if prices else "USD",
        )
