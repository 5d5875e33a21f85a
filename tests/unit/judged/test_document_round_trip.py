"""Pool -> plan -> sample -> sheet -> grades by an annotator -> interval."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from judged_pools import GAINS, pool

from rag_sourcebias.judged.plan import (
    DocumentSample,
    design_document_sample,
    document_interval,
    plan_labels,
)
from rag_sourcebias.judged.sheets import read_sheet, write_sheet


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
    labels, gains = pool(n_queries=200, n_docs=10)
    grade = np.searchsorted(GAINS, gains)
    plan = plan_labels(labels, half_width=1.0, target="pool")
    sample = design_document_sample(labels, plan.n_labels, seed=7)
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
    assert f"from a pilot of {plan.n_labels:,} labels" in more.text
