"""What metric systems are told: each retrieval once, and nothing that is not known."""

import math
from pathlib import Path

import pytest
from monitor_states import alarm, share, snapshot

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.monitor.data import GroupCount
from rag_sourcebias.monitor.metrics import MonitorReader, label_values, read_snapshots
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import log_summary

DOCS = (("collection", "docs"),)
MONITOR = ("part", "monitor")


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
    assert read["dropped_events"] == {(MONITOR, ("reason", "queue is full")): 3.0}


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
    read = read_snapshots(
        [
            snapshot(
                0, groups=(young,), dropped={}, counts=(), corrected={"human": nan}, overflowed={}
            )
        ]
    )
    assert read["retrievals"] == {DOCS: 0.0}
    assert {name for name, values in read.items() if values} == {
        "retrievals",
        "empty_retrievals",
        "retrieved_documents",
        "bad_tags",
    }


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
    rules = ("shift", "new", "gone", "composition", "untagged", "level", "resolved")
    keys = {rule: (("collection", "docs"), ("rule", rule)) for rule in rules}
    quiet = dict.fromkeys(keys.values(), 0.0)
    assert reader.read()["alarms"] == quiet
    reader.alarm(alarm())
    reader.alarm(alarm())
    reader.alarm(alarm(rule="untagged"))
    counted = {keys["shift"]: 2.0, keys["untagged"]: 1.0}
    assert reader.read()["alarms"] == quiet | counted


def test_an_alarm_of_labels_without_a_snapshot_is_counted_too() -> None:
    reader = MonitorReader(lambda: [snapshot()])
    reader.alarm(alarm(labels={"tenant": "a"}))
    counted = reader.read()["alarms"]
    assert counted[(("collection", ""), ("rule", "shift"), ("tenant", "a"))] == 1.0
    assert {tuple(key for key, _ in at) for at in counted} == {("collection", "rule", "tenant")}


def test_labels_and_tags_that_are_not_as_they_should_be() -> None:
    odd = GroupCount(group="GPT-4", documents=30, ranks=(30,) * 8)
    beyond = GroupCount(group="other", documents=9, ranks=(9,) * 8)
    here = snapshot(counts=(*snapshot().counts, odd, beyond))
    elsewhere = snapshot(labels={"collection": "faq"}, counts=(odd,))
    by_style = snapshot(by="style", counts=(odd,))
    read = read_snapshots([here, elsewhere, by_style])
    assert read["label_overflow"] == {(("label", "session"), MONITOR): 4.0}  # told by both, once
    assert read["bad_tags"] == {(MONITOR,): 5.0}
    assert read["odd_source_documents"] == {(MONITOR,): 60.0}


def test_the_summary_of_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    tags = (DocTags(source="GPT-4"), DocTags(source="llm:x"), DocTags())
    with EventLog(path, max_label_values=2) as log:
        for i in range(10):
            ranked = RankedList(query_id="", doc_ids=("a", "b", "c"))
            log.observe(
                RetrievalEvent(ranked=ranked, tags=tags, labels={"user": f"u{i}"}, bad_tags=i % 2)
            )
        log.observe(None)  # type: ignore[arg-type]
    part = ("part", "log")
    read = MonitorReader(tuple, log=lambda: log_summary(path)).read()
    assert read["label_overflow"] == {(("label", "user"), part): 8.0}
    assert read["bad_tags"] == {(part,): 5.0}
    assert read["odd_source_documents"] == {(part,): 10.0}
    assert read["dropped_events"] == {(part, ("reason", "event could not be encoded")): 1.0}
    assert not MonitorReader(tuple, log=lambda: None).read()["bad_tags"]


def test_what_other_parts_lost() -> None:
    reader = MonitorReader(lambda: [snapshot()], lost=lambda: {"log": {"log is full": 7}})
    assert reader.read()["dropped_events"] == {
        (("part", "log"), ("reason", "log is full")): 7.0,
        (MONITOR, ("reason", "queue is full")): 3.0,
    }


@pytest.mark.parametrize("broken", [1, [None]])
def test_what_is_broken_costs_nothing_else(broken: object) -> None:
    reader = MonitorReader(
        lambda: [snapshot()],
        lost=lambda: {"log": broken},  # type: ignore[dict-item]
    )
    read = reader.read()
    assert read["retrievals"] == {DOCS: 100.0}
    assert reader.dropped.by_reason == {
        "lost events could not be read": 1,
    }
    reasons = {at[1][1] for at in read["dropped_events"]}
    assert reasons == {"queue is full", *reader.dropped.by_reason}
