from __future__ import annotations

import gzip
import os
import stat

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.files import read_jsonl, read_lines, write_atomic


def test_lines_keep_their_numbers_through_bom_crlf_and_blank_lines(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffÜber\r\n\r\n  \t\r\n日本 \u2028x\r\nlast".encode())
    assert list(read_lines(file)) == [(1, "Über"), (4, "日本 \u2028x"), (5, "last")]


def test_gzip_is_told_by_the_name(tmp_path):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert list(read_lines(str(file))) == [(1, "one"), (2, "two")]


def test_gzip_without_the_name_is_recognised_in_the_message(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(gzip.compress(b"one\n"))
    with pytest.raises(DataError, match=r"a\.txt:1: expected UTF-8 .*looks like gzip.*\.gz"):
        list(read_lines(file))


def test_a_latin1_file_names_the_line(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"plain\ncaf\xe9 au lait\n")
    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8 text \(byte 0xe9 at position 4"):
        list(read_lines(file))


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"not gzip at all"])
def test_corrupt_gzip_is_a_data_error(tmp_path, damage):
    file = tmp_path / "a.gz"
    file.write_bytes(damage(gzip.compress(os.urandom(5000).hex().encode())))
    with pytest.raises(DataError, match=r"a\.gz:1: cannot be read further"):
        list(read_lines(file))


def test_flipped_gzip_bits_are_a_data_error(tmp_path):
    packed = bytearray(gzip.compress(b"line of text\n" * 5000))
    packed[len(packed) // 2] ^= 0xFF
    file = tmp_path / "a.gz"
    file.write_bytes(bytes(packed))
    with pytest.raises(DataError, match=r"a\.gz:\d+: "):
        list(read_lines(file))


def test_a_missing_file_lists_its_neighbours(tmp_path):
    (tmp_path / "queries.json").touch()
    with pytest.raises(DataError, match=r"queries\.jsonl does not exist; .* holds queries\.json$"):
        list(read_lines(tmp_path / "queries.jsonl"))
    with pytest.raises(DataError, match="nor does its folder"):
        list(read_lines(tmp_path / "nowhere" / "a.txt"))


def test_a_folder_says_that_a_file_was_expected(tmp_path):
    with pytest.raises(DataError, match="is a folder; expected a file"):
        list(read_lines(tmp_path))


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


def test_write_atomic_compresses_reproducibly_by_name(tmp_path):
    write_atomic(tmp_path / "a.gz", "text\n" * 100)
    write_atomic(tmp_path / "b.gz", ["text\n"] * 100)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == b"text\n" * 100


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


def test_written_files_have_ordinary_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomic(tmp_path / "ours", "")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_write_errors_name_the_path(tmp_path):
    with pytest.raises(DataError, match=r"folder .*nowhere does not exist"):
        write_atomic(tmp_path / "nowhere" / "a.txt", "x")
    with pytest.raises(DataError, match=r"a\.txt cannot be written as UTF-8"):
        write_atomic(tmp_path / "a.txt", "\ud800")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder cannot be written"):
        write_atomic(tmp_path / "folder", "x")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
