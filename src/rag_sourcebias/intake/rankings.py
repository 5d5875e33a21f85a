"""Rankings from any carrier as runs: one rule about order, ranks, scores and distances."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import PathLike, sound
from rag_sourcebias.core.data import BoolArray, FloatArray, Run, RunCode, coded
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.intake.files import (
    UNREADABLE,
    fields_of,
    open_bytes,
    read_jsonl,
    read_text,
    tells_number,
)
from rag_sourcebias.intake.objects import (
    a,
    columns_of,
    is_frame,
    is_path,
    is_rows,
    name_of,
    names_in,
)
from rag_sourcebias.intake.results import id_in, id_text, is_number, listed, row_of, scores_in
from rag_sourcebias.intake.tables import (
    Table,
    find_column,
    names_of,
    numbers_of,
    read_fields,
    read_table,
    table_of,
)

# The rule. A ranking is an order: rank columns, the order of lists and scores are evidence of it.


# Queries that may disagree with all others: a few in ten thousand do in runs whose ranks were
# written from scores of other precision, and those of a wrong column disagree by half.
_TOLERATED = 0.01


#: Names of which each occurs once, and the number of the name in each row.
Column = tuple[Sequence[str], npt.NDArray[np.integer[Any]]]
_NO_SYSTEMS: Column = ((), np.empty(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Retrieved documents as they were handed over, one row each, in any order.

    Parameters
    ----------
    where : str
        File or object, for messages.
    queries, docs : column
    ranks : float64 array of shape (n,), or None
        Smaller is better: a rank column, or places in a list.
    scores : float64 array of shape (n,), or None
    systems : column
        Without names where the carrier names no system.
    """

    where: str
    queries: Column
    docs: Column
    ranks: FloatArray | None = None
    scores: FloatArray | None = None
    systems: Column = _NO_SYSTEMS

    def runs(self, name: str | None, *, otherwise: str) -> list[Run]:
        """Return the run of each system, named by itself where it is not named here.

        Raises
        ------
        DataError
            If there is no entry, ranks and scores contradict each other, or one name is given to
            several systems.
        """
        query_ids, query_codes = self.queries
        if not len(query_codes):
            raise DataError(f"{self.where} holds no ranked documents")
        systems, codes = self.systems
        if len(systems) < 2:
            return [self.run(name or next(iter(systems), otherwise))]
        if name is not None:
            raise DataError(
                f"{self.where} holds {len(systems)} systems, which have names of their own "
                f"({', '.join(systems)}): leave out the name {name!r}"
            )
        runs = []
        for code, system in enumerate(systems):
            part = self._rows(codes == code)
            held, part_codes = np.unique(part.queries[1], return_inverse=True)
            queries = ([query_ids[code] for code in held], part_codes)
            runs.append(replace(part, queries=queries).run(system))
        return runs

    def _rows(self, rows: npt.NDArray[Any]) -> Entries:
        (query_ids, queries), (doc_ids, docs) = self.queries, self.docs
        return replace(
            self,
            queries=(query_ids, queries[rows]),
            docs=(doc_ids, docs[rows]),
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
        if ranks is not None and scores is not None:
            order = np.lexsort((ranks, self.queries[1]))
            by_rank, scores = self._rows(order), scores[order]
            run = by_rank._run(name, scores, by_score=False)
            note = _disagreement(run, self.where)
            if note is None:
                return run
            sign = -1 if note.code is RunCode.DISTANCES else 1
            return replace(by_rank._run(name, sign * scores), notes=(note,))
        if scores is not None:
            return self._run(name, scores)
        if ranks is None:
            if np.bincount(self.queries[1]).max() > 1:
                raise DataError(
                    f"{self.where}: nothing says which document comes first: within each query all "
                    "ranks and scores are equal; give ranks 1, 2, 3, … or scores that differ"
                )
            return self._run(name, self.scores)
        run = self._run(name, -ranks)
        if not _queries_with(run, np.equal).any():
            run = replace(run, scores=None)
        if self.scores is not None:
            run = replace(run, notes=(RunCode.CONSTANT(severity="warning"),))
        return run

    def _telling(self, values: FloatArray | None) -> FloatArray | None:
        """Return values by which the documents of at least one query differ, or None."""
        if values is None:
            return None
        one = np.empty(len(self.queries[0]))
        one[self.queries[1]] = values
        return values if np.any(values != one[self.queries[1]]) else None

    def _run(self, name: str, scores: FloatArray | None, *, by_score: bool = True) -> Run:
        return Run.from_arrays(
            query_ids=self.queries[0],
            query_codes=self.queries[1],
            doc_codes=self.docs[1],
            doc_ids=self.docs[0],
            scores=scores,
            name=name,
            sort_by_score=by_score,
        )


def _disagreement(run: Run, where: str) -> Finding | None:
    """Say where a run that is ordered by its ranks has scores that do not fall."""
    falls, rises = (_queries_with(run, compare) for compare in (np.less, np.greater))
    n_all, n_falling, n_rising = (int(np.sum(one)) for one in (falls | rises, falls, rises))
    if not n_rising:
        return None
    if n_rising <= _TOLERATED * n_all:
        return RunCode.DISAGREE(n=n_rising, n_all=n_all, severity="warning")
    if n_falling <= _TOLERATED * n_all:
        return RunCode.DISTANCES(n=n_all - n_falling, n_all=n_all, severity="warning")
    raise DataError(
        f"{where}: ranks and scores contradict each other in {min(n_rising, n_falling)} of {n_all} "
        "queries, neither higher nor lower scores come first; give the ranking without scores if "
        "the order is right, or the scores without ranks if they are"
    )


def _queries_with(run: Run, compare: np.ufunc) -> BoolArray:
    """Return in which queries a score compares so with the score before it."""
    found = np.zeros(len(run.query_ids), dtype=bool)
    scores = np.asarray(run.scores)
    same = run.query_codes[1:] == run.query_codes[:-1]
    found[run.query_codes[1:][same & compare(scores[1:], scores[:-1])]] = True
    return found


# Files.


def read_run(path: PathLike) -> Run:
    """Read a run of one system from a file; see :func:`runs_of`.

    Raises
    ------
    DataError
        As :func:`runs_of`, and if the file holds several systems.
    """
    runs = runs_of(path)
    if len(runs) > 1:
        raise DataError(
            f"{path} holds {len(runs)} systems, {', '.join(run.name for run in runs)}; give a "
            "file for each here"
        )
    return runs[0]


def read_systems(paths: Sequence[PathLike], *, names: Sequence[str] = ()) -> list[Run]:
    """Read the runs of several files, told apart by their own names, or else by those of the files.

    Parameters
    ----------
    names : sequence of str
        One for each file, in place of the names that the files hold.

    Raises
    ------
    DataError
        As :func:`runs_of`, and if names are too many or too few, or do not tell runs apart.
    """
    if names and len(names) != len(paths):
        raise DataError(f"{len(names)} names for {len(paths)} runs; give one for each, in order")
    read = [
        (path, run)
        for path, name in zip(paths, names or repeat(None), strict=False)
        for run in runs_of(path, name=name)
    ]
    times = Counter(run.name for _, run in read)
    runs = [
        run if names or times[run.name] == 1 else replace(run, name=_stem(path))
        for path, run in read
    ]
    ((name, n), *_) = Counter(run.name for run in runs).most_common(1) or [("", 0)]
    if n > 1:
        raise DataError(
            f"{n} runs are called {name!r}, in their files and by the files' names; name each "
            "with names= (--name)"
        )
    return runs


def _stem(path: PathLike) -> str:
    return Path(path).name.partition(".")[0] or Path(path).name


def _in_file(path: PathLike, name: str | None) -> list[Run]:
    where = os.fspath(path)
    with sound(path, "a run"), open_bytes(Path(path)) as stream:
        start = stream.read(4_096).decode("utf-8-sig", errors="replace").lstrip(" \t\r\n")
    fields = fields_of(start.partition("\n")[0])
    # no JSON has two numbers side by side; cut short it may look like three columns
    ranked = len(fields) == 6 and all(map(tells_number, fields[3:5]))
    if not ranked and start.startswith(("{", "[")):
        return _runs_in(_json(path), where, name=name, otherwise=_stem(path))
    if len(fields) in _TREC and tells_number(fields[4 if len(fields) == 6 else 2]):
        return _of_lines(path, _TREC[len(fields)]).runs(name, otherwise=_stem(path))
    return _of_table(read_table(path)).runs(name, otherwise=_stem(path))


def _json(path: PathLike) -> Any:  # noqa: ANN401
    """Return the one value of a file, or the list of those on its lines."""
    text = read_text(path, "JSON").strip()
    with sound(path, "JSON"):
        value, end = json.JSONDecoder().raw_decode(text)
    one = isinstance(value, Mapping) and find_column(list(value), "ranked_query") is not None
    return [row for _, row in read_jsonl(path)] if one or end < len(text) else value


# The fields of a line, called as the columns of a table.
_TREC = {
    6: ("query_id", "Q0", "doc_id", "rank", "score", "run_tag"),
    3: ("query_id", "doc_id", "rank"),  # of MS MARCO
}
_BLOCK = 8_192  # bytes that are taken apart together: their parts stay in a processor's cache


def _of_lines(path: PathLike, names: Sequence[str]) -> Entries:
    """Read lines of so many fields between white space."""
    try:
        entries = _of_blocks(path, names)
    except (ValueError, *UNREADABLE):
        entries = _of_table(read_fields(path, names, fields_of))  # which names the line
    if entries.scores is None:
        _require_ranks(entries)
    return entries


def _of_blocks(path: PathLike, names: Sequence[str]) -> Entries:
    """Read some lines at once; a ValueError where one is wrong."""
    # names in the order in which they come first, and the number of that of each line
    number_of = {name: defaultdict[str, int](count().__next__) for name in _NAMES if name in names}
    parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names if name != "Q0"}
    with open_bytes(Path(path), lines=True) as stream:
        while block := stream.readlines(_BLOCK):
            text = b"".join(block).decode("utf-8-sig")
            rows = list(filter(None, map(fields_of, text.split("\n"))))
            if not rows:
                continue
            cells = dict(zip(names, zip(*rows, strict=True), strict=True))
            for name, arrays in parts.items():
                if name in number_of:
                    numbered = map(number_of[name].__getitem__, cells[name])
                    arrays.append(np.fromiter(numbered, np.int32, len(rows)))
                else:
                    arrays.append(_floats(cells[name]))
    columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    queries, docs, *systems = ((list(ids), columns[name]) for name, ids in number_of.items())
    ranks = columns["rank"] if np.isfinite(columns["rank"]).all() else None
    scores = columns.get("score")
    if not np.isfinite(columns["rank"] if scores is None else scores).all():
        raise ValueError("a number is not finite")
    for system in number_of.get("run_tag", ()):
        require_name(system, "system")
    return Entries(os.fspath(path), queries, docs, ranks, scores, *systems)


