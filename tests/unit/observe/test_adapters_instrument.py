"""Adapters are found by entry point; what they cannot do, or what is missing, is said."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint

import pytest

from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import instrument
from rag_sourcebias.retrieval.rerank import ADAPTER_GROUP, installed, retriever_factory
from rag_sourcebias_integrations._require import require
from rag_sourcebias_integrations.adapters import FrameworkAdapter


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    def offer(*entries: EntryPoint) -> None:
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: entries)
        installed.cache_clear()

    yield offer
    installed.cache_clear()


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, ADAPTER_GROUP)


def test_nothing_fits() -> None:
    told = r"type collections.Counter cannot be instrumented; expected a function .* LangChain"
    with pytest.raises(DataError, match=told):
        instrument(Counter(), CollectingObserver())
    with pytest.raises(DataError, match=r"^'weaviate' cannot be instrumented; expected a function"):
        instrument("weaviate", CollectingObserver())
    with pytest.raises(DataError, match=r"^'callable' cannot be instrumented"):
        instrument("callable", CollectingObserver())
    with pytest.raises(DataError, match=r"^an object of type int cannot be"):
        instrument(3, CollectingObserver())


def test_a_framework_that_is_missing_is_refused_and_one_too_old_is_named(
    offer, monkeypatch
) -> None:
    module = sys.modules[__name__]
    for name, options in (
        ("MISSING", {"package": "no-such-framework", "extra": "chroma"}),
        ("OLD", {"package": "numpy", "extra": "retrieval", "at_least": "999.0"}),
    ):
        made = FrameworkAdapter(accepts="x", module="chroma.attach", **options)
        monkeypatch.setattr(module, name, made, raising=False)
        offer(entry("builtins", f"{__name__}:{name}"))
        if name == "MISSING":
            with pytest.raises(MissingExtraError, match=r"\[chroma\]"):
                instrument(7, CollectingObserver())
            continue
        with instrument(7, CollectingObserver()) as handle:
            old, gone = handle.coverage.notes
        assert handle.target == 7
        assert "999.0 or newer" in old
        assert "cannot be observed" in gone
        assert handle.dropped.total == 1


@pytest.mark.parametrize("name", ["chroma", "Chroma", " chromadb "])
@pytest.mark.frameworks
def test_a_name_stands_for_everything(name) -> None:
    chromadb = pytest.importorskip("chromadb")
    original = chromadb.Collection.query
    with instrument(name, CollectingObserver()) as handle:
        assert handle.target == name
        assert chromadb.Collection.query is not original
    assert chromadb.Collection.query is original


# Adapters are found by entry point; what is missing is said


def test_the_chroma_factory_is_found_by_its_kind() -> None:
    from rag_sourcebias_integrations.chroma.retriever import chroma_spec

    assert retriever_factory("chroma") is chroma_spec


def test_a_missing_framework_names_package_and_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"Chroma needs chromadb.*\[chroma\]"):
        require("no_such_framework", package="chromadb", extra="chroma", feature="Chroma")


def test_a_framework_that_is_there_but_broken_raises_its_own_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "halfway.py").write_text("import a_module_halfway_needs\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="a_module_halfway_needs") as caught:
        require("halfway", package="halfway", extra="x", feature="y")
    assert not isinstance(caught.value, MissingExtraError)
    sys.modules.pop("halfway", None)
