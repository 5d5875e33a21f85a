"""Filled annotation sheets: read and un-blinded, agreement of annotators, majorities."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import FloatArray, IntArray, as_generator, check_level
from rag_sourcebias.io.files import PathLike, read_json, read_lines, sound
from rag_sourcebias.io.tables import read_table
from rag_sourcebias.pairs.annotate import (
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
from rag_sourcebias.stats.clusters import bootstrap_intervals
from rag_sourcebias.stats.ratio import bootstrap_means
from rag_sourcebias.stats.regression import wilson_interval

# Answers as they stand in returned sheets, before they are un-blinded.


_FORMAT = "rag-sourcebias answers"
_TEXTS = ("query", "text_a", "text_b", "text")
_ROW_ID = re.compile(r'"row_id"\s*:')


#: Row id, question, what the cell holds, and its file and line.
Given = tuple[str, str, object, str]


def _check_row(row_id: str, rows: Mapping[str, KeyRow], where: str) -> None:
    if row_id not in rows:
        raise DataError(
            f"{where}: row_id {row_id!r} is not in the key ({len(rows)} ids like "
            f"{next(iter(rows))!r}); restore it, or use the key of this sheet"
        )


def _from_csv(path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]) -> Iterator[Given]:
    asked = {q.name: q for q in plan.questions}
    column_of: dict[str, str] = {}

    def choose(names: tuple[str, ...]) -> list[str]:
        column_of.update({n.split(":")[0].strip(): n for n in names if n.split(":")[0].strip()})
        lacking = [n for n in ("row_id", *asked) if n not in column_of]
        if lacking:
            raise DataError(
                f"{path}: column {lacking[0]!r} is missing from {', '.join(names)[:120]}; send "
                "back all columns as they were"
            )
        return [
            column_of["row_id"],
            *[column_of[n] for n in _TEXTS if n in column_of],
            *(column_of[n] for n in asked),
        ]

    table = read_table(path, choose)
    cells = {name: table.columns[c] for name, c in column_of.items() if c in table.columns}
    for place in range(len(table)):
        where = table.where(place)
        row_id = str(cells["row_id"][place] or "").strip()
        _check_row(row_id, rows, where)
        texts = ("text",) if len(rows[row_id].order) == 1 else ("text_a", "text_b")
        # a query column that was empty throughout was not written
        shown = [str(cells[n][place] or "") if n in cells else "" for n in ("query", *texts)]
        if content_digest(shown) != rows[row_id].digest:
            raise DataError(
                f"{where}: row {row_id!r}: its texts are not those that were sent (edited, or "
                "sorted without their row); only the answer columns may be filled in"
            )
        for name in asked:
            yield row_id, name, cells[name][place], where


def _from_json(path: PathLike, plan: AnnotationKey, rows: Mapping[str, KeyRow]) -> Iterator[Given]:
    data = read_json(path, "the answers of an annotation page")
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise DataError(f"{path} was not downloaded from an annotation page")
    if data.get("sheet") != plan.sheet_id:
        raise DataError(
            f"{path} answers sheet {data.get('sheet')!r}, the key is of {plan.sheet_id!r}"
        )
    entries = data.get("answers")
    if not isinstance(entries, list):
        raise DataError(f"{path}: 'answers' is {entries!r:.60}; expected a list")
    # the page writes one entry per line
    lines = [n for n, line in read_lines(path) if _ROW_ID.search(line)]
    one_each = len(lines) == len(entries)
    asked = [q.name for q in plan.questions]
    for number, entry in enumerate(entries):
        where = f"{path}:{lines[number]}" if one_each else f"{path}: answer {number + 1}"
        if not isinstance(entry, dict) or not isinstance(entry.get("row_id"), str):
            raise DataError(f"{where} is {entry!r:.60}; expected an object with a row_id")
        row_id = entry.pop("row_id")
        _check_row(row_id, rows, where)
        for name, value in entry.items():
            if name not in asked:
                raise DataError(
                    f"{where}: row {row_id!r} answers {name!r}, which was not asked; the sheet "
                    f"asked {', '.join(asked)}"
                )
            yield row_id, name, value, where


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
    data = read_json(path, "the key of annotation sheets")
    if not isinstance(data, dict) or "sheet_id" not in data or "rows" not in data:
        raise DataError(f"{path} is not the key of annotation sheets")
    with sound(path, "a complete key of annotation sheets", names_file=False):
        key = AnnotationKey.from_dict(data)
        for row in key.rows:
            places = ((row.unit, len(key.units)), (row.annotator, len(key.annotators)))
            if not all(0 <= place < n for place, n in places):
                raise DataError(f"row {row.row_id!r} is of a unit or an annotator it does not name")
            if sorted(row.order) != list(range(len(key.units[row.unit].sources))):
                raise DataError(f"row {row.row_id!r} shows texts {row.order} of its unit")
        return key


def read_annotations(
    paths: PathLike | Sequence[PathLike], *, key: PathLike | AnnotationKey
) -> Annotations:
    """Read filled sheets, in any mixture of CSV and JSON, and un-blind them.

    Row ids tell whose sheet it is, so files may be renamed. Rows may come in any order, with other
    columns beside them. The same answer twice is one answer.

    Parameters
    ----------
    paths : path or sequence of paths
        ``.json`` downloaded from the page; anything else is CSV.
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
    questions = {q.name: q for q in plan.questions}
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for path in files:
        read = _from_json if Path(path).suffix.lower() == ".json" else _from_csv
        for row_id, question, cell, where in read(path, plan, rows):
            value = _offered(cell, questions[question], f"{where}: row {row_id!r}")
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
        tables=tuple(_table(plan, asked, found) for asked in plan.questions),
    )


