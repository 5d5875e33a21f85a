"""The Ray engine on a real Ray: order, errors, killed workers, an audit, what is left behind."""

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from sharded_corpora import Once, assert_same, paired_data

from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.retrieval.shards import open_sharded
from rag_sourcebias.source.audit import audit_source
from rag_sourcebias.source.shards.audit import audit_source_sharded
from rag_sourcebias.source.shards.work import ShardedRetriever

pytest.importorskip("ray")
pytest.importorskip("openai")
pytest.importorskip("ray", reason="ray is not installed")

from rag_sourcebias.core.errors import DataError, MissingExtraError, SourceBiasError
from rag_sourcebias.core.protocols import Engine
from rag_sourcebias.retrieval.rerank import engine_factory
from rag_sourcebias_integrations.ray.engine import RayEngine

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills workers, found in /proc"),
]


MARK = "RAG_SOURCEBIAS_TEST_OF_RAY"


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    """One Ray for all tests, since it takes seconds to start; in the end it is interrupted."""
    mark = uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, mark)
        patch.delenv("RAY_ADDRESS", raising=False)
        found = RayEngine(2)
        found.open()
        yield found
        an_interruption_leaves_no_process_behind(found, mark)


def an_interruption_leaves_no_process_behind(engine: RayEngine, mark: str) -> None:
    def interrupt(done: int, total: int) -> None:
        started = {pid: name for pid, name in processes(mark).items() if "ray" in name}
        assert len(started) > 3  # Ray's own and the workers
        signal.raise_signal(signal.SIGINT)

    engine.workers = 1
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.map(lambda: twice, range(500), on_done=interrupt)
    finally:
        signal.signal(signal.SIGINT, handler)
    last = time.monotonic() + 30
    while (left := processes(mark)) and time.monotonic() < last:
        time.sleep(0.1)
    assert left == {}


def processes(mark: str) -> dict[int, str]:
    """Names of the living processes that were started with a mark in their environment."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_text()
        except OSError:
            continue  # gone, or somebody else's
    return {pid: name for pid, name in found.items() if pid != os.getpid()}


def twice(number: int) -> int:
    return 2 * number


def test_a_killed_worker_changes_no_result(engine: RayEngine, tmp_path: Path) -> None:
    def prepare():
        (tmp_path / f"prepared-{os.getpid()}-{time.monotonic_ns()}").touch()
        threads = os.environ["OMP_NUM_THREADS"]

        def work(number: int) -> tuple[int, str, str]:
            first = not (tmp_path / f"begun-{number}").exists()
            (tmp_path / f"begun-{number}").touch()
            if number == 5 and first:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.02)
            return twice(number), threads, str(Path.cwd())

        return work

    told: list[tuple[int, int]] = []
    found = engine.map(prepare, range(24), on_done=lambda *state: told.append(state))
    assert found == [(2 * number, "1", str(Path.cwd())) for number in range(24)]
    assert told == [(done, 24) for done in range(1, 25)]
    pids = Counter(path.name.split("-")[1] for path in tmp_path.glob("prepared-*"))
    # One that was killed, one that took its place; the other may come too late to be of use.
    assert len(pids) in (2, 3)
    assert set(pids.values()) == {1}


def test_what_was_raised_comes_out_and_ray_goes_on(
    engine: RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(engine, "workers", 1)

    def prepare():
        def work(number: int) -> int:
            if number == 1:
                raise MissingExtraError(package="p", extra="e", feature="f")
            time.sleep(0.1)
            return number

        return work

    with pytest.raises(MissingExtraError, match="f needs p") as caught:
        engine.map(prepare, range(400))
    assert ray.is_initialized()
    assert caught.value.extra == "e"
    assert "in work" in str(caught.value.__cause__)  # the traceback of the worker


def test_an_item_that_always_kills_its_worker_is_named(
    engine: RayEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "workers", 1)
    monkeypatch.setattr(engine, "attempts", 1)

    def prepare():
        def work(number: int) -> int:
            if number == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return number

        return work

    with pytest.raises(SourceBiasError, match=r"item 2 of 3 was begun 1 time.* lost each time"):
        engine.map(prepare, range(3))


def test_the_entry_point_makes_an_engine() -> None:
    engine = engine_factory("ray")(workers=2, address="127.0.0.1:9")
    assert isinstance(engine, Engine)
    assert (engine.name, engine.workers, engine.address) == ("ray", 2, "127.0.0.1:9")
    assert dict(engine.settings) | {"ray": ""} == {"engine": "ray", "ray": "", "workers": "2"}
    with pytest.raises(DataError, match=r"engine 'abacus' is unknown; there are .*ray"):
        engine_factory("abacus")


def test_what_cannot_be_pickled_is_named_before_anything_starts() -> None:
    with pytest.raises(DataError, match=r"item 1 cannot be sent to another process .*lock"):
        RayEngine(1).map(lambda: str, ["fine", threading.Lock()])
    lock = threading.Lock()
    with pytest.raises(DataError, match="prepare cannot be sent to another process"):
        RayEngine(1).map(lambda: lambda item: (item, lock), [1])


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:9", r"no Ray cluster answers at '127.0.0.1:9' \(.*refused\); start one with"),
        ("ray://head:10001", "'ray://head:10001' is not understood; expected host:port"),
        ("head", "'head' is not understood"),
    ],
)
def test_a_cluster_that_is_not_there_is_named(address: str, message: str) -> None:
    from rag_sourcebias_integrations.ray.engine import reach

    with pytest.raises(DataError, match=message):
        reach(address)


# An audit on Ray: the report of an audit in memory, also when a worker is killed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ray-audit") / "folder"
    write_beir(paired_data(), path)
    return path


def killing(mark: Path) -> Any:
    """Return a recipe of an encoder whose process dies in the middle of its first shard."""

    class Killing(HashingEncoder):
        def encode_documents(self, texts: Any) -> np.ndarray:
            found = super().encode_documents(texts)
            if not mark.exists():
                mark.write_text(str(os.getpid()), encoding="utf-8")
                os.kill(os.getpid(), signal.SIGKILL)
            return found

    return Killing


def test_the_report_is_that_of_an_audit_in_memory_though_a_worker_is_killed(
    folder: Path, tmp_path: Path, engine: RayEngine
) -> None:
    in_memory = audit_source(
        read_beir(folder), [DenseSpec(Once(), name="dense")], length_matched=False, copies="no"
    )
    mark, work = tmp_path / "killed", tmp_path / "work"
    data = open_sharded(folder, shard_documents=1_024)
    options: dict[str, Any] = {"work_folder": work, "shard_documents": 1_024}
    report = audit_source_sharded(
        data,
        [ShardedRetriever(name="dense", make_encoder=killing(mark))],
        engine=engine,
        length_matched=False,
        **options,
    )
    assert int(mark.read_text(encoding="utf-8")) != os.getpid()
    assert report.environment["engine"] == "ray"
    assert_same(in_memory, report)
    # another engine goes on from what is there
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*.np?")}
    local = ShardedRetriever(name="dense", make_encoder=HashingEncoder)
    assert_same(report, audit_source_sharded(data, [local], length_matched=False, **options))
    assert {path: path.stat().st_mtime_ns for path in work.rglob("*.np?")} == before
