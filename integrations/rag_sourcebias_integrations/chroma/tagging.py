"""A Chroma collection as a store of documents whose tags are read and written in place."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from rag_sourcebias.core.data import DocTags, Origin
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import FINGERPRINT_KEY, METADATA_KEYS, to_metadata
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.tagging.documents import (
    Tagger,
    TagResult,
    tag_documents,
    taggers_fingerprint,
)
from rag_sourcebias_integrations._require import taggers_of
from rag_sourcebias_integrations.chroma.carry import is_bookkeeping
from rag_sourcebias_integrations.chroma.collections import (
    NODE_KEY,
    held_tags,
    open_client,
    pages,
    read_tags,
    request_size,
    rewrite_node,
    shown,
    tag_update,
)

# What one page of documents needs so that it carries the tags; no I/O here.


@dataclass(slots=True)
class PagePlan:
    """Changes of one page.

    Parameters
    ----------
    ids : list of str
        Documents to write.
    metadatas : list of dict
        What to merge into the metadata of each.
    tags : list of DocTags
        New tags of each.
    unchanged : list of DocTags
        Tags of the documents that these taggers did before.
    backup : list of (str, DocTags)
        Documents whose tags are replaced, with these.
    """

    ids: list[str] = field(default_factory=list)
    metadatas: list[dict[str, str | int | float | bool | None]] = field(default_factory=list)
    tags: list[DocTags] = field(default_factory=list)
    unchanged: list[DocTags] = field(default_factory=list)
    backup: list[tuple[str, DocTags]] = field(default_factory=list)


# One pass of taggers over a collection.


_ORIGIN_KEY = METADATA_KEYS[3]
_MOST_IDS = 100  # of missing documents that a result lists


@dataclass(kw_only=True)
class TagPass:
    """A pass over one collection; :meth:`run` may be called once.

    Parameters
    ----------
    collection : chromadb.Collection
    taggers : sequence of Tagger
        In order of trust.
    size : int
        Documents per request.
    overwrite : bool
        Replace tags that others wrote.
    dry_run : bool
    backup : str or Path or None
    on_progress : callable or None
    """

    collection: Any
    taggers: Sequence[Tagger]
    size: int
    overwrite: bool
    dry_run: bool
    backup: str | Path | None
    on_progress: Callable[[int], None] | None

    def __post_init__(self) -> None:
        if self.overwrite and self.backup is None and not self.dry_run:
            raise DataError(
                "overwrite=True replaces tags: name with backup= the .sqlite file that keeps the "
                "old ones"
            )
        self._fingerprint = taggers_fingerprint(self.taggers)
        self._kept = None if self.backup is None else open_tag_store(self.backup)
        self._counts = TagResult(fingerprint=self._fingerprint, dry_run=self.dry_run)

    def run(self) -> TagResult:
        """Make the pass.

        Raises
        ------
        DataError
            If a document carries the tags of other taggers and ``overwrite`` is off, or a tagger
            fails; names the document.
        """
        if not self.overwrite:
            # so that nothing is written when some later page would be refused
            others = {_ORIGIN_KEY: {"$in": list(get_args(Origin))}}
            self._plan(self._get({"$and": [others, self._not_done()]}, limit=1))
        offset = 0
        while True:
            page = self._get(offset=offset)
            if not page["ids"]:
                break
            offset += len(page["ids"])
            self._tag(page)
        if not self.dry_run:
            self._leftovers()
        if self._kept is not None and len(self._kept):
            self._counts.backup = str(self.backup)
        return self._counts

    def _tag(self, page: Mapping[str, Any]) -> None:
        plan = self._plan(page)
        gone: set[str] = set() if self.dry_run else set(plan.ids)
        if gone:
            if self._kept is not None:
                self._kept.put(plan.backup)
            self.collection.update(ids=plan.ids, metadatas=plan.metadatas)
            # an update passes over ids that are not there without a word
            gone -= set(self.collection.get(ids=plan.ids, include=[])["ids"])
        for tags in plan.unchanged:
            self._counts.add(tags, written=False)
        for doc_id, tags in zip(plan.ids, plan.tags, strict=True):
            if doc_id not in gone:
                self._counts.add(tags, written=True)
        counts = self._counts
        counts.n_missing += len(gone)
        missing = (i for i in plan.ids if i in gone)
        counts.missing_ids = (*counts.missing_ids, *missing)[:_MOST_IDS]
        if self.on_progress is not None:
            self.on_progress(counts.n_documents)

    def _leftovers(self) -> None:
        """Verify that every document is done, and do those that moved between pages or are new.

        Documents deleted during the pass shift the ones behind them to a page already read.
        """
        before: set[str] = set()
        while True:
            page = self._get(self._not_done())
            stuck = before.intersection(page["ids"])
            if stuck:
                raise DataError(
                    f"{len(stuck)} documents did not take their tags, among them "
                    f"{sorted(stuck)[:5]}; is another program writing to the collection?"
                )
            if not page["ids"]:
                return
            before = set(page["ids"])
            self._tag(page)

    def _plan(self, page: Mapping[str, Any]) -> PagePlan:
        """Plan one page, as ``Collection.get`` returned it."""
        plan = PagePlan()
        texts = page["documents"]
        todo: list[tuple[str, str, Mapping[str, object]]] = []
        for doc_id, text, stored in zip(page["ids"], texts, page["metadatas"], strict=True):
            metadata = stored or {}
            if metadata.get(FINGERPRINT_KEY) == self._fingerprint:
                plan.unchanged.append(read_tags(doc_id, metadata))
            else:
                todo.append((doc_id, text or "", metadata))
        tagged = tag_documents(todo, self.taggers, conflicts=self._counts.conflicts)
        for (doc_id, tags), (_, _, metadata) in zip(tagged, todo, strict=True):
            self._add(plan, doc_id, metadata, tags)
        return plan

    def _add(
        self, plan: PagePlan, doc_id: str, metadata: Mapping[str, object], tags: DocTags
    ) -> None:
        held = held_tags(metadata)
        other = metadata.get(FINGERPRINT_KEY)
        if other is not None or (held and held != to_metadata(tags)):
            if not self.overwrite:
                by = "that name no taggers" if other is None else f"of the taggers {other!r}"
                raise DataError(
                    f"document {doc_id!r} carries tags {by}, these are {self._fingerprint!r}; "
                    "replace them with overwrite=True (--overwrite), which keeps the old ones in "
                    "a backup, or tag with the same rules as before"
                )
            plan.backup.append((doc_id, read_tags(doc_id, metadata)))
        update = tag_update(metadata, tags, self._fingerprint)
        if isinstance(metadata.get(NODE_KEY), str):
            update[NODE_KEY] = rewrite_node(doc_id, str(metadata[NODE_KEY]), update)
        plan.ids.append(doc_id)
        plan.metadatas.append(update)
        plan.tags.append(tags)

    def _not_done(self) -> dict[str, Any]:
        # "$ne" also holds for documents without the key
        return {FINGERPRINT_KEY: {"$ne": self._fingerprint}}

    def _get(
        self, where: Mapping[str, Any] | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.collection.get(
            where=where,
            limit=limit or self.size,
            offset=offset,
            include=["metadatas", "documents"],
        )
        return found


# Tag the documents of a Chroma collection where they are; nothing is embedded again.


def tag_collection(
    collection: Any,  # noqa: ANN401 - a chromadb collection
    taggers: Tagger | Sequence[Tagger],
    *,
    batch_size: int | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    backup: str | Path | None = None,
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
    dry_run : bool
        Count only.
    overwrite : bool
        Replace tags that other taggers wrote; needs ``backup``.
    backup : str or Path, optional
        Tag store (.sqlite) that keeps the replaced tags, see
        :func:`rag_sourcebias.intake.open_tag_store`.
    on_progress : callable, optional
        Told how many documents are done.

    Raises
    ------
    DataError
        If other taggers tagged documents before and ``overwrite`` is off, a tagger fails, or an
        argument is wrong.
    """
    methods = [getattr(collection, name, None) for name in ("get", "update", "count")]
    if not all(callable(method) for method in methods):
        raise DataError(f"{collection!r:.80} is not a Chroma collection")
    if inspect.iscoroutinefunction(methods[0]):
        raise DataError("the collection is one of an AsyncHttpClient; open it with an HttpClient")
    return TagPass(
        collection=collection,
        taggers=taggers_of(taggers),
        size=request_size(collection, batch_size),
        overwrite=overwrite,
        dry_run=dry_run,
        backup=backup,
        on_progress=on_progress,
    ).run()


