"""Reference answers that list several accepted wordings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_sourcebias.errors import DataError

__all__ = ["split_references"]

# The whole reference may be a date or a fraction ("9/11", "5/18/2018") as well as alternatives.
_NUMBERS = re.compile(r"\s*\d{1,2}/\d{1,2}(/\d{2,4})?\s*")


def split_references(reference: str | Sequence[str], *, separator: str | None = "/") -> list[str]:
    """Return the alternatives of a reference answer, in order, each once.

    Parameters
    ----------
    reference : str or sequence of str
        One string such as ``"US/United States"``, or a list of alternatives, which are taken as
        they are.
    separator : str or None
        What stands between the alternatives of a string; None if nothing does. A slash inside a
        name ("AC/DC") cannot be told from a separator: give such references as a list. A
        reference that is a date or a fraction ("9/11") is kept whole beside its parts.

    Raises
    ------
    DataError
        If nothing is left.

    Examples
    --------
    >>> split_references("291 episodes/291")
    ['291 episodes', '291']
    """
    if separator == "":
        raise DataError("separator '' is empty; give the text between alternatives, or None")
    if not isinstance(reference, str):
        parts = list(reference or ())  # files hold None where there is no reference
    elif separator is None:
        parts = [reference]
    else:
        whole = separator == "/" and _NUMBERS.fullmatch(reference) is not None
        parts = [reference] * whole + reference.split(separator)
    if not all(isinstance(part, str) for part in parts):
        raise DataError(f"reference {reference!r} holds something that is not text")
    kept = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    if not kept:
        raise DataError(f"reference {reference!r} holds no text; at least one wording is needed")
    return kept
