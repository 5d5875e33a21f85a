"""No acknowledged write is lost while encoders are swapped; a short run of the benchmark."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("chromadb")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "robustness"))

import chromadb
import encoder_swap
from chromadb.errors import NotFoundError

from rag_sourcebias_integrations.chroma.carry import ledger_name
from rag_sourcebias_integrations.chroma.follow import follow_collection

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
    assert figures["raised by handles that follow"] == 0
    assert figures["kills"] >= 1
    assert figures["finished"] >= 1
    assert figures["documents"] > 0
    assert figures["collections left"] == ["shop"]


def test_each_kind_of_loss_is_noticed() -> None:
    held = {"a": ("red", {"n": 1}), "b": ("blue", {}), "c": ("old", {})}
    states = [{"held": held, "gone": ["d"], "tried": ["f"]}]
    found = {
        "ids": ["a", "b", "d", "e", "f"],
        "documents": ["red", "green", "new", "wool", "silk"],
        "metadatas": [{"n": 2}, None, None, None, None],
        "embeddings": encoder_swap.wanted_vectors(64, ["red", "green", "new", "shoe", "silk"]),
    }
    figures = encoder_swap.compared(states, found)
    assert [figures[key] for key in WRONG] == [["c"], ["d"], ["e"], ["a", "b"], ["e"]]


class BetweenLooks:
    """A client of which a collection has lost its name when it is asked for, and then has it."""

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name, self.times = client, name, 0

    def get_collection(self, name: str, **options: Any) -> Any:
        if name != self.name or not self.times:
            return self.client.get_collection(name, **options)
        self.times -= 1
        held = self.client.get_collection(name, embedding_function=None)
        held.modify(name=f"{name}-away")
        try:
            return self.client.get_collection(name, **options)
        finally:
            held.modify(name=name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def test_a_migration_that_is_finished_between_two_requests_costs_no_write() -> None:
    client, name = chromadb.EphemeralClient(), f"shop-{uuid4().hex}"
    function = encoder_swap.function(64)
    client.create_collection(name, embedding_function=function)
    handle = follow_collection(client, name, embedding_function=function)
    client.create_collection(ledger_name(name), embedding_function=None)
    opened, times = client.get_collection, [0]

    def finished_meanwhile(wanted: str, **options: Any) -> Any:
        found = opened(wanted, **options)
        if wanted == ledger_name(name):
            client.delete_collection(wanted)
            times[0] += 1
        return found

    handle._client = SimpleNamespace(get_collection=finished_meanwhile)
    handle.add(ids=["a"], documents=["red"])
    assert times == [1]
    assert opened(name, embedding_function=None).get()["ids"] == ["a"]


def test_an_exchange_that_ends_between_two_looks_costs_no_write() -> None:
    client = BetweenLooks(chromadb.EphemeralClient(), f"shop-{uuid4().hex}")
    function = encoder_swap.function(64)
    client.create_collection(client.name, embedding_function=function)
    handle = follow_collection(client, client.name, embedding_function=function)
    client.times = 1
    handle.add(ids=["a"], documents=["red"])
    assert handle.get()["ids"] == ["a"]
    client.delete_collection(client.name)
    with pytest.raises(NotFoundError):  # nobody has the name, and nothing is on its way
        handle.add(ids=["b"], documents=["blue"])
