"""No acknowledged write is lost while encoders are swapped; a short run of the benchmark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("chromadb")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "robustness"))

import encoder_swap

pytestmark = [pytest.mark.frameworks, pytest.mark.server]

WRONG = (
    "missing",
    "back from deletion",
    "not written by anybody",
    "other content",
    "vector of another text",
)


def test_two_processes_lose_nothing_while_the_swap_is_killed(tmp_path: Path) -> None:
    figures = encoder_swap.measure(80, 1, 3, tmp_path)
    assert {key: figures[key] for key in WRONG} == {key: [] for key in WRONG}
    assert figures["kills"] >= 1
    assert figures["finished"] >= 1
    assert figures["documents"] > 0
    assert figures["collections left"] == ["shop"]


def test_each_kind_of_loss_is_noticed() -> None:
    held = {"a": ("red", {"n": 1}), "b": ("blue", {}), "c": ("old", {})}
    states = [{"held": held, "gone": ["d"]}]
    found = {
        "ids": ["a", "b", "d", "e"],
        "documents": ["red", "green", "new", "wool"],
        "metadatas": [{"n": 2}, None, None, None],
        "embeddings": encoder_swap.wanted_vectors(64, ["red", "green", "new", "shoe"]),
    }
    figures = encoder_swap.compared(states, found)
    assert [figures[key] for key in WRONG] == [["c"], ["d"], ["e"], ["a", "b"], ["e"]]
