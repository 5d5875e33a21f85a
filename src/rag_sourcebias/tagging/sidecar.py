"""Tags of a store's documents in a file beside it; the store itself is only read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import read_json, write_atomic
from rag_sourcebias.tagging.document_store import DocumentStore
from rag_sourcebias.tagging.fingerprint import taggers_fingerprint
from rag_sourcebias.tagging.jsonl_store import JsonlTagStore
from rag_sourcebias.tagging.opening import open_tag_store
from rag_sourcebias.tagging.result import TagResult
from rag_sourcebias.tagging.store import UNKNOWN, TagStore
from rag_sourcebias.tagging.taggers import Tagger, tag_documents
from rag_sourcebias.tagging.tagging_pass import PassCounts
from rag_sourcebias.types.documents import DocTags

__all__ = ["SidecarStore"]

_PAGE = 1_000


class SidecarStore:
    """The documents of a store, their tags kept by document id and text hash in a tag store.

    Which taggers wrote the tags is noted in a small file beside it, ``<file>.taggers.json``.

    Parameters
    ----------
    documents : DocumentStore
    path : str or Path
        File of the tags, as :func:`open_tag_store` takes it; created by the first tag.

    Raises
    ------
    DataError
        If the file has another ending, or is damaged.
    """

    def __init__(self, documents: DocumentStore, path: str | Path) -> None:
        self._documents = documents
        self.path = Path(path)
        self.name = f"{documents.name}, tags in {path}"
        self.tag_store: TagStore = open_tag_store(path)
        self._note = _beside(self.path, "taggers.json")

    def __len__(self) -> int:
        return len(self._documents)

    def documents(self) -> Iterator[tuple[str, str, Mapping[str, object]]]:
        """Id, text and metadata of every document, in the order of the store."""
        return self._documents.documents()

    def tags(self) -> Iterator[tuple[str, DocTags]]:
        """Id and tags of every document of the store, all unknown where the file has none."""
        for page in self._pages():
            ids = [doc_id for doc_id, _, _ in page]
            yield from zip(ids, self.tag_store.get(ids), strict=True)

    def left_over(self) -> list[str]:
        """Ids in the file that the store does not hold, such as deleted documents."""
        there = {doc_id for doc_id, _, _ in self.documents()}
        return [doc_id for doc_id in self.tag_store.table().doc_ids if doc_id not in there]

    def tag(
        self,
        taggers: Sequence[Tagger],
        *,
        dry_run: bool = False,
        overwrite: bool = False,
        backup: str | Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> TagResult:
        """Keep the tags of every document in the file; see :class:`DocumentStore`.

        Old tags are appended to the backup, a tag store of JSON lines; without a name it is
        ``<file>.before-<taggers>.jsonl``.

        Raises
        ------
        DataError
            If other taggers wrote the file and ``overwrite`` is off, or a file cannot be written.
        """
        fingerprint = taggers_fingerprint(taggers)
        replacing = len(self.tag_store) > 0 and self._tagged_by() != fingerprint
        if replacing and not overwrite:
            raise DataError(
                f"{self.path} holds the tags of {len(self.tag_store)} documents by other taggers; "
                "replace them with --overwrite (they are kept in a backup), or name another file"
            )
        saved = Path(backup or _beside(self.path, f"before-{fingerprint[:8]}.jsonl"))
        if not dry_run:
            if replacing:
                self._back_up(saved)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # before the first tag, so that an interrupted pass is known as one of these taggers
            write_atomic(self._note, json.dumps({"taggers": fingerprint}) + "\n")
        counts = PassCounts()
        for page in self._pages():
            rows = list(tag_documents(page, taggers))
            self._store(rows, {doc_id: text for doc_id, text, _ in page}, counts, dry_run=dry_run)
            if on_progress is not None:
                on_progress(counts.n_written + counts.n_unchanged)
        return counts.result(
            fingerprint=fingerprint,
            dry_run=dry_run,
            backup=str(saved) if replacing and not dry_run else None,
        )

    def _store(
        self,
        rows: Sequence[tuple[str, DocTags]],
        texts: Mapping[str, str],
        counts: PassCounts,
        *,
        dry_run: bool,
    ) -> None:
        changed: list[tuple[str, DocTags]] = []
        before = self.tag_store.get([doc_id for doc_id, _ in rows])
        by_text = self.tag_store.get_by_text([texts[doc_id] for doc_id, _ in rows])
        for (doc_id, tags), old, same_text in zip(rows, before, by_text, strict=True):
            # the text of a document may have changed where its tags have not
            differs = tags != old or (tags != UNKNOWN and same_text == UNKNOWN)
            counts.add(tags, written=differs)
            if differs:
                changed.append((doc_id, tags))
        if not dry_run:
            self.tag_store.put(changed, texts=texts)

    def _pages(self) -> Iterator[list[tuple[str, str, Mapping[str, object]]]]:
        documents = iter(self.documents())
        while page := list(islice(documents, _PAGE)):
            yield page

    def _tagged_by(self) -> str | None:
        try:
            found = read_json(self._note, "a note on taggers")
        except DataError:  # then --overwrite is asked for
            return None
        return str(found.get("taggers")) if isinstance(found, dict) else None

    def _back_up(self, path: Path) -> None:
        table = self.tag_store.table()
        JsonlTagStore(path).put((doc_id, table.get(doc_id)) for doc_id in table.doc_ids)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")
