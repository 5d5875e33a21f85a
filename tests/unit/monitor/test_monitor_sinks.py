"""Sinks: log lines of alarms and states, groups, and alarms over real HTTP on loopback."""

import hashlib
import hmac
import json
import logging
from typing import Any

import pytest
from alarm_server import alarm_server
from monitor_states import alarm, share, snapshot

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.sinks import LoggingSink, Sink, SinkGroup, WebhookSink


def test_an_alarm_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        LoggingSink().alarm(alarm())
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "rag_sourcebias.monitor",
            "WARNING",
            f"retrieval skew alarm (shift): {alarm().message}",
        )
    ]


def test_a_state_is_one_info_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        LoggingSink().snapshots([snapshot(), snapshot(7, labels={}, groups=())])
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        (
            "INFO",
            "retrieval skew by source: 100 retrieval(s), 1000 document(s), 10 empty, 3 event(s) "
            "dropped (collection=docs): untagged exposure 0.125 [0.075, 0.175]; human exposure "
            "0.250 [0.200, 0.300], corrected for tag errors 0.312, baseline 0.500, ALARM; llm:gpt "
            "exposure 0.625 [0.575, 0.675], corrected for tag errors 0.688, baseline 0.500; human "
            "share of first ranks 0.375 [0.325, 0.425], baseline 0.500",
        ),
        (
            "INFO",
            "retrieval skew by source: 7 retrieval(s), 70 document(s), 0 empty, 3 event(s) dropped",
        ),
    ]


@pytest.mark.parametrize("text", ["a\nCRITICAL root: forged", "a\r", "a\u2028b", "a\x1b[31m"])
def test_no_label_breaks_a_line(caplog: pytest.LogCaptureFixture, text: str) -> None:
    sink = LoggingSink()
    with caplog.at_level(logging.INFO, logger="rag_sourcebias.monitor"):
        sink.alarm(alarm(message=f"tenant {text}: exposure of {text} went up"))
        sink.snapshots([snapshot(labels={"tenant": text}, groups=(share(text, 0.5),))])
    lines = [record.getMessage() for record in caplog.records]
    assert [line.isprintable() for line in lines] == [True, True]
    assert f"a\\u{ord(text[1]):04x}" in lines[0]


def test_a_log_handler_that_raises_stays_away_from_the_monitor() -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    logger = logging.getLogger("rag_sourcebias.test_broken_handler")
    logger.propagate = False
    logger.addHandler(Broken())
    sink = LoggingSink(logger=logger)
    sink.alarm(alarm())
    assert sink.dropped.by_reason == {"log handler raised": 1}


class Collecting:
    def __init__(self) -> None:
        self.told: list[object] = []

    def alarm(self, alarm: object) -> None:
        self.told.append(alarm)

    def snapshots(self, snapshots: object) -> None:
        self.told.append(tuple(snapshots))

    def close(self) -> None:
        self.told.append("closed")


class Broken(Collecting):
    def alarm(self, alarm: object) -> None:
        raise RuntimeError("broken")

    snapshots = alarm

    def close(self) -> None:
        raise RuntimeError("broken")


def test_a_group_tells_every_sink_whatever_another_does() -> None:
    first, last = Collecting(), Collecting()
    group = SinkGroup(first, Broken())
    group.add(last)
    assert isinstance(group, Sink)
    group.alarm(alarm())
    group.snapshots(state for state in [snapshot()])
    group.close()
    assert first.told == last.told == [alarm(), (snapshot(),), "closed"]
    assert group.dropped.by_reason == {"sink raised": 3}


# Alarms over real HTTP on loopback, to an endpoint that answers, fails, hangs or is not there


SECRET = "correct horse battery staple"
LONG = 60.0  # nothing waits so long; a test that fails ends all the same


def sink(url: str, **settings: Any) -> WebhookSink:
    return WebhookSink(url, **{"timeout": LONG, "pause": 0.001, **settings})


def test_an_alarm_arrives_as_json() -> None:
    with alarm_server(200) as server:
        hook = sink(server.url)
        hook.alarm(alarm(statistic=float("inf"), lower=float("nan")))
        assert hook.flush(LONG)
        hook.close()
    (received,) = server.received
    assert received.path == "/hooks/path-token?room=query-token"
    assert received.headers["content-type"] == "application/json"
    assert "rag-sourcebias-signature" not in received.headers
    told = json.loads(received.body)
    assert {key: told[key] for key in ("kind", "version")} == {"kind": "alarm", "version": 1}
    assert told["alarm"] == {**alarm().to_dict(), "statistic": None, "lower": None}
    assert hook.dropped.total == 0


