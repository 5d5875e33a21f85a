"""Instruments read by the real SDK, and by none."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("opentelemetry.sdk.metrics")

from monitor_states import alarm, share, snapshot
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.data import MonitorSnapshot
from rag_sourcebias.monitor.metrics import METRICS
from rag_sourcebias.monitor.sinks import Sink
from rag_sourcebias_integrations.opentelemetry.instruments import SkewInstruments

pytestmark = pytest.mark.frameworks


class Monitor:
    def __init__(self) -> None:
        self.n, self.asked = 100, 0

    def snapshot(self) -> tuple[MonitorSnapshot, ...]:
        self.asked += 1
        return (snapshot(self.n), snapshot(self.n, by="style", groups=(share("news", 0.5),)))


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def provider(reader: InMemoryMetricReader) -> Iterator[MeterProvider]:
    made = MeterProvider([reader], shutdown_on_exit=False)
    yield made
    made.shutdown()


def metrics(reader: InMemoryMetricReader) -> dict:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def values(reader: InMemoryMetricReader) -> dict[str, dict[tuple, float]]:
    return {
        name: {tuple(sorted(p.attributes.items())): p.value for p in metric.data.data_points}
        for name, metric in metrics(reader).items()
    }


def test_a_collection(reader: InMemoryMetricReader, provider: MeterProvider) -> None:
    SkewInstruments(Monitor().snapshot, meter=provider.get_meter("test"))
    found = values(reader)
    docs = ("collection", "docs")
    assert found.keys() == {f"rag_sourcebias.{metric.name}" for metric in METRICS}
    assert found["rag_sourcebias.retrievals"] == {(docs,): 100}
    assert found["rag_sourcebias.exposure"][("by", "style"), docs, ("group", "news")] == 0.5


def test_kinds_and_units(reader: InMemoryMetricReader, provider: MeterProvider) -> None:
    SkewInstruments(Monitor().snapshot, meter=provider.get_meter("test"))
    found = metrics(reader)
    for metric in METRICS:
        read = found[f"rag_sourcebias.{metric.name}"]
        assert (read.unit, read.description) == (metric.unit, metric.about)
        if metric.kind != "gauge":
            assert isinstance(read.data, Sum)
            assert read.data.is_monotonic
        else:
            assert isinstance(read.data, Gauge)


def test_each_collection_reads_the_monitor_once(
    reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    monitor = Monitor()
    instruments = SkewInstruments(monitor.snapshot, meter=provider.get_meter("test"))
    assert monitor.asked == 0
    for n in (100, 150, 225):
        monitor.n = n
        instruments.alarm(alarm(rule="change"))
        found = values(reader)
        assert found["rag_sourcebias.retrievals"] == {(("collection", "docs"),): n}
    assert monitor.asked == 3
    changes = (("collection", "docs"), ("rule", "change"))
    assert found["rag_sourcebias.alarms"][changes] == 3


def test_closed_instruments_read_no_more(
    reader: InMemoryMetricReader, provider: MeterProvider
) -> None:
    monitor = Monitor()
    instruments = SkewInstruments(monitor.snapshot, meter=provider.get_meter("test"))
    assert isinstance(instruments, Sink)
    instruments.snapshots([snapshot()])
    instruments.close()
    assert not any(values(reader).values())
    assert monitor.asked == 0


def test_without_an_sdk_nothing_is_read_or_imported() -> None:
    code = (
        "import sys\n"
        "from rag_sourcebias_integrations.opentelemetry import SkewInstruments\n"
        "def never():\n"
        "    raise SystemExit('read')\n"
        "SkewInstruments(never).close()\n"
        "assert 'opentelemetry.sdk' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("prefix", ["", "9", "a b", "_x", "é", "a" * 101])
def test_a_prefix_that_starts_no_name(prefix: str) -> None:
    with pytest.raises(DataError, match="prefix of metrics must be letters, digits, _, "):
        SkewInstruments(Monitor().snapshot, prefix=prefix)
