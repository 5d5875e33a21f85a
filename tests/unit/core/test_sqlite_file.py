"""One SQLite file that several writers open at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rag_sourcebias.core.caches import SqliteFile
from rag_sourcebias.core.errors import DataError

SCHEMA = "CREATE TABLE IF NOT EXISTS words (word TEXT PRIMARY KEY)"


def test_writers_that_create_the_same_file_wait_for_each_other(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    for number in range(60):  # without the wait about one file in twenty fails
        path = tmp_path / f"{number}.sqlite"
        start = threading.Barrier(8)

        def write(word: str, path: Path = path, start: threading.Barrier = start) -> None:
            start.wait()
            try:
                with SqliteFile(path, SCHEMA).connection() as database:
                    database.execute("INSERT INTO words VALUES (?)", (word,))
            except DataError as error:
                failures.append(error)

        writers = [threading.Thread(target=write, args=(word,)) for word in "abcdefgh"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        with SqliteFile(path, SCHEMA).connection() as database:
            assert database.execute("SELECT count(*) FROM words").fetchone() == (8,)
    assert failures == []


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match=r"is a folder; expected a file"),
        SqliteFile(tmp_path, SCHEMA).connection(),
    ):
        pass
