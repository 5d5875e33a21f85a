"""What an event log keeps, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.events import check_key
from rag_sourcebias.io.private import check_mode

__all__ = ["Documents", "LogSettings"]

Documents = Literal["none", "hashed", "plain"]

_SMALLEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Settings of the writing side; see :class:`EventLog` for their meaning.

    Raises
    ------
    DataError
        If a value is out of its range.
    """

    weight: float
    documents: Documents
    max_documents: int
    max_tags: int
    max_label_values: int
    max_label_sets: int
    event_labels: frozenset[str]
    hashed_labels: frozenset[str]
    key: bytes | None
    max_bytes: int | None
    max_age: float | None
    archive: Path | None
    busy_seconds: float
    file_mode: int

    def __post_init__(self) -> None:
        if self.documents not in get_args(Documents):
            raise DataError(f"documents={self.documents!r} is none of {get_args(Documents)}")
        if not 1 <= self.max_documents <= 65_535:
            raise DataError(f"max_documents must be 1 to 65535, got {self.max_documents}")
        if self.max_bytes is not None and self.max_bytes < _SMALLEST:
            raise DataError(f"max_bytes must be at least {_SMALLEST}, got {self.max_bytes}")
        if self.max_age is not None and not 0 < self.max_age < math.inf:
            raise DataError(f"max_age must be a positive number of seconds, got {self.max_age}")
        check_mode(self.file_mode)
        if self.key is not None:
            check_key(self.key, "key")
        elif self.hashed_labels:
            raise DataError("hashed_labels needs key=, such as read_key(); see read_key")
        if self.archive is not None and self.max_age is None and self.max_bytes is None:
            raise DataError("archive receives what max_age or max_bytes removes; give one of them")
