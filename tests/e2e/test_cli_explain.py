"""``explain`` as a user runs it: tiny models, real folders, real reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import refused, succeed
from debias_folder import LLM, write_folder, write_model
from tiny_language_models import write_causal, write_masked

from rag_sourcebias.explain.report import ExplainReport
from rag_sourcebias.kinds import read_report

pytestmark = pytest.mark.frameworks
pytest.importorskip("sentence_transformers")

TINY = ("--encoder", "tiny", "--split", "dev", "--cache", "cache")
FULL = ("explain", "data", "--encoder", "tiny", "--split", "train", "--cache", "cache", "--source",
        LLM, "--perplexity", "causal:llama", "--perplexity", "masked:bert", "--limit", "320",
        "--perplexity-pairs", "300", "--normalise", "--report", "report")  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("explain")
    write_folder(root / "data", sources=("rewriter", "other"))
    write_model(root / "tiny")
    write_causal(root / "llama")
    write_masked(root / "bert")
    succeed(*FULL, cwd=root)
    return root


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    for name in ("data", "tiny", "llama", "bert"):
        (tmp_path / name).symlink_to(prepared / name)
    shutil.copytree(prepared / "cache", tmp_path / "cache")
    return tmp_path


def report_of(folder: Path) -> ExplainReport:
    found = read_report(folder / "report.json")
    assert isinstance(found, ExplainReport)
    return found


def test_everything_is_measured_and_written(prepared: Path) -> None:
    report = report_of(prepared / "report")
    assert report.encoder == "tiny"
    (found,) = report.sources
    assert (found.source, found.n_pairs, found.n_available) == (LLM, 320, 440)
    assert found.decomposition is not None
    assert found.decomposition.gap.lower > 0  # which the model likes
    assert found.spectrum is not None
    assert found.spectrum.normalised
    assert [(m.model, m.kind, m.gap.n) for m in found.perplexity] == [
        ("causal:llama", "causal", 300),
        ("masked:bert", "masked", 300),
    ]
    assert found.perplexity[0].bounded is not None
    for name in ("report.html", "report.md"):
        assert "masked:bert" in (prepared / "report" / name).read_text(encoding="utf-8")


def test_what_is_cached_is_not_read_again(folder: Path) -> None:
    before = (folder / "cache" / "perplexities.sqlite").read_bytes()
    again = succeed(*FULL, cwd=folder)
    assert "perplexity under llama" in again
    assert (folder / "cache" / "perplexities.sqlite").read_bytes() == before


def test_all_sources_by_default(folder: Path) -> None:
    text = succeed("explain", "data", *TINY, "--limit", "60", cwd=folder)
    assert "LLM-written (rewriter): 60 of 440 pairs" in text
    assert "LLM-written (other): 60 of 440 pairs" in text


def test_centring_reaches_the_report(folder: Path) -> None:
    succeed("explain", "data", *TINY, "--source", LLM, "--limit", "60", "--centre",
            "--confidence-level", "0.9", "--seed", "3", "--report", "r", cwd=folder)  # fmt: skip
    report = report_of(folder / "r")
    assert (report.config.confidence_level, report.config.seed) == (0.9, 3)
    assert report.sources[0].spectrum.centred
    assert not report.sources[0].spectrum.normalised
    assert "90% interval" in (folder / "r" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("data", "--split", "dev", "--source", "llm:nobody"), "llm:nobody"),
        (("data", "--split", "dev", "--perplexity", "causal:nowhere"), "nowhere"),
        (("data", "--split", "dev", "--encoder", "nowhere"), "nowhere"),
        (("data", "--split", "dev", "--encoder", "tiny,pool=cls"), "no option pool"),
    ],
)
def test_bad_options_are_refused(folder: Path, options: tuple[str, ...], message: str) -> None:
    encoder = () if "--encoder" in options else ("--encoder", "tiny")
    assert message in refused("explain", *options, *encoder, "--cache", "cache", cwd=folder)


def test_one_source_is_refused(folder: Path) -> None:
    shutil.copytree(folder / "data", folder / "alone")
    for name in ("rewriter", "other"):
        (folder / "alone" / "corpus" / f"{name}.jsonl").unlink()
    text = refused("explain", "alone", *TINY, cwd=folder)
    assert "human" in text
    assert "Traceback" not in text


def test_no_pairs_are_refused(folder: Path) -> None:
    shutil.copytree(folder / "data", folder / "apart")
    (folder / "apart" / "corpus" / "other.jsonl").unlink()
    path = folder / "apart" / "corpus" / "rewriter.jsonl"
    path.write_text(path.read_text("utf-8").replace('"_id": "d', '"_id": "e'), encoding="utf-8")
    text = refused("explain", "apart", *TINY, cwd=folder)
    assert "pair" in text
