"""Names and texts from elsewhere: which may be read, how they are shown, which name a source."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from rag_sourcebias.core.errors import DataError

_LONGEST = 80
_CHARACTERS = (
    r"\x7f-\x9f"  # control characters beyond ASCII: terminals read 0x9b as the start of an escape
    r"\u2028-\u202e"  # line and paragraph separators, embeddings and overrides of direction
    r"\u2066-\u2069"  # isolates of direction
    r"\ud800-\udfff"
    r"\ufffe\uffff"
)
_IN_NAMES = re.compile(rf"[\x00-\x1f{_CHARACTERS}]")
_IN_TEXTS = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_CHARACTERS}]|\r(?!\n)")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text whose control characters, overrides and surrogates are written out.

    Parameters
    ----------
    text : str
    lines : bool
        Leave tabs and line ends as they are, as in an excerpt of a document.

    Returns
    -------
    str
        Each as ``\uXXXX``, as JSON writes it: JSON text stays the same value.

    Examples
    --------
    >>> print(visible("llm:\x1b[31mred"))
    llm:\u001b[31mred
    """
    pattern = _IN_TEXTS if lines else _IN_NAMES
    # most texts are printable, and none of these characters is
    return text if text.isprintable() else pattern.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def require_name(name: str, what: str, where: str = "") -> str:
    """Return a name that can be shown as it is.

    Parameters
    ----------
    name : str
    what : str
        What it names, such as "source".
    where : str
        File and line, or document; may be empty.

    Raises
    ------
    DataError
        If it holds a control character, a line break, half of a surrogate pair or a character that
        turns the direction of text.
    """
    found = None if name.isprintable() else _IN_NAMES.search(name)
    if found is None:
        return name
    shown = visible(name)
    cut = f"{shown[:_LONGEST]}…" if len(shown) > _LONGEST else shown
    raise DataError(
        f"{visible(where)}{': ' if where else ''}{what} '{cut}' holds U+{ord(found[0]):04X}, "
        f"{_kind(found[0])}; remove it from the name"
    )


def _kind(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return "half of a surrogate pair"
    if "\u202a" <= character <= "\u2069":
        return "which turns the direction of text"
    if character in "\n\r\x0b\x0c\x85\u2028\u2029":
        return "a line break"
    return "no character" if character in "\ufffe\uffff" else "a control character"


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


# How names are written in sentences and in commands.


CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
_SAMPLES = ("crowdrag-rewrites", "EVOUNA sample")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_./")  # needs no quotes in a shell


def data_argument(name: str, stand_in: str = "my-data") -> str:
    """Return data as a command takes them: the bundled sample, their own name, or a stand-in."""
    if name in _SAMPLES:
        return "--sample"
    if name.partition("/")[0] == "outfox-essays":
        return "--dataset outfox-essays"
    is_file = "." in name or "." not in stand_in  # what Python was given is none
    return name if name and is_file and not set(name) - _PLAIN else stand_in


def source_name(source: str) -> str:
    """Return a source as prose: ``human-written``, ``LLM-written (llama-2)``, ``untagged``."""
    if source.startswith("llm:"):
        return f"LLM-written ({source[4:]})"
    return {"": "untagged", "human": "human-written", "llm": "LLM-written"}.get(source, source)


def short_names(sources: Iterable[str]) -> dict[str, str]:
    """Return the shortest unambiguous name of each source: ``human``, ``LLM``, ``LLM gpt-4``."""
    known = list(dict.fromkeys(sources))
    names = {source: source or "untagged" for source in known}
    models = [source for source in known if source == "llm" or source.startswith("llm:")]
    for source in models:
        names[source] = "LLM" if len(models) == 1 else f"LLM {source[4:]}".strip()
    return names


def split_measure(measure: str) -> tuple[str, int | None]:
    """Split ``"NDCG@5"`` into ``("NDCG", 5)``; the cutoff is None where there is none."""
    name, _, cutoff = measure.partition("@")
    return name, int(cutoff) if cutoff.isdigit() else None
