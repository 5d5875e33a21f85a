"""Attributes of a span that tell who got the ranks of one retrieval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_sourcebias.measures.exposure import attention_weights
from rag_sourcebias.monitor.label_sets import OTHER, short_text
from rag_sourcebias.monitor.readings import UNTAGGED

__all__ = ["Attributes", "facts_of"]

Attributes = Mapping[str, int | str | Sequence[str] | Sequence[float]]
_MOST_DOCUMENTS = 1_000  # that are weighed: an observer called inline must be quick


def facts_of(groups: Sequence[str | None], *, by: str, most: int) -> Attributes:
    """Return the attributes of a retrieval, given the group of each document, best first.

    Parameters
    ----------
    groups : sequence of str or None
        None for a document without a tag.
    by : str
        Part of the names of the attributes.
    most : int
        Groups told apart; those of the largest exposure are.
    """
    facts: dict[str, int | str | Sequence[str] | Sequence[float]] = {
        "rag_sourcebias.documents": len(groups)
    }
    if not groups:
        return facts
    weights: dict[str | None, float] = {}
    for group, weight in zip(groups, _WEIGHTS, strict=False):
        weights[group] = weights.get(group, 0.0) + weight
    ranking = sorted(weights, key=lambda group: (-weights[group], group or ""))
    whole = sum(weights.values())
    names = [_name(group) for group in ranking[:most]]
    shares = [weights[group] / whole for group in ranking[:most]]
    if len(ranking) > most:
        names.append(OTHER)
        shares.append(max(1.0 - sum(shares), 0.0))
    facts[f"rag_sourcebias.{by}.names"] = names
    facts[f"rag_sourcebias.{by}.exposure"] = shares
    facts[f"rag_sourcebias.{by}.top1"] = _name(groups[0])
    facts[f"rag_sourcebias.{by}.untagged"] = sum(group is None for group in groups)
    return facts


def _name(group: str | None) -> str:
    return UNTAGGED if group is None else short_text(group)


_WEIGHTS = tuple(attention_weights("dcg", _MOST_DOCUMENTS).tolist())
