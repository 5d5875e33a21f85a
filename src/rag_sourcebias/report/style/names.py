"""How styles are called in prose."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.report.format import join, shorten
from rag_sourcebias.types.style_report import StyleReport

__all__ = ["original_text", "style_list", "style_name"]

_LONGEST = 60


def style_name(style: str) -> str:
    """Return ``style 3`` for a number (the styles of [W] are numbered), other names as they are."""
    return f"style {style}" if style.isdigit() else shorten(style or "unnamed", _LONGEST)


def style_list(styles: Sequence[str], *, most: int | None = None) -> str:
    """Return ``styles 3, 6 and 7``, ``formal and style 3``, or a number where there are too many.

    Parameters
    ----------
    styles : sequence of str
        At least one.
    most : int, optional
        Name no more than these.
    """
    if most is not None and len(styles) > most:
        return f"{len(styles)} styles"
    if len(styles) > 1 and all(s.isdigit() for s in styles):
        return f"styles {join(list(styles))}"
    return join([style_name(s) for s in styles])


def original_text(report: StyleReport) -> str:
    """Return what the other styles are compared with, such as ``human text``."""
    return f"{style_name(report.config.original)} text"
