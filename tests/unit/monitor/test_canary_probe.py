"""Rounds of canary queries against retrievers that answer, fail, or answer nonsense."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from rag_sourcebias.core.data import RankedList, Run
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.skew import AuditConfig
from rag_sourcebias.io.samples import load_dataset
from rag_sourcebias.monitor.canary import (
    CanaryQueries,
    ask_queries,
    ask_retriever,
    read_points,
    score_answers,
    state_path,
)
from rag_sourcebias.monitor.probe import CanaryProbe
from rag_sourcebias.observe.events import DroppedEvents
from rag_sourcebias.observe.unobserved import is_suppressed
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.stats.ranking import relative_delta

LONG = 60.0  # nothing waits so long; a test that fails ends all the same
NAMES = [f"q{i}" for i in range(40)]


def canaries() -> CanaryQueries:
    texts = {name: f"text of {name}" for name in NAMES}
    rows = [(q, f"{s}/{q}", s, 1) for q in NAMES for s in ("human", "llm:x")]
    return CanaryQueries.from_tables(texts, rows, human="human", llm="llm:x")


def ranked(text: str, *, human_first: bool) -> list[str]:
    name = text.removeprefix("text of ")
    twins = [f"human/{name}", f"llm:x/{name}"]
    return ["other", *(twins if human_first else twins[::-1])]


def even(text: str) -> list[str]:
    return ranked(text, human_first=int(text.removeprefix("text of q")) % 2 == 0)


def llm_first(text: str) -> list[str]:
    return ranked(text, human_first=False)


def whole(ask, queries: CanaryQueries, measure: str, **kwargs) -> np.ndarray:
    """Scores of every query, asked once."""
    rows, dropped = range(len(queries)), DroppedEvents()
    settings = {"doc_id": None, "timeout": None} | kwargs
    answers = ask_queries(ask, queries, rows, dropped=dropped, **settings)
    assert answers.rows == list(rows)
    assert dropped.total == 0
    return score_answers(queries, answers, measure)


class Tied:
    """A retriever of ours: all documents of a query's passage, twins often with equal scores."""

    name = "tied"

    def __init__(self, data) -> None:
        pair = data.corpus.tags.pair_codes
        self.scores = np.random.default_rng(3).integers(0, 4, (len(data.queries), len(pair)))
        self.ids = data.corpus.doc_ids
        self.row = {query.text: row for row, query in enumerate(data.queries)}
        for query, doc in zip(data.qrels.query_codes, data.qrels.doc_codes, strict=True):
            row = self.row[data.queries[query].text]
            self.scores[row, data.corpus.tags.row_of[data.qrels.doc_ids[doc]]] += 2

    def retrieve(self, queries, depth: int) -> Run:
        lists = []
        for query in queries:
            scores = self.scores[self.row[query.text]]
            order = np.argsort(-scores, kind="stable")[:depth]
            found = tuple(self.ids[i] for i in order)
            values = scores[order].astype(np.float32)
            lists.append(RankedList(query_id=query.query_id, doc_ids=found, scores=values))
        return Run.from_lists(lists, name=self.name)


@pytest.mark.parametrize("measure", ["NDCG@5", "MAP@3", "MRR@10", "P@1", "Recall@5"])
def test_figures_are_those_of_an_audit(measure: str) -> None:
    data = load_dataset("crowdrag-rewrites")
    queries, retriever = CanaryQueries.from_dataset(data), Tied(data)
    scores = whole(ask_retriever(retriever, depth=320), queries, measure)
    name, cutoff = measure.split("@")
    report = measure_source_bias(
        retriever.retrieve(data.queries, 320),
        data.qrels,
        data.corpus.tags,
        config=AuditConfig(measures=(name,), cutoffs=(int(cutoff),)),
    )
    cell = report.system("tied").cell(measure, "llm:claude")
    assert scores.mean(axis=0) == pytest.approx([cell.mean_baseline, cell.mean_other], abs=1e-12)
    found = relative_delta(*scores.mean(axis=0).tolist())
    assert found == pytest.approx(cell.relative_delta, abs=1e-9)


