"""What distinguishes groups of texts ([W] Fig. 1, 4, 6; [K] Fig. 3): figures, a table, words."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rag_sourcebias.core.finding import Code, Finding, Frame
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.document import Words

_FEW_WORDS = 5


class TextCode(Code, home="texts"):
    """How figures of texts are read."""

    MARKS = (
        "Thin lines reach from the 5th to the 95th percentile of the texts, boxes over the middle "
        "half, the bar in them is the median; the mark is the mean with its {level:level} interval."
    )
    MARKS_ALONE = (
        "Thin lines reach from the 5th to the 95th percentile of the texts, boxes over the middle "
        "half, the bar in them is the median; the mark is the mean."
    )
    MEASURES = (
        "The other measures compare a text with its reference, from 0, nothing in common, to 1, "
        "the same wording. Overlap is the share of the reference's words that occur in the text, "
        "however long it is."
    )
    SHORT = (
        "Some texts are very short: for them read overlap, because METEOR gives one equal word no "
        "more than 0.5 and the others fall with every further word."
    )


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
    """Return a figure per statistic with a row per group, each under its caption.

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
        caption = "words per text" if words else name
        if of:
            caption = f"{of}: {caption}"
        axis = pic.Axis(span=(-0.03, 1.03), digits=2)
        guides: tuple[pic.Guide, ...] = ()
        if words:
            axis = pic.Axis(span=(0, None))
            first = every.get((original or "", name))
            guides = (pic.Guide(at=first.average, look="dashed"),) if first else ()
        rows = tuple(_row(group, every.get((group, name)), original) for group in shown)
        figures.append((caption, pic.Intervals(title=caption, rows=rows, x=axis, guides=guides)))
    return tuple(figures)


def _row(group: str, found: TextStatistic | None, original: str | None) -> pic.Row:
    if found is None:
        return pic.Row(label=group, note="none")
    colour: pic.Colour = "even"
    if original is not None:
        colour = "baseline" if group == original else "other"
    mark = pic.mark(found.mean, colour, at=found.average)
    return pic.Row(label=group, marks=(mark,), box=found.quantiles)


def text_frame(
    statistics: Sequence[TextStatistic], *, original: str | None = None, head: str = "group"
) -> Frame:
    """Return a row per group and a column per statistic: the mean with its interval, or alone."""
    groups, names, every = _axes(statistics, original)
    cells = {name: [_mean(every.get((group, name))) for group in groups] for name in names}
    texts = [max(s.n for s in statistics if s.group == group) for group in groups]
    return Frame(columns={head: groups, "texts": texts, **cells}, formats=_formats(names))


def _formats(names: Sequence[str]) -> dict[str, str]:
    return {name: "" if name == "words" else "2" for name in names}


def _mean(found: TextStatistic | None) -> object:
    if found is None:
        return None
    return found.average if found.mean is None else found.mean


def text_means(statistics: Sequence[TextStatistic], *, original: str | None = None) -> Frame:
    """Return the means without intervals: what a terminal has room for."""
    groups, names, every = _axes(statistics, original)
    columns = {
        name: [s.average if (s := every.get((group, name))) else None for group in groups]
        for name in names
    }
    return Frame(columns={"mean per text": groups, **columns}, formats=_formats(names))


def text_key(statistics: Sequence[TextStatistic]) -> tuple[Finding, ...]:
    """Explain how the figures of these statistics are read."""
    level = next((s.mean.confidence_level for s in statistics if s.mean is not None), None)
    said = [TextCode.MARKS_ALONE() if level is None else TextCode.MARKS(level=level)]
    if len({s.name for s in statistics}) > 1:
        said.append(TextCode.MEASURES())
    if any(s.name == "words" and s.quantiles[2] <= _FEW_WORDS for s in statistics):
        said.append(TextCode.SHORT())
    return tuple(said)


def text_notes(statistics: Sequence[TextStatistic]) -> tuple[tuple[Words, tuple[str, ...]], ...]:
    """Return what was left out or sampled, and METEOR's mode, each once with its groups.

    No groups where it holds for all of them.
    """
    notes: dict[str, Words] = {}
    groups_of: dict[str, dict[str, None]] = {}
    for statistic in statistics:
        for note in () if statistic.mean is None else statistic.mean.notes:
            notes[str(note)] = note
            groups_of.setdefault(str(note), {})[statistic.group] = None
    every = {s.group for s in statistics if s.name != "words"} or {s.group for s in statistics}
    return tuple(
        (notes[text], () if len(groups) >= len(every) else tuple(groups))
        for text, groups in groups_of.items()
    )
