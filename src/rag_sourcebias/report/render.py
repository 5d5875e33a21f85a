"""Show a report: as a web page, as Markdown, on a terminal, in a notebook, and as files."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import re
import secrets
import shlex
import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from hashlib import sha256
from html import escape
from importlib import resources
from itertools import count, groupby, zip_longest
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from rag_sourcebias.core.codec import PathLike, Stored, sound, write_atomic
from rag_sourcebias.core.errors import (
    DataError,
    MissingExtraError,
    SourceBiasError,
    import_extra,
    visible,
)
from rag_sourcebias.core.finding import (
    MISSING,
    Finding,
    Frame,
    Interval,
    for_markdown,
    number,
    shorten,
)
from rag_sourcebias.intake.files import read_json
from rag_sourcebias.report.document import (
    Bar,
    Block,
    Cards,
    Checks,
    Document,
    Facts,
    First,
    FirstRow,
    Fold,
    Heading,
    Listing,
    Name,
    Only,
    Output,
    Pictures,
    Questions,
    Say,
    Section,
    Table,
    Versions,
    Words,
)
from rag_sourcebias.report.figures import Picture, draw

if TYPE_CHECKING:
    from markupsafe import Markup
    from rich.console import Console
    from rich.text import Text


#: What a check found.
MET = {True: "met", False: "not met", None: "not checked"}
_logger = logging.getLogger("rag_sourcebias.report")
T = TypeVar("T")
S = TypeVar("S", bound="Report")
_LONGEST = 200  # characters of an error
_ID = 60  # characters of an id
_WORD = re.compile(r"[a-z0-9]+")


def failure_text(error: Exception) -> str:
    """Return an error on one line that can be shown, with its kind unless it is one of ours."""
    text = visible(" ".join(str(error).split()))
    if not isinstance(error, SourceBiasError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text


def title_of(document: Document) -> str:
    """Return the title of a file."""
    return document.title or f"{document.kind}: {document.name}"


def _opened(blocks: Iterable[Block], output: Output) -> Iterator[Block]:
    """Yield the blocks of an output, those behind ``Only`` among them."""
    for block in blocks:
        if not isinstance(block, Only):
            yield block
        elif output in block.outputs:
            yield from _opened(block.blocks, output)


# The first screen, made without any library: for pages and notebooks.


def first_screen(document: Document) -> str:
    """Return the first screen as an element that brings its own style, for a notebook.

    It needs neither jinja2 nor matplotlib, follows the theme of the notebook or of the system, and
    loads nothing.
    """
    kind, name = escape(document.kind), escape(document.name)
    head = f'<p class="rsb-kind">{kind}: <bdi>{name}</bdi></p>'
    style = _asset("first.css")
    return f'<div class="rsb-first"><style>{style}</style>{head}{first_html(document.first)}</div>'


@cache
def _asset(name: str) -> str:
    folder = resources.files("rag_sourcebias.report").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


def words_html(words: Words) -> str:
    """Return what is said as HTML: all of it escaped, a name isolated, a command as code."""
    if isinstance(words, Finding):
        pieces = ((escape(text, quote=False), is_command) for text, is_command in words.pieces())
        return "".join(
            f"<code>{text}</code>" if is_command else text for text, is_command in pieces
        )
    text = escape(words, quote=False)
    return f"<bdi>{text}</bdi>" if isinstance(words, Name) else text


def first_html(first: First) -> str:
    """Return the answer, the verdict, the picture, what to doubt and the next command."""
    return "\n".join(_first_parts(first))


def _first_parts(first: First) -> Iterator[str]:
    yield f'<p class="rsb-answer">{words_html(first.answer)}</p>'
    if first.verdict:
        verdict = words_html(first.verdict)
        yield f'<p class="rsb-verdict {escape(first.standing)}">{verdict}</p>'
    for doubt in first.doubts:
        yield f'<p class="rsb-doubt">{words_html(doubt)}</p>'
    if first.rows:
        rows = "".join(map(_first_row, first.rows))
        caption = ""
        if first.caption:
            caption = f"<figcaption>{words_html(first.caption)}</figcaption>"
        key = _first_key(first.rows)
        axis = "".join(map(_first_end, first.scale))
        if axis:
            axis = f'<p class="rsb-axis">{axis}</p>'
        yield f'<figure class="rsb-figure">{caption}{key}<dl>{rows}</dl>{axis}</figure>'
    for line in first.shown:
        yield f'<p class="rsb-shown">{words_html(line)}</p>'
    if first.next is not None:
        parts = (
            f"<code>{escape(text)}</code>" if is_command else f"<span>{escape(text.strip())}</span>"
            for text, is_command in first.next.pieces()
        )
        yield f'<p class="rsb-next">{" ".join(parts)}</p>'


def _first_key(rows: tuple[FirstRow, ...]) -> str:
    """Return what each colour counts, once for all rows; with the counts where there is one row."""
    names = {str(name): colour for row in rows for name, _, colour in row.parts}
    counts: dict[str, str] = {}
    if len(rows) == 1:
        sizes = {str(name): size for name, size, _ in rows[0].parts}
        counts = {name: f" <b>{number(n, digits=0)}</b>" for name, n in sizes.items()}
        names = {name: colour for name, colour in names.items() if sizes[name]}
    items = "".join(
        f'<li class="{escape(colour)}"><bdi>{escape(name)}</bdi>{counts.get(name, "")}</li>'
        for name, colour in names.items()
    )
    return f'<ul class="rsb-key">{items}</ul>' if items else ""


def _first_end(lines: tuple[Words, ...]) -> str:
    """Return what stands at one place of the axis."""
    return f"<span>{'<br>'.join(map(words_html, lines))}</span>"


def _first_row(row: FirstRow) -> str:
    name = '<dt class="rsb-no"></dt>'
    if row.name:
        name = f"<dt><bdi>{escape(str(row.name))}</bdi> <small>{words_html(row.note)}</small></dt>"
    strip = "".join(_strip(row)) if row.parts else _scale(row.bar)
    values = ", ".join(f"{what}: {number(n, digits=0)}" for what, n, _ in row.parts) or row.text
    title = ": ".join(filter(None, (str(row.name), values)))  # for whoever points at it
    return (
        f'<div title="{escape(title)}">{name}<dd class="rsb-strip" aria-hidden="true">{strip}'
        f'</dd><dd class="rsb-text">{escape(row.text)}</dd></div>'
    )


def _strip(row: FirstRow) -> Iterator[str]:
    total = sum(size for _, size, _ in row.parts)
    for _, size, colour in row.parts:
        if size:
            yield f'<i class="{escape(colour)}" style="width:{100 * size / total:.2f}%"></i>'


def _scale(bar: Bar | None) -> str:
    if bar is None:
        return ""
    side = escape(bar.side)
    dot = f"dot {side}" if bar.solid else f"dot {side} hollow"
    parts = [
        f'<i class="line {side}" style="left:{bar.left}%;width:{bar.width}%"></i>',
        f'<i class="{dot}" style="left:{bar.dot}%"></i>',
    ]
    if bar.was is not None:
        parts.append(f'<i class="was" style="left:{bar.was}%"></i>')
    return "".join(parts)


# A page: one template, one style sheet.


def page(document: Document) -> str:
    """Return a self-contained page; everything but our own style and pictures is escaped.

    A picture that cannot be drawn leaves a sentence in its place, and the log says how many.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed.
    """
    jinja2 = import_extra("jinja2", "jinja2", "report", "an HTML report")
    safe: type[Markup] = import_extra("markupsafe", "jinja2", "report", "an HTML report").Markup
    failures: list[str] = []
    numbers = count(1)

    def svg(picture: Picture) -> Markup:
        try:
            return safe(draw(picture, uid=f"plot{next(numbers)}"))
        except MissingExtraError:
            raise
        except Exception as error:  # noqa: BLE001 - matplotlib's code; a picture costs no page
            failures.append(failure_text(error))
            return safe(
                '<p class="undrawn">This picture could not be drawn ({}); its numbers are in the '
                "tables and in report.json.</p>"
            ).format(failures[-1])

    # Only our own style sheets, script and pictures, and words that are escaped here, may pass
    # without being escaped.
    script = _asset("page.js")
    text: str = (
        _environment(jinja2, safe)
        .get_template("page.html.jinja")
        .render(
            document=document,
            title=title_of(document),
            first=safe(first_html(document.first)),
            anchor=_anchors(),
            label=_labels(),
            script=safe(script),
            script_hash=f"sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}",
            style=safe(_asset("first.css") + _asset("style.css")),
            svg=svg,
        )
    )
    if failures:
        _logger.warning(
            "%d of %d pictures of the page %r could not be drawn, the first because of %s; their "
            "numbers are in its tables and in report.json",
            len(failures),
            next(numbers) - 1,
            title_of(document),
            failures[0],
        )
    return text + "\n"


@cache
def _environment(jinja2: Any, safe: type[Markup]) -> Any:  # noqa: ANN401 - a module
    """Return templates, compiled once: that takes longer than to fill them."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rag_sourcebias.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[[Any], Any]] = {
        "words": lambda words: safe(words_html(words)),
        "sentences": lambda parts: safe(" ".join(map(words_html, parts))),
        "capital": lambda text: f"{text[:1].upper()}{text[1:]}",
        "of_page": lambda blocks: _opened(blocks, "page"),
        "kind": lambda block: type(block).__name__,
        "table_groups": _table_groups,
        "check_groups": _check_groups,
    }
    environment.filters |= filters
    environment.globals |= {"met": MET, "is_name": lambda text: isinstance(text, Name)}
    return environment


