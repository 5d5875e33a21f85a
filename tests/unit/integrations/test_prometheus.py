"""Scrapes over HTTP, and alert rules and a dashboard that ask for nothing else."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("prometheus_client")

from monitor_states import alarm, share, snapshot
from prometheus_client import CollectorRegistry, Counter, generate_latest, start_http_server
from prometheus_client.openmetrics.exposition import generate_latest as open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.data import MonitorSnapshot
from rag_sourcebias.monitor.metrics import RULE_FILES, read_rules, write_rules
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


def test_openmetrics_is_valid_too(registry: CollectorRegistry) -> None:
    SkewCollector(Monitor().snapshot, registry=registry)
    kinds = {family.name: family.type for family in read_open(open_metrics(registry).decode())}
    assert kinds["rag_sourcebias_retrievals"] == "counter"
    assert kinds["rag_sourcebias_exposure_ratio"] == "gauge"
    assert kinds["rag_sourcebias_retrieved_rank"] == "histogram"


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


# Alert rules and dashboard ask for nothing that a real scrape does not have


ALERTS, DASHBOARD = RULE_FILES
OF_THE_SCRAPER = {"job", "instance", "pod"}


def scraped() -> dict[str, set[str]]:
    """Label names of every series of a scrape."""
    registry = CollectorRegistry()
    SkewCollector(lambda: (snapshot(),), registry=registry)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {s.name: set(s.labels) for family in families for s in family.samples}


def alerts() -> list[dict[str, Any]]:
    return [
        rule for group in yaml.safe_load(read_rules(ALERTS))["groups"] for rule in group["rules"]
    ]


def dashboard() -> dict[str, Any]:
    return json.loads(read_rules(DASHBOARD))


def expressions() -> list[str]:
    targets = [target for panel in dashboard()["panels"] for target in panel["targets"]]
    return [rule["expr"] for rule in alerts()] + [target["expr"] for target in targets]


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\brag_sourcebias_[a-z0-9_]+", text))


def selectors(node: Any) -> Iterator[Any]:
    """Every vector selector of an expression, however deep."""
    for part in ("expr", "lhs", "rhs", "vector_selector"):
        inner = getattr(node, part, None)
        if inner is not None:
            yield from selectors(inner)
    for inner in getattr(node, "args", None) or ():
        yield from selectors(inner)
    if hasattr(node, "matchers"):
        yield node


def test_a_file_that_is_there_stays_and_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path,
) -> None:
    (tmp_path / ALERTS).write_text("mine", encoding="utf-8")
    with pytest.raises(DataError, match=r"has alerts\.yml already; say overwrite=True"):
        write_rules(tmp_path)
    assert (tmp_path / ALERTS).read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [ALERTS]
    write_rules(tmp_path, overwrite=True)
    assert (tmp_path / ALERTS).read_text(encoding="utf-8") == read_rules(ALERTS)
    with pytest.raises(DataError, match="rule files cannot be written to"):
        write_rules(tmp_path / ALERTS / "folder")


def test_every_expression_is_promql_about_labels_that_exist() -> None:
    parser = pytest.importorskip("promql_parser")
    known = scraped()
    for expression in expressions():
        found = list(selectors(parser.parse(expression)))
        assert {selector.name for selector in found} == names_in(expression)
        for selector in found:
            asked = {matcher.name for matcher in selector.matchers.matchers}
            assert asked <= known[selector.name], expression
        grouped = re.findall(r"\b(?:by|without) \(([a-z_, ]+)\)", expression)
        labels = {label.strip() for part in grouped for label in part.split(",")}
        every = set().union(*(known[name] for name in names_in(expression)))
        assert labels <= every | OF_THE_SCRAPER, expression


def test_alerts_speak_of_labels_that_their_series_have() -> None:
    known = scraped()
    for rule in alerts():
        shown = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        assert shown <= set().union(*(known[name] for name in names_in(rule["expr"]))), rule
        assert {"summary", "description"} == rule["annotations"].keys()
        assert rule["labels"]["severity"] in {"info", "warning"}


def test_the_dashboard_is_whole() -> None:
    board = dashboard()
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in board["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    variables = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)\}?", read_rules(DASHBOARD))) - {"__all"}
    assert used == variables


def test_every_metric_is_shown_or_alarmed_about_and_nothing_else() -> None:
    shown = set().union(*(names_in(expression) for expression in expressions()))
    assert shown == set(scraped())
    variables = dashboard()["templating"]["list"]
    asked = names_in(" ".join(v["query"]["query"] for v in variables if v["type"] == "query"))
    assert asked
    assert asked <= shown