@pytest.mark.frameworks
def test_a_real_retriever_on_the_bundled_sample(tmp_path) -> None:
    from rag_sourcebias.retrieval.search import BM25Spec

    data = load_dataset("crowdrag-rewrites")
    queries, log = CanaryQueries.from_dataset(data), tmp_path / "canary.jsonl"
    ask = ask_retriever(BM25Spec().build(data.corpus))
    true = relative_delta(*whole(ask, queries, "NDCG@5").mean(axis=0).tolist())
    assert true == pytest.approx(40.67, abs=1)
    alarms = []
    probe = CanaryProbe(ask, queries, log=log, rng=1, on_alarm=alarms.append, clock=lambda: 5.0)
    for _ in range(10):
        point = probe.run_round()
    assert (point.n, point.round_n, point.failed) == (200, 20, 0)
    assert 0 < point.lower < true < point.upper
    assert point.alarm
    assert [alarm.rule for alarm in alarms] == ["canary", "canary-change"]
    assert alarms[0].message.startswith("Relative Δ of NDCG@5 between human and llm:claude is ")
    assert read_points(log)[-1] == point


def test_a_repeated_query_is_asked_twice_and_counts_twice() -> None:
    queries, asked = canaries(), []

    def ask(text: str) -> list[str]:
        asked.append(text)
        return even(text)

    answers = ask_queries(
        ask, queries, [3, 0, 3], doc_id=None, timeout=None, dropped=DroppedEvents()
    )
    assert asked == ["text of q3", "text of q0", "text of q3"]
    second, third = 1 / np.log2(3), 1 / np.log2(4)
    expected = [[third, second], [second, third], [third, second]]
    assert score_answers(queries, answers, "NDCG@5") == pytest.approx(np.array(expected))


def test_items_are_read_by_their_accessor_and_unicode_ids_work() -> None:
    texts = {name: f"Frage {name} 质量" for name in NAMES}
    rows = [(q, f"{s}/ß–{q}", s, 1) for q in NAMES for s in ("human", "llm:x")]
    queries = CanaryQueries.from_tables(texts, rows, human="human", llm="llm:x")

    def invoke(text: str):
        name = text.split()[1]
        yield from (SimpleNamespace(metadata={"id": f"{s}/ß–{name}"}) for s in ("llm:x", "human"))

    scores = whole(invoke, queries, "P@1", doc_id=lambda item: item.metadata["id"])
    assert np.array_equal(scores, np.tile([0.0, 1.0], (40, 1)))


def test_a_document_that_comes_twice_keeps_its_first_rank() -> None:
    def ask(text: str) -> list[str]:
        found = ranked(text, human_first=True)
        return [found[1], found[1], found[2], found[1]]

    scores = whole(ask, canaries(), "MRR@5")
    assert np.array_equal(scores, np.tile([1.0, 0.5], (40, 1)))


def test_nothing_of_a_probe_is_observed() -> None:
    seen = []

    def ask(text: str):
        seen.append(is_suppressed())
        yield from even(text)
        seen.append(is_suppressed())

    CanaryProbe(ask, canaries(), rng=1).run_round()
    assert seen == [True] * 40
    assert not is_suppressed()


def test_failures_are_counted_and_left_out(tmp_path) -> None:
    def ask(text: str):
        number = int(text.removeprefix("text of q"))
        if number % 4 == 0:
            raise ValueError("down")
        return {1: even(text), 2: "human/q1", 3: [17]}[number % 4]

    probe = CanaryProbe(ask, canaries(), per_round=100, log=tmp_path / "log", rng=1)
    point = probe.run_round()
    assert point.round_n + point.failed == 100
    assert 10 < point.round_n < 40
    assert probe.dropped.by_reason == {"canary query failed": point.failed}
    assert point.round_relative_delta < 0  # the odd ones have the LLM's twin first