_NAMES = ("query_id", "doc_id", "run_tag")


def _floats(cells: Sequence[str]) -> FloatArray:
    """Return cells as numbers; NaN for ranks beside scores, which trec_eval does not read."""
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return np.full(len(cells), np.nan)


def _require_ranks(entries: Entries) -> None:
    """Refuse a third column that numbers no ranking, as grades of judgments and scores do."""
    ranks = np.asarray(entries.ranks)
    rows = np.unique(np.stack([entries.queries[1], ranks, entries.docs[1]]), axis=1)
    n_places = np.unique(rows[:2], axis=1).shape[1]
    if np.any(ranks % 1) or n_places < rows.shape[1]:
        raise DataError(
            f"{entries.where}: the third column holds no ranks: in some query two documents have "
            "the same, or it is no whole number; put a header above scores (query_id, doc_id, "
            "score)"
        )


# Whatever was handed over.


def runs_of(value: Any, *, name: str | None = None) -> list[Run]:  # noqa: ANN401
    """Return the ranking of each system in a file, a frame, rows or dictionaries.

    Parameters
    ----------
    value : Run, path, frame, list of rows, or mapping
        A file is plain, or packed as ``.gz``, ``.bz2``, ``.xz`` or ``.zst``. One of: TREC lines
        ``query_id Q0 doc_id rank score tag``, a system for each tag; lines ``query_id doc_id rank``
        as of MS MARCO; CSV, TSV, Parquet or JSON lines with columns for the ids and for a rank, a
        score or a distance; JSON ``{query: {document: score}}``, ``{query: [documents]}``,
        ``{query: [[document, score], …]}``, these by system, or an array of rows. Frames, rows
        and mappings likewise.
    name : str, optional
        Of the run, in place of its tag or of the file's name.

    Returns
    -------
    list of Run
        A document listed twice for a query is kept once, where it stands first, and counted in
        ``n_duplicates``. ``notes`` say how scores were understood.

    Raises
    ------
    DataError
        If it is none of these, a file is missing, empty or not UTF-8, a line has another number of
        columns, a score is not a finite number, or ranks and scores contradict each other.
    """
    if isinstance(value, Run):
        return [value if name is None else replace(value, name=name)]
    if isinstance(value, str | os.PathLike):
        return _in_file(value, name)
    return _runs_in(value, "results", name=name, otherwise="results")


