"""Labelled documents as a detector learns from them: usable, unlike each other, in groups."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.tagging.ids import ID_PATTERN
from rag_sourcebias.types.source_names import check_source

__all__ = ["Groups", "LabelledTexts", "Target", "checked_target", "prepare"]

Target = Literal["source", "style"]
#: Group of each document, by its id or in the order of the documents; None is a group of its own.
Groups: TypeAlias = Mapping[str, str] | Sequence[str | None]

MIN_DOCUMENTS = 20
_PAIRED_ID = re.compile(ID_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledTexts:
    """Texts that can be learned from.

    Parameters
    ----------
    texts : tuple of str, length n
        Not empty, no two alike.
    labels : tuple of str
        Sorted; ``codes`` index into it.
    codes, groups : int64 arrays of shape (n,)
    counts : mapping of str to int
        Documents left out, by reason.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    codes: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    counts: Mapping[str, int]


def checked_target(target: str) -> Target:
    """Return the target if it is one."""
    if target not in get_args(Target):
        raise DataError(f"target {target!r} is neither 'source' nor 'style'")
    return target  # type: ignore[return-value]


def prepare(
    documents: Iterable[tuple[str, str, str | None]],
    *,
    target: Target,
    groups: Groups | None,
    n_folds: int,
) -> LabelledTexts:
    """Check labelled documents and leave out what nothing can be learned from.

    Left out and counted: documents without a label, without text, repetitions of a text with the
    same label, and every copy of a text that has two labels.

    Raises
    ------
    DataError
        If there is only one label, an id occurs twice, a label is no source, or a sequence of
        groups is not as long as the documents.
    InsufficientDataError
        If a label has too few documents or groups.
    """
    rows = [(str(doc_id), text or "", label) for doc_id, text, label in documents]
    group_names = _groups([doc_id for doc_id, _, _ in rows], groups)
    _refuse_repeated([doc_id for doc_id, _, _ in rows])
    counts: Counter[str] = Counter(unlabelled=0, empty=0, repeated=0, contradictory=0)
    seen: dict[str, set[str]] = {}
    usable: list[tuple[str, str, str, str]] = []
    for (doc_id, text, label), group in zip(rows, group_names, strict=True):
        plain = " ".join(text.split())
        name = _label(label, doc_id, target)
        if name is None or not plain:
            counts["unlabelled" if name is None else "empty"] += 1
            continue
        known = seen.setdefault(plain, set())
        counts["repeated"] += name in known
        if name not in known:
            known.add(name)
            usable.append((plain, text, name, group))
    kept = [row for row in usable if len(seen[row[0]]) == 1]
    counts["contradictory"] = len(usable) - len(kept)
    labels = tuple(sorted({name for _, _, name, _ in kept}))
    code_of = {name: code for code, name in enumerate(labels)}
    group_of = {name: code for code, name in enumerate(dict.fromkeys(row[3] for row in kept))}
    found = LabelledTexts(
        texts=tuple(text for _, text, _, _ in kept),
        labels=labels,
        codes=np.array([code_of[name] for _, _, name, _ in kept], dtype=np.int64),
        groups=np.array([group_of[group] for _, _, _, group in kept], dtype=np.int64),
        counts=dict(counts),
    )
    _require_enough(found, target, n_folds)
    return found


def _label(label: str | None, doc_id: str, target: Target) -> str | None:
    if label is None or not label.strip():
        return None
    try:
        return check_source(label.strip()) if target == "source" else label.strip()
    except DataError as error:
        raise DataError(f"document {doc_id!r}: {error}") from error


def _groups(doc_ids: Sequence[str], groups: Groups | None) -> list[str]:
    """Name the group of each document; the mark keeps given names and ids apart."""
    if groups is None:
        pairs = (_PAIRED_ID.match(doc_id) for doc_id in doc_ids)
        names = [None if pair is None else pair["pair_id"] for pair in pairs]
    elif isinstance(groups, Mapping):
        names = [groups.get(doc_id) for doc_id in doc_ids]
    elif len(groups) != len(doc_ids):
        raise DataError(f"{len(groups)} groups for {len(doc_ids)} documents; need as many")
    else:
        names = list(groups)
    return [
        f"document {doc_id}" if name in (None, "") else f"group {name}"
        for doc_id, name in zip(doc_ids, names, strict=True)
    ]


def _refuse_repeated(doc_ids: Sequence[str]) -> None:
    if len(set(doc_ids)) < len(doc_ids):
        twice, n = Counter(doc_ids).most_common(1)[0]
        raise DataError(f"document id {twice!r} occurs {n} times; each document needs its own id")


def _require_enough(found: LabelledTexts, target: Target, n_folds: int) -> None:
    if len(found.labels) < 2:
        raise DataError(
            f"a {target} detector needs documents of at least two labels; found "
            f"{', '.join(found.labels) or 'no labelled document with text'}"
        )
    for code, label in enumerate(found.labels):
        mine = found.codes == code
        n, n_groups = int(mine.sum()), len(np.unique(found.groups[mine]))
        if n < MIN_DOCUMENTS or n_groups < n_folds:
            raise InsufficientDataError(
                f"label {label!r} has {n} usable documents in {n_groups} groups; a detector needs "
                f"at least {MIN_DOCUMENTS} different documents in {n_folds} groups (pairs, topics, "
                "prompts) of every label",
                n=n,
                n_needed=MIN_DOCUMENTS,
            )
