"""The log of points: whole lines survive what happens to files."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.monitor.canary import append_point, read_points
from rag_sourcebias.monitor.data import CanaryPoint

POINT = CanaryPoint(
    at=1_700_000_000.5,
    measure="NDCG@5",
    human="human",
    llm="llm:x",
    labels={"collection": "größe\n数据\ud800"},
    round_n=0,
    round_relative_delta=None,
    n=0,
    relative_delta=None,
    lower=-200.0,
    upper=200.0,
    confidence_level=0.95,
    reference=0.0,
    alarm=False,
    failed=20,
    seconds=0.25,
)


def points(n: int) -> list[CanaryPoint]:
    return [replace(POINT, n=i, relative_delta=i / 7) for i in range(1, n + 1)]


def test_points_come_back_equal(tmp_path) -> None:
    log = tmp_path / "canary.jsonl"
    assert read_points(log) == []
    given = [POINT, *points(2)]
    for point in given:
        append_point(log, point)
    assert read_points(log) == given
    assert len(log.read_text("utf-8").splitlines()) == 3
    assert read_points(log, 2) == given[1:]


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_line_costs_only_itself(tmp_path, cut: int) -> None:
    log = tmp_path / "canary.jsonl"
    first, second, third = points(3)
    append_point(log, first)
    append_point(log, second)
    log.write_bytes(log.read_bytes()[:-cut])
    whole = [first, second] if cut == 1 else [first]  # only the line end is missing
    assert read_points(log) == whole
    append_point(log, third)
    assert read_points(log) == [*whole, third]


def test_only_the_end_of_a_big_file_is_read(tmp_path) -> None:
    log = tmp_path / "canary.jsonl"
    given = points(2_000)
    lines = [json.dumps(point.to_dict()) + "\n" for point in given]
    log.write_text("".join(lines), encoding="utf-8")
    assert log.stat().st_size > 5 * 65_536
    assert read_points(log, 2_000) == given
    assert read_points(log, 300) == given[-300:]
    # What stands in front is not looked at: here it is not even a log.
    log.write_bytes(b'{"not": "a point"}\n' * 10 + log.read_bytes())
    assert read_points(log, 300) == given[-300:]
    with pytest.raises(DataError, match="not a log of canary points"):
        read_points(log, 3_000)


def test_files_that_are_no_log(tmp_path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"_id": "d1"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"other.jsonl is not a log of canary points: .*'at'"):
        read_points(other)
    other.write_bytes(b"\xff\xfe\x00\n" * 5)
    with pytest.raises(DataError, match="holds no canary points; expected one JSON object"):
        read_points(other)
    with pytest.raises(DataError, match="is a folder; expected a file"):
        read_points(tmp_path)
    with pytest.raises(DataError, match="cannot be written"):
        append_point(tmp_path, POINT)
    with pytest.raises(DataError, match="limit must be at least 1, got 0"):
        read_points(other, 0)
    other.write_bytes(b"\n\n")
    assert read_points(other) == []
