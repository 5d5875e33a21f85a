"""What a first screen says of judgments with holes, against the numbers behind it."""

import numpy as np
import pytest

from rag_sourcebias.core.data import Qrels, Run
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import (
    AuditConfig,
    SourceCode,
    comparisons,
    next_step,
    verdict_sentences,
)
from rag_sourcebias.source.page import SkewReport

CUTOFF, DOCUMENTS = 10, 60


def audited(*, bias: float, lean: float = 0.0, pool: int = DOCUMENTS, n: int = 100) -> SkewReport:
    """A ranker that prefers human text by ``bias``, judged from first ranks of one that leans."""
    rng = np.random.default_rng(0)
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    human = np.arange(DOCUMENTS) % 2 == 0
    relevant = np.arange(DOCUMENTS) < 12
    for q in range(n):
        easy = 1.5 * relevant + rng.normal(size=DOCUMENTS)
        pooled = np.argsort(-(easy + lean * human + rng.normal(size=DOCUMENTS)))[:pool]
        scores = easy + bias * human + rng.normal(size=DOCUMENTS)
        run[f"q{q}"] = {f"q{q}-{i}": float(score) for i, score in enumerate(scores)}
        qrels[f"q{q}"] = {f"q{q}-{i}": int(relevant[i]) for i in pooled}
    tags = {doc: ("human", "llm:x")[i % 2] for row in run.values() for i, doc in enumerate(row)}
    config = AuditConfig(measures=("NDCG",), cutoffs=(CUTOFF,), resamples=100)
    return measure_source_bias(
        Run.from_dict(run), Qrels.from_dict(qrels), read_tags(tags), config=config
    )


def said(report: SkewReport) -> dict[SourceCode, dict[str, object]]:
    (comparison,) = comparisons(report)
    return {f.code: dict(f.numbers) for f in verdict_sentences(report, comparison)}


def test_shares_judged_are_those_of_their_source() -> None:
    report = audited(bias=0.0, lean=1.0, pool=10)
    (holes,) = report.systems[0].holes
    found = said(report)[SourceCode.HOLES]
    shares = (found["judged_baseline"], found["judged_other"])
    assert shares == (holes.judged_baseline, holes.judged_other)
    assert shares[0] > shares[1]  # type: ignore[operator]
    assert (found["cutoff"], found["baseline"]) == (CUTOFF, "human")


def test_a_verdict_of_leaning_pools_is_open() -> None:
    report = audited(bias=0.0, lean=1.0, pool=10)
    (comparison,) = comparisons(report)
    assert comparison.verdict.holes
    found = said(report)
    assert SourceCode.HOLES_OPEN in found
    assert SourceCode.HOLES_TURN not in found


def test_a_verdict_that_stands_names_where_it_turns() -> None:
    report = audited(bias=1.0, pool=30)
    (comparison,) = comparisons(report)
    assert comparison.verdict.favoured == "human"
    found = said(report)
    assert SourceCode.HOLES_OPEN not in found
    turns = report.systems[0].holes[0].turns_at
    assert (SourceCode.HOLES_TURN in found) == (turns is not None)


@pytest.mark.parametrize(
    ("world", "step"),
    [
        ({"bias": 0.0, "n": 30}, SourceCode.NEXT_MORE),
        ({"bias": 2.0}, SourceCode.NEXT_READ),
        ({"bias": 0.0, "lean": 1.0, "pool": 10}, SourceCode.NEXT_JUDGE),
    ],
    ids=["cannot tell", "favours", "holes"],
)
def test_the_next_step_follows_from_the_verdict(world: dict[str, float], step: SourceCode) -> None:
    report = audited(**world)  # type: ignore[arg-type]
    assert next_step(report, comparisons(report)).code is step
