"""Annotation sheets as files: CSV, one HTML page per annotator, and the key apart from them."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from rag_sourcebias.corpora.annotate import AnnotationPlan, shown_texts
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, write_atomic
from rag_sourcebias.io.sheets_csv import sheet_csv
from rag_sourcebias.types.annotations import AnnotationQuestion

__all__ = ["AnnotationFiles", "annotation_csv", "annotation_page", "write_annotation_sheets"]

SheetFormat = Literal["csv", "html"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFiles:
    """Where the sheets and their key lie."""

    sheets: tuple[Path, ...]
    key: Path


def write_annotation_sheets(
    plan: AnnotationPlan,
    folder: PathLike,
    *,
    formats: Sequence[SheetFormat] = ("csv", "html"),
    key: PathLike | None = None,
    title: str = "Annotation",
    instructions: str = "",
    overwrite: bool = False,
) -> AnnotationFiles:
    """Write one sheet per annotator and format, and the key beside the folder.

    Parameters
    ----------
    plan : AnnotationPlan
    folder : path
        Made if it does not exist. It may be handed to annotators as a whole.
    formats : sequence of {"csv", "html"}
    key : path or None
        None writes ``<folder>.key.json``, outside the folder. Keep it from annotators.
    title, instructions : str
        Shown on the page. Do not name the sources.
    overwrite : bool
        Whether existing files, and answers on them, may be replaced.

    Raises
    ------
    DataError
        If a format is unknown, a file exists, the key would lie in the folder, or a text is too
        long for a spreadsheet cell.
    """
    target = Path(folder)
    key_path = target.with_name(target.name + ".key.json") if key is None else Path(key)
    if not formats or set(formats) - {"csv", "html"}:
        raise DataError(f"formats {tuple(formats)!r}: choose 'csv', 'html' or both")
    if target.resolve() in key_path.resolve().parents:
        raise DataError(
            f"the key {key_path} would lie among the sheets in {target}; keep it from annotators"
        )
    texts: dict[Path, str] = {}
    for annotator, name in enumerate(plan.key.annotators):
        for ending in dict.fromkeys(formats):
            path = target / f"{name}.{ending}"
            texts[path] = (
                annotation_csv(plan, annotator, path=path)
                if ending == "csv"
                else annotation_page(plan, annotator, title=title, instructions=instructions)
            )
    if not overwrite:
        there = next((p for p in (key_path, *texts) if p.exists()), None)
        if there is not None:
            raise DataError(
                f"{there} exists and may hold answers or the key to some; choose another folder, "
                "or overwrite=True"
            )
    target.mkdir(parents=True, exist_ok=True)
    # the key first: sheets without one could not be un-blinded
    write_atomic(key_path, json.dumps(plan.key.to_dict(), ensure_ascii=False, indent=1) + "\n")
    for path, text in texts.items():
        write_atomic(path, text)
    return AnnotationFiles(sheets=tuple(texts), key=key_path)


def annotation_csv(plan: AnnotationPlan, annotator: int, *, path: PathLike = "sheet") -> str:
    """One annotator's sheet for spreadsheets, with an empty column per question.

    Columns: ``row_id``, ``query`` if there is one, ``text_a`` and ``text_b`` (or ``text``), and
    one per question, whose header says what is asked and what may be answered.
    """
    empty = {_header(question): "" for question in plan.key.questions}
    shown = [
        (row.row_id, shown_texts(plan.units[row.unit], row.order))
        for row in plan.rows_of(annotator)
    ]
    queried = any(texts["query"] for _, texts in shown)
    records = [
        {
            "row_id": row_id,
            **{name: text for name, text in texts.items() if queried or name != "query"},
            **empty,
        }
        for row_id, texts in shown
    ]
    return "".join(sheet_csv(records, path))


def _header(question: AnnotationQuestion) -> str:
    told = f"{question.name}: {question.text} [{' | '.join(question.answers)}]"
    # the header tells which character separates cells, so it may hold no other one
    return re.sub(r"\s*[,;\s]\s*", lambda m: " · " if m[0].strip() else " ", told)


def annotation_page(
    plan: AnnotationPlan, annotator: int, *, title: str = "Annotation", instructions: str = ""
) -> str:
    """One annotator's sheet as one HTML page that loads nothing from anywhere.

    Answers are kept in the browser's local storage and downloaded as JSON. Texts are shown as
    text, never as markup.
    """
    key = plan.key
    data = {
        "sheet": key.sheet_id,
        "annotator": key.annotators[annotator],
        "questions": [
            {"name": q.name, "text": q.text, "answers": q.answers, "labels": q.labels}
            for q in key.questions
        ],
        "items": [
            {"row_id": row.row_id, **shown_texts(plan.units[row.unit], row.order)}
            for row in plan.rows_of(annotator)
        ],
    }
    folder = resources.files("rag_sourcebias.corpora") / "templates"
    page, style, script = (
        (folder / f"annotate.{ending}").read_text(encoding="utf-8")
        for ending in ("html", "css", "js")
    )
    # "<" is escaped so that no text can close the element it stands in
    plain = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(title),
        "instructions": html.escape(instructions),
        "script_hash": digest,
        "style": style,
        "script": script,
        "data": plain,
    }
    pieces = page.split("@@")
    # every other piece is a name: one pass, so that nothing inserted is looked at again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(pieces))
