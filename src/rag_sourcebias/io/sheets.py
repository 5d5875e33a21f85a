"""CSV as spreadsheet programs leave it: formulas made harmless, cells with line breaks."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.files import PathLike, read_lines, sound

_CELL_LIMIT = 32_767  # characters a spreadsheet keeps in one cell
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_ESCAPED = re.compile(r"'+[=+\-@\t\r]")


def sheet_csv(records: Sequence[Mapping[str, str]], path: PathLike) -> Iterator[str]:
    """Give the text of a CSV file with a byte-order mark, header first.

    A cell that a spreadsheet would take for a formula gets a leading apostrophe, which
    :func:`read_sheet_csv` takes away.

    Raises
    ------
    DataError
        If a cell is longer than a spreadsheet keeps.
    """
    yield "\ufeff" + _record_text(list(records[0]))
    for record in records:
        for name, cell in record.items():
            if len(cell) > _CELL_LIMIT:
                raise DataError(
                    f"{path}: {name} of row {record['row_id']!r} has {len(cell)} characters, a "
                    f"spreadsheet cell holds {_CELL_LIMIT}; write the sheet as .jsonl"
                )
        yield _record_text(
            [f"'{cell}" if _FORMULA.match(cell) else cell for cell in record.values()]
        )


def _record_text(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()


def read_sheet_csv(path: PathLike) -> Iterator[tuple[int, dict[str, str]]]:
    """Stream records with the line they start in; commas, semicolons or tabs separate cells.

    Raises
    ------
    DataError
        With file and line: no header with ``row_id`` and ``grade``, a column twice, or a record
        that is not CSV or has another number of cells.
    """
    at = [0]

    def lines() -> Iterator[str]:
        for number, line in read_lines(path):
            at[0] = number
            yield line + "\n"

    stream = lines()
    with sound(path, "a CSV file"):
        header, delimiter = _header(next(stream, ""), path, at[0])
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    while True:
        start = at[0] + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise DataError(f"{path}:{start}: not a CSV record ({error})") from error
        if cells is None:
            return
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{path}:{start}: expected {len(header)} cells as in the header, found "
                f"{len(cells)}: {delimiter.join(cells)[:80]!r}"
            )
        plain = [cell[1:] if _ESCAPED.match(cell) else cell for cell in cells]
        yield start, dict(zip(header, plain, strict=True))


def _header(line: str, path: PathLike, number: int) -> tuple[list[str], str]:
    if not line:
        raise DataError(f"{path} is empty; expected the header of a labelling sheet")
    for delimiter in (",", ";", "\t"):
        names = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
        if "row_id" in names and "grade" in names:
            twice = {name for name in names if name and names.count(name) > 1}
            if twice:
                raise DataError(f"{path}:{number}: column {min(twice)!r} stands there twice")
            return names, delimiter
    raise DataError(
        f"{path}:{number}: the header lacks row_id or grade: {line[:80]!r}; send back all columns "
        "as they were"
    )
