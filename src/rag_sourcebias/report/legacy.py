"""What reports that are not yet rebuilt share: composed words, and blocks made of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from rag_sourcebias.core.finding import (
    MISSING,
    Code,
    Evidence,
    Finding,
    Frame,
    Interval,
    Wording,
    number,
    shorten,
    source_name,
)
from rag_sourcebias.measure.texts import DataSummary
from rag_sourcebias.report import document as d

_LONGEST = 60  # characters of a name in a sentence
_write = Wording().format_field


def score(value: float) -> str:
    """Return a mean in [0, 1] as it is printed in the field: ×100, one decimal."""
    return _write(value, "score")


def share(value: float) -> str:
    """Return a share in [0, 1] as a percentage with one decimal."""
    return _write(value, "percent")


def delta(value: float | None) -> str:
    """Return a Relative Δ in percent points, signed, or the word "undefined"."""
    return "undefined" if value is None else number(value, signed=True)


def roughly(value: int) -> str:
    """Return an estimated number with two digits that count, such as ``1,700``."""
    return _write(value, "roughly")


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


def p_clause(value: float | None, *, name: str = "p") -> str:
    """Return ``p = 0.012`` or ``p < 0.001``."""
    if value is None:
        return f"no {name}-value" if name == "p" else f"no {name}"
    return f"{name} {_write(value, 'p=')}"


def alpha_of(confidence_level: float) -> float:
    """Return the level below which an adjusted p-value is called significant."""
    # rounded, so that 0.05 is not below 1 − 0.95
    return round(1 - confidence_level, 12)


def count(value: int | None) -> str:
    """Return a whole number with thousands separators."""
    return MISSING if value is None else f"{value:,}"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Return a number of things, such as ``1 test``, ``36 tests`` or ``2 queries``."""
    return _write(n, f"{noun}|{nouns or noun + 's'}")


def capital(text: str) -> str:
    """Return a text with its first letter as a sentence begins."""
    return text[:1].upper() + text[1:]


def settings(found: Mapping[str, object]) -> str:
    """Return settings in one line, such as ``k1 = 0.9; b = 0.4``."""
    return "; ".join(f"{name} = {value}" for name, value in found.items()) or MISSING


