"""A YAML file as nodes, and places in it that errors can name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import read_text

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = ["Place", "read_yaml"]


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

    text = read_text(path, "YAML text in UTF-8", remedy=f"expected {expected}")
    try:
        with sound(path, "YAML", remedy=f"expected {expected}"):
            root = yaml.compose(text, Loader=yaml.SafeLoader)
    except DataError as error:
        # what is wrong, without the text around it that the library's own message shows
        mark = error.__cause__ if isinstance(error.__cause__, yaml.MarkedYAMLError) else None
        if mark is None or mark.problem_mark is None:
            raise
        place = f"{path}:{mark.problem_mark.line + 1}"
        raise DataError(f"{place}: not YAML: {mark.problem or mark.context}") from mark
    if root is None:
        raise DataError(f"{path} is empty; expected {expected}")
    return root