def _runs_in(value: Any, where: str, *, name: str | None, otherwise: str) -> list[Run]:  # noqa: ANN401
    if _is_of_ranx(value):
        name, value = name or value.name, value.to_dict()
    if is_frame(value) or _is_rows(value):
        columns = columns_of(value, where)
        lists = _by_query(columns)
        if lists is None:
            return _of_table(table_of(columns, where)).runs(name, otherwise=otherwise)
        value = lists
    if not isinstance(value, Mapping):
        raise DataError(f"{where}: {a(value)} is no ranking; expected {_FORMS}")
    rows = value.values()
    if not all(map(is_results, rows)) or all(map(_is_ranking, rows)):
        return _of_lists(value, where).runs(name, otherwise=otherwise)
    return [
        run
        for system, one in value.items()
        for run in _runs_in(one, f"{where}, {system}", name=str(system), otherwise="")
    ]


_FORMS = (
    "{query: {document: score}}, {query: [documents]}, {query: [(document, score)]}, rows with "
    "query_id, doc_id and rank, score or distance, or lines 'query_id Q0 doc_id rank score tag' or "
    "'query_id doc_id rank'"
)


def _is_rows(value: object) -> bool:
    return is_rows(value) and find_column(names_in(value), "ranked_query") is not None


def _is_of_ranx(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "Run" and kind.__module__.partition(".")[0] == "ranx"


def is_results(value: object) -> bool:
    """Whether a value is a finished ranking: a run, its file, a frame, or a dict of rankings."""
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_ranking, value.values()))
    if isinstance(value, str | os.PathLike):
        return is_path(value) and Path(value).is_file()
    return isinstance(value, Run) or is_frame(value) or _is_rows(value) or _is_of_ranx(value)


