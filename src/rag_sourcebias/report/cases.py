"""Cases that a figure rests on, as blocks: a table, and texts with differing words marked."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

from rag_sourcebias.core.finding import LONGEST, Evidence, EvidenceText, Frame, shorten
from rag_sourcebias.report.document import (
    Block,
    Fold,
    Heading,
    Name,
    Section,
    Side,
    Table,
    Versions,
)

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
    pieces = differing(case.first.text, case.second.text)
    versions = Versions(
        name=f"{words.noun} {case.item}",
        about=over,
        where=words.noun,
        values=values,
        sides=(
            _side("gone", words.sides[0], case.first, pieces[0]),
            _side("new", words.sides[1], case.second, pieces[1]),
        ),
    )
    return Fold(summary=f"{name} ({values})", blocks=(versions,))


def _side(look: str, label: str, text: EvidenceText, pieces: Pieces) -> Side:
    cut = ""
    if text.length > len(text.text):
        cut = f"The first {LONGEST:,} of {text.length:,} characters."
    return Side(look=look, label=label, pieces=pieces, cut=cut)
