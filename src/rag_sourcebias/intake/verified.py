"""Sheets on which people say who wrote a document, blind to what a detector said of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rag_sourcebias.core.errors import DataError, check_source
from rag_sourcebias.core.files import PathLike, jsonl_text, sound, write_atomic
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.intake.tables import read_table, require_columns, sheet_csv

_FORMAT = "tags to verify"
_SHOWN = 20_000  # characters of a text: what a detector reads, and a spreadsheet cell holds
UNCLEAR = "unclear"


def side(source: str | None) -> int:
    """Return 1 for people, −1 for a model, 0 where neither is known."""
    return 0 if source is None or source == UNCLEAR else 1 if source == "human" else -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verification:
    """Tags of documents, and what people found of some of them, in their random order.

    Parameters
    ----------
    kind : {"store", "slots"}
        Drawn evenly from a store, or from relevant documents by what they weigh in a ranking.
    detector : str
        Fingerprint.
    tags : dict of str to str or None
        Source by document id, of all documents that could have been drawn or were declared.
    chance : mapping of str to float
        To be drawn and filled in, of documents whose tag is a guess; the others are declared.
    truth : mapping of str to str
        Source, or "unclear", of documents that people have looked at.
    score : mapping of str to float
        Probability of a model, by the detector, of drawn documents.
    decided : frozenset of str
        Drawn documents that the detector would not leave unknown.
    n_drawn : int
        Rows of the sheet.
    """

    kind: Literal["store", "slots"]
    detector: str
    tags: dict[str, str | None]
    chance: Mapping[str, float]
    truth: Mapping[str, str]
    score: Mapping[str, float]
    decided: frozenset[str]
    n_drawn: int

    def sources(self) -> dict[str, str | None]:
        """Source of the verified documents, as tags have it."""
        named = {UNCLEAR: None, "llm": "llm:any"}
        return {doc: named.get(source, source) for doc, source in self.truth.items()}


def manifest_of(sheet: PathLike) -> Path:
    """Return where the manifest of a sheet lies."""
    return Path(os.fspath(sheet) + ".manifest.json")


def write_verification(path: PathLike, found: Verification, texts: Mapping[str, str]) -> None:
    """Write a sheet of the documents that have a score, in their order, and its manifest.

    Raises
    ------
    DataError
        If the ending is another than ``.csv`` or ``.jsonl``, or the sheet exists.
    """
    if Path(path).suffix.lower() not in (".csv", ".jsonl"):
        raise DataError(f"{path}: sheets are .csv or .jsonl")
    if Path(path).exists():
        raise DataError(f"{path} exists and may be filled in; name another file")
    ids = list(found.score)
    width = len(str(len(ids)))
    rows = [
        {"row_id": f"r{i:0{width}d}", "text": texts[doc_id][:_SHOWN], "source": ""}
        for i, doc_id in enumerate(ids, start=1)
    ]
    manifest = {
        "format": _FORMAT,
        "version": 1,
        "kind": found.kind,
        "detector": found.detector,
        "documents": [[d, source, found.chance.get(d)] for d, source in found.tags.items()],
        "drawn": [
            [row["row_id"], d, _digest(row["text"]), found.score[d], d in found.decided]
            for row, d in zip(rows, ids, strict=True)
        ],
    }
    csv = Path(path).suffix.lower() == ".csv"
    content = "".join(sheet_csv(rows, path) if csv else jsonl_text(rows))
    write_atomic(manifest_of(path), json.dumps(manifest, ensure_ascii=False) + "\n")
    write_atomic(path, content)


def read_verification(path: PathLike) -> Verification:
    """Read a sheet as far as it is filled in, from the first row on.

    Raises
    ------
    DataError
        If there is no manifest, a row is unknown, twice there or edited, one is blank before
        others, or a source is none.
    """
    manifest = manifest_of(path)
    plan = read_json(manifest, "the manifest of a verification sheet")
    if not isinstance(plan, dict) or plan.get("format") != _FORMAT or plan.get("version") != 1:
        raise DataError(f"{manifest} is not of a sheet that this release's tag verify wrote")
    filled: dict[str, str] = {}
    with sound(manifest, "a complete manifest", remedy="draw again"):
        drawn = {row: (doc, digest) for row, doc, digest, _, _ in plan["drawn"]}
        sheet = read_table(path, quoted=True)
        require_columns(sheet.names, ("row_id", "source"), sheet.path)
        for where, record in sheet.records():
            row = str(record.get("row_id") or "").strip()
            if row not in drawn or row in filled:
                raise DataError(
                    f"{where}: row_id {row!r} {'is there twice' if row in filled else 'is unknown'}"
                    "; restore the rows as they were"
                )
            if _digest(str(record.get("text") or "")) != drawn[row][1]:
                raise DataError(f"{where}: the text of row {row!r} was changed; restore it")
            filled[row] = _source(record.get("source"), f"{where}: row {row!r}")
        first = [filled.get(row, "") for row in drawn]
        n = next((i for i, name in enumerate(first) if not name), len(first))
        if any(first[n:]):
            raise DataError(
                f"{path}: row {list(drawn)[n]!r} is blank and later ones are filled in; fill in "
                f"rows in order, from the first ({UNCLEAR} where nobody can tell): documents left "
                "out are rarely random"
            )
        documents = plan["documents"]
        return Verification(
            kind=plan["kind"],
            detector=plan["detector"],
            tags={doc: source for doc, source, _ in documents},
            chance={
                doc: chance * max(n, 1) / len(first)
                for doc, _, chance in documents
                if chance is not None
            },
            truth={drawn[row][0]: name for row, name in zip(drawn, first[:n], strict=False)},
            score={doc: score for _, doc, _, score, _ in plan["drawn"]},
            decided=frozenset(doc for _, doc, _, _, sure in plan["drawn"] if sure),
            n_drawn=len(first),
        )


def _source(value: object, where: str) -> str:
    name = str(value or "").strip()
    if name.lower() in ("", "human", "llm", UNCLEAR):
        return name.lower()
    try:
        return check_source(name)
    except DataError as error:
        raise DataError(
            f"{where}: source {name!r} is none of human, llm, llm:<model> and {UNCLEAR}"
        ) from error


def _digest(text: str) -> str:
    plain = " ".join(text.split()).lstrip("'")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:32]
