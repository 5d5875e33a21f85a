"""Text statistics as a table of text cells, and the words that go with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rag_sourcebias.report.format import MISSING, count, level, number, shorten
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.text_stats import TextStatistic

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "SOURCE_SECTION",
    "groups_of",
    "names_of_statistics",
    "print_text_statistics",
    "renamed",
    "text_key",
    "text_notes",
    "text_table",
]

#: Section of a report of sources.
SOURCE_SECTION = (
    "What the texts look like",
    "How long the texts of each source are and how much of the original's wording the other "
    "versions keep, before any retriever sees them.",
)

_FEW_WORDS = 5


def groups_of(statistics: Sequence[TextStatistic], original: str | None = None) -> list[str]:
    """Return the groups in the order of their first appearance, ``original`` first."""
    groups = list(dict.fromkeys(s.group for s in statistics))
    return sorted(groups, key=lambda group: group != original)


def names_of_statistics(statistics: Sequence[TextStatistic]) -> list[str]:
    """Return the statistics in the order of their first appearance, words first."""
    return sorted(dict.fromkeys(s.name for s in statistics), key=lambda name: name != "words")


def renamed(
    statistics: Sequence[TextStatistic], names: Mapping[str, str]
) -> tuple[TextStatistic, ...]:
    """Return the statistics with the groups' names for readers."""
    return tuple(replace(s, group=names.get(s.group, s.group)) for s in statistics)


def text_table(statistics: Sequence[TextStatistic], *, original: str | None = None) -> Table:
    """Return a row per group and a column per statistic: mean and its interval.

    Empty, without rows, for no statistics.
    """
    names = names_of_statistics(statistics)
    of = {(s.group, s.name): s for s in statistics}
    rows = []
    for group in groups_of(statistics, original):
        texts = max(s.n for s in statistics if s.group == group)
        cells = [_cell(of.get((group, name))) for name in names]
        rows.append((group, count(texts), *cells))
    return Table(columns=("group", "texts", *names), rows=tuple(rows))


def _cell(found: TextStatistic | None) -> str:
    if found is None:
        return MISSING
    digits = 1 if found.name == "words" else 2
    mean = number(found.average, digits=digits)
    if found.mean is None:
        return f"{mean} (no interval)"
    low, high = (number(end, digits=digits) for end in (found.mean.lower, found.mean.upper))
    return f"{mean} [{low}, {high}]"


def text_key(statistics: Sequence[TextStatistic]) -> str:
    """Explain how the picture of these statistics is read."""
    levels = sorted({s.mean.confidence_level for s in statistics if s.mean is not None})
    about = f" with its {' or '.join(map(level, levels))} interval" if levels else ""
    text = (
        "Thin lines reach from the 5th to the 95th percentile of the texts, boxes over the middle "
        f"half, the bar in them is the median; the mark is the mean{about}."
    )
    if len(names_of_statistics(statistics)) > 1:
        text += (
            " The other measures compare a text with its reference, from 0, nothing in common, to "
            "1, the same wording. Overlap is the share of the reference's words that occur in the "
            "text, however long it is."
        )
    if any(s.name == "words" and s.quantiles[2] <= _FEW_WORDS for s in statistics):
        text += (
            " Some texts are very short: for them read overlap, because METEOR gives one equal "
            "word no more than 0.5 and the others fall with every further word."
        )
    return text


def text_notes(statistics: Sequence[TextStatistic]) -> tuple[str, ...]:
    """Return what was left out or sampled, and METEOR's mode, each once with its groups."""
    found: dict[str, dict[str, None]] = {}
    for statistic in statistics:
        for note in () if statistic.mean is None else statistic.mean.notes:
            found.setdefault(note, {})[statistic.group] = None
    every = {s.group for s in statistics if s.name != "words"} or {s.group for s in statistics}
    return tuple(
        note if len(groups) >= len(every) else f"{', '.join(groups)}: {note}"
        for note, groups in found.items()
    )


def print_text_statistics(
    statistics: Sequence[TextStatistic], console: Console, *, original: str | None = None
) -> None:
    """Print the mean of every statistic and the notes; nothing for no statistics."""
    if not statistics:
        return
    from rich import box
    from rich.table import Table as Grid
    from rich.text import Text

    names = names_of_statistics(statistics)
    of = {(s.group, s.name): s.average for s in statistics}
    grid = Grid(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_column("mean per text", overflow="fold")
    for name in names:
        grid.add_column(name, justify="right", no_wrap=True)
    for group in groups_of(statistics, original):
        cells = [
            number(of[group, name], digits=1 if name == "words" else 2)
            if (group, name) in of
            else MISSING
            for name in names
        ]
        grid.add_row(Text(shorten(group, 48)), *cells)
    console.print(grid)
    for note in text_notes(statistics):
        console.print(Text(f"{note}.", style="dim"))
