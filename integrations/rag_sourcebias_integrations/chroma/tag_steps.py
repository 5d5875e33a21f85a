"""One pass of taggers over a collection, as a sequence of calls that somebody else makes.

So the same pass serves the synchronous and the asynchronous collection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, get_args

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.append_log import AppendLog
from rag_sourcebias.tagging.keys import FINGERPRINT_KEY, METADATA_KEYS
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.tagging_pass import PassCounts
from rag_sourcebias.types.documents import Origin
from rag_sourcebias_integrations.chroma.page_plan import PagePlan, Planner

__all__ = ["Call", "Steps", "TagPass"]

_ORIGIN_KEY = METADATA_KEYS[3]
_MOST_IDS = 100  # of missing documents that a result lists


@dataclass(frozen=True, slots=True)
class Call:
    """One method of the collection to call; its answer is sent back."""

    method: str
    arguments: Mapping[str, Any]


Steps: TypeAlias = Generator[Call, Any, TagResult]


class TagPass:
    """A pass over one collection; :meth:`steps` may be run once.

    Parameters
    ----------
    planner : Planner
    size : int
        Documents per request.
    where : mapping, optional
        Chroma filter of the documents to tag.
    texts : bool
        Whether the taggers are given the text of documents.
    dry_run : bool
    backup : str or Path or None
    on_progress : callable or None
    """

    def __init__(
        self,
        planner: Planner,
        *,
        size: int,
        where: Mapping[str, Any] | None,
        texts: bool,
        dry_run: bool,
        backup: str | Path | None,
        on_progress: Callable[[int], None] | None,
    ) -> None:
        self._planner = planner
        self._size = size
        self._where = where
        self._include = ["metadatas", "documents"] if texts else ["metadatas"]
        self._dry_run = dry_run
        self._log = None if backup is None else AppendLog(backup)
        self._on_progress = on_progress
        self._counts = PassCounts()
        self._n_missing = 0
        self._missing: list[str] = []

    def steps(self) -> Steps:
        """Make the pass; every yielded call has to be answered."""
        if self._log is not None and not self._dry_run:
            for _ in self._log.read():  # checks a backup that is continued
                pass
        if not self._planner.overwrite:
            # so that nothing is written when some later page would be refused
            others = {_ORIGIN_KEY: {"$in": list(get_args(Origin))}}
            self._planner.plan((yield self._get(others, self._not_done(), limit=1)))
        offset = 0
        while True:
            page = yield self._get(offset=offset)
            if not page["ids"]:
                break
            offset += len(page["ids"])
            yield from self._tag(page)
        if not self._dry_run:
            yield from self._leftovers()
        result = self._counts.result(
            fingerprint=self._planner.fingerprint,
            dry_run=self._dry_run,
            backup=None if self._log is None or not self._log.lines else str(self._log.path),
        )
        return replace(
            result,
            n_documents=result.n_documents + self._n_missing,
            n_missing=self._n_missing,
            missing_ids=tuple(self._missing),
        )

    def _tag(self, page: Mapping[str, Any]) -> Generator[Call, Any, None]:
        plan = self._planner.plan(page)
        gone: set[str] = set()
        if plan.ids and not self._dry_run:
            if self._log is not None:
                self._log.append(plan.backup)
            yield Call("update", {"ids": plan.ids, "metadatas": plan.metadatas})
            # an update passes over ids that are not there without a word
            there = yield Call("get", {"ids": plan.ids, "include": []})
            gone = set(plan.ids).difference(there["ids"])
        self._count(plan, gone)

    def _count(self, plan: PagePlan, gone: set[str]) -> None:
        for tags in plan.unchanged:
            self._counts.add(tags, written=False)
        for doc_id, tags in zip(plan.ids, plan.tags, strict=True):
            if doc_id not in gone:
                self._counts.add(tags, written=True)
        self._n_missing += len(gone)
        lost = (doc_id for doc_id in plan.ids if doc_id in gone)
        self._missing += list(lost)[: _MOST_IDS - len(self._missing)]
        if self._on_progress is not None:
            counted = self._counts.n_written + self._counts.n_unchanged
            self._on_progress(counted + self._n_missing)

    def _leftovers(self) -> Generator[Call, Any, None]:
        """Verify that every document is done, and do those that moved between pages or are new.

        Documents deleted during the pass shift the ones behind them to a page already read.
        """
        before: set[str] = set()
        while True:
            page = yield self._get(self._not_done())
            stuck = before.intersection(page["ids"])
            if stuck:
                raise DataError(
                    f"{len(stuck)} documents did not take their tags, among them "
                    f"{sorted(stuck)[:5]}; is another program writing to the collection?"
                )
            if not page["ids"]:
                return
            before = set(page["ids"])
            yield from self._tag(page)

    def _not_done(self) -> dict[str, Any]:
        # "$ne" also holds for documents without the key
        return {FINGERPRINT_KEY: {"$ne": self._planner.fingerprint}}

    def _get(self, *filters: Mapping[str, Any], limit: int | None = None, offset: int = 0) -> Call:
        parts = [*([self._where] if self._where else []), *filters]
        where = None if not parts else parts[0] if len(parts) == 1 else {"$and": parts}
        return Call(
            "get",
            {
                "where": where,
                "limit": limit or self._size,
                "offset": offset,
                "include": self._include,
            },
        )
