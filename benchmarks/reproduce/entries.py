"""Entries of the reproduction: one YAML file per table or figure of a paper.

An entry states what was published and under which conditions, where our figures come from, and
which checks decide. ``id``, ``paper``, ``what``, ``conditions`` and ``published`` (series by name)
are for the reader and the checks; ``ours`` names series of ours, each with

- ``file`` and ``at``: a file of benchmarks/results and the path of keys inside it, or
- ``call`` and ``with``: a function as ``module:function`` and its keyword arguments; modules lie in
  this folder or are installed;
- ``command``: what makes the file, as arguments for Python in benchmarks/ (for ``--run``);
- ``needs``: what must be here for it (see needs.py); without it the series is not made;

A published series may name printed cells instead of values: ``cells`` selects those of a file of
this folder, and ``value`` what is taken of them. ``controls`` names series like ``ours`` that come
from something broken. ``checks`` are lists of ``check`` (a name in checks.py), ``grade`` (how hard
the test is, see :class:`Grade`), ``series`` (names of ours), ``control`` (a name of ``controls`` or
of controls.py: what the check must reject), ``says`` (in words) and the parameters of that check;
with ``skip``, why it cannot be done, or with ``needs``, what is missing for it, if it is; with
``because``, why it is known to fail; with ``own``, where no paper claims it; with ``published``,
the published series that have the shape (all by default).
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml
from controls import CHANGES
from needs import NotMadeError, unmet
from printed import cells

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
REQUIRED = ("id", "paper", "what", "conditions", "published", "ours", "checks")


class Grade(StrEnum):
    """How hard a test is, hardest first."""

    SAME = "same data and model"
    INTERVAL = "other data, interval excludes zero"
    SIGN = "sign only"
    IDENTITY = "identity"


@dataclass(frozen=True)
class Series:
    """Values over something, with interval ends where there are any."""

    x: tuple[Any, ...]
    y: tuple[float, ...]
    lower: tuple[float, ...] | None = None
    upper: tuple[float, ...] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        sizes = {len(c) for c in (self.x, self.y, self.lower, self.upper) if c is not None}
        if len(sizes) != 1 or not self.y:
            raise ValueError(f"columns of a series differ in length or are empty: {self}")

    @classmethod
    def of(cls, data: Mapping[str, Any], note: str = "") -> Series:
        ends = {k: tuple(data[k]) for k in ("lower", "upper") if data.get(k) is not None}
        return cls(tuple(data["x"]), tuple(data["y"]), **ends, note=data.get("note", note))

    def plain(self) -> dict[str, Any]:
        """As it is stored."""
        columns = {"x": self.x, "y": self.y, "lower": self.lower, "upper": self.upper}
        found: dict[str, Any] = {k: list(v) for k, v in columns.items() if v is not None}
        return found | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Source:
    """Where a series of ours comes from."""

    file: str = ""
    at: tuple[str, ...] = ()
    call: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    needs: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Check:
    kind: str
    grade: Grade
    series: tuple[str, ...]
    control: str
    says: str
    parameters: Mapping[str, Any]
    skip: str = ""
    needs: tuple[Mapping[str, Any], ...] = ()
    because: str = ""
    own: bool = False
    published: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Entry:
    id: str
    paper: str
    what: str
    conditions: Mapping[str, Any]
    published: Mapping[str, Series]
    ours: Mapping[str, Source]
    controls: Mapping[str, Source]
    checks: tuple[Check, ...]


def read_entry(path: Path) -> Entry:
    """Read and check one file; errors name the file."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    missing = [key for key in REQUIRED if not (isinstance(data, dict) and key in data)]
    if missing:
        raise SystemExit(f"{path.name}: {', '.join(missing)} missing")
    if data["id"] != path.stem:
        raise SystemExit(f"{path.name}: id {data['id']!r} is not the name of the file")
    ours = {name: _source(found) for name, found in data["ours"].items()}
    controls = {name: _source(found) for name, found in data.get("controls", {}).items()}
    try:
        checks = tuple(_check(found) for found in data["checks"])
    except (KeyError, ValueError) as error:
        raise SystemExit(f"{path.name}: a check without a valid {error}") from error
    published = {name: Series.of(_cells(found)) for name, found in data["published"].items()}
    for check in checks:
        if check.series and check.control not in (*controls, *CHANGES):
            raise SystemExit(
                f"{path.name}: {check.says!r} has no control {check.control!r}; "
                f"there are {', '.join((*controls, *CHANGES))}"
            )
        unknown = [name for name in check.series if name not in ours]
        if unknown and not check.skip:
            raise SystemExit(f"{path.name}: checks name {unknown}; ours are {list(ours)}")
        named = [*(check.published or ()), *_names(check.parameters.get("to"))]
        if strange := [name for name in named if name not in published]:
            raise SystemExit(f"{path.name}: {strange} are not published; {list(published)} are")
    return Entry(
        id=data["id"],
        paper=data["paper"],
        what=data["what"],
        conditions=data["conditions"],
        published=published,
        ours=ours,
        controls=controls,
        checks=checks,
    )


def _cells(found: Mapping[str, Any]) -> Mapping[str, Any]:
    return cells(found["cells"], found["value"]) if "cells" in found else found


def _names(to: str | None) -> Sequence[str]:
    return () if to is None else (to,)


def _source(found: Mapping[str, Any]) -> Source:
    return Source(
        file=found.get("file", ""),
        at=tuple(map(str, found.get("at", ()))),
        call=found.get("call", ""),
        arguments=found.get("with", {}),
        command=tuple(map(str, found.get("command", ()))),
        needs=tuple(found.get("needs", ())),
    )


def _check(found: Mapping[str, Any]) -> Check:
    fixed = (
        "check", "grade", "series", "control", "says", "skip", "needs", "because", "own",
        "published",
    )  # fmt: skip
    return Check(
        kind=found["check"],
        grade=Grade(found["grade"]),
        series=tuple(found.get("series", ())),
        control=found.get("control", ""),
        says=found["says"],
        parameters={key: value for key, value in found.items() if key not in fixed},
        skip=found.get("skip", ""),
        needs=tuple(found.get("needs", ())),
        because=found.get("because", ""),
        own=found.get("own", False),
        published=tuple(found["published"]) if "published" in found else None,
    )


def load(source: Source, *, results: Path = RESULTS) -> Series:
    """Our series; :class:`NotMadeError` where it is not there."""
    if missing := unmet(source.needs):
        raise NotMadeError("; ".join(missing))
    if source.call:
        return _called(source)
    path = results / source.file
    if not path.is_file():
        raise NotMadeError(f"results/{source.file} is not there{_how(source)}")
    found = json.loads(path.read_text(encoding="utf-8"))
    for depth, key in enumerate(source.at):
        if not isinstance(found, dict) or key not in found:
            where = " / ".join(source.at[: depth + 1])
            raise NotMadeError(f"results/{source.file} has no {where}{_how(source)}")
        found = found[key]
    return Series.of(found)


def _called(source: Source) -> Series:
    if str(HERE) not in sys.path:  # functions of this folder
        sys.path.append(str(HERE))
    module, _, function = source.call.partition(":")
    found = getattr(importlib.import_module(module), function)(**source.arguments)
    return found if isinstance(found, Series) else Series.of(found)


def _how(source: Source) -> str:
    return f"; made by python benchmarks/{' '.join(source.command)}" if source.command else ""
