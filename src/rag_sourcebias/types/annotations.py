"""Blind annotation: what is asked, the key that un-blinds it, and what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.intervals import Interval
from rag_sourcebias.types.serial import from_versioned, to_plain

__all__ = [
    "AnnotationKey",
    "AnnotationQuestion",
    "AnnotationUnit",
    "Annotations",
    "AnswerTable",
    "KeyRow",
    "KeyUnit",
    "MajorityShare",
    "MajorityTable",
    "RaterAgreement",
]

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationQuestion:
    """One question about an item.

    Parameters
    ----------
    name : str
        Short, the name of its column: letters, digits, ``-`` and ``_``.
    text : str
        As annotators read it. On items of two texts they are called A and B.
    answers : tuple of str
        What is written down; ``"A"`` and ``"B"`` name a text and are un-blinded to its source.
    labels : tuple of str
        What annotators read, one per answer.
    n_texts : int
        1 (a query and a document) or 2 (a pair).
    needs_query : bool
    """

    name: str
    text: str
    answers: tuple[str, ...]
    labels: tuple[str, ...]
    n_texts: int
    needs_query: bool = False

    def __post_init__(self) -> None:
        if not self.name or not all(c.isalnum() or c in "-_" for c in self.name):
            raise DataError(f"question name {self.name!r}: use letters, digits, '-' and '_'")
        if self.n_texts not in (1, 2):
            raise DataError(f"question {self.name!r}: n_texts {self.n_texts!r} is not 1 or 2")
        folded = {a.strip().casefold() for a in self.answers}
        if len(folded) != len(self.answers) or "" in folded or len(folded) < 2:
            raise DataError(
                f"question {self.name!r}: answers {self.answers!r} must be two or more, different "
                "and not empty"
            )
        if len(self.labels) != len(self.answers):
            raise DataError(
                f"question {self.name!r} has {len(self.answers)} answers and {len(self.labels)} "
                "labels; give one label per answer"
            )
        named = {"A", "B"} & set(self.answers)
        if len(named) == 1 or (named and self.n_texts == 1):
            raise DataError(
                f"question {self.name!r}: answers 'A' and 'B' name the two texts of a pair; "
                "give both, with n_texts=2, or neither"
            )

    @property
    def prefers(self) -> bool:
        """Whether an answer names one of the two texts."""
        return "A" in self.answers


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationUnit:
    """A pair of texts, or one text, that people judge.

    Parameters
    ----------
    unit_id : str
        Unique; stays in the key.
    texts, sources : tuple of str
        Two texts and their sources, or one. Sources stay in the key.
    query : str
        Shown above the texts; empty shows none.
    """

    unit_id: str
    texts: tuple[str, ...]
    sources: tuple[str, ...]
    query: str = ""

    def __post_init__(self) -> None:
        where = f"unit {self.unit_id!r}"
        if len(self.texts) not in (1, 2) or len(self.sources) != len(self.texts):
            raise DataError(
                f"{where} has {len(self.texts)} texts and {len(self.sources)} sources; one or two "
                "texts with a source each are expected"
            )
        if not all(text.strip() for text in self.texts) or not all(self.sources):
            raise DataError(f"{where} has an empty text or source")
        if len(set(self.sources)) != len(self.sources):
            raise DataError(f"{where}: both texts have source {self.sources[0]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUnit:
    """A unit without its texts."""

    unit_id: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One item on one annotator's sheet.

    Parameters
    ----------
    row_id : str
        Opaque; the only id annotators see.
    annotator, unit : int
        Places in the key's lists.
    order : tuple of int
        Which of the unit's texts stand as A and B.
    digest : str
        Of the shown texts, to notice edited or shifted cells.
    """

    row_id: str
    annotator: int
    unit: int
    order: tuple[int, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationKey:
    """What un-blinds the sheets; keep it from annotators.

    Parameters
    ----------
    sheet_id : str
    questions : tuple of AnnotationQuestion
    annotators : tuple of str
    units : tuple of KeyUnit
    rows : tuple of KeyRow
        In the order in which they are shown, annotator after annotator.
    """

    sheet_id: str
    questions: tuple[AnnotationQuestion, ...]
    annotators: tuple[str, ...]
    units: tuple[KeyUnit, ...]
    rows: tuple[KeyRow, ...]
    schema_version: int = _VERSION

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AnnotationKey:
        """Read what :meth:`to_dict` wrote."""
        return from_versioned(cls, data, version=_VERSION, what="annotation key")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnswerTable:
    """Un-blinded answers to one question.

    Parameters
    ----------
    question : str
    categories : tuple of str
        Sources instead of A and B, then the other answers.
    codes : int64 array of shape (units, annotators)
        Places in ``categories``; −1 was asked and not answered, −2 was not asked.
    n_first, n_second : int
        How often text A and text B were chosen, whatever their source (0 where no answer names a
        text). Order is randomised: a clear lead of one is a habit of the annotators.
    """

    question: str
    categories: tuple[str, ...]
    codes: IntArray
    n_first: int = 0
    n_second: int = 0

    @property
    def n_answered(self) -> int:
        """Answers given."""
        return int(np.count_nonzero(self.codes >= 0))

    @property
    def n_unanswered(self) -> int:
        """Answers asked for and not given."""
        return int(np.count_nonzero(self.codes == -1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Annotations:
    """Everything that came back, un-blinded.

    Parameters
    ----------
    sheet_id : str
    annotators : tuple of str
    units : tuple of KeyUnit
        Rows of every table.
    tables : tuple of AnswerTable
        One per question.
    """

    sheet_id: str
    annotators: tuple[str, ...]
    units: tuple[KeyUnit, ...]
    tables: tuple[AnswerTable, ...]
    schema_version: int = _VERSION

    def table(self, question: str) -> AnswerTable:
        """Answers to one question.

        Raises
        ------
        DataError
            If it was not asked.
        """
        for table in self.tables:
            if table.question == question:
                return table
        asked = ", ".join(repr(t.question) for t in self.tables)
        raise DataError(f"question {question!r} was not asked; the sheet asked {asked}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Annotations:
        """Read what :meth:`to_dict` wrote."""
        return from_versioned(cls, data, version=_VERSION, what="annotations")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaterAgreement:
    """One coefficient of agreement.

    Parameters
    ----------
    name : str
        ``percent``, ``cohen_kappa``, ``fleiss_kappa``, ``krippendorff_alpha`` or ``gwet_ac1``.
    annotators : tuple of str
        Whose; two for Cohen's kappa.
    value : float or None
        None where it is undefined. Shares and coefficients are at most 1.
    interval : Interval or None
    n_units : int
        Units it rests on.
    note : str
        Why value or interval is missing, or what to mind.
    """

    name: str
    annotators: tuple[str, ...]
    value: float | None
    interval: Interval | None
    n_units: int
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityShare:
    """How often one answer had the majority.

    Parameters
    ----------
    category : str
    n : int
        Units on which more than half of the answers are this one.
    share : Interval
        Of all units judged, in [0, 1], with its Wilson interval.
    n_unanimous : int
        Of ``n``, those on which every annotator agreed.
    unanimous : float or None
        ``n_unanimous / n``: the figure in brackets of [K] Table 3. None where ``n`` is 0.
    """

    category: str
    n: int
    share: Interval
    n_unanimous: int
    unanimous: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MajorityTable:
    """[K] Table 3 for one question.

    Parameters
    ----------
    question : str
    source : str or None
        Of the texts, where units are single texts; None for pairs.
    n_units : int
        Units judged by enough annotators.
    n_no_majority : int
        Of these, units on which no answer has more than half.
    n_too_few : int
        Units left out for too few answers.
    shares : tuple of MajorityShare
    """

    question: str
    source: str | None
    n_units: int
    n_no_majority: int
    n_too_few: int
    shares: tuple[MajorityShare, ...]
