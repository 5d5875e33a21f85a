"""What a pass of taggers came to, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from rich.markup import escape
from rich.table import Table

from rag_sourcebias.cli.console import out
from rag_sourcebias.tagging import RuleTagger, Tagger, tag_documents
from rag_sourcebias.tagging.corpus_store import CorpusStore
from rag_sourcebias.tagging.document_store import DocumentStore
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.sidecar import SidecarStore

__all__ = ["UNKNOWN", "share_table", "show_examples", "show_result"]

UNKNOWN = "(unknown)"
_LOOKED_AT, _PER_SOURCE = 1_000, 2  # examples come from the first documents
_MOST_IDS = 10


def show_result(store: DocumentStore, result: TagResult, taggers: Sequence[Tagger]) -> None:
    """Print what was written, how sources and styles are distributed, and what to look at."""
    would = "would be " if result.dry_run else ""
    table = Table(title=escape(store.name), title_justify="left")
    for column in ("documents", f"{would}written", "unchanged", "untagged", "missing"):
        table.add_column(column, justify="right")
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
    # a store may pass over documents that these taggers have done before
    if result.n_unchanged == 0 or isinstance(store, CorpusStore | SidecarStore):
        _show_idle_rules(taggers)
    if result.n_missing:
        ids = ", ".join(result.missing_ids[:_MOST_IDS])
        more = ", …" if result.n_missing > len(result.missing_ids[:_MOST_IDS]) else ""
        _line(f"Warning: {result.n_missing:,} deleted before they could be tagged: {ids}{more}")
    if result.n_documents and result.n_untagged == result.n_documents:
        _line("Warning: no tagger knows the source of any document")
    if result.backup is not None:
        _line(f"the tags that were replaced are kept in {result.backup}")
    if result.dry_run:
        _line("dry run: nothing was written")


def share_table(what: str, counts: Mapping[str, int], total: int) -> Table:
    """Number and share of each name, most frequent first, and of the documents without one."""
    table = Table(title_justify="left")
    table.add_column(what)
    table.add_column("documents", justify="right")
    table.add_column("share", justify="right")
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    unknown = total - sum(counts.values())
    for name, n in [*((escape(name), n) for name, n in rows), (UNKNOWN, unknown)]:
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
            sure = "" if tags.confidence is None else f"{tags.confidence:.3f}"
            table.add_row(escape(doc_id), *(escape(cell or "") for cell in cells), sure)
    out.print(table)


def _show_idle_rules(taggers: Sequence[Tagger]) -> None:
    for tagger in taggers:
        if isinstance(tagger, RuleTagger):
            idle = [name for name, n in tagger.matched.items() if n == 0]
            if idle:
                _line(f"Warning: no document was decided by: {', '.join(idle)}")


def _line(text: str) -> None:
    out.print(text, markup=False, highlight=False, soft_wrap=True)
