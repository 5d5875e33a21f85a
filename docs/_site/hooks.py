"""What mkdocs must be told so that pages written for the repository also read well as a site."""

from __future__ import annotations

import re
from posixpath import basename

LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\(\.\./(?P<path>[^)#\s]*)[^)]*\)")
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|ref):<code>~?(?:[\w.]+\.)?(\w+)</code>")
NOTHING = re.compile(r"\s*–\s*<div class=\"doc-md-description\">\s*</div>")
LITERAL = re.compile(r"<p>::</p>|(?<=\w):(?=:</p>)")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Point at the published copy of a plot; other links out of docs/ become plain text."""

    def replaced(found: re.Match[str]) -> str:
        if found["path"].startswith("benchmarks/results/") and found["mark"]:
            return f"![{found['text']}](plots/{basename(found['path'])})"
        return found["text"]

    return LINK.sub(replaced, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Show the roles of docstrings as code, without literal-block marks and empty descriptions."""
    return NOTHING.sub("", LITERAL.sub("", ROLE.sub(r"<code>\1</code>", html)))
