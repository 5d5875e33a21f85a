"""A pass of taggers, a detector's errors and the tags of a store as tables and lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rich.markup import escape
from rich.table import Table

from rag_sourcebias.observe.document_stores import CorpusStore, DocumentStore, TagSummary
from rag_sourcebias.tagging.detector.model import Rate
from rag_sourcebias.tagging.documents import SidecarStore, Tagger, TagResult, tag_documents
from rag_sourcebias.tagging.rules import RuleTagger
from rag_sourcebias.tagging.verify import LocalError

# What a pass of taggers came to, as tables.


UNKNOWN = "(unknown)"


def empty_table(title: str | None, left: Iterable[str], right: Iterable[str]) -> Table:
    """Return a table without rows: columns of names, then columns of numbers."""
    table = Table(title=title, title_justify="left")
    for column in left:
        table.add_column(column, overflow="fold")
    for column in right:
        table.add_column(column, justify="right", overflow="fold")
    return table


_THE = {
    "declared": "another declaration",
    "provenance": "their provenance",
    "detected": "the detector",
    "unverified": "the detector",
}
_LOOKED_AT, _PER_SOURCE = 1_000, 2  # examples come from the first documents
_MOST_IDS = 10


def result_parts(
    store: DocumentStore, result: TagResult, taggers: Sequence[Tagger]
) -> Iterator[str | Table]:
    """Yield what was written, how sources and styles are distributed, and what to look at."""
    written = "would be written" if result.dry_run else "written"
    table = empty_table(
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
    yield table
    yield share_table("source", result.sources, result.n_documents)
    if result.styles:
        yield share_table("style", result.styles, result.n_documents)
    if result.origins:
        known = ", ".join(f"{origin} {n:,}" for origin, n in sorted(result.origins.items()))
        yield f"how sources are known: {known}"
    for (stands, against), n in sorted(result.conflicts.items()):
        yield (
            f"Warning: {n:,} documents are tagged {stands} against {_THE.get(against, against)}; "
            "look at some of them, and mend the rule or the field that is wrong"
        )
    # a store may pass over documents that these taggers have done before
    if result.n_unchanged == 0 or isinstance(store, CorpusStore | SidecarStore):
        yield from _idle_rules(taggers)
    if result.n_missing:
        ids = result.missing_ids[:_MOST_IDS]
        named = ", ".join([*ids, *["…"] * (result.n_missing > len(ids))])
        yield f"Warning: {result.n_missing:,} deleted before they could be tagged: {named}"
    if result.n_documents and result.n_untagged == result.n_documents:
        yield "Warning: no tagger knows the source of any document"
    if result.backup is not None:
        yield f"the tags that were replaced are kept in {result.backup}"
    if result.dry_run:
        yield "dry run: nothing was written"


def rate_text(rate: Rate) -> str:
    """Return a share with its interval and counts."""
    return (
        f"{rate.value:.1%} [{rate.lower:.1%}, {rate.upper:.1%}] ({rate.hits:,} of {rate.n:,})"
        if rate.n
        else "no document"
    )


def local_lines(found: LocalError) -> Iterator[str]:
    """Yield how wrong a detector was on verified documents."""
    what = "relevant retrieved documents" if found.kind == "slots" else "documents of the store"
    yield (
        f"verified {what}, by people {found.specificity.n:,}, by a model {found.sensitivity.n:,}"
    )
    yield f"AUROC                        {found.auroc:.3f}"
    yield f"wrong, if all are decided    {rate_text(found.error_of_all)}"
    yield f"LLM texts tagged as LLM      {rate_text(found.sensitivity)}"
    yield f"human texts tagged as human  {rate_text(found.specificity)}"
    if found.n_unclear:
        yield f"unclear                      {found.n_unclear:,}, left out of these shares"
    if found.abstains:
        yield (
            f"left unknown                 {rate_text(found.unknown)}, as the AUROC is below 0.8"
        )
        yield f"wrong among the decided      {rate_text(found.error)}"
    yield (
        "monitor serve: shares, corrected  --tag-errors llm:any="
        f"{found.sensitivity.value:.3g},{found.specificity.value:.3g}"
    )
    if found.kind == "store":
        yield (
            "• of documents as they lie in the store: those that are retrieved may be tagged "
            "better or worse (tag verify --run)"
        )


def share_table(what: str, counts: Mapping[str, int], total: int) -> Table:
    """Number and share of each name, most frequent first, and of the documents without one."""
    table = empty_table(None, [what], ["documents", "share"])
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = ((escape(name), n) for name, n in rows)
    for name, n in (*named, (UNKNOWN, total - sum(counts.values()))):
        if n or name == UNKNOWN:
            table.add_row(name, f"{n:,}", f"{n / total:.1%}" if total else "")
    return table


def example_table(store: DocumentStore, taggers: Sequence[Tagger]) -> Table:
    """Return some of the first documents of each source with the tags they would get."""
    columns = ("document", "source", "style", "pair", "origin", "confidence")
    table = empty_table("Examples", columns, ())
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
    return table


def _idle_rules(taggers: Sequence[Tagger]) -> Iterator[str]:
    for tagger in taggers:
        matched = tagger.matched if isinstance(tagger, RuleTagger) else {}
        if idle := [name for name, n in matched.items() if n == 0]:
            yield f"Warning: no document was decided by: {', '.join(idle)}"


def summary_parts(name: str, found: TagSummary) -> Iterator[str | Table]:
    """Yield the tables of a store's tags."""
    n, sources, styles = found.n_documents, found.counts(0), found.counts(1)
    yield f"{name}: {n:,} documents"
    yield share_table("source", sources, n)
    if styles:
        yield share_table("style", styles, n)
    origins = sorted({origin for origin, _ in found.origins}, key=lambda o: (o is None, o or ""))
    if sources or any(origins):
        table = empty_table(
            "How sources are known", ["origin"], ["with a source", "source unknown"]
        )
        for origin in origins:
            known, unknown = (f"{found.origins[origin, flag]:,}" for flag in (True, False))
            table.add_row(origin or "(not tagged)", known, unknown)
        yield table
    if not sources:
        yield "no document is tagged; see: rag-sourcebias tag apply --help"
