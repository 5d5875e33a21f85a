"""Sections near the end of every report: how to read it, what to doubt, what it was made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.tables import Table

__all__ = ["assumed", "caveats", "data", "reading"]


def reading(questions: Iterable[tuple[str, str]]) -> b.Section:
    """Answer what readers ask; rows of (question, answer)."""
    rows = tuple(questions)
    return b.Section(id="reading", title="How to read this", blocks=(b.Questions(rows=rows),))


def assumed(rows: Iterable[tuple[str, Iterable[str]]]) -> dict[str, dict[str, None]]:
    """Return each assumption with where it is made; rows of (where, its assumptions)."""
    found: dict[str, dict[str, None]] = {}
    for where, texts in rows:
        for text in texts:
            found.setdefault(text, {})[where] = None
    return found


def caveats(
    assumptions: Mapping[str, Iterable[str]],
    caveats: Iterable[tuple[str, str]],
    *,
    warned: bool = False,
) -> b.Section:
    """Return what to doubt.

    Parameters
    ----------
    assumptions : mapping of str to iterable of str
        Each with where it is made.
    caveats : iterable of (who, what)
        Of which system; "" of all.
    warned : bool
        Whether warnings stand at the top of the report.
    """
    blocks: list[b.Block] = []
    if assumptions:
        blocks += [
            b.Heading(text="What the intervals assume"),
            b.Items(
                rows=tuple(("", text) for text in assumptions),
                asides=tuple("; ".join(where) for where in assumptions.values()),
            ),
        ]
    blocks.append(b.Heading(text="Caveats"))
    if noted := tuple(caveats):
        blocks.append(b.Items(rows=noted))
    else:
        besides = " besides the warnings at the top" if warned else ""
        blocks.append(b.Paragraph(text=f"None were recorded{besides}."))
    return b.Section(id="caveats", title="Assumptions and caveats", blocks=tuple(blocks))


def data(tables: Iterable[tuple[str, Table]], *before: b.Block) -> b.Section:
    """Return what a report was made of and with: tables of two columns, each under its title."""
    return b.Section(
        id="data",
        nav="Data and settings",
        title="Data, settings and versions",
        blocks=(*before, b.Facts(tables=tuple(tables))),
    )
