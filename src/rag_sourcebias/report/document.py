"""A report as data: findings, frames and figures in order, and parts that many pages have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, TypeAlias

from rag_sourcebias.core.finding import (
    LONGEST,
    Code,
    Evidence,
    EvidenceText,
    Finding,
    Frame,
    shorten,
)
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.measure.texts import DataSummary
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report.figures import Picture


class Name(str):
    """A text out of users' data: the name of a source, a system, a file."""

    __slots__ = ()


Words: TypeAlias = Finding | Name | str
"""What is said: a finding, a name out of users' data, or a fixed text without a number."""
Standing: TypeAlias = Literal["baseline", "other", "even", ""]
"""Colour of a verdict; "" where nothing can be told."""
Output: TypeAlias = Literal["page", "markdown", "terminal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An interval on a common scale.

    Parameters
    ----------
    side : str
        Which colour it takes.
    solid : bool
        Whether the dot is filled.
    was : float or None
        Where the value was before a change.
    """

    left: float
    width: float
    dot: float
    side: str
    solid: bool
    was: float | None = None

    @classmethod
    def over(
        cls,
        values: tuple[float, float, float],
        span: tuple[float, float],
        *,
        side: str,
        solid: bool,
        was: float | None = None,
    ) -> Bar:
        """Place (lower end, value, upper end) on a scale; what lies beyond it stands at its end."""

        def place(value: float) -> float:
            part = (value - span[0]) / (span[1] - span[0])
            return round(100 * min(1.0, max(0.0, part)), 2)

        left, dot, right = map(place, values)
        return cls(
            left=left,
            width=round(right - left, 2),
            dot=dot,
            side=side,
            solid=solid,
            was=None if was is None else place(was),
        )


# Blocks. No block says in which output it stands: the renderers have one rule for each kind.
# A page shows everything, Markdown everything but pictures, a terminal what is brief.


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A line over what follows; ``tags`` stand beside it."""

    text: Words
    tags: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A sentence as a paragraph; ``aside`` for what explains a picture or a table beside it."""

    text: Words
    aside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Sentences, one a line; ``of`` names what each is about, where that is not the report."""

    rows: tuple[Words, ...]
    of: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One criterion: of what, its name, whether it is met (None: not checked), what was found."""

    of: str
    name: Words
    met: bool | None
    text: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Criteria under each other, under a heading where they are of several things."""

    rows: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """One figure of a card: its name, value, interval and the place of both on a bar."""

    name: Words
    value: str
    ends: str | None = None
    bar: Bar | None = None
    star: bool = False
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a reader in a hurry should know of one subject: in a page a card, elsewhere a line.

    Parameters
    ----------
    standing : str
        Class of the page that gives its colour.
    short : words
        The verdict in a few words, for a page.
    texts : tuple of words
        The verdict and what goes with it, as sentences.
    """

    name: str
    standing: str
    short: Words
    texts: tuple[Words, ...]
    rows: tuple[CardRow, ...]
    tags: tuple[Words, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards:
    """Cards side by side. ``middle``: their bars have 0 in the middle."""

    cards: tuple[Card, ...]
    look: str
    middle: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A frame under a caption.

    Parameters
    ----------
    sides : tuple of tuple of str
        "baseline", "other" or "" of each cell of each row: the colour in a terminal, "strong "
        before it where it is significant.
    bars : tuple of Bar or None
        Of each row, in a page after column ``bars_at`` under the head ``scale``.
    sparse : bool
        Leave out rows in which nothing was counted, in a terminal.
    brief : bool
        In a terminal only: its numbers stand on a page elsewhere.
    """

    caption: str
    frame: Frame
    sides: tuple[tuple[str, ...], ...] = ()
    bars: tuple[Bar | None, ...] = ()
    bars_at: int = 0
    scale: str = ""
    sparse: bool = False
    brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Frames of two columns, each under its title ("" for none), side by side."""

    frames: tuple[tuple[Words, Frame], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictures:
    """Captions with figures, in a page; ``small`` where they are to be compared side by side."""

    items: tuple[tuple[str, Picture], ...]
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One text of two, cut into (piece, is it marked?); ``cut`` says what is left out."""

    look: str
    label: str
    pieces: tuple[tuple[str, bool], ...]
    cut: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Two texts side by side, with what was found about them; ``about`` is what they answer."""

    name: str
    where: str
    sides: tuple[Side, Side]
    about: str = ""
    broken: bool = False
    findings: tuple[Words, ...] = ()
    values: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a page opens on demand; Markdown shows them, a terminal does not."""

    summary: Words
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Rows of (question, answer), how to read the report."""

    rows: tuple[tuple[Words, Words], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Blocks of a report that is not yet rebuilt, in the outputs that it names."""

    outputs: tuple[Output, ...]
    blocks: tuple[Block, ...]


Block: TypeAlias = (
    Heading
    | Say
    | Listing
    | Checks
    | Cards
    | Table
    | Facts
    | Pictures
    | Versions
    | Fold
    | Questions
    | Only
)


# The first screen.


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """One line of the picture of a first screen: a strip of counts, or a value on a scale.

    Parameters
    ----------
    parts : tuple of (words, float, str)
        What is counted, how often, and its colour: "baseline", "even" or "other".
    bar : Bar or None
        Where there are no parts.
    note : words
        What follows from it, in a few words.
    text : str
        The numbers, as they stand beside it.
    """

    name: Words = ""
    parts: tuple[tuple[Words, float, str], ...] = ()
    bar: Bar | None = None
    note: Words = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """What a report shows before anything is opened, in words that need no statistics.

    Parameters
    ----------
    answer : words
        The answer as a sentence of counts or of plain comparisons.
    verdict : words or None
        What follows, no more certain than its code; None where the answer says it.
    doubts : tuple of words
        What to know before the verdict is trusted.
    caption, rows : words, tuple of FirstRow
        The picture.
    scale : tuple of tuple of words
        What stands at the left end, in the middle and at the right end of its axis.
    shown : tuple of words
        What a reader sees of each source.
    next : Finding or None
        What to do next, with the command that does it between backticks of its template.
    """

    answer: Words
    verdict: Words | None = None
    standing: Standing = ""
    doubts: tuple[Words, ...] = ()
    caption: Words = ""
    rows: tuple[FirstRow, ...] = ()
    scale: tuple[tuple[Words, ...], ...] = ()
    shown: tuple[Words, ...] = ()
    next: Finding | None = None

    def lines(self) -> tuple[str, ...]:
        """Return what is said, the next step aside."""
        verdict = [] if self.verdict is None else [self.verdict]
        said = [self.answer, *verdict, *self.doubts, *self.shown]
        return tuple(filter(None, map(str, said)))


# Sections and the whole.


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under a title.

    Parameters
    ----------
    id : str
        Of the element of a page, to link to.
    lead : words
        What it is about.
    note : words
        What to know of its pictures, in a page after the lead.
    nav : str
        Short title for the list of sections.
    brief : bool
        A terminal shows it: its paragraphs, lists, cards, criteria and tables.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]
    lead: Words = ""
    note: Words = ""
    nav: str = ""
    brief: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report as it is read: what it is of, what it found, and its sections.

    Parameters
    ----------
    kind : str
        What the report is, such as "Check of a paired corpus".
    name : str
        What was examined.
    headline : tuple of words
        The findings with their numbers.
    facts : tuple of words
        A line under the headline.
    created : str
        ISO 8601.
    cautions, warnings : str, tuple of words
        A heading, and what to know before a number is trusted.
    title : str
        Of the file, where it is not kind and name.
    """

    kind: str
    name: str
    first: First
    headline: tuple[Words, ...]
    facts: tuple[Words, ...]
    created: str
    cautions: str = "Before you trust a number"
    warnings: tuple[Words, ...]
    sections: tuple[Section, ...]
    title: str = ""

    def blocks(self) -> Iterator[Block]:
        """Yield every block, those inside folds too."""
        left = [block for section in reversed(self.sections) for block in reversed(section.blocks)]
        while left:
            block = left.pop()
            yield block
            if isinstance(block, Fold | Only):
                left.extend(reversed(block.blocks))


def facts(rows: Mapping[str, object]) -> Frame:
    """Return a table of two columns."""
    return Frame(columns={"name": tuple(rows), "value": tuple(rows.values())})


def about(
    data: DataSummary,
    settings: Mapping[str, object],
    systems: Mapping[str, Mapping[str, object]],
    environment: Mapping[str, str],
) -> dict[str, Frame]:
    """Return the tables by name.

    Parameters
    ----------
    settings : mapping
        Of the report.
    systems : mapping
        Settings of each model that it used.
    environment : mapping
        Versions, machine and time.
    """
    stated = [
        (system, name, str(value)) for system, own in systems.items() for name, value in own.items()
    ]
    names, settings_of, values = zip(*stated, strict=True) if stated else ((), (), ())
    return {
        "data": facts({
            "name": data.name,
            "design": data.design,
            "queries": data.n_queries,
            "judgments": data.n_judgments,
            "pairs of versions": data.n_pairs,
            **{f"tags, {origin}": n for origin, n in data.origins.items()},
            "licence": data.license or "not stated",
            "attribution": data.attribution or "not stated",
        }),
        "documents": Frame(
            columns={
                "source": tuple(data.documents),
                "documents": tuple(data.documents.values()),
                "mean words": tuple(map(data.mean_words.get, data.documents)),
            }
        ),
        "settings": facts(settings),
        "systems": Frame(
            columns={"system": names, "setting": settings_of, "value": values}, n_heads=2
        ),
        "environment": facts(environment),
    }  # fmt: skip


def about_section(tables: Mapping[str, Frame]) -> Section:
    """Return the last section of a page, with the tables of :func:`about`."""
    return Section(
        id="data",
        nav="Data and settings",
        title="Data, settings and versions",
        blocks=(
            Facts(
                frames=(
                    ("Data", tables["data"]),
                    ("Settings", tables["settings"]),
                    ("Environment", tables["environment"]),
                )
            ),
            Table(caption="Documents by source", frame=tables["documents"]),
            *(
                [Table(caption="Models and their settings", frame=tables["systems"])]
                if len(tables["systems"])
                else []
            ),
        ),
    )


Pieces = tuple[tuple[str, bool], ...]
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_NAME, _ASKED = 40, 160  # characters of an id and of a question in a line


def differing(first: str, second: str, asked: str = "") -> tuple[Pieces, Pieces]:
    """Cut two texts into (piece, is it missing from the other?), by words.

    Parameters
    ----------
    asked : str
        A query: then only its words and those with a digit count, as most of a rewrite differs.

    Examples
    --------
    >>> differing("a small cat", "a cat")
    ((('a ', False), ('small ', True), ('cat', False)), (('a cat', False),))
    >>> differing("my cat of 3", "an old one", "Which cat?")[0]
    (('my ', False), ('cat ', True), ('of ', False), ('3', True))
    """
    one, two = _WORDS.findall(first), _WORDS.findall(second)
    wanted = set(map(_plain, asked.split()))
    return _pieces(one, two, wanted), _pieces(two, one, wanted)


def _plain(word: str) -> str:
    """Return a word without case and punctuation."""
    return "".join(filter(str.isalnum, word)).casefold()


def _pieces(words: Sequence[str], other: Sequence[str], wanted: set[str]) -> Pieces:
    plain = list(map(_plain, words))
    lacking = set(plain).difference(map(_plain, other), [""])
    if wanted:
        lacking = {word for word in lacking if word in wanted or any(map(str.isdigit, word))}
    runs = groupby(range(len(words)), key=lambda at: plain[at] in lacking)
    return tuple(("".join(words[at] for at in places), mark) for mark, places in runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseWords:
    """How the cases of one figure are called and written.

    Parameters
    ----------
    noun : str
        What a case is: "query", "question", "pair".
    adds : str
        What a case adds to, as the head of a column.
    sides : tuple of str
        Heads of the first and of the second side.
    got : str
        What a side got: "rank", "score".
    write, add : callable
        How a value of one side, and what a case adds, are written.
    about : str
        What stands over the two texts where it is not the question, which then is the id.
    """

    noun: str
    adds: str
    sides: tuple[str, str]
    got: str
    write: Callable[[float | None], str]
    add: Callable[[float], str]
    about: str = ""


def case_blocks(cases: Sequence[Evidence], words: CaseWords, *, caption: str) -> Iterator[Block]:
    """Yield the cases of one figure: a table, and each with its texts behind a fold."""
    if not cases:
        return
    yield Table(caption=caption, frame=case_frame(cases, words))
    for case in cases:
        if case.first.text or case.second.text:
            yield _texts(case, words)


def case_frame(cases: Sequence[Evidence], words: CaseWords) -> Frame:
    """Return the cases as a table, with ids of documents where texts have any."""
    columns: dict[str, list[str]] = {
        words.noun: [shorten(case.item, _NAME) for case in cases],
        words.adds: [words.add(case.value) for case in cases],
    }
    heads = {}
    sides = [(case.first, case.second) for case in cases]
    has_ids = any(side.doc_id for pair in sides for side in pair)
    for at, label in enumerate(words.sides):
        columns[f"value {at}"] = [words.write(pair[at].value) for pair in sides]
        heads[f"value {at}"] = f"{words.got}, {label}"
    for at, label in enumerate(words.sides if has_ids else ()):
        columns[f"document {at}"] = [shorten(pair[at].doc_id, _NAME) for pair in sides]
        heads[f"document {at}"] = f"{label}: document"
    return Frame(columns=columns, heads=heads)


def case_section(
    parts: Iterable[tuple[str, Iterable[Block]]], *, title: str, lead: str
) -> Section | None:
    """Return the cases of all subjects, each under its name where there are several.

    Parameters
    ----------
    parts : iterable of (str, iterable of Block)
        A subject and its cases; those without cases are left out.
    """
    found = [(name, tuple(blocks)) for name, blocks in parts]
    found = [(name, blocks) for name, blocks in found if blocks]
    if not found:
        return None
    blocks: list[Block] = []
    for name, own in found:
        if len(found) > 1:
            blocks.append(Heading(text=Name(name)))
        blocks += own
    return Section(id="evidence", nav="Evidence", title=title, lead=lead, blocks=tuple(blocks))


def _texts(case: Evidence, words: CaseWords) -> Fold:
    pair = list(zip(words.sides, (case.first, case.second), strict=True))
    values = " · ".join(f"{label}: {words.got} {words.write(side.value)}" for label, side in pair)
    asked = case.item if words.about else case.asked
    name = shorten(asked, _ASKED) or f"{words.noun} {shorten(case.item, _NAME)}"
    over = f"{words.about}: {case.asked}" if words.about and case.asked else case.asked
    gone, new = differing(case.first.text, case.second.text)
    versions = Versions(
        name=f"{words.noun} {case.item}",
        about=over,
        where=words.noun,
        values=values,
        sides=(
            side_of("gone", words.sides[0], case.first, gone),
            side_of("new", words.sides[1], case.second, new),
        ),
    )
    return Fold(summary=f"{name} ({values})", blocks=(versions,))


def side_of(look: str, label: str, text: EvidenceText, pieces: Pieces) -> Side:
    """Return one of two texts of a case, and what of it was left out."""
    cut = ""
    if text.length > len(text.text):
        cut = f"The first {LONGEST:,} of {text.length:,} characters."
    return Side(look=look, label=label, pieces=pieces, cut=cut)


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
    formats = {name: "2" for name in names if name != "words"}
    return Frame(columns={head: groups, "texts": texts, **cells}, formats=formats)


def _mean(found: TextStatistic | None) -> object:
    if found is None:
        return None
    return found.average if found.mean is None else found.mean


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
