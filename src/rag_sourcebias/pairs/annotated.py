"""Filled annotation sheets: read and un-blinded, agreement of annotators, majorities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from rag_sourcebias.core.codec import PathLike, read_fitted
from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError, as_generator, check_level
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import bootstrap_intervals, bootstrap_means, wilson_interval
from rag_sourcebias.intake.tables import read_table
from rag_sourcebias.pairs.annotate import (
    KEY,
    KEY_VERSION,
    QUESTIONS,
    AnnotationKey,
    AnnotationQuestion,
    Annotations,
    AnswerTable,
    KeyRow,
    MajorityShare,
    MajorityTable,
    RaterAgreement,
    content_digest,
)
from rag_sourcebias.pairs.findings import PairsCode

# Answers as they stand in returned sheets, before they are un-blinded.


_TEXTS = ("query", "text_a", "text_b")


def _answers(
    path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]
) -> Iterator[tuple[str, str, object, str]]:
    table = read_table(path)
    cells = {name.split(":")[0].strip(): column for name, column in table.columns.items()}
    lacking = [name for name in ("row_id", *plan.questions) if name not in cells]
    if lacking:
        raise DataError(
            f"{path}: column {lacking[0]!r} is missing from {', '.join(table.names)[:120]}; send "
            "back all columns as they were"
        )
    shows_texts = "text_a" in cells or "text_b" in cells  # what a page downloads holds none
    for place in range(len(table)):
        where = table.where(place)
        row_id = str(cells["row_id"][place] or "").strip()
        if row_id not in rows:
            raise DataError(
                f"{where}: row_id {row_id!r} is not in the key ({len(rows)} ids like "
                f"{next(iter(rows))!r}); restore it, or use the key of this sheet"
            )
        # a query column that was empty throughout was not written
        shown = [str(cells[name][place] or "") if name in cells else "" for name in _TEXTS]
        if shows_texts and content_digest(shown) != rows[row_id].digest:
            raise DataError(
                f"{where}: row {row_id!r}: its texts are not those that were sent (edited, or "
                "sorted without their row); only the answer columns may be filled in"
            )
        for name in plan.questions:
            yield row_id, name, cells[name][place], where


# Filled annotation sheets, checked and un-blinded with their key.


def read_annotation_key(path: PathLike) -> AnnotationKey:
    """Read a key.

    Raises
    ------
    DataError
        If the file is missing or is no key.
    UnsupportedVersionError
        If another version wrote it.
    """
    key = read_fitted(AnnotationKey, path, kind=KEY, version=KEY_VERSION)
    unknown = [name for name in key.questions if name not in QUESTIONS]
    if unknown:
        raise DataError(f"{path}: question {unknown[0]!r} is unknown")
    units, annotators = range(len(key.units)), range(len(key.annotators))
    for row in key.rows:
        named = row.unit in units and row.annotator in annotators
        if not named or sorted(row.order) != [0, 1]:
            raise DataError(
                f"{path}: row {row.row_id!r} is of a unit or an annotator it does not name"
            )
    return key


def read_annotations(
    paths: PathLike | Sequence[PathLike], *, key: PathLike | AnnotationKey
) -> Annotations:
    """Read filled sheets and un-blind them.

    Row ids tell whose sheet it is, so files may be renamed. Rows may come in any order, with other
    columns beside them. The same answer twice is one answer.

    Parameters
    ----------
    paths : path or sequence of paths
        Filled sheets, and what pages downloaded.
    key : path or AnnotationKey

    Returns
    -------
    Annotations
        Rows that are missing or empty, and sheets that did not come back, are unanswered.

    Raises
    ------
    DataError
        Naming file and line: a row id is unknown, an answer is not one of those offered, two
        answers to the same question differ, or a shown text was edited.
    UnsupportedVersionError
        If another version wrote the key.
    """
    plan = key if isinstance(key, AnnotationKey) else read_annotation_key(key)
    files = [paths] if isinstance(paths, str) or not isinstance(paths, Sequence) else list(paths)
    if not files:
        raise DataError("there are no filled sheets to read")
    rows = {row.row_id: row for row in plan.rows}
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for path in files:
        for row_id, question, cell, where in _answers(path, plan, rows):
            value = _offered(cell, QUESTIONS[question], f"{where}: row {row_id!r}")
            if value is None:
                continue
            earlier = found.setdefault((row_id, question), (value, where))
            if earlier[0] != value:
                raise DataError(
                    f"{where}: row {row_id!r}: {question} is {value!r} here and {earlier[0]!r} at "
                    f"{earlier[1]}; keep one"
                )
    return Annotations(
        sheet_id=plan.sheet_id,
        annotators=plan.annotators,
        units=plan.units,
        tables=tuple(_table(plan, QUESTIONS[name], found) for name in plan.questions),
    )


def _table(
    plan: AnnotationKey,
    question: AnnotationQuestion,
    given: Mapping[tuple[str, str], tuple[str, str]],
) -> AnswerTable:
    named = ("A", "B") if "A" in question.answers else ()
    sources = dict.fromkeys(s for unit in plan.units for s in unit.sources) if named else {}
    categories = (*sources, *(a for a in question.answers if a not in named))
    code_of = {name: code for code, name in enumerate(categories)}
    codes = np.full((len(plan.units), len(plan.annotators)), -2, dtype=np.int64)
    chosen = {"A": 0, "B": 0}
    for row in plan.rows:
        value, _ = given.get((row.row_id, question.name), (None, ""))
        if value is not None and value in named:
            chosen[value] += 1
            value = plan.units[row.unit].sources[row.order[named.index(value)]]
        codes[row.unit, row.annotator] = -1 if value is None else code_of[value]
    return AnswerTable(
        question=question.name,
        categories=categories,
        codes=codes,
        n_first=chosen["A"],
        n_second=chosen["B"],
    )


def _offered(cell: object, question: AnnotationQuestion, where: str) -> str | None:
    """Answer as the question spells it; None for an empty one."""
    text = "" if cell is None else str(cell).strip().lstrip("'")
    if not text:
        return None
    spelt = text.casefold()
    for value, label in zip(question.answers, question.labels, strict=True):
        if spelt in (value.casefold(), label.casefold()):
            return value
    raise DataError(
        f"{where}: {question.name} {text[:60]!r} is not an answer; "
        f"{', '.join(map(repr, question.answers))} or nothing is expected"
    )


# Agreement of annotators on nominal answers, with answers missing, bootstrapped over units.


_UNDEFINED = 0.01  # share of resamples that may be undefined
_TINY = 1e-12  # chance agreement that rounding cannot tell from 1


def annotator_agreement(
    annotations: Annotations,
    question: str,
    *,
    confidence_level: float = 0.95,
    resamples: int = 2000,
    rng: np.random.Generator | int = 0,
) -> tuple[RaterAgreement, ...]:
    """Measure how far annotators agree on one question.

    Parameters
    ----------
    annotations : Annotations
    question : str
    confidence_level : float
    resamples : int
        Of units, for percentile intervals.
    rng : Generator or int

    Returns
    -------
    tuple of RaterAgreement
        ``percent``: share of pairs of annotators who agree, mean over units with two answers or
        more. ``krippendorff_alpha`` (Krippendorff 2011), nominal, on the same units; low or
        undefined where almost all answers are one category.

    Raises
    ------
    DataError
        If the question was not asked.
    """
    check_level(confidence_level)
    table = annotations.table(question)
    generator = as_generator(rng)
    codes = np.arange(len(table.categories))
    counts = (table.codes[:, :, None] == codes).sum(axis=1).astype(np.float64)
    several = counts[counts.sum(axis=1) >= 2]
    n = several.sum(axis=1, keepdims=True)
    agreeing = (several * (several - 1)).sum(axis=1, keepdims=True) / (n * (n - 1))
    columns = np.hstack([n * (1 - agreeing), several])  # disagreement, and each category's count
    bootstrap = (confidence_level, resamples, generator)
    alpha = partial(_alpha, n_units=len(several))
    return (
        _measured("percent", agreeing, lambda means: means[:, 0], bootstrap),
        _measured("krippendorff_alpha", columns, alpha, bootstrap),
    )


def _measured(
    name: str,
    columns: FloatArray,
    formula: Callable[[FloatArray], FloatArray],
    bootstrap: tuple[float, int, np.random.Generator],
) -> RaterAgreement:
    empty = RaterAgreement(name=name, value=None, interval=None, n_units=len(columns))
    if not len(columns):
        return replace(empty, note=PairsCode.NO_TWO_ANSWERS())
    value = float(formula(columns.mean(axis=0, keepdims=True))[0])
    if np.isnan(value):
        return replace(empty, note=PairsCode.ONE_CATEGORY())
    if len(columns) == 1:
        return replace(empty, value=value, note=PairsCode.ONE_UNIT())
    level, resamples, generator = bootstrap
    drawn = formula(bootstrap_means(columns, resamples=resamples, rng=generator))
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < (1 - _UNDEFINED) * len(drawn):
        undefined = len(drawn) - len(defined)
        note = PairsCode.OFTEN_UNDEFINED(undefined=undefined, resamples=len(drawn))
        return replace(empty, value=value, note=note)
    interval = bootstrap_intervals(
        np.array([value]), defined[:, None], n=len(columns), confidence_level=level
    )[0]
    if interval is None:
        return replace(empty, value=value, note=PairsCode.SAME_IN_ALL())
    assumed = (InferCode.UNITS_SAMPLED(units="units"),)
    return replace(empty, value=value, interval=replace(interval, assumptions=assumed))


def _alpha(means: FloatArray, *, n_units: int) -> FloatArray:
    """1 − (n − 1) Σ disagreement / (n² − Σ n_c²), n answers in all."""
    sums = means * n_units
    counts = sums[:, 1:]
    n = counts.sum(axis=1)
    chance = n**2 - (counts**2).sum(axis=1)
    result = np.full(len(means), np.nan)
    np.divide((n - 1) * sums[:, 0], chance, out=result, where=chance > _TINY)
    return 1 - result


# The figures of [K] Table 3: what the majority of annotators says, and how often all agree.


def majority_tables(
    annotations: Annotations, *, min_answers: int | None = None, confidence_level: float = 0.95
) -> tuple[MajorityTable, ...]:
    """Majority shares of every question, as in [K] Table 3.

    Parameters
    ----------
    annotations : Annotations
    min_answers : int or None
        Units with fewer answers are left out, and counted. None takes 3, as [K] had at least, or
        the number of annotators where there are fewer.
    confidence_level : float
        Of the Wilson intervals: 0 of 50 still leaves up to 7 % possible.

    Returns
    -------
    tuple of MajorityTable
        One per question. Questions without a unit that has enough answers have no shares.

    Raises
    ------
    DataError
        If ``min_answers`` is not in 1 … number of annotators.
    """
    most = len(annotations.annotators)
    needed = min(3, most) if min_answers is None else min_answers
    if not 1 <= needed <= most:
        raise DataError(f"min_answers {needed!r} is not in 1 … {most}, the number of annotators")
    return tuple(_majority(table, needed, confidence_level) for table in annotations.tables)


def _majority(table: AnswerTable, needed: int, level: float) -> MajorityTable:
    counts = (table.codes[:, :, None] == np.arange(len(table.categories))).sum(axis=1)
    answers = counts.sum(axis=1)
    enough = answers >= needed
    counts, answers = counts[enough], answers[enough]
    n = len(counts)
    won = 2 * counts > answers[:, None]
    wins, agreed = (x.sum(axis=0).tolist() for x in (won, counts == answers[:, None]))
    return MajorityTable(
        question=table.question,
        n_units=n,
        n_no_majority=int((~won.any(axis=1)).sum()),
        n_too_few=int((~enough).sum()),
        shares=tuple(
            MajorityShare(
                category=name,
                n=wins[code],
                share=wilson_interval(wins[code], n, confidence_level=level),
                n_unanimous=agreed[code],
                unanimous=agreed[code] / wins[code] if wins[code] else None,
            )
            for code, name in enumerate(table.categories if n else ())
        ),
    )
