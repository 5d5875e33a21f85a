"""Which column holds what, where the caller does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_sourcebias.errors import DataError

__all__ = ["find_column", "find_ids"]

_ALIASES = {
    "human": (
        "human", "human_label", "human_score", "human_grade", "human_rating", "human_value",
        "human_verdict", "human_judgment", "human_judgement", "human_mean", "y", "gold",
        "gold_label", "gold_score", "label", "annotation", "expert", "expert_label", "acceptable",
    ),
    "judge": (
        "judge", "judge_label", "judge_score", "judge_grade", "judge_rating", "judge_value",
        "judge_verdict", "judge_mean", "yhat", "llm", "llm_label", "llm_score", "llm_grade",
        "llm_rating", "llm_judge", "llm_verdict", "model_score",
    ),
    "id": ("id", "item_id", "sample_id", "example_id", "uid"),
    "query_id": ("query_id", "qid", "question_id", "topic", "topic_id"),
    "doc_id": ("doc_id", "docid", "docno", "corpus_id", "passage_id", "document_id"),
    "group": ("group",),
    "cluster": ("cluster",),
    "stratum": ("stratum",),
}  # fmt: skip


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def find_column(names: Sequence[str], role: str, *, given: str | None, path: str) -> str | None:
    """Find the column of a role.

    Parameters
    ----------
    role : str
        ``"human"``, ``"judge"``, ``"id"``, ``"query_id"``, ``"doc_id"``, ``"group"``, ``"cluster"``
        or ``"stratum"``.
    given : str or None
        What the caller said; it must exist.

    Returns
    -------
    str or None
        None if nothing is given and no column has one of the usual names.

    Raises
    ------
    DataError
        If the given column does not exist, or several columns could be meant.
    """
    if given is not None:
        if given not in names:
            raise DataError(f"{path} has no column {given!r}; its columns are {', '.join(names)}")
        return given
    aliases = _ALIASES[role]
    found = sorted(
        (n for n in names if _plain(n) in aliases), key=lambda n: aliases.index(_plain(n))
    )
    if len(found) > 1 and _plain(found[0]) != role:
        raise DataError(
            f"{path}: columns {' and '.join(map(repr, found))} could all be the {role} column; "
            f"say which with {role}=…"
        )
    return found[0] if found else None


def find_ids(
    names: Sequence[str], *, given: str | Sequence[str] | None, path: str
) -> tuple[str, ...]:
    """Find the id column, or the query and document columns that identify an item together."""
    if given is not None:
        wanted = (given,) if isinstance(given, str) else tuple(given)
        for name in wanted:
            find_column(names, "id", given=name, path=path)
        return wanted
    single = find_column(names, "id", given=None, path=path)
    if single is not None:
        return (single,)
    query = find_column(names, "query_id", given=None, path=path)
    doc = find_column(names, "doc_id", given=None, path=path)
    return tuple(n for n in (query, doc) if n is not None)
