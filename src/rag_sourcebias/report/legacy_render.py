"""A document as a web page, as Markdown and on a terminal."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape as escape_html
from itertools import count, groupby, zip_longest
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_sourcebias.core.errors import MissingExtraError
from rag_sourcebias.core.names import visible
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.blocks import MISSING, shorten
from rag_sourcebias.report.figures import Picture, draw
from rag_sourcebias.report.first import first_html, first_lines
from rag_sourcebias.report.render import failure_text

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import Console


# A page of any document: one template, one style sheet, the same rules for every report.


_logger = logging.getLogger("rag_sourcebias.report")
_LONGEST = 200
_ID = 60  # characters of an id
_WORD = re.compile(r"[a-z0-9]+")


@cache
def _environment(jinja2: Any) -> Any:  # noqa: ANN401 - a module, of which types may be missing
    """Return templates, compiled once: that takes longer than to fill them."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rag_sourcebias.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Adjacent rows with the same first cell; jinja's own ``groupby`` would sort them.
    environment.filters["groups"] = lambda rows: [
        (name, list(group)) for name, group in groupby(rows, key=itemgetter(0))
    ]
    return environment


def html(found: b.Document) -> str:
    """Return a self-contained page; everything but our own style and pictures is escaped.

    A picture that cannot be drawn leaves a sentence in its place, and the log says how many.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        from markupsafe import Markup
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "markupsafe"):
            raise
        raise MissingExtraError(
            package="jinja2", extra="report", feature="an HTML report"
        ) from error
    environment = _environment(jinja2)
    failures: list[str] = []
    numbers = count(1)

    def svg(picture: Picture) -> Markup:
        try:
            return Markup(draw(picture, uid=f"plot{next(numbers)}"))
        except MissingExtraError:
            raise
        except Exception as error:  # noqa: BLE001 - matplotlib's code; a picture costs no page
            failures.append(failure_text(error))
            return Markup(
                '<p class="undrawn">This picture could not be drawn ({}); its numbers are in the '
                "tables and in report.json.</p>"
            ).format(failures[-1])

    def source(name: str) -> str:
        return str(environment.loader.get_source(environment, name)[0])

    # Only our own style sheets, script and pictures, whose texts are escaped when they are
    # drawn, may pass without escaping.
    script = source("page.js")
    text: str = environment.get_template("legacy.html.jinja").render(
        doc=found,
        first=Markup(first_html(found)),
        anchor=_anchors(),
        label=_labels(),
        script=Markup(script),
        script_hash=f"sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}",
        met_words=b.MET,
        established=b.ESTABLISHED,
        kind_of=lambda block: type(block).__name__,
        is_name=lambda text: isinstance(text, b.Name),
        style=Markup(source("first.css") + source("style.css")),
        svg=svg,
    )
    if failures:
        _logger.warning(
            "%d of %d pictures of the page %r could not be drawn, the first because of %s; their "
            "numbers are in its tables and in report.json",
            len(failures),
            next(numbers) - 1,
            found.title,
            failures[0],
        )
    return text + "\n"


def _anchors() -> Callable[[str], str]:
    """Return a maker of ids for the tables and pictures of one page, from their captions."""
    used: dict[str, int] = {}

    def anchor(caption: str) -> str:
        name = "-".join(_WORD.findall(caption.lower()))[:_ID] or "part"
        used[name] = used.get(name, 0) + 1
        return f"at-{name}" + (f"-{used[name]}" if used[name] > 1 else "")

    return anchor


def _labels() -> Callable[[str], str]:
    """Return a maker of names for the tables of one page: a caption that comes again is counted."""
    used: dict[str, int] = {}

    def label(caption: str) -> str:
        used[caption] = used.get(caption, 0) + 1
        return f"{caption} ({used[caption]})" if used[caption] > 1 else caption

    return label


def notebook(found: b.Document) -> str:
    """Return the page as an element of a notebook, whose own style it neither sees nor changes."""
    title, page = escape_html(found.title), escape_html(html(found))
    return f'<iframe title="{title}" srcdoc="{page}" width="100%" height="800"></iframe>'


# Markdown and terminal output of any document.


_MARKS = {True: ("✓", "bold green"), False: ("✗", "bold red"), None: ("?", "bold yellow")}
Line: TypeAlias = tuple[str | tuple[str, str], ...]  # of a terminal: pieces, some with a style
_QUOTED = 600  # characters of a text in Markdown
_LABEL, _COLUMN, _INDENT = 22, 18, 2  # characters of a terminal
# Told apart by colour-blind readers, on dark and on light backgrounds; words say it as well.
_LOOKS = {"strong": "bold", "good": "green", "poor": "yellow", "": ""}
_SIDES = {
    "": "",
    "baseline": "color(33)",
    "other": "color(172)",
    "strong baseline": "bold color(33)",
    "strong other": "bold color(172)",
}
# Names come from users' data: none may start a link, a tag or a table cell.
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def markdown(found: b.Document) -> str:
    """Return GitHub-flavoured Markdown, ending in a newline."""
    lines, first = first_lines(found), found.first
    parts = [f"# {escape(found.title)}", f"**{escape(lines[0])}**", *map(escape, lines[1:])]
    if first.command:
        parts.append(f"{escape(first.why)} `{first.command}`")
    parts.append(escape(found.headline))
    parts += [f"> **Note:** {escape(warning)}" for warning in found.warnings]
    for section in found.sections:
        if inner := [part for block in section.blocks for part in _marked(block)]:
            parts += [f"## {escape(section.title)}", escape(section.lead), *inner]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(text: str) -> str:
    """Return ``text`` on one line, with nothing that Markdown or a terminal would interpret."""
    return _SPECIAL.sub(r"\\\1", " ".join(visible(text, lines=True).split()))


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {escape(item)}" for item in items)


def table(content: b.Table) -> str:
    """Return a table, words to the left and numbers to the right; nothing for no rows."""
    if not content.rows:
        return ""
    n = len(content.columns)
    rule = "".join("|-" if i < content.n_heads or n == 2 else "|-:" for i in range(n))
    head = " | ".join(escape(c) or " " for c in content.columns)
    rows = (" | ".join(escape(c) or MISSING for c in row) for row in content.rows)
    return "\n".join((f"| {head} |", f"{rule}|", *(f"| {row} |" for row in rows)))


def _marked(block: b.Block) -> Iterable[str]:
    return _MARKDOWN[type(block)](block) if "markdown" in block.to else ()


def _checked(block: b.Checks) -> b.Table:
    rows = tuple((group, name, b.MET[met], text) for group, name, met, text in block.rows)
    if len({group for group, *_ in rows}) == 1:
        return b.Table(columns=("criterion", "", "found"), rows=tuple(row[1:] for row in rows))
    return b.Table(columns=(block.group, "criterion", "", "found"), rows=rows, n_heads=2)


def _versions(block: b.Versions) -> Iterator[str]:
    yield f"### {escape(block.name) or '–'} ({escape(block.where)})"
    if block.about:
        yield escape(shorten(block.about, _QUOTED))
    yield _bullets(f"{flag}: {reason}" for flag, reason in block.findings)
    for side in block.sides:
        text = shorten("".join(piece for piece, _ in side.pieces), _QUOTED)
        yield f"> **{escape(side.label)}:** {escape(text)}"


def _list(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [_bullets(f"{who}: {text}" if who else text for who, text in rows)]


_MARKDOWN: dict[type[b.Block], Callable[[Any], Iterable[str]]] = {
    b.Heading: lambda block: [f"### {escape(', '.join((block.text, *block.tags)))}"],
    b.Paragraph: lambda block: [escape(block.text)],
    b.Cards: lambda block: _list((card.name, card.text) for card in block.cards),
    b.Checks: lambda block: [table(_checked(block))],
    b.Findings: lambda block: _list(
        (f"{topic} ({b.ESTABLISHED[shown]})", text) for topic, shown, text in block.rows
    ),
    b.Items: lambda block: _list(
        (who, f"{text} ({aside})" if aside else text)
        for (who, text), aside in zip_longest(block.rows, block.asides)
    ),
    b.Grid: lambda block: [table(block.table)],
    b.Facts: lambda block: [table(content) for _, content in block.tables],
    b.Fold: lambda block: [part for inner in block.blocks for part in _marked(inner)],
    b.Versions: _versions,
    b.Questions: lambda block: [
        f"**{escape(asked)}** {escape(told)}" for asked, told in block.rows
    ],
}


def terminal(found: b.Document, console: Console) -> None:
    """Print what a terminal has room for; its width decides how many columns stand side by side."""
    from rich.text import Text

    lines, first = first_lines(found), found.first
    console.print(Text(lines[0], style="bold"))
    for line in lines[1:]:
        console.print(Text(line))
    console.print()
    if "terminal" in found.headline_to:
        console.print(Text(found.headline))
        console.print()
    for section in found.sections:
        print_blocks(section.blocks, console)
    for warning in found.warnings:
        console.print(Text.assemble(("Warning: ", "bold yellow"), warning))
    if first.command:
        console.print()
        console.print(Text.assemble(f"{first.why} ", (first.command, "bold")))


def print_blocks(blocks: Iterable[b.Block], console: Console) -> None:
    """Print the blocks that a terminal shows."""
    from rich.text import Text

    for at, block in enumerate(block for block in blocks if "terminal" in block.to):
        if at and isinstance(block, b.Heading):
            console.print()
        if isinstance(block, b.Grid):
            _print_table(block, console)
        else:
            for line in _TERMINAL[type(block)](block):
                console.print(Text.assemble(*line))


def _checks(block: b.Checks) -> Iterator[Line]:
    several = len({group for group, *_ in block.rows}) > 1
    for group, name, met, text in block.rows:
        yield _MARKS[met], f" {name}{f' ({group})' if several else ''}: {text}"


def _findings(block: b.Findings) -> Iterator[Line]:
    for topic, shown, text in block.rows:
        if shown is None:
            yield ((f"– {topic}: {b.ESTABLISHED[shown]}, {text}", "dim"),)
        elif shown:
            yield ("• ", "bold"), (f"{topic}: ", "bold"), text
        else:
            yield ("? ", "dim"), f"{topic}: {text}"


_TERMINAL: dict[type[b.Block], Callable[[Any], Iterable[Line]]] = {
    b.Heading: lambda block: [((": ".join((block.text, *block.tags)), "bold underline"),)],
    b.Paragraph: lambda block: [((block.text, "dim" if block.look == "note" else ""),), ()],
    b.Checks: _checks,
    b.Findings: _findings,
    b.Lines: lambda block: [
        tuple((text, _LOOKS[look]) for text, look in pieces) for pieces in block.rows
    ],
    b.Items: lambda block: [
        ("• ", (f"{who}: " if who else "", "bold"), text) for who, text in block.rows
    ],
}


def _print_table(block: b.Grid, console: Console) -> None:
    from rich import box
    from rich.table import Table as Columns
    from rich.text import Text

    content, heads = block.table, block.table.n_heads
    rows = [
        (row, (side,) * len(row) if isinstance(side, str) else side)
        for row, side in zip_longest(content.rows, block.sides, fillvalue="")
        if not block.sparse or set(row[heads:]) - {"0", "–"}
    ]
    # A blank stands between columns.
    column = block.width + 1 if block.width else _COLUMN
    label = min(_LABEL + _INDENT * (heads > 1), max(8, console.width - column - 3))
    fit = max(1, (console.width - label - 2) // column)
    if block.together <= fit < len(content.columns) - heads:
        fit -= fit % block.together
    for start in range(heads, len(content.columns), fit):
        shown = range(start, min(start + fit, len(content.columns)))
        grid = Columns(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        grid.add_column(Text(content.columns[heads - 1]), width=label, overflow="fold")
        for i in shown:
            grid.add_column(
                Text(content.columns[i]),
                justify="right",
                overflow="fold",
                min_width=block.width - 1 if block.width else None,
            )
        under = ""
        for row, sides in rows:
            if heads > 1 and row[0] != under:
                under = row[0]
                grid.add_section()
                grid.add_row(Text(shorten(under, 2 * label), style="bold"))
            grid.add_row(
                Text(" " * _INDENT * bool(under) + row[heads - 1]),
                *(Text(row[i], style=_SIDES[sides[i]]) for i in shown),
            )
        console.print(grid)
