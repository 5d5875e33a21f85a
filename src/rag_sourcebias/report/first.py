"""The first screen of a report, for pages and notebooks, made without any library."""

from collections.abc import Iterator
from functools import cache
from html import escape
from importlib import resources

from rag_sourcebias.report import blocks as b


@cache
def style() -> str:
    """Return the style sheet of a first screen, which stands alone on light and dark pages."""
    folder = resources.files("rag_sourcebias.report").joinpath("templates")
    return folder.joinpath("first.css").read_text(encoding="utf-8")


def first_screen(found: b.Document) -> str:
    """Return the first screen as an element that brings its own style, for a notebook.

    It needs neither jinja2 nor matplotlib, follows the theme of the notebook or of the system, and
    loads nothing.
    """
    kind, name = escape(found.kind), escape(found.name)
    head = f'<p class="rsb-kind">{kind}: <bdi>{name}</bdi></p>'
    return f'<div class="rsb-first"><style>{style()}</style>{head}{first_html(found)}</div>'


def first_html(found: b.Document) -> str:
    """Return the answer, the verdict, the picture, what to doubt and the next command."""
    return "\n".join(_parts(found.first))


def first_lines(found: b.Document) -> tuple[str, ...]:
    """Return the first screen as sentences, the next command aside."""
    first = found.first
    return tuple(filter(None, (first.answer, first.verdict, *first.doubts)))


def _parts(first: b.First) -> Iterator[str]:
    yield f'<p class="rsb-answer">{escape(first.answer)}</p>'
    if first.verdict:
        yield f'<p class="rsb-verdict {escape(first.standing)}">{escape(first.verdict)}</p>'
    for doubt in first.doubts:
        yield f'<p class="rsb-doubt">{escape(doubt)}</p>'
    if first.rows:
        rows = "".join(map(_row, first.rows))
        key = _key(first.rows)
        caption = f"<figcaption>{escape(first.caption)}</figcaption>" if first.caption else ""
        yield f'<figure class="rsb-figure">{caption}{key}<dl>{rows}</dl></figure>'
    if first.command:
        yield (
            f'<p class="rsb-next"><span>{escape(first.why)}</span> '
            f"<code>{escape(first.command)}</code></p>"
        )


def _key(rows: tuple[b.FirstRow, ...]) -> str:
    """Return what each colour counts, once for all rows; with the counts where there is one row."""
    names = dict.fromkeys((colour, name) for row in rows for name, _, colour in row.parts)
    counts = {name: f" <b>{b.number(n, digits=0)}</b>" for name, n, _ in rows[0].parts}
    single = len(rows) == 1
    items = "".join(
        f'<li class="{escape(colour)}"><bdi>{escape(name)}</bdi>'
        f"{counts.get(name, '') if single else ''}</li>"
        for colour, name in names
        if not single or any(size for part, size, _ in rows[0].parts if part == name)
    )
    return f'<ul class="rsb-key">{items}</ul>' if items else ""


def _row(row: b.FirstRow) -> str:
    name = f"<dt><bdi>{escape(row.name)}</bdi></dt>" if row.name else '<dt class="rsb-no"></dt>'
    strip = "".join(_strip(row)) if row.parts else _scale(row)
    return (
        f'<div title="{escape(_told(row))}">{name}<dd class="rsb-strip" aria-hidden="true">{strip}'
        f'</dd><dd class="rsb-text">{escape(row.text)}</dd></div>'
    )


def _told(row: b.FirstRow) -> str:
    """Return the values of a row, for whoever points at it."""
    counts = ", ".join(f"{name}: {b.number(n, digits=0)}" for name, n, _ in row.parts)
    return ": ".join(filter(None, (row.name, counts or row.text)))


def _strip(row: b.FirstRow) -> Iterator[str]:
    total = sum(size for _, size, _ in row.parts) or 1
    for _, size, colour in row.parts:
        if size:
            yield f'<i class="{escape(colour)}" style="width:{100 * size / total:.2f}%"></i>'


def _scale(row: b.FirstRow) -> str:
    if (bar := row.bar) is None:
        return ""
    hollow = "" if bar.solid else " hollow"
    was = "" if bar.was is None else f'<i class="was" style="left:{bar.was}%"></i>'
    chance = "" if bar.chance is None else f'<i class="chance" style="left:{bar.chance}%"></i>'
    return (
        f'<i class="line {escape(bar.side)}" style="left:{bar.left}%;width:{bar.width}%"></i>'
        f'<i class="dot {escape(bar.side)}{hollow}" style="left:{bar.dot}%"></i>{was}{chance}'
    )
