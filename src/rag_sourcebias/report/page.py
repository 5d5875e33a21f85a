"""One page from a template of ours: the same style and the same rules for every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rag_sourcebias.errors import MissingExtraError

__all__ = ["render_page"]


def render_page(template: str, context: Mapping[str, Any]) -> str:
    """Fill a template of this package; everything but our own style and pictures is escaped.

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
    # Only our own style sheet and our own pictures, whose texts are escaped when they are
    # drawn, may pass without escaping.
    page = environment.get_template(template)
    return page.render(**context, style=Markup(style), svg=Markup) + "\n"


def _by_first(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Group adjacent rows by their first cell (jinja's own ``groupby`` would sort them)."""
    return [(name, list(group)) for name, group in groupby(rows, key=lambda row: row[0])]
