from __future__ import annotations

import hashlib
import shutil
import socket
import ssl
import stat
import subprocess
import tarfile
import urllib.request
import zipfile
from pathlib import Path

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.samples import cache_dir, download, extract_zip

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


def test_a_file_that_changes_on_the_server_meanwhile_is_refused(tmp_path, server):
    server.files["/f"] = BODY[::-1]
    server.script = ["break"]
    with pytest.raises(DataError, match="connection broke"):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA, attempts=1)
    server.files["/f"] = BODY
    with pytest.raises(DataError, match="not the expected file"):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA)
    assert list(tmp_path.iterdir()) == []
    download(f"{server.url}/f", tmp_path / "f", checksum=SHA)
    assert (tmp_path / "f").read_bytes() == BODY


def test_a_file_cut_short_without_a_length_is_refused(tmp_path, server):
    server.files["/f"] = BODY
    server.script = ["cut"]
    with pytest.raises(DataError, match="not the expected file"):
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
        (
            "file:///etc/hosts",
            SHA,
            "url must be an http or https address .* got .file:///etc/hosts.",
        ),
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


def test_a_redirection_within_http_is_followed_and_what_comes_is_checked(tmp_path, server):
    server.files |= {"/f": BODY, "/swapped": BODY[::-1]}
    server.places |= {"/old": f"{server.url}/f", "/taken": f"{server.url}/swapped"}
    download(f"{server.url}/old", tmp_path / "f", checksum=SHA)
    assert (tmp_path / "f").read_bytes() == BODY
    with pytest.raises(DataError, match="taken is not the expected file"):
        download(f"{server.url}/taken", tmp_path / "g", checksum=SHA)
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("scheme", ["ftp", "file", "data", "javascript"])
def test_a_redirection_out_of_http_is_refused(tmp_path, server, scheme):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        server.places["/f"] = f"{scheme}://127.0.0.1:{port}/{Path(__file__).resolve()}"
        with pytest.raises(DataError, match=f"(an address of {scheme}, |302 .* is not allowed)"):
            download(f"{server.url}/f", tmp_path / "f", checksum=SHA, timeout=0.5)
        other.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has connected
            other.accept()
    assert len(server.ranges) == 1
    assert list(tmp_path.iterdir()) == []


def test_redirections_in_a_circle_end(tmp_path, server):
    server.places["/f"] = f"{server.url}/f"
    with pytest.raises(DataError, match="the server answered 302"):
        download(f"{server.url}/f", tmp_path / "f", checksum=SHA)
    assert len(server.ranges) < 20


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_a_redirection_from_https_to_http_is_refused(tmp_path, server, tls_server, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    made = ("-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2")
    subprocess.run(["openssl", "req", "-x509", *made, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure = tls_server(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    server.files["/f"] = secure.files["/f"] = BODY
    secure.places |= {"/down": f"{server.url}/f", "/on": f"{secure.url}/f"}
    download(f"{secure.url}/on", tmp_path / "f", checksum=SHA)
    with pytest.raises(DataError, match="redirects to an address of http, which is not followed"):
        download(f"{secure.url}/down", tmp_path / "g", checksum=SHA)
    assert server.ranges == []
    with urllib.request.urlopen(f"{secure.url}/down") as answer:  # what is prevented
        assert answer.read() == BODY


def test_credentials_go_to_their_host_alone_and_into_no_message(tmp_path, server):
    server.files["/f?key=s3cret-q"] = BODY
    with_password = server.url.replace("//", "//me:s3cret%2Fpw@")
    download(f"{with_password}/f?key=s3cret-q", tmp_path / "f", checksum=SHA)
    assert server.authorizations == ["Basic bWU6czNjcmV0L3B3"]
    server.places["/old"] = f"{server.url}/f?key=s3cret-q"
    download(f"{with_password}/old", tmp_path / "g", checksum=SHA)
    assert server.authorizations[1:] == ["Basic bWU6czNjcmV0L3B3", None]
    for path in ("absent", "f b", "f\x00"):
        with pytest.raises(DataError) as caught:
            download(f"{with_password}/{path}?key=s3cret-q", tmp_path / "h", checksum=SHA)
        assert "s3cret" not in f"{caught.value}{caught.value.__cause__}"


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


def test_other_archives_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.zip", "w:gz") as file:
        file.addfile(tarfile.TarInfo("../evil"))
    with pytest.raises(DataError, match="not a sound zip archive"):
        extract_zip(tmp_path / "a.zip", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.zip"]


def test_damaged_archives(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"a\.zip is not a sound zip archive"):
        extract_zip(tmp_path / "a.zip", tmp_path / "out")
    file = archive(tmp_path / "b.zip", {"x": "text " * 100})
    file.write_bytes(file.read_bytes().replace(b"text text", b"texT text", 1))
    with pytest.raises(DataError, match=r"b\.zip is not a sound zip archive \(Bad CRC"):
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
