r"""C2PA manifests that are embedded invisibly in plain text.

A wrapper is U+FEFF followed by variation selectors, one per byte: bytes 0 to 15 are U+FE00 to
U+FE0F, bytes 16 to 255 are U+E0100 to U+E01EF. The bytes are the magic ``C2PATXT\0``, a version,
the big-endian length and the manifest store (C2PA 2.3, Appendix A.7, unstructured text). Look for
it in the whole document before chunking: chunkers split it, cleaners drop it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["TextManifest", "read_text_manifest", "strip_text_manifests"]

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
