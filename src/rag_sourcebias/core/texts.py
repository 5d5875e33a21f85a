"""Texts that are compared: answers with references, and versions in several writing styles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Finding

# Answers of several systems as texts, with the references they are compared with.


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerTexts:
    """One row per answer.

    Parameters
    ----------
    question_ids, systems : tuples of str, length n
        No pair occurs twice.
    answers : tuple of str, length n
        May be empty: an abstention, or a failed call.
    references : tuple of tuple of str, length n
        Accepted reference answers of the row's question, at least one.
    correct : float64 array of shape (n,)
        Human verdict: 1 correct, 0 wrong, NaN where nobody judged.
    name, license, attribution : str
    notes : tuple of Finding
        How the cells of a table were read.

    Raises
    ------
    DataError
        If there is no row, an answer occurs twice, columns differ in length, an answer is no
        text, a row has no reference, or a verdict is not 0, 1 or NaN.
    """

    question_ids: tuple[str, ...] = field(repr=False)
    systems: tuple[str, ...] = field(repr=False)
    answers: tuple[str, ...] = field(repr=False)
    references: tuple[tuple[str, ...], ...] = field(repr=False)
    correct: FloatArray = field(repr=False)
    name: str = "answers"
    license: str = ""
    attribution: str = ""
    notes: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.question_ids)
        if not n:
            raise DataError("there is no answer; at least one row is needed")
        for what in ("systems", "answers", "references", "correct"):
            if len(getattr(self, what)) != n:
                raise DataError(f"{len(getattr(self, what))} {what} for {n} question ids")
        correct = np.array(self.correct, dtype=np.float64)
        correct.setflags(write=False)
        object.__setattr__(self, "correct", correct)
        seen: set[tuple[str, str]] = set()
        for i, pair in enumerate(zip(self.question_ids, self.systems, strict=True)):
            where = f"the answer of {pair[1]!r} to question {pair[0]!r}"
            if pair in seen:
                raise DataError(f"{where} occurs twice; keep one row per answer")
            seen.add(pair)
            if not isinstance(self.answers[i], str):
                raise DataError(f"{where} is not text: {self.answers[i]!r:.80}")
            if not any(r.strip() for r in self.references[i]):
                raise DataError(f"{where} has no reference answer to compare it with")
            if not (np.isnan(correct[i]) or correct[i] in (0.0, 1.0)):
                raise DataError(
                    f"human verdict {correct[i]:g} of {where} is not accepted; expected 1 for "
                    "correct, 0 for wrong or NaN for not judged"
                )

    def __len__(self) -> int:
        return len(self.question_ids)


# Queries and documents in several writing styles.


Versions = Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class StyledTexts:
    """n queries, each with one document; both written in several styles.

    Parameters
    ----------
    query_ids : tuple of str, length n
        Unique.
    queries, documents : mapping of style to tuple of (str or None), each of length n
        The text of query i (of its document) in that style, None where there is none. The first
        style of each is the original.
    doc_ids : tuple of str, length n
        Of the documents; queries that share a document share the id. Default: the query ids.
    distractors : tuple of str
        Further documents for an index.
    name, license, attribution : str

    Raises
    ------
    DataError
        If there is no query or style, an id occurs twice, a column has another length, or a text
        is not text.
    """

    query_ids: tuple[str, ...]
    queries: Versions = field(repr=False)
    documents: Versions = field(repr=False)
    doc_ids: tuple[str, ...] = field(default=(), repr=False)
    distractors: tuple[str, ...] = field(default=(), repr=False)
    name: str = "styles"
    license: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        if not self.query_ids:
            raise DataError("there is no query; at least one is needed")
        if twice := [name for name, count in Counter(self.query_ids).items() if count > 1]:
            raise DataError(f"query id {twice[0]!r} occurs twice; each query may come once")
        if not self.doc_ids:
            object.__setattr__(self, "doc_ids", self.query_ids)
        if len(self.doc_ids) != len(self):
            raise DataError(
                f"{len(self.doc_ids)} document ids for {len(self)} queries; need as many"
            )
        for side, versions in (("query", self.queries), ("document", self.documents)):
            if not versions:
                raise DataError(f"there is no {side} style; give the texts of at least one")
            for style, texts in versions.items():
                self._check(f"{side} style {style!r}", texts)

    def _check(self, what: str, texts: tuple[str | None, ...]) -> None:
        if len(texts) != len(self):
            raise DataError(f"{what} has {len(texts)} texts for {len(self)} queries; need as many")
        for query_id, text in zip(self.query_ids, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise DataError(
                    f"{what}, query {query_id!r}: {text!r:.80} is not text; use None for a "
                    "version that does not exist"
                )

    def __len__(self) -> int:
        return len(self.query_ids)

    def take(self, keep: npt.NDArray[np.bool_]) -> StyledTexts:
        """Return the queries asked for, with everything that belongs to them."""
        queries, documents = (
            {style: tuple(compress(texts, keep)) for style, texts in versions.items()}
            for versions in (self.queries, self.documents)
        )
        return replace(
            self,
            query_ids=tuple(compress(self.query_ids, keep)),
            doc_ids=tuple(compress(self.doc_ids, keep)),
            queries=queries,
            documents=documents,
        )
