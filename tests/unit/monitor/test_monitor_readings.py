"""What metric systems are told: each retrieval once, and nothing that is not known."""

from __future__ import annotations

import math
import threading

import pytest
from monitor_states import alarm, share, snapshot

from rag_sourcebias.monitor.reader import MonitorReader
from rag_sourcebias.monitor.readings import METRICS, label_values, read_snapshots

DOCS = (("collection", "docs"),)


def test_every_value_of_a_snapshot() -> None:
    read = read_snapshots([snapshot()])
    assert read["retrievals"] == {DOCS: 100.0}
    assert read["empty_retrievals"] == {DOCS: 10.0}
    assert read["retrieved_documents"] == {DOCS: 1000.0}
    by = ("by", "source")
    assert read["exposure"] == {
        (by, *DOCS, ("group", "untagged")): 0.125,
        (by, *DOCS, ("group", "human")): 0.25,
        (by, *DOCS, ("group", "llm:gpt")): 0.625,
    }
    assert read["exposure.lower"][(by, *DOCS, ("group", "human"))] == pytest.approx(0.2)
    assert read["exposure.upper"][(by, *DOCS, ("group", "human"))] == pytest.approx(0.3)
    assert read["top1"] == {(by, *DOCS, ("group", "human")): 0.375}
    assert read["top1.baseline"] == {(by, *DOCS, ("group", "human")): 0.5}
    assert read["exposure.baseline"].keys() == {
        (by, *DOCS, ("group", name)) for name in ("human", "llm:gpt")
    }
    assert read["group_alarm.active"] == {
        (by, *DOCS, ("group", "human"), ("measure", "exposure")): 1.0,
        (by, *DOCS, ("group", "llm:gpt"), ("measure", "exposure")): 0.0,
        (by, *DOCS, ("group", "human"), ("measure", "top1")): 0.0,
    }
    assert read["alarm.active"] == {(*DOCS, ("rule", "baseline")): 1.0}
    assert read["dropped_events"] == {(("reason", "queue is full"),): 3.0}


def test_a_retrieval_watched_by_source_and_by_style_counts_once() -> None:
    quiet = (share("news", 0.5, baseline=0.5),)
    read = read_snapshots([snapshot(100), snapshot(90, by="style", groups=quiet)])
    assert read["retrievals"] == {DOCS: 100.0}
    assert read["dropped_events"] == {(("reason", "queue is full"),): 3.0}
    assert read["alarm.active"] == {(*DOCS, ("rule", "baseline")): 1.0}
    assert (("by", "style"), *DOCS, ("group", "news")) in read["exposure"]
    assert len(read["exposure"]) == 4


def test_collections_stay_apart() -> None:
    faq = snapshot(5, labels={"collection": "faq"})
    read = read_snapshots([snapshot(100), faq])
    assert read["retrievals"] == {DOCS: 100.0, (("collection", "faq"),): 5.0}


def test_labels_that_only_some_have_are_empty_elsewhere() -> None:
    read = read_snapshots(
        [snapshot(1), snapshot(2, labels={"tenant": "a"}), snapshot(3, labels={})]
    )
    assert read["retrievals"] == {
        (("collection", "docs"), ("tenant", "")): 1.0,
        (("collection", ""), ("tenant", "a")): 2.0,
        (("collection", ""), ("tenant", "")): 3.0,
    }


def test_what_is_not_known_yet_is_left_out() -> None:
    nan = math.nan
    young = share("human", nan, lower=nan, upper=nan)
    read = read_snapshots([snapshot(0, groups=(young,), dropped={})])
    assert read["retrievals"] == {DOCS: 0.0}
    assert {name for name, values in read.items() if values} == {
        "retrievals",
        "empty_retrievals",
        "retrieved_documents",
    }


def test_without_a_monitor_there_is_nothing() -> None:
    read = read_snapshots(())
    assert read.keys() == {metric.name for metric in METRICS}
    assert not any(read.values())


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("collection", "collection"),
        ("service.name", "service_name"),
        ("__name__", "name__"),
        ("9lives", "label_9lives"),
        ("group", "label_group"),
        ("le", "label_le"),
        ("é", "label_"),
        ("", "label_"),
    ],
)
def test_label_names_are_such_that_prometheus_takes(key: str, name: str) -> None:
    assert label_values({key: "x"}) == {name: "x"}


def test_alarms_are_counted_from_0_on() -> None:
    reader = MonitorReader(lambda: [snapshot()])
    change = (("collection", "docs"), ("rule", "change"))
    baseline = (("collection", "docs"), ("rule", "baseline"))
    assert reader.read()["alarms"] == {baseline: 0.0, change: 0.0}
    reader.alarm(alarm())
    reader.alarm(alarm())
    reader.alarm(alarm(rule="change"))
    assert reader.read()["alarms"] == {baseline: 2.0, change: 1.0}


def test_an_alarm_of_labels_without_a_snapshot_is_counted_too() -> None:
    reader = MonitorReader(lambda: [snapshot()])
    reader.alarm(alarm(labels={"tenant": "a"}))
    counted = reader.read()["alarms"]
    assert counted[(("collection", ""), ("rule", "baseline"), ("tenant", "a"))] == 1.0
    assert {tuple(key for key, _ in at) for at in counted} == {("collection", "rule", "tenant")}


def test_no_alarm_is_lost_between_threads() -> None:
    reader = MonitorReader(lambda: [snapshot()])

    def tell() -> None:
        for _ in range(500):
            reader.alarm(alarm())

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(reader.read()["alarms"].values()) == 4000


def test_a_monitor_that_fails_is_counted() -> None:
    def broken():
        raise RuntimeError("text of a user")

    reader = MonitorReader(broken)
    reader.read()
    read = reader.read()
    assert read["dropped_events"] == {(("reason", "monitor could not be read"),): 2.0}
    assert not read["retrievals"]
