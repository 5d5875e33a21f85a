"""Look-ups and checks of report objects."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    run = Run.from_dict({f"q{i}": {d: rng.random() for d in "hlx"} for i in range(30)}, name="r")
    qrels = Qrels.from_dict({f"q{i}": {"h": 1, "l": 1} for i in range(30)})
    tags = TagTable.from_tags(
        [
            ("h", DocTags(source="human", pair_id="p")),
            ("l", DocTags(source="llm:x", pair_id="p")),
            ("x", DocTags(source="human")),
        ]
    )
    return measure_source_bias(run, qrels, tags, config=AuditConfig(resamples=200))


@pytest.mark.parametrize(
    ("look_up", "message"),
    [
        (lambda r: r.system("s"), r"no system 's' \(mixed\); there are \['r'\]"),
        (lambda r: r.system("r", "exact"), r"no system 'r' \(exact\)"),
        (lambda r: r.system("r").cell("NDCG@7", "llm:x"), "no cell for 'NDCG@7'"),
        (lambda r: r.system("r").scores.of("NDCG@7", "human"), "no measure 'NDCG@7' here"),
        (lambda r: r.system("r").scores.of("NDCG@1", "robot"), "no source 'robot' here"),
    ],
)
def test_failed_look_ups_say_what_there_is(report, look_up, message):
    with pytest.raises(DataError, match=message):
        look_up(report)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cutoffs": ()}, "cutoffs"),
        ({"cutoffs": (0, 1)}, "cutoffs"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"resamples": 99}, "at least 100"),
        ({"margin": -1.0}, "margin -1.0 must be a number of at least 0"),
        ({"margin": float("nan")}, "margin nan"),
        ({"primary": "NDCG@7"}, "primary measure 'NDCG@7' is none of those measured"),
    ],
)
def test_configuration_is_checked(changes, message):
    with pytest.raises(DataError, match=message):
        AuditConfig(**changes)
