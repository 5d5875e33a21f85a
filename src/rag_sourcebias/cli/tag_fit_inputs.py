"""Labelled documents of ``tag fit``: a table, or a BEIR folder with a corpus per source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.io.cells import ids_of
from rag_sourcebias.io.tables import read_table
from rag_sourcebias.types.names import require_name

__all__ = ["Labelled", "read_labelled"]

_IDS = ("doc_id", "id", "_id", "docid", "docno", "document_id", "passage_id")
_TEXTS = ("text", "contents", "content", "passage", "body", "document")
_GROUPS = ("pair_id", "group", "topic", "topic_id", "prompt", "query_id", "qid")
ANY_LLM = "llm:any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """Labelled documents.

    Parameters
    ----------
    documents : list of (doc_id, text, label)
    groups : list of str or None
        In the order of the documents; None where nothing says what belongs together.
    grouped_by : str
        Where the groups come from, in words.
    """

    documents: list[tuple[str, str, str | None]]
    groups: list[str | None] | None
    grouped_by: str

    def with_one_llm(self) -> Labelled:
        """Give every LLM the same label."""
        return Labelled(
            documents=[
                (doc_id, text, ANY_LLM if label and label.startswith("llm:") else label)
                for doc_id, text, label in self.documents
            ],
            groups=self.groups,
            grouped_by=self.grouped_by,
        )


def read_labelled(
    path: Path,
    *,
    target: str,
    text: str | None = None,
    label: str | None = None,
    group: str | None = None,
    id: str | None = None,
) -> Labelled:
    """Read labelled documents of a table or a folder.

    Raises
    ------
    DataError
        If a column is missing, an id is empty or occurs twice, or options do not fit a folder.
    """
    if path.is_dir():
        if text or label or group or id:
            raise DataError(
                f"{path} is a folder, which has no columns; leave out --text-column, "
                "--label-column, --group-column and --id-column"
            )
        return _of_folder(path, target)
    chosen: dict[str, str | None] = {}

    def choose(names: tuple[str, ...]) -> list[str]:
        chosen["id"] = _column(path, names, "id", id, _IDS, needed=False)
        chosen["text"] = _column(path, names, "text", text, _TEXTS)
        chosen["label"] = _column(path, names, "label", label, (target, "label"))
        chosen["group"] = _column(path, names, "group", group, _GROUPS, needed=False)
        return list(dict.fromkeys(name for name in chosen.values() if name is not None))

    table = read_table(path, choose)
    columns = {role: table.columns[name] for role, name in chosen.items() if name is not None}
    # ids of rows when there are none: messages then name the row
    ids = ids_of(table, () if chosen["id"] is None else (chosen["id"],))
    groups = [_cell(cell) for cell in columns["group"]] if "group" in columns else None
    texts, labels = columns["text"], columns["label"]
    return Labelled(
        documents=[
            (doc_id, _cell(body) or "", _label(name, target, table.where(row)))
            for row, (doc_id, body, name) in enumerate(zip(ids, texts, labels, strict=True))
        ],
        groups=groups,
        grouped_by="pair ids in the document ids, if there are any"
        if groups is None
        else f"column {chosen['group']!r}",
    )


def _of_folder(path: Path, target: str) -> Labelled:
    root = path.parent if path.name == "corpus" and not (path / "corpus").exists() else path
    corpus = read_corpus(root, sources=None, titles=False).corpus
    tags = [corpus.tags.get(doc_id) for doc_id in corpus.doc_ids]
    pairs = [tag.pair_id for tag in tags]
    return Labelled(
        documents=[
            (doc_id, text, tag.source if target == "source" else tag.style)
            for (doc_id, text), tag in zip(corpus, tags, strict=True)
        ],
        groups=pairs if any(pairs) else None,
        grouped_by="pairs of the folder" if any(pairs) else "nothing: each document alone",
    )


def _column(
    path: Path,
    names: Sequence[str],
    role: str,
    given: str | None,
    usual: Sequence[str],
    *,
    needed: bool = True,
) -> str | None:
    if given is not None:
        if given not in names:
            raise DataError(f"{path} has no column {given!r}; its columns are {', '.join(names)}")
        return given
    found = next((name for known in usual for name in names if name.lower() == known), None)
    if found is None and needed:
        raise DataError(
            f"{path}: no column is recognised as {role}; its columns are {', '.join(names)}; call "
            f"it {usual[0]} or name it with --{role}-column"
        )
    return found


def _label(value: object, target: str, where: str) -> str | None:
    label = _cell(value)
    return label if label is None else require_name(label, target, where)


def _cell(value: object) -> str | None:
    return None if value is None or value == "" else str(value)
