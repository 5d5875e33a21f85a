"""Values, flags and reasons of every pair as a table, a row per pair."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence

from rag_sourcebias.io.files import PathLike, write_atomic
from rag_sourcebias.types.names import visible
from rag_sourcebias.types.pair_checks import PAIR_FLAGS, PairChecks

__all__ = ["pair_files", "write_pair_checks"]

_VALUES = (
    "length_ratio", "jaccard", "overlap", "cosine", "copied", "repeated", "end_kept",
    "numbers_kept", "names_kept",
)  # fmt: skip
_LISTS = ("numbers_missing", "numbers_added", "names_missing", "names_added")
# What a spreadsheet would take for a formula gets an apostrophe, as in our labelling sheets.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_UNSAFE = re.compile(r'[%/\\:*?"<>|\x00-\x1f]')


def pair_files(sources: Sequence[str]) -> dict[str, str]:
    """Return the file name of each source: ``pairs-<source>.csv``.

    ``llm:`` is left off where that does not make two names one; characters that no file name can
    hold are written as %XX.

    Examples
    --------
    >>> pair_files(["llm:gpt-4", "llm:org/model"])
    {'llm:gpt-4': 'pairs-gpt-4.csv', 'llm:org/model': 'pairs-org%2Fmodel.csv'}
    """
    short = [source.removeprefix("llm:") for source in sources]
    found = {}
    for source, name in zip(sources, short, strict=True):
        chosen = name if short.count(name) == 1 else source
        safe = _UNSAFE.sub(lambda c: f"%{ord(c[0]):02X}", chosen)
        found[source] = f"pairs-{safe}.csv"
    return found


def write_pair_checks(checks: PairChecks, path: PathLike) -> None:
    """Write one row per pair as UTF-8 CSV with a byte-order mark, all of it or nothing.

    Columns: pair_id, broken, flags (separated by blanks), reasons (by " | "), the values, numbers
    and names missing and added (by " | "), and the languages. A value nobody has is empty.

    Raises
    ------
    DataError
        If the folder is missing or not writable.
    """
    write_atomic(path, _lines(checks))


def _lines(checks: PairChecks) -> Iterator[str]:
    names = ("pair_id", "broken", "flags", "reasons", *_VALUES, *_LISTS)
    yield "\ufeff" + _record([*names, "language_baseline", "language_other"])
    broken = checks.broken
    for row, pair_id in enumerate(checks.pair_ids):
        flags = " ".join(f for f, on in zip(PAIR_FLAGS, checks.flags[row], strict=True) if on)
        yield _record(
            [
                _text(pair_id),
                "yes" if broken[row] else "no",
                flags,
                _text(" | ".join(checks.reasons[row])),
                *(_number(float(getattr(checks, name)[row])) for name in _VALUES),
                *(_text(" | ".join(getattr(checks, name)[row])) for name in _LISTS),
                *checks.languages[row],
            ]
        )


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def _text(cell: str) -> str:
    """Make a cell that is no formula and drives no terminal."""
    cell = visible(cell, lines=True)
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _record(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()
