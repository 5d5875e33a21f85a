"""Cluster files: every format, and what is wrong with a row."""

from __future__ import annotations

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.tables import read_clusters

WANTED = {"q1": "a", "q2": "b", "3": "a"}


def write(path, rows, columns=("query_id", "cluster")):
    separator = "," if path.suffix == ".csv" else "\t"
    lines = [separator.join(columns), *(separator.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["c.csv", "c.tsv"])
def test_tables(tmp_path, name):
    assert read_clusters(write(tmp_path / name, WANTED.items())) == WANTED


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ([("q1", "a")], ("query", "cluster"), "no column is recognised as query_id"),
        ([("", "a")], ("query_id", "cluster"), "query_id '' .* must be a non-empty name"),
        ([], ("query_id", "cluster"), "c.csv"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, rows, columns, message):
    with pytest.raises(DataError, match=message):
        read_clusters(write(tmp_path / "c.csv", rows, columns))
