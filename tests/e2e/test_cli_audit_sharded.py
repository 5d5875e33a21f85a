"""``audit source`` by every engine: the same report, and errors a user can act on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refused, run, succeed
from static_model import static_model

from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.pairs.writing import write_beir

pytestmark = pytest.mark.frameworks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines")
    sample = load_sample()
    write_beir(sample, path / "beir")
    words = sorted({word for text in sample.corpus.texts for word in text.split()})
    static_model(path / "model", words[:3000])
    return path


def numbers(report: Path) -> dict[str, Any]:
    """Return a report without dates, versions, and the texts of evidence, which shards lack."""
    data = json.loads((report / "report.json").read_text(encoding="utf-8"))
    for case in (case for system in data["systems"] for case in system["evidence"]):
        case.pop("asked", None)
        for side in ("first", "second"):
            case[side] = {k: v for k, v in case[side].items() if k not in ("text", "length")}
    return {
        key: value
        for key, value in data.items()
        if key not in ("created", "document", "environment")
    }


def audit(folder: Path, name: str, *options: str) -> dict[str, Any]:
    succeed(
        *("audit", "source", "beir", "--retriever", "dense:model", "--report", name),
        *("--cache", f"{name}-cache", *options),
        cwd=folder,
    )
    return numbers(folder / name)


@pytest.fixture(scope="module")
def in_memory(folder: Path) -> dict[str, Any]:
    return audit(folder, "memory", "--copies", "no")


def test_one_shard_after_another(folder: Path, in_memory: dict[str, Any]) -> None:
    assert audit(folder, "local", "--engine", "local", "--work-folder", "work") == in_memory
    assert list((folder / "work").rglob("*.npy"))


def test_given_vectors(folder: Path, in_memory: dict[str, Any]) -> None:
    from sentence_transformers import SentenceTransformer

    data = read_beir(folder / "beir")
    model = SentenceTransformer(str(folder / "model"), device="cpu")
    np.save(folder / "d.npy", model.encode(list(data.corpus.texts)))
    np.save(folder / "q.npy", model.encode([query.text for query in data.queries]))
    done = run(
        *("audit", "source", "beir", "--engine", "local", "--work-folder", "given", "--report"),
        *("given-report", "--retriever", "given:mine,documents=d.npy,queries=q.npy"),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    (system,) = numbers(folder / "given-report")["systems"]
    expected = next(s for s in in_memory["systems"] if s["variant"] == "mixed")
    assert [c["relative_delta"] for c in system["cells"]] == [
        c["relative_delta"] for c in expected["cells"]
    ]
    assert system["sole_corpus"] == expected["sole_corpus"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["beir", "--engine", "local", "--retriever", "bm25"], "cannot work shard by shard"),
        (
            ["beir", "--engine", "local", "--retriever", "given:x,documents=d.npy"],
            "names no queries",
        ),
    ],
)
def test_what_is_refused(folder: Path, options: list[str], message: str) -> None:
    assert message in refused("audit", "source", *options, cwd=folder)
