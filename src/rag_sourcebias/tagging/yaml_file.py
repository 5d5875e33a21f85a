"""A YAML file as nodes, and places in it that errors can name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError

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

    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; expected a YAML file") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start}); expected YAML text") from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
        raise DataError(f"{path}{line}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML: {error}") from error
    if root is None:
        raise DataError(f"{path} is empty; expected {expected}")
    return root
