"""Rankings from any carrier as runs: one rule about order, ranks, scores and distances."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import BoolArray, CodeArray, FloatArray, IntArray, Run, RunCode, coded
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.intake.files import (
    UNREADABLE,
    PathLike,
    fields_of,
    open_bytes,
    read_jsonl,
    read_lines,
    read_text,
    sound,
    tells_number,
)
from rag_sourcebias.intake.objects import a, columns_of, is_frame, is_path
from rag_sourcebias.intake.results import id_in, id_text, is_number, listed, row_of, scores_in
from rag_sourcebias.intake.tables import (
    Chooser,
    Table,
    find_column,
    find_columns,
    names_of,
    numbers_of,
    read_table,
    table_of,
)

# The rule. A ranking is an order: rank columns, the order of lists and scores are evidence of it.


# Queries that may disagree with all others: a few in ten thousand do in runs whose ranks were
# written from scores of other precision, and those of a wrong column disagree by half.
_TOLERATED = 0.01


#: Names of which each occurs once, and the number of the name in each row.
Column = tuple[Sequence[str], npt.NDArray[np.integer[Any]]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    systems: Column = ((), np.empty(0, np.int32))

    def runs(self, name: str | None, *, otherwise: str) -> list[Run]:
        """Return the run of each system, named by itself where it is not named here.

        Raises
        ------
        DataError
            If there is no entry, ranks and scores contradict each other, or one name is given to
            several systems.
        """
        if not len(self.queries[1]):
            raise DataError(f"{self.where} holds no ranked documents")
        systems, codes = self.systems
        if len(systems) < 2:
            return [self.run(name or next(iter(systems), otherwise))]
        if name is not None:
            raise DataError(
                f"{self.where} holds {len(systems)} systems, which have names of their own "
                f"({', '.join(systems)}): leave out the name {name!r}"
            )
        return [self._taken(codes == code).run(system) for code, system in enumerate(systems)]

    def _taken(self, rows: BoolArray) -> Entries:
        """Return some rows with the queries that occur in them."""
        query_ids, query_codes = self.queries
        kept, codes = np.unique(query_codes[rows], return_inverse=True)
        return replace(
            self,
            queries=([query_ids[code] for code in kept], codes),
            docs=(self.docs[0], self.docs[1][rows]),
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
            if np.bincount(self.queries[1]).max() > 1:
                raise DataError(
                    f"{self.where}: nothing says which document comes first: within each query all "
                    "ranks and scores are equal; give ranks 1, 2, 3, … or scores that differ"
                )
            return self._ordered(name, self.scores)
        if ranks is None:
            return self._ordered(name, scores, by_score=True)
        order = np.lexsort((ranks, self.queries[1]))
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
        one = np.empty(len(self.queries[0]))
        one[self.queries[1]] = values
        return values if np.any(values != one[self.queries[1]]) else None

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
            query_ids=self.queries[0],
            query_codes=self.queries[1][rows],
            doc_codes=self.docs[1][rows],
            doc_ids=self.docs[0],
            scores=None if scores is None else scores[rows],
            name=name,
            sort_by_score=by_score,
        )


def _agreed(run: Run, where: str) -> Run:
    """Decide what scores mean in a run that is ordered by its ranks."""
    falls, rises = (_queries_with(run, compare) for compare in (np.less, np.greater))
    n_all, n_falling, n_rising = (int(np.sum(one)) for one in (falls | rises, falls, rises))
    if not n_rising:
        return run
    if n_rising <= _TOLERATED * n_all:
        note = RunCode.DISAGREE(n=n_rising, n_all=n_all, severity="warning")
    elif n_falling <= _TOLERATED * n_all and run.scores is not None:
        note = RunCode.DISTANCES(n=n_all - n_falling, n_all=n_all, severity="warning")
        run = replace(run, scores=-run.scores)
    else:
        raise DataError(
            f"{where}: ranks and scores contradict each other in {min(n_rising, n_falling)}"
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
    runs = read_runs(path, name=name)
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
        As :func:`read_runs`, and if names are too many or too few, or do not tell runs apart.
    """
    if names and len(names) != len(paths):
        raise DataError(f"{len(names)} names for {len(paths)} runs; give one for each, in order")
    runs = [
        (path, run)
        for at, path in enumerate(paths)
        for run in read_runs(path, name=names[at] if names else None)
    ]
    times = Counter(run.name for _, run in runs)
    told_apart = [
        replace(run, name=_stem(path)) if times[run.name] > 1 and not names else run
        for path, run in runs
    ]
    for name, n in Counter(run.name for run in told_apart).items():
        if n > 1:
            raise DataError(
                f"{n} runs are called {name!r}, in their files and by the files' names; name each "
                "with names= (--name)"
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
    if not where.endswith((".parquet", ".pq")):
        with sound(path, "a run"), open_bytes(Path(path)) as stream:
            start = stream.read(4_096).decode("utf-8-sig", errors="replace").lstrip(" \t\r\n")
        fields = fields_of(start.partition("\n")[0])
        # no JSON has two numbers side by side; cut short it may look like three columns
        ranked = len(fields) == 6 and all(map(tells_number, fields[3:5]))
        if not ranked and re.match(r"[{\[]\s*[\"{\[}\]]", start):
            return _runs_in(_json(path), where, name=name, otherwise=_stem(path))
        if len(fields) in _TREC and tells_number(fields[_NUMBER_AT[len(fields)]]):
            return _read_trec(path, len(fields)).runs(name, otherwise=_stem(path))
        _require_header(path, fields)
    return _of_table(read_table(path, _chosen(where))).runs(name, otherwise=_stem(path))


def _json(path: PathLike) -> Any:  # noqa: ANN401
    """Return the one value of a file, or the list of those on its lines."""
    text = read_text(path, "JSON").strip()
    with sound(path, "JSON"):
        value, end = json.JSONDecoder().raw_decode(text)
    one = isinstance(value, Mapping) and find_column(list(value), "ranked_query") is not None
    return [row for _, row in read_jsonl(path)] if one or end < len(text) else value


def _require_header(path: PathLike, fields: Sequence[str]) -> None:
    number, first = next(read_lines(path), (0, ""))
    if not first:
        raise DataError(f"{path} is empty; expected lines 'query_id Q0 doc_id rank score tag'")
    if find_column(re.split("[,;\t]", first), "ranked_query") is not None:
        return
    problem = f"{len(fields)} columns: {first[:80]!r}"
    if len(fields) in _TREC:
        problem = f"{fields[_NUMBER_AT[len(fields)]]!r} where a number belongs"
    raise DataError(
        f"{path}:{number}: expected 6 columns (query_id Q0 doc_id rank score tag), 3 (query_id "
        f"doc_id rank), a header with query_id, doc_id and score, or JSON; found {problem}"
    )


_TREC = {
    6: ("query_id", "Q0", "doc_id", "rank", "score", "tag"),
    3: ("query_id", "doc_id", "rank"),  # of MS MARCO
}
_NUMBER_AT = {6: 4, 3: 2}  # the column by which lines are told from others
_BLOCK = 8_192  # bytes that are taken apart together: their parts stay in a processor's cache


def _read_trec(path: PathLike, width: int) -> Entries:
    roles = _TREC[width]
    try:
        entries = _of_blocks(path, roles)
    except (ValueError, *UNREADABLE):
        _refuse_line(path, roles)
        raise
    if width == 3:
        _require_ranks(entries, path)
    elif not all(map(str.isprintable, entries.systems[0])):
        _refuse_line(path, roles)
    return entries


def _of_blocks(path: PathLike, roles: Sequence[str]) -> Entries:
    """Read lines of so many fields; a ValueError where one has others, or no number."""
    kinds = [role for role in ("query_id", "doc_id", "tag") if role in roles]
    # names in the order in which they come first, and the number of that of each line
    number_of = {role: defaultdict[str, int](count().__next__) for role in kinds}
    codes: dict[str, list[CodeArray]] = {role: [] for role in kinds}
    numbers: dict[str, list[FloatArray]] = {role: [] for role in ("rank", "score") if role in roles}
    with open_bytes(Path(path), lines=True) as stream:
        while block := stream.readlines(_BLOCK):
            text = b"".join(block).decode("utf-8-sig")
            rows = list(filter(None, map(fields_of, text.split("\n"))))
            if not rows:
                continue
            cells = dict(zip(roles, zip(*rows, strict=True), strict=True))
            for role in kinds:
                numbered = map(number_of[role].__getitem__, cells[role])
                codes[role].append(np.fromiter(numbered, np.int32, len(rows)))
            for role, parts in numbers.items():
                parts.append(_floats(cells[role], or_nan=role == "rank" and "score" in roles))
    values = {role: np.concatenate(parts) for role, parts in numbers.items()}
    ranks = values["rank"]
    queries, docs, *systems = (
        (list(number_of[role]), np.concatenate(codes[role])) for role in kinds
    )
    return Entries(
        where=os.fspath(path),
        queries=queries,
        docs=docs,
        ranks=None if np.isnan(ranks).any() else ranks,
        scores=values.get("score"),
        **({"systems": systems[0]} if systems else {}),
    )


def _floats(cells: Sequence[str], *, or_nan: bool) -> FloatArray:
    """Return cells as finite numbers; NaN where they are none and nobody reads them.

    trec_eval does not read the ranks beside scores, and their column may hold anything.
    """
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        if or_nan:
            return np.full(len(cells), np.nan)
        raise
    if not or_nan and not np.isfinite(numbers).all():
        raise ValueError("a number is not finite")
    return numbers


def _refuse_line(path: PathLike, roles: Sequence[str]) -> None:
    """Raise for the first line that is wrong."""
    at = _NUMBER_AT[len(roles)]
    for number, line in read_lines(path):
        fields = fields_of(line)
        place = f"{path}:{number}"
        if fields and len(fields) != len(roles):
            raise DataError(
                f"{place}: expected {len(roles)} columns ({' '.join(roles)}), found "
                f"{len(fields)}: {line[:80]!r}"
            )
        if fields and not tells_number(fields[at]):
            raise DataError(f"{place}: {roles[at]} {fields[at]!r} is not a finite number")
        if fields and roles[-1] == "tag":
            require_name(fields[-1], "run name", place)


def _require_ranks(entries: Entries, path: PathLike) -> None:
    """Refuse a third column that numbers no ranking, as grades of judgments and scores do."""
    ranks = np.asarray(entries.ranks)
    rows = np.unique(np.stack([entries.queries[1], ranks, entries.docs[1]]), axis=1)
    n_places = np.unique(rows[:2], axis=1).shape[1]
    if np.any(ranks % 1) or n_places < rows.shape[1]:
        raise DataError(
            f"{path}: the third column holds no ranks: in some query two documents have the same, "
            "or it is no whole number; put a header above scores (query_id, doc_id, score)"
        )


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


def _runs_in(value: Any, where: str, *, name: str | None, otherwise: str) -> list[Run]:  # noqa: ANN401
    if _is_of_ranx(value):
        name, value = name or value.name, value.to_dict()
    if is_frame(value) or _is_rows(value):
        columns = columns_of(value if is_frame(value) else list(map(row_of, value)), where)
        lists = _by_query(columns)
        if lists is None:
            table = table_of(columns, where, _chosen(where))
            return _of_table(table).runs(name, otherwise=otherwise)
        return _of_lists(lists, where).runs(name, otherwise=otherwise)
    if not isinstance(value, Mapping):
        raise DataError(
            f"{where}: {a(value)} is no ranking; expected {{query: {{document: score}}}}, "
            "{query: [documents]}, {query: [(document, score)]}, or rows with query_id, doc_id and "
            "score"
        )
    rows = value.values()
    if _are_scored(rows):
        parts = [(row, row.values()) for row in rows]
        scored = entries_of(where, list(value), parts, ordered=False)
        return scored.runs(name, otherwise=otherwise)
    if all(map(_is_ranking, rows)) or not all(map(is_results, rows)):
        return _of_lists(value, where).runs(name, otherwise=otherwise)
    return [
        run
        for system, one in value.items()
        for run in _runs_in(one, f"{where}, {system}", name=str(system), otherwise="")
    ]


def _is_rows(value: object) -> bool:
    """Whether a value is a list of dictionaries or named tuples, as ir_measures reads runs."""
    if not isinstance(value, list | tuple) or not value:
        return False
    rows = all(isinstance(row, Mapping) or hasattr(row, "_asdict") for row in value)
    return rows and find_column(list(row_of(value[0])), "ranked_query") is not None


def _is_of_ranx(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "Run" and kind.__module__.partition(".")[0] == "ranx"


def is_results(value: object) -> bool:
    """Whether a value is a finished ranking: a run, its file, a frame, or a dict of rankings."""
    if isinstance(value, Run) or is_frame(value) or _is_rows(value) or _is_of_ranx(value):
        return True
    if isinstance(value, str | os.PathLike):
        return is_path(value) and Path(value).is_file()
    if not isinstance(value, Mapping) or not value:
        return False
    return all(map(_is_ranking, value.values()))


def _is_ranking(row: object) -> bool:
    if _is_scored(row):
        return True
    try:
        documents = listed(row)
    except DataError:
        return True  # to be refused with the reason
    return isinstance(documents, list | tuple)


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
    scores = None
    if not any(scored is None for _, scored in lists):
        scores = _numbers(chain.from_iterable(scored or () for _, scored in lists), docs, where)
    places = np.arange(len(docs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return Entries(
        where=where,
        queries=(_texts(query_ids, where), np.repeat(np.arange(len(lists)), lengths)),
        docs=coded(_texts(docs, where)),
        ranks=places.astype(np.float64) if ordered else None,
        scores=scores,
    )


def _of_lists(lists: Mapping[Any, Any], where: str) -> Entries:
    parts = [_ranking(row, f"{where}, query {query!r}") for query, row in lists.items()]
    ordered = not any(map(_is_scored, lists.values()))
    return entries_of(where, list(lists), parts, ordered=ordered)


def _are_scored(rows: Collection[Any]) -> bool:
    """Whether rankings are ``{document: score}``, in which the order is no evidence."""
    if not all(issubclass(kind, Mapping) for kind in set(map(type, rows))):
        return False
    # a line for each score takes as long as all the rest
    kinds = set(map(type, chain.from_iterable(map(methodcaller("values"), rows))))
    return all(issubclass(kind, int | float | np.number) for kind in kinds)


def _is_scored(row: object) -> bool:
    return _are_scored([row])


def _ranking(row: Any, where: str) -> tuple[Collection[Any], Collection[Any] | None]:  # noqa: ANN401
    """Return ids and scores of one query, in the order given."""
    if _is_scored(row):
        return row, row.values()
    try:
        documents = listed(row)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if isinstance(documents, str | Mapping) or not isinstance(documents, Iterable):
        raise DataError(f"{where}: {a(row)} is no ranking; expected documents, best first")
    documents = list(documents)
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


_ROLES = ("ranked_query", "ranked", "rank", "score", "distance", "ranker")


def _by_query(columns: Mapping[str, list[Any]]) -> dict[Any, Any] | None:
    """Return the documents of each query where a row holds all of a query, or None."""
    query, lists = (find_column(list(columns), role) for role in ("ranked_query", "documents"))
    if query is None or lists is None or not all(map(_is_ranking, columns[lists])):
        return None
    return dict(zip(map(_query_id, columns[query]), columns[lists], strict=True))


def _query_id(query: Any) -> Any:  # noqa: ANN401 - an id, or a mapping that holds one
    name = find_column(list(query), "ranked_query") if isinstance(query, Mapping) else None
    return query if name is None else query[name]


def _chosen(where: str) -> Chooser:
    def choose(names: tuple[str, ...]) -> Mapping[str, str | None]:
        roles = dict.fromkeys(_ROLES)
        columns = find_columns(names, roles, path=where, needed=_ROLES[:2], options={})
        if not any(columns[role] for role in ("rank", "score", "distance")):
            raise DataError(
                f"{where} has neither rank nor score: columns are {', '.join(names)}; add one"
            )
        return columns

    return choose


def _of_table(table: Table) -> Entries:
    column = {role: str(name) for role, name in table.roles.items() if name is not None}
    docs = names_of(table, column["ranked"], role="document id")
    queries = names_of(table, column["ranked_query"], role="query id")
    values: dict[str, FloatArray] = {}
    for role in ("rank", "score", "distance"):
        if role in column:
            values[role] = numbers_of(table, column[role], role=role)
            table.refuse(np.isnan(values[role]), column[role], f"is no {role}; each row needs one")
    if "distance" in values:
        values.setdefault("score", -values["distance"])
    entries = Entries(
        where=table.path,
        queries=coded(queries),
        docs=coded(docs),
        ranks=values.get("rank"),
        scores=values.get("score"),
    )
    if "ranker" not in column:
        return entries
    systems = names_of(table, column["ranker"], role="system", shown=True)
    return replace(entries, systems=coded(systems))
