"""Ask a judge by the workers of an engine, with the judgments that one process would give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.judges.llm_judge import LLMJudge
from rag_sourcebias.judges.tally import Tally
from rag_sourcebias.protocols import Engine
from rag_sourcebias.types.completions import CompletionError, FailureReason, Usage
from rag_sourcebias.types.judgments import JudgeItem, Judgments

__all__ = ["judge_with"]

_CHUNK = 64


class _Stopped(NamedTuple):
    """Why nothing of a chunk was asked; the error itself cannot be pickled."""

    message: str
    reason: FailureReason

    @property
    def error(self) -> CompletionError:
        return CompletionError(self.message, reason=self.reason, fatal=True)


_Result = Judgments | _Stopped


def judge_with(
    engine: Engine,
    make_judge: Callable[[], LLMJudge],
    items: Iterable[JudgeItem],
    *,
    chunk_size: int = _CHUNK,
    on_progress: Callable[[int], None] | None = None,
) -> Judgments:
    """Judge items in chunks, each asked by one worker.

    Each worker builds a judge of its own, so that up to ``concurrency`` requests of every worker
    are on their way at once. With a judge that has a cache on disk, a run that was killed goes on
    where it stopped; workers of one machine share the file.

    Parameters
    ----------
    engine : Engine
    make_judge : callable
        Builds the judge, in every worker and once here; it can be pickled.
    items : iterable of JudgeItem
    chunk_size : int
        Items that a worker is given at a time; 64 by default.
    on_progress : callable, optional
        Told how many items are done at least, after each chunk.

    Returns
    -------
    Judgments
        As ``make_judge().judge(items)`` returns them. Only where equal requests stand in
        different chunks may more be asked, and be counted in ``usage``.

    Raises
    ------
    DataError
        As :meth:`LLMJudge.judge`, or if ``chunk_size`` is below 1.
    CompletionError
        If every worker had to stop before anything was answered.
    """
    if chunk_size < 1:
        raise DataError(f"chunk_size must be at least 1, got {chunk_size}")
    judge = make_judge()
    # Also refuses pairs that occur twice, which workers would not see in different chunks.
    found = Tally(list(items), n_grades=judge.n_grades, per_item=judge.votes).items
    for item in found:
        judge.prompt.check(item.texts)
    chunks = [found[start : start + chunk_size] for start in range(0, len(found), chunk_size)]

    def tell(done: int, total: int) -> None:
        if on_progress is not None:  # the last chunk may be smaller, and may be done already
            on_progress(max(len(found) - (total - done) * chunk_size, 0))

    results = engine.map(_Prepare(make_judge), chunks, on_done=tell)
    stopped = [result for result in results if isinstance(result, _Stopped)]
    if len(stopped) == len(results):
        raise stopped[0].error
    parts = [_part(judge, *pair) for pair in zip(chunks, results, strict=True)]
    return _joined(judge, parts)


class _Prepare:
    """What a worker is prepared with; an instance can be pickled where the recipe can."""

    def __init__(self, make_judge: Callable[[], LLMJudge]) -> None:
        self._make_judge = make_judge

    def __call__(self) -> Callable[[Sequence[JudgeItem]], _Result]:
        return _ChunkJudge(self._make_judge()).judge


class _ChunkJudge:
    """A worker's judge; once it had to stop, it asks nothing more, as one process would."""

    def __init__(self, judge: LLMJudge) -> None:
        self._judge = judge
        self._stopped: _Stopped | None = None

    def judge(self, items: Sequence[JudgeItem]) -> _Result:
        """Judge a chunk, or return why nothing of it was asked."""
        if self._stopped is not None:
            return self._stopped
        try:
            found = self._judge.judge(items)
        except CompletionError as error:
            self._stopped = _Stopped(str(error), error.reason)
            return self._stopped
        if "not_asked" in found.status:
            reason = found.reasons[found.status.index("not_asked")]
            self._stopped = _Stopped(reason, "not_asked")
        return found


def _part(judge: LLMJudge, items: Sequence[JudgeItem], result: _Result) -> Judgments:
    """Return the judgments of a chunk; one that was not asked says so for every item."""
    if isinstance(result, Judgments):
        return result
    why = result.message if result.reason == "not_asked" else f"not asked: {result.message}"
    n, none = len(items), np.zeros(len(items), dtype=np.int64)
    return Judgments(
        query_ids=tuple(item.query_id for item in items),
        doc_ids=tuple(item.doc_id for item in items),
        probs=np.full((n, judge.n_grades), np.nan),
        status=("not_asked",) * n,
        reasons=(why,) * n,
        mass=np.full(n, np.nan),
        n_bounded=none,
        prompt_tokens=none,
        completion_tokens=none,
        judge=judge.name,
        usage=Usage(requests=n * judge.votes, failed=n * judge.votes),
    )


def _joined(judge: LLMJudge, parts: Sequence[Judgments]) -> Judgments:
    """Return all parts as one, in their order."""
    usage = Usage(
        **{one.name: sum(getattr(p.usage, one.name) for p in parts) for one in fields(Usage)}
    )
    prompt = np.concatenate([part.prompt_tokens for part in parts])
    completion = np.concatenate([part.completion_tokens for part in parts])
    paid = total = None
    if judge.prices is not None:  # of the sums: sums of costs would differ in the last digits
        paid = judge.prices.cost(
            prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
        )
        total = judge.prices.cost(
            prompt_tokens=int(prompt.sum()), completion_tokens=int(completion.sum())
        )
    return Judgments(
        query_ids=tuple(name for part in parts for name in part.query_ids),
        doc_ids=tuple(name for part in parts for name in part.doc_ids),
        probs=np.concatenate([part.probs for part in parts]),
        status=tuple(status for part in parts for status in part.status),
        reasons=tuple(reason for part in parts for reason in part.reasons),
        mass=np.concatenate([part.mass for part in parts]),
        n_bounded=np.concatenate([part.n_bounded for part in parts]),
        prompt_tokens=prompt,
        completion_tokens=completion,
        judge=judge.name,
        settings=dict(judge.settings),
        usage=usage,
        cost=paid,
        total_cost=total,
        currency=judge.prices.currency if judge.prices else "USD",
    )
