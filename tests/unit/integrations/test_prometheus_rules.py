"""Alert rules and dashboard ask for nothing that a real scrape does not have."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("prometheus_client")

from monitor_states import snapshot
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from rag_sourcebias.monitor.metrics import RULE_FILES, read_rules
from rag_sourcebias_integrations.prometheus.collector import SkewCollector

pytestmark = pytest.mark.frameworks

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


def promtool(*arguments: str) -> None:
    done = subprocess.run(
        ["promtool", *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not on PATH"
)


@needs_promtool
def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    path = tmp_path / ALERTS
    path.write_text(read_rules(ALERTS), encoding="utf-8")
    promtool("check", "rules", str(path))
