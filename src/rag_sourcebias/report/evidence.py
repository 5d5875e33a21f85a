"""Cases that a figure rests on, as blocks: a table, and texts with differing words marked."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from rag_sourcebias.core.evidence import LONGEST, Evidence, EvidenceText
from rag_sourcebias.report import blocks as b

Pieces = tuple[tuple[str, bool], ...]
_WORDS = re.compile(r"\s*\S+\s*|\s+")
_NAME, _ASKED = 40, 160  # characters of an id and of a question in a line


def differing(first: str, second: str) -> tuple[Pieces, Pieces]:
    """Cut two texts into (piece, is it missing from the other?), by words.

    Examples
    --------
    >>> differing("a small cat", "a cat")
    ((('a ', False), ('small ', True), ('cat', False)), (('a cat', False),))
    """
    words = tuple(_WORDS.findall(text) for text in (first, second))
    plain = [[word.strip().casefold() for word in side] for side in words]
    blocks = SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_matching_blocks()
    same = (set[int](), set[int]())
    for at, place, size in blocks:
        same[0].update(range(at, at + size))
        same[1].update(range(place, place + size))
    return _pieces(words[0], same[0]), _pieces(words[1], same[1])


def _pieces(words: Sequence[str], same: set[int]) -> Pieces:
    runs = groupby(range(len(words)), key=lambda at: at not in same)
    return tuple(("".join(words[at] for at in places), marked) for marked, places in runs)


def evidence(
    cases: Sequence[Evidence],
    *,
    of: str,
    noun: str,
    columns: tuple[str, str, str],
    write: Callable[[float | None], str],
    added: Callable[[float], str],
    caption: str,
    about: str = "",
) -> Iterator[b.Block]:
    """Return the cases of one figure: a table, and each with its texts behind a fold.

    Parameters
    ----------
    of : str
        What a case adds to, as the head of a column.
    noun : str
        What a case is: "query", "question", "pair".
    columns : tuple of str
        Heads of the first side, the second side, and of what they got, "" where they got nothing.
    write, added : callable
        How a value of one side, and what a case adds, are written.
    about : str
        What stands over the two texts where it is not the question, which then is the id.
    """
    if not cases:
        return
    first, second, got = columns
    named = any(side.doc_id for case in cases for side in (case.first, case.second))
    documents = (f"{first}: document", f"{second}: document") if named else ()
    values = (f"{got}, {first}", f"{got}, {second}") if got else ()

    heads = (noun, of, *values, *documents)
    yield b.Grid(
        table=b.Table(
            columns=heads,
            rows=tuple(
                (
                    b.Name(b.shorten(case.item, _NAME)),
                    added(case.value),
                    *((write(case.first.value), write(case.second.value)) if got else ()),
                    *(
                        (b.shorten(s.doc_id, _NAME) for s in (case.first, case.second))
                        if named
                        else ()
                    ),
                )
                for case in cases
            ),
        ),
        caption=caption,
    )
    for case in cases:
        if case.first.text or case.second.text:
            yield _texts(case, noun=noun, got=got, sides=(first, second), write=write, about=about)


def section(
    parts: Iterable[tuple[str, Iterable[b.Block]]], *, title: str, lead: str
) -> b.Section | None:
    """Return the cases of all subjects, each under its name where there are several.

    Parameters
    ----------
    parts : iterable of (str, iterable of Block)
        A subject and its cases; those without cases are left out.
    """
    found = [(name, blocks) for name, cases in parts if (blocks := tuple(cases))]
    if not found:
        return None
    named = len(found) > 1
    return b.Section(
        id="evidence",
        nav="Evidence",
        title=title,
        lead=lead,
        blocks=tuple(
            block
            for name, blocks in found
            for block in (*[b.Heading(text=b.Name(name), to=b.PAGE)] * named, *blocks)
        ),
    )


def _texts(
    case: Evidence,
    *,
    noun: str,
    got: str,
    sides: tuple[str, str],
    write: Callable[[float | None], str],
    about: str,
) -> b.Fold:
    values = " · ".join(
        f"{label}: {got} {write(side.value)}"
        for label, side in zip(sides, (case.first, case.second), strict=True)
    )
    pieces = differing(case.first.text, case.second.text)
    values *= bool(got)
    title = b.shorten(case.item if about else case.asked, _ASKED)
    name = title or f"{noun} {b.shorten(case.item, _NAME)}"
    return b.Fold(
        summary=f"{name} ({values})" if values else name,
        blocks=(
            b.Versions(
                name=f"{noun} {case.item}",
                about=f"{about}: {case.asked}" if about and case.asked else case.asked,
                where=noun,
                broken=False,
                findings=(),
                values=values,
                sides=(
                    _side("gone", sides[0], case.first, pieces[0]),
                    _side("new", sides[1], case.second, pieces[1]),
                ),
            ),
        ),
    )


def _side(look: str, label: str, text: EvidenceText, pieces: Pieces) -> b.Side:
    more = text.length > len(text.text)
    return b.Side(
        look=look,
        label=label,
        pieces=pieces,
        cut=f"The first {b.count(LONGEST)} of {b.count(text.length)} characters." if more else "",
    )