def _is_ranking(row: object) -> bool:
    if _is_scored(row):
        return True
    try:
        return isinstance(listed(row), list | tuple)
    except DataError:
        return True  # to be refused with the reason


def _is_scored(row: object) -> bool:
    """Whether a ranking is ``{document: score}``, in which the order is no evidence."""
    return isinstance(row, Mapping) and is_number(next(iter(row.values()), 0))


# Lists and dictionaries by query.


def entries_of(
    where: str,
    query_ids: Sequence[Any],
    lists: Sequence[tuple[Collection[Any], Collection[Any] | None]],
    *,
    ordered: bool = True,
) -> Entries:
    """Return the ids and scores of the documents of each query as entries.

    Parameters
    ----------
    where : str
        What holds them, for messages.
    query_ids : sequence
    lists : sequence of (ids, scores)
        One for each query, without scores where these are none.
    ordered : bool
        Whether the best document of each list comes first.

    Raises
    ------
    DataError
        If a score is no finite number.
    """
    docs = list(chain.from_iterable(ids for ids, _ in lists))
    lengths = np.array([len(ids) for ids, _ in lists], dtype=np.int64)
    ranks = scores = None
    if not any(scored is None for _, scored in lists):
        scores = _numbers(chain.from_iterable(scored or () for _, scored in lists), docs, where)
    if ordered:
        ranks = np.arange(len(docs), dtype=np.float64)
        ranks -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Entries(
        where=where,
        queries=(_texts(query_ids, where), np.repeat(np.arange(len(lists)), lengths)),
        docs=coded(_texts(docs, where)),
        ranks=ranks,
        scores=scores,
    )


