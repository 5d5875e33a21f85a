"""Clusters of queries: topics, paraphrase groups, user sessions."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.tables import read_table

__all__ = ["read_clusters"]

_COLUMNS = ("query_id", "cluster")


def read_clusters(path: PathLike) -> dict[str, str]:
    """Read the cluster of each query from CSV, TSV, JSON lines or Parquet.

    Parameters
    ----------
    path : path
        With the columns ``query_id`` and ``cluster``; others are ignored.

    Raises
    ------
    DataError
        If a column is missing, a value is empty, or a query is named twice.
    """

    def choose(names: tuple[str, ...]) -> tuple[str, ...]:
        if missing := [name for name in _COLUMNS if name not in names]:
            raise DataError(
                f"{path} has no column {' and no column '.join(missing)}; it has {list(names)}"
            )
        return _COLUMNS

    table = read_table(path, choose)
    found: dict[str, str] = {}
    for row, (query, cluster) in enumerate(
        zip(table.columns["query_id"], table.columns["cluster"], strict=True)
    ):
        for name, value in (("query_id", query), ("cluster", cluster)):
            if value is None or not str(value).strip():
                raise DataError(f"{table.where(row)}: {name} is empty; give each query a cluster")
        if str(query) in found:
            raise DataError(f"{table.where(row)}: query {str(query)!r} is named twice")
        found[str(query)] = str(cluster)
    return found