def _table(
    plan: AnnotationKey,
    question: AnnotationQuestion,
    given: Mapping[tuple[str, str], tuple[str, str]],
) -> AnswerTable:
    named = ("A", "B") if question.prefers else ()
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
    whole = re.fullmatch(r"([0-9]+)[.,]0*", text)  # spreadsheets write 2 as 2.0
    spelt = (text if whole is None else whole[1]).casefold()
    for value, label in zip(question.answers, question.labels, strict=True):
        if spelt in (value.casefold(), label.casefold()):
            return value
    raise DataError(
        f"{where}: {question.name} {text[:60]!r} is not an answer; "
        f"{', '.join(map(repr, question.answers))} or nothing is expected"
    )


# Agreement of annotators on nominal answers, with answers missing, bootstrapped over units.


Formula = Callable[[FloatArray], FloatArray]
_UNDEFINED = 0.01  # share of resamples that may be undefined
_SKEWED = 0.9
_TINY = 1e-12


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
        more. ``krippendorff_alpha`` (Krippendorff 2011), nominal, on the same units.
        ``fleiss_kappa`` (Fleiss 1971) and ``gwet_ac1`` (Gwet 2008) on the units with the most
        answers, since they want equally many. ``cohen_kappa`` (Cohen 1960) for every two
        annotators, on the units both answered. Where almost all answers are one category the
        kappas and alpha are low or undefined whatever the agreement; AC1 is not. Nominal 95 %
        intervals covered .91–.98 in simulations (20 and 50 units, 600 runs each; the low end are
        alpha and Fleiss' kappa where one category has 80 % of the answers).

    Raises
    ------
    DataError
        If the question was not asked.
    """
    check_level(confidence_level)
    table = annotations.table(question)
    k = len(table.categories)
    generator = as_generator(rng)
    counts = (table.codes[:, :, None] == np.arange(k)).sum(axis=1).astype(np.float64)
    answers = counts.sum(axis=1)
    several = counts[answers >= 2]
    full = counts[answers == max(answers.max(), 2.0)]
    everyone = annotations.annotators
    wanted: list[tuple[str, tuple[str, ...], FloatArray, Formula]] = [
        ("percent", everyone, _pair_columns(several), lambda m: m[:, 0]),
        (
            "krippendorff_alpha",
            everyone,
            _alpha_columns(several),
            partial(_alpha, n_units=len(several)),
        ),
        ("fleiss_kappa", everyone, _pair_columns(full), _fleiss),
        ("gwet_ac1", everyone, _pair_columns(full), _gwet),
        *(
            (
                "cohen_kappa",
                (everyone[a], everyone[b]),
                _table_columns(table.codes[:, [a, b]], k),
                partial(_cohen, k=k),
            )
            for a, b in combinations(range(len(everyone)), 2)
        ),
    ]
    total = several.sum(axis=0)
    skewed = (
        f"over 90 % of answers are {table.categories[int(total.argmax())]!r}: chance-corrected "
        "figures say little"
    )
    note = skewed if total.max() > _SKEWED * total.sum() else ""
    return tuple(
        _measured(
            RaterAgreement(
                name=name,
                annotators=who,
                value=None,
                interval=None,
                n_units=len(columns),
                note=note if name in ("krippendorff_alpha", "fleiss_kappa", "cohen_kappa") else "",
            ),
            columns,
            formula,
            bootstrap=(confidence_level, resamples, generator),
        )
        for name, who, columns, formula in wanted
    )


def _measured(
    empty: RaterAgreement,
    columns: FloatArray,
    formula: Formula,
    *,
    bootstrap: tuple[float, int, np.random.Generator],
) -> RaterAgreement:
    if not len(columns):
        return replace(empty, note="no unit has two answers")
    value = float(formula(columns.mean(axis=0, keepdims=True))[0])
    if np.isnan(value):
        return replace(empty, note="undefined: all answers are the same category")
    if len(columns) == 1:
        return replace(empty, value=value, note="one unit: no interval")
    level, resamples, generator = bootstrap
    drawn = formula(bootstrap_means(columns, resamples=resamples, rng=generator))
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < (1 - _UNDEFINED) * len(drawn):
        return replace(
            empty,
            value=value,
            note=f"no interval: undefined in {len(drawn) - len(defined)} of {len(drawn)} resamples",
        )
    interval = bootstrap_intervals(
        np.array([value]), defined[:, None], n=len(columns), confidence_level=level
    )[0]
    if interval is None:
        return replace(empty, value=value, note="no interval: every resample gives this value")
    assumed = ("units are a random sample of those of interest",)
    return replace(empty, value=value, interval=replace(interval, assumptions=assumed))


def _pair_columns(counts: FloatArray) -> FloatArray:
    """Per unit: share of agreeing pairs of annotators, and the share of each category."""
    m = counts.sum(axis=1, keepdims=True)
    return np.hstack(
        [(counts * (counts - 1)).sum(axis=1, keepdims=True) / (m * (m - 1)), counts / m]
    )


def _fleiss(means: FloatArray) -> FloatArray:
    return _above(means[:, 0], (means[:, 1:] ** 2).sum(axis=1))


def _gwet(means: FloatArray) -> FloatArray:
    shares = means[:, 1:]
    return _above(means[:, 0], (shares * (1 - shares)).sum(axis=1) / (shares.shape[1] - 1))


def _alpha_columns(counts: FloatArray) -> FloatArray:
    """Per unit: observed disagreement and the count of each category."""
    m = counts.sum(axis=1, keepdims=True)
    return np.hstack([(m**2 - (counts**2).sum(axis=1, keepdims=True)) / (m - 1), counts])


def _alpha(means: FloatArray, *, n_units: int) -> FloatArray:
    """1 − (n − 1) Σ disagreement / (n² − Σ n_c²), n answers in all."""
    sums = means * n_units
    counts = sums[:, 1:]
    n = counts.sum(axis=1)
    chance = n**2 - (counts**2).sum(axis=1)
    result = np.full(len(means), np.nan)
    np.divide((n - 1) * sums[:, 0], chance, out=result, where=chance > _TINY)
    return 1 - result


def _table_columns(codes: IntArray, k: int) -> FloatArray:
    """Per unit both annotators answered: which cell of their contingency table it is."""
    both = codes[(codes >= 0).all(axis=1)]
    return np.asarray(np.eye(k * k)[both[:, 0] * k + both[:, 1]])


def _cohen(means: FloatArray, *, k: int) -> FloatArray:
    tables = means.reshape(-1, k, k)
    return _above(
        np.trace(tables, axis1=1, axis2=2), (tables.sum(axis=2) * tables.sum(axis=1)).sum(axis=1)
    )


def _above(seen: FloatArray, chance: FloatArray) -> FloatArray:
    """(seen − chance) / (1 − chance), NaN where chance explains everything."""
    result = np.full(len(seen), np.nan)
    np.divide(seen - chance, 1 - chance, out=result, where=chance < 1 - _TINY)
    return result


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
        One per question; where units are single texts, one per question and source. Questions
        without a unit that has enough answers have no shares.

    Raises
    ------
    DataError
        If ``min_answers`` is not in 1 … number of annotators.
    """
    most = len(annotations.annotators)
    needed = min(3, most) if min_answers is None else min_answers
    if not 1 <= needed <= most:
        raise DataError(f"min_answers {needed!r} is not in 1 … {most}, the number of annotators")
    groups: dict[str | None, npt.NDArray[np.bool_]] = {
        None: np.ones(len(annotations.units), dtype=np.bool_)
    }
    if all(len(unit.sources) == 1 for unit in annotations.units):
        of = np.array([unit.sources[0] for unit in annotations.units])
        groups = {name: of == name for name in dict.fromkeys(of.tolist())}
    return tuple(
        _majority(table, source, members, needed, confidence_level)
        for table in annotations.tables
        for source, members in groups.items()
    )


def _majority(
    table: AnswerTable,
    source: str | None,
    members: npt.NDArray[np.bool_],
    needed: int,
    level: float,
) -> MajorityTable:
    counts = (table.codes[members, :, None] == np.arange(len(table.categories))).sum(axis=1)
    answers = counts.sum(axis=1)
    enough = answers >= needed
    counts, answers = counts[enough], answers[enough]
    n = len(counts)
    won = 2 * counts > answers[:, None]
    wins, agreed = (x.sum(axis=0).tolist() for x in (won, counts == answers[:, None]))
    return MajorityTable(
        question=table.question,
        source=source,
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
