"""Adapters are found by entry point; what is missing is said."""

import sys

import pytest

from rag_sourcebias.core.errors import MissingExtraError
from rag_sourcebias.retrieval.rerank import retriever_factory
from rag_sourcebias_integrations._require import require


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
