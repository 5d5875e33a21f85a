"""Queries and judgments of a BEIR folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_judgments import OnUnknown, report_unknown
from rag_sourcebias.io.beir_rows import read_rows
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.trec import read_qrels
from rag_sourcebias.types import Qrels, Query

__all__ = ["JudgedQueries", "checked_folder", "read_judged_queries"]

_SPLIT_ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")


class JudgedQueries(NamedTuple):
    """The queries that a split judges, and its judgments.

    ``rows`` of shape (n_queries,) are their positions among the ``n_rows`` queries of
    ``queries.jsonl``; ``judged`` has the ids of the file of judgments, which ``where`` names.
    """

    queries: tuple[Query, ...]
    rows: npt.NDArray[np.int64]
    n_rows: int
    judged: Qrels
    where: str


def checked_folder(folder: PathLike) -> Path:
    """Return the path of a BEIR folder.

    Raises
    ------
    DataError
        If there is no folder of that name.
    """
    root = Path(folder)
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "does not exist"
        raise DataError(
            f"{root} {what}; expected a folder with corpus/<source>.jsonl or corpus.jsonl, "
            "queries.jsonl and qrels/<split>.tsv"
        )
    return root


def read_judged_queries(root: Path, *, split: str, on_unknown: OnUnknown) -> JudgedQueries:
    """Read ``qrels/<split>.tsv``, and from ``queries.jsonl`` the queries it judges, in file order.

    Raises
    ------
    DataError
        If a file is missing, empty or malformed, or no judgment fits the queries (or, with
        ``"error"``, one does not).
    """
    if on_unknown not in get_args(OnUnknown):
        raise DataError(f"on_unknown {on_unknown!r} is neither 'drop' nor 'error'")
    qrels_file = _split_file(root, split)
    judged = read_qrels(qrels_file)
    wanted = set(judged.query_ids)
    texts: dict[str, str] = {}
    rows: list[int] = []
    n_rows = 0
    for query_id, row in read_rows(_either(root / "queries.jsonl")):
        if query_id in wanted:
            texts[query_id] = row["text"].strip()
            rows.append(n_rows)
        n_rows += 1
    where = str(qrels_file)
    report_unknown("queries", judged.query_ids, texts, where=where, on_unknown=on_unknown)
    return JudgedQueries(
        queries=tuple(Query(query_id=q, text=text) for q, text in texts.items()),
        rows=np.array(rows, dtype=np.int64),
        n_rows=n_rows,
        judged=judged,
        where=where,
    )


def _either(path: Path) -> Path:
    """Return the file, or its .gz sibling where only that exists."""
    packed = path.with_name(path.name + ".gz")
    return packed if packed.is_file() and not path.is_file() else path


def _split_file(root: Path, split: str) -> Path:
    folder = root / "qrels"
    for ending in _SPLIT_ENDINGS:
        if (folder / f"{split}{ending}").is_file():
            return folder / f"{split}{ending}"
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    splits = {n.removesuffix(e) for n in names for e in _SPLIT_ENDINGS if n.endswith(e)}
    raise DataError(
        f"{folder} has no split {split!r} ({split}.tsv); splits found: {sorted(splits) or 'none'}"
    )
