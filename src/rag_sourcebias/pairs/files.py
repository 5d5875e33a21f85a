"""Values, flags and reasons of every pair as a CSV file, a row per pair."""

import re
from collections.abc import Iterable, Mapping, Sequence

from rag_sourcebias.core.codec import PathLike, write_atomic
from rag_sourcebias.core.errors import visible
from rag_sourcebias.infer.sheets import sheet_csv
from rag_sourcebias.pairs.data import PAIR_FACTS, PAIR_VALUES, CheckedPair, PairChecks
from rag_sourcebias.pairs.findings import reasons_of

_UNSAFE = re.compile(r'[%/\\:*?"<>|\x00-\x1f]')
_CELL = 30_000  # characters, below what a spreadsheet keeps in a cell


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
    names = {}
    for source, name in zip(sources, short, strict=True):
        alone = name if short.count(name) == 1 else source
        safe = _UNSAFE.sub(lambda c: f"%{ord(c[0]):02X}", alone)
        names[source] = f"pairs-{safe}.csv"
    return names


def write_pair_checks(checks: PairChecks, path: PathLike) -> None:
    """Write one row per pair as UTF-8 CSV with a byte-order mark, all of it or nothing.

    Columns: pair_id, broken, flags (separated by blanks), reasons (by " | "), the values, numbers
    and names missing and added (by " | "), and the languages. A value nobody has is empty.

    Raises
    ------
    DataError
        If the folder is missing or not writable.
    """
    rows = [_row(checks.pair(row), checks) for row in range(len(checks))]
    if rows:
        write_atomic(path, (sheet_csv(rows, path)))


def _row(pair: CheckedPair, checks: PairChecks) -> Mapping[str, str]:
    reasons = map(str, reasons_of(pair, checks.thresholds, checks.by_chance))
    values = {name: pair.values.get(name) for name in PAIR_VALUES}
    return {
        "pair_id": visible(pair.pair_id, lines=True),
        "broken": "yes" if pair.broken else "no",
        "flags": " ".join(pair.flags),
        "reasons": _joined(reasons),
        **{name: "" if value is None else f"{value:.4f}" for name, value in values.items()},
        **{name: _joined(getattr(pair, name)) for name in PAIR_FACTS},
        "language_baseline": pair.languages[0],
        "language_other": pair.languages[1],
    }


def _joined(texts: Iterable[str]) -> str:
    return visible(" | ".join(texts), lines=True)[:_CELL]
