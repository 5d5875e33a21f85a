"""What commands check before they start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_sourcebias.errors import DataError

__all__ = [
    "choice",
    "number_pair",
    "require_writable",
    "require_writable_file",
    "whole_numbers",
]


def choice(option: str, value: str, allowed: Sequence[str]) -> Any:  # noqa: ANN401 - a literal
    """Return the value if it is one of those allowed, and name them otherwise."""
    if value not in allowed:
        raise DataError(f"--{option} {value!r} is not one of {', '.join(allowed)}")
    return value


def number_pair(option: str, text: str) -> tuple[float, float]:
    """Read ``low,high``."""
    parts = text.split(",")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        raise DataError(
            f"--{option} {text!r}: write two numbers as low,high, such as 0,1"
        ) from None
    if not low < high:
        raise DataError(f"--{option} {text!r}: the first number must be below the second")
    return low, high


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Read whole numbers separated by commas, sorted, each once."""
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise DataError(
            f"{option} {text!r}: write whole numbers separated by commas, as 1,3,5"
        ) from None


def require_writable(folder: Path | None) -> None:
    """Refuse a report folder that cannot be written before the work, not after it."""
    if folder is None:
        return
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not existing.is_dir():
        within = "" if existing == folder else f": {existing}"
        raise DataError(f"--report {folder}{within} is a file; name a folder")
    if not os.access(existing, os.W_OK):
        raise DataError(f"--report {folder}: {existing} is not writable")


def require_writable_file(option: str, path: Path | None) -> None:
    """Refuse an output file that cannot be written before the work, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise DataError(f"--{option} {path} is a folder; name a file")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise DataError(f"--{option} {path}: folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise DataError(f"--{option} {path}: {folder} is not writable")
