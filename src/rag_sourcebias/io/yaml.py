"""Checked values of YAML nodes; what is wrong is named with file, line and key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.files import read_text, sound

if TYPE_CHECKING:
    from yaml.nodes import Node


# A YAML file as nodes, and places in it that errors can name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a node stands: its file and the path of keys to it."""

    file: Path
    key: str

    def error(self, node: Node, message: str) -> DataError:
        """Error that names file, line and key."""
        return DataError(f"{self.file}:{node.start_mark.line + 1}: {self.key}: {message}")

    @contextmanager
    def naming(self, node: Node) -> Iterator[None]:
        """Name the place in any data error raised inside."""
        try:
            yield
        except DataError as error:
            raise self.error(node, str(error)) from error


def read_yaml(path: Path, *, expected: str) -> Node:
    """Root node of a YAML file of one document.

    Raises
    ------
    DataError
        If the file cannot be read, is not UTF-8, is empty or is no YAML.
    """
    import yaml

    remedy = f"expected {expected}"
    try:
        with sound(path, "YAML", remedy=remedy):
            root = yaml.compose(
                read_text(path, "YAML text in UTF-8", remedy=remedy), Loader=yaml.SafeLoader
            )
    except DataError as error:
        # what is wrong, without the text around it that the library's own message shows
        mark = error.__cause__ if isinstance(error.__cause__, yaml.MarkedYAMLError) else None
        if mark is None or mark.problem_mark is None:
            raise
        raise DataError(
            f"{path}:{mark.problem_mark.line + 1}: not YAML: {mark.problem or mark.context}"
        ) from mark
    if root is None:
        raise DataError(f"{path} is empty; expected {expected}")
    return root


# Checked values of YAML nodes; what is wrong is named with file, line and key.


_KINDS: dict[str, str] = {"mapping": "a mapping", "sequence": "a list"}
_NAMES = {str: "text", bool: "true or false", int: "whole number", float: "number"}


def kind(node: Node) -> str:
    """``"mapping"``, ``"sequence"`` or ``"scalar"``."""
    return type(node).__name__.removesuffix("Node").casefold()


def entries(
    node: Node, place: Place, *, allowed: Sequence[str] | None = None, required: Sequence[str] = ()
) -> dict[str, tuple[Place, Node]]:
    """Values of a mapping by key, each with its place.

    Raises
    ------
    DataError
        If the node is no mapping or is empty, a key is unknown, repeated or no text, or one is
        missing.
    """
    if kind(node) != "mapping" or not node.value:
        keys = "" if allowed is None else f" with keys out of {list(allowed)}"
        raise place.error(node, f"{_said(node)}; expected a mapping{keys}")
    found: dict[str, tuple[Place, Node]] = {}
    for name, value in node.value:
        key = scalar(name, place, kinds=(str,))
        here = Place(file=place.file, key=f"{place.key}.{key}".removeprefix("the file."))
        if allowed is not None and key not in allowed:
            close = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f" did you mean {close[0]!r}?" if close else ""
            raise here.error(name, f"unknown key {key!r:.200};{hint} accepted: {list(allowed)}")
        if key in found:
            raise here.error(
                name,
                f"the key {key!r:.200} stands twice, first in line "
                f"{found[str(key)][1].start_mark.line + 1}",
            )
        found[str(key)] = here, value
    for key in required:
        if key not in found:
            raise place.error(node, f"the key {key!r} is missing; found {list(found)}")
    return found


def items(node: Node, place: Place) -> list[tuple[Place, Node]]:
    """Items of a list that is not empty, each with its place."""
    if kind(node) != "sequence" or not node.value:
        raise place.error(node, f"{_said(node)}; expected a list with at least one item")
    return [
        (Place(file=place.file, key=f"{place.key}[{number}]"), item)
        for number, item in enumerate(node.value, start=1)
    ]


def scalar(
    node: Node, place: Place, *, kinds: Sequence[type] = (str, bool, int, float)
) -> str | bool | int | float:
    """One text, number, true or false.

    Raises
    ------
    DataError
        If the node is something else.
    """
    import yaml

    wanted = " or ".join(_NAMES[kind] for kind in kinds)
    if kind(node) != "scalar":
        raise place.error(node, f"{_said(node)}; expected {wanted}")
    if node.value and node.tag == "tag:yaml.org,2002:timestamp":  # an unquoted date is a text
        return str(node.value)
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except (yaml.YAMLError, ValueError) as error:
        raise place.error(node, f"{_said(node)} cannot be read; expected {wanted}") from error
    if type(value) not in kinds or value == "":
        bare = not getattr(node, "style", None) and isinstance(value, bool | int | float)
        hint = " (quote it to make it a text)" if bare and str in kinds else ""
        raise place.error(node, f"{_said(node)}; expected {wanted}{hint}")
    return cast("str | bool | int | float", value)


def _said(node: Node) -> str:
    if kind(node) == "scalar":
        return repr(node.value)[:200] if node.value else "empty"
    return _KINDS[kind(node)] if node.value else f"{_KINDS[kind(node)]} without content"
