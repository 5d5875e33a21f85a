"""Identity of taggers: it changes when they would tag differently, so that stale tags are seen."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Mapping, Sequence, Set
from types import CodeType, FunctionType, MethodType

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.taggers import Tagger

__all__ = ["digest", "taggers_fingerprint"]


def taggers_fingerprint(taggers: Tagger | Sequence[Tagger]) -> str:
    """Identity of taggers in their order, as 16 hexadecimal digits.

    A tagger says who it is by an attribute ``fingerprint`` (a text). A plain function without one
    is known by its code, its defaults and the plain values it closes over; what it reads from
    elsewhere is not seen, so set the attribute on a function that reads a file or a global.

    Raises
    ------
    DataError
        Without taggers, or for an object that has no ``fingerprint`` and is no function.

    Examples
    --------
    >>> from rag_sourcebias.tagging import IdTagger
    >>> taggers_fingerprint(IdTagger()) == taggers_fingerprint([IdTagger()])
    True
    """
    several = [taggers] if callable(taggers) else list(taggers)
    if not several:
        raise DataError("no taggers; expected at least one")
    return digest([_identity(tagger) for tagger in several])


def digest(*parts: object) -> str:
    """Hash plain values (texts, numbers, sequences, sets, mappings) to 16 hexadecimal digits."""
    text = json.dumps([_plain(part) for part in parts], sort_keys=True)
    return hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()


def _identity(tagger: object) -> object:
    named = getattr(tagger, "fingerprint", None)
    if isinstance(named, str) and named:
        return named
    if isinstance(tagger, functools.partial):
        return ["partial", _identity(tagger.func), _plain(tagger.args), _plain(tagger.keywords)]
    if isinstance(tagger, FunctionType):
        cells = [cell.cell_contents for cell in tagger.__closure__ or ()]
        cells = [value for value in cells if value is not tagger]  # it may call itself
        defaults = [tagger.__defaults__, tagger.__kwdefaults__]
        return ["function", _code(tagger), *(_value(value) for value in [*cells, defaults])]
    what = "a bound method" if isinstance(tagger, MethodType) else type(tagger).__name__
    raise DataError(
        f"a tagger ({what}) has no fingerprint; give it an attribute 'fingerprint', a text that "
        "changes whenever it would tag differently"
    )


def _code(function: FunctionType) -> object:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # typed at a prompt, or made by exec
        return _bytecode(function.__code__)


def _bytecode(code: CodeType) -> object:
    constants = [
        _bytecode(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts
    ]
    return [code.co_code.hex(), list(code.co_names), constants]


def _value(value: object) -> object:
    return _identity(value) if isinstance(value, FunctionType) else _plain(value)


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {f"{type(key).__name__}:{key}": _plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return ["set", *sorted(json.dumps(_plain(item)) for item in value)]
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item) for item in value]
    named = getattr(value, "fingerprint", None)
    if isinstance(named, str) and named:
        return named
    raise DataError(
        f"{value!r:.80} ({type(value).__name__}) has no fingerprint, so a tagger that holds it "
        "cannot be told from others; give the tagger an attribute 'fingerprint'"
    )
