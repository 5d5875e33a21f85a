"""Whatever is asked, an answer comes that is JSON, safe and no server error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote, quote_from_bytes

import pytest
from dashboard_calls import Answer, Asker, written
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_sourcebias.monitor.dashboard.server import create_app
from rag_sourcebias.monitor.dashboard.source import DashboardSource

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
    "%2e%2e/access.py",
    "%2e%2e%2faccess.py",
    "%252e%252e%252faccess.py",
    "..\\access.py",
    "..%5caccess.py",
    "....//access.py",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "vendor/../../access.py",
    "index.html%00.js",
    "%00",
    "C:%5cwindows",
    "file:///etc/passwd",
    "~root",
    ".",
    "",
    "__init__.py",
    "vendor",
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