@pytest.mark.parametrize(
    ("ids", "scores"),
    [(("a", "b"), [1.0, float("nan")]), (("a", "b"), [1.0]), (("a", 2), [1.0, 0.5])],
)
def test_lists_that_are_none_are_failures(ids, scores) -> None:
    def ask(text: str) -> RankedList:
        return RankedList(query_id="", doc_ids=ids, scores=np.array(scores, np.float32))

    point = CanaryProbe(ask, canaries(), rng=1).run_round()
    assert (point.round_n, point.failed) == (0, 20)


def test_a_round_in_which_all_fails_is_logged(tmp_path) -> None:
    def ask(text: str) -> list[str]:
        raise ConnectionError("refused")

    log = tmp_path / "log"
    point = CanaryProbe(ask, canaries(), log=log, rng=1, clock=lambda: 7.5).run_round()
    assert (point.n, point.round_n, point.failed, point.at) == (0, 0, 20, 7.5)
    assert (point.relative_delta, point.round_relative_delta) == (None, None)
    assert (point.lower, point.upper, point.alarm) == (-200.0, 200.0, False)
    assert read_points(log) == [point]


def test_empty_answers_are_answers() -> None:
    point = CanaryProbe(lambda text: [], canaries(), rng=1).run_round()
    assert (point.n, point.failed, point.relative_delta) == (20, 0, None)


def test_ids_of_another_kind_are_warned_about_once(caplog) -> None:
    probe = CanaryProbe(lambda text: ["17", "18"], canaries(), rng=1)
    with caplog.at_level(logging.WARNING, logger="rag_sourcebias.monitor"):
        probe.run_round()
        probe.run_round()
    assert [record.getMessage() for record in caplog.records] == [
        "none of the 2 documents that answered the first canary round is one of the 80 known "
        "twins; is their id read from the right place (doc_id=)?"
    ]


