"""A report as data: findings, frames and figures in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_sourcebias.core.finding import Finding, Frame
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
    chance : float or None
        Where chance alone would put it.
    """

    left: float
    width: float
    dot: float
    side: str
    solid: bool
    was: float | None = None
    chance: float | None = None

    @classmethod
    def over(
        cls,
        values: tuple[float, float, float],
        span: tuple[float, float],
        *,
        side: str,
        solid: bool,
        was: float | None = None,
        chance: float | None = None,
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
            chance=None if chance is None else place(chance),
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
    together : int
        Columns of numbers that a narrow terminal does not part.
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
    together: int = 1
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
    wide: int = 0  # width in rem of those that need more than a column of the page


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
    text : str
        The numbers, as they stand beside it.
    """

    name: Words = ""
    parts: tuple[tuple[Words, float, str], ...] = ()
    bar: Bar | None = None
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
    next : Finding or None
        What to do next, with the command that does it between backticks of its template.
    """

    answer: Words
    verdict: Words | None = None
    standing: Standing = ""
    doubts: tuple[Words, ...] = ()
    caption: Words = ""
    rows: tuple[FirstRow, ...] = ()
    next: Finding | None = None

    def lines(self) -> tuple[str, ...]:
        """Return what is said, the next step aside."""
        said = [self.answer, *([] if self.verdict is None else [self.verdict]), *self.doubts]
        return tuple(text for text in map(str, said) if text)


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
    cautions: str
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
