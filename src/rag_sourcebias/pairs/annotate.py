"""Blind annotation: what is asked, who sees which texts, the sheets and their key."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import (
    DataError,
    require,
)
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.core.values import IntArray, Interval, Stored, as_generator
from rag_sourcebias.io.files import PathLike, write_atomic
from rag_sourcebias.io.tables import sheet_csv

# Blind annotation: what is asked, the key that un-blinds it, and what came back.


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
        folded = {a.strip().casefold() for a in self.answers}
        named = {"A", "B"} & set(self.answers)
        require(
            (
                self.name and all(c.isalnum() or c in "-_" for c in self.name),
                f"question name {self.name!r}: use letters, digits, '-' and '_'",
            ),
            (
                self.n_texts in (1, 2),
                f"question {self.name!r}: n_texts {self.n_texts!r} is not 1 or 2",
            ),
            (
                len(folded) == len(self.answers) >= 2 and "" not in folded,
                f"question {self.name!r}: answers {self.answers!r} must be two or more, different "
                "and not empty",
            ),
            (
                len(self.labels) == len(self.answers),
                f"question {self.name!r} has {len(self.answers)} answers and {len(self.labels)} "
                "labels; give one label per answer",
            ),
            (
                not named or (len(named) == 2 and self.n_texts == 2),
                f"question {self.name!r}: answers 'A' and 'B' name the two texts of a pair; "
                "give both, with n_texts=2, or neither",
            ),
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
class AnnotationKey(Stored):
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

    _versioned = ("annotation key", _VERSION)

    sheet_id: str
    questions: tuple[AnnotationQuestion, ...]
    annotators: tuple[str, ...]
    units: tuple[KeyUnit, ...]
    rows: tuple[KeyRow, ...]
    schema_version: int = _VERSION


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
class Annotations(Stored):
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

    _versioned = ("annotations", _VERSION)

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


# Questions that annotators are asked about pairs and about single documents.


QUESTIONS: Mapping[str, AnnotationQuestion] = MappingProxyType(
    {
        q.name: q
        for q in (
            # relevance and quality are the two questions of [K] Table 3
            AnnotationQuestion(
                name="relevance",
                text="Which text is more relevant to the query?",
                answers=("A", "B", "equal"),
                labels=("Text A", "Text B", "Equally relevant"),
                n_texts=2,
                needs_query=True,
            ),
            AnnotationQuestion(
                name="quality",
                text="Which text is of better quality (fluency, coherence, information density)?",
                answers=("A", "B", "equal"),
                labels=("Text A", "Text B", "Equally good"),
                n_texts=2,
            ),
            AnnotationQuestion(
                name="content",
                text="Do the two texts say the same?",
                answers=("same", "partly", "different"),
                labels=("The same", "Partly", "Something different"),
                n_texts=2,
            ),
            AnnotationQuestion(
                name="author",
                text="Which text was written by a person?",
                answers=("A", "B", "unsure"),
                labels=("Text A", "Text B", "Cannot tell"),
                n_texts=2,
            ),
            AnnotationQuestion(
                name="grade",
                text="How relevant is the text to the query?",
                answers=("0", "1", "2", "3"),
                labels=("0 · not at all", "1 · related", "2 · highly", "3 · perfectly"),
                n_texts=1,
                needs_query=True,
            ),
        )
    }
)
"""What annotators can be asked: ``"relevance"`` and ``"quality"`` ([K] Table 3), ``"content"`` and
``"author"`` of pairs of texts, ``"grade"`` of single ones."""


def chosen_questions(
    task: str | AnnotationQuestion | Sequence[str | AnnotationQuestion],
) -> tuple[AnnotationQuestion, ...]:
    """Questions by name, or your own.

    Raises
    ------
    DataError
        If a name is unknown or stands there twice, none is given, or one asks about pairs and
        another about single texts.
    """
    wanted = [task] if isinstance(task, str | AnnotationQuestion) else list(task)
    if not wanted:
        raise DataError(f"task is empty; choose from {', '.join(map(repr, QUESTIONS))}")
    unknown = [one for one in wanted if isinstance(one, str) and one not in QUESTIONS]
    if unknown:
        raise DataError(
            f"task {unknown[0]!r} is unknown; choose from {', '.join(map(repr, QUESTIONS))}, or "
            "give an AnnotationQuestion of your own"
        )
    found = [QUESTIONS[one] if isinstance(one, str) else one for one in wanted]
    names = [q.name.casefold() for q in found]
    if len(set(names)) != len(names):
        raise DataError(f"task names a question twice: {', '.join(q.name for q in found)}")
    if len({q.n_texts for q in found}) > 1:
        told = ", ".join(f"{q.name!r} ({q.n_texts})" for q in found)
        raise DataError(f"questions about one text and about two cannot share a sheet: {told}")
    return tuple(found)


# Blind, order-randomised annotation: who sees which item, in which order, under which id.


# No vowels and no digits: no words, and nothing a spreadsheet takes for a number or a date.
_LETTERS = np.array(list("bcdfghjkmnpqrstvwxz"))


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
        Names from :data:`~rag_sourcebias.pairs.annotate.QUESTIONS`:
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
    units = tuple(pairs[i] for i in generator.permutation(len(pairs))[:n].tolist())
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
    return AnnotationPlan(
        key=AnnotationKey(
            sheet_id=ids[0],
            questions=questions,
            annotators=names,
            units=tuple(KeyUnit(unit_id=u.unit_id, sources=u.sources) for u in units),
            rows=tuple(rows),
        ),
        units=units,
    )


def shown_texts(unit: AnnotationUnit, order: Sequence[int]) -> dict[str, str]:
    """Texts that an annotator sees, by column."""
    names = ("text",) if len(order) == 1 else ("text_a", "text_b")
    # white space at the ends is a trace of how a text was made
    return {
        "query": unit.query.strip(),
        **{name: unit.texts[i].strip() for name, i in zip(names, order, strict=True)},
    }


def content_digest(cells: Iterable[str]) -> str:
    """Digest that survives what spreadsheets change on their own: white space, apostrophes."""
    return hashlib.sha256(
        "\x1f".join([" ".join(cell.split()).lstrip("'") for cell in cells]).encode(
            "utf-8", "surrogatepass"
        )
    ).hexdigest()[:32]


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
        drawn = own.integers(len(_LETTERS), size=(count - len(found), 8))
        found.update(dict.fromkeys("".join(word) for word in _LETTERS[drawn].tolist()))
    return list(found)


def _annotator_names(annotators: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(annotators, int):
        if annotators < 1:
            raise DataError(f"annotators {annotators!r}: at least one is needed")
        return tuple(
            f"annotator-{str(i).zfill(len(str(annotators)))}" for i in range(1, annotators + 1)
        )
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
    unit_id, most = Counter(unit.unit_id for unit in units).most_common(1)[0]
    if most > 1:
        raise DataError(f"unit {unit_id!r} stands there twice; ids must be unique")
    asking = next((q for q in questions if q.needs_query), None)
    for unit in units:
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


# Annotation sheets as files: CSV, one HTML page per annotator, and the key apart from them.


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationFiles:
    """Where the sheets and their key lie."""

    sheets: tuple[Path, ...]
    key: Path


def write_annotation_sheets(
    plan: AnnotationPlan,
    folder: PathLike,
    *,
    formats: Sequence[Literal["csv", "html"]] = ("csv", "html"),
    key: PathLike | None = None,
    title: str = "Annotation",
    instructions: str = "",
    overwrite: bool = False,
) -> AnnotationFiles:
    """Write one sheet per annotator and format, and the key beside the folder.

    Parameters
    ----------
    plan : AnnotationPlan
    folder : path
        Made if it does not exist. It may be handed to annotators as a whole.
    formats : sequence of {"csv", "html"}
    key : path or None
        None writes ``<folder>.key.json``, outside the folder. Keep it from annotators.
    title, instructions : str
        Shown on the page. Do not name the sources.
    overwrite : bool
        Whether existing files, and answers on them, may be replaced.

    Raises
    ------
    DataError
        If a format is unknown, a file exists, the key would lie in the folder, or a text is too
        long for a spreadsheet cell.
    """
    target = Path(folder)
    key_path = target.with_name(target.name + ".key.json") if key is None else Path(key)
    if not formats or set(formats) - {"csv", "html"}:
        raise DataError(f"formats {tuple(formats)!r}: choose 'csv', 'html' or both")
    if target.resolve() in key_path.resolve().parents:
        raise DataError(
            f"the key {key_path} would lie among the sheets in {target}; keep it from annotators"
        )
    texts: dict[Path, str] = {}
    for annotator, name in enumerate(plan.key.annotators):
        for ending in dict.fromkeys(formats):
            path = target / f"{name}.{ending}"
            texts[path] = (
                annotation_csv(plan, annotator, path=path)
                if ending == "csv"
                else annotation_page(plan, annotator, title=title, instructions=instructions)
            )
    there = next((p for p in (key_path, *texts) if p.exists()), None)
    if there is not None and not overwrite:
        raise DataError(
            f"{there} exists and may hold answers or the key to some; choose another folder, "
            "or overwrite=True"
        )
    target.mkdir(parents=True, exist_ok=True)
    # the key first: sheets without one could not be un-blinded
    write_atomic(key_path, json.dumps(plan.key.to_dict(), ensure_ascii=False, indent=1) + "\n")
    for path, text in texts.items():
        write_atomic(path, text)
    return AnnotationFiles(sheets=tuple(texts), key=key_path)


def annotation_csv(plan: AnnotationPlan, annotator: int, *, path: PathLike = "sheet") -> str:
    """One annotator's sheet for spreadsheets, with an empty column per question.

    Columns: ``row_id``, ``query`` if there is one, ``text_a`` and ``text_b`` (or ``text``), and
    one per question, whose header says what is asked and what may be answered.
    """
    asked = [f"{q.name}: {q.text} [{' | '.join(q.answers)}]" for q in plan.key.questions]
    # the header tells which character separates cells, so it may hold no other one
    empty = {
        re.sub(r"\s*[,;\s]\s*", lambda m: " · " if m[0].strip() else " ", column): ""
        for column in asked
    }
    shown = [
        (row.row_id, shown_texts(plan.units[row.unit], row.order))
        for row in plan.rows_of(annotator)
    ]
    queried = any(texts["query"] for _, texts in shown)
    records = [
        {
            "row_id": row_id,
            **{name: text for name, text in texts.items() if queried or name != "query"},
            **empty,
        }
        for row_id, texts in shown
    ]
    return "".join(sheet_csv(records, path))


def annotation_page(
    plan: AnnotationPlan, annotator: int, *, title: str = "Annotation", instructions: str = ""
) -> str:
    """One annotator's sheet as one HTML page that loads nothing from anywhere.

    Answers are kept in the browser's local storage and downloaded as JSON. Texts are shown as
    text, never as markup.
    """
    key = plan.key
    data = {
        "sheet": key.sheet_id,
        "annotator": key.annotators[annotator],
        "questions": [
            {"name": q.name, "text": q.text, "answers": q.answers, "labels": q.labels}
            for q in key.questions
        ],
        "items": [
            {"row_id": row.row_id, **shown_texts(plan.units[row.unit], row.order)}
            for row in plan.rows_of(annotator)
        ],
    }
    folder = resources.files("rag_sourcebias.pairs") / "templates"
    page, style, script = (
        (folder / f"annotate.{ending}").read_text(encoding="utf-8")
        for ending in ("html", "css", "js")
    )
    # "<" is escaped so that no text can close the element it stands in
    plain = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": html.escape(title),
        "instructions": html.escape(instructions),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": style,
        "script": script,
        "data": plain,
    }
    # every other piece is a name: one pass, so that nothing inserted is looked at again
    return "".join(parts[x] if i % 2 else x for i, x in enumerate(page.split("@@")))


# What people are to compare: twins of a data set, with the queries they are relevant to.


def annotation_units(
    data: Dataset | Corpus,
    *,
    source: str | None = None,
    baseline: str = "human",
    min_grade: int = 1,
) -> tuple[AnnotationUnit, ...]:
    """Collect the triples <query, human text, rewrite> of [K] Table 3, or pairs without queries.

    Parameters
    ----------
    data : Dataset or Corpus
        Of a data set every pair with every query it is relevant to; of a corpus, which has no
        queries, every pair once. Read it without titles, as [K] did: those of one source only
        would tell who wrote a text.
    source : str, optional
        May be left out where only one other source has pairs.
    baseline : str
    min_grade : int
        Lowest grade that counts as relevant, at least 1.

    Returns
    -------
    tuple of AnnotationUnit
        For :func:`annotation_sheet`; ids are ``"<query> <pair>"`` or the
        pair's.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, several sources could be meant, or no pair is relevant.

    Examples
    --------
    >>> from rag_sourcebias import load_sample
    >>> unit = annotation_units(load_sample())[0]
    >>> unit.sources, unit.query.split()[0]
    (('human', 'llm:claude'), 'is')
    """
    if isinstance(data, Corpus):
        twins = twin_texts(data, source=source, baseline=baseline)
        units = [(row, pair_id, "") for row, pair_id in enumerate(twins.pair_ids)]
    else:
        found = training_pairs(data, source=source, baseline=baseline, min_grade=min_grade)
        twins = found.twins
        judged = zip(found.rows.tolist(), found.query_ids, found.queries, strict=True)
        units = [(row, f"{name} {twins.pair_ids[row]}", query) for row, name, query in judged]
    return tuple(
        AnnotationUnit(
            unit_id=unit_id,
            texts=(twins.baseline_texts[row], twins.source_texts[row]),
            sources=(twins.baseline, twins.source),
            query=query,
        )
        for row, unit_id, query in units
    )
