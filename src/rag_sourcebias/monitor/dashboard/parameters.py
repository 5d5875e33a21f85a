"""Parameters of a request: strictly read, every mistake named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl

from rag_sourcebias.errors import DataError

__all__ = ["ParameterError", "Parameters"]

_MOST = 40  # parameters of one request
_LONGEST = 200  # characters of a value, as of the names that a log keeps
_TIME = re.compile(r"-?[0-9]{1,11}(\.[0-9]{1,9})?")
_WHOLE = re.compile(r"[0-9]{1,15}")


class ParameterError(DataError):
    """A parameter is not what it should be; the message names it and what is accepted."""


class Parameters:
    """The query of a request.

    Parameters
    ----------
    query : bytes
        As it was sent, behind the question mark.
    known : sequence of str
        Names that are accepted; only ``label`` may be repeated.

    Raises
    ------
    ParameterError
        If there are too many, one is unknown, repeated or too long.
    """

    def __init__(self, query: bytes, known: Sequence[str]) -> None:
        try:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST)
        except ValueError:
            raise ParameterError(f"a request has at most {_MOST} parameters") from None
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            if name not in known:
                accepted = ", ".join(known) or "none"
                raise ParameterError(f"parameter {name[:40]!a} is unknown; accepted: {accepted}")
            if len(value) > _LONGEST * (2 if name == "label" else 1) + 1:
                raise ParameterError(f"parameter {name} is longer than {_LONGEST} characters")
            self._values.setdefault(name, []).append(value)
        for name, values in self._values.items():
            if len(values) > 1 and name != "label":
                raise ParameterError(f"parameter {name} is given {len(values)} times; give it once")

    def text(self, name: str) -> str | None:
        """Return a value as it is, which may be empty; None without one."""
        values = self._values.get(name)
        return values[0] if values else None

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices, the first by default."""
        value = self.text(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be one of {', '.join(choices)}"
            )
        return value

    def flag(self, name: str) -> bool:
        """Return whether a parameter is 1."""
        return self.choice(name, ("0", "1")) == "1"

    def whole(self, name: str, *, low: int, high: int) -> int | None:
        """Return a whole number from low to high; None without one."""
        value = self.text(name)
        if value is None:
            return None
        if not _WHOLE.fullmatch(value) or not low <= int(value) <= high:
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be a whole number from {low} to {high}"
            )
        return int(value)

    def times(self) -> tuple[float | None, float | None]:
        """Return ``since`` and ``until``, in Unix seconds."""
        since, until = self._time("since"), self._time("until")
        if since is not None and until is not None and since >= until:
            raise ParameterError("parameter since must be before until")
        return since, until

    def _time(self, name: str) -> float | None:
        value = self.text(name)
        if value is None:
            return None
        if not _TIME.fullmatch(value):
            raise ParameterError(
                f"parameter {name}={value[:40]!a} must be Unix seconds, such as 1767225600 or "
                "1767225600.5"
            )
        return min(float(value), 9.9e10)

    def labels(self) -> dict[str, str] | None:
        """Return the wanted labels, each given as ``label=key=value``; None without any."""
        found: dict[str, str] = {}
        for item in self._values.get("label", ()):
            key, equals, value = item.partition("=")
            if not (key and equals) or max(len(key), len(value)) > _LONGEST:
                raise ParameterError(
                    f"parameter label={item[:40]!a} must be key=value, such as "
                    "label=collection=docs, each of up to 200 characters"
                )
            if found.setdefault(key, value) != value:
                raise ParameterError(f"parameter label asks for two values of {key[:40]!a}")
        return found or None
