"""Intervals on what the real ragas returns: results, experiments, metric results, numbers."""

import asyncio
import math
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
pytest.importorskip("ragas")

from hashing_encoder import HashingEncoder
from pydantic import BaseModel
from ragas import Dataset, EvaluationDataset, evaluate, experiment
from ragas.dataset_schema import EvaluationResult
from ragas.metrics import collections
from ragas.metrics._answer_similarity import AnswerSimilarity, SemanticSimilarity
from ragas.metrics.result import MetricResult

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.judged import mean_interval
from rag_sourcebias.intake.judged import read_ragas_result
from rag_sourcebias_integrations.ragas.intervals import EvaluationResultWithIntervals, intervals
from rag_sourcebias_integrations.ragas.metrics import EncoderEmbedding

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("ignore:a?evaluate\\(\\) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed file .*uuid.json:ResourceWarning"),  # of ragas
]

N, LABELED = 60, 20
RNG = np.random.default_rng(3)
EXTRA = RNG.permutation(N) % 7  # words that the response has more than the reference
ROWS = [
    {
        "user_input": f"q{i}",
        "response": " ".join([f"name{i} river", *(f"w{j}" for j in range(EXTRA[i]))]),
        "reference": f"name{i} river",
    }
    for i in range(N)
]
HUMAN = 1 - EXTRA / 10 + RNG.normal(0, 0.05, N)
FIRST = {f"q{i}": float(HUMAN[i]) for i in range(LABELED)}
EMBEDDINGS = EncoderEmbedding(HashingEncoder(512))


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    return evaluate(
        EvaluationDataset.from_list(ROWS),
        metrics=[SemanticSimilarity(embeddings=EMBEDDINGS)],
        show_progress=False,
    )


@pytest.fixture(scope="module")
def scores(result: EvaluationResult) -> Any:
    return np.array(result["semantic_similarity"])


@pytest.fixture(scope="module")
def expected(scores: Any) -> Interval:
    return mean_interval(HUMAN[:LABELED], scores[:LABELED], scores[LABELED:])


def close(found: Interval, expected: Interval) -> bool:
    """Equal but for rounding, where the rows stood in another order or in a file."""
    same = replace(
        found, **{name: getattr(expected, name) for name in ("estimate", "lower", "upper", "notes")}
    )
    return replace(same, correlation=expected.correlation) == expected and [
        found.estimate,
        found.lower,
        found.upper,
        found.correlation,
    ] == pytest.approx([expected.estimate, expected.lower, expected.upper, expected.correlation])


def test_a_result_gets_its_interval_and_stays_as_it_was(
    result: EvaluationResult, scores: Any, expected: Interval
) -> None:
    before = (repr(result), list(result.to_pandas().columns))
    found = intervals(result, human=FIRST)
    assert isinstance(found, EvaluationResultWithIntervals)
    assert isinstance(found, EvaluationResult)
    assert found.intervals["semantic_similarity"] == expected
    assert expected.lower <= HUMAN.mean() <= expected.upper
    assert (repr(result), list(result.to_pandas().columns)) == before
    assert repr(found) == (
        f"{{'semantic_similarity': {scores.mean():.4f} (people: {expected.estimate:.4f} "
        f"[{expected.lower:.4f}, {expected.upper:.4f}])}}"
    )
    assert found["semantic_similarity"] == result["semantic_similarity"]
    assert found.traces == result.traces
    rows = found.to_pandas()
    assert rows["semantic_similarity_human"][:LABELED].tolist() == list(FIRST.values())
    assert rows["semantic_similarity_human"][LABELED:].isna().all()
    (row,) = found.intervals_to_pandas().to_dict("records")
    assert row["lower"] == expected.lower
    assert (row["n_labeled"], row["n_unlabeled"], row["n_nan"]) == (LABELED, N - LABELED, 0)


@pytest.mark.parametrize(
    "human",
    [
        {i: HUMAN[i] for i in range(LABELED)},
        [*HUMAN[:LABELED], *[None] * (N - LABELED)],
        np.r_[HUMAN[:LABELED], np.full(N - LABELED, np.nan)],
        FIRST | {"q40": None},
    ],
    ids=["rows", "list", "array", "ids"],
)
def test_labels_may_come_by_row_or_by_id(result: Any, expected: Interval, human: Any) -> None:
    assert intervals(result, human).intervals["semantic_similarity"] == expected


def test_several_metrics_are_asked_one_by_one(scores: Any) -> None:
    both = evaluate(
        EvaluationDataset.from_list(ROWS),
        metrics=[SemanticSimilarity(), AnswerSimilarity()],
        embeddings=EMBEDDINGS,
        show_progress=False,
    )
    with pytest.raises(DataError, match=r"2 metrics; .*: semantic_similarity, answer_similarity"):
        intervals(both, FIRST)
    with pytest.raises(DataError, match="no metric 'faithfulness'; there is semantic_similarity"):
        intervals(both, FIRST, metric="faithfulness")
    one = intervals(both, FIRST, metric="answer_similarity")
    other = {key: value / 2 for key, value in FIRST.items()}
    two = intervals(one, other, metric="semantic_similarity", method="labels")
    assert set(two.intervals) == {"answer_similarity", "semantic_similarity"}
    assert set(one.intervals) == {"answer_similarity"}
    assert two.intervals["answer_similarity"] == one.intervals["answer_similarity"]
    assert two.intervals["semantic_similarity"].estimate == pytest.approx(
        HUMAN[:LABELED].mean() / 2
    )
    assert repr(two).count("people:") == 2
    assert two.intervals_to_pandas()["metric"].tolist() == list(two.intervals)


