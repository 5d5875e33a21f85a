"""Markdown from texts that come from users' data."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rag_sourcebias.report.format import MISSING
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.names import visible

__all__ = ["bullets", "document", "escape", "table"]

# Names come from users' data: none may start a link, a tag or a table cell.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def escape(text: str) -> str:
    """Return ``text`` on one line, with nothing that Markdown or a terminal would interpret."""
    return _SPECIAL.sub(r"\\\1", " ".join(visible(text, lines=True).split()))


def bullets(items: Iterable[str]) -> str:
    """Return a list, or nothing for no items."""
    return "\n".join(f"- {escape(item)}" for item in items)


def table(content: Table) -> str:
    """Return a table, words to the left and numbers to the right; nothing for no rows."""
    if not content.rows:
        return ""
    rule = [
        "---" if i < content.n_heads or len(content.columns) == 2 else "--:"
        for i in range(len(content.columns))
    ]
    lines = [[escape(c) or " " for c in content.columns], rule]
    lines += [[escape(c) or MISSING for c in row] for row in content.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def document(blocks: Iterable[str]) -> str:
    """Return paragraphs as a file; empty ones are left out."""
    return "\n\n".join(block for block in blocks if block) + "\n"
