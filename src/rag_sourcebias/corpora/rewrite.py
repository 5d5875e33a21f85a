"""Rewriting by one model with one prompt: ask for everything, then write it in order.

The only state of a run is the cache of answers, in which an answer lies a moment after it came.
Files are written from it when nothing is left to ask, in the order of the documents: so a killed
run loses nothing it paid for, and what a resumed run writes is what an uninterrupted one writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from rag_sourcebias.corpora.cleaning import clean_rewrite
from rag_sourcebias.corpora.humans import HumanRow, read_human_rows
from rag_sourcebias.corpora.plan import Job
from rag_sourcebias.io.files import jsonl_text, read_jsonl, write_atomic
from rag_sourcebias.llm.ask import Asker
from rag_sourcebias.llm.cache import Answer, CompletionCache, request_key
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.types.completions import Completion, CompletionError, Request
from rag_sourcebias.types.rewrites import RewriteSource

__all__ = ["answered_rows", "rewrite_source"]

_BLOCK = 256  # documents looked up in the cache together

Lookup = Iterator[tuple[HumanRow, Request | None, Answer | None]]


def rewrite_source(
    job: Job,
    asker: Asker,
    cache: CompletionCache,
    *,
    prices: Prices | None,
    on_ended: Callable[[], None],
) -> RewriteSource:
    """Ask for what is missing, write the files and return the finished entry of the manifest.

    Raises
    ------
    CompletionError
        If the run had to stop before anything was answered.
    """
    errors: dict[int, CompletionError] = {}  # only failures are kept in memory
    requests = (
        request
        for row in read_human_rows(job.human_file)
        if (request := job.request(row)) is not None
    )
    for outcome in asker.ask(requests):
        if outcome.error is not None:
            errors[outcome.index] = outcome.error
        on_ended()
    tally = _Tally(source=job.source)
    records = _records(job, cache, errors)
    write_atomic(job.raw_file, jsonl_text(tally.counted(records)))
    if tally.done:
        write_atomic(job.corpus_file, jsonl_text(_corpus_rows(job)))
    else:  # an empty corpus file cannot be read
        job.corpus_file.unlink(missing_ok=True)
    return tally.finished(prices)


def answered_rows(rows: Iterator[HumanRow], job: Job, cache: CompletionCache | None) -> Lookup:
    """Give each document with its request and the answer to it, where the cache has one."""
    while block := list(islice(rows, _BLOCK)):
        requests = [job.request(row) for row in block]
        keys = [None if r is None else request_key(job.source.fingerprint, r) for r in requests]
        wanted = list(dict.fromkeys(key for key in keys if key is not None))
        known = {} if cache is None else cache.get(wanted)
        for row, request, key in zip(block, requests, keys, strict=True):
            yield row, request, None if key is None else known.get(key)


def _records(
    job: Job, cache: CompletionCache, errors: dict[int, CompletionError]
) -> Iterator[dict[str, Any]]:
    asked = -1
    for row, request, answer in answered_rows(read_human_rows(job.human_file), job, cache):
        if request is None:
            yield _record(row, "skipped", "no text")
            continue
        asked += 1
        if isinstance(answer, Completion):
            yield _read(row, answer)
        else:
            error = errors.get(asked)
            reason = "not_asked" if error is None else error.reason
            yield _record(row, "failed", reason) | {"error": "" if error is None else str(error)}


def _record(row: HumanRow, status: str, reason: str | None) -> dict[str, Any]:
    return {"_id": row.doc_id, "status": status, "reason": reason}


def _read(row: HumanRow, answer: Completion) -> dict[str, Any]:
    # Half a surrogate pair, which a server may send, cannot be written as UTF-8.
    raw = answer.text.encode("utf-8", "replace").decode()
    found = clean_rewrite(raw, original=row.text, finish_reason=answer.finish_reason)
    problem = "not unicode" if raw != answer.text else found.problem
    return {
        **_record(row, "skipped" if problem else "done", problem),
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "cleaned": list(found.steps),
        "text": None if problem else found.text,
        "raw": raw,
    }


def _corpus_rows(job: Job) -> Iterator[dict[str, Any]]:
    """Rows of the rewrites, with id and title of their documents."""
    style = {} if job.prompt.style is None else {"metadata": {"style": job.prompt.style}}
    for row, (_, record) in zip(
        read_human_rows(job.human_file), read_jsonl(job.raw_file), strict=True
    ):
        if record["status"] == "done":
            yield {"_id": row.doc_id, "title": row.title, "text": record["text"], **style}


class _Tally:
    """Counts records as they pass."""

    def __init__(self, *, source: RewriteSource) -> None:
        self._source = source
        self._ends: dict[str, Counter[str]] = {"skipped": Counter(), "failed": Counter()}
        self._cleaned: Counter[str] = Counter()
        self._tokens = {"prompt_tokens": 0, "completion_tokens": 0}
        self.done = 0

    def counted(self, records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for record in records:
            if record["status"] == "done":
                self.done += 1
                self._cleaned.update(record["cleaned"])
            else:
                self._ends[record["status"]][record["reason"]] += 1
            for name in self._tokens:
                self._tokens[name] += record.get(name, 0)
            yield record

    def finished(self, prices: Prices | None) -> RewriteSource:
        return replace(
            self._source,
            finished=True,
            done=self.done,
            skipped=dict(sorted(self._ends["skipped"].items())),
            failed=dict(sorted(self._ends["failed"].items())),
            cleaned=dict(sorted(self._cleaned.items())),
            cost=None if prices is None else prices.cost(**self._tokens),
            currency="" if prices is None else prices.currency,
            prompt_tokens=self._tokens["prompt_tokens"],
            completion_tokens=self._tokens["completion_tokens"],
        )
