"""Shares of sources and styles in a store, and how surely they are known."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.tagging.detector.model import Rate
from rag_sourcebias.tagging.documents import (
    CorpusStore,
    DocumentStore,
    SidecarStore,
    Tagger,
    TagResult,
    open_document_store,
    tag_documents,
)
from rag_sourcebias.tagging.rules import RuleTagger
from rag_sourcebias.tagging.stores import open_tag_store
from rag_sourcebias.tagging.verify import LocalError
from rag_sourcebias.terminal.console import out, say

# What a pass of taggers came to, as tables.


UNKNOWN = "(unknown)"


def _table(title: str | None, left: Iterable[str], right: Iterable[str]) -> Table:
    """Return a table without rows: columns of names, then columns of numbers."""
    table = Table(title=title, title_justify="left")
    for column in left:
        table.add_column(column)
    for column in right:
        table.add_column(column, justify="right")
    return table


_THE = {
    "declared": "another declaration",
    "provenance": "their provenance",
    "detected": "the detector",
    "unverified": "the detector",
}
_LOOKED_AT, _PER_SOURCE = 1_000, 2  # examples come from the first documents
_MOST_IDS = 10


def show_result(store: DocumentStore, result: TagResult, taggers: Sequence[Tagger]) -> None:
    """Print what was written, how sources and styles are distributed, and what to look at."""
    written = "would be written" if result.dry_run else "written"
    table = _table(
        escape(store.name), (), ("documents", written, "unchanged", "untagged", "missing")
    )
    table.add_row(
        *(
            f"{n:,}"
            for n in (
                result.n_documents,
                result.n_written,
                result.n_unchanged,
                result.n_untagged,
                result.n_missing,
            )
        )
    )
    out.print(table)
    out.print(share_table("source", result.sources, result.n_documents))
    if result.styles:
        out.print(share_table("style", result.styles, result.n_documents))
    if result.origins:
        known = ", ".join(f"{origin} {n:,}" for origin, n in sorted(result.origins.items()))
        say(f"how sources are known: {known}")
    for (stands, against), n in sorted(result.conflicts.items()):
        say(
            f"Warning: {n:,} documents are tagged {stands} against {_THE.get(against, against)}; "
            "look at some of them, and mend the rule or the field that is wrong"
        )
    # a store may pass over documents that these taggers have done before
    if result.n_unchanged == 0 or isinstance(store, CorpusStore | SidecarStore):
        _show_idle_rules(taggers)
    if result.n_missing:
        ids = result.missing_ids[:_MOST_IDS]
        named = ", ".join([*ids, *["…"] * (result.n_missing > len(ids))])
        say(f"Warning: {result.n_missing:,} deleted before they could be tagged: {named}")
    if result.n_documents and result.n_untagged == result.n_documents:
        say("Warning: no tagger knows the source of any document")
    if result.backup is not None:
        say(f"the tags that were replaced are kept in {result.backup}")
    if result.dry_run:
        say("dry run: nothing was written")


def rate_text(rate: Rate) -> str:
    """Return a share with its interval and counts."""
    return (
        f"{rate.value:.1%} [{rate.lower:.1%}, {rate.upper:.1%}] ({rate.hits:,} of {rate.n:,})"
        if rate.n
        else "no document"
    )


def show_local(found: LocalError) -> None:
    """Print how wrong a detector was on verified documents."""
    what = "relevant retrieved documents" if found.kind == "slots" else "documents of the store"
    say(f"verified {what}, by people {found.specificity.n:,}, by a model {found.sensitivity.n:,}")
    say(f"AUROC                        {found.auroc:.3f}")
    say(f"wrong, if all are decided    {rate_text(found.error_of_all)}")
    say(f"LLM texts tagged as LLM      {rate_text(found.sensitivity)}")
    say(f"human texts tagged as human  {rate_text(found.specificity)}")
    if found.n_unclear:
        say(f"unclear                      {found.n_unclear:,}, left out of these shares")
    if found.abstains:
        say(f"left unknown                 {rate_text(found.unknown)}, as the AUROC is below 0.8")
        say(f"wrong among the decided      {rate_text(found.error)}")
    say(
        "monitor serve: shares, corrected  --tag-errors llm:any="
        f"{found.sensitivity.value:.3g},{found.specificity.value:.3g}"
    )
    if found.kind == "store":
        say(
            "• of documents as they lie in the store: those that are retrieved may be tagged "
            "better or worse (tag verify --run)"
        )


def share_table(what: str, counts: Mapping[str, int], total: int) -> Table:
    """Number and share of each name, most frequent first, and of the documents without one."""
    table = _table(None, [what], ["documents", "share"])
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = ((escape(name), n) for name, n in rows)
    for name, n in (*named, (UNKNOWN, total - sum(counts.values()))):
        if n or name == UNKNOWN:
            table.add_row(name, f"{n:,}", f"{n / total:.1%}" if total else "")
    return table


def show_examples(store: DocumentStore, taggers: Sequence[Tagger]) -> None:
    """Print some of the first documents of each source with the tags they would get."""
    table = Table(title="Examples", title_justify="left")
    for column in ("document", "source", "style", "pair", "origin", "confidence"):
        table.add_column(column, overflow="fold")
    shown: dict[str | None, int] = {}
    for doc_id, tags in tag_documents(islice(store.documents(), _LOOKED_AT), taggers):
        shown[tags.source] = shown.get(tags.source, 0) + 1
        if shown[tags.source] <= _PER_SOURCE:
            cells = (tags.source or UNKNOWN, tags.style, tags.pair_id, tags.origin)
            table.add_row(
                escape(doc_id),
                *(escape(cell or "") for cell in cells),
                "" if tags.confidence is None else f"{tags.confidence:.3f}",
            )
    out.print(table)


def _show_idle_rules(taggers: Sequence[Tagger]) -> None:
    for tagger in taggers:
        matched = tagger.matched if isinstance(tagger, RuleTagger) else {}
        if idle := [name for name, n in matched.items() if n == 0]:
            say(f"Warning: no document was decided by: {', '.join(idle)}")


# Shares of sources and styles in a store, and how surely they are known.


_EVERY = 1_000  # documents between two reports of progress


@dataclass(slots=True)
class TagSummary:
    """Counts over the documents of a store; the key None counts what is unknown."""

    n_documents: int = 0
    cells: Counter[tuple[str | None, str | None]] = field(default_factory=Counter)
    origins: Counter[tuple[str | None, bool]] = field(default_factory=Counter)

    def add(self, tags: DocTags) -> None:
        """Count one document."""
        self.n_documents += 1
        self.cells[tags.source, tags.style] += 1
        self.origins[tags.origin, tags.source is not None] += 1

    def counts(self, which: int) -> dict[str, int]:
        """Documents of each source (0) or style (1)."""
        found: Counter[str] = Counter()
        for names, n in self.cells.items():
            if (name := names[which]) is not None:
                found[name] += n
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """Everything that is printed, as JSON holds it."""
        sources, styles, n = self.counts(0), self.counts(1), self.n_documents
        unknown = n - sum(sources.values())
        return {
            "n_documents": n,
            "sources": _shares(sources, n),
            "untagged": {"documents": unknown, "share": unknown / n if n else None},
            "styles": _shares(styles, n),
            "origins": [
                {"origin": origin, "source_known": known, "documents": count}
                for (origin, known), count in sorted(self.origins.items(), key=str)
            ],
        }


def summarise(
    tags: Iterable[tuple[str, DocTags]], on_progress: Callable[[int], None]
) -> TagSummary:
    """Count the tags of all documents."""
    found = TagSummary()
    for _, row in tags:
        found.add(row)
        if found.n_documents % _EVERY == 0:
            on_progress(found.n_documents)
    return found


def show_summary(name: str, found: TagSummary) -> None:
    """Print the tables of a summary."""
    n, sources, styles = found.n_documents, found.counts(0), found.counts(1)
    say(f"{name}: {n:,} documents")
    out.print(share_table("source", sources, n))
    if styles:
        out.print(share_table("style", styles, n))
    if sources or any(origin for origin, _ in found.origins):
        out.print(_origin_table(found))
    if not sources:
        out.print("no document is tagged; see: rag-sourcebias tag apply --help", highlight=False)


def _shares(counts: dict[str, int], total: int) -> dict[str, Any]:
    return {name: {"documents": n, "share": n / total} for name, n in counts.items()}


def _origin_table(found: TagSummary) -> Table:
    table = _table("How sources are known", ["origin"], ["with a source", "source unknown"])
    origins = sorted({origin for origin, _ in found.origins}, key=lambda o: (o is None, o or ""))
    for origin in origins:
        known, unknown = (f"{found.origins[origin, flag]:,}" for flag in (True, False))
        table.add_row(origin or "(not tagged)", known, unknown)
    return table


def tag_store(path: Path) -> TagStore | None:
    """Open a tag store that is there; None for a tag file of another kind.

    Raises
    ------
    DataError
        If there is no such store.
    """
    if path.suffix not in (".sqlite", ".db"):
        return None
    if not path.is_file():
        raise DataError(f"there is no tag store {path}")
    return open_tag_store(path)


_COUNTS = 3


def summarise_store(spec: str) -> tuple[str, TagSummary]:
    """Count the tags of a store of documents; returns its name too.

    One that changes meanwhile is counted up to three times; then the last count is taken, and
    that is logged.
    """
    store = open_document_store(spec)
    for _ in range(_COUNTS):
        before, found = len(store), summarise(store.tags(), lambda _: None)
        if before == found.n_documents == len(store):
            return store.name, found
    logging.getLogger("rag_sourcebias").warning(
        "%s changes while it is counted: %s documents before, %s counted",
        *(store.name, before, found.n_documents),
    )
    return store.name, found
