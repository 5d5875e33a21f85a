"""``start`` in any folder ends soon, with a sentence that is true."""

import sqlite3
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from command_line import inside

import rag_sourcebias.start


def app_with_a_corpus(folder: Path) -> None:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "readme.md").write_text("# Notes")
    (folder / "app.py").write_text("print()")


def parquet_of_others(folder: Path) -> None:
    (folder / "deep" / "data").mkdir(parents=True)
    frame = pd.DataFrame({"x": [1]})
    frame.to_parquet(folder / "deep" / "data" / "part-0.parquet")
    frame.to_parquet(folder / "events-a-1-2.parquet")


def database_of_others(folder: Path) -> None:
    with sqlite3.connect(folder / "db.sqlite3") as database:
        database.execute("CREATE TABLE users (id INTEGER)")


FOLDERS = {
    "an empty folder": lambda _: None,
    "an application": app_with_a_corpus,
    "Parquet of others": parquet_of_others,
    "a database of others": database_of_others,
}


def answer(path: str, cwd: Path) -> str:
    begun = time.perf_counter()
    code, output, messages = inside("start", path, cwd=cwd)
    assert time.perf_counter() - begun < 10
    assert (code, output) == (2, "")
    assert "Traceback" not in messages
    return " ".join(messages.split())


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_others_are_not_recognised(name: str, tmp_path: Path) -> None:
    (tmp_path / "it").mkdir()
    FOLDERS[name](tmp_path / "it")
    assert "it is not recognised: a BEIR folder" in answer("it", tmp_path)


@pytest.mark.parametrize("place", [sys.prefix, "/usr", "/proc", "/etc", "/", "."])
def test_system_folders_are_not_walked_through(place: str, tmp_path: Path) -> None:
    assert f"{place} is not recognised" in answer(place, tmp_path)


def test_a_database_of_others_is_no_log_of_ours(tmp_path: Path) -> None:
    database_of_others(tmp_path)
    assert "db.sqlite3 is another program's SQLite file" in answer("db.sqlite3", tmp_path)


def test_a_large_corpus_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rag_sourcebias.start, "_QUICK", 10)
    (tmp_path / "corpus.jsonl").write_text("no JSON at all, and more than ten bytes of it\n")
    code, output, _ = inside("start", ".", cwd=tmp_path)
    assert code == 0
    assert "Its sources were not looked at" in output


def test_of_a_large_table_the_first_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rag_sourcebias.start, "_QUICK", 10)
    monkeypatch.setattr(rag_sourcebias.start, "_ROWS", 3)
    rows = [f"i{i},{i % 2},0.5" for i in range(3)]
    (tmp_path / "t.csv").write_text("\n".join(["id,human,judge", *rows, "and no row of a table"]))
    code, output, _ = inside("start", "t.csv", cwd=tmp_path)
    assert code == 0
    assert "$ rag-sourcebias interval t.csv" in output
    assert "rows were looked at: run it when you mean to" in " ".join(output.split())
    (tmp_path / "t.json").write_text('[{"id": "not read to its end"')
    code, _, messages = inside("start", "t.json", cwd=tmp_path)
    assert code == 2
    assert "which was not looked at; write it as JSON lines" in " ".join(messages.split())
