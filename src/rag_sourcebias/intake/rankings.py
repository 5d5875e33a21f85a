"""Rankings from any carrier as runs: one rule about order, ranks, scores and distances."""

from __future__ import annotations

import json
import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.data import BoolArray, CodeArray, FloatArray, IntArray, Run, RunCode, coded
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.intake.files import (
    PathLike,
    open_bytes,
    read_blocks,
    read_jsonl,
    read_lines,
    read_text,
    sound,
    write_atomic,
)
from rag_sourcebias.intake.objects import a, columns_of, is_frame, is_path
from rag_sourcebias.intake.results import id_in, is_number, listed, row_of, scores_in
from rag_sourcebias.intake.tables import Table, names_of, numbers_of, read_table, table_of

# The rule. A ranking is an order: rank columns, the order of lists and scores are evidence of it.


# Queries that may disagree with all others: a few in ten thousand do in runs whose ranks were
# written from scores of other precision, and those of a wrong column disagree by half.
_TOLERATED = 0.01


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Retrieved documents as they were handed over, one row each, in any order.

    Parameters
    ----------
    where : str
        File or object, for messages.
    query_ids, doc_ids : sequence of str
        Vocabularies of the codes.
    query_codes, doc_codes : int64 arrays of shape (n,)
    ranks : float64 array of shape (n,), or None
        Smaller is better: a rank column, or places in a list.
    scores : float64 array of shape (n,), or None
    systems : sequence of str
        Names of the systems; empty where the carrier names none.
    system_codes : int64 array of shape (n,), or None
    """

    where: str
    query_ids: Sequence[str]
    query_codes: IntArray
    doc_ids: Sequence[str]
    doc_codes: IntArray
    ranks: FloatArray | None = None
    scores: FloatArray | None = None
    systems: Sequence[str] = ()
    system_codes: IntArray | None = field(default=None)

    def runs(self, name: str | None, *, otherwise: str) -> list[Run]:
        """Return the run of each system, named by itself where it is not named here.

        Raises
        ------
        DataError
            If there is no entry, ranks and scores contradict each other, or one name is given to
            several systems.
        """
        if not len(self.query_codes):
            raise DataError(f"{self.where} holds no ranked documents")
        if len(self.systems) < 2:
            return [self.run(name or next(iter(self.systems), otherwise))]
        if name is not None:
            raise DataError(
                f"{self.where} holds {len(self.systems)} systems, which have names of their own "
                f"({', '.join(self.systems)}): leave out the name {name!r}"
            )
        return [
            self._taken(np.flatnonzero(self.system_codes == code)).run(system)
            for code, system in enumerate(self.systems)
        ]

    def _taken(self, rows: IntArray) -> Entries:
        """Return some rows with the queries that occur in them."""
        codes, first, query_codes = np.unique(
            self.query_codes[rows], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return replace(
            self,
            query_ids=[self.query_ids[code] for code in codes[order]],
            query_codes=place[query_codes],
            doc_codes=self.doc_codes[rows],
            ranks=None if self.ranks is None else self.ranks[rows],
            scores=None if self.scores is None else self.scores[rows],
        )

    def run(self, name: str) -> Run:
        """Return the entries of one system as a run, by the rule of this module.

        Raises
        ------
        DataError
            If ranks and scores contradict each other, or neither tells an order.
        """
        ranks = self._telling(self.ranks)
        scores = self._telling(self.scores)
        if ranks is None and scores is None:
            if np.bincount(self.query_codes).max() > 1:
                raise DataError(
                    f"{self.where}: nothing says which document comes first: within each query all "
                    "ranks and scores are equal; give ranks 1, 2, 3, … or scores that differ"
                )
            return self._ordered(name, self.scores)
        if ranks is None:
            return self._ordered(name, scores, by_score=True)
        order = np.lexsort((ranks, self.query_codes))
        if scores is not None:
            return _agreed(self._ordered(name, scores, order), self.where)
        run = self._ordered(name, -ranks, order)
        tied = _queries_with(run, np.equal).any()
        if self.scores is not None:
            run = replace(run, notes=(*run.notes, RunCode.CONSTANT(severity="warning")))
        return run if tied else replace(run, scores=None)

    def _telling(self, values: FloatArray | None) -> FloatArray | None:
        """Return values by which the documents of at least one query differ, or None."""
        if values is None or not len(values):
            return None
        one = np.empty(len(self.query_ids))
        one[self.query_codes] = values
        return values if np.any(values != one[self.query_codes]) else None

    def _ordered(
        self,
        name: str,
        scores: FloatArray | None,
        order: IntArray | None = None,
        *,
        by_score: bool = False,
    ) -> Run:
        rows = slice(None) if order is None else order
        return Run.from_arrays(
            query_ids=self.query_ids,
            query_codes=self.query_codes[rows],
            doc_codes=self.doc_codes[rows],
            doc_ids=self.doc_ids,
            scores=None if scores is None else scores[rows],
            name=name,
            sort_by_score=by_score,
        )


def _agreed(run: Run, where: str) -> Run:
    """Decide what scores mean in a run that is ordered by its ranks."""
    falls, rises = (_queries_with(run, compare) for compare in (np.less, np.greater))
    n_all = int(np.count_nonzero(falls | rises))
    n_not_falling, n_not_rising = int(np.count_nonzero(rises)), int(np.count_nonzero(falls))
    if n_not_falling <= _TOLERATED * n_all:
        if not n_not_falling:
            return run
        note = RunCode.DISAGREE(n=n_not_falling, n_all=n_all, severity="warning")
    elif n_not_rising <= _TOLERATED * n_all:
        note = RunCode.DISTANCES(n=n_all - n_not_rising, n_all=n_all, severity="warning")
        run = replace(run, scores=-run.scores) if run.scores is not None else run
    else:
        raise DataError(
            f"{where}: ranks and scores contradict each other in {min(n_not_falling, n_not_rising)}"
            f" of {n_all} queries, neither higher nor lower scores come first; give the ranking "
            "without scores if the order is right, or the scores without ranks if they are"
        )
    resorted = Run.from_arrays(
        query_ids=run.query_ids,
        query_codes=run.query_codes,
        doc_codes=run.doc_codes,
        doc_ids=run.doc_ids,
        scores=run.scores,
        name=run.name,
        sort_by_score=True,
    )
    return replace(resorted, n_duplicates=run.n_duplicates, notes=(*run.notes, note))


def _queries_with(run: Run, compare: np.ufunc) -> BoolArray:
    """Return in which queries a score compares so with the score before it."""
    found = np.zeros(len(run.query_ids), dtype=bool)
    if run.scores is not None:
        same = run.query_codes[1:] == run.query_codes[:-1]
        found[run.query_codes[1:][same & compare(run.scores[1:], run.scores[:-1])]] = True
    return found


# Files.


def read_run(path: PathLike, *, name: str | None = None) -> Run:
    """Read a run of one system from a file; see :func:`read_runs`.

    Raises
    ------
    DataError
        As :func:`read_runs`, and if the file holds several systems.
    """
    return _single(read_runs(path, name=name), path)


def read_systems(paths: Sequence[PathLike], *, names: Sequence[str] = ()) -> list[Run]:
    """Read the runs of several files, told apart by their own names, or else by those of the files.

    Parameters
    ----------
    names : sequence of str
        One for each file, in place of the names that the files hold.

    Raises
    ------
    DataError
        As :func:`read_runs`, and if names are too many or too few, or do not tell runs apart.
    """
    if names and len(names) != len(paths):
        raise DataError(f"{len(names)} names for {len(paths)} runs; give one for each, in order")
    runs = [[*read_runs(path, name=names[at] if names else None)] for at, path in enumerate(paths)]
    times = Counter(run.name for part in runs for run in part)
    told_apart = [
        replace(run, name=_stem(path)) if times[run.name] > 1 and not names else run
        for path, part in zip(paths, runs, strict=True)
        for run in part
    ]
    times = Counter(run.name for run in told_apart)
    again = next((name for name, n in times.items() if n > 1), None)
    if again is not None:
        raise DataError(
            f"{times[again]} runs are called {again!r}, in their files and by the files' names; "
            "name each with names= (--name)"
        )
    return told_apart


def _stem(path: PathLike) -> str:
    return Path(path).name.partition(".")[0] or Path(path).name


def read_runs(path: PathLike, *, name: str | None = None) -> list[Run]:
    """Read the ranking of each system in a file.

    Parameters
    ----------
    path : path
        Plain, or packed as ``.gz``, ``.bz2``, ``.xz`` or ``.zst``. One of: TREC lines ``query_id Q0
        doc_id rank score tag``, a system for each tag; lines ``query_id doc_id rank`` as of MS
        MARCO; CSV, TSV, Parquet or JSON lines with columns for the ids and for a rank, a score or
        a distance; JSON ``{query: {document: score}}``, ``{query: [documents]}``, ``{query:
        [[document, score], …]}``, these by system, or an array of rows.
    name : str or None
        Name of the run, in place of its tag or of the file's name.

    Returns
    -------
    list of Run
        A document listed twice for a query is kept once, where it stands first, and counted in
        ``n_duplicates``. ``notes`` say how scores were understood.

    Raises
    ------
    DataError
        If the file is missing, empty or not UTF-8, a line has another number of columns, a score
        is not a finite number, or ranks and scores contradict each other.
    """
    where = os.fspath(path)
    if where.endswith((".parquet", ".pq")):
        return _of_table(read_table(path, _chosen(where))).runs(name, otherwise=_stem(path))
    with sound(path, "a run"), open_bytes(Path(path)) as stream:
        start = stream.read(4_096).decode("utf-8-sig", errors="replace").lstrip(" \t\r\n")
    # JSON that was cut short may look like a query, a document and a rank
    if re.match(r"[{\[]\s*[\"{\[}\]]", start):
        return _read_json(path, name)
    fields = _fields(start.partition("\n")[0])
    if len(fields) in _TREC_WIDTHS and _is_number(fields[_TREC_WIDTHS[len(fields)]]):
        return _read_trec(path, len(fields)).runs(name, otherwise=_stem(path))
    number, first = next(read_lines(path), (0, ""))
    if not first:
        raise DataError(f"{path} is empty; expected lines 'query_id Q0 doc_id rank score tag'")
    if _named(re.split("[,;\t]", first), "query_id") is None:
        problem = f"{len(fields)} columns: {first[:80]!r}"
        if len(fields) in _TREC_WIDTHS:
            problem = f"{fields[_TREC_WIDTHS[len(fields)]]!r} where a number belongs"
        raise DataError(
            f"{path}:{number}: expected 6 columns (query_id Q0 doc_id rank score tag), 3 (query_id "
            f"doc_id rank), a header with query_id, doc_id and score, or JSON; found {problem}"
        )
    return _of_table(read_table(path, _chosen(where))).runs(name, otherwise=_stem(path))


def _read_json(path: PathLike, name: str | None) -> list[Run]:
    text = read_text(path, "JSON").strip()
    with sound(path, "JSON"):
        value, end = json.JSONDecoder().raw_decode(text)
    if end < len(text):
        value = None  # an object on each line
    if isinstance(value, Mapping) and _named(value, "query_id") is None:
        return _runs_in(value, os.fspath(path), name=name, otherwise=_stem(path))
    if isinstance(value, list):
        return _runs_in(value, os.fspath(path), name=name, otherwise=_stem(path))
    rows = [row for _, row in read_jsonl(path)]
    return _runs_in(rows, os.fspath(path), name=name, otherwise=_stem(path))


# Column of the number by which lines with that many columns are told from others: score, rank.
_TREC_WIDTHS = {6: 4, 3: 2}
_OF_MS_MARCO = "query_id doc_id rank"
_BLOCK = 8_192  # bytes that are taken apart together: their parts stay in a processor's cache
_END = "\0"  # stands for the end of a line there
# Only ASCII space separates: an id may hold a no-break or an ideographic space. The byte-order
# mark is listed because a file may not start with an id that does.
_SPACE = re.compile("[ \t\n\r\x0b\x0c\x1c-\x1f\ufeff]+")


def _fields(line: str) -> list[str]:
    return line.split() if line.isascii() else [field for field in _SPACE.split(line) if field]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Codes:
    """Names in the order in which they come first, and the code of each entry."""

    def __init__(self) -> None:
        self.of: defaultdict[str, int] = defaultdict(count().__next__)
        self.parts: list[CodeArray] = []

    def add(self, names: Sequence[str]) -> None:
        self.parts.append(np.fromiter(map(self.of.__getitem__, names), np.int32, len(names)))

    @property
    def codes(self) -> IntArray:
        return np.concatenate(self.parts).astype(np.int64)


def _read_trec(path: PathLike, width: int) -> Entries:
    queries, docs, tags = _Codes(), _Codes(), _Codes()
    ranks: list[FloatArray] | None = []
    scores: list[FloatArray] = []
    for number, text in read_blocks(path, _BLOCK):
        columns = _cells(path, number, text, width)
        queries.add(columns[0])
        if width == 3:
            docs.add(columns[1])
            scores.append(_numbers_of(columns[2], "rank", path, number))
            continue
        docs.add(columns[2])
        tags.add(columns[5])
        scores.append(_numbers_of(columns[4], "score", path, number))
        if ranks is not None:
            try:
                ranks.append(np.fromiter(map(float, columns[3]), np.float64, len(columns[3])))
            except ValueError:
                ranks = None  # trec_eval does not read this column, and it may hold anything
    for tag in tags.of:
        if not tag.isprintable():
            require_name(tag, "run name", _place(path, tag))
    numbers = np.concatenate(scores)
    if width == 3:
        _require_ranks(numbers, queries.codes, docs.codes, path)
    return Entries(
        where=os.fspath(path),
        query_ids=list(queries.of),
        query_codes=queries.codes,
        doc_ids=list(docs.of),
        doc_codes=docs.codes,
        ranks=numbers if width == 3 else np.concatenate(ranks) if ranks else None,
        scores=None if width == 3 else numbers,
        systems=list(tags.of),
        system_codes=tags.codes if tags.of else None,
    )


def _cells(path: PathLike, number: int, text: str, width: int) -> list[list[str]]:
    """Return the columns of some lines, of which the first has that number."""
    ended = text.removesuffix("\n").replace("\n", f" {_END} ") + f" {_END}"
    cells = ended.split() if text.isascii() else _fields(ended)
    if len(cells) % (width + 1) or set(cells[width :: width + 1]) != {_END}:
        cells = []
        for at, line in enumerate(text.split("\n"), number):
            fields = _fields(line)
            if fields and len(fields) != width:
                expected = "query_id Q0 doc_id rank score tag" if width == 6 else _OF_MS_MARCO
                raise DataError(
                    f"{path}:{at}: expected {width} columns ({expected}), found {len(fields)}: "
                    f"{line[:80]!r}"
                )
            cells += [*fields, _END] if fields else []
    return [cells[column :: width + 1] for column in range(width)]


def _numbers_of(cells: Sequence[str], role: str, path: PathLike, number: int) -> FloatArray:
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        wrong, problem = next(cell for cell in cells if not _is_number(cell)), "a number"
    else:
        if np.isfinite(numbers).all():
            return numbers
        wrong = cells[int(np.argmin(np.isfinite(numbers)))]
        problem = "a finite number"
    raise DataError(f"{_place(path, wrong, number)}: {role} {wrong!r} is not {problem}")


def _place(path: PathLike, field: str, first: int = 1) -> str:
    """Name file and line of the first field of that text, from some line on."""
    lines = (at for at, line in read_lines(path) if at >= first and field in _fields(line))
    return f"{path}:{next(lines)}"


def _require_ranks(ranks: FloatArray, queries: IntArray, docs: IntArray, path: PathLike) -> None:
    """Refuse a third column that numbers no ranking, as grades of judgments and scores do."""
    places = np.unique(np.stack([queries, docs, ranks.astype(np.int64)]), axis=1)
    pairs = np.unique(places[[0, 2]], axis=1)
    if np.any(ranks != np.rint(ranks)) or pairs.shape != (2, places.shape[1]):
        raise DataError(
            f"{path}: the third column holds no ranks: in some query two documents have the same, "
            "or it is no whole number; put a header above scores (query_id, doc_id, score)"
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
        rises = _queries_with(run, np.greater)
        if rises.any():
            logging.getLogger("rag_sourcebias.intake").warning(
                "run %r is not ordered by score in %d queries: tools that sort by score will read "
                "another ranking from %s",
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


# Whatever was handed over.


def runs_of(value: Any, *, name: str | None = None) -> list[Run]:  # noqa: ANN401
    """Return the run of each system in a file, a frame, rows or dictionaries.

    Parameters
    ----------
    value : Run, path, frame, list of rows, or mapping
        See :func:`read_runs` for files. Frames and rows have a query id, a document id, and a rank,
        a score or a distance; a mapping is ``{query: {document: score}}``, ``{query: [documents]}``
        or ``{query: [(document, score)]}``, or holds these by the name of the system.
    name : str, optional
        Of the run, in place of its own.

    Raises
    ------
    DataError
        If it is none of these, or ranks and scores contradict each other.
    """
    if isinstance(value, Run):
        return [value if name is None else replace(value, name=name)]
    if isinstance(value, str | os.PathLike):
        return read_runs(value, name=name)
    return _runs_in(value, "results", name=name, otherwise="results")


def run_of(value: Any, *, name: str | None = None) -> Run:  # noqa: ANN401
    """Return the one run that a value stands for; see :func:`runs_of`."""
    return _single(runs_of(value, name=name), value)


def _single(runs: Sequence[Run], value: object) -> Run:
    if len(runs) > 1:
        where = str(value) if isinstance(value, str | os.PathLike) else "results"
        raise DataError(
            f"{where} holds {len(runs)} systems, {', '.join(run.name for run in runs)}; give a "
            "file for each here"
        )
    return runs[0]


def _runs_in(value: Any, where: str, *, name: str | None, otherwise: str) -> list[Run]:  # noqa: ANN401
    if _is_of_ranx(value):
        name, value = name or value.name, value.to_dict()
    if is_frame(value) or _is_rows(value):
        table = value if is_frame(value) else list(map(_row, value))
        columns = columns_of(table, where)
        if (lists := _by_query(columns)) is not None:
            return _of_lists(lists, where).runs(name, otherwise=otherwise)
        return _of_table(table_of(columns, where, _chosen(where))).runs(name, otherwise=otherwise)
    by_query = isinstance(value, Mapping) and all(map(_is_ranking, value.values()))
    if isinstance(value, Mapping) and not by_query and all(map(is_results, value.values())):
        return [
            run
            for system, one in value.items()
            for run in _runs_in(one, f"{where}, {system}", name=str(system), otherwise=otherwise)
        ]
    if isinstance(value, Mapping):
        return _of_lists(value, where).runs(name, otherwise=otherwise)
    raise DataError(
        f"{where}: {a(value)} is no ranking; expected {{query: {{document: score}}}}, "
        "{query: [documents]}, {query: [(document, score)]}, or rows with query_id, doc_id and "
        "score"
    )


def _is_rows(value: object) -> bool:
    """Whether a value is a list of dictionaries or named tuples, as ir_measures reads runs."""
    if not isinstance(value, list | tuple) or not value:
        return False
    rows = all(isinstance(row, Mapping) or hasattr(row, "_asdict") for row in value)
    return rows and _named(_row(value[0]), "query_id") is not None


def _row(row: Any) -> Mapping[str, Any]:  # noqa: ANN401 - a mapping or a named tuple
    mapping: Mapping[str, Any] = row._asdict() if hasattr(row, "_asdict") else row
    return mapping


def _is_of_ranx(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "Run" and kind.__module__.partition(".")[0] == "ranx"


def is_results(value: object) -> bool:
    """Whether a value is a finished ranking: a run, its file, a frame, or a dict of rankings."""
    if isinstance(value, Run) or is_frame(value) or _is_rows(value):
        return True
    if _is_of_ranx(value):
        return True
    if isinstance(value, str | os.PathLike):
        return is_path(value) and Path(value).is_file()
    if not isinstance(value, Mapping) or not value:
        return False
    return all(map(_is_ranking, value.values()))


def _is_ranking(row: object) -> bool:
    if _is_unordered(row):
        return True
    try:
        documents = listed(row)
    except DataError:
        return True  # to be refused with the reason
    if isinstance(documents, Mapping) or not isinstance(documents, list | tuple):
        return False
    return all(
        isinstance(one, str | int | np.integer)
        or (isinstance(one, tuple | list) and len(one) == 2)
        or id_in(row_of(one)) is not None
        for one in documents
    )


# Lists and dictionaries by query.


def _of_lists(lists: Mapping[Any, Any], where: str) -> Entries:
    rows = list(lists.values())
    kinds = set(map(type, rows))
    queries = _texts(list(lists))
    scores: FloatArray | None = None
    ranks: FloatArray | None = None
    if kinds <= {dict} and _are_numbers(chain.from_iterable(row.values() for row in rows)):
        docs = list(chain.from_iterable(rows))
        scores = _numbers(chain.from_iterable(row.values() for row in rows), len(docs), where)
        lengths = list(map(len, rows))
    else:
        parts = [_ranking(row, f"{where}, query {query!r}") for query, row in lists.items()]
        docs = list(chain.from_iterable(ids for ids, _ in parts))
        lengths = [len(ids) for ids, _ in parts]
        if all(scored is not None for _, scored in parts):
            given = chain.from_iterable(scored or () for _, scored in parts)
            scores = _numbers(given, len(docs), where)
        if not any(map(_is_unordered, rows)):
            firsts = np.cumsum([0, *lengths[:-1]])
            ranks = (np.arange(len(docs)) - np.repeat(firsts, lengths)).astype(np.float64)
    doc_ids, doc_codes = coded(_texts(docs))
    return Entries(
        where=where,
        query_ids=queries,
        query_codes=np.repeat(np.arange(len(rows)), lengths),
        doc_ids=doc_ids,
        doc_codes=doc_codes.astype(np.int64),
        ranks=ranks,
        scores=scores,
    )


def _is_unordered(row: object) -> bool:
    """Whether the order of a ranking is no evidence: that of ``{document: score}`` is not."""
    return isinstance(row, Mapping) and _are_numbers(row.values())


def _are_numbers(values: Iterable[object]) -> bool:
    kinds = set(map(type, values))  # a line for each score takes as long as all the rest
    return all(issubclass(kind, int | float | np.number) for kind in kinds)


def _ranking(row: Any, where: str) -> tuple[Sequence[Any], Sequence[Any] | None]:  # noqa: ANN401
    """Return ids and scores of one query, in the order given."""
    if _is_unordered(row):
        return list(row), list(row.values())
    try:
        found = listed(row)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if isinstance(found, str | Mapping) or not isinstance(found, Iterable):
        raise DataError(f"{where}: {a(row)} is no ranking; expected documents, best first")
    documents = list(found)
    scores: Sequence[Any] | None = None
    if documents and all(isinstance(one, tuple | list) and len(one) == 2 for one in documents):
        documents, scores = map(list, zip(*documents, strict=True))
    if all(isinstance(one, str | int | float | np.number) for one in documents):
        return documents, scores
    documents = list(map(row_of, documents))
    ids = list(map(id_in, documents))
    if None in ids:
        raise DataError(
            f"{where}: {a(documents[ids.index(None)])} has no id; expected ids, (id, score) pairs, "
            "or documents with an id"
        )
    scores = scores_in(documents) if scores is None else scores
    return ids, scores if all(map(is_number, scores)) else None


def _texts(ids: Sequence[Any]) -> Sequence[str]:
    """Return ids as text, however they were typed: 12.0 of a column of fractions is 12."""
    if set(map(type, ids)) <= {str}:
        return ids
    return [_text(one) for one in ids]


def _text(one: object) -> str:
    if isinstance(one, float | np.floating) and float(one).is_integer():
        return str(int(one))
    return str(one)


def _numbers(values: Iterable[Any], n: int, where: str) -> FloatArray:
    try:
        numbers = np.fromiter(values, np.float64, n)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: a score is no number ({error})") from error
    if not np.isfinite(numbers).all():
        bad = numbers[~np.isfinite(numbers)][0]
        raise DataError(f"{where}: score {bad} is not finite; a score must be a number")
    return numbers


# Tables: frames, rows, CSV, TSV, JSON lines, Parquet.


_COLUMNS = {
    "query_id": ("query_id", "qid", "topic", "topic_id", "query", "query_no", "q_id"),
    "doc_id": (
        "doc_id", "docid", "docno", "document_id", "corpus_id", "pid", "passage_id", "doc",
        "document", "id",
    ),
    "rank": ("rank", "position"),
    "score": ("score", "similarity", "sim", "relevance_score", "rerank_score"),
    "distance": ("distance", "dist"),
    "system": ("system", "run", "run_name", "run_id", "run_tag", "retriever"),
    "documents": (
        "results", "documents", "docs", "hits", "candidates", "ranking", "retrieved", "doc_ids",
    ),
}  # fmt: skip


def _named(names: Iterable[str], role: str) -> str | None:
    """Return the first column that has one of the usual names of a role."""
    plain = {re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_"): name for name in names}
    return next((plain[alias] for alias in _COLUMNS[role] if alias in plain), None)


def _found(columns: Mapping[str, list[Any]], role: str) -> tuple[str, list[Any]] | None:
    name = _named(columns, role)
    return None if name is None else (name, columns[name])


def _by_query(columns: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
    """Return the documents of each query where a row holds all of a query, or None."""
    queries, lists = _found(columns, "query_id"), _found(columns, "documents")
    if queries is None or lists is None or not all(map(_is_ranking, lists[1])):
        return None
    ids = [
        one.get(_named(one, "query_id")) if isinstance(one, Mapping) else one for one in queries[1]
    ]
    return dict(zip(ids, lists[1], strict=True))


def _chosen(where: str) -> Any:  # noqa: ANN401 - a chooser of read_table
    def choose(names: tuple[str, ...]) -> list[str]:
        columns = {role: _named(names, role) for role in _COLUMNS if role != "documents"}
        for role in ("query_id", "doc_id"):
            if columns[role] is None:
                raise DataError(
                    f"{where} has no column {role}: looked for {', '.join(_COLUMNS[role])}, found "
                    f"{', '.join(names)}; rename one"
                )
        if not any(columns[role] for role in ("rank", "score", "distance")):
            raise DataError(
                f"{where} has neither rank nor score: columns are {', '.join(names)}; add one"
            )
        return [name for name in columns.values() if name is not None]

    return choose


def _of_table(table: Table) -> Entries:
    columns = table.columns
    doc, query = _found(columns, "doc_id"), _found(columns, "query_id")
    docs = names_of(table, doc[0] if doc else "", role="document id")
    queries = names_of(table, query[0] if query else "", role="query id")
    values: dict[str, FloatArray | None] = {}
    for role in ("rank", "score", "distance"):
        name = _named(columns, role)
        values[role] = None if name is None else _numbers_in(table, name, role, docs)
    scores, distances = values["score"], values["distance"]
    if scores is None and distances is not None:
        scores = -distances
    query_ids, query_codes = coded(queries)
    doc_ids, doc_codes = coded(docs)
    system = _named(columns, "system")
    systems: Sequence[str] = ()
    system_codes = None
    if system is not None:
        systems, system_codes = coded(names_of(table, system, role="system", shown=True))
    return Entries(
        where=table.path,
        query_ids=query_ids,
        query_codes=query_codes.astype(np.int64),
        doc_ids=doc_ids,
        doc_codes=doc_codes.astype(np.int64),
        ranks=values["rank"],
        scores=scores,
        systems=systems,
        system_codes=None if system_codes is None else system_codes.astype(np.int64),
    )


def _numbers_in(table: Table, column: str, role: str, docs: list[str]) -> FloatArray:
    numbers = numbers_of(table, column, role=role, ids=docs)
    lacking = np.flatnonzero(np.isnan(numbers))
    if len(lacking):
        row = int(lacking[0])
        raise DataError(f"{table.where(row)}: document {docs[row]!r} has no {role} ({column!r})")
    return numbers
