"""Settings of a debiased training: what is refused, and how they read in a report."""

from __future__ import annotations

import math

import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.neural.training_data import TrainingSettings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"debias_weight": -1.0}, "debias_weight is -1.0; accepted is a finite number at least 0"),
        ({"reduction": "max"}, "reduction 'max' is not one of sum, mean"),
        ({"rank_columns": "llm"}, "rank_columns 'llm' is not one of human, both, all"),
        ({"precision": "int8"}, "precision 'int8' is not one of auto, float32, bf16"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        ({"hard_negatives": -1}, "hard_negatives must be at least 0, got -1"),
        ({"epochs": 2, "max_steps": 10}, "epochs is 2 and max_steps 10; give one of them"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; accepted is a number above 0"),
        ({"learning_rate": math.nan}, "learning_rate is nan"),
        ({"warmup_ratio": 1.0}, r"warmup_ratio is 1.0; accepted is a number in \[0, 1\)"),
        ({"batch_size": 1, "hard_negatives": 0}, "nothing to rank in a batch of 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        TrainingSettings(**given)


def test_settings_as_a_report_states_them() -> None:
    stated = TrainingSettings(debias_weight=0.01, max_steps=150, learning_rate=2e-5).to_dict()
    assert stated["debias_weight"] == "0.01"
    assert stated["scale"] == "20"
    assert stated["learning_rate"] == "2e-05"
    assert stated["max_steps"] == "150"
    assert "epochs" not in stated
    assert "max_length" not in stated
    assert TrainingSettings().to_dict()["epochs"] == "1"
    assert all(isinstance(value, str) for value in stated.values())
