"""What was probably meant, and how a missing package is installed, from both sides."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import refused

import rag_sourcebias as rsb
from rag_sourcebias.core import errors
from rag_sourcebias.core.errors import MissingExtraError, SourceBiasError


def audit(*args: object, **settings: object) -> Callable[[], object]:
    return lambda: rsb.audit(*(args or ("bm25", "sample")), **settings)


def interval(**settings: object) -> Callable[[], object]:
    many = np.arange(30.0)
    return lambda: rsb.interval(y=many, yhat=many + 1, yhat_unlabeled=many, **settings)


AUDIT, INTERVAL = ("audit", "source", "--sample"), ("interval", "--sample")
# What is typed, what Python is given, the word that was meant, and what each side calls it.
TYPOS = {
    "retriever": ((*AUDIT, "--retriever", "bn25"), audit("bn25", "sample"), "bm25", None),
    "option of a retriever": (
        (*AUDIT, "--retriever", "bm25:k=1"), audit("bm25:k=1", "sample"), "k1", None,
    ),
    "measure": (
        ("labels", "--run", "r.run", "--labels", "l.csv", "-n", "1", "--measure", "DGC@5"),
        audit(measures="NDGC"), "DCG", None,
    ),
    "data set": (
        ("audit", "source", "--dataset", "crowdrag-rewrite"),
        lambda: rsb.load_sample("crowdrag-rewrite"), "crowdrag-rewrites", None,
    ),
    "option": ((*AUDIT, "--cuttoffs", "1"), audit(cuttoffs=1), "cutoffs", None),
    "method": (
        (*INTERVAL, "--method", "regresion"), interval(method="regresion"), "regression", "method",
    ),
    "target": ((*INTERVAL, "--target", "pol"), interval(target="pol"), "pool", "target"),
    "correction": ((*AUDIT, "--correction", "hol"), audit(correction="hol"), "holm", "correction"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.run").write_text("q1 Q0 d1 1 1.0 r\n")
    (tmp_path / "l.csv").write_text("query_id,doc_id,p0,p1\nq1,d1,.5,.5\n")
    return tmp_path


@pytest.mark.parametrize("name", TYPOS)
def test_what_was_meant_is_asked_from_both_sides(folder: Path, name: str) -> None:
    typed, call, meant, setting = TYPOS[name]
    told = refused(*typed, cwd=folder).lower()
    assert f"did you mean {meant.lower()}?" in told.replace("--", "").replace(" or measure", "")
    with pytest.raises(SourceBiasError) as caught:
        call()
    said = str(caught.value)
    assert "did you mean" in said
    assert meant in said.partition("did you mean")[2]
    if setting is not None:  # each side calls it what is written there
        assert f"--{setting} " in told
        assert said.startswith(setting)
        assert "--" not in said


# Where the package came from, and what installs an extra of it from there.
ORIGINS = {
    "index": (None, "pip install 'rag-sourcebias[text]'"),
    "wheel": (
        "file:///my%20wheels/rag_sourcebias-0.1-py3-none-any.whl",
        "pip install 'rag-sourcebias[text] @ file:///my%20wheels/rag_sourcebias-0.1-py3-none-any.whl'",
    ),
    "folder": ("file:///checkout", "pip install 'rag-sourcebias[text] @ file:///checkout'"),
}


def installed(folder: Path, url: str | None) -> importlib.metadata.Distribution:
    info = folder / "rag_sourcebias-0.1.dist-info"
    info.mkdir(parents=True)
    if url is not None:
        (info / "direct_url.json").write_text(json.dumps({"url": url}))
    return importlib.metadata.PathDistribution(info)


@pytest.mark.parametrize("name", ORIGINS)
def test_an_extra_comes_from_where_this_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    url, command = ORIGINS[name]
    found = installed(tmp_path, url)
    monkeypatch.setattr(
        errors, "__file__", str(tmp_path / "site-packages/rag_sourcebias/core/e.py")
    )
    monkeypatch.setattr(errors, "distribution", lambda _: found)
    error = MissingExtraError(package="sacrebleu", extra="text", feature="BLEU")
    assert str(error) == f"BLEU needs sacrebleu; install it with: {command}"


def test_an_extra_of_a_checkout_comes_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "my checkout"
    (checkout / "src" / "rag_sourcebias" / "core").mkdir(parents=True)
    (checkout / "pyproject.toml").touch()
    monkeypatch.setattr(errors, "__file__", str(checkout / "src/rag_sourcebias/core/errors.py"))
    assert errors.installing("text") == f"pip install -e '{checkout}[text]'"
