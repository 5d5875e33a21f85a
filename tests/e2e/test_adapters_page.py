"""What docs/adapters.md shows works: the function, the adapter, its contract test."""

from __future__ import annotations

import re
import sys
import tomllib
import types
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.retrieval.rerank import ADAPTER_GROUP, installed

PAGE = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
FUNCTION, ADAPTER, CONTRACT = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
(TOML,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)

LODESTAR = """
class Hit:
    def __init__(self, key, score, fields):
        self.key, self.score, self.fields = key, score, fields

class Engine:
    index = "main"

    def __init__(self, hits=(), error=None):
        self.hits, self.error = list(hits), error

    def find(self, query, k=10):
        if self.error is not None:
            raise self.error
        return self.hits[:k]
"""


def module(name: str, code: str) -> types.ModuleType:
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(code, name, "exec"), made.__dict__)
    return made


@pytest.fixture
def lodestar(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    monkeypatch.setitem(sys.modules, "lodestar", types.ModuleType("lodestar"))
    monkeypatch.setitem(sys.modules, "lodestar_sourcebias", types.ModuleType("x"))
    made = module("lodestar", LODESTAR)
    module("lodestar_sourcebias", ADAPTER)
    ((name, value),) = tomllib.loads(TOML)["project"]["entry-points"][ADAPTER_GROUP].items()
    entries = (EntryPoint(name, value, ADAPTER_GROUP),)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
    installed.cache_clear()
    yield made
    installed.cache_clear()


def test_the_function_is_observed(capsys: pytest.CaptureFixture[str]) -> None:
    module("page_function", FUNCTION)
    assert capsys.readouterr().out.startswith("{'human': 0.61")


def test_the_adapter_is_found_and_closes_in_any_order(lodestar: types.ModuleType) -> None:
    engine = lodestar.Engine([lodestar.Hit("a", 1.0, {}), lodestar.Hit("b", 0.5, {})])
    observer = CollectingObserver()
    with instrument(engine, observer) as handle:
        assert handle.target is engine
        assert [hit.key for hit in engine.find("q", k=1)] == ["a"]
    assert "find" not in vars(engine)
    (event,) = observer.events
    assert (event.ranked.doc_ids, dict(event.labels)) == (("a",), {"index": "main"})


def test_the_contract_holds(lodestar: types.ModuleType, tmp_path: Path) -> None:
    test = module("page_contract", CONTRACT).TestLodestar
    names = [name for name in dir(test) if name.startswith("test_")]
    assert len(names) > 15
    for name in names:
        function = getattr(test(), name)
        wanted = function.__code__.co_varnames[1 : function.__code__.co_argcount]
        if wanted:
            continue  # needs a fixture of pytest
        try:
            function()
        except pytest.skip.Exception:
            assert name.startswith(("test_async", "test_a_batch", "test_a_nested"))
