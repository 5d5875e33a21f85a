"""Blind annotation: what is asked, who sees which texts, the sheets and their key."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from rag_sourcebias.core.codec import PathLike, write_atomic, write_fitted
from rag_sourcebias.core.data import Corpus, Dataset, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    as_generator,
    require_at_least,
    require_distinct,
    require_one_of,
)
from rag_sourcebias.core.finding import Finding, Interval
from rag_sourcebias.core.tags import training_pairs, twin_texts
from rag_sourcebias.infer.sheets import sheet_csv

# Blind annotation: what is asked, the key that un-blinds it, and what came back.


KEY, KEY_VERSION = "key of annotation sheets", 1


@dataclass(frozen=True, kw_only=True)
class AnnotationQuestion:
    """One question about a pair of texts, called A and B.

    Parameters
    ----------
    name : str
        Of its column.
    text : str
        As annotators read it.
    answers : tuple of str
        What is written down; ``"A"`` and ``"B"`` name a text and are un-blinded to its source.
    labels : tuple of str
        What annotators read, one per answer.
    needs_query : bool
    """

    name: str
    text: str
    answers: tuple[str, ...]
    labels: tuple[str, ...]
    needs_query: bool = False


@dataclass(frozen=True, kw_only=True)
class AnnotationUnit:
    """A pair of texts that people judge.

    Parameters
    ----------
    unit_id : str
        Unique; stays in the key.
    texts, sources : tuple of str
        Two texts and their sources, which stay in the key.
    query : str
        Shown above the texts; empty shows none.
    """

    unit_id: str
    texts: tuple[str, ...]
    sources: tuple[str, ...]
    query: str = ""


@dataclass(frozen=True, kw_only=True)
class KeyUnit:
    """A unit without its texts."""

    unit_id: str
    sources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class AnnotationKey:
    """What un-blinds the sheets; keep it from annotators.

    Parameters
    ----------
    sheet_id : str
    questions : tuple of str
        Names out of :data:`QUESTIONS`.
    annotators : tuple of str
    units : tuple of KeyUnit
    rows : tuple of KeyRow
        In the order in which they are shown, annotator after annotator.
    """

    sheet_id: str
    questions: tuple[str, ...]
    annotators: tuple[str, ...]
    units: tuple[KeyUnit, ...]
    rows: tuple[KeyRow, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
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


@dataclass(frozen=True, kw_only=True, eq=False)
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


@dataclass(frozen=True, kw_only=True)
class RaterAgreement:
    """One coefficient of agreement.

    Parameters
    ----------
    name : str
        ``percent`` or ``krippendorff_alpha``.
    value : float or None
        None where it is undefined. Shares and coefficients are at most 1.
    interval : Interval or None
    n_units : int
        Units it rests on.
    note : Finding or None
        Why value or interval is missing.
    """

    name: str
    value: float | None
    interval: Interval | None
    n_units: int
    note: Finding | None = None


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class MajorityTable:
    """[K] Table 3 for one question.

    Parameters
    ----------
    question : str
    n_units : int
        Units judged by enough annotators.
    n_no_majority : int
        Of these, units on which no answer has more than half.
    n_too_few : int
        Units left out for too few answers.
    shares : tuple of MajorityShare
    """

    question: str
    n_units: int
    n_no_majority: int
    n_too_few: int
    shares: tuple[MajorityShare, ...]


# Questions that annotators are asked.


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
                needs_query=True,
            ),
            AnnotationQuestion(
                name="quality",
                text="Which text is of better quality (fluency, coherence, information density)?",
                answers=("A", "B", "equal"),
                labels=("Text A", "Text B", "Equally good"),
            ),
            AnnotationQuestion(
                name="content",
                text="Do the two texts say the same?",
                answers=("same", "partly", "different"),
                labels=("The same", "Partly", "Something different"),
            ),
            AnnotationQuestion(
                name="author",
                text="Which text was written by a person?",
                answers=("A", "B", "unsure"),
                labels=("Text A", "Text B", "Cannot tell"),
            ),
        )
    }
)
"""What annotators can be asked; ``"relevance"`` and ``"quality"`` are those of [K] Table 3."""


# Blind, order-randomised annotation: who sees which item, in which order, under which id.


# No vowels and no digits: no words, and nothing a spreadsheet takes for a number or a date.
_LETTERS = np.array(list("bcdfghjkmnpqrstvwxz"))


class AnnotationPlan(NamedTuple):
    """Sheets to be written, and their key.

    Parameters
    ----------
    key : AnnotationKey
    units : tuple of AnnotationUnit
        Those drawn, in the order of ``key.units``.
    """

    key: AnnotationKey
    units: tuple[AnnotationUnit, ...]

    def items(self, annotator: int) -> list[dict[str, str]]:
        """Row id and texts of what one annotator sees, in the order in which they are shown."""
        return [
            {"row_id": row.row_id, **shown_texts(self.units[row.unit], row.order)}
            for row in self.key.rows
            if row.annotator == annotator
        ]


def annotation_sheet(
    pairs: Sequence[AnnotationUnit],
    *,
    task: Sequence[str] = ("relevance", "quality"),
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
    task : sequence of str
        Names from :data:`~rag_sourcebias.pairs.annotate.QUESTIONS`.
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
        If a query is missing, or task, n, annotators or overlap are out of range.
    """
    if not task:
        raise DataError(f"task is empty; choose from {', '.join(map(repr, QUESTIONS))}")
    require_distinct("question", task)
    bare = [unit for unit in pairs if not unit.query.strip()]
    for name in task:
        require_one_of("task", name, QUESTIONS)
        if QUESTIONS[name].needs_query and bare:
            raise DataError(f"unit {bare[0].unit_id!r} has no query; question {name!r} needs one")
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
    ids = _row_ids(sum(map(len, dealt)) + 1, units, tuple(task), generator)
    rows: list[KeyRow] = []
    for annotator, mine in enumerate(dealt):
        flips = generator.permutation(np.arange(len(mine)) + generator.integers(2)) % 2
        for place in generator.permutation(len(mine)).tolist():
            unit = units[mine[place]]
            order = ((0, 1), (1, 0))[flips[place]]
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
            questions=tuple(task),
            annotators=names,
            units=tuple(KeyUnit(unit_id=u.unit_id, sources=u.sources) for u in units),
            rows=tuple(rows),
        ),
        units=units,
    )


