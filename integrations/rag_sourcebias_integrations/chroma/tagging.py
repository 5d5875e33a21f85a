"""Tag the documents of a Chroma collection where they are; nothing is embedded again."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.taggers import Tagger
from rag_sourcebias_integrations.chroma.layout import Layout
from rag_sourcebias_integrations.chroma.limits import async_request_size, request_size
from rag_sourcebias_integrations.chroma.page_plan import Planner
from rag_sourcebias_integrations.chroma.tag_steps import Call, Steps, TagPass

__all__ = ["atag_collection", "tag_collection"]


def tag_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    taggers: Tagger | Sequence[Tagger],
    *,
    batch_size: int | None = None,
    where: Mapping[str, Any] | None = None,
    texts: bool = True,
    dry_run: bool = False,
    overwrite: bool = False,
    backup: str | Path | None = None,
    layout: Layout = "auto",
    on_progress: Callable[[int], None] | None = None,
) -> TagResult:
    """Write tags into the metadata of a collection's documents, page by page.

    Only the keys ``rsb_*`` are written, and the node JSON of LlamaIndex where there is one;
    embeddings, texts and other metadata stay as they are. A pass that was killed goes on where it
    stopped when it is started again: documents that carry the fingerprint of these taggers are
    passed over, also when their text has changed since.

    Parameters
    ----------
    collection : chromadb.Collection
        Embedded, on disk or of an HTTP client.
    taggers : Tagger or sequence of Tagger
        In order of trust; combined as by :func:`rag_sourcebias.tagging.tag_documents`.
    batch_size : int, optional
        Documents per request; as many as the client takes by default.
    where : mapping, optional
        Chroma filter of the documents to tag.
    texts : bool
        Whether to read the texts; without them taggers are given ``""``.
    dry_run : bool
        Count only.
    overwrite : bool
        Replace tags that other taggers wrote; needs ``backup``.
    backup : str or Path, optional
        JSONL tag store to which the replaced tags are appended before they are replaced; it is
        read by :func:`rag_sourcebias.tagging.open_tag_store`.
    layout : {"auto", "flat", "llama-index"}
        Whether to rewrite the node JSON of LlamaIndex; by default where a document has one.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        If other taggers tagged documents before and ``overwrite`` is off, a tagger fails, or an
        argument is wrong.
    """
    _require_collection(collection, asynchronous=False)
    planner = _planner(taggers, layout=layout, overwrite=overwrite, backup=backup, dry_run=dry_run)
    steps = TagPass(
        planner,
        size=request_size(collection, batch_size),
        where=where,
        texts=texts,
        dry_run=dry_run,
        backup=backup,
        on_progress=on_progress,
    ).steps()
    state = _advance(steps, None)
    while isinstance(state, Call):
        state = _advance(steps, getattr(collection, state.method)(**state.arguments))
    return state


async def atag_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    taggers: Tagger | Sequence[Tagger],
    *,
    batch_size: int | None = None,
    where: Mapping[str, Any] | None = None,
    texts: bool = True,
    dry_run: bool = False,
    overwrite: bool = False,
    backup: str | Path | None = None,
    layout: Layout = "auto",
    on_progress: Callable[[int], None] | None = None,
) -> TagResult:
    """Do what :func:`tag_collection` does with a collection of an ``AsyncHttpClient``.

    Taggers run in a thread, so that the event loop is not blocked.
    """
    _require_collection(collection, asynchronous=True)
    planner = _planner(taggers, layout=layout, overwrite=overwrite, backup=backup, dry_run=dry_run)
    steps = TagPass(
        planner,
        size=await async_request_size(collection, batch_size),
        where=where,
        texts=texts,
        dry_run=dry_run,
        backup=backup,
        on_progress=on_progress,
    ).steps()
    state = await asyncio.to_thread(_advance, steps, None)
    while isinstance(state, Call):
        answer = await getattr(collection, state.method)(**state.arguments)
        state = await asyncio.to_thread(_advance, steps, answer)
    return state


def _advance(steps: Steps, answer: object) -> Call | TagResult:
    try:
        return steps.send(answer)
    except StopIteration as stop:  # may not leave a thread
        result: TagResult = stop.value
        return result


def _planner(
    taggers: Tagger | Sequence[Tagger],
    *,
    layout: Layout,
    overwrite: bool,
    backup: str | Path | None,
    dry_run: bool,
) -> Planner:
    if overwrite and backup is None and not dry_run:
        raise DataError(
            "overwrite=True replaces tags: name with backup= the JSONL file that keeps the old ones"
        )
    return Planner(taggers, layout=layout, overwrite=overwrite)


def _require_collection(collection: object, *, asynchronous: bool) -> None:
    methods = [getattr(collection, name, None) for name in ("get", "update", "count")]
    if not all(callable(method) for method in methods):
        raise DataError(f"{collection!r:.80} is not a Chroma collection")
    if inspect.iscoroutinefunction(methods[0]) is not asynchronous:
        have, other = (
            ("of a synchronous client", "tag_collection")
            if asynchronous
            else ("of an AsyncHttpClient", "await atag_collection")
        )
        raise DataError(f"the collection is one {have}; use {other}(…)")
