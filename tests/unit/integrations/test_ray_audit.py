"""An audit on Ray: the report of an audit in memory, also when a worker is killed."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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

pytest.importorskip("ray", reason="ray is not installed")
from rag_sourcebias_integrations.ray.engine import RayEngine

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ray-audit") / "folder"
    write_beir(paired_data(), path)
    return path


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    with RayEngine(workers=2) as ray:
        yield ray


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