# A Chroma collection as a store of documents whose tags are read and written in place.


_DATABASE = "chroma.sqlite3"


class ChromaStore:
    """One collection as a :class:`~rag_sourcebias.tagging.documents.WritableStore`.

    Parameters
    ----------
    collection : chromadb.Collection
        Of a synchronous client.
    """

    def __init__(self, collection: Any) -> None:  # noqa: ANN401 - a chromadb collection
        self.collection = collection
        self.name = f"chroma:{collection.name}"

    def __len__(self) -> int:
        return int(self.collection.count())

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text (``""`` where none is stored) and metadata, in the order of the collection."""
        size = request_size(self.collection, None)
        for page in pages(self.collection, size, include=["documents", "metadatas"]):
            rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
            yield from ((doc_id, text or "", metadata or {}) for doc_id, text, metadata in rows)

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and stored tags of every document."""
        size = request_size(self.collection, None)
        for page in pages(self.collection, size, include=["metadatas"]):
            rows = zip(page["ids"], page["metadatas"], strict=True)
            yield from ((doc_id, read_tags(doc_id, metadata or {})) for doc_id, metadata in rows)

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Write the tags of every document; see :func:`tag_collection`."""
        return tag_collection(
            self.collection,
            taggers,
            dry_run=dry_run,
            overwrite=overwrite,
            backup=backup,
            on_progress=on_progress,
        )


def open_store(place: str, collection: str | None = None) -> ChromaStore:
    """Open a collection that is there; nothing is created.

    Parameters
    ----------
    place : str
        Folder of a Chroma database, or the ``http(s)://host:port`` URL of a server.
    collection : str, optional
        Its name; needed where there are several.

    Raises
    ------
    DataError
        If there is no such database, server or collection, or there are several and none is named.
    MissingExtraError
        If chromadb is not installed.
    """
    client = open_stored(place)
    names = sorted(
        found.name
        for found in client.list_collections()
        if found.name == collection or not is_bookkeeping(found.name)
    )
    if not names:
        raise DataError(f"Chroma store {shown(place)!r} has no collection")
    if collection is None and len(names) > 1:
        raise DataError(
            f"Chroma store {shown(place)!r} has {len(names)} collections, name one of them: "
            + ", ".join(names)
        )
    name = names[0] if collection is None else collection
    if name not in names:
        raise DataError(
            f"Chroma store {shown(place)!r} has no collection {name!r}; there are "
            + ", ".join(names)
        )
    # Tagging embeds nothing, so a collection whose embedding function is not installed will do.
    return ChromaStore(client.get_collection(name, embedding_function=None))


def open_stored(place: str) -> Any:  # noqa: ANN401 - a chromadb client
    """Open a database that is there, or a server.

    Raises
    ------
    DataError
        If there is none.
    """
    if not str(place).startswith(("http://", "https://")):
        folder = Path(place)
        if not (folder / _DATABASE).is_file():
            what = f"holds no {_DATABASE}" if folder.is_dir() else "is not a folder"
            raise DataError(
                f"Chroma store {shown(place)!r} {what}; expected the folder of a Chroma database, "
                "or the http:// URL of a server"
            )
    try:
        return open_client(place)
    except DataError:
        raise
    except ValueError as error:  # Chroma opens a folder once per process, with one set of settings
        raise DataError(
            f"Chroma store {shown(place)!r} cannot be opened ({error!s:.200}); if this process has "
            "it open already, use ChromaStore(collection) or tag_collection(collection, …)"
        ) from error