def shown_texts(unit: AnnotationUnit, order: Sequence[int]) -> dict[str, str]:
    """Texts that an annotator sees, by column."""
    # white space at the ends is a trace of how a text was made
    first, second = (unit.texts[i].strip() for i in order)
    return {"query": unit.query.strip(), "text_a": first, "text_b": second}


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
    questions: Sequence[str],
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
        require_at_least(1, annotators=annotators)
        return tuple(
            f"annotator-{str(i).zfill(len(str(annotators)))}" for i in range(1, annotators + 1)
        )
    names = (annotators,) if isinstance(annotators, str) else tuple(annotators)
    require_distinct("annotator", [name.casefold() for name in names])
    for name in names:
        if not name or name.startswith(".") or not all(c.isalnum() or c in "-_." for c in name):
            raise DataError(
                f"annotator {name!r} names a file: use letters, digits, '-', '_' and '.'"
            )
    if not names:
        raise DataError("there is no annotator; at least one is needed")
    return names


# Annotation sheets as files: CSV, one HTML page per annotator, and the key apart from them.


class AnnotationFiles(NamedTuple):
    """Where the sheets and their key lie."""

    sheets: tuple[Path, ...]
    key: Path


def write_annotation_sheets(
    plan: AnnotationPlan,
    folder: PathLike,
    *,
    key: PathLike | None = None,
    overwrite: bool = False,
) -> AnnotationFiles:
    """Write one page and one CSV sheet per annotator, and the key beside the folder.

    Parameters
    ----------
    plan : AnnotationPlan
    folder : path
        Made if it does not exist. It may be handed to annotators as a whole.
    key : path or None
        None writes ``<folder>.key.json``, outside the folder. Keep it from annotators.
    overwrite : bool
        Whether existing files, and answers on them, may be replaced.

    Raises
    ------
    DataError
        If a file exists, the key would lie in the folder, or a text is too long for a
        spreadsheet cell.
    """
    target = Path(folder)
    key_path = target.with_name(target.name + ".key.json") if key is None else Path(key)
    if target.resolve() in key_path.resolve().parents:
        raise DataError(
            f"the key {key_path} would lie among the sheets in {target}; keep it from annotators"
        )
    texts: dict[Path, str] = {}
    for annotator, name in enumerate(plan.key.annotators):
        sheet = target / f"{name}.csv"
        texts[sheet] = annotation_csv(plan, annotator, path=sheet)
        texts[target / f"{name}.html"] = annotation_page(plan, annotator)
    there = next((p for p in (key_path, *texts) if p.exists()), None)
    if there is not None and not overwrite:
        raise DataError(
            f"{there} exists and may hold answers or the key to some; choose another folder, "
            "or overwrite=True"
        )
    target.mkdir(parents=True, exist_ok=True)
    # the key first: sheets without one could not be un-blinded
    write_fitted(plan.key, key_path, kind=KEY, version=KEY_VERSION)
    for path, text in texts.items():
        write_atomic(path, text)
    return AnnotationFiles(sheets=tuple(texts), key=key_path)


def annotation_csv(plan: AnnotationPlan, annotator: int, *, path: PathLike = "sheet") -> str:
    """One annotator's sheet for spreadsheets, with an empty column per question.

    Columns: ``row_id``, ``query`` if there is one, ``text_a`` and ``text_b``, and one per
    question, whose header says what is asked and what may be answered.
    """
    # the header tells which character separates cells, so it may hold no other one
    questions = [QUESTIONS[name] for name in plan.key.questions]
    asked = [f"{q.name}: {q.text} [{' | '.join(q.answers)}]".replace(",", " ·") for q in questions]
    items = plan.items(annotator)
    if not any(item["query"] for item in items):
        for item in items:
            del item["query"]
    return sheet_csv([item | dict.fromkeys(asked, "") for item in items], path)


def annotation_page(plan: AnnotationPlan, annotator: int) -> str:
    """One annotator's sheet as one HTML page that loads nothing from anywhere.

    Answers are kept in the browser's local storage and downloaded as CSV. Texts are shown as text,
    never as markup.
    """
    key = plan.key
    data = {
        "sheet": key.sheet_id,
        "annotator": key.annotators[annotator],
        "questions": [asdict(QUESTIONS[name]) for name in key.questions],
        "items": plan.items(annotator),
    }
    folder = resources.files("rag_sourcebias.pairs") / "templates"
    page, style, script = (
        (folder / f"annotate.{ending}").read_text(encoding="utf-8")
        for ending in ("html", "css", "js")
    )
    # "<" is escaped so that no text can close the element it stands in
    plain = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {
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
        found = training_pairs(data, source=source, baseline=baseline)
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
