"""From the token alternatives that a server reports to log-probabilities of labels."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["Alternatives", "label_scores_from_tokens"]

Alternatives = Sequence[tuple[str, float]]
"""Tokens the model could have written at one position, with their log-probabilities."""


def label_scores_from_tokens(
    labels: Sequence[str], written: Sequence[str], alternatives: Sequence[Alternatives]
) -> tuple[tuple[float, ...], int] | None:
    """Read the log-probability of each label from the first tokens of an answer.

    The written tokens are followed for as long as they spell the beginning of several labels
    (``[`` of ``[0]`` and ``[1]``). At each position an alternative belongs to a label when it
    completes it or can only be the beginning of it; leading space and case do not matter, and
    several alternatives of one label (``1`` and `` 1``) are added up. A label that no alternative
    belongs to gets the smallest log-probability reported where it would have stood: it cannot be
    larger than that, because servers report the largest.

    Parameters
    ----------
    labels : sequence of str
    written : sequence of str
        Tokens of the answer.
    alternatives : sequence of Alternatives
        For each of them.

    Returns
    -------
    tuple of (tuple of float, int) or None
        Log-probabilities and how many of them are such bounds; None if no alternative belongs to
        any label. NaN if the server reported NaN for an alternative of the label.
    """
    names = [_core(label) for label in labels]
    found: dict[int, list[float]] = {i: [] for i in range(len(names))}
    floor = math.inf
    path, before = "", 0.0
    for token, options in zip(written, alternatives, strict=False):
        for option, logprob in options:
            owners = _owners(names, path + option)
            if len(owners) == 1:
                found[owners[0]].append(before + logprob)
            if not math.isnan(logprob):
                floor = min(floor, before + logprob)
        path += token
        chosen = [value for option, value in options if option == token]
        if len(_owners(names, path)) < 2 or not chosen:
            break
        before += chosen[0]
    if not any(found.values()):
        return None
    scores = tuple(_log_sum(values) if values else floor for values in found.values())
    return scores, sum(not values for values in found.values())


def _core(text: str) -> str:
    return text.strip().casefold()


def _owners(names: Sequence[str], text: str) -> list[int]:
    """Return the labels that ``text`` completes, else those that it is the beginning of."""
    text = text.lstrip().casefold()
    complete = [i for i, name in enumerate(names) if _completes(name, text)]
    if complete:
        return [max(complete, key=lambda i: len(names[i]))]
    stripped = text.strip()
    return [i for i, name in enumerate(names) if stripped and name.startswith(stripped)] or (
        # nothing but space so far: every label is still possible
        [] if stripped else list(range(len(names)))
    )


def _completes(name: str, text: str) -> bool:
    """Whether ``text`` is the label, perhaps with something behind it that is not part of it."""
    if not text.startswith(name):
        return False
    rest = text[len(name) :]
    return not rest or not (rest[0].isalnum() and name[-1].isalnum())


def _log_sum(values: Sequence[float]) -> float:
    if any(math.isnan(value) for value in values):
        return math.nan
    top = max(values)
    if math.isinf(top):
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in values))
