"""What a judge is asked about: pairs of rankings, or answers of a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rag_sourcebias.errors import DataError
from rag_sourcebias.io import load_sample, read_qrels, read_run
from rag_sourcebias.io.cells import ids_of
from rag_sourcebias.io.columns import find_column, find_ids
from rag_sourcebias.io.tables import Table, read_table
from rag_sourcebias.io.texts import read_texts
from rag_sourcebias.types import Qrels
from rag_sourcebias.types.judgments import JudgeItem

__all__ = ["Answers", "Texts", "pair_items", "read_answers", "sample_texts", "texts_of_files"]

_NAMES = {
    "question": ("question", "query", "user_input", "prompt", "input"),
    "reference": (
        "reference", "references", "reference_answer", "golden_answer", "gold_answer",
        "ground_truth", "expected", "expected_answer", "answers",
    ),
    "answer": ("answer", "response", "output", "prediction", "generated_answer"),
}  # fmt: skip
_KEPT = ("human", "group", "cluster", "stratum")


class Texts(NamedTuple):
    """Texts by id, and judgments that came with them."""

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    qrels: Qrels | None = None


class Answers(NamedTuple):
    """Answers to judge, and the columns that are written back beside the verdicts."""

    items: list[JudgeItem]
    columns: dict[str, Sequence[Any]]


def sample_texts() -> Texts:
    """Return queries, texts and pairs of the bundled sample."""
    data = load_sample()
    return Texts(
        queries={query.query_id: query.text for query in data.queries},
        documents=dict(data.corpus),
        qrels=data.qrels,
    )


def texts_of_files(queries: Path | None, documents: Sequence[Path] | None) -> Texts:
    """Read queries and documents."""
    if queries is None or not documents:
        raise DataError("give --queries and --documents (id and text each), or --sample")
    texts: dict[str, str] = {}
    for path in documents:
        found = read_texts(path, "document")
        twice = next((doc_id for doc_id in found if doc_id in texts), None)
        if twice is not None:
            raise DataError(f"{path}: document {twice!r} stands in an earlier --documents too")
        texts.update(found)
    return Texts(queries=read_texts(queries, "query"), documents=texts)


def pair_items(
    texts: Texts, *, runs: Sequence[Path], depth: int, qrels: Path | None
) -> list[JudgeItem]:
    """Return each pair of the runs' first documents and of the judgments, once."""
    pairs: dict[tuple[str, str], None] = {}
    for path in runs:
        for ranked in read_run(path).top(depth):
            pairs.update(((ranked.query_id, doc_id), None) for doc_id in ranked.doc_ids)
    judged = texts.qrels if qrels is None else read_qrels(qrels)
    if judged is not None:
        pairs.update(dict.fromkeys(_pairs(judged)))
    if not pairs:
        raise DataError("no pairs to judge: give --run (its first documents), --qrels or both")
    _check(pairs, texts)
    return [
        JudgeItem.relevance(
            query_id=query_id,
            doc_id=doc_id,
            query=texts.queries[query_id],
            text=texts.documents[doc_id],
        )
        for query_id, doc_id in pairs
    ]


def _pairs(qrels: Qrels) -> Iterable[tuple[str, str]]:
    for query, doc in zip(qrels.query_codes, qrels.doc_codes, strict=True):
        yield qrels.query_ids[query], qrels.doc_ids[doc]


def _check(pairs: Iterable[tuple[str, str]], texts: Texts) -> None:
    wanted = list(pairs)
    for kind, place, known, option in (
        ("query", 0, texts.queries, "--queries"),
        ("document", 1, texts.documents, "--documents"),
    ):
        ids = dict.fromkeys(pair[place] for pair in wanted)
        missing = [name for name in ids if name not in known]
        if missing:
            like = next(iter(known), None)
            raise DataError(
                f"{len(missing)} of {len(ids)} {kind} ids have no text in {option}, first "
                f"{missing[0]!r}; ids there look like {like!r}"
            )


def read_answers(
    path: Path,
    *,
    id: Sequence[str] | None,
    columns: Mapping[str, str | None],
) -> Answers:
    """Read questions, reference answers and answers.

    Parameters
    ----------
    columns : mapping of str to str or None
        Column of ``question``, ``reference``, ``answer``, ``human``, ``group``, ``cluster`` and
        ``stratum``, where it was named.
    """
    name = str(path)
    found: dict[str, str] = {}
    id_columns: tuple[str, ...] = ()

    def choose(names: tuple[str, ...]) -> list[str]:
        nonlocal id_columns
        id_columns = find_ids(names, given=id, path=name)
        for role in (*_NAMES, *_KEPT):
            column = _column(names, role, columns.get(role), name)
            if column is not None:
                found[role] = column
        lacking = [role for role in _NAMES if role not in found]
        if lacking:
            raise DataError(
                f"{name}: no column is recognised as {' or '.join(lacking)}; its columns are "
                f"{', '.join(names)}; name it with --{lacking[0]}"
            )
        return list(dict.fromkeys([*found.values(), *id_columns]))

    table = read_table(path, choose)
    ids = [i.replace("\t", "/") for i in ids_of(table, id_columns)]
    texts = {role: _texts(table, found[role], role, ids) for role in _NAMES}
    items = [
        JudgeItem.correctness(
            query_id=item_id, doc_id="answer", question=q[0], reference=r, answer=" / ".join(a)
        )
        for item_id, q, r, a in zip(
            ids, texts["question"], texts["reference"], texts["answer"], strict=True
        )
    ]
    kept = {role: table.columns[found[role]] for role in _KEPT if role in found}
    return Answers(items, {"id": ids, **kept})


def _column(names: tuple[str, ...], role: str, given: str | None, path: str) -> str | None:
    if given is not None or role in _KEPT:
        return find_column(names, role, given=given, path=path)
    return next((n for k in _NAMES[role] for n in names if n.lower() == k), None)


def _texts(table: Table, column: str, role: str, ids: Sequence[str]) -> list[list[str]]:
    """Texts of each row; a list (JSON, Parquet) of references stays several."""
    rows: list[list[str]] = []
    for i, cell in enumerate(table.columns[column]):
        parts = [str(c) for c in (cell if isinstance(cell, list) else [cell]) if c is not None]
        if role != "answer" and not any(part.strip() for part in parts):
            raise DataError(f"{table.where(i)}: item {ids[i]!r} has no {role} (column {column!r})")
        rows.append(parts or [""])
    return rows
