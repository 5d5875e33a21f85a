"""A report as data: blocks in the order in which they are read, and how numbers are written."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rag_sourcebias.core.finding import Interval
from rag_sourcebias.measure.dataset import DataSummary
from rag_sourcebias.report.document import Bar as Bar  # noqa: PLC0414
from rag_sourcebias.report.document import Name as Name  # noqa: PLC0414
from rag_sourcebias.report.document import Side as Side  # noqa: PLC0414

if TYPE_CHECKING:
    from rag_sourcebias.report.figures import Picture

# How numbers and sources are written in every report output.
# Scores are shown ×100 with one decimal and Relative Δ as a signed number with one decimal, as in
# Tables 2, 4 and 5 of Dai et al. (KDD 2024). Negative numbers carry U+2212, not a hyphen.


MISSING = "–"
_MINUS = "\u2212"

CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
VARIANTS = {
    "mixed": "",
    "exact": "exact search",
    "length-matched": "length-matched",
}


_SAMPLES = ("crowdrag-rewrites", "EVOUNA sample")
_PLAIN = frozenset(string.ascii_letters + string.digits + "-_./")  # needs no quotes in a shell


def number(value: float | None, *, digits: int = 1, signed: bool = False) -> str:
    """Return ``value`` with ``digits`` decimals, or "–"; what rounds to 0 carries no sign."""
    if value is None:
        return MISSING
    text = f"{abs(value):.{digits}f}"
    if not text.strip("0.naif"):  # neither 0 nor what is no number has a sign
        return text
    return (_MINUS if value < 0 else "+" * signed) + text


def score(value: float) -> str:
    """Return a mean in [0, 1] as it is printed in the field: ×100, one decimal."""
    return number(100 * value)


def share(value: float) -> str:
    """Return a share in [0, 1] as a percentage with one decimal."""
    return f"{number(100 * value)}%"


def delta(value: float | None) -> str:
    """Return a Relative Δ in percent points, signed, or the word "undefined"."""
    return "undefined" if value is None else number(value, signed=True)


def roughly(value: int) -> str:
    """Return an estimated number with two digits that count, such as ``1,700``."""
    unit = 10 ** max(len(str(value)) - 2, 0)
    return f"{-(-value // unit) * unit:,}"


def interval(value: Interval | None, *, scale: float = 1.0, digits: int = 1) -> str:
    """Return the two ends of an interval, such as ``[−96.1, −2.0]``; turned by a scale below 0."""
    if value is None:
        return MISSING
    low, high = (
        number(end, digits=digits) for end in sorted((scale * value.lower, scale * value.upper))
    )
    return f"[{low}, {high}]"


def estimate(
    value: Interval | None, *, scale: float = 1.0, digits: int = 1, signed: bool = False
) -> str:
    """Return an estimate with its interval, such as ``−49.6 [−96.6, −2.6]``."""
    if value is None:
        return MISSING
    ends = interval(value, scale=scale, digits=digits)
    return f"{number(scale * value.estimate, digits=digits, signed=signed)} {ends}"


def ends_about_zero(value: Interval, *, digits: int) -> str:
    """Return the ends with as many decimals as it takes to see on which side of 0 they lie."""
    ends = [end for end in (value.lower, value.upper) if end != 0]
    enough = (d for d in range(digits, digits + 3) if all(round(abs(end), d) != 0 for end in ends))
    return interval(value, digits=next(enough, digits + 3))


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals, ``< 0.001`` below that.

    A value that three decimals would round onto 0.050 keeps a fourth, so that no table shows the
    usual threshold without telling on which side of it the value lies.
    """
    if value is None:
        return MISSING
    if value < 0.001:
        return "< 0.001"
    text = f"{value:.3f}"
    return f"{value:.4f}" if text == "0.050" and value != 0.05 else text


