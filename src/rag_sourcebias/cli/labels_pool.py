"""The judged documents of a run, of which people label a sample."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.intervals import JudgedRanking, RankedLabels
from rag_sourcebias.intervals.documents import LabeledDocuments
from rag_sourcebias.intervals.ranking import GainScale, parse_measure
from rag_sourcebias.io import read_qrels, read_run
from rag_sourcebias.io.label_files import read_label_distributions
from rag_sourcebias.types.arrays import IntArray

__all__ = ["Pilot", "Pool", "read_pool"]


class Pilot(NamedTuple):
    """Documents of the pool that people graded already."""

    rows: IntArray
    grades: IntArray


class Pool(NamedTuple):
    """Ranked label distributions, and the query and document of each row."""

    labels: RankedLabels
    measure: str
    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]

    def pilot(self, qrels: Path | None) -> Pilot | None:
        """Find the documents of the pool that are judged in a qrels file."""
        if qrels is None:
            return None
        judged = read_qrels(qrels)
        grade_of = {
            (judged.query_ids[q], judged.doc_ids[d]): int(grade)
            for q, d, grade in zip(judged.query_codes, judged.doc_codes, judged.grades, strict=True)
        }
        pairs = list(zip(self.query_ids, self.doc_ids, strict=True))
        rows = np.array([i for i, pair in enumerate(pairs) if pair in grade_of], dtype=np.int64)
        if not len(rows):
            raise DataError(
                f"{qrels}: none of its pairs is among the {len(pairs):,} documents of the pool, "
                f"such as query {pairs[0][0]!r}, document {pairs[0][1]!r}"
            )
        grades = np.array([grade_of[pairs[i]] for i in rows], dtype=np.int64)
        if int(grades.max()) >= len(self.labels.gains):
            row = int(rows[np.argmax(grades)])
            raise DataError(
                f"{qrels}: grade {int(grades.max())} of query {pairs[row][0]!r}, document "
                f"{pairs[row][1]!r} is outside the judge's scale 0 … {len(self.labels.gains) - 1}"
            )
        return Pilot(rows, grades)

    def labeled(self, pilot: Pilot | None) -> LabeledDocuments | None:
        """Give the pilot its gains."""
        if pilot is None:
            return None
        return LabeledDocuments(rows=pilot.rows, human_gains=self.labels.gains[pilot.grades])


def read_pool(
    run: Path,
    labels: Path,
    *,
    measure: str,
    gain: GainScale,
    min_grade: int,
    n_grades: int | None = None,
) -> Pool:
    """Join a run with the judge's labels.

    Raises
    ------
    DataError
        If the measure is no weighted sum of gains, or nothing joins.
    """
    ranking = JudgedRanking.join(read_run(run), read_label_distributions(labels, n_grades=n_grades))
    found = ranking.ranked_labels(measure, gain=gain, min_grade=min_grade)
    cutoff = parse_measure(measure)[1]
    # the order in which JudgedRanking.ranked_labels lists them
    rows = np.flatnonzero((ranking.rank > 0) & (ranking.rank <= cutoff))
    rows = rows[np.lexsort((ranking.rank[rows], ranking.labels.query_codes[rows]))]
    if not len(rows):
        raise DataError(
            f"{labels} labels none of the first {cutoff} documents of any query of {run}; judge "
            "them first (rag-sourcebias judge relevance --run …)"
        )
    known = ranking.labels
    return Pool(
        labels=found,
        measure=measure,
        query_ids=tuple(known.query_ids[q] for q in known.query_codes[rows]),
        doc_ids=tuple(known.doc_ids[d] for d in known.doc_codes[rows]),
    )