def test_slow_queries_count_as_failed(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr("rag_sourcebias.monitor.canary.time.monotonic", lambda: now[0])

    def ask(text: str) -> list[str]:
        now[0] += 2.0 if text.endswith("0") else 1.0
        return even(text)

    probe = CanaryProbe(ask, canaries(), per_round=200, timeout=1.5, rng=1)
    point = probe.run_round()
    assert 0 < point.failed < 60
    reasons = {"canary query took longer than its time-out": point.failed}
    assert probe.dropped.by_reason == reasons
    assert point.seconds == 200 + point.failed


def test_alarms_come_once_until_a_reset() -> None:
    alarms = []

    def told(alarm) -> None:
        alarms.append(alarm)
        raise RuntimeError("sink down")

    labels = {"collection": "docs"}
    probe = CanaryProbe(llm_first, canaries(), labels=labels, on_alarm=told, rng=1)
    points = [probe.run_round() for _ in range(30)]
    assert sorted(alarm.rule for alarm in alarms) == ["canary", "canary-change"]
    assert probe.dropped.by_reason == {"callback of a canary alarm raised": 2}
    first = next(alarm for alarm in alarms if alarm.rule == "canary")
    at = next(point for point in points if point.alarm)
    assert (first.n, first.group, first.measure, first.labels) == (at.n, "human", "NDCG@5", labels)
    assert first.baseline == 0.5
    assert first.share == pytest.approx(0.5 + at.relative_delta / 400)
    assert first.upper == pytest.approx(0.5 + at.upper / 400)
    assert first.upper < 0.5
    assert all(point.alarm for point in points if point.n >= at.n)
    probe.reset()
    point = probe.run_round()
    assert (point.n, point.alarm) == (20, False)
    for _ in range(30):
        probe.run_round()
    assert len(alarms) == 4


def test_a_restart_goes_on_where_the_last_process_was(tmp_path) -> None:
    alarms = []
    straight = CanaryProbe(llm_first, canaries(), rng=9, clock=lambda: 1.0)
    expected = [straight.run_round() for _ in range(12)]
    found = []
    for _ in range(12):
        probe = CanaryProbe(
            llm_first, canaries(), log=tmp_path / "log", rng=9, clock=lambda: 1.0,
            on_alarm=alarms.append,
        )  # fmt: skip
        found.append(probe.run_round())
    figures = lambda points: [p.to_dict() | {"seconds": 0} for p in points]
    assert figures(found) == figures(expected)
    assert figures(read_points(tmp_path / "log")) == figures(expected)
    assert sorted(alarm.rule for alarm in alarms) == ["canary", "canary-change"]


def test_a_restart_draws_other_queries(tmp_path) -> None:
    asked: list[list[str]] = []
    for _ in range(2):
        asked.append([])
        ask = lambda text: asked[-1].append(text) or even(text)
        CanaryProbe(ask, canaries(), log=tmp_path / "log", rng=9).run_round()
    assert asked[0] != asked[1]


def test_state_of_other_settings_is_refused(tmp_path) -> None:
    log = tmp_path / "log"
    CanaryProbe(even, canaries(), log=log, rng=1).run_round()
    for change, message in (
        ({"measure": "MAP@5"}, "log.state was written with measure 'NDCG@5', now it is 'MAP@5'"),
        ({"labels": {"a": "b"}}, "with labels {}, now it is {'a': 'b'}; probe into another log"),
        ({"reference": 5.0}, "with reference 0.0, now it is 5.0"),
    ):
        with pytest.raises(DataError, match=message):
            CanaryProbe(even, canaries(), log=log, **change)
    state_path(log).write_text('{"kind": ', encoding="utf-8")
    with pytest.raises(
        DataError, match=r"is not the state of a canary probe .*; delete it to start anew"
    ):
        CanaryProbe(even, canaries(), log=log)
    state_path(log).unlink()
    assert CanaryProbe(even, canaries(), log=log, rng=1).run_round().n == 20
    assert len(read_points(log)) == 2


def test_a_log_that_cannot_be_written(tmp_path) -> None:
    with pytest.raises(DataError, match=r"cannot be written: folder .* does not exist"):
        CanaryProbe(even, canaries(), log=tmp_path / "nowhere" / "log")
    log, alarms = tmp_path / "log", []
    probe = CanaryProbe(llm_first, canaries(), log=log, rng=1, on_alarm=alarms.append)
    log.mkdir()
    for _ in range(20):
        with pytest.raises(DataError, match="log cannot be written"):
            probe.run_round()
    assert {alarm.rule for alarm in alarms} >= {"canary"}  # told all the same
    log.rmdir()
    assert probe.run_round().n == 420
    assert CanaryProbe(llm_first, canaries(), log=log).run_round().n == 440


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_kill_costs_the_round_it_was_in(tmp_path) -> None:
    script = """
        import os, signal, sys
        from rag_sourcebias.monitor.probe import CanaryProbe
        from rag_sourcebias.monitor.canary import CanaryQueries

        names = [f"q{i}" for i in range(40)]
        rows = [(q, f"{s}/{q}", s, 1) for q in names for s in ("human", "llm:x")]
        queries = CanaryQueries.from_tables(
            {q: f"text of {q}" for q in names}, rows, human="human", llm="llm:x"
        )
        asked = 0

        def ask(text):
            global asked
            asked += 1
            if asked == 70:  # in the fourth round
                os.kill(os.getpid(), signal.SIGKILL)
            return ["human/" + text.split()[-1], "llm:x/" + text.split()[-1]]

        probe = CanaryProbe(ask, queries, log=sys.argv[1], rng=4)
        while True:
            probe.run_round()
    """
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(log)], timeout=LONG, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert [point.n for point in read_points(log)] == [20, 40, 60]
    with log.open("ab") as stream:
        stream.write(b'{"at": 17')  # as if it had been killed while writing
    assert CanaryProbe(even, canaries(), log=log).run_round().n == 80
    assert [point.n for point in read_points(log)] == [20, 40, 60, 80]


def test_a_kill_between_log_and_state_asks_that_round_again(tmp_path) -> None:
    log = tmp_path / "log"
    probe = CanaryProbe(even, canaries(), log=log, rng=1)
    probe.run_round()
    before = state_path(log).read_bytes()
    lost = probe.run_round()
    state_path(log).write_bytes(before)
    again = CanaryProbe(even, canaries(), log=log).run_round()
    assert (again.n, again.relative_delta) == (lost.n, lost.relative_delta)
    assert [point.n for point in read_points(log)] == [20, 40, 40]


