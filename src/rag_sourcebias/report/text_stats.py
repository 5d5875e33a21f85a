"""What distinguishes groups of texts ([W] Fig. 1, 4, 6; [K] Fig. 3): pictures, a table, words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.blocks import MISSING, count, estimate, level, number

_FEW_WORDS = 5


def renamed(
    statistics: Sequence[TextStatistic], names: Mapping[str, str]
) -> tuple[TextStatistic, ...]:
    """Return the statistics with the groups' names for readers."""
    return tuple(replace(s, group=names.get(s.group, s.group)) for s in statistics)


def _axes(
    statistics: Sequence[TextStatistic], original: str | None
) -> tuple[list[str], list[str], dict[tuple[str, str], TextStatistic]]:
    """Return groups, the original first, and names, words first, both in their order; and all."""
    return (
        sorted(dict.fromkeys(s.group for s in statistics), key=lambda g: g != original),
        sorted(dict.fromkeys(s.name for s in statistics), key=lambda name: name != "words"),
        {(s.group, s.name): s for s in statistics},
    )


def text_figures(
    statistics: Sequence[TextStatistic], *, original: str | None = None, of: str = ""
) -> tuple[tuple[str, pic.Intervals], ...]:
    """Return a picture per statistic with a row per group, each under its caption.

    Parameters
    ----------
    original : str or None
        The group that the others are versions of; it comes first, in the baseline's colour.
    of : str
        Whose texts they are, before the captions.
    """
    groups, names, every = _axes(statistics, original)
    figures = []
    for name in names:
        words = name == "words"
        # Only words are measured of the original itself.
        shown = [g for g in groups if words or g != original] or groups
        first = every.get((original or "", name))
        caption = f"{of}{': ' if of else ''}{'words per text' if words else name}"
        figures.append(
            (
                caption,
                pic.Intervals(
                    title=caption,
                    rows=tuple(_row(group, every.get((group, name)), original) for group in shown),
                    x=pic.Axis(
                        span=(0, None) if words else (-0.03, 1.03), digits=1 if words else 2
                    ),
                    guides=(pic.Guide(at=first.average, look="dashed"),) if words and first else (),
                ),
            )
        )
    return tuple(figures)


def _row(group: str, found: TextStatistic | None, original: str | None) -> pic.Row:
    if found is None:
        return pic.Row(label=group, note="none")
    colour: pic.Colour = (
        "even" if original is None else "baseline" if group == original else "other"
    )
    return pic.Row(
        label=group, marks=(pic.mark(found.mean, colour, at=found.average),), box=found.quantiles
    )


def text_table(statistics: Sequence[TextStatistic], *, original: str | None = None) -> b.Table:
    """Return a row per group and a column per statistic: mean and its interval.

    Empty, without rows, for no statistics.
    """
    groups, names, every = _axes(statistics, original)
    return b.Table(
        columns=("group", "texts", *names),
        rows=tuple(
            (
                group,
                count(max(s.n for s in statistics if s.group == group)),
                *(_cell(every.get((group, name))) for name in names),
            )
            for group in groups
        ),
    )


def _cell(found: TextStatistic | None) -> str:
    if found is None:
        return MISSING
    digits = 1 if found.name == "words" else 2
    alone = f"{number(found.average, digits=digits)} (no interval)"
    return alone if found.mean is None else estimate(found.mean, digits=digits)


def text_means(
    statistics: Sequence[TextStatistic], *, original: str | None = None
) -> tuple[b.Block, ...]:
    """Return what a terminal shows: the mean of every statistic, and the notes."""
    if not statistics:
        return ()
    table = text_table([replace(s, mean=None) for s in statistics], original=original)
    means = b.Table(
        columns=("mean per text", *table.columns[2:]),
        rows=tuple((row[0], *(c.partition(" ")[0] for c in row[2:])) for row in table.rows),
    )
    return (
        b.Grid(table=means, caption="", width=8, to=b.TERMINAL),
        b.Lines(rows=tuple(((f"{note}.", ""),) for note in text_notes(statistics))),
    )


def text_key(statistics: Sequence[TextStatistic]) -> str:
    """Explain how the pictures of these statistics are read."""
    levels = sorted({s.mean.confidence_level for s in statistics if s.mean is not None})
    about = f" with its {' or '.join(map(level, levels))} interval" if levels else ""
    others = (
        " The other measures compare a text with its reference, from 0, nothing in common, to "
        "1, the same wording. Overlap is the share of the reference's words that occur in the "
        "text, however long it is."
    ) * (len({s.name for s in statistics}) > 1)
    short = (
        " Some texts are very short: for them read overlap, because METEOR gives one equal "
        "word no more than 0.5 and the others fall with every further word."
    ) * any(s.name == "words" and s.quantiles[2] <= _FEW_WORDS for s in statistics)
    return (
        "Thin lines reach from the 5th to the 95th percentile of the texts, boxes over the middle "
        f"half, the bar in them is the median; the mark is the mean{about}.{others}{short}"
    )


def text_notes(statistics: Sequence[TextStatistic]) -> tuple[str, ...]:
    """Return what was left out or sampled, and METEOR's mode, each once with its groups."""
    found = b.assumed((s.group, () if s.mean is None else s.mean.notes) for s in statistics)
    every = {s.group for s in statistics if s.name != "words"} or {s.group for s in statistics}
    return tuple(
        note if len(groups) >= len(every) else f"{', '.join(groups)}: {note}"
        for note, groups in found.items()
    )
