"""What a judge said, as tables that intake reads."""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.codec import PathLike, jsonl_text, write_atomic
from rag_sourcebias.core.completions import Judgments
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.sheets import record_text

_ENDINGS = (".tsv", ".csv", ".jsonl")


def table_ending(path: PathLike) -> str:
    """Return ``.tsv``, ``.csv`` or ``.jsonl``, with ``.gz`` behind it where the name has it.

    Raises
    ------
    DataError
        If the name ends otherwise.
    """
    name = os.fspath(path)
    packed = ".gz" if name.endswith(".gz") else ""
    ending = Path(name.removesuffix(packed)).suffix
    if ending not in _ENDINGS:
        raise DataError(f"{name}: write to a name that ends in {', '.join(_ENDINGS)} (or .gz)")
    return ending + packed


def beside(path: PathLike, what: str) -> Path:
    """Name a second file: ``labels.tsv.gz`` gives ``labels.<what>.tsv.gz``."""
    ending = table_ending(path)
    return Path(f"{os.fspath(path).removesuffix(ending)}.{what}{ending}")


def write_label_distributions(judgments: Judgments, path: PathLike) -> int:
    """Write ``query_id``, ``doc_id``, ``p0`` … ``pR``, one row per pair that was judged.

    Returns
    -------
    int
        Rows written.
    """
    rows = np.flatnonzero(judgments.ok).tolist()
    shares = {f"p{r}": column.tolist() for r, column in enumerate(judgments.probs.T)}
    pairs = {"query_id": judgments.query_ids, "doc_id": judgments.doc_ids}
    _write(path, {**pairs, **shares}, rows)
    return len(rows)


def write_judgments(
    judgments: Judgments, path: PathLike, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Write how every item ended, with its expected grade, empty where the judge failed.

    Parameters
    ----------
    columns : mapping of str to sequence of length m
        What stands before it: ``id``, and ``human``, ``group``, ``cluster`` where there are such.
    """
    every = {
        **columns,
        "judge": judgments.values().tolist(),
        "status": judgments.status,
        "mass": judgments.mass.tolist(),
        "reason": [" ".join(text.split()) for text in judgments.reasons],
    }
    _write(path, every, range(len(judgments)))


def _known(value: Any) -> Any:  # noqa: ANN401 - any cell
    """Return a cell, None for NaN."""
    return None if isinstance(value, float) and isnan(value) else value


def _write(path: PathLike, columns: Mapping[str, Sequence[Any]], numbers: Sequence[int]) -> None:
    rows = ({name: _known(values[i]) for name, values in columns.items()} for i in numbers)
    ending = table_ending(path).removesuffix(".gz")
    write_atomic(path, jsonl_text(rows) if ending == ".jsonl" else _lines(path, rows, ending))


def _lines(path: PathLike, rows: Iterator[Mapping[str, Any]], ending: str) -> Iterator[str]:
    for i, row in enumerate(rows):
        cells = ["" if v is None else f"{v:.10g}" if isinstance(v, float) else str(v)
                 for v in row.values()]  # fmt: skip
        for line in (cells,) if i else ([*row], cells):
            yield _tsv(path, line) if ending == ".tsv" else record_text(line, "\n")


def _tsv(path: PathLike, cells: Sequence[str]) -> str:
    bad = next((cell for cell in cells if any(c in cell for c in "\t\n\r")), None)
    if bad is not None:
        raise DataError(
            f"{path}: {bad!r} holds a tab or a line break, which TSV cannot; write .jsonl or .csv"
        )
    return "\t".join(cells) + "\n"
