"""What mkdocs must be told so that pages written for the repository also read well as a site."""

from __future__ import annotations

import re
from posixpath import basename
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\(\.\./(?P<path>[^)#\s]*)[^)]*\)")
ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod|ref):<code>~?(?:[\w.]+\.)?(\w+)</code>")
NOTHING = re.compile(r"\s*–\s*<div class=\"doc-md-description\">\s*</div>")
SHORT = re.compile(r"(?<!<pre>)<code>(?=[^<]{1,32}</code>)")
OF_TWO = re.compile(r"(?<=<td>)([\d.]+) / ([\d.]+)(?=</td>)")
RULED = re.compile(r"<p>={4,}[ =]*\n(?P<rows>.*?)\n={4,}[ =]*</p>", flags=re.DOTALL)
PAPER = re.compile(r"(<pre.*?</pre>|<code.*?</code>|<[^>]+>)|\[([KWR])\]", flags=re.DOTALL)
LITERAL = re.compile(r"<p>::</p>|(?<=\w):(?=:</p>)")


def on_nav(nav: Navigation, files: Files, **_: object) -> Navigation:
    """Publish no page of the list that the navigation of the reference was read from."""
    listed = files.get_file_from_path("reference/SUMMARY.md")
    if listed is not None:
        files.remove(listed)
    return nav


def on_page_markdown(markdown: str, page: Page | None = None, **_: object) -> str:
    """Point at the published copy of a plot; other links out of docs/ become plain text."""
    if page is not None and page.file.src_uri.startswith("notebooks/"):
        return markdown  # what they link to lies in docs/

    def replaced(found: re.Match[str]) -> str:
        if found["path"].startswith("benchmarks/results/") and found["mark"]:
            return f"![{found['text']}](plots/{basename(found['path'])})"
        return found["text"]

    return LINK.sub(replaced, markdown)


def table(found: re.Match[str]) -> str:
    """Return a table of a docstring, drawn with signs, as it was drawn."""
    rows = re.sub(r"</?code>", "", found["rows"])
    return f"<pre><code>{re.sub(r'^[ =]+$', '', rows, flags=re.MULTILINE)}</code></pre>"


def cited(found: re.Match[str]) -> str:
    """Return the mark of a paper with a link to the list of papers; code stays as it is."""
    return found[1] or f'<a href="../#papers">[{found[2]}]</a>'


def on_page_content(html: str, page: Page | None = None, **_: object) -> str:
    """Show the roles of docstrings as code, without literal-block marks and empty descriptions.

    Short code such as an option stays on one line (``short`` in site.css), and so do two figures of
    one cell.
    """
    html = RULED.sub(table, html)
    if page is not None and page.file.src_uri.startswith("reference/rag_"):
        html = PAPER.sub(cited, html)
    said = NOTHING.sub("", LITERAL.sub("", ROLE.sub(r"<code>\1</code>", html)))
    return OF_TWO.sub(r"\1&nbsp;/&nbsp;\2", SHORT.sub('<code class="short">', said))
