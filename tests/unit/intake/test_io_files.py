from __future__ import annotations

import pytest

from rag_sourcebias.core.codec import write_atomic
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.files import read_jsonl, read_lines


def test_lines_keep_their_numbers_through_bom_crlf_and_blank_lines(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffÜber\r\n\r\n  \t\r\n日本 \u2028x\r\nlast".encode())
    assert list(read_lines(file)) == [(1, "Über"), (4, "日本 \u2028x"), (5, "last")]


def test_a_latin1_file_names_the_line(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"plain\ncaf\xe9 au lait\n")
    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8 text \(byte 0xe9 at position 4"):
        list(read_lines(file))


def test_a_missing_file_lists_its_neighbours(tmp_path):
    (tmp_path / "queries.json").touch()
    with pytest.raises(DataError, match=r"queries\.jsonl does not exist; .* holds queries\.json$"):
        list(read_lines(tmp_path / "queries.jsonl"))
    with pytest.raises(DataError, match="nor does its folder"):
        list(read_lines(tmp_path / "nowhere" / "a.txt"))


def test_jsonl_errors_name_file_and_line(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text('{"a": 1}\n\n{"a": 2\n')
    with pytest.raises(DataError, match=r"a\.jsonl:3: malformed JSON"):
        list(read_jsonl(file))
    file.write_text('{"a": 1}\n[1, 2]\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected a JSON object per line"):
        list(read_jsonl(file))
    file.write_text("[" * 100_000 + "\n")
    with pytest.raises(DataError, match=r"a\.jsonl:1: malformed JSON"):
        list(read_jsonl(file))


@pytest.mark.parametrize("content", ["äöü\n", "äöü\n".encode(), ["ä", "öü\n"]])
def test_write_atomic_accepts_text_bytes_and_chunks(tmp_path, content):
    file = tmp_path / "a.txt"
    write_atomic(file, content)
    assert file.read_text(encoding="utf-8") == "äöü\n"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("old")

    def chunks():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(file, chunks())
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_write_errors_name_the_path(tmp_path):
    with pytest.raises(DataError, match=r"folder .*nowhere does not exist"):
        write_atomic(tmp_path / "nowhere" / "a.txt", "x")
    with pytest.raises(DataError, match=r"a\.txt cannot be written as UTF-8"):
        write_atomic(tmp_path / "a.txt", "\ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder cannot be written"):
        write_atomic(tmp_path / "folder", "x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
