"""Scrapes over HTTP by prometheus_client's own server, read by its own parser."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

pytest.importorskip("prometheus_client")

from monitor_states import alarm, share, snapshot
from prometheus_client import CollectorRegistry, Counter, generate_latest, start_http_server
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.data import RANK_LIMITS, MonitorSnapshot
from rag_sourcebias.monitor.sinks import Sink
from rag_sourcebias_integrations.prometheus.collector import SkewCollector

pytestmark = pytest.mark.frameworks


class Monitor:
    def __init__(self) -> None:
        self.n, self.asked = 100, 0

    def snapshot(self) -> tuple[MonitorSnapshot, ...]:
        self.asked += 1
        news = (share("news", 0.5),)
        return (
            snapshot(self.n),
            snapshot(self.n, by="style", groups=news),
            snapshot(2 * self.n, labels={"collection": "faq"}, groups=()),
        )


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def address(registry: CollectorRegistry) -> Iterator[str]:
    server, thread = start_http_server(0, addr="127.0.0.1", registry=registry)
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


def scrape(address: str) -> str:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(address, timeout=60) as answer:
        return answer.read().decode()


Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def series(text: str) -> Series:
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    found = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in samples}
    assert len(found) == len(samples)  # a series that is there twice is an error in Prometheus
    return found


def value(found: Series, name: str, **labels: str) -> float:
    return found[f"rag_sourcebias_{name}", tuple(sorted(labels.items()))]


def test_a_scrape(registry: CollectorRegistry, address: str) -> None:
    SkewCollector(
        Monitor().snapshot,
        registry=registry,
        lost=lambda: {"langchain": {"observer raised": 4}},
    )
    found = series(scrape(address))
    docs = {"collection": "docs"}
    human = {**docs, "by": "source", "group": "human"}
    assert value(found, "retrievals_total", **docs) == 100
    assert value(found, "retrievals_total", collection="faq") == 200
    assert value(found, "empty_retrievals_total", **docs) == 10
    assert value(found, "retrieved_documents_total", **docs) == 1000
    assert value(found, "exposure_ratio", **human) == 0.25
    assert value(found, "exposure_lower_ratio", **human) == pytest.approx(0.2)
    assert value(found, "exposure_upper_ratio", **human) == pytest.approx(0.3)
    assert value(found, "exposure_baseline_ratio", **human) == 0.5
    assert value(found, "top1_ratio", **human) == 0.375
    assert value(found, "exposure_ratio", **{**human, "group": "untagged"}) == 0.125
    assert value(found, "exposure_ratio", **docs, by="style", group="news") == 0.5
    assert value(found, "group_documents_total", **human) == 200
    limits = ("1.0", "2.0", "3.0", "5.0", "10.0", "20.0", "50.0", "100.0", "+Inf")
    ranks = [value(found, "retrieved_rank_bucket", **human, le=le) for le in limits]
    assert ranks == [50, 100, 150, 150, 150, 150, 150, 200, 200]
    assert value(found, "corrected_share_ratio", **human) == 0.3125
    assert value(found, "alarm_active", **docs, rule="baseline") == 1
    assert value(found, "group_alarm_active", **human, measure="exposure") == 1
    assert value(found, "group_alarm_active", **human, measure="top1") == 0
    assert value(found, "alarms_total", **docs, rule="shift") == 0
    assert value(found, "dropped_events_total", part="monitor", reason="queue is full") == 3
    assert value(found, "dropped_events_total", part="langchain", reason="observer raised") == 4


def test_names_and_values_keep_the_rules_of_prometheus(
    registry: CollectorRegistry, address: str
) -> None:
    SkewCollector(Monitor().snapshot, registry=registry)
    text = scrape(address)
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("rag_sourcebias_")
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            if sample.name.endswith("_ratio"):
                lowest, highest = (-2, 2) if "relative_delta" in sample.name else (0, 1)
                assert lowest <= sample.value <= highest
        assert len({tuple(sorted(s.labels)) for s in family.samples}) == 1
    assert {name for _, labels in series(text) for name, _ in labels} == {
        *("collection", "by", "group", "measure", "rule", "part", "reason"),
        *("label", "le"),
    }


def test_the_order_of_the_monitor_does_not_matter(registry: CollectorRegistry) -> None:
    states = list(Monitor().snapshot())
    SkewCollector(lambda: states, registry=registry)
    text = generate_latest(registry)
    assert generate_latest(registry) == text
    states.reverse()
    assert generate_latest(registry) == text


def test_openmetrics_is_valid_too(registry: CollectorRegistry) -> None:
    SkewCollector(Monitor().snapshot, registry=registry)
    kinds = {family.name: family.type for family in read_open(open_metrics(registry).decode())}
    assert kinds["rag_sourcebias_retrievals"] == "counter"
    assert kinds["rag_sourcebias_exposure_ratio"] == "gauge"
    assert kinds["rag_sourcebias_retrieved_rank"] == "histogram"


def test_buckets_rise_from_limit_to_limit(registry: CollectorRegistry) -> None:
    SkewCollector(lambda: (snapshot(7), snapshot(9, by="style")), registry=registry)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    ranks = next(f for f in families if f.name == "rag_sourcebias_retrieved_rank")
    assert ranks.type == "histogram"
    rows = [ranks.samples[i : i + 9] for i in range(0, len(ranks.samples), 9)]
    assert len(rows) == 4
    for row in rows:
        assert len({tuple(sorted({**s.labels, "le": ""}.items())) for s in row}) == 1
        assert [float(s.labels["le"]) for s in row] == [*RANK_LIMITS, float("inf")]
        assert [s.value for s in row] == sorted(s.value for s in row)


def test_counters_rise_and_nothing_counts_twice(registry: CollectorRegistry, address: str) -> None:
    monitor = Monitor()
    collector = SkewCollector(monitor.snapshot, registry=registry)
    scrapes = [series(scrape(address))]
    scrapes.append(series(scrape(address)))
    assert scrapes[0] == scrapes[1]
    monitor.n = 150
    collector.alarm(alarm())
    scrapes.append(series(scrape(address)))
    for key, before in scrapes[1].items():
        if key[0].endswith("_total"):
            assert scrapes[2][key] >= before
    assert value(scrapes[2], "retrievals_total", collection="docs") == 150
    assert value(scrapes[2], "alarms_total", collection="docs", rule="shift") == 1
    assert monitor.asked == 3


def test_any_text_may_be_a_label(registry: CollectorRegistry, address: str) -> None:
    texts = ('a"b', "a\\b", "a\nb", "ü", "x{y}", " ", ",")
    states = tuple(
        snapshot(labels={"service.name": text}, groups=(share(text, 0.5),)) for text in texts
    )
    SkewCollector(lambda: states, registry=registry)
    found = series(scrape(address))
    for text in texts:
        assert value(found, "retrievals_total", service_name=text) == 100
        assert value(found, "exposure_ratio", service_name=text, by="source", group=text) == 0.5


def test_a_monitor_that_fails_leaves_the_other_metrics_alone(
    registry: CollectorRegistry, address: str
) -> None:
    def broken() -> tuple[MonitorSnapshot, ...]:
        raise RuntimeError("text of a user")

    Counter("app_requests", "Of the application.", registry=registry).inc()
    collector = SkewCollector(broken, registry=registry)
    text = scrape(address)
    found = series(text)
    assert found["app_requests_total", ()] == 1
    assert (
        value(found, "dropped_events_total", part="monitor", reason="monitor could not be read")
        == 1
    )
    assert "text of a user" not in text
    assert collector.dropped.total == 1


def test_registering_does_not_read_and_happens_once(registry: CollectorRegistry) -> None:
    monitor = Monitor()
    collector = SkewCollector(monitor.snapshot, registry=registry)
    with pytest.raises(DataError, match="metrics named rag_sourcebias_… already; close the"):
        SkewCollector(monitor.snapshot, registry=registry)
    SkewCollector(monitor.snapshot, registry=registry, prefix="second").close()
    assert monitor.asked == 0
    collector.close()
    collector.close()
    assert generate_latest(registry) == b""
    SkewCollector(monitor.snapshot, registry=registry)
    assert b"rag_sourcebias_retrievals_total" in generate_latest(registry)


@pytest.mark.parametrize("prefix", ["", "9", "a-b", "a b", "_x", "é"])
def test_a_prefix_that_starts_no_name(registry: CollectorRegistry, prefix: str) -> None:
    with pytest.raises(DataError, match="prefix of metrics must be letters, digits and _"):
        SkewCollector(Monitor().snapshot, registry=registry, prefix=prefix)


def test_the_default_registry_is_the_one_of_the_application() -> None:
    code = (
        "from prometheus_client import generate_latest\n"
        "from rag_sourcebias_integrations.prometheus import SkewCollector\n"
        "SkewCollector(tuple)\n"
        "assert b'rag_sourcebias_retrievals_total' in generate_latest()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


def test_it_is_a_sink(registry: CollectorRegistry) -> None:
    collector = SkewCollector(Monitor().snapshot, registry=registry)
    assert isinstance(collector, Sink)
    collector.snapshots([snapshot()])


@pytest.mark.parametrize(
    ("package", "missing", "message"),
    [
        ("prometheus", "prometheus_client", r"prometheus-client.*rag-sourcebias\[prometheus\]"),
        ("opentelemetry", "opentelemetry", r"opentelemetry-api.*rag-sourcebias\[otel\]"),
    ],
)
def test_what_is_missing_is_named(package: str, missing: str, message: str) -> None:
    code = (
        "import importlib.abc, re, sys\n"
        "class Hidden(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {missing!r}:\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from rag_sourcebias.core.errors import MissingExtraError\n"
        "try:\n"
        f"    import rag_sourcebias_integrations.{package}\n"
        "except MissingExtraError as error:\n"
        f"    assert re.search({message!r}, str(error)), error\n"
        "else:\n"
        "    raise SystemExit('imported')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
