"""Damaged files, and what is no file: every reader reads or refuses, in one sentence."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from benchmark_modules import load

from rag_sourcebias.core.codec import sound
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.arrays import map_array, read_arrays
from rag_sourcebias.intake.files import read_json, read_lines
from rag_sourcebias.intake.rankings import read_run
from rag_sourcebias.intake.tables import read_table

readers, fuzz = load("robustness", "readers", "fuzz")
FAST = [reader for reader in readers.READERS if not reader.slow]
named = pytest.mark.parametrize("reader", FAST, ids=lambda reader: reader.name)


def needs(reader) -> None:
    """Skip a reader whose format needs a package that is not there."""
    if "parquet" in reader.file:
        pytest.importorskip("pyarrow")


@named
def test_every_reader_reads_or_refuses(reader, tmp_path):
    needs(reader)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = fuzz.attempts(reader, tmp_path, n=20, seed=1)
    assert not tally.kinds, tally.failures
    assert tally.refused


@pytest.mark.parametrize("control", readers.CONTROLS, ids=lambda control: control.name)
def test_what_reads_without_care_is_caught(control, tmp_path):
    needs(control)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tally = fuzz.attempts(control, tmp_path, n=60, seed=1)
    assert tally.kinds


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Fail instead of waiting for somebody who writes to a pipe."""

    def late(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@named
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(reader, tmp_path):
    needs(reader)
    reader.write(tmp_path)
    file = tmp_path / reader.file
    file.unlink()
    os.mkfifo(file)
    with within(20), pytest.raises(DataError, match=str(tmp_path)) as caught:
        reader.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_sockets_devices_and_links_to_themselves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s.txt")
        with pytest.raises(DataError, match=r"s\.txt is a socket, not a file"):
            read_run("s.txt")
    with pytest.raises(DataError, match="/dev/zero is a device, not a file"):
        read_run("/dev/zero")
    Path("loop.txt").symlink_to("loop.txt")
    with pytest.raises(DataError, match=r"loop\.txt cannot be opened: .*symbolic links"):
        read_run("loop.txt")
    with pytest.raises(DataError, match="cannot be opened: embedded null"):
        read_run("a\0b")


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()


def test_what_unpacks_to_far_more_than_it_takes_is_refused_unless_asked(tmp_path, monkeypatch):
    file = tmp_path / "run.txt.gz"
    file.write_bytes(gzip.compress(b"q Q0 d 1 1.0 x\n" * 200_000, 9))
    with at_most(8), pytest.raises(DataError, match="set RAG_SOURCEBIAS_MAX_UNPACK_RATIO higher"):
        sum(1 for _ in read_lines(file))
    monkeypatch.setenv("RAG_SOURCEBIAS_MAX_UNPACK_RATIO", "2000")
    assert sum(1 for _ in read_lines(file)) == 200_000
    monkeypatch.setenv("RAG_SOURCEBIAS_MAX_UNPACK_RATIO", "-1")
    with pytest.raises(DataError, match="MAX_UNPACK_RATIO is '-1'; expected a number above 0"):
        list(read_lines(file))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_line_without_end_is_refused_before_it_is_held(tmp_path, monkeypatch, name):
    monkeypatch.setenv("RAG_SOURCEBIAS_MAX_LINE_MB", "1")
    file = tmp_path / name
    content = b"{}\n" + os.urandom(1 << 20).hex().encode() * 8
    file.write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    with at_most(8), pytest.raises(DataError, match=r"longer than 1 MB.* MAX_LINE_MB|longer than"):
        list(read_lines(file))
    monkeypatch.setenv("RAG_SOURCEBIAS_MAX_LINE_MB", "100")
    assert [number for number, _ in read_lines(file)] == [1, 2]


def test_one_json_value_may_be_one_long_line(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_SOURCEBIAS_MAX_LINE_MB", "0.001")
    (tmp_path / "a.json").write_text(f"[{'1,' * 100_000}2]")
    assert len(read_json(tmp_path / "a.json", "numbers")) == 100_001


def npy(header: str, data: bytes = b"\0" * 8) -> bytes:
    packed = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + len(packed).to_bytes(2, "little") + packed + data


BAD_ARRAYS = {
    "more than there is": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,)}\n"
    ),
    "less than there is": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}\n"),
    "negative": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}\n"),
    "text without letters": npy("{'descr': '<U0', 'fortran_order': False, 'shape': (9999999,)}\n"),
    "pickle": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"),
    "open bracket": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1\n"),
    "deep": npy("(" * 3_000 + ")" * 3_000 + "\n"),
    "another version": b"\x93NUMPY\x09\x00" + b"\0" * 90,
    "cut": b"\x93NUMPY\x01",
    "empty": b"",
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_arrays_are_believed_as_far_as_their_size_bears_them_out(tmp_path, kind):
    file = tmp_path / "a.npy"
    file.write_bytes(BAD_ARRAYS[kind])
    with at_most(8), pytest.raises(DataError, match=r"a\.npy is not a complete \.npy file"):
        map_array(file)


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_arrays_in_archives_too(tmp_path, kind):
    file = tmp_path / "a.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", BAD_ARRAYS[kind])
    with at_most(40), pytest.raises(DataError, match=r"a\.npz is not a complete \.npz file"):
        read_arrays(file)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 4), (3, 4)])
def test_sound_arrays_come_as_they_were(tmp_path, shape, order):
    values = np.asarray(np.arange(np.prod(shape)).reshape(shape), order=order)
    np.save(tmp_path / "a.npy", values)
    np.savez_compressed(tmp_path / "a.npz", x=values, name="é", none=np.array([], "U3"))
    np.testing.assert_array_equal(map_array(tmp_path / "a.npy"), values)
    found = read_arrays(tmp_path / "a.npz")
    np.testing.assert_array_equal(found["x"], values)
    assert found["name"].item() == "é"
    assert found["x"].flags.writeable


def test_an_archive_that_unpacks_to_far_more_is_refused_by_what_it_declares(tmp_path):
    file = tmp_path / "a.npz"
    np.savez_compressed(file, x=np.zeros(20 << 20, np.uint8))
    with at_most(8), pytest.raises(DataError, match=r"unpack to .* over 200 to 1"):
        read_arrays(file)


def test_values_that_repeat_do_not_fill_the_memory(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    once = pa.DictionaryArray.from_arrays(np.zeros(3_000_000, np.int32), ["x" * 1_000])
    pq.write_table(pa.table({"text": once}), tmp_path / "a.parquet")  # 3 GB in some kilobytes
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match=r"unpack to .* over 200 to 1"):
        read_table(tmp_path / "a.parquet").columns["text"]
    assert pa.default_memory_pool().max_memory() - before < 200 << 20


def test_mistakes_of_ours_are_not_taken_for_damage():
    for mistake in (AssertionError, NameError, ZeroDivisionError):
        with pytest.raises(mistake), sound("a.txt", "a text"):
            raise mistake


def test_errors_of_libraries_become_one_line():
    wanted = r"^a\.txt is not a text \(one two\); take another"
    with pytest.raises(DataError, match=wanted), sound("a.txt", "a text"):
        raise OSError("one\n  two\x1b")


def test_columns_that_nobody_asks_for_are_not_read(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    late = pa.array([2**40], pa.timestamp("s"))  # no date of Python
    pq.write_table(pa.table({"id": ["a"], "judge": [1.0], "late": late}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.names == ["id", "judge", "late"]
    assert table.columns["judge"] == [1.0]
    with pytest.raises(DataError, match=r"a\.parquet is not a readable Parquet file"):
        table.columns["late"]