def p_clause(value: float | None, *, name: str = "p") -> str:
    """Return ``p = 0.012`` or ``p < 0.001``."""
    if value is None:
        return f"no {name}-value" if name == "p" else f"no {name}"
    text = p_value(value)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def count(value: int | None) -> str:
    """Return a whole number with thousands separators."""
    return MISSING if value is None else f"{value:,}"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Return a number of things, such as ``1 test``, ``36 tests`` or ``2 queries``."""
    return f"{n:,} {noun if n == 1 else nouns or noun + 's'}"


def capital(text: str) -> str:
    """Return a text with its first letter as a sentence begins."""
    return text[:1].upper() + text[1:]


def data_argument(name: str, stand_in: str = "my-data") -> str:
    """Return data as a command takes them: the bundled sample, their own name, or a stand-in."""
    if name in _SAMPLES:
        return "--sample"
    if name.partition("/")[0] == "outfox-essays":
        return "--dataset outfox-essays"
    file = "." in name or "." not in stand_in  # what Python was given is none
    return name if name and file and not set(name) - _PLAIN else stand_in


def opened(text: str) -> str:
    """Return a sentence that starts with a capital, unless a name of users' data starts it."""
    return capital(text) if text.startswith("for ") else text


def settings(found: Mapping[str, object]) -> str:
    """Return settings in one line, such as ``k1 = 0.9; b = 0.4``."""
    return "; ".join(f"{name} = {value}" for name, value in found.items()) or MISSING


def join(parts: Sequence[str], link: str = "and") -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``; nothing of nothing."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {link} {parts[-1]}"


def level(confidence_level: float) -> str:
    """Return a confidence level such as ``95%`` or ``99.5%``."""
    return f"{100 * confidence_level:.6g}%"


def source_name(source: str) -> str:
    """Return a source as prose: ``human-written``, ``LLM-written (llama-2)``, ``untagged``."""
    known = {"": "untagged", "human": "human-written", "llm": "LLM-written"}
    model = f"LLM-written ({source[4:]})" if source.startswith("llm:") else source
    return known.get(source, model)


def short_names(sources: Iterable[str]) -> dict[str, str]:
    """Return the shortest unambiguous name of each source: ``human``, ``LLM``, ``LLM gpt-4``."""
    known = list(dict.fromkeys(sources))
    plain = {"": "untagged", "llm": "LLM"}
    model = "LLM {}" if sum(s == "llm" or s.startswith("llm:") for s in known) > 1 else "LLM"
    return {
        source: model.format(source[4:]) if source.startswith("llm:") else plain.get(source, source)
        for source in known
    }


