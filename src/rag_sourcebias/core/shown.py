"""Reports that show themselves: a line, ten lines, a first screen, frames, files."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.core.evidence import Evidence
from rag_sourcebias.core.finding import Interval

_SHOWN = 3  # outcomes in one line
_PRINTED = 6  # outcomes that are printed
What = Literal["figures", "queries", "cases"]
PerQuery = Mapping[str, tuple[str, ...]]
"""Arrays of a class with one value per query, and the names along each axis."""


class Outcome(NamedTuple):
    """What a report found of one subject.

    Parameters
    ----------
    subject : str
        Such as a retriever.
    code : str
        The verdict.
    words : str
        The verdict as it is shown; "" where the code says it.
    figure : str
        Name of the figure on which it rests; "" where there is none.
    interval : Interval or None
    value : float or None
        The figure where it has no interval.
    digits : int
    """

    subject: str
    code: str
    figure: str = ""
    interval: Interval | None = None
    value: float | None = None
    digits: int = 1
    words: str = ""

    def __str__(self) -> str:
        found = self.interval
        value = self.value if found is None else found.estimate
        parts = [f"{self.subject} {self.words or self.code.replace('_', ' ')}".strip()]
        if value is not None:
            ends = (
                ""
                if found is None
                else f" [{self._number(found.lower)}, {self._number(found.upper)}]"
            )
            parts.append(f"{self.figure} {self._number(value)}{ends}".strip())
        return ", ".join(parts)

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}".replace("-", "\u2212")


class Shown(Stored):
    """A report that shows itself in a session, in a notebook and in a browser.

    A class of reports says with ``_outcomes`` what it found, and under ``axes_of`` of its parts
    which arrays have a value for every query.
    """

    __slots__ = ()
    axes_of: ClassVar[PerQuery] = {}

    def _outcomes(self) -> Iterable[Outcome]:
        """Yield the verdict on each subject."""
        return ()

    def _called(self) -> str:
        """Return what was examined."""
        data = getattr(self, "data", None)
        return str(getattr(self, "name", "") or getattr(data, "name", ""))

    @property
    def verdict(self) -> str:
        """Code of the verdict; ``"differs"`` where it is not the same for all that was examined."""
        codes = dict.fromkeys(outcome.code for outcome in self._outcomes())
        return next(iter(codes), "none") if len(codes) < 2 else "differs"

    @property
    def verdicts(self) -> dict[str, str]:
        """Code of the verdict on each retriever, score, system or source."""
        return {outcome.subject: outcome.code for outcome in self._outcomes()}

    def __repr__(self) -> str:
        found = list(self._outcomes())
        told = "; ".join(map(str, found[:_SHOWN])) or "nothing was compared"
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        name = f" {self._called()}" if self._called() else ""
        return f"<{type(self).__name__}{name}: {told}{more}>"

    def __str__(self) -> str:
        found = list(self._outcomes())
        document = _reports().document_of(self, lines=False)
        lines = [f"{document.kind}: {document.name}"]
        lines += import_module("rag_sourcebias.report.first").first_lines(document)
        lines += [f"  {outcome}" for outcome in found[:_PRINTED]]
        if len(found) > _PRINTED:
            lines.append(f"  and {len(found) - _PRINTED} more")
        if n := len(document.warnings):
            lines.append(f"{n} warning{'s' * (n > 1)}: {document.warnings[0]}")
        frames = [f".to_pandas({name!r}), " for name, rows in
                  (("queries", _arrays(self, (), {}, [])), ("cases", _evidence(self, (), {})))
                  if next(rows, None)]  # fmt: skip
        return "\n".join([*lines, f".to_pandas(), {''.join(frames)}.save(folder), .open()"])

    def _repr_html_(self) -> str:
        """Return the first screen, for a notebook."""
        screen = import_module("rag_sourcebias.report.first").first_screen
        return str(screen(_reports().document_of(self)))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ANN401, ARG002
        """Print the line where IPython has no page to show."""
        printer.text(repr(self))

    def to_pandas(self, what: What = "figures") -> Any:  # noqa: ANN401 - a DataFrame
        """Return figures, values of queries or cases as a pandas frame, one a row.

        Parameters
        ----------
        what : {"figures", "queries", "cases"}
            Every figure; the values of every query; or the cases that matter most, with their
            texts.

        Raises
        ------
        DataError
            If the report holds no such values; the message says which it has.
        MissingExtraError
            If pandas is not installed.
        """
        return _imported("pandas").DataFrame(self._columns(what))

    def to_polars(self, what: What = "figures") -> Any:  # noqa: ANN401 - a DataFrame
        """Return what :meth:`to_pandas` returns, as a polars frame.

        Raises
        ------
        DataError
            If the report holds no such values; the message says which it has.
        MissingExtraError
            If polars is not installed.
        """
        return _imported("polars").DataFrame(self._columns(what), strict=False)

    def _columns(self, what: str) -> dict[str, Any]:
        tables = {"figures": _figures, "queries": _values, "cases": _cases}
        if what not in tables:
            raise DataError(f"{what!r} is none of {', '.join(tables)}")
        found = tables[what](self)
        if not found:
            held = [repr(name) for name, table in tables.items() if name != what and table(self)]
            raise DataError(
                f"this {type(self).__name__} keeps no {what}, only {' and '.join(held)}"
                + (": its figures are of whole texts or items" if what == "queries" else "")
            )
        return found

    def save(self, folder: str | Path) -> Path:
        """Write ``report.json``, ``report.md`` and ``report.html``; return the folder.

        Raises
        ------
        DataError
            If the folder cannot be written.
        """
        _reports().write_report(self, folder)
        return Path(folder)

    def open(self) -> Path:
        """Show the whole report in the browser; return the file.

        Raises
        ------
        MissingExtraError
            If jinja2 or matplotlib is not installed.
        """
        import tempfile
        import webbrowser

        folder = Path(tempfile.mkdtemp(prefix="rag-sourcebias-"))
        file: Path = _reports().write_report(self, folder, formats=("html",))["html"]
        webbrowser.open(file.as_uri())
        return file


def _reports() -> Any:  # noqa: ANN401
    # What knows every kind of report lies above the reports, and is asked only to show one.
    return import_module("rag_sourcebias.reports")


def _imported(package: str) -> Any:  # noqa: ANN401
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtraError(
            package=package, extra=package, feature=f"a {package} frame"
        ) from error


# Every figure of a report, one a row, with the names that it stands under.


_NAMES = 400  # characters of a text that may be a name
_NO_NAMES = frozenset({
    "refusal", "created", "family", "license", "attribution", "method", "target", "rule",
    "fingerprint", "kind", "searched", "description",
})  # fmt: skip
_NO_FIGURES = frozenset({
    "environment", "config", "settings", "schema_version", "histograms", "thresholds", "warnings",
    "notes", "n_tests", "seed", "evidence",
})  # fmt: skip
_LAST = ("figure", "value", "lower", "upper", "confidence_level")


def _figures(report: object) -> dict[str, Any]:
    rows = sorted(_rows(report, (), {}), key=lambda row: row["part"] == "data")  # counts last
    names = dict.fromkeys(key for row in rows for key in row if key not in _LAST)
    return {key: [row.get(key) for row in rows] for key in (*names, *_LAST)}


def _rows(value: Any, path: tuple[str, ...], names: dict[str, str]) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield the figures of one part and of those inside it."""
    part = ".".join(path)
    here = {**names, **_own_names(value, path)}
    for field in fields(value):
        if field.name in _NO_FIGURES:
            continue
        yield from _leaf(getattr(value, field.name), field.name, path, {"part": part, **here})


