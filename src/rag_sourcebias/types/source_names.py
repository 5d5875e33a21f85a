"""Names of sources."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.names import require_name


def is_source(name: str) -> bool:
    """Whether a name is "human" or "llm:<model>"."""
    return name == "human" or (name.startswith("llm:") and bool(name[4:].strip()))


def check_source(source: str) -> str:
    """Return a source name as it is, if it is one.

    Parameters
    ----------
    source : str
        ``"human"`` or ``"llm:<model>"``.

    Raises
    ------
    DataError
        If it is anything else, or holds control characters; an unknown source is None, never a
        word.

    Examples
    --------
    >>> check_source("llm:gpt-4o")
    'llm:gpt-4o'
    """
    if is_source(source):
        return require_name(source, "source")
    raise DataError(
        f"source {source!r} is not a source name; expected 'human' or 'llm:<model>' "
        "(leave it out where the source is unknown)"
    )