def shorten(text: str, width: int) -> str:
    """Return ``text`` cut in the middle to ``width`` characters, the end of a name tells most."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def split_measure(measure: str) -> tuple[str, int | None]:
    """Split ``"NDCG@5"`` into ``("NDCG", 5)``; the cutoff is None where there is none."""
    name, _, cutoff = measure.partition("@")
    return name, int(cutoff) if cutoff.isdigit() else None


# A report as data: sections of blocks in the order in which they are read.
# A capability says what there is to say as a :class:`Document`; the renderers
# (:mod:`rag_sourcebias.report.render`, :mod:`rag_sourcebias.report.render`) know blocks and no
# capability. All texts are plain: renderers escape them. :class:`Name` marks a text that comes
# from users' data where it stands alone, so that a page keeps its direction of writing apart.


Output = Literal["page", "markdown", "terminal"]
PAGE: tuple[Output, ...] = ("page",)
MARKDOWN: tuple[Output, ...] = ("markdown",)
TERMINAL: tuple[Output, ...] = ("terminal",)
FILES: tuple[Output, ...] = ("page", "markdown")
EVERYWHERE: tuple[Output, ...] = ("page", "markdown", "terminal")


#: What a check found, in words.
MET = {True: "met", False: "not met", None: "not checked"}
#: Whether a difference is there, in words.
ESTABLISHED = {True: "established", False: "not established", None: "not computed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Column heads and rows of text; the first ``n_heads`` columns name the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_heads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Anything that stands in a section.

    Parameters
    ----------
    to : tuple of {"page", "markdown", "terminal"}
        Outputs that show it.
    """

    to: tuple[Output, ...] = EVERYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading(Block):
    """A line over what follows; ``tags`` stand beside it in a page."""

    text: str
    tags: tuple[str, ...] = ()
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph(Block):
    """A sentence or several; ``look`` is a class of the page, such as "note"."""

    text: str
    look: str = ""
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRow:
    """One figure of a card: its name, value, the ends of its interval and their place on a bar."""

    name: str
    value: str
    ends: str | None = None
    bar: Bar | None = None
    star: bool = False
    tag: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a reader in a hurry should know of one subject.

    Parameters
    ----------
    standing : str
        Class of the page that gives its colour.
    """

    name: str
    standing: str
    short: str
    text: str
    rows: tuple[CardRow, ...]
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards(Block):
    """Cards side by side; a list of sentences in Markdown. ``middle``: bars have 0 in theirs."""

    cards: tuple[Card, ...]
    look: str
    middle: bool = False
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks(Block):
    """Rows of (group, name, met, what was found); None was not checked."""

    rows: tuple[tuple[str, str, bool | None, str], ...]
    group: str = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Block):
    """Rows of (topic, is it established?, sentence with its end); None was not computed."""

    rows: tuple[tuple[str, bool | None, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Items(Block):
    """A list of (who, sentence); nobody for "". An aside follows each in brackets, if any."""

    rows: tuple[tuple[str, str], ...]
    asides: tuple[str, ...] = ()
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines(Block):
    """Lines of a terminal, each of (piece, look): "strong", "good", "poor" or ""."""

    rows: tuple[tuple[tuple[str, str], ...], ...]
    to: tuple[Output, ...] = TERMINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(Block):
    """A table; rows with the same first of several heads stand together under it.

    Parameters
    ----------
    sparse : bool
        Without the rows in which nothing was counted, in a terminal.
    width : int
        Characters of each column of numbers in a terminal; 0 for as many as it takes.
    sides : tuple of str or of tuple of str
        "baseline", "other" or "" of each row, or of each of its columns: the colour in a terminal;
        "strong " before it where it is significant.
    together : int
        Columns of numbers that a narrow terminal does not part.
    bars : tuple of Bar or None
        Of each row, in a page after column ``bars_at`` under the head ``scale``.
    """

    table: Table
    caption: str
    sparse: bool = False
    width: int = 0
    sides: tuple[str | tuple[str, ...], ...] = ()
    together: int = 1
    bars: tuple[Bar | None, ...] = ()
    bars_at: int = 0
    scale: str = ""
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Block):
    """Tables of two columns, each under its title ("" for none), side by side."""

    tables: tuple[tuple[str, Table], ...]
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Block):
    """Captions with pictures; ``small`` where their tops are to be compared side by side.

    ``wide`` is the width in rem of pictures that need more than a column of the page, 0 of others.
    """

    items: tuple[tuple[str, Picture], ...]
    small: bool = False
    wide: int = 0
    to: tuple[Output, ...] = PAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions(Block):
    """Two texts side by side, with what was found about them; ``about`` is what they answer."""

    name: str
    about: str = ""
    where: str
    broken: bool
    findings: tuple[tuple[str, str], ...]
    values: str
    sides: tuple[Side, Side]
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold(Block):
    """Blocks that a page opens on demand; Markdown shows them."""

    summary: str
    blocks: tuple[Block, ...]
    of: str = ""
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions(Block):
    """Rows of (question, answer)."""

    rows: tuple[tuple[str, str], ...]
    to: tuple[Output, ...] = FILES


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRow:
    """One line of the picture of a first screen: a strip of counts, or a value on a scale.

    Parameters
    ----------
    parts : tuple of (str, float, str)
        What is counted, how often, and its colour: "baseline", "even" or "other".
    bar : Bar or None
        Where there are no parts.
    text : str
        The numbers, as they stand beside it.
    """

    name: str
    parts: tuple[tuple[str, float, str], ...] = ()
    bar: Bar | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """What a report shows before anything is opened, in words that need no statistics.

    Parameters
    ----------
    answer : str
        The answer as a sentence of counts or of plain comparisons.
    verdict : str
        What follows, no more certain than its code; "" where the answer says it.
    standing : str
        Colour of the verdict: "baseline", "other", "even", or "" where nothing can be told.
    doubts : tuple of str
        What to know before the verdict is trusted.
    caption, rows : str, tuple of FirstRow
        The picture.
    why, command : str
        What to do next, and the command that does it.
    """

    answer: str
    verdict: str = ""
    standing: str = ""
    doubts: tuple[str, ...] = ()
    caption: str = ""
    rows: tuple[FirstRow, ...] = ()
    why: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under a title.

    Parameters
    ----------
    nav : str
        Short title for the list of sections.
    lead : str
        What it is about.
    pictures : str
        What to know of its pictures, in a page after the lead.
    """

    id: str
    title: str
    blocks: tuple[Block, ...]
    nav: str = ""
    lead: str = ""
    pictures: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report: what it is of, what it found, and its sections.

    Parameters
    ----------
    kind : str
        What the report is, such as "Check of a paired corpus".
    title : str
        Of the file.
    name : str
        What was examined.
    first : First
        What is seen before anything is opened.
    headline : str
        The findings with their numbers.
    headline_to : tuple of {"page", "markdown", "terminal"}
        Outputs that start with it; the lines of a terminal may say as much.
    facts : tuple of tuple of str
        Groups of a line under the headline; each group is joined without a mark between.
    created : str
        ISO 8601.
    cautions, warnings : str, tuple of str
        A heading, and what to know before a number is trusted.
    """

    kind: str
    title: str
    name: str
    first: First
    headline: str
    facts: tuple[tuple[str, ...], ...]
    created: str
    cautions: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    headline_to: tuple[Output, ...] = EVERYWHERE

    def _repr_html_(self) -> str:  # what a notebook asks for
        from rag_sourcebias.report.legacy_render import notebook

        return notebook(self)


# Sections near the end of every report: how to read it, what to doubt, what it was made with


def reading(questions: Iterable[tuple[str, str]]) -> Section:
    """Answer what readers ask; rows of (question, answer)."""
    return Section(
        id="reading", title="How to read this", blocks=(Questions(rows=tuple(questions)),)
    )


def assumed(rows: Iterable[tuple[str, Iterable[object]]]) -> dict[str, dict[str, None]]:
    """Return each assumption with where it is made; rows of (where, its assumptions)."""
    found: dict[str, dict[str, None]] = {}
    for where, texts in rows:
        for text in texts:
            found.setdefault(str(text), {})[where] = None
    return found


def caveats(
    assumptions: Mapping[str, Iterable[str]],
    caveats: Iterable[tuple[str, str]],
    *,
    warned: bool = False,
) -> Section:
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
    made = (
        Heading(text="What the intervals assume", to=PAGE),
        Items(
            rows=tuple(("", text) for text in assumptions),
            asides=tuple("; ".join(where) for where in assumptions.values()),
        ),
    )
    noted, besides = tuple(caveats), " besides the warnings at the top" * warned
    return Section(
        id="caveats",
        title="Assumptions and caveats",
        blocks=(
            *(made if assumptions else ()),
            Heading(text="Caveats"),
            Items(rows=noted) if noted else Paragraph(text=f"There are none{besides}."),
        ),
    )


def data(tables: Iterable[tuple[str, Table]], *before: Block) -> Section:
    """Return what a report was made of and with: tables of two columns, each under its title."""
    return Section(
        id="data",
        nav="Data and settings",
        title="Data, settings and versions",
        blocks=(*before, Facts(tables=tuple(tables))),
    )


def summary_table(data: DataSummary) -> Table:
    """Return the facts about one set of data."""
    words = {
        "rewrites": "rewrites (documents of different sources say the same thing)",
        "independent": "independent (documents answer the same queries, content differs)",
        "unknown": "unknown",
    }
    lengths = {source: f", {number(n)} words on average" for source, n in data.mean_words.items()}
    rows = (
        ("name", data.name),
        ("design", words.get(data.design, data.design)),
        ("queries", count(data.n_queries)),
        ("judgments", count(data.n_judgments)),
        ("pairs of versions", count(data.n_pairs)),
        *(
            (f"documents, {source_name(source)}", count(n) + lengths.get(source, ""))
            for source, n in data.documents.items()
        ),
        *((f"tags, {origin}", count(n)) for origin, n in data.origins.items()),
        ("licence", data.license or "not stated"),
        ("attribution", data.attribution or "not stated"),
    )
    return Table(columns=("data", ""), rows=rows)


def environment_table(environment: Mapping[str, str], created: str) -> Table:
    """Return versions, machine and time."""
    return Table(
        columns=("environment", ""),
        rows=tuple((str(k), str(v)) for k, v in (*environment.items(), ("created", created))),
    )
