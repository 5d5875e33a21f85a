"""What a document declares about its origin in standard fields, read as it stands.

IPTC NewsCodes ``digitalSourceType``; ``AI-Disclosure`` as in draft-abaris-aicdh-01; C2PA 2.3 text
manifests. A value that is not in the tables below says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rag_sourcebias.tagging.html_fields import html_fields
from rag_sourcebias.tagging.text_manifest import read_text_manifest

__all__ = ["Declaration", "read_declarations"]

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