def test_rounds_on_a_thread_do_not_overlap_and_end_on_close(tmp_path) -> None:
    inside, most, rounds = [0], [0], threading.Event()
    log = tmp_path / "log"

    def ask(text: str) -> list[str]:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        found = even(text)
        inside[0] -= 1
        return found

    def clock() -> float:
        if probe.last is not None and probe.last.n >= 60:
            rounds.set()
        return 0.0

    probe = CanaryProbe(ask, canaries(), log=log, rng=1, clock=clock)
    with probe:
        probe.start(every=1e-3)
        with pytest.raises(DataError, match="the probe was started already; close it first"):
            probe.start(every=1e-3)
        while not rounds.is_set():  # beside the thread's
            probe.run_round()
        assert probe.close(LONG)
    assert most == [1]
    assert "rag-sourcebias-canary" not in {thread.name for thread in threading.enumerate()}
    numbers = [point.n for point in read_points(log)]
    assert numbers == sorted(set(numbers))
    probe.start(every=3_600)  # and again
    assert probe.close(LONG)


def test_closing_ends_a_round_after_the_query_being_asked() -> None:
    entered, go_on, asked = threading.Event(), threading.Event(), []

    def ask(text: str) -> list[str]:
        asked.append(text)
        entered.set()
        assert go_on.wait(LONG)
        return even(text)

    probe = CanaryProbe(ask, canaries(), rng=1)
    probe.start(every=3_600)
    assert entered.wait(LONG)
    assert not probe.close(0.0)  # it cannot be cut short
    go_on.set()
    assert probe.close(LONG)
    assert len(asked) == 1
    assert probe.last.round_n == 1


def test_errors_stay_in_the_thread(tmp_path) -> None:
    failed = threading.Event()
    log = tmp_path / "log"

    def clock() -> float:
        if probe.dropped.by_reason.get("canary round failed", 0) >= 2:
            failed.set()
        return 0.0

    probe = CanaryProbe(even, canaries(), log=log, rng=1, clock=clock)
    log.mkdir()
    probe.start(every=1e-3)
    assert failed.wait(LONG)
    assert probe.close(LONG)
    assert set(probe.dropped.by_reason) == {"canary round failed"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_lock_of_its_own() -> None:
    parent, entered, go_on = os.getpid(), threading.Event(), threading.Event()

    def ask(text: str) -> list[str]:
        if os.getpid() == parent:
            entered.set()
            assert go_on.wait(LONG)
        return even(text)

    probe = CanaryProbe(ask, canaries(), rng=1)
    probe.start(every=3_600)
    assert entered.wait(LONG)  # the thread holds the lock now, and will not exist in the child
    child = os.fork()
    if child == 0:
        signal.alarm(int(LONG))
        ok = probe.close(LONG) and probe.run_round().round_n == 20
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go_on.set()
    assert probe.close(LONG)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"measure": "NDCG"},
            "measure 'NDCG' is unknown; accepted are NDCG, MAP, .* with a cutoff",
        ),
        ({"measure": "AUC@5"}, "measure 'AUC@5' is unknown"),
        ({"measure": "NDCG@0"}, "measure 'NDCG@0' is unknown"),
        ({"per_round": 0}, "per_round must be at least 1, got 0"),
        ({"timeout": 0.0}, "timeout must be a number of seconds above 0, or None, got 0.0"),
        ({"reference": -200.0}, "reference -200.0 is outside"),
        ({"labels": {"shard": 3}}, "label 'shard' is 3; names and values must be strings"),
    ],
)
def test_settings_out_of_range(kwargs, message) -> None:
    with pytest.raises(DataError, match=message):
        CanaryProbe(even, canaries(), **kwargs)


@pytest.mark.parametrize("every", [0, -1.0, float("nan"), float("inf")])
def test_schedules_out_of_range(every: float) -> None:
    probe = CanaryProbe(even, canaries(), rng=1)
    with pytest.raises(DataError, match="every must be a number of seconds above 0"):
        probe.start(every=every)
    assert probe.close()
