"""The layout in which LlamaIndex keeps nodes in Chroma: the whole node as JSON in one key.

LlamaIndex rebuilds a node from that JSON alone, so a tag has to stand there too, and has to be
excluded from the text that is embedded and from the text that is shown to the language model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from rag_sourcebias.errors import DataError

__all__ = ["NODE_KEY", "Layout", "embedded_text", "is_node", "rewrite_node"]

Layout = Literal["auto", "flat", "llama-index"]
NODE_KEY = "_node_content"
_EXCLUDED = ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys")
_COMPACT = re.compile(r'\{"[^"\\]*":\S')  # JSON without a space after the colon


def is_node(doc_id: str, metadata: Mapping[str, object], layout: Layout) -> bool:
    """Whether the node JSON of a document has to be rewritten.

    Raises
    ------
    DataError
        If ``layout="llama-index"`` was asked for and the document has none.
    """
    if layout == "flat":
        return False
    if isinstance(metadata.get(NODE_KEY), str):
        return True
    if layout == "llama-index":
        raise DataError(
            f"document {doc_id!r} has no {NODE_KEY!r} as LlamaIndex writes it; expected "
            'layout="auto" or layout="flat" for this collection'
        )
    return False


def rewrite_node(doc_id: str, content: str, update: Mapping[str, object]) -> str:
    """Return the node's JSON with the metadata changed and excluded from every text.

    Parameters
    ----------
    content : str
        The node as LlamaIndex wrote it. Its hash is left as it is: a new one would make
        LlamaIndex embed the document again.
    update : mapping
        Metadata to set; None deletes a key.

    Raises
    ------
    DataError
        If the content is not a node.
    """
    node = _node(doc_id, content)
    metadata = node.setdefault("metadata", {})
    for key, value in update.items():
        if value is None:
            metadata.pop(key, None)
        else:
            metadata[key] = value
    for name in _EXCLUDED:
        excluded = node.setdefault(name, [])
        excluded += [
            key for key, value in update.items() if value is not None and key not in excluded
        ]
    return json.dumps(
        node,
        ensure_ascii=content.isascii(),
        separators=(",", ":") if _COMPACT.match(content) else None,
    )


def embedded_text(doc_id: str, document: str, metadata: Mapping[str, object]) -> str:
    """Text that the framework that filled the collection gives to its encoder.

    LlamaIndex embeds a node's metadata with its text, by the templates that the node carries;
    every other document is embedded as it is stored.
    """
    content = metadata.get(NODE_KEY)
    if not isinstance(content, str):
        return document
    node = _node(doc_id, content)
    excluded = node.get("excluded_embed_metadata_keys") or ()
    one = node.get("metadata_template", "{key}: {value}")
    # the misspelled key is the one that LlamaIndex writes
    separator = node.get("metadata_seperator", node.get("metadata_separator", "\n"))
    lines = [
        one.format(key=key, value=str(value))
        for key, value in node.get("metadata", {}).items()
        if key not in excluded
    ]
    whole = node.get("text_template", "{metadata_str}\n\n{content}")
    return (
        whole.format(content=document, metadata_str=separator.join(lines)).strip()
        if lines
        else document
    )


def _node(doc_id: str, content: str) -> dict[str, Any]:
    try:
        node = json.loads(content)
    except (ValueError, RecursionError):
        node = None
    lists = [node.get(name, []) for name in _EXCLUDED] if isinstance(node, dict) else [None]
    if (
        not isinstance(node, dict)
        or not isinstance(node.get("metadata", {}), dict)
        or not all(isinstance(item, list) for item in lists)
    ):
        raise DataError(
            f"document {doc_id!r}: {NODE_KEY!r} is not a node as LlamaIndex writes it "
            f'({content[:80]!r}); layout="flat" leaves it as it is'
        )
    return node