def _of_lists(lists: Mapping[Any, Any], where: str) -> Entries:
    scored = list(map(_is_scored, lists.values()))
    parts = [
        (row, row.values()) if by_score else _ranking(row, f"{where}, query {query!r}")
        for by_score, (query, row) in zip(scored, lists.items(), strict=True)
    ]
    return entries_of(where, list(lists), parts, ordered=not any(scored))


def _ranking(row: Any, where: str) -> tuple[Collection[Any], Collection[Any] | None]:  # noqa: ANN401
    """Return ids and scores of one query from its list of documents."""
    try:
        documents = listed(row)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise DataError(f"{where}: {a(row)} is no ranking; expected documents, best first")
    documents = list(documents)
    scores: Sequence[Any] | None = None
    if documents and all(isinstance(one, tuple | list) and len(one) == 2 for one in documents):
        documents, scores = zip(*documents, strict=True)
    if not documents or any(map(name_of, documents)):
        return documents, scores
    documents = list(map(row_of, documents))
    scores = scores_in(documents) if scores is None else scores
    return list(map(id_in, documents)), scores if all(map(is_number, scores)) else None


def _texts(ids: Sequence[Any], where: str) -> Sequence[str]:
    if set(map(type, ids)) <= {str}:
        return ids
    return [id_text(one, f"{where}: an id") for one in ids]


def _numbers(values: Iterable[Any], docs: Sequence[Any], where: str) -> FloatArray:
    try:
        numbers = np.fromiter(values, np.float64, len(docs))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{where}: a score is no number ({error})") from error
    if not np.isfinite(numbers).all():
        bad = numbers[~np.isfinite(numbers)][0]
        raise DataError(f"{where}: score {bad} is not finite; a score must be a number")
    return numbers


# Tables: frames, rows, CSV, TSV, JSON lines, Parquet.


def _by_query(columns: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
    """Return the documents of each query where a row holds all of a query, or None."""
    query, lists = (find_column(list(columns), role) for role in ("ranked_query", "documents"))
    if query is None or lists is None or not all(map(_is_ranking, columns[lists])):
        return None
    return dict(zip(map(_query_id, columns[query]), columns[lists], strict=True))


def _query_id(query: Any) -> Any:  # noqa: ANN401 - an id, or a mapping that holds one
    name = find_column(list(query), "ranked_query") if isinstance(query, Mapping) else None
    return query if name is None else query[name]


_EVIDENCE = ("score", "rank", "distance")
_ROLES = ("ranked_query", "ranked", *_EVIDENCE, "ranker")


def _of_table(table: Table) -> Entries:
    column = {role: name for role in _ROLES if (name := find_column(table.names, role))}
    if not {"ranked_query", "ranked"} <= column.keys() or column.keys().isdisjoint(_EVIDENCE):
        raise DataError(
            f"{table.path} has the columns {', '.join(table.names)[:200]}; expected {_FORMS}"
        )
    systems = _NO_SYSTEMS
    if "ranker" in column:
        systems = coded(names_of(table, column["ranker"], role="system", shown=True))
    values: dict[str, FloatArray] = {}
    for role in filter(column.__contains__, _EVIDENCE):
        values[role] = numbers_of(table, column[role], role=role)
        table.refuse(np.isnan(values[role]), column[role], f"is no {role}; each row needs one")
    if "distance" in values:
        values.setdefault("score", -values["distance"])
    return Entries(
        where=table.path,
        queries=coded(names_of(table, column["ranked_query"], role="query id")),
        docs=coded(names_of(table, column["ranked"], role="document id")),
        ranks=values.get("rank"),
        scores=values.get("score"),
        systems=systems,
    )
