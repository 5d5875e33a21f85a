"""Who gets in, what every answer carries, and what comes of whatever is asked."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_from_bytes

import pytest
from dashboard_calls import LOCAL, Answer, Asker, written
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.dashboard.server import (
    Access,
    DashboardServer,
    create_app,
)
from rag_sourcebias.monitor.dashboard.source import DashboardSource

TOKEN = "a-token-of-enough-length"
EVERYTHING = ("/", "/api/overview", "/api/alarms", "/metrics", "/static/x.js", "/nothing")


@pytest.fixture
def asker(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    written(tmp_path / "log.db", 20)
    options = getattr(request, "param", {})
    found = Asker(create_app(DashboardSource(tmp_path / "log.db"), **options))
    yield found
    found.close()


with_token = pytest.mark.parametrize("asker", [{"token": TOKEN}], indirect=True)


def bearer(token: str) -> dict[str, Any]:
    return {"headers": (*LOCAL, (b"authorization", f"Bearer {token}".encode()))}


def cookie(answer: Answer) -> dict[str, Any]:
    value = answer.headers["set-cookie"].partition(";")[0]
    return {"headers": (*LOCAL, (b"cookie", f"other=1; {value}".encode()))}


@with_token
@pytest.mark.parametrize("path", EVERYTHING)
def test_nothing_without_the_token(asker: Asker, path: str) -> None:
    right = TOKEN.encode()
    for header in (
        b"",
        right,
        b"Bearer",
        b"Bearer " + right[:-1],
        b"Basic " + right,
        b"Bearer \xff",
    ):
        answer = asker(path, headers=(*LOCAL, (b"authorization", header)))
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in answer.body.decode()
    assert asker(path).status == 401
    assert asker(path, **bearer(TOKEN)).status != 401


@with_token
def test_health_needs_no_token(asker: Asker) -> None:
    assert asker("/healthz").json == {"status": "ok"}
    assert asker("/healthz?token=x").status == 200


@with_token
def test_the_address_gives_a_cookie_once(asker: Asker) -> None:
    answer = asker(f"/?token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    attributes = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(re.split("; ", attributes))
    assert TOKEN not in attributes
    assert asker("/api/overview", **cookie(answer)).status == 200
    assert asker("/", **cookie(answer)).status in (200, 404)
    wrong = {"headers": (*LOCAL, (b"cookie", attributes.partition(";")[0][:-1].encode()))}
    assert asker("/api/overview", **wrong).status == 401
    assert asker("/api/overview", headers=(*LOCAL, (b"cookie", b"a=\xff\x00;;=,"))).status == 401


@with_token
@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/?token=", 401),
        ("/?token=wrong", 401),
        (f"/?token={TOKEN}x", 401),
        (f"/?token={TOKEN}&token={TOKEN}", 400),
        (f"/?xtoken={TOKEN}", 400),
        (f"/?token={'x' * 300}", 400),
        (f"/?%74oken={TOKEN}", 401),
        (f"/api/overview?token={TOKEN}", 401),
        ("/?%00token=", 400),
        ("/?token=%ff%ed%a0%80", 401),
    ],
)
def test_wrong_tokens_in_the_address(asker: Asker, target: str, status: int) -> None:
    answer = asker(target)
    assert answer.status == status
    assert "set-cookie" not in answer.headers


def test_a_token_in_the_address_where_none_is_needed(asker: Asker) -> None:
    answer = asker("/?token=whatever")
    assert answer.status == 303
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("asker", [{"hosts": ("localhost", "Dash.Example.", "::1")}], indirect=True)
def test_hosts(asker: Asker) -> None:
    def status(*values: bytes) -> int:
        return asker("/healthz", headers=tuple((b"host", value) for value in values)).status

    for good in (b"localhost", b"LOCALHOST:80", b"dash.example:8765", b"dash.example.", b"[::1]:1"):
        assert status(good) == 200
    for bad in (
        b"",
        b"evil.example",
        b"localhost.evil.example",
        b"[::2]",
        b"a@localhost",
        b"localhost\x00",
        b"\xff",
    ):
        assert status(bad) == 421
    assert status() == 421


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/overview", "/api/series?x=1", "/nothing"])
@pytest.mark.parametrize("headers", [LOCAL, ((b"host", b"evil"),)])
def test_safe_headers_on_every_answer(asker: Asker, path: str, headers: Any) -> None:
    found = asker(path, headers=headers).headers
    policy = dict(part.split(" ", 1) for part in found["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in found["content-security-policy"]
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["x-frame-options"] == "DENY"
    assert found["cross-origin-resource-policy"] == "same-origin"
    assert found["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "X"]
)
def test_other_methods(asker: Asker, method: str) -> None:
    answer = asker("/api/overview", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_bodies_are_refused(asker: Asker) -> None:
    for header in ((b"content-length", b"5"), (b"transfer-encoding", b"chunked")):
        assert asker("/api/overview", headers=(*LOCAL, header), body=b"hello").status == 413


def test_too_many_parameters(asker: Asker) -> None:
    assert asker("/api/series?" + "&".join(["label=a=b"] * 41)).status == 400


def test_files_of_the_page(asker: Asker) -> None:
    page = asker("/")
    assert page.status == 200
    names = re.findall(r'(?:src|href)="(static/[^"]+)"', page.body.decode())
    assert names
    assert {asker(f"/{name}").status for name in names} == {200}


def test_an_error_tells_nothing(
    asker: Asker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: DashboardSource, parameters: object) -> dict[str, Any]:
        raise RuntimeError("a secret path")

    monkeypatch.setattr(DashboardSource, "overview", broken)
    answer = asker("/api/overview")
    assert (answer.status, answer.json) == (
        500,
        {"error": "the dashboard failed; its log says why"},
    )
    assert "a secret path" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org"])
def test_a_token_is_required_elsewhere(tmp_path: Path, host: str) -> None:
    with pytest.raises(DataError, match="other machines: give a token, or listen at 127"):
        DashboardServer(DashboardSource(tmp_path / "log.db"), host=host)


@pytest.mark.parametrize(
    "token", ["", "short", "x" * 15, "x" * 201, "with space in the middle", "ü" * 20]
)
def test_tokens_that_cannot_be_used(token: str) -> None:
    with pytest.raises(DataError, match="16 to 200 visible ASCII") as caught:
        Access(token, ("localhost",))
    assert not token or token not in str(caught.value)


def test_hosts_have_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least one host"):
        create_app(DashboardSource(tmp_path / "log.db"), hosts=())


@pytest.mark.parametrize("port", [-1, 65_536])
def test_ports_out_of_range(tmp_path: Path, port: int) -> None:
    with pytest.raises(DataError, match="port must be 0"):
        DashboardServer(DashboardSource(tmp_path / "log.db"), port=port)


# Whatever is asked, an answer comes that is JSON, safe and no server error


VIEWS = ("overview", "series", "alarms", "retrievals")
NAMES = ("by", "since", "until", "label", "measure", "limit", "group", "first", "before")
FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
ODD = st.one_of(
    st.sampled_from(
        ["nan", "inf", "-inf", "1e309", "-1", "0", "9" * 30, "1_0", "٣", " 1", "1 ", "0x10",
         "1.5e3", "\x00", "", "=", "a=", "=b", "a=b=c", "a=\x00", "source", "../../etc/passwd",
         "%", "%00",
         "' OR 1=1 --", "<script>", "\ud7ff", "1800000000", "99999999999", "-99999999999.5"]
    ),
    st.text(max_size=30),
)  # fmt: skip


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    path = tmp_path_factory.mktemp("fuzz") / "log.db"
    written(path, 60)
    asker = Asker(create_app(DashboardSource(path)))
    yield asker
    asker.close()


def sound(answer: Answer, *statuses: int) -> None:
    assert answer.status in statuses
    assert answer.headers["x-content-type-options"] == "nosniff"
    if answer.status != 200:
        assert set(answer.json) == {"error"}
        assert "Traceback" not in answer.json["error"]
    if answer.headers["content-type"] == "application/json":
        json.loads(answer.body, parse_constant=pytest.fail)


@FUZZ
@given(
    view=st.sampled_from(VIEWS),
    pairs=st.lists(st.tuples(st.sampled_from(NAMES), ODD), max_size=5),
)
@example(view="series", pairs=[("label", "a" * 201 + "=b")])
@example(view="series", pairs=[("since", "-99999999999")])
@example(view="retrievals", pairs=[("before", "999999999999999"), ("group", "\x00")])
@example(view="retrievals", pairs=[("limit", "0")])
@example(view="retrievals", pairs=[("since", "5"), ("until", "5")])
def test_values(ask: Asker, view: str, pairs: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
    sound(ask(f"/api/{view}?{query}"), 200, 400)


@FUZZ
@given(view=st.sampled_from(VIEWS), query=st.binary(max_size=200))
def test_queries_of_any_bytes(ask: Asker, view: str, query: bytes) -> None:
    sound(ask(f"/api/{view}?".encode() + query.replace(b"#", b"")), 200, 400)


TRAVERSAL = (
    "../access.py",
    "..%2faccess.py",
    "%252e%252e%252faccess.py",
    "..\\access.py",
    "..%5caccess.py",
    "//etc/passwd",
    "index.html%00.js",
    "%00",
    "",
    "__init__.py",
    "vendor/",
    "%c0%ae%c0%ae/access.py",
    "\u2025/access.py",
)


@pytest.mark.parametrize("path", TRAVERSAL)
@pytest.mark.parametrize("prefix", ["/static/", "/", "/api/"])
def test_no_path_leads_out(ask: Asker, path: str, prefix: str) -> None:
    if (prefix, path) == ("/", ""):
        return
    sound(ask(prefix + path), 404)


@FUZZ
@given(path=st.binary(max_size=60))
def test_paths_of_any_bytes(ask: Asker, path: bytes) -> None:
    sound(ask(b"/static/" + quote_from_bytes(path).encode()), 404)
    sound(ask(b"/" + path.replace(b"?", b"")), 200, 404)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("series?by=colour", "Invalid enum value 'colour' - at `$.by`; accepted: by, since"),
        ("series?measure=x", "'x' - at `$.measure`"),
        ("series?since=nan", "Expected `float` > -100000000000.0 - at `$.since`"),
        ("series?since=2&until=1", "since must be before until"),
        ("series?by=source&by=style", "'by' is given twice"),
        ("series?colour=1", "unknown field `colour`; accepted: by, since"),
        ("overview?x=1", "accepted: none"),
        ("series?label=a", "matching regex '^[^=]+=' - at `$.label[0]`"),
        ("series?label=a=1&label=a=2", "two values of one label"),
        ("retrievals?limit=201", "Expected `int` <= 200 - at `$.limit`"),
        ("retrievals?first=yes", "Expected `bool`, got `str` - at `$.first`"),
        ("retrievals?before=-1", "Expected `int` >= 0 - at `$.before`"),
        ("retrievals?group=" + "x" * 202, "`str` of length <= 200 - at `$.group`"),
        ("alarms?limit=", "at `$.limit`"),
    ],
)
def test_mistakes_are_named(ask: Asker, target: str, words: str) -> None:
    answer = ask(f"/api/{target}")
    assert answer.status == 400
    assert words in answer.json["error"]
