"""Out of Style: what asking in another style costs Contriever, from its shipped rankings.

Four settings of 1,000 queries each, asked as they were and rewritten (informal, or hard to read),
with the five passages found for either. Recall@5 of the two forms, and the paired change with its
interval: PopQA .604 → .524 (−.080 [−.105, −.055]) and .616 → .479 (−.137 [−.167, −.107]), entity
questions .629 → .568 (−.061 [−.082, −.040]) and .640 → .563 (−.077 [−.098, −.056]).
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Query, Run
from rag_sourcebias.style.audit import style_quality
from rag_sourcebias.style.data import StyleConfig
from support.real_data import data_folder

pytestmark = pytest.mark.data

SETTINGS = {
    "popqa__formality": (0.604, 0.524),
    "popqa__readability": (0.616, 0.479),
    "entity__formality": (0.629, 0.568),
    "entity__readability": (0.640, 0.563),
}
FORMS = ("original", "modified")


@dataclass
class Replay:
    """A retriever that returns the rankings of a file."""

    rankings: dict[str, dict[str, float]] = field(default_factory=dict)

    def retrieve(self, queries, depth):
        assert depth >= 5
        return Run.from_dict({q.query_id: self.rankings[q.text] for q in queries})


def ranking(row):
    """Scores of the passages; the first that holds an answer is called after the query.

    Recall is 1 where any passage holds an answer, so an answer counts as one relevant document.
    """
    found = [passage["hasanswer"] for passage in row["ctxs"]]
    names = [passage["id"] for passage in row["ctxs"]]
    if True in found:
        names[found.index(True)] = f"answer to {row['id']}"
    scores = [float(passage["score"]) for passage in row["ctxs"]]
    assert scores == sorted(scores, reverse=True)
    return dict(zip(names, scores, strict=True))


def quality(root: Path, setting: str):
    """What the index section of an audit says about the two forms of the queries."""
    replay, queries = Replay(), {}
    for form in FORMS:
        (path,) = (root / "out_of_style").glob(f"retrieval_outputs__{setting}__{form}_*")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = sorted(map(json.loads, lines), key=lambda row: str(row["id"]))  # other orders
        queries[form] = [
            Query(query_id=str(row["id"]), text=f"{form}: {row['question']} ({row['id']})")
            for row in rows
        ]
        replay.rankings |= {
            q.text: ranking(row) for q, row in zip(queries[form], rows, strict=True)
        }
    ids = [q.query_id for q in queries["original"]]
    assert ids == [q.query_id for q in queries["modified"]]
    assert len(set(ids)) == 1000
    judged = Qrels.from_dict({q: {f"answer to {q}": 1} for q in ids})
    data = SimpleNamespace(
        queries=queries, original="human", qrels=lambda styles: judged, clusters=None
    )
    rows = style_quality(replay, data, StyleConfig(cutoffs=(5,), resamples=2000))
    return {(row.query_style, row.measure): row for row in rows}


@pytest.fixture(scope="module")
def found():
    return {setting: quality(data_folder(), setting) for setting in SETTINGS}


@pytest.mark.parametrize("setting", SETTINGS)
def test_published_recalls_come_out(found, setting):
    rows = [found[setting][form, "Recall@5"] for form in FORMS]
    assert [round(row.mean, 3) for row in rows] == list(SETTINGS[setting])
    assert all(row.score.lower < row.mean < row.score.upper for row in rows)


@pytest.mark.parametrize("measure", ["Recall@5", "NDCG@5"])
def test_every_rewriting_costs_quality(found, measure):
    for rows in found.values():
        original, modified = (rows[form, measure] for form in FORMS)
        assert original.change is None
        change = modified.change
        assert change.estimate == pytest.approx(modified.mean - original.mean)
        assert change.upper < 0
        assert modified.p_adjusted < 0.002
        # paired by query: narrower than the intervals of two independent samples
        apart = np.hypot(
            original.score.upper - original.score.lower, modified.score.upper - modified.score.lower
        )
        assert 0.4 * apart < change.upper - change.lower < 0.8 * apart
