"""Answers of language models kept on disk, so that nothing is asked and paid for twice.

One SQLite file, readable and writable by several processes at once. A run that is killed loses the
answers that were on their way and nothing else.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.completions import Completion, LabelScores, Request

__all__ = ["Answer", "CompletionCache", "request_key"]

Answer = Completion | LabelScores

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL) "
    "WITHOUT ROWID"
)
_LOOKUP = 500  # keys per SELECT; SQLite's own limit on variables was 999 for long
_WAIT_SECONDS = 60.0  # for another process that is writing


def request_key(fingerprint: str, request: Request) -> bytes:
    """Return the 128-bit BLAKE2b hash of a request to the completer with that fingerprint."""
    parts = (
        [fingerprint, "labels", request.prompt, list(request.labels)]
        if request.labels
        else [
            *(fingerprint, "text", request.prompt),
            *(request.max_tokens, request.temperature, request.sample),
        ]
    )
    return blake2b(json.dumps(parts).encode(), digest_size=16).digest()


class CompletionCache:
    """Store of answers by the hash of completer and request.

    Prompts are not stored, only their hash; answers are. A connection is opened for each call, so
    that one object may be shared between threads and survives a fork.

    Parameters
    ----------
    path : str or Path
        SQLite file; it and its folder are created on first use.

    Raises
    ------
    DataError
        By every method, if the file is damaged, is not such a cache, or cannot be opened or
        written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return the answers that are there."""
        found: dict[bytes, Answer] = {}
        if not self.path.exists():
            return found
        with self._connection() as database:
            for start in range(0, len(keys), _LOOKUP):
                part = keys[start : start + _LOOKUP]
                marks = ",".join("?" * len(part))
                for key, text in database.execute(
                    f"SELECT request, answer FROM answers WHERE request IN ({marks})", part
                ):
                    found[key] = self._decoded(text)
        return found

    def put(self, answers: Mapping[bytes, Answer]) -> None:
        """Store answers in one transaction; existing ones are replaced."""
        if not answers:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cache folder {self.path.parent} cannot be created ({error}); choose a folder "
                "that can be written"
            ) from error
        rows = [(key, json.dumps(answer.to_dict())) for key, answer in answers.items()]
        with self._connection() as database:
            database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file, commit when the block ends, roll back when it raises."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                with database:
                    database.execute(_SCHEMA)
                    yield database
        except sqlite3.OperationalError as error:
            raise DataError(
                f"cache {self.path} cannot be used ({error}); check that its folder can be "
                "written, that the disk is not full and that the file is a cache of this library"
            ) from error
        except sqlite3.DatabaseError as error:
            raise self._damaged(str(error)) from error

    def _decoded(self, text: str) -> Answer:
        try:
            data = json.loads(text)
            return (
                LabelScores.from_dict(data) if "n_bounded" in data else Completion.from_dict(data)
            )
        except (ValueError, TypeError, KeyError) as error:
            raise self._damaged(f"stored answer {text!r:.60}") from error

    def _damaged(self, reason: str) -> DataError:
        return DataError(
            f"cache {self.path} is damaged or not a cache ({reason}); delete the file, it will be "
            "filled again"
        )
