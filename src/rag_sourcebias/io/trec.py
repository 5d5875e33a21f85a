"""TREC runs and relevance judgments, the BEIR form of the latter, and files of tags."""

import csv
import io
import logging
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from rag_sourcebias.core.data import DocTags, Origin, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import require_name
from rag_sourcebias.io.files import PathLike, jsonl_text, read_jsonl, read_lines, write_atomic

# Tag files: which source (and style, and twin) each document has.


TAG_COLUMNS = ("doc_id", "source", "style", "pair_id", "origin", "confidence")
_UNKNOWN = ("", "-", "null")
_ORIGINS = get_args(Origin)
_Row = tuple[int, Mapping[str, Any]]


def read_tags(
    path: PathLike, *, doc_id: str = "doc_id", source: str = "source", style: str | None = None
) -> TagTable:
    """Read document tags from a TSV, CSV or JSON-lines file.

    Parameters
    ----------
    path : path
        Plain or ``.gz``; the form is recognised from the first line. TSV and CSV start with a
        header that holds ``doc_id`` and ``source`` and may hold ``style``, ``pair_id``,
        ``origin`` and ``confidence``, in any order; JSON lines use the same names as keys. Other
        columns are ignored. An empty value, ``-`` or ``null`` means unknown. TSV knows no
        quoting; a CSV record is one line.
    doc_id, source, style : str
        Columns that hold them under another name.

    Returns
    -------
    TagTable
        In the order of the file. Where the file has no ``origin`` column, a known source counts
        as declared.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, lacks a required column, names a document
        twice, or holds an origin or confidence that is not allowed, or a source or style with
        control characters (see :func:`~rag_sourcebias.core.values.require_name`).
    """
    line_of: dict[str, int] = {}
    items: list[tuple[str, DocTags]] = []
    own = {"doc_id": doc_id, "source": source} | ({} if style is None else {"style": style})
    for number, row in _rows(path, own):
        where = f"{path}:{number}"
        doc = row["doc_id"]
        if not isinstance(doc, str) or not doc:
            raise DataError(f"{where}: {doc_id} {doc!r} must be a non-empty string")
        if doc in line_of:
            raise DataError(
                f"{where}: document {doc!r} was tagged already in line {line_of[doc]}; "
                "keep one row per document"
            )
        line_of[doc] = number
        items.append((doc, _tags(row, where)))
    if not items:
        raise DataError(f"{path} holds no tags; expected a header with doc_id and source, and rows")
    return TagTable.from_tags(items)


def _rows(path: PathLike, own: Mapping[str, str]) -> Iterator[_Row]:
    """Yield rows under our names; ``own`` says what the file calls them."""
    lines = read_lines(path)
    first = next(lines, None)
    if first is None:
        return
    if first[1].lstrip().startswith("{"):
        for number, row in read_jsonl(path):
            for name in own.values():
                if name not in row:
                    raise DataError(
                        f"{path}:{number}: key {name!r} is missing; use null for an unknown "
                        f"source; its keys are {', '.join(row)}"
                    )
            yield number, {**row, **{name: row[theirs] for name, theirs in own.items()}}
        return
    tabs = "\t" in first[1]
    header = _split(first[1], f"{path}:{first[0]}", tabs=tabs)
    missing = [name for name in own.values() if name not in header]
    if missing:
        raise DataError(
            f"{path}:{first[0]}: the header lacks {' and '.join(missing)}; found {header}, "
            f"expected {' and '.join(own.values())}, optionally {', '.join(TAG_COLUMNS[2:])}"
        )
    for number, line in lines:
        cells = _split(line, f"{path}:{number}", tabs=tabs)
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{number}: expected {len(header)} columns as in the header, "
                f"found {len(cells)}: {line[:80]!r}"
            )
        row = dict(zip(header, cells, strict=True))
        yield number, {**row, **{name: row[theirs] for name, theirs in own.items()}}


