"""Conditions of tag rules: one test on the metadata, the URL, the id or the text of a document."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from rag_sourcebias.errors import DataError

__all__ = ["OPERATORS", "Condition", "regular_expression"]

OPERATORS = ("equals", "in", "regex", "glob", "present")
Target = Literal["metadata", "url_host", "id", "text"]
_TARGETS = ("metadata", "url_host", "id", "text")
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^@/?#]*@)?(\[[^\]]*\]|[^/:?#]+)", re.IGNORECASE)
_MISSING = object()

#: A document's value to a match: True or the regex match, False or None where it does not hold.
Test = Callable[[object], "re.Match[str] | bool | None"]


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition; it is compiled when it is made.

    Parameters
    ----------
    target : {"metadata", "url_host", "id", "text"}
        What is tested. ``"url_host"`` is the lower-cased host of the document's URL.
    key : str or None
        Metadata key, for ``target="metadata"`` only. ``a.b`` is the key ``"a.b"`` or, where there
        is none, the key ``"b"`` of the mapping under ``"a"``.
    operator : {"equals", "in", "regex", "glob", "present"}
        ``regex`` searches, ``glob`` fits the whole value; both are case-sensitive (``(?i)`` makes
        a regex insensitive). A list in the metadata holds when one of its elements does.
    value : object
        What it is tested against; True or False for ``present``.

    Raises
    ------
    DataError
        For an unknown target or operator, a missing key, a bad regex or a value of a wrong type.
    """

    target: Target
    operator: str
    value: object
    key: str | None = None
    pattern: re.Pattern[str] | None = field(init=False, default=None)
    _test: Test = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.target not in _TARGETS:
            raise DataError(f"target {self.target!r} is none of {list(_TARGETS)}")
        if (self.target == "metadata") != bool(self.key):
            raise DataError(f"key {self.key!r}: a metadata condition names a key, no other does")
        if self.operator in {"regex", "glob"}:
            object.__setattr__(self, "pattern", _pattern(self.operator, self.value))
        object.__setattr__(self, "_test", self._compile())

    def _compile(self) -> Test:
        expected = self.value
        if self.pattern is not None:
            fits = self.pattern.match if self.operator == "glob" else self.pattern.search
            return lambda value: None if value is _MISSING else fits(str(value))
        if self.operator == "present":
            if not isinstance(expected, bool):
                raise DataError(f"present: {expected!r} is not true or false")
            return lambda value: (value is not _MISSING and value is not None) is expected
        if self.operator == "equals":
            if not isinstance(expected, str | int | float | bool):
                raise DataError(f"equals: {expected!r} is not one text, number, true or false")
            return lambda value: value == expected and _same_kind(value, expected)
        if self.operator == "in":
            if isinstance(expected, str) or not isinstance(expected, Collection) or not expected:
                raise DataError(f"in: {expected!r} is not a list with at least one value")
            values = tuple(expected)
            return lambda value: any(value == v and _same_kind(value, v) for v in values)
        raise DataError(f"operator {self.operator!r} is none of {list(OPERATORS)}")

    def match(
        self, doc_id: str, text: str, metadata: Mapping[str, object], url: str | None
    ) -> re.Match[str] | bool | None:
        """Test one document; a regex gives its match, so that its groups can be used."""
        if self.key is not None:
            value = metadata.get(self.key, _MISSING)
            if value is None or (value is _MISSING and "." in self.key):
                value = _nested(metadata, self.key)
            if isinstance(value, (list, tuple)) and self.operator != "present":
                return next((hit for v in value if (hit := self._test(v))), None)
            return self._test(value)
        if self.target == "url_host":
            return self._test(_host(url) if url else _MISSING)
        return self._test(doc_id if self.target == "id" else text)


def _pattern(operator: str, value: object) -> re.Pattern[str]:
    if not isinstance(value, str) or not value:
        raise DataError(f"{operator}: {value!r} is not a pattern; expected a non-empty text")
    source = fnmatch.translate(value) if operator == "glob" else value
    return regular_expression(source, named=f"{operator}: {value!r:.200}")


def regular_expression(pattern: str, *, named: str) -> re.Pattern[str]:
    """Compile a pattern somebody gave; a bad one is refused in one sentence that begins ``named``.

    Raises
    ------
    DataError
        Also for brackets nested too deep and for counts of repetition that are too large.
    """
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        deep = isinstance(error, RecursionError)
        reason = "its brackets are nested too deep" if deep else str(error)[:200]
        raise DataError(
            f"{named} is not a regular expression: {reason}; "
            "expected the syntax of Python's re module"
        ) from error


def _same_kind(value: object, expected: object) -> bool:
    """Keep True from being equal to 1."""
    return isinstance(value, bool) is isinstance(expected, bool)


def _nested(metadata: Mapping[str, object], key: str) -> object:
    node: object = metadata
    for part in key.split("."):
        node = node.get(part, _MISSING) if isinstance(node, Mapping) else _MISSING
    return _MISSING if node is None else node


@lru_cache(maxsize=256)
def _host(url: str) -> object:
    found = _HOST.match(url.strip())
    return found.group(1).casefold() if found else _MISSING