@pytest.mark.parametrize("secret", [SECRET, SECRET.encode()])
def test_a_signature_proves_body_and_time(secret: str | bytes) -> None:
    with alarm_server(204) as server:
        hook = sink(server.url, secret=secret)
        hook.alarm(alarm())
        hook.close(LONG)
    (received,) = server.received
    signed = received.headers["rag-sourcebias-timestamp"].encode() + b"." + received.body
    wanted = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert received.headers["rag-sourcebias-signature"] == f"sha256={wanted}"


def test_alarms_arrive_in_order() -> None:
    with alarm_server(200) as server:
        hook = sink(server.url)
        for n in range(20):
            hook.alarm(alarm(n=n))
        hook.close(LONG)
    assert [json.loads(r.body)["alarm"]["n"] for r in server.received] == list(range(20))
    assert len({r.headers["rag-sourcebias-delivery"] for r in server.received}) == 20


@pytest.mark.parametrize("fault", [500, 503, 429, 408, "garbage"])
def test_what_may_pass_is_tried_again_under_the_same_delivery(fault: int | str) -> None:
    with alarm_server(fault, fault, 200) as server:
        hook = sink(server.url)
        hook.alarm(alarm())
        hook.close(LONG)
    assert len(server.received) == 3
    assert len({(r.headers["rag-sourcebias-delivery"], r.body) for r in server.received}) == 1
    assert hook.dropped.total == 0


def test_after_the_last_attempt_the_alarm_is_dropped_and_the_next_one_is_sent() -> None:
    with alarm_server(500, 500, 500, 200) as server:
        hook = sink(server.url, attempts=3)
        hook.alarm(alarm(n=1))
        hook.alarm(alarm(n=2))
        hook.close(LONG)
    assert [json.loads(r.body)["alarm"]["n"] for r in server.received] == [1, 1, 1, 2]
    assert hook.dropped.by_reason == {"webhook endpoint answered with status 500": 1}


@pytest.mark.parametrize("status", [302, 400, 401, 404, 410])
def test_what_will_not_pass_is_not_tried_again(status: int) -> None:
    with alarm_server(status) as server:
        hook = sink(server.url)
        hook.alarm(alarm())
        hook.close(LONG)
    assert len(server.received) == 1
    assert hook.dropped.by_reason == {f"webhook endpoint answered with status {status}": 1}


def test_an_endpoint_that_hangs_is_given_up() -> None:
    with alarm_server("hang") as server:
        hook = sink(server.url, timeout=0.05, attempts=2)
        hook.alarm(alarm())
        assert hook.flush(LONG)
        hook.close()
        assert hook.dropped.by_reason == {"webhook endpoint did not answer in time": 1}


def test_closing_does_not_wait_for_ever() -> None:
    with alarm_server("hang", 500) as server:
        hook = sink(server.url, pause=LONG)
        for n in range(3):
            hook.alarm(alarm(n=n))
        assert server.hanging.wait(LONG)
        hook.close(0.01)
        assert hook.dropped.by_reason == {"queue closed before it was empty": 2}
        hook.alarm(alarm())
        assert hook.dropped.by_reason["queue is closed"] == 1


@pytest.mark.parametrize("fault", [500, 404, "garbage"])
def test_no_secret_is_logged_or_shown(caplog: pytest.LogCaptureFixture, fault: int | str) -> None:
    with caplog.at_level(logging.DEBUG), alarm_server(fault) as server:
        hook = sink(server.url, secret=SECRET, attempts=2)
        hook.alarm(alarm())
        hook.close(LONG)
        assert repr(hook) == f"WebhookSink('http://127.0.0.1:{server.server_address[1]}/…')"
    shown = caplog.text + repr(hook) + repr(vars(hook)) + str(hook.dropped.by_reason)
    assert "1 event(s) dropped so far" in shown
    for hidden in (SECRET, "path-token", "query-token"):
        assert hidden not in shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host/TOKEN", r"must start with http:// or https://, got scheme 'ftp'"),
        ("host/TOKEN", "must start with http:// or https://, got scheme ''"),
        ("http:///TOKEN", "has no host"),
        ("http://user:TOKEN@host/", "holds a user or password"),
        ("http://host:99999/TOKEN", "no valid host or port"),
        ("http://[::1/TOKEN", "no valid host or port"),
        ("http://a..b/TOKEN", "no valid host or port"),
        ("http://host/TOKEN\r\nX-Header: 1", "holds spaces or characters"),
        ("http://host/TOKEN\u00e9", "holds spaces or characters"),
    ],
)
def test_a_url_that_cannot_be_posted_to(url: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        WebhookSink(url)
    assert "TOKEN" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be a number of seconds above 0, got nan"),
        ({"pause": float("inf")}, "pause must be a number of seconds above 0, got inf"),
        ({"attempts": 0}, "attempts must be at least 1, got 0"),
        ({"capacity": 0}, "capacity must be at least 1, got 0"),
        ({"secret": ""}, "secret of the webhook is empty"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        WebhookSink("https://host/", **settings)