def _table_groups(table: Table) -> list[tuple[str, list[tuple[Any, Any]]]]:
    """Return adjacent rows with the same first cell, each with its bar, if several cells head them.

    Jinja's own ``groupby`` would sort them.
    """
    rows = zip_longest(table.frame.rows(), table.bars)
    if table.frame.n_heads == 1:
        return [("", list(rows))]
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row[0][0])]


def _check_groups(checks: Checks) -> list[tuple[str, list[Any]]]:
    return [(of, list(group)) for of, group in groupby(checks.rows, key=lambda row: row.of)]


def _anchors() -> Callable[[str], str]:
    """Return a maker of ids for the tables and pictures of one page, from their captions."""
    used: Counter[str] = Counter()

    def anchor(caption: str) -> str:
        name = "-".join(_WORD.findall(caption.lower()))[:_ID] or "part"
        used[name] += 1
        return f"at-{name}-{used[name]}" if used[name] > 1 else f"at-{name}"

    return anchor


def _labels() -> Callable[[str], str]:
    """Return a maker of names for the tables of one page: a caption that comes again is counted."""
    used: Counter[str] = Counter()

    def label(caption: str) -> str:
        used[caption] += 1
        return f"{caption} ({used[caption]})" if used[caption] > 1 else caption

    return label


