"""A page of any document: one template, one style sheet, the same rules for every report."""

from __future__ import annotations

import logging
from functools import cache
from html import escape as escape_html
from itertools import count, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rag_sourcebias.core.errors import MissingExtraError, SourceBiasError
from rag_sourcebias.core.names import visible
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.pictures import Picture
from rag_sourcebias.report.svg import draw

if TYPE_CHECKING:
    from markupsafe import Markup

_logger = logging.getLogger("rag_sourcebias.report")
_LONGEST = 200


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
            told = "This picture could not be drawn ({}); its numbers are in the tables"
            return Markup(f'<p class="undrawn">{told} and in report.json.</p>').format(failures[-1])

    # Only our own style sheet and our own pictures, whose texts are escaped when they are
    # drawn, may pass without escaping.
    text: str = environment.get_template("document.html.jinja").render(
        doc=found,
        met_words=b.MET,
        established=b.ESTABLISHED,
        kind_of=lambda block: type(block).__name__,
        is_name=lambda text: isinstance(text, b.Name),
        style=Markup(environment.loader.get_source(environment, "style.css")[0]),
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


def notebook(found: b.Document) -> str:
    """Return the page as an element of a notebook, whose own style it neither sees nor changes."""
    title, page = escape_html(found.title), escape_html(html(found))
    return f'<iframe title="{title}" srcdoc="{page}" width="100%" height="800"></iframe>'


def failure_text(error: Exception) -> str:
    """Return an error on one line that can be shown, with its kind unless it is one of ours."""
    text = visible(" ".join(str(error).split()))
    if not isinstance(error, SourceBiasError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text
