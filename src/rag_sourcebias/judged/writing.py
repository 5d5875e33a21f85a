"""What a judge said, as tables that intake reads."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rag_sourcebias.core.completions import Judgments
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.intake.tables import record_text

Failures = Literal["leave-out", "lowest", "highest"]
Row = Mapping[str, Any]
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


def write_label_distributions(
    judgments: Judgments, path: PathLike, *, failures: Failures = "leave-out"
) -> int:
    """Write ``query_id``, ``doc_id``, ``p0`` … ``pR``, one row per pair.

    Parameters
    ----------
    failures : {"leave-out", "lowest", "highest"}
        What becomes of pairs without a judgment: no row, or all probability on the lowest or
        highest grade (between which a utility must lie whatever the judge would have said).

    Returns
    -------
    int
        Rows written.
    """
    ok, probs = judgments.ok, judgments.probs.copy()
    probs[~ok] = np.eye(judgments.n_grades)[0 if failures == "lowest" else -1]
    rows = np.flatnonzero(ok | (failures != "leave-out"))
    _write(
        path,
        (
            {
                "query_id": judgments.query_ids[i],
                "doc_id": judgments.doc_ids[i],
                **{f"p{r}": float(p) for r, p in enumerate(probs[i])},
            }
            for i in rows.tolist()
        ),
    )
    return len(rows)


def write_judgment_status(judgments: Judgments, path: PathLike) -> None:
    """Write how every item ended, failures included."""
    values = judgments.values()
    _write(
        path,
        (
            {
                "query_id": judgments.query_ids[i],
                "doc_id": judgments.doc_ids[i],
                "status": judgments.status[i],
                "judge": _finite_or_none(values[i]),
                "mass": _finite_or_none(judgments.mass[i]),
                "n_bounded": int(judgments.n_bounded[i]),
                "prompt_tokens": int(judgments.prompt_tokens[i]),
                "completion_tokens": int(judgments.completion_tokens[i]),
                "reason": " ".join(judgments.reasons[i].split()),
            }
            for i in range(len(judgments))
        ),
    )


def write_item_judgments(
    judgments: Judgments, path: PathLike, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Write items with their expected grade, empty where the judge failed.

    Parameters
    ----------
    columns : mapping of str to sequence of length m
        What stands before it: ``id``, and ``human``, ``group``, ``cluster`` where there are such.
    """
    values = judgments.values()
    _write(
        path,
        (
            {
                **{name: column[i] for name, column in columns.items()},
                "judge": _finite_or_none(values[i]),
                "status": judgments.status[i],
                "reason": " ".join(judgments.reasons[i].split()),
            }
            for i in range(len(judgments))
        ),
    )


def _finite_or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _write(path: PathLike, rows: Iterator[Row]) -> None:
    ending = table_ending(path).removesuffix(".gz")
    write_atomic(
        path, jsonl_text(map(dict, rows)) if ending == ".jsonl" else _lines(path, rows, ending)
    )


def _lines(path: PathLike, rows: Iterator[Row], ending: str) -> Iterator[str]:
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