def _split(line: str, where: str, *, tabs: bool) -> list[str]:
    try:
        cells = line.split("\t") if tabs else next(csv.reader([line], strict=True))
        return [cell.strip() for cell in cells]
    except csv.Error as error:
        raise DataError(
            f"{where}: not a CSV record on one line ({error}): {line[:80]!r}"
        ) from error


def clean_tag(value: object, name: str, where: str) -> str | None:
    """Return a tag without outer white space, None where it says unknown.

    Raises
    ------
    DataError
        If it is neither a string nor None.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(f"{where}: {name} {value!r} must be a string")
    text = value.strip()
    return None if text.lower() in _UNKNOWN else text


def _tags(row: Mapping[str, Any], where: str) -> DocTags:
    source, style, pair_id = (
        clean_tag(row.get(name), name, where) for name in ("source", "style", "pair_id")
    )
    require_name(source or "", "source", where)
    require_name(style or "", "style", where)
    origin = clean_tag(row.get("origin", source and "declared"), "origin", where)
    if origin is not None and origin not in _ORIGINS:
        raise DataError(f"{where}: origin {origin!r} is not one of {', '.join(_ORIGINS)}")
    try:
        return DocTags(
            source=source,
            style=style,
            pair_id=pair_id,
            origin=cast("Origin | None", origin),
            confidence=_confidence(row.get("confidence"), where),
        )
    except DataError as error:
        text = str(error)
        raise DataError(text if text.startswith(where) else f"{where}: {text}") from error


def _confidence(value: object, where: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() in _UNKNOWN):
        return None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise DataError(f"{where}: confidence {value!r:.200} is not a number in [0, 1]")


# Write tag files.


def write_tags(tags: TagTable, path: PathLike) -> None:
    """Write document tags so that :func:`read_tags` restores them.

    Parameters
    ----------
    tags : TagTable
    path : path
        The name decides: ``.tsv``, ``.csv`` or ``.jsonl``, each also with ``.gz``.

    Raises
    ------
    DataError
        If the name has another ending, or a value cannot be carried: one that would be read as
        unknown or has outer white space, or, outside JSON lines, a line break (or a tab in TSV).
    """
    ending = Path(Path(path).name.removesuffix(".gz")).suffix
    rows = (_record(i, tags.get(i), exact_id=ending == ".jsonl") for i in tags.doc_ids)
    if ending == ".jsonl":
        write_atomic(path, jsonl_text(dict(zip(TAG_COLUMNS, row, strict=True)) for row in rows))
    elif ending in (".tsv", ".csv"):
        write_atomic(
            path, (_line(row, tabs=ending == ".tsv") for row in chain([TAG_COLUMNS], rows))
        )
    else:
        raise DataError(f"{path}: tags are written as .tsv, .csv or .jsonl (or those with .gz)")


def _record(doc_id: str, tags: DocTags, *, exact_id: bool) -> tuple[str | float | None, ...]:
    if not doc_id or (not exact_id and doc_id != doc_id.strip()):
        raise DataError(f"document id {doc_id!r} is empty or has outer white space; use .jsonl")
    texts = (tags.source, tags.style, tags.pair_id)
    for value in texts:
        if value is not None and clean_tag(value, "tag", "") != value:
            raise DataError(f"document {doc_id!r}: tag {value!r} would not be read back as it is")
    for name, value in (("source", tags.source), ("style", tags.style)):
        require_name(value or "", name, f"document {doc_id!r}")
    return doc_id, *texts, tags.origin, tags.confidence


def _line(row: Sequence[object], *, tabs: bool) -> str:
    cells = ["" if value is None else str(value) for value in row]
    bad = next((c for c in cells if "\n" in c or "\r" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a line break; write the tags as .jsonl")
    if not tabs:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerow(cells)
        return buffer.getvalue()
    bad = next((c for c in cells if "\t" in c), None)
    if bad is not None:
        raise DataError(f"{bad!r} holds a tab; write the tags as .csv or .jsonl")
    return "\t".join(cells) + "\n"


# TREC runs and relevance judgments, and the BEIR form of the latter.


# The first number that rounds to infinity; the largest float32 itself prints as 3.4028235e+38.
_FLOAT32_LIMIT = 2.0**128 - 2.0**103

_INT32_MAX = 2**31 - 1
# Only ASCII space separates: an id may hold a no-break or an ideographic space. The byte-order
# mark is listed because a file may not start with an id that does.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x1c-\x1f\ufeff]+")


def _fields(line: str) -> list[str]:
    return line.split() if line.isascii() else [field for field in _SPACE.split(line) if field]


def read_run(path: PathLike, *, name: str | None = None, sort_by_score: bool = True) -> Run:
    """Read a run in TREC format: ``query_id Q0 doc_id rank score tag``.

    Parameters
    ----------
    path : path
        Plain or ``.gz``; columns are separated by spaces or tabs; queries may be interleaved.
    name : str or None
        Name of the run; None takes the tag of the first line.
    sort_by_score : bool
        True ranks by descending score and ignores the rank column, as trec_eval does; equal scores
        keep the order of the file. False keeps the order of the file.

    Returns
    -------
    Run
        With float32 scores. A document listed twice for a query is kept once and counted in
        ``n_duplicates``.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, or a line has another number of columns or a
        score that is not a finite float32 number, or the tag holds control characters.
    """
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    query_codes, doc_codes, scores = array("i"), array("i"), array("f")
    tag = ""
    for number, line in read_lines(path):
        fields = _fields(line)
        if len(fields) != 6:
            raise DataError(
                f"{path}:{number}: expected 6 columns (query_id Q0 doc_id rank score tag), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        try:
            score = float(fields[4])
        except ValueError as error:
            raise DataError(f"{path}:{number}: score {fields[4]!r} is not a number") from error
        if not -_FLOAT32_LIMIT < score < _FLOAT32_LIMIT:
            raise DataError(f"{path}:{number}: score {fields[4]!r} is not a finite float32 number")
        if not tag:
            tag = name or require_name(fields[5], "run name", f"{path}:{number}")
        query_codes.append(queries.setdefault(fields[0], len(queries)))
        doc_codes.append(docs.setdefault(fields[2], len(docs)))
        scores.append(score)
    if not scores:
        raise DataError(f"{path} is empty; expected lines 'query_id Q0 doc_id rank score tag'")
    query_ids, doc_ids = tuple(queries), tuple(docs)
    del queries, docs  # at a million documents the tables outweigh the run itself
    return Run.from_arrays(
        query_ids=query_ids,
        query_codes=np.frombuffer(query_codes, dtype=np.int32),
        doc_codes=np.frombuffer(doc_codes, dtype=np.int32),
        doc_ids=doc_ids,
        scores=np.frombuffer(scores, dtype=np.float32),
        name=tag,
        sort_by_score=sort_by_score,
    )


def write_run(run: Run, path: PathLike) -> None:
    """Write a run in TREC format, compressed if the name ends in ``.gz``.

    A run without scores gets ``n, n − 1, …, 1`` so that any reader restores its order. White space
    in the run's name becomes ``_``.

    Raises
    ------
    DataError
        If an id holds white space or a score is infinite: the format cannot carry them.
    """
    for kind, ids in (("query", run.query_ids), ("document", run.doc_ids)):
        bad = next((i for i in ids if _fields(i) != [i]), None)
        if bad is not None:
            raise DataError(
                f"{kind} id {bad!r} cannot be written to a TREC run: an id may not be empty or "
                "hold white space"
            )
    if run.scores is not None:
        if not np.isfinite(run.scores).all():
            raise DataError(f"run {run.name!r} has infinite scores; expected finite numbers")
        rises = (np.diff(run.scores) > 0) & (np.diff(run.query_codes) == 0)
        if rises.any():
            logging.getLogger("rag_sourcebias.io").warning(
                "run %r is not ordered by score in %d place(s): tools that sort by score will "
                "read another ranking from %s",
                run.name,
                int(rises.sum()),
                path,
            )
    write_atomic(path, _run_lines(run))


def _run_lines(run: Run) -> Iterator[str]:
    tag = "_".join(_fields(run.name)) or "run"
    for ranked in run:
        scores = range(len(ranked), 0, -1) if ranked.scores is None else ranked.scores.astype(str)
        for rank, (doc_id, score) in enumerate(zip(ranked.doc_ids, scores, strict=True), start=1):
            yield f"{ranked.query_id} Q0 {doc_id} {rank} {score} {tag}\n"


def read_qrels(path: PathLike) -> Qrels:
    """Read relevance judgments, four-column TREC or three-column BEIR.

    Parameters
    ----------
    path : path
        Plain or ``.gz``. TREC: ``query_id iteration doc_id grade``. BEIR: ``query-id corpus-id
        score``, with or without that header; after a header with tabs only tabs separate.

    Returns
    -------
    Qrels
        Negative grades (junk pages of some TREC tracks) become 0 and are counted; a pair judged
        twice alike is kept once.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, a line has another number of columns, a grade
        is not a whole number, or a pair is judged twice with different grades.
    """
    queries: dict[str, int] = {}
    docs: dict[str, int] = {}
    columns = (array("i"), array("i"), array("i"), array("q"))
    for number, query_id, doc_id, text in _qrels_rows(path):
        columns[0].append(queries.setdefault(query_id, len(queries)))
        columns[1].append(docs.setdefault(doc_id, len(docs)))
        columns[2].append(_grade(text, f"{path}:{number}"))
        columns[3].append(number)
    if not columns[0]:
        raise DataError(
            f"{path} holds no judgments; expected lines 'query_id iteration doc_id grade' or "
            "'query-id corpus-id score'"
        )
    query_ids, doc_ids = tuple(queries), tuple(docs)
    del queries, docs
    query_codes, doc_codes, grades = (np.frombuffer(c, dtype=np.int32) for c in columns[:3])
    key = query_codes.astype(np.int64) * len(doc_ids) + doc_codes
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    first, second = order[again], order[again + 1]
    conflict = np.flatnonzero(grades[first] != grades[second])
    if len(conflict):
        one, two = int(first[conflict[0]]), int(second[conflict[0]])
        raise DataError(
            f"{path}: query {query_ids[query_codes[one]]!r}, document "
            f"{doc_ids[doc_codes[one]]!r} has grade {grades[one]} in line {columns[3][one]} and "
            f"grade {grades[two]} in line {columns[3][two]}; keep one of them"
        )
    keep = np.ones(len(key), dtype=bool)
    keep[second] = False
    return Qrels(
        query_ids=query_ids,
        doc_ids=doc_ids,
        query_codes=query_codes[keep],
        doc_codes=doc_codes[keep],
        grades=np.maximum(grades[keep], 0),
        n_negative=int(np.count_nonzero(grades[keep] < 0)),
    )


def _qrels_rows(path: PathLike) -> Iterable[tuple[int, str, str, str]]:
    """Give line number, query id, document id and grade of each judgment."""
    width, tabs_only = 0, False
    for number, line in read_lines(path):
        fields = line.split("\t") if tabs_only else _fields(line)
        if not width:
            width = 3 if len(fields) == 3 else 4
            # A query may be called like a header, but a judgment ends with a number.
            if fields[0] in ("query-id", "query_id", "qid") and not _is_number(fields[-1]):
                tabs_only = "\t" in line
                continue
        if len(fields) != width:
            expected = (
                "query-id corpus-id score" if width == 3 else "query_id iteration doc_id grade"
            )
            raise DataError(
                f"{path}:{number}: expected {width} columns ({expected}), "
                f"found {len(fields)}: {line[:80]!r}"
            )
        yield number, fields[0], fields[-2], fields[-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _grade(text: str, where: str) -> int:
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{where}: grade {text!r} is not a whole number") from error
    if not value.is_integer() or abs(value) > _INT32_MAX:
        raise DataError(f"{where}: grade {text!r} is not a whole number within ± {_INT32_MAX}")
    return int(value)
