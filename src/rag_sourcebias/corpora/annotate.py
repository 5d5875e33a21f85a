"""Blind, order-randomised annotation: who sees which item, in which order, under which id."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.corpora.annotate_questions import chosen_questions
from rag_sourcebias.errors import DataError
from rag_sourcebias.inference.quantiles import as_generator
from rag_sourcebias.types.annotations import (
    AnnotationKey,
    AnnotationQuestion,
    AnnotationUnit,
    KeyRow,
    KeyUnit,
)

__all__ = ["AnnotationPlan", "annotation_sheet", "content_digest", "shown_texts"]

# No vowels and no digits: no words, and nothing a spreadsheet takes for a number or a date.
_LETTERS = np.array(list("bcdfghjkmnpqrstvwxz"))
_ID_LENGTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationPlan:
    """Sheets to be written, and their key.

    Parameters
    ----------
    key : AnnotationKey
    units : tuple of AnnotationUnit
        Those drawn, in the order of ``key.units``.
    """

    key: AnnotationKey
    units: tuple[AnnotationUnit, ...]

    def rows_of(self, annotator: int) -> list[KeyRow]:
        """Rows of one annotator in the order in which they are shown."""
        return [row for row in self.key.rows if row.annotator == annotator]


def annotation_sheet(
    pairs: Sequence[AnnotationUnit],
    *,
    task: str | AnnotationQuestion | Sequence[str | AnnotationQuestion] = ("relevance", "quality"),
    n: int | None = None,
    annotators: int | Sequence[str] = 3,
    overlap: float = 1.0,
    rng: np.random.Generator | int,
) -> AnnotationPlan:
    """Draw units and deal them to annotators, blind.

    Every annotator gets an order of items of their own, ids of their own, and each source as text
    A in half of the items (one more or less where the number is odd).

    Parameters
    ----------
    pairs : sequence of AnnotationUnit
        Pairs of texts, or single texts with a query, all of one kind.
    task : str, AnnotationQuestion or several
        Names from :data:`~rag_sourcebias.corpora.annotate_questions.QUESTIONS`:
        ``"relevance"``, ``"quality"`` (both: [K] Table 3), ``"content"``, ``"author"`` for pairs,
        ``"grade"`` for single texts.
    n : int or None
        Units drawn at random without replacement; None takes all. [K] took 50.
    annotators : int or sequence of str
        How many, or their names, which name their files. [K] had at least three.
    overlap : float
        Share of the units, in [0, 1], that every annotator judges; each of the others goes to one
        annotator. Only shared units tell about agreement.
    rng : Generator or int

    Raises
    ------
    DataError
        If ids repeat, units do not fit the questions, a query is missing, or n, annotators or
        overlap are out of range.
    """
    questions = chosen_questions(task)
    _check_units(pairs, questions)
    names = _annotator_names(annotators)
    if n is not None and not 1 <= n <= len(pairs):
        raise DataError(f"n {n!r} is not in 1 … {len(pairs)}, the number of units given")
    if not 0 <= overlap <= 1:
        raise DataError(f"overlap {overlap!r} is outside [0, 1]")
    generator = as_generator(rng)
    picked = generator.permutation(len(pairs))[:n].tolist()
    units = tuple(pairs[i] for i in picked)
    # in random order already: the first ones are a random sample
    shared = round(overlap * len(units))
    dealt = [
        [*range(shared), *range(shared + a, len(units), len(names))] for a in range(len(names))
    ]
    if not all(dealt):
        raise DataError(
            f"{len(names)} annotators but {len(units)} units, {shared} of them shared: some would "
            "have nothing to do; raise overlap or take fewer annotators"
        )
    ids = _row_ids(sum(map(len, dealt)) + 1, units, questions, generator)
    rows: list[KeyRow] = []
    for annotator, mine in enumerate(dealt):
        flips = generator.permutation(np.arange(len(mine)) + generator.integers(2)) % 2
        for place in generator.permutation(len(mine)).tolist():
            unit = units[mine[place]]
            order = (0,) if len(unit.texts) == 1 else ((0, 1), (1, 0))[flips[place]]
            rows.append(
                KeyRow(
                    row_id=ids[len(rows) + 1],
                    annotator=annotator,
                    unit=mine[place],
                    order=order,
                    digest=content_digest(shown_texts(unit, order).values()),
                )
            )
    key = AnnotationKey(
        sheet_id=ids[0],
        questions=questions,
        annotators=names,
        units=tuple(KeyUnit(unit_id=u.unit_id, sources=u.sources) for u in units),
        rows=tuple(rows),
    )
    return AnnotationPlan(key=key, units=units)


def shown_texts(unit: AnnotationUnit, order: Sequence[int]) -> dict[str, str]:
    """Texts that an annotator sees, by column."""
    names = ("text",) if len(order) == 1 else ("text_a", "text_b")
    # white space at the ends is a trace of how a text was made
    texts = {name: unit.texts[i].strip() for name, i in zip(names, order, strict=True)}
    return {"query": unit.query.strip(), **texts}


def content_digest(cells: Iterable[str]) -> str:
    """Digest that survives what spreadsheets change on their own: white space, apostrophes."""
    plain = [" ".join(cell.split()).lstrip("'") for cell in cells]
    return hashlib.sha256("\x1f".join(plain).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _row_ids(
    count: int,
    units: Sequence[AnnotationUnit],
    questions: Sequence[AnnotationQuestion],
    generator: np.random.Generator,
) -> list[str]:
    """Ids that differ between sheets: the same seed on other texts must not give the same."""
    told = hashlib.sha256(repr((units, questions)).encode()).digest()
    words = np.frombuffer(told, dtype=np.uint32).tolist()
    own = np.random.default_rng([*generator.integers(2**32, size=4).tolist(), *words])
    found: dict[str, None] = {}
    while len(found) < count:
        drawn = own.integers(len(_LETTERS), size=(count - len(found), _ID_LENGTH))
        found.update(dict.fromkeys("".join(word) for word in _LETTERS[drawn].tolist()))
    return list(found)


def _annotator_names(annotators: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(annotators, int):
        if annotators < 1:
            raise DataError(f"annotators {annotators!r}: at least one is needed")
        digits = len(str(annotators))
        return tuple(f"annotator-{i:0{digits}d}" for i in range(1, annotators + 1))
    names = (annotators,) if isinstance(annotators, str) else tuple(annotators)
    for name in names:
        if not name or name.startswith(".") or not all(c.isalnum() or c in "-_." for c in name):
            raise DataError(
                f"annotator {name!r} names a file: use letters, digits, '-', '_' and '.'"
            )
    if not names or len({name.casefold() for name in names}) != len(names):
        raise DataError(f"annotators {names!r}: at least one is needed, each name once")
    return names


def _check_units(units: Sequence[AnnotationUnit], questions: Sequence[AnnotationQuestion]) -> None:
    if not units:
        raise DataError("there is nothing to annotate: pairs is empty")
    seen: set[str] = set()
    asking = next((q for q in questions if q.needs_query), None)
    for unit in units:
        if unit.unit_id in seen:
            raise DataError(f"unit {unit.unit_id!r} stands there twice; ids must be unique")
        seen.add(unit.unit_id)
        if len(unit.texts) != questions[0].n_texts:
            raise DataError(
                f"unit {unit.unit_id!r} has {len(unit.texts)} texts; question "
                f"{questions[0].name!r} is about {questions[0].n_texts}"
            )
        if asking is not None and not unit.query.strip():
            raise DataError(
                f"unit {unit.unit_id!r} has no query; question {asking.name!r} needs one"
            )
        for question in questions:
            clash = set(unit.sources) & set(question.answers) if question.prefers else set()
            if clash:
                raise DataError(
                    f"unit {unit.unit_id!r}: source {min(clash)!r} is also an answer to question "
                    f"{question.name!r}; name the source otherwise"
                )
