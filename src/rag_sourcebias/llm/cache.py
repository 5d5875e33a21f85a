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

from rag_sourcebias.io.sqlite_file import MOST_KEYS, SqliteFile
from rag_sourcebias.types.completions import Completion, LabelScores, Request

__all__ = ["Answer", "CompletionCache", "request_key"]

Answer = Completion | LabelScores

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer TEXT NOT NULL) "
    "WITHOUT ROWID"
)


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
    that one object may be shared between threads and survives a fork; see :meth:`held`.

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
        self._file = SqliteFile(path, _SCHEMA)
        self.path = self._file.path

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Answer]:
        """Return the answers that are there."""
        found: dict[bytes, Answer] = {}
        if not self._file.exists:
            return found
        with self._file.connection() as database:
            for start in range(0, len(keys), MOST_KEYS):
                part = keys[start : start + MOST_KEYS]
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
        self._file.create_folder()
        rows = [(key, json.dumps(answer.to_dict())) for key, answer in answers.items()]
        with self._file.connection() as database:
            database.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", rows)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the file open for the length of a block; it must be there.

        SQLite tidies up and waits for the disk whenever nobody has the file open any more, which
        takes longer than to store a few answers.
        """
        with closing(sqlite3.connect(self.path, check_same_thread=False)) as idle:
            idle.execute("SELECT 1 FROM answers LIMIT 1").fetchall()  # opened on first use
            yield

    def _decoded(self, text: str) -> Answer:
        try:
            data = json.loads(text)
            return (
                LabelScores.from_dict(data) if "n_bounded" in data else Completion.from_dict(data)
            )
        except (ValueError, TypeError, KeyError) as error:
            raise self._file.damaged(f"stored answer {text!r:.60}") from error