def join(parts: Sequence[str], link: str = "and") -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``; nothing of nothing."""
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} {link} {parts[-1]}"


def level(confidence_level: float) -> str:
    """Return a confidence level such as ``95%`` or ``99.5%``."""
    return _write(confidence_level, "level")


# Blocks out of composed words.


class LegacyCode(Code, home="legacy"):
    """What is composed elsewhere."""

    NEXT = "{why} `{command}`"


def next_step(why: str, command: str) -> Finding | None:
    """Return what to do next, and the command that does it; None without a command."""
    return LegacyCode.NEXT(why=why, command=command) if command else None


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, n_heads: int = 1) -> Frame:
    """Return cells that are written already; heads may come twice."""
    cells = list(rows)
    names: dict[str, str] = {}
    for at, head in enumerate(columns):
        names[f"{head} ({at + 1})" if head in names else head] = head
    return Frame(
        columns={name: [row[at] for row in cells] for at, name in enumerate(names)},
        heads=names,
        n_heads=n_heads,
    )


def grid(
    columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, n_heads: int = 1
) -> d.Table:
    """Return cells that are written already under a caption."""
    return d.Table(frame=table(columns, rows, n_heads=n_heads), caption=caption)


def called(name: str) -> str:
    """Return a name for use within a sentence, in quotes where it is more than one word."""
    text = shorten(name, _LONGEST)
    return f"“{text}”" if any(c in " ,;:" for c in text) else text


def listing(rows: Iterable[tuple[str, str]]) -> d.Listing:
    """Return a list of (who, sentence); nobody for ""."""
    given = tuple(rows)
    return d.Listing(rows=tuple(text for _, text in given), of=tuple(who for who, _ in given))


def on_paper(*blocks: d.Block) -> d.Only:
    """Return blocks of a brief section that a terminal leaves out."""
    return d.Only(outputs=("page", "markdown"), blocks=blocks)


def reading(questions: Iterable[tuple[str, str]]) -> d.Section:
    """Answer what readers ask; rows of (question, answer)."""
    blocks = (d.Questions(rows=tuple(questions)),)
    return d.Section(id="reading", title="How to read this", blocks=blocks)


def caveats(
    assumptions: Iterable[tuple[str, Iterable[object]]],
    caveats: Iterable[tuple[str, object]],
    *,
    warned: bool = False,
) -> d.Section:
    """Return what to doubt.

    Parameters
    ----------
    assumptions : iterable of (where, its assumptions)
    caveats : iterable of (who, what)
        Of which system; "" of all.
    warned : bool
        Whether warnings stand at the top of the report.
    """
    blocks: list[d.Block] = []
    where_of: dict[str, dict[str, None]] = {}
    for where, texts in assumptions:
        for text in texts:
            where_of.setdefault(str(text), {})[where] = None
    if where_of:
        blocks.append(d.Only(
            outputs=("page",), blocks=(d.Heading(text="What the intervals assume"),)
        ))  # fmt: skip
        rows = tuple(f"{text} ({'; '.join(where)})" for text, where in where_of.items())
        blocks.append(d.Listing(rows=rows))
    noted = dict.fromkeys((who, str(text)) for who, text in caveats)
    blocks.append(d.Heading(text="Caveats"))
    if noted:
        blocks.append(listing(noted))
    else:
        besides = " besides the warnings at the top" if warned else ""
        blocks.append(d.Say(text=f"There are none{besides}."))
    return d.Section(id="caveats", title="Assumptions and caveats", blocks=tuple(blocks))


def data(
    tables: Iterable[tuple[d.Words, str, Iterable[tuple[str, str]]]],
    environment: Mapping[str, str],
    created: str,
    *before: d.Block,
) -> d.Section:
    """Return what a report was made of and with.

    Parameters
    ----------
    tables : iterable of (title, head, rows)
        Of two columns each.
    environment : mapping of str to str
        Versions and machine.
    created : str
    before : blocks
    """
    made = [*environment.items(), ("created", created)]
    frames = [
        (title, table((head, ""), rows))
        for title, head, rows in (*tables, ("Environment", "environment", made))
    ]
    return d.Section(
        id="data",
        nav="Data and settings",
        title="Data, settings and versions",
        blocks=(*before, d.Facts(frames=tuple(frames))),
    )


def summary_rows(data: DataSummary) -> tuple[tuple[str, str], ...]:
    """Return the facts about one set of data."""
    words = {
        "rewrites": "rewrites (documents of different sources say the same thing)",
        "independent": "independent (documents answer the same queries, content differs)",
        "unknown": "unknown",
    }
    lengths = {source: f", {number(n)} words on average" for source, n in data.mean_words.items()}
    return (
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


def note_rows(notes: Iterable[tuple[d.Words, tuple[str, ...]]]) -> Iterator[str]:
    """Yield what is to be known of texts, after the groups of which it holds."""
    for note, groups in notes:
        yield f"{', '.join(groups)}: {note}" if groups else str(note)


# Tables of a report that names none: every figure, the values of every query, the cases.


_NAMES = 400  # characters of a text that may be a name
_NO_NAMES = frozenset({
    "refusal", "created", "family", "license", "attribution", "method", "target", "rule",
    "fingerprint", "kind", "searched", "description",
})  # fmt: skip
_NO_FIGURES = frozenset({
    "environment", "config", "settings", "schema_version", "histograms", "thresholds", "warnings",
    "notes", "n_tests", "seed", "evidence",
})  # fmt: skip
_LAST = ("figure", "value", "lower", "upper", "confidence_level")


def frames(
    report: object, page: d.Document, **tables: Iterable[Mapping[str, Any]]
) -> dict[str, Frame]:
    """Return the first table of a page, every figure, and tables out of rows; none of no rows."""
    shown = [block.frame for block in page.blocks() if isinstance(block, d.Table)]
    made = {"main": shown[0]} if shown else {}
    for name, given in {"figures": figures(report), **tables}.items():
        rows = list(given)
        columns = dict.fromkeys(key for row in rows for key in row)
        if rows:
            made[name] = Frame(columns={key: [row.get(key) for row in rows] for key in columns})
    return made


def values(
    array: np.ndarray[Any, Any], axes: Mapping[str, Sequence[object]], **names: object
) -> Iterator[dict[str, Any]]:
    """Yield a row for each value of an array, with its place along each axis."""
    for place in np.ndindex(array.shape):
        labels = {axis: known[at] for (axis, known), at in zip(axes.items(), place, strict=True)}
        yield {**names, **labels, "value": float(array[place])}


def cases(evidence: Iterable[Evidence], **names: object) -> Iterator[dict[str, Any]]:
    """Yield a row for each case that a figure rests on, with its texts."""
    for case in evidence:
        row = {**names, "item": case.item, "asked": case.asked, "value": case.value}
        for side, text in (("first", case.first), ("second", case.second)):
            row |= {f"{side}_{part.name}": getattr(text, part.name) for part in fields(text)}
        yield row


def figures(report: object) -> Iterator[dict[str, Any]]:
    """Yield a row for each number that a report holds, with the names that it stands under."""
    rows = sorted(_rows(report, (), {}), key=lambda row: row["part"] == "data")  # counts last
    names = dict.fromkeys(key for row in rows for key in row if key not in _LAST)
    for row in rows:
        yield {key: row.get(key) for key in (*names, *_LAST)}


def _rows(value: Any, path: tuple[str, ...], names: dict[str, str]) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    """Yield the figures of one part and of those inside it."""
    here = {**names, **_own_names(value, path)}
    for part in fields(value):
        if part.name not in _NO_FIGURES:
            row = {"part": ".".join(path), **here}
            yield from _leaf(getattr(value, part.name), part.name, path, row)


def _leaf(
    value: Any,  # noqa: ANN401
    name: str,
    path: tuple[str, ...],
    row: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    if isinstance(value, Interval):
        ends = {end: getattr(value, end) for end in ("lower", "upper", "confidence_level")}
        yield row | {"figure": name, "value": value.estimate} | ends
    elif isinstance(value, bool | int | float | np.number):
        yield row | {"figure": name, "value": float(value)}
    elif is_dataclass(value) and not isinstance(value, Finding | type):
        names = {key: text for key, text in row.items() if key != "part"}
        yield from _rows(value, (*path, name), names)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaf(item, f"{name}.{key}" if key else name, path, row)
    elif isinstance(value, tuple):
        for at, item in enumerate(value):
            single = is_dataclass(item) and not isinstance(item, Interval)
            yield from _leaf(item, name if single else f"{name}.{at}", path, row)


def _own_names(value: Any, path: Sequence[str]) -> dict[str, str]:  # noqa: ANN401
    """Return what tells one part from its neighbours: its texts and codes."""
    found = {}
    for part in fields(value):
        text = getattr(value, part.name)
        text = text.value if isinstance(text, Enum) else text
        if isinstance(text, str) and 0 < len(text) <= _NAMES and part.name not in _NO_NAMES:
            name = part.name
            if name == "name":
                name = path[-1].removesuffix("s") if path else "data"
            found[name] = text
    return found
