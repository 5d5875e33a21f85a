from __future__ import annotations

import hashlib
import socket
import stat
import zipfile
from pathlib import Path

import pytest

from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir, download, extract_zip

BODY = bytes(range(256)) * 1000
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()
MD5 = "md5:" + hashlib.md5(BODY).hexdigest()


@pytest.mark.parametrize("checksum", [SHA, MD5])
def test_download_reports_progress_and_leaves_one_file(tmp_path, server, checksum):
    server.files["/f"] = BODY
    seen = []
    target = tmp_path / "new" / "folder" / "f.bin"
    found = download(
        f"{server.url}/f",
        target,
        checksum=checksum,
        progress=lambda n, total: seen.append((n, total)),
    )
    assert found == target
    assert target.read_bytes() == BODY
    assert [p.name for p in target.parent.iterdir()] == ["f.bin"]
    assert seen[-1] == (len(BODY), len(BODY))
    assert [n for n, _ in seen] == sorted(n for n, _ in seen)


def test_a_good_file_is_not_downloaded_again_and_a_bad_one_is_replaced(tmp_path, server):
    server.files["/f"] = BODY
    target = tmp_path / "f"
    target.write_bytes(BODY)
    download(f"{server.url}/f", target, checksum=SHA)
    assert server.ranges == []
    target.write_bytes(b"old version")
    download(f"{server.url}/f", target, checksum=SHA)
    assert target.read_bytes() == BODY


def test_a_broken_connection_is_resumed(tmp_path, server):
    server.files["/f"] = BODY
    server.script = ["break", "break", "ok"]
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA, backoff=0.01)
    half = len(BODY) // 2
    assert server.ranges == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]
    assert (tmp_path / "f").read_bytes() == BODY


def test_what_an_earlier_call_received_is_kept(tmp_path, server):
    server.files["/f"] = BODY
    server.script = ["break"]
    with pytest.raises(
        DataError, match=r"\(1 attempts\): the connection broke after 128000 of 256000"
    ):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA, attempts=1)
    assert [p.name for p in tmp_path.iterdir()] == ["f.part"]
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA)
    assert server.ranges == [None, "bytes=128000-"]
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_server_without_ranges_starts_over(tmp_path, server):
    server.files["/f"] = BODY
    server.script = ["break", "whole"]
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA, backoff=0.01)
    assert (tmp_path / "f").read_bytes() == BODY


@pytest.mark.parametrize("left", [BODY, BODY + b"too much"])
def test_a_part_that_is_complete_or_too_long(tmp_path, server, left):
    server.files["/f"] = BODY
    (tmp_path / "f.part").write_bytes(left)
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA, backoff=0.01)
    assert (tmp_path / "f").read_bytes() == BODY
    assert not (tmp_path / "f.part").exists()


@pytest.mark.parametrize("trouble", ["500", "503", "429", "hang-up"])
def test_passing_faults_are_tried_again(tmp_path, server, trouble):
    server.files["/f"] = BODY
    server.script = [trouble, "ok"]
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA, backoff=0.01)
    assert len(server.ranges) == 2


def test_lasting_faults_end_in_an_error(tmp_path, server):
    server.script = ["500"] * 9
    with pytest.raises(
        DataError, match=r"\(3 attempts\): the server answered 500 .*put the file at"
    ):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA, attempts=3, backoff=0.01)
    assert len(server.ranges) == 3
    server.script = []
    with pytest.raises(DataError, match="the server answered 404"):
        download(f"{server.url}/absent", tmp_path / "f", checksum=SHA)
    assert len(server.ranges) == 4  # a 404 does not pass


def test_a_wrong_checksum_removes_the_file(tmp_path, server):
    server.files["/f"] = b"something else"
    with pytest.raises(DataError, match=r"not the expected file: its checksum is sha256:.*removed"):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA)
    assert list(tmp_path.iterdir()) == []


def test_no_server_and_silent_server(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/f"
        with pytest.raises(DataError, match=r"\(2 attempts\): "):
            download(url, tmp_path / "f", checksum=SHA, attempts=2, backoff=0.01, timeout=0.1)
    with pytest.raises(DataError, match="no connection"):
        download(url, tmp_path / "f", checksum=SHA, attempts=1)


@pytest.mark.parametrize(
    ("url", "checksum", "message"),
    [
        ("file:///etc/hosts", SHA, "expected an http or https address"),
        ("http://127.0.0.1:9/f", "md5:zz", "neither md5:<32 hex> nor sha256:<64 hex>"),
        ("http://127.0.0.1:9/f", "", "checksum '' is neither"),
    ],
)
def test_bad_arguments(tmp_path, url, checksum, message):
    with pytest.raises(DataError, match=message):
        download(url, tmp_path / "f", checksum=checksum)


def test_at_least_one_attempt(tmp_path):
    with pytest.raises(DataError, match="attempts must be at least 1, got 0"):
        download("http://127.0.0.1:9/f", tmp_path / "f", checksum=SHA, attempts=0)


def archive(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def test_extract_zip(tmp_path):
    file = archive(tmp_path / "a.zip", {"set/queries.jsonl": "{}", "set/ü/x..y": "z"})
    folder = extract_zip(file, tmp_path / "new" / "out")
    assert (folder / "set" / "ü" / "x..y").read_text() == "z"
    assert [p.name for p in folder.parent.iterdir()] == ["out"]
    with pytest.raises(DataError, match="out exists already"):
        extract_zip(file, folder)


@pytest.mark.parametrize(
    "name", ["../evil", "a/../../evil", "/evil", "..\\evil", "C:\\evil", "C:evil"]
)
def test_members_may_not_leave_the_folder(tmp_path, name):
    file = archive(tmp_path / "a.zip", {"good": "x", name: "x"})
    with pytest.raises(DataError, match="points outside the archive; refused"):
        extract_zip(file, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_links_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr(link, "/etc")
    with pytest.raises(DataError, match="'link' is a link; refused"):
        extract_zip(tmp_path / "a.zip", tmp_path / "out")


def test_damaged_archives(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"a\.zip is not a sound zip archive"):
        extract_zip(tmp_path / "a.zip", tmp_path / "out")
    file = archive(tmp_path / "b.zip", {"x": "text " * 100})
    file.write_bytes(file.read_bytes().replace(b"text text", b"texT text", 1))
    with pytest.raises(DataError, match=r"b\.zip is not a sound zip archive: Bad CRC"):
        extract_zip(file, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip", "b.zip"]


def test_cache_dir_order(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAG_SOURCEBIAS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_dir() == tmp_path / ".cache" / "rag-sourcebias"
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_dir() == Path("/shared/rag-sourcebias")
    monkeypatch.setenv("RAG_SOURCEBIAS_CACHE", "~/own")
    assert cache_dir() == tmp_path / "own"