class Scored(BaseModel):
    id: int
    score: float
    human: float | None = None


def test_an_experiment_is_joined_by_id_whatever_ends_first(
    scores: Any, expected: Interval, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = Dataset(name="answers", backend="inmemory")
    for i, row in enumerate(ROWS):
        dataset.append({"id": i, "response": row["response"], "reference": row["reference"]})
    metric = collections.SemanticSimilarity(embeddings=EMBEDDINGS)

    @experiment()
    async def run(row: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.002 * (N - row["id"]))
        score = await metric.ascore(reference=row["reference"], response=row["response"])
        label = float(HUMAN[row["id"]]) if row["id"] < LABELED else None
        return {"id": row["id"], "similarity": score.value, "label": label}

    done = asyncio.run(run.arun(dataset, backend="inmemory"))
    order = [row["id"] for row in done]
    assert order != list(range(N))  # they end in another order
    by_id = {i: HUMAN[i] for i in range(LABELED)}
    found = intervals(done, by_id, metric="similarity")
    assert close(found, expected)
    assert close(intervals(done, "label", metric="similarity"), found)
    assert close(intervals(list(done), by_id, metric="similarity", id="id"), found)
    with pytest.raises(DataError, match="in the order in which they were finished"):
        intervals(done, [*HUMAN[:LABELED], *[None] * (N - LABELED)], metric="similarity")
    models = [Scored(id=i, score=scores[i]) for i in reversed(range(N))]
    assert close(intervals(models, by_id, id="id"), expected)
    capsys.readouterr()  # its progress bar


def test_rows_the_judge_failed_on_are_counted_and_said(scores: Any) -> None:
    failed = [math.nan if i in (3, 30, 31) else s for i, s in enumerate(scores)]
    human = {i: HUMAN[i] for i in range(LABELED)}
    mean = intervals(failed, human)
    assert (mean.n_labeled, mean.n_unlabeled) == (LABELED, N - LABELED)
    assert "the judge gave no value for 3 of 60 items, first '3'" in str(mean.notes[-1])
    filled = np.where(np.isnan(failed), np.nanmean(failed), failed)
    assert close(
        mean,
        mean_interval(HUMAN[:LABELED], filled[:LABELED], filled[LABELED:]),
    )
    dropped = intervals(failed, human, on_nan="drop")
    assert (dropped.n_labeled, dropped.n_unlabeled) == (LABELED - 1, N - LABELED - 2)
    assert str(dropped.notes[-1]) == (
        "3 of 60 rows have no score, first '3', 1 of them labelled; they are left out"
    )
    with pytest.raises(DataError, match=r"3 of 60 rows have no score, first '3', 1 of them"):
        intervals(failed, human, on_nan="raise")
    assert intervals(scores, human, on_nan="raise") == intervals(scores, human)
    with pytest.raises(DataError, match="on_nan 'ignore' is not one of mean, drop, raise"):
        intervals(scores, human, on_nan="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("human", "options", "message"),
    [
        ({"q1": 1.0, "absent": 0.5}, {}, "1 human label.s. belong to no row, .*'absent'; .*'q0'"),
        ({0: 1.0, 99: 0.5}, {}, "'99'; rows are known by their number from 0 such as '0'"),
        ([1.0, 2.0], {}, "2 human labels for 60 rows"),
        ("verdict", {}, "no field 'verdict' of human labels; they have user_input"),
        ({"q1": "yes"}, {}, "human label of 'q1' is 'yes'; expected a number"),
        (FIRST, {"id": "persona_name"}, "not every row has 'persona_name'"),
        (FIRST, {"method": "magic"}, "method 'magic' is not one of regression"),
        (FIRST | {"q1": 7.0}, {"bounds": (0, 1)}, "7"),
        ({}, {}, "none of the 60 items has a human label"),
    ],
)
def test_labels_that_do_not_fit_are_refused(
    result: Any, human: Any, options: Any, message: str
) -> None:
    with pytest.raises((DataError, InsufficientDataError), match=message):
        intervals(result, human, **options)


def test_scores_and_ids_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="score 'score' of row 1 is 'pass'; expected a number"):
        intervals([1.0, MetricResult(value="pass")], {0: 1.0})
    with pytest.raises(DataError, match="id 'a' stands in several rows; name a field"):
        intervals([{"id": "a", "s": 1.0}, {"id": "a", "s": 2.0}], {"a": 1.0})
    with pytest.raises(DataError, match=r"the rows have no id; .* out of s, name"):
        intervals([{"s": 1.0, "name": "a"}], {"a": 1.0})
    with pytest.raises(DataError, match=r"2 metrics; .*: s, t"):
        intervals([{"id": 1, "s": 1.0, "t": 2.0, "answer": "x"}], {"1": 1.0})
    with pytest.raises(DataError, match="the result has no rows"):
        intervals([], {})


def test_what_is_saved_is_read_by_the_command_line(
    result: Any, expected: Interval, tmp_path: Any
) -> None:
    path = tmp_path / "result.csv"
    intervals(result, FIRST).to_pandas().to_csv(path)
    items, *_ = read_ragas_result(path, human="semantic_similarity_human")
    again = mean_interval(
        items.human[items.labeled], items.judge[items.labeled], items.judge[~items.labeled]
    )
    assert close(again, expected)
