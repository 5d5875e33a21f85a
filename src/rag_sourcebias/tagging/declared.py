"""Tags from provenance that a document declares in standard fields."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rag_sourcebias.core.data import DocTags

# Provenance fields of a text that is an HTML page.


_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|\?xml)\b", re.IGNORECASE)
_END_OF_HEAD = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
_META = re.compile(r"<meta\s([^>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_JSON_LD = re.compile(
    r"""<script\b[^>]*type\s*=\s*["']?application/ld\+json["']?[^>]*>(.*?)</script""",
    re.IGNORECASE | re.DOTALL,
)
_MEDIA = ("ImageObject", "VideoObject", "AudioObject", "MediaObject", "Photograph")


def html_fields(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of the ``<meta>`` tags of the head and of JSON-LD ``digitalSourceType``.

    A text that is no page (it only talks about these fields) gives nothing, and neither does what
    the JSON-LD says of the page's pictures.

    Examples
    --------
    >>> list(html_fields('<html><head><meta name="AI-Disclosure" content="mode=none"></head>'))
    [('AI-Disclosure', 'mode=none')]
    """
    page = text.lstrip("\ufeff")
    if not _PAGE.match(page):
        return
    end = _END_OF_HEAD.search(page)
    # comments are no part of the page
    head = re.sub(r"<!--.*?-->", "", page[: end.start() if end else len(page)], flags=re.DOTALL)
    for tag in _META.findall(head):
        given = {k.casefold(): a or b or c for k, a, b, c in _ATTRIBUTE.findall(tag)}
        name = given.get("name") or given.get("property") or given.get("http-equiv")
        if name and given.get("content"):
            yield name, html.unescape(given["content"])
    for block in _JSON_LD.findall(page):
        for value in _source_types(block):
            yield "digitalSourceType", value


def _source_types(block: str) -> Iterator[str]:
    try:
        content = json.loads(block)
    except (ValueError, RecursionError):  # a broken page is not our caller's error
        return
    nodes = content if isinstance(content, list) else [content]
    nodes += [n for node in nodes if isinstance(node, dict) for n in _list(node.get("@graph"))]
    for node in nodes:
        if isinstance(node, dict) and not set(map(str, _list(node.get("@type")))) & set(_MEDIA):
            yield from (v for v in _list(node.get("digitalSourceType")) if isinstance(v, str))


def _list(value: object) -> list[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


# C2PA manifests that are embedded invisibly in plain text.
# A wrapper is U+FEFF followed by variation selectors, one per byte: bytes 0 to 15 are U+FE00 to
# U+FE0F, bytes 16 to 255 are U+E0100 to U+E01EF. The bytes are the magic ``C2PATXT\0``, a version,
# the big-endian length and the manifest store (C2PA 2.3, Appendix A.7, unstructured text). Look
# for it in the whole document before chunking: chunkers split it, cleaners drop it.


_MAGIC = b"C2PATXT\0"
_HEADER = len(_MAGIC) + 1 + 4


def _selectors(data: bytes) -> str:
    return "".join(chr(0xFE00 + b if b < 16 else 0xE0100 + b - 16) for b in data)


_MARK = "\ufeff" + _selectors(_MAGIC)
_WRAPPER = re.compile(re.escape(_MARK) + "([\ufe00-\ufe0f\U000e0100-\U000e01ef]*)")
_BYTES = {ord(_selectors(bytes([b]))): b for b in range(256)}
# CBOR: 0x60 + n (n < 24) or 0x78 and a length byte start a text of n bytes
_TEXT = rb"(?:[\x61-\x77]|\x78.|\x79..)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextManifest:
    """What one embedded manifest store says; its signature is **not** verified.

    Parameters
    ----------
    complete : bool
        False when the wrapper is cut short or of another version: then nothing is read from it.
    claim_generator : str or None
        The software that made the claim, which need not be what wrote the text.
    source_types : tuple of str
        Every ``digitalSourceType`` in the store, ingredients included, in order.
    """

    complete: bool
    claim_generator: str | None = None
    source_types: tuple[str, ...] = ()


def read_text_manifest(text: str) -> TextManifest | None:
    """Return what the last manifest of a text says, None when it holds none.

    Examples
    --------
    >>> read_text_manifest("plain") is None
    True
    """
    if _MARK not in text:
        return None
    data = bytes(_BYTES[ord(char)] for char in _WRAPPER.findall(text)[-1])
    start = _HEADER - len(_MAGIC)
    store = data[start : start + int.from_bytes(data[1:start], "big")]
    if len(data) < start or data[0] != 1 or len(store) < int.from_bytes(data[1:start], "big"):
        return TextManifest(complete=False)
    generators = _texts_after(store, b"\x6fclaim_generator")
    if not generators:
        # claim_generator_info is a map (or a list of one) whose "name" is the software
        at = store.find(b"\x74claim_generator_info")
        generators = _texts_after(store[at : at + 300], b"\x64name") if at >= 0 else []
    return TextManifest(
        complete=True,
        claim_generator=generators[-1] if generators else None,
        source_types=tuple(_texts_after(store, b"\x71digitalSourceType")),
    )


def strip_text_manifests(text: str) -> str:
    """Return the text without embedded manifests, as it should be embedded and prompted.

    Other variation selectors, such as those of emoji, are kept.
    """
    return _WRAPPER.sub("", text) if _MARK in text else text


def _texts_after(store: bytes, key: bytes) -> list[str]:
    """CBOR texts that directly follow a CBOR key."""
    found: list[str] = []
    for hit in re.finditer(re.escape(key) + b"(" + _TEXT + b")", store, re.DOTALL):
        head = hit.group(1)
        size = head[0] - 0x60 if len(head) == 1 else int.from_bytes(head[1:], "big")
        raw = store[hit.end() : hit.end() + size]
        if len(raw) == size:
            found.append(raw.decode("utf-8", errors="replace"))
    return found


# What a document declares about its origin in standard fields, read as it stands.
# IPTC NewsCodes ``digitalSourceType``; ``AI-Disclosure`` as in draft-abaris-aicdh-01; C2PA 2.3
# text manifests. A value that is not in the tables below says nothing.


Says = Literal["human", "llm", "mixed", "nothing"]
_TYPES: dict[str, Says] = {
    "trainedalgorithmicmedia": "llm",
    "compositewithtrainedalgorithmicmedia": "mixed",
    "compositesynthetic": "mixed",
    "digitalcreation": "human",
    "humanedits": "human",
    # made or improved by an algorithm that need not be a language model, or not about authorship
    "algorithmicallyenhanced": "nothing",
    "algorithmicmedia": "nothing",
}
_MODES: dict[str, Says] = {
    "none": "human",
    "ai-modified": "mixed",
    "ai-originated": "llm",
    "machine-generated": "llm",
}
_CONTAINERS = ("headers", "http_headers", "response_headers", "iptc", "xmp", "provenance", "meta")
_PARAMETER = re.compile(r"""([A-Za-z][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]+))""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One declared field.

    Parameters
    ----------
    field : {"digitalSourceType", "AI-Disclosure", "C2PA"}
    value : str
        As it was declared.
    says : {"human", "llm", "mixed", "nothing"}
        ``"mixed"`` is human text changed by a model; ``"nothing"`` a value that names no origin.
    model : str or None
        The model, where the field names one.
    """

    field: str
    value: str
    says: Says
    model: str | None = None


def read_declarations(text: str, metadata: Mapping[str, object]) -> Iterator[Declaration]:
    """Every declaration of one document: metadata, then HTML fields, then text manifest."""
    yield from _of_fields(metadata)
    for name in _CONTAINERS:
        inner = metadata.get(name)
        if isinstance(inner, Mapping):
            yield from _of_fields(inner)
    for name, value in html_fields(text):
        yield from _of_fields({name: value})
    manifest = read_text_manifest(text)
    if manifest is not None:
        for value in manifest.source_types:
            yield Declaration(field="C2PA", value=value, says=_type(value))
        if not manifest.source_types:
            value = manifest.claim_generator or ("present" if manifest.complete else "cut short")
            yield Declaration(field="C2PA", value=value, says="nothing")


def _of_fields(fields: Mapping[str, object]) -> Iterator[Declaration]:
    for key, value in fields.items():
        name = _plain(key)
        if name is None or not isinstance(value, str) or not value.strip():
            continue
        if name == "digitalsourcetype":
            yield Declaration(field="digitalSourceType", value=value, says=_type(value))
        else:
            yield _disclosure(value)


@lru_cache(maxsize=1024)
def _plain(key: object) -> str | None:
    """Field name without namespace, case and separators; None when it is none of ours."""
    name = re.sub(r"[-_ ]", "", re.split(r"[:./]", str(key))[-1]).casefold()
    return name if name in {"digitalsourcetype", "aidisclosure"} else None


def _type(value: str) -> Says:
    term = re.split(r"[/#:]", value.strip().rstrip("/"))[-1].casefold()
    return _TYPES.get(term.removesuffix("digitalsource"), "nothing")


def _disclosure(value: str) -> Declaration:
    given = {k.casefold(): quoted or bare for k, quoted, bare in _PARAMETER.findall(value)}
    mode = given.get("mode", value.strip()).casefold()
    return Declaration(
        field="AI-Disclosure",
        value=value,
        says=_MODES.get(mode, "nothing"),
        model=given.get("model", "").strip() or None,
    )


# Tags from provenance that a document declares in standard fields.
# Read are IPTC ``digitalSourceType`` (NewsCodes URI, bare term, or the schema.org form), the ``AI-
# Disclosure`` field (draft-abaris-aicdh) and C2PA text manifests. Nothing is verified and nothing
# is guessed: a declaration that names neither of the two origins gives no source.


#: Source of a text declared as generated where no model is named.
UNNAMED_MODEL = "llm:unnamed"
_READS = "provenance:1"


class ProvenanceTagger:
    """Tag documents by what they declare about themselves.

    Fields are read from the metadata (any spelling of the two names, also under ``headers``,
    ``iptc``, ``xmp``, ``provenance``, ``meta``), from the head and the JSON-LD of a text that is an
    HTML page, and from C2PA text manifests. When declarations disagree the source stays unknown.
    The origin is "provenance" even where the source is unknown: the document said something.

    Attributes
    ----------
    seen : Counter
        Declarations by ``"field: what it says"``, and ``"conflict"`` per disagreeing document.

    Examples
    --------
    >>> tagger = ProvenanceTagger()
    >>> tagger("d1", "text", {"AI-Disclosure": 'mode=ai-originated, model="gpt-4o"'}).source
    'llm:gpt-4o'
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    @property
    def fingerprint(self) -> str:
        """Identity of what is read as a declaration; a release that reads more changes it."""
        return _READS

    def read(self, text: str, metadata: Mapping[str, object]) -> tuple[Declaration, ...]:
        """Every declaration of one document, metadata first."""
        return tuple(read_declarations(text, metadata))

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document; None when it declares nothing."""
        found = self.read(text, metadata)
        if not found:
            return None
        self.seen.update(f"{d.field}: {d.says}" for d in found)
        said = {d.says for d in found} - {"nothing"}
        models = {d.model for d in found if d.says == "llm" and d.model}
        if len(said) > 1 or len(models) > 1:
            self.seen["conflict"] += 1
            return DocTags(origin="provenance")
        if said == {"human"}:
            return DocTags(source="human", origin="provenance")
        if said == {"llm"}:
            source = f"llm:{models.pop()}" if models else UNNAMED_MODEL
            return DocTags(source=source, origin="provenance")
        return DocTags(origin="provenance")