# Markdown: everything but pictures, folds opened.


_QUOTED = 600  # characters of a text in Markdown
_TICKS = re.compile(r"`+")


def markdown(document: Document) -> str:
    """Return GitHub-flavoured Markdown, ending in a newline."""
    first = document.first
    answer, *others = first.lines()
    parts = [f"# {for_markdown(title_of(document))}", f"**{for_markdown(answer)}**"]
    parts += map(for_markdown, others)
    if first.next is not None:
        parts.append(_marked_words(first.next))
    parts += filter(None, [_joined(document.headline)])
    parts += [f"> **Note:** {_marked_words(warning)}" for warning in document.warnings]
    for section in document.sections:
        inner = list(_marked(section.blocks))
        if inner:
            parts += [f"## {for_markdown(section.title)}", _marked_words(section.lead), *inner]
    return "\n\n".join(part for part in parts if part) + "\n"


def _marked_words(words: Words) -> str:
    if not isinstance(words, Finding):
        return for_markdown(words).strip()
    return "".join(
        _code(text) if is_command else for_markdown(text) for text, is_command in words.pieces()
    ).strip()


def _code(text: str) -> str:
    """Return a command between more backticks than it holds itself."""
    ticks = "`" * (1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{ticks}{text}{ticks}" if len(ticks) == 1 else f"{ticks} {text} {ticks}"


def _joined(parts: Iterable[Words]) -> str:
    return " ".join(map(_marked_words, parts))


def _bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _marked(blocks: Iterable[Block]) -> Iterator[str]:
    for block in _opened(blocks, "markdown"):
        yield from _MARKDOWN[type(block)](block)


def _listed(block: Listing) -> Iterator[tuple[Words, Words]]:
    return zip_longest(block.of, block.rows, fillvalue="")


def _of(of: Words, text: str) -> str:
    return f"{_marked_words(of)}: {text}" if of else text


def _checked(block: Checks) -> Frame:
    columns: dict[str, list[Any]] = {
        "of": [check.of for check in block.rows],
        "criterion": [str(check.name) for check in block.rows],
        "met": [MET[check.met] for check in block.rows],
        "found": [str(check.text) for check in block.rows],
    }
    several = len(set(columns["of"])) > 1
    if not several:
        del columns["of"]
    return Frame(columns=columns, heads={"of": "", "met": ""}, n_heads=1 + several)


def _marked_versions(block: Versions) -> Iterator[str]:
    name = for_markdown(block.name).strip() or MISSING
    yield f"### {name} ({for_markdown(block.where)})"
    if block.about:
        yield for_markdown(shorten(block.about, _QUOTED))
    yield _bullets(map(_marked_words, block.findings))
    for side in block.sides:
        text = shorten("".join(piece for piece, _ in side.pieces), _QUOTED)
        yield f"> **{for_markdown(side.label)}:** {for_markdown(text)}"


def _marked_questions(block: Questions) -> Iterator[str]:
    for question, answer in block.rows:
        yield f"**{_marked_words(question)}** {_marked_words(answer)}"


_MARKDOWN: dict[type[Any], Callable[[Any], Iterable[str]]] = {
    Heading: lambda block: [f"### {', '.join(map(_marked_words, (block.text, *block.tags)))}"],
    Say: lambda block: [_marked_words(block.text)],
    Listing: lambda block: [_bullets(_of(of, _marked_words(text)) for of, text in _listed(block))],
    Checks: lambda block: [_checked(block).to_markdown()],
    Cards: lambda block: [_bullets(_of(card.name, _joined(card.texts)) for card in block.cards)],
    Table: lambda block: [] if block.brief else [block.frame.to_markdown()],
    Facts: lambda block: [frame.to_markdown() for _, frame in block.frames],
    Pictures: lambda _: [],
    Versions: _marked_versions,
    Fold: lambda block: _marked(block.blocks),
    Questions: _marked_questions,
}


# A terminal: the first screen, the headline, what is brief, warnings, the next step.


_MARKS = {True: ("✓", "bold green"), False: ("✗", "bold red"), None: ("?", "bold yellow")}
_NAME, _COLUMN, _INDENT = 22, 18, 2  # characters of names, of a column and before a name
# Told apart by colour-blind readers, on dark and on light backgrounds; words say it as well.
_SIDES = {
    "": "",
    "baseline": "color(33)",
    "other": "color(172)",
    "strong baseline": "bold color(33)",
    "strong other": "bold color(172)",
}


def terminal(document: Document, console: Console) -> None:
    """Print what a terminal has room for; its width decides how many columns stand side by side."""
    from rich.text import Text

    first = document.first
    answer, *others = first.lines()
    console.print(Text(answer, style="bold"))
    for line in others:
        console.print(Text(line))
    console.print()
    if document.headline:
        console.print(_styled(*document.headline))
        console.print()
    for section in document.sections:
        for block in _brief(section):
            print_block(block, console)
    for warning in document.warnings:
        console.print(_line("Warning: ", "bold yellow", warning))
    if first.next is not None:
        console.print()
        # a command is copied as one line
        console.print(_styled(first.next), soft_wrap=bool(first.next.command))


def _brief(section: Section) -> Iterator[Block]:
    """Yield the blocks of a section that a terminal shows."""
    for block in section.blocks:
        if isinstance(block, Only):
            yield from _opened([block], "terminal")
        elif section.brief and _is_brief(block):
            yield block


def _is_brief(block: Block) -> bool:
    if isinstance(block, Say):
        return not block.aside
    return isinstance(block, Listing | Checks | Cards | Table)


def _styled(*parts: Words) -> Text:
    """Return sentences one after the other, commands in bold."""
    from rich.text import Text

    line = Text()
    for at, words in enumerate(parts):
        line.append(" " if at else "")
        if not isinstance(words, Finding):
            line.append(words)
            continue
        for text, is_command in words.pieces():
            line.append(text, style="bold" if is_command else "")
    return line


def _line(mark: str, style: str, *parts: Words, of: Words = "") -> Text:
    from rich.text import Text

    line = Text.assemble((mark, style))
    if of:
        line.append(f"{of}: ", style="bold")
    return line.append_text(_styled(*parts))


def print_block(block: Block, console: Console) -> None:
    """Print a block and a blank line, but for that between a heading and what follows."""
    if isinstance(block, Table):
        _print_table(block, console)
    else:
        for line in _TERMINAL[type(block)](block):
            console.print(line)
    if not isinstance(block, Heading):
        console.print()


def _check_lines(block: Checks) -> Iterator[Text]:
    several = len(_check_groups(block)) > 1
    for check in block.rows:
        of = f" ({check.of})" if several else ""
        yield _line(*_MARKS[check.met], f" {check.name}{of}:", check.text)


_TERMINAL: dict[type[Any], Callable[[Any], Iterable[Text]]] = {
    Heading: lambda block: [
        _line(": ".join(map(str, (block.text, *block.tags))), "bold underline")
    ],
    Say: lambda block: [_styled(block.text)],
    Listing: lambda block: [_line("• ", "", text, of=of) for of, text in _listed(block)],
    Cards: lambda block: [_line("• ", "", *card.texts, of=card.name) for card in block.cards],
    Checks: _check_lines,
}


def _print_table(block: Table, console: Console) -> None:
    """Print columns side by side as far as there is room, and the others under them."""
    from rich import box
    from rich.table import Table as Columns
    from rich.text import Text

    frame, label = block.frame, min(block.frame.n_heads, 2) - 1
    titles = frame.titles()
    sides_of = block.sides or [("",) * len(titles)] * len(frame)
    rows = list(zip(frame.rows(), sides_of, strict=True))
    if block.sparse:
        rows = [row for row in rows if set(row[0][frame.n_heads :]) - {"0", MISSING}]
    column = min(_COLUMN, _widest(titles, rows, label) + 2)  # two blanks stand between columns
    name = min(_NAME + _INDENT * label, max(8, console.width - column - 3))
    fit = max(1, (console.width - name - 2) // column)
    for start in range(label + 1, len(titles), fit):
        shown = range(start, min(start + fit, len(titles)))
        grid = Columns(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        grid.add_column(Text(titles[label]), width=name, overflow="fold")
        for i in shown:
            grid.add_column(Text(titles[i]), justify="right", overflow="fold")
        group = ""
        for cells, sides in rows:
            if label and cells[0] != group:
                group = cells[0]
                grid.add_section()
                grid.add_row(Text(shorten(group, 2 * name), style="bold"))
            grid.add_row(
                Text(" " * (_INDENT * label) + cells[label]),
                *(Text(cells[i], style=_SIDES[sides[i]]) for i in shown),
            )
        if start > label + 1:
            console.print()
        console.print(grid)


def _widest(titles: tuple[str, ...], rows: list[Any], label: int) -> int:
    """Return the characters of the widest cell or word of a head, names aside."""
    words = (word for title in titles[label + 1 :] for word in title.split())
    cells = (cell for row, _ in rows for cell in row[label + 1 :])
    return max(map(len, (*words, *cells)), default=0)


# Figures as JSON.


def write_report_json(report: Report, path: PathLike) -> None:
    r"""Write a report as strict JSON (NaN as null), compressed if the name ends in ``.gz``.

    Control characters, lone surrogates and direction overrides are written as ``\uXXXX``: any
    report can be encoded, and the file can be looked at in a terminal.

    Raises
    ------
    DataError
        If the report holds an infinite number, which JSON cannot carry, or the folder is missing.
    """
    try:
        text = json.dumps(
            report.to_dict(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
    except ValueError as error:
        raise DataError(f"the report cannot be written as JSON to {path}: {error}") from error
    write_atomic(path, visible(text) + "\n")


def read(path: PathLike, kinds: Mapping[str | None, tuple[str, type[S]]]) -> S:
    """Read a report that :func:`write_report_json` wrote.

    Parameters
    ----------
    path : path
    kinds : mapping of str to (str, type)
        What each kind is called, and its class.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not a report.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    data = read_json(path, "the JSON of a report")
    if not isinstance(data, dict) or "schema_version" not in data:
        raise DataError(f"{path} is not a report: it is JSON without a schema_version")
    given = data.get("kind")
    if not isinstance(given, str | None) or given not in kinds:
        known = ", ".join(repr(kind) for kind in kinds if kind)
        raise DataError(f"{path}: report of kind {given!r} is unknown; there are {known}")
    name, kind = kinds[given]
    with sound(path, f"a complete {name} report"):
        report = kind.from_dict(data)
        visible_report(report)  # walks all of it: what is nested too deep is told of here
    return report


# A finished report in a folder.


_DRAW: dict[str, Callable[[Document], str]] = {"md": markdown, "html": page}
_PAGES = tuple(_DRAW)
FORMATS = ("json", *_PAGES)


def write_report(
    report: Report,
    folder: str | os.PathLike[str],
    *,
    formats: Sequence[str] = FORMATS,
    texts: bool = True,
) -> dict[str, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into a folder.

    ``report.json``, which holds every figure, is written before anything is drawn; each file is
    there complete or not at all. A page that cannot be written costs that page: a warning is
    logged, and the page is not among the files returned. Files of the folder that do not belong
    to a report stay.

    Parameters
    ----------
    report : report
    folder : path
        Created, with its parents, if missing.
    formats : sequence of {"json", "md", "html"}
        All three by default.
    texts : bool
        Keep the texts of the few cases that matter most; without them, ids and numbers stay.

    Returns
    -------
    dict of str to Path
        The file of each format that was written.

    Raises
    ------
    MissingExtraError
        If jinja2 or matplotlib is not installed and HTML is all that was asked for.
    DataError
        If a format is unknown, ``folder`` is a file or cannot be written, or none of the pages
        asked for could be and ``report.json`` was not.
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise DataError(f"unknown report formats {unknown}; choose from {list(FORMATS)}")
    if not texts:
        report = without_texts(report)
    pages = [name for name in formats if name != "json"]
    written: dict[str, Path] = {}
    if "json" in formats:
        written["json"] = write_figures(report, folder, pages)
    written |= write_pages(report, folder, pages, required=not written)
    return {name: written[name] for name in formats if name in written}


def write_figures(
    report: Report, folder: str | os.PathLike[str], pages: Sequence[str] = _PAGES
) -> Path:
    """Write ``report.json``, and take away the pages that are about to be drawn anew.

    So no page of an earlier report ever lies beside the figures of a later one.

    Raises
    ------
    DataError
        If the folder is a file or cannot be written.
    """
    target = _made(folder)
    file, staged = target / "report.json", target / f".report.{secrets.token_hex(4)}.json"
    try:
        write_report_json(report, staged)
        for name in pages:
            with contextlib.suppress(OSError):  # a folder of that name is no page of ours
                (target / f"report.{name}").unlink()
        staged.replace(file)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}") from error
    finally:
        staged.unlink(missing_ok=True)
    return file


def write_pages(
    report: Report,
    folder: str | os.PathLike[str],
    pages: Sequence[str] = _PAGES,
    *,
    required: bool = False,
) -> dict[str, Path]:
    """Write the pages that can be drawn; log each that cannot.

    Parameters
    ----------
    required : bool
        Raise the first error where no page could be written.
    """
    target = _made(folder)
    written: dict[str, Path] = {}
    failures: list[Exception] = []
    for name in pages:
        file = target / f"report.{name}"
        try:
            write_atomic(file, _DRAW[name](visible_report(report).page()))
            written[name] = file
        except Exception as error:  # noqa: BLE001 - drawing costs no result, whatever happens
            failures.append(error)
            figures, remedy = target / "report.json", ""
            if figures.is_file():
                remedy = f"; {figures} is complete; to draw it: {drawing(figures, target)}"
            _logger.warning("%s was not written (%s)%s", file, failure_text(error), remedy)
    if failures and required and not written:
        first = failures[0]
        if isinstance(first, SourceBiasError):
            raise first
        raise DataError(f"no page was written: {failure_text(first)}") from first
    return written


def drawing(figures: Path, folder: Path) -> str:
    """Return the command that draws the pages of figures that are there."""
    return f"rag-sourcebias start {shlex.quote(str(figures))} --report {shlex.quote(str(folder))}"


def _made(folder: str | os.PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise DataError(f"{target} is a file; a report needs a folder")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


# One table in a file.


_TABLES: dict[str, Callable[[Frame], str]] = {
    ".csv": Frame.to_csv,
    ".md": Frame.to_markdown,
    ".tex": Frame.to_latex,
}


def require_table(path: PathLike) -> None:
    """Refuse a file for a table whose name says no format.

    Raises
    ------
    DataError
    """
    if Path(path).suffix not in _TABLES:
        raise DataError(f"{path}: a table is written to a file ending in {', '.join(_TABLES)}")


def write_table(frame: Frame, path: PathLike) -> None:
    """Write a frame in the format that the name of the file says.

    Raises
    ------
    DataError
        If it says none, or the folder is missing.
    """
    require_table(path)
    write_atomic(path, _TABLES[Path(path).suffix](frame).rstrip("\n") + "\n")


# What is taken out of a report before it is shown or stored.


def visible_report(report: T, *, lines: bool = True) -> T:
    """Return the report with control characters, overrides and surrogates written out everywhere.

    Once for all of it, before anything is drawn: lengths of names, keys and texts then agree in
    every view, and no view has to know where a text came from.

    Parameters
    ----------
    report : report
    lines : bool
        Leave line ends and tabs, which excerpts have and which pages show as blanks.

    Returns
    -------
    report
        The same object where there is nothing to write out, as nearly always.
    """

    def shown(value: object) -> object:
        return visible(value, lines=lines) if isinstance(value, str) else None

    return _changed(report, shown)


def without_texts(report: T) -> T:
    """Return a report without any text of queries, documents or answers: ids and numbers stay.

    What was read off texts goes with them: words that mark a source, names and numbers that a
    rewrite lost. Parts that hold such texts say with ``without_texts`` what is left.
    """

    def bare(value: object) -> object:
        left = getattr(value, "without_texts", None)
        return None if left is None else left()

    return _changed(report, bare)


@cache  # looking at fields takes longer than at values
def _init_fields(kind: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(f.name for f in fields(kind) if f.init) if is_dataclass(kind) else ()


def _changed(value: T, change: Callable[[object], object]) -> T:
    """Return a report in which every part is what ``change`` makes of it, if not None.

    Parts that hold none of these stay the same objects.
    """
    new = change(value)
    kind: Any = type(value)
    if new is None and (names := _init_fields(kind)):
        old = {name: getattr(value, name) for name in names}
        parts = {name: _changed(part, change) for name, part in old.items()}
        others = {name: part for name, part in parts.items() if part is not old[name]}
        new = replace(value, **others) if others else value  # type: ignore[type-var]
    elif isinstance(value, Finding):
        numbers, cases = _changed(value.numbers, change), _changed(value.cases, change)
        if numbers is not value.numbers or cases is not value.cases:
            new = kind(code=value.code, numbers=numbers, severity=value.severity, cases=cases)
    elif isinstance(value, tuple | list):
        items = [_changed(item, change) for item in value]
        new = value if all(map(is_, value, items)) else kind(items)
    elif isinstance(value, Mapping):
        pairs = {_changed(key, change): _changed(item, change) for key, item in value.items()}
        same = all(map(is_, (*value, *value.values()), (*pairs, *pairs.values())))
        new = value if same else pairs
    return cast("T", value if new is None else new)


# What users hold: it says what was found, shows itself, and is saved.


_IN_A_LINE = 3  # outcomes
_PRINTED = 6


class Outcome(NamedTuple):
    """What a report found of one subject.

    Parameters
    ----------
    subject : str
        Such as a retriever.
    code : str
        The verdict.
    words : str
        The verdict as it is shown; "" where the code says it.
    figure : str
        Name of the figure on which it rests; "" where there is none.
    interval : Interval or None
    value : float or None
        The figure where it has no interval.
    digits : int
    """

    subject: str
    code: str
    figure: str = ""
    interval: Interval | None = None
    value: float | None = None
    digits: int = 1
    words: str = ""

    def __str__(self) -> str:
        text = f"{self.subject} {self.words or self.code.replace('_', ' ')}".strip()
        if self.interval is not None:
            value, lower, upper = (
                number(end, digits=self.digits)
                for end in (self.interval.estimate, self.interval.lower, self.interval.upper)
            )
            return f"{text}, {self.figure} {value} [{lower}, {upper}]"
        if self.value is not None:
            return f"{text}, {self.figure} {number(self.value, digits=self.digits)}"
        return text


class Report(Stored, ABC):
    """A report that shows itself in a session, in a notebook and in a browser.

    A class of reports says what it found (``_outcomes``), which tables it has (``frames``) and
    what is read in which order (``page``).
    """

    __slots__ = ()

    @abstractmethod
    def page(self) -> Document:
        """Return what there is to read, in its order."""

    @property
    @abstractmethod
    def frames(self) -> Mapping[str, Frame]:
        """Every table, by its name; the first is the main one."""

    @abstractmethod
    def _outcomes(self) -> Iterable[Outcome]:
        """Yield the verdict on each subject."""

    def table(self, name: str) -> Frame:
        """Return a table, for pandas, polars, CSV, Markdown or LaTeX.

        Raises
        ------
        DataError
            If there is none of that name; the message says which there are.
        """
        frames = self.frames
        if name not in frames:
            held = ", ".join(map(repr, frames)) or "none"
            raise DataError(f"this {type(self).__name__} has no table {name!r}; it has {held}")
        return frames[name]

    @property
    def verdict(self) -> str:
        """Code of the verdict; ``"differs"`` where it is not the same for all that was examined."""
        codes = {outcome.code for outcome in self._outcomes()}
        if len(codes) > 1:
            return "differs"
        return next(iter(codes), "none")

    @property
    def verdicts(self) -> dict[str, str]:
        """Code of the verdict on each retriever, score, system or source."""
        return {outcome.subject: outcome.code for outcome in self._outcomes()}

    def __repr__(self) -> str:
        outcomes = list(self._outcomes())
        texts = list(map(str, outcomes[:_IN_A_LINE])) or ["nothing was compared"]
        if len(outcomes) > _IN_A_LINE:
            texts.append(f"and {len(outcomes) - _IN_A_LINE} more")
        name = getattr(getattr(self, "data", self), "name", "")
        return visible(f"<{f'{type(self).__name__} {name}'.strip()}: {'; '.join(texts)}>")

    def __str__(self) -> str:
        shown = visible_report(self, lines=False)
        document, outcomes = shown.page(), list(shown._outcomes())
        lines = [f"{document.kind}: {document.name}", *document.first.lines()]
        lines += [f"  {outcome}" for outcome in outcomes[:_PRINTED]]
        if len(outcomes) > _PRINTED:
            lines.append(f"  and {len(outcomes) - _PRINTED} more")
        warnings = document.warnings
        if warnings:
            many = "warnings" if len(warnings) > 1 else "warning"
            lines.append(f"{len(warnings)} {many}: {warnings[0]}")
        tables = f".table(name) of {', '.join(self.frames)}; " if self.frames else ""
        return "\n".join([*lines, f"{tables}.save(folder), .open()"])

    def _repr_html_(self) -> str:
        """Return the first screen, for a notebook."""
        return first_screen(visible_report(self).page())

    def save(self, folder: str | Path) -> Path:
        """Write ``report.json``, ``report.md`` and ``report.html``; return the folder.

        Raises
        ------
        DataError
            If the folder cannot be written.
        """
        write_report(self, folder)
        return Path(folder)

    def open(self) -> Path:
        """Show the whole report in the browser; return the file.

        Raises
        ------
        MissingExtraError
            If jinja2 or matplotlib is not installed.
        """
        folder = tempfile.mkdtemp(prefix="rag-sourcebias-")
        file = write_report(self, folder, formats=("html",))["html"]
        webbrowser.open(file.as_uri())
        return file


def print_report(report: Report, console: Console) -> None:
    """Print a report of any kind: the first screen, the headline, what is brief and warnings.

    Parameters
    ----------
    report : report
    console : rich.console.Console
        Its width decides how many columns stand side by side.
    """
    terminal(visible_report(report, lines=False).page(), console)
