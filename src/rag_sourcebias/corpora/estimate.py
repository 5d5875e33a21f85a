"""What rewriting will cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_sourcebias.corpora.humans import HumanInput, Untagged, human_rows
from rag_sourcebias.corpora.paired import ANSWERS
from rag_sourcebias.corpora.plan import Options, planned_jobs
from rag_sourcebias.corpora.prompts import REWRITE, RewritePrompt
from rag_sourcebias.corpora.rewrite import answered_rows
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.llm.cache import CompletionCache
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.rewrites import RewriteEstimate

__all__ = ["estimate_paired_corpus"]

_CHARS_PER_TOKEN = 4.0  # of English; other languages have fewer


def estimate_paired_corpus(
    source: HumanInput,
    completer: Completer,
    output: PathLike | None = None,
    *,
    prompts: Sequence[RewritePrompt | str] = (REWRITE,),
    model: str | None = None,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    seed: int = 0,
    cache: CompletionCache | None = None,
    limit: int | None = None,
    untagged: Untagged = "error",
    prices: Prices | None = None,
) -> RewriteEstimate:
    """Count the requests of :func:`build_paired_corpus`; nothing is asked and nothing written.

    Parameters are those of the builder. Answers that ``cache``, or the folder ``output``, already
    holds cost nothing. Documents with equal texts are counted each, though only one is paid for.

    Raises
    ------
    DataError
        As the builder does.
    """
    if cache is None and output is not None:
        cache = CompletionCache(Path(output) / ANSWERS)
    options = Options(max_tokens=max_tokens, temperature=temperature, seed=seed)
    jobs = planned_jobs(Path(), completer, prompts, options, model=model, date="")
    if limit is not None and limit < 1:
        raise DataError(f"limit must be at least 1, got {limit}")
    n = requests = cached = prompt_chars = text_chars = most = 0
    for job in jobs:
        rows = human_rows(source, limit=limit, untagged=untagged)
        n = 0
        for row, request, answer in answered_rows(rows, job, cache):
            n += 1
            if request is None:
                continue
            requests += 1
            if answer is not None:
                cached += 1
                continue
            prompt_chars += len(request.prompt)
            text_chars += min(len(row.text), round(max_tokens * _CHARS_PER_TOKEN))
            most += max_tokens
    read, written = (round(chars / _CHARS_PER_TOKEN) for chars in (prompt_chars, text_chars))
    costs = [
        None if prices is None else prices.cost(prompt_tokens=read, completion_tokens=tokens)
        for tokens in (written, most)
    ]
    return RewriteEstimate(
        n_documents=n,
        requests=requests,
        cached=cached,
        prompt_tokens=read,
        completion_tokens=written,
        most_completion_tokens=most,
        cost=costs[0],
        most_cost=costs[1],
        currency="" if prices is None else prices.currency,
    )
