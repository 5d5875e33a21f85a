"""Pages of the documentation: their code runs, their commands parse, their links lead on."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hashing_encoder import HashingEncoder
from typer.testing import CliRunner

import rag_sourcebias as rsb
from rag_sourcebias.cli import app
from rag_sourcebias.core.completions import Completion, LabelScores
from rag_sourcebias.core.data import Qrels
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.monitor import read_events
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.source.shards.work import LocalEngine
from rag_sourcebias.terminal import console

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))}
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n(?:<!--=\w+-->\n)?```\n(.*?)```)?", flags=re.DOTALL)
PRINTED = json.loads((ROOT / "benchmarks" / "results" / "readme.json").read_text(encoding="utf-8"))


class Answering:
    """Says that texts about the sun are for children."""

    name = "said"
    max_concurrency = 2
    fingerprint = "said-1"

    @property
    def settings(self) -> Mapping[str, str]:
        return {"model": self.name}

    def complete(
        self, prompt: str, *, max_tokens: int, temperature: float, seed: int
    ) -> Completion:
        return Completion(text="yes" if "sun" in prompt else "no")

    def label_logprobs(self, prompt: str, labels: Sequence[str]) -> LabelScores:
        raise NotImplementedError


def run_page(page: str, capsys: pytest.CaptureFixture[str], **names: object) -> str:
    """Run the examples one after another, hold their output against the page, and return it."""
    blocks = BLOCK.findall(PAGES[page])
    assert blocks
    printed = []
    for code, shown in blocks:
        exec(compile(code, f"docs/{page}", "exec"), names)
        printed.append(capsys.readouterr().out)
        assert printed[-1] == shown or not shown
    return "".join(printed)


def test_a_service_labels_its_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    blocks = BLOCK.findall(PAGES["in-production.md"])
    for code, _ in blocks:
        exec(compile(code, "docs/in-production.md", "exec"), names)

    @names["app"].get("/ask")
    def ask(q: str) -> list[str]:
        return names["search"](q)

    client = TestClient(names["app"])
    for session in ("s1", "s2"):
        assert client.get("/ask?q=floods", headers={"x-session": session}).json() == ["d1", "d2"]
    names["handle"].close()
    assert names["log"].close()
    found = read_events("retrievals.db")
    assert [found.labels_at(row) for row in range(3)] == [
        {"user": "4711"},
        {"session": "s1", "route": "/ask"},
        {"session": "s2", "route": "/ask"},
    ]


def test_quick_start_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run_page("quick-start.md", capsys)
    assert told.startswith("<SkewReport data: mine favours llm:gpt-4o, centred Δ of NDCG@5 ")
    assert (tmp_path / "report" / "report.json").exists()
    found = CliRunner().invoke(app, ["start", "retrievals.db"])
    assert found.exit_code == 0
    assert re.search(r"\b2\b", found.output)


def test_concepts_and_statistics_run(capsys: pytest.CaptureFixture[str]) -> None:
    for page in ("concepts.md", "statistics.md"):
        stored = [line for block in PRINTED[page]["printed"] for line in block]
        assert run_page(page, capsys).splitlines() == stored


def test_extending_runs(capsys: pytest.CaptureFixture[str]) -> None:
    printed = run_page("extending.md", capsys, completer=Answering()).splitlines()
    assert "2 of 2 items judged by said [1. 0.]" in printed
    assert re.search(r"\['\S+@\S+', '\S+@\S+'\]", "\n".join(printed))


@pytest.mark.frameworks
def test_frameworks_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_sourcebias import neural

    # the page names a model; here hashed words stand in for it, so that nothing is loaded
    monkeypatch.setattr(neural, "SentenceEncoder", lambda name: HashingEncoder())
    assert run_page("frameworks.md", capsys).count("['human', 'llm:gpt-4o']") == 4


def test_styles_and_answers_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = resources.files("rag_sourcebias") / "intake/samples/crowdrag-rewrites/pairs.jsonl.gz"
    Path("styles.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    rows = ["question_id,system,answer,reference,correct"]
    for n in range(60):
        said, verdict = ("a river", "no") if n % 4 == 0 else (f"town {n}", "yes")
        rows += [f"q{n},short,{said},town {n},{verdict}"]
        rows += [f"q{n},long,it is the old town {n},town {n},{'yes' if n % 5 else 'no'}"]
    Path("answers.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    for page in ("styles.md", "answers.md"):
        run_page(page, capsys, encoder=HashingEncoder())
        (tmp_path / "report").rename(tmp_path / page)
        assert (tmp_path / page / "report.html").exists()


def test_large_corpora_run(tmp_path: Path) -> None:
    ((code, _),) = BLOCK.findall(PAGES["scale.md"])
    names: dict[str, Any] = {}
    exec(compile(code, "docs/scale.md", "exec"), names)
    sample, n = load_sample(), 30
    kept = sample.queries[:n]
    small = replace(
        sample,
        corpus=sample.corpus.take(np.arange(2 * n)),  # versions are side by side
        queries=kept,
        qrels=Qrels.from_dict(
            {q.query_id: {f"{q.query_id}@{s}": 1 for s in ("human", "llm:claude")} for q in kept}
        ),
    )
    write_beir(small, tmp_path / "big")
    report = names["audit"](tmp_path / "big", tmp_path / "work", LocalEngine())
    in_memory = rsb.audit("dense:all-MiniLM-L6-v2", small, cache=tmp_path / "cache")
    found, expected = (r.systems[0].cells[0] for r in (report, in_memory))
    assert found.measure == expected.measure
    assert found.mean_other > 0
    assert found.relative_delta == pytest.approx(expected.relative_delta, abs=1e-4)


def test_pages_show_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages are held to results/readme.json elsewhere; that is held to the commands here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console.out, "_width", 1000)  # COLUMNS is read at the first import only
    runner = CliRunner(env={"XDG_CACHE_HOME": str(tmp_path)})
    judged = runner.invoke(app, ["interval", "--sample"])
    assert judged.exit_code == 0
    lines = [
        line
        for line in judged.stdout.splitlines()
        if re.search("[a-z]", line) and "   " not in line
    ]
    assert lines == PRINTED["interval"]["lines"], "run python benchmarks/readme.py"
    options = ["--sample", "--retriever", "bm25", "--report", "report"]
    assert runner.invoke(app, ["audit", "source", *options]).exit_code == 0
    report = json.loads(Path("report/report.json").read_text(encoding="utf-8"))
    for found, stored in zip(
        report["systems"], PRINTED["source"]["report"]["systems"], strict=False
    ):
        for key in ("mean_baseline", "mean_other", "relative_delta"):
            assert [cell[key] for cell in found["cells"]] == pytest.approx(
                [cell[key] for cell in stored["cells"]], rel=1e-4
            ), "run python benchmarks/readme.py"


def anchors(text: str) -> set[str]:
    """Ids that the site gives to headings, as Python-Markdown's toc makes them."""
    body = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ (.+?)\s*$", body, flags=re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        found.add(re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower()))
    return found


def links(text: str) -> list[str]:
    body = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", body)


def prose(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


LINKED = {
    "README.md": (ROOT, README),
    **{f"docs/{name}": (DOCS, text) for name, text in PAGES.items()},
    **{f"docs/notebooks/{path.name}": (path.parent, prose(path)) for path in NOTEBOOKS},
}


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_to_files_and_headings(page: str) -> None:
    folder, text = LINKED[page]
    lost = []
    for link in links(text):
        if re.match(r"[a-z]+:", link) or link.startswith("reference/"):
            continue  # the reference is written when the site is built, and checked there
        if link.startswith("notebooks/"):
            link = link.replace(".md", ".ipynb")  # noqa: PLW2901 - the page is made of it
        path, _, anchor = link.partition("#")
        target = (folder / path).resolve() if path else folder / Path(page).name
        if not target.is_file() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            lost.append(link)
    assert lost == []


def test_images_are_small_and_used() -> None:
    images = sorted((DOCS / "images").iterdir())
    assert {path.name for path in images if path.stat().st_size > 200_000} == set()
    everywhere = README + "".join(PAGES.values())
    assert [path.name for path in images if f"images/{path.name}" not in everywhere] == []
