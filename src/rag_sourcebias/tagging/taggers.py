"""Identity of taggers: it changes when they would tag differently, so that stale tags are seen."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import TypeAlias

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError, SourceBiasError

# What a tagger is, and how several of them decide one document together.


#: ``(doc_id, text, metadata)`` to tags, or to None where the tagger knows nothing.
Tagger: TypeAlias = Callable[[str, str, Mapping[str, object]], DocTags | None]
"""Takes id, text and metadata of a document; returns its tags, or None where it knows nothing."""

Row: TypeAlias = tuple[str, str, Mapping[str, object]]

_CHUNK = 256  # documents given at once to taggers that are faster with many


def tag_documents(
    documents: Iterable[Row], taggers: Sequence[Tagger]
) -> Iterator[tuple[str, DocTags]]:
    """Tag documents in their order, with constant memory.

    Each of source, style and pair id comes from the first tagger that knows it; origin and
    confidence come with the source. What no tagger knows stays None. Where no tagger knows the
    source, the origin is the first one given (declared provenance may say that a text is neither
    of the two), otherwise None.

    Parameters
    ----------
    documents : iterable of (doc_id, text, metadata)
    taggers : sequence of Tagger
        In order of trust. One that has ``tag_many(texts)``, returning a list of ``DocTags`` or
        None, is given many texts at once.

    Yields
    ------
    tuple of (str, DocTags)
        One for every document, in the given order.

    Raises
    ------
    DataError
        If a tagger raises or returns something else than tags: names document and tagger.
    """
    rows = iter(documents)
    while chunk := list(islice(rows, _CHUNK)):
        found = [_ask_many(tagger, chunk) for tagger in taggers]
        for index, (doc_id, _, _) in enumerate(chunk):
            known = [tags for column in found if (tags := column[index]) is not None]
            yield doc_id, _combine(known)


def _name(tagger: Tagger) -> str:
    return getattr(tagger, "__qualname__", None) or type(tagger).__qualname__


def _ask_many(tagger: Tagger, rows: Sequence[Row]) -> list[DocTags | None]:
    name = _name(tagger)
    tag_many = getattr(tagger, "tag_many", None)
    if tag_many is None:
        return [_ask(tagger, name, *row) for row in rows]
    try:
        found = list(tag_many([text for _, text, _ in rows]))
    except Exception as error:  # as for one document
        raise DataError(
            f"documents {rows[0][0]!r} to {rows[-1][0]!r}: tagger {name} raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if len(found) != len(rows):
        raise DataError(f"tagger {name} returned {len(found)} tags for {len(rows)} texts")
    return [_checked(tags, name, row[0]) for tags, row in zip(found, rows, strict=True)]


def _ask(
    tagger: Tagger, name: str, doc_id: str, text: str, metadata: Mapping[str, object]
) -> DocTags | None:
    try:
        tags = tagger(doc_id, text, metadata)
    except SourceBiasError as error:
        raise DataError(f"document {doc_id!r}: tagger {name}: {error}") from error
    except Exception as error:  # the caller's own code: whatever it raises, name the document
        raise DataError(
            f"document {doc_id!r}: tagger {name} raised {type(error).__name__}: {error}; "
            "a tagger returns DocTags, or None where it knows nothing"
        ) from error
    return _checked(tags, name, doc_id)


def _checked(tags: object, name: str, doc_id: str) -> DocTags | None:
    if tags is None or isinstance(tags, DocTags):
        return tags
    raise DataError(
        f"document {doc_id!r}: tagger {name} returned {tags!r} ({type(tags).__name__}); "
        "expected DocTags, or None where it knows nothing"
    )


def _combine(found: Sequence[DocTags]) -> DocTags:
    if len(found) == 1:
        return found[0]
    decided = next((tags for tags in found if tags.source is not None), None)
    if decided is None:
        decided = next((tags for tags in found if tags.origin is not None), DocTags())
    return DocTags(
        source=decided.source,
        style=next((tags.style for tags in found if tags.style is not None), None),
        pair_id=next((tags.pair_id for tags in found if tags.pair_id is not None), None),
        origin=decided.origin,
        confidence=decided.confidence,
    )


# Identity of taggers: it changes when they would tag differently, so that stale tags are seen.


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