def _leaf(
    value: Any,  # noqa: ANN401
    name: str,
    path: tuple[str, ...],
    row: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    names = {key: text for key, text in row.items() if key != "part"}
    if isinstance(value, Interval):
        yield row | {
            "figure": name,
            "value": value.estimate,
            "lower": value.lower,
            "upper": value.upper,
            "confidence_level": value.confidence_level,
        }
    elif isinstance(value, bool | int | float | np.number):
        yield row | {"figure": name, "value": float(value)}
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _rows(value, (*path, name), names)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaf(item, f"{name}.{key}" if key else name, path, row)
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            single = is_dataclass(item) and not isinstance(item, Interval)
            yield from _leaf(item, name if single else f"{name}.{at}", path, row)


def _own_names(value: Any, path: Sequence[str]) -> dict[str, str]:  # noqa: ANN401
    """Return what tells one part from its neighbours: its texts and codes."""
    found = {}
    for field in fields(value):
        text = getattr(value, field.name)
        text = text.value if isinstance(text, Enum) else text
        if isinstance(text, str) and 0 < len(text) <= _NAMES and field.name not in _NO_NAMES:
            named = (path[-1].removesuffix("s") if path else "data") if field.name == "name" else ""
            found[named or field.name] = text
    return found


# The cases that matter most.


def _evidence(
    value: Any,  # noqa: ANN401
    path: tuple[str, ...],
    names: dict[str, str],
) -> Iterator[dict[str, Any]]:
    here = {**names, **_own_names(value, path)}
    for field in fields(value):
        item = getattr(value, field.name)
        for one in item if isinstance(item, tuple) else (item,):
            if isinstance(one, Evidence):
                sides = {"first": one.first, "second": one.second}
                yield here | {"item": one.item, "asked": one.asked, "value": one.value} | {
                    f"{side}_{part.name}": getattr(text, part.name)
                    for side, text in sides.items()
                    for part in fields(text)
                }  # fmt: skip
            elif is_dataclass(one) and not isinstance(one, Interval | type):
                yield from _evidence(one, (*path, field.name), here)


def _cases(report: object) -> dict[str, Any]:
    rows = list(_evidence(report, (), {}))
    return {
        key: [row.get(key) for row in rows] for key in dict.fromkeys(k for r in rows for k in r)
    }


# The values of every query, from the arrays that classes name.


_SINGULAR = {"query_ids": "query_id", "question_ids": "question_id", "DEBIAS_ROWS": "row"}


def _values(report: object) -> dict[str, Any]:
    tables = list(_arrays(report, (), {}, []))
    names = dict.fromkeys(key for table in tables for key in table if key != "value")
    columns: dict[str, Any] = {}
    for key in names:
        columns[key] = [
            cell
            for table in tables
            for cell in (table[key] if key in table else [None] * len(table["value"]))
        ]
    values = [table["value"] for table in tables]
    return columns | {"value": np.concatenate(values)} if values else {}


def _arrays(
    value: Any,  # noqa: ANN401
    path: tuple[str, ...],
    names: dict[str, str],
    above: list[Any],
) -> Iterator[dict[str, Any]]:
    here = {**names, **_own_names(value, path)}
    inside = [value, *above]
    for name, axes in getattr(value, "axes_of", {}).items():
        array = np.asarray(getattr(value, name))
        labels = [list(zip(*(_labels(one, inside) for one in axis.split("+")), strict=False))
                  for axis in axes]  # fmt: skip
        if array.size and array.shape == tuple(map(len, labels)):
            yield _table(array, axes, labels, {**here, "part": ".".join(path), "figure": name})
    for field in fields(value):
        item = getattr(value, field.name)
        for one in item if isinstance(item, tuple) else (item,):
            if is_dataclass(one) and not isinstance(one, Interval | type):
                yield from _arrays(one, (*path, field.name), here, inside)


def _labels(axis: str, inside: Sequence[Any]) -> Sequence[Any]:
    """Return the names along an axis: of the part itself, or of what it stands in."""
    for place in inside:
        for holder in (place, getattr(place, "scores", None), getattr(place, "data", None)):
            if (found := getattr(holder, axis, None)) is not None:
                return tuple(found)
        if (constant := getattr(sys.modules[type(place).__module__], axis, None)) is not None:
            return tuple(constant)
    return ()


def _table(
    array: np.ndarray[Any, Any],
    axes: Sequence[str],
    labels: Sequence[Sequence[tuple[Any, ...]]],
    names: Mapping[str, str],
) -> dict[str, Any]:
    places = np.indices(array.shape).reshape(array.ndim, -1)
    table: dict[str, Any] = {key: [text] * array.size for key, text in names.items()}
    for axis, known, place in zip(axes, labels, places, strict=True):
        for at, name in enumerate(axis.split("+")):
            key = _SINGULAR.get(name, name.removesuffix("s"))
            table[key] = [known[i][at] for i in place.tolist()]
    return table | {"value": array.ravel().astype(np.float64)}
