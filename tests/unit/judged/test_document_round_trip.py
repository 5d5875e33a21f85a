"""Pool -> plan -> sample -> sheet -> grades by an annotator -> interval."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from rag_sourcebias.judged.crc import RankedLabels, dcg_weights
from rag_sourcebias.judged.plan import (
    DocumentSample,
    design_document_sample,
    document_interval,
    plan_labels,
)
from rag_sourcebias.judged.sheets import read_sheet, write_sheet

GAINS = np.array([0.0, 1.0, 3.0, 7.0])


def judged_pool(n_queries=200, n_docs=10):
    rng = np.random.default_rng(4)
    truth = rng.normal(0.3, 0.8, (n_queries, 1)) + rng.normal(0, 0.9, (n_queries, n_docs))
    grade = np.digitize(truth, [0.0, 1.0, 2.0])
    seen = np.digitize(0.7 * truth + 0.8 + rng.normal(0, 0.6, truth.shape), [0.0, 1.0, 2.0])
    probs = 0.6 * np.eye(4)[seen] + 0.1
    labels = RankedLabels.from_grid(probs, dcg_weights(np.arange(1, n_docs + 1), 10), GAINS)
    return labels, grade.ravel()


def sheet_rows(labels, rows):
    return {
        f"d{row}": {
            "query": f"question {labels.query[row]}?",
            "text": f"-passage, number {row}\nin two lines",
        }
        for row in rows.tolist()
    }


def annotate(path, grade):
    """A person who sees the sheet alone, and knows the documents."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["label"] = str(grade[int(row["text"].split()[2])])
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=";")
        writer.writeheader()
        writer.writerows(rows)


def test_from_a_pool_to_an_interval(tmp_path):
    labels, grade = judged_pool()
    plan = plan_labels(labels, half_width=1.0, target="pool")
    sample = design_document_sample(labels, plan.n_labels, rng=7)
    path = tmp_path / "labels.csv"
    write_sheet(path, sheet_rows(labels, sample.rows), n_grades=4, design=sample.to_dict(), rng=7)
    annotate(path, grade)

    filled = read_sheet(path)
    restored = DocumentSample.from_dict(filled.design)
    np.testing.assert_array_equal(filled.labels, grade[sample.rows])
    interval = document_interval(labels, restored, GAINS[grade[sample.rows]], target="pool")
    truth = labels.total(GAINS[grade]).mean()
    assert interval.lower < truth < interval.upper
    assert interval.half_width == pytest.approx(1.0, rel=0.35)  # foretold without a human label
    judge_alone = labels.utilities().mean()
    assert not interval.lower < judge_alone < interval.upper  # the judge is generous

    # the same labels as a pilot foretell the width of twice as many
    pilot = np.full(len(grade), np.nan)
    pilot[sample.rows] = GAINS[grade[sample.rows]]
    more = plan_labels(labels, n_labels=3 * plan.n_labels, target="pool", pilot=pilot)
    assert more.half_width < interval.half_width
    assert more.n_pilot == plan.n_labels
