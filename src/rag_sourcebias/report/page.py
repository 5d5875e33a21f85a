"""One page from a template of ours: the same style and the same rules for every report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from rag_sourcebias.errors import MissingExtraError, SourceBiasError
from rag_sourcebias.types.names import visible

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Figures", "failure_text", "render_page"]

#: Captions, and how to draw each picture: a page survives one that cannot be drawn.
Figures: TypeAlias = list[tuple[str, Callable[[], str]]]

_logger = logging.getLogger("rag_sourcebias.report")
_LONGEST = 200


def render_page(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template of this package; everything but our own style and pictures is escaped.

    A picture that cannot be drawn leaves a sentence in its place, and the log says how many.

    Parameters
    ----------
    template : str
    context : mapping
        With the page's ``title``. Pictures are functions that return SVG.

    Raises
    ------
    MissingExtraError
        If jinja2 is not installed.
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
    loader = jinja2.PackageLoader("rag_sourcebias.report", "templates")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["groups"] = _by_first
    style = loader.get_source(environment, "style.css")[0]
    failures: list[str | None] = []

    def svg(draw: Callable[[], str]) -> Markup:
        failures.append(None)
        try:
            return Markup(draw())
        except MissingExtraError:
            raise
        except Exception as error:  # noqa: BLE001 - matplotlib's code; a picture costs no page
            failures[-1] = failure_text(error)
            told = "This picture could not be drawn ({}); its numbers are in the tables"
            return Markup(f'<p class="undrawn">{told} and in report.json.</p>').format(failures[-1])

    # Only our own style sheet and our own pictures, whose texts are escaped when they are
    # drawn, may pass without escaping.
    page = environment.get_template(template)
    text = page.render(**context, style=Markup(style), svg=svg) + "\n"
    if told := [failure for failure in failures if failure is not None]:
        _logger.warning(
            "%d of %d pictures of the page %r could not be drawn, the first because of %s; their "
            "numbers are in its tables and in report.json",
            len(told),
            len(failures),
            context["title"],
            told[0],
        )
    return text


def failure_text(error: Exception) -> str:
    """Return an error on one line that can be shown, with its kind unless it is one of ours."""
    text = visible(" ".join(str(error).split()))
    if not isinstance(error, SourceBiasError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{text[:_LONGEST]}…" if len(text) > _LONGEST else text


def _by_first(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Group adjacent rows by their first cell (jinja's own ``groupby`` would sort them)."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row[0])]
