"""Every command that ends in a report: what it computed outlives whatever draws it."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import COMMAND, ENVIRONMENT, inside, write_csv
from paired_texts import paired_dataset
from ranked_pairs import FILES, write_ranked_pairs

import rag_sourcebias
from rag_sourcebias.cli import main
from rag_sourcebias.kinds import read_report
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.report import render

N = 24


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    write_ranked_pairs(root, ["hl" if i % 3 else "lh" for i in range(N)])
    records = [
        {"query_id": f"q{i}", "query": f"what about topic {i}?", "human": f"topic {i} in calm",
         "doc_styles": {"loud": f"wow topic {i}!"}}
        for i in range(N)
    ]  # fmt: skip
    text = "".join(json.dumps(record) + "\n" for record in records)
    (root / "styles.jsonl").write_text(text, encoding="utf-8")
    rows = [
        [f"q{i}", system, "wort " * words, "wort", "no" if i % 4 == 0 else "yes",
         f"{0.9 - 0.02 * words + 0.01 * (i % 7):.3f}"]
        for i in range(2 * N) for system, words in (("a", 3), ("b", 9))
    ]  # fmt: skip
    head = ["question_id", "system", "answer", "reference", "correct", "sim"]
    write_csv(root / "answers.csv", head, rows)
    items = [[i, (i * 7 % 10) / 10, i * 3 % 2 if i < 60 else "", "ab"[i % 2]] for i in range(200)]
    write_csv(root / "items.csv", ["id", "judge", "human", "group"], items)
    write_beir(paired_dataset(n=N), root / "one")
    return root


SOURCE = ("audit", "source", *FILES)
COMMANDS = {
    "audit source": (*SOURCE, "--report"),
    "audit style": (
        *("audit", "style", "styles.jsonl", "--resamples", "100", "--no-text-statistics"),
        *("--no-index", "--report"),
    ),
    "audit answers": (
        *("audit", "answers", "answers.csv", "--judge", "sim", "--resamples", "100"),
        *("--no-text-statistics", "--report"),
    ),
    "check-pairs": ("check-pairs", "one", "--no-sole-corpus", "--report"),
    "explain": ("explain", "one", "--encoder", "none", "--report"),
    "interval": ("interval", "items.csv", "--report"),
}
WAYS = {
    # a broken installation: the drawing itself raises, whatever the picture
    "matplotlib": ("matplotlib.figure", "pictures of the page"),
    "jinja2": ("jinja2", "report.html was not written"),
}


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    shutil.copytree(data, tmp_path / "work")
    return tmp_path / "work"


def without_time(report: Path) -> str:
    data = json.loads(report.read_text(encoding="utf-8"))
    return re.sub(r'"created": "[^"]*"|"created", "[^"]*"', "", json.dumps(data))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_cannot_be_drawn_costs_only_itself(folder: Path, monkeypatch, command: str) -> None:
    args = COMMANDS[command]
    code, shown, _ = inside(*args, "whole", cwd=folder)
    assert code == 0
    parts = [p.parent.relative_to(folder / "whole") for p in (folder / "whole").rglob("*.json")]
    assert len(parts) == (2 if command.endswith("several") else 1)
    for part in parts:
        page = (folder / "whole" / part / "report.html").read_text(encoding="utf-8")
        assert "<svg" in page
        assert 'class="undrawn"' not in page
    for way, (module, words) in WAYS.items():
        if way == "matplotlib" and len(parts) > 1:
            continue  # takes long, and is no other code than of one
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)  # as if it could not be imported
            code, again, told = inside(*args, way, cwd=folder)
        assert code == 0
        assert again == shown
        assert " ".join(told.split()).count(words) == len(parts)
        for part in parts:
            made = folder / way / part
            assert without_time(made / "report.json") == without_time(
                folder / "whole" / part / "report.json"
            )
            read_report(made / "report.json")
            assert (made / "report.md").stat().st_size > 500
            if way == "jinja2":
                assert not (made / "report.html").exists()
                continue
            page = (made / "report.html").read_text(encoding="utf-8")
            assert "<svg" not in page
            assert "This picture could not be drawn (ModuleNotFoundError" in page
            assert page.count('class="undrawn"') > 0


QUICK = ("audit", "source", "one", "--cutoffs", "1", "--no-sole-corpus", "--no-length-matched")


@pytest.mark.parametrize("command", [QUICK, ("start", "one")])
def test_a_report_without_texts_quotes_none(folder: Path, command: tuple[str, ...]) -> None:
    text = next(iter(paired_dataset(n=N).corpus.texts))
    for options, quoted in ((["--texts"], True), (["--no-texts"], False), ([], False)):
        report = "".join(["report", *options])
        code, _, told = inside(*command, "--report", report, *options, cwd=folder)
        assert code == 0, told
        for kind in ("json", "md"):
            shown = (folder / report / f"report.{kind}").read_text()
            assert (text[:20] in shown) == quoted


def test_a_report_on_a_sample_quotes_its_texts(folder: Path) -> None:
    sample = ("audit", "source", "--sample", "--no-sole-corpus", "--no-length-matched")
    for options, quoted in (((), True), (("--no-texts",), False)):
        code, _, told = inside(*sample, "--report", "sample", *options, cwd=folder)
        assert code == 0, told
        cases = json.loads((folder / "sample" / "report.json").read_text())["systems"][0]
        assert all(bool(case["asked"]) == quoted for case in cases["evidence"])
    # drawn anew, a report keeps the texts that it holds
    assert inside(*sample, "--report", "sample", cwd=folder)[0] == 0
    stored = (folder / "sample" / "report.json").read_text()
    assert inside("start", "sample", "--report", "again", cwd=folder)[0] == 0
    assert (folder / "again" / "report.json").read_text() == stored
    assert inside("start", "sample", "--report", "bare", "--no-texts", cwd=folder)[0] == 0
    assert (folder / "bare" / "report.json").read_text() != stored


def test_only_delivery_writes_reports() -> None:
    """What every command ends in is tried above; none may write a report beside it."""
    found = {}
    root = Path(rag_sourcebias.__file__).parent
    files = (*root.rglob("*command.py"), *root.glob("terminal/*.py"), *root.glob("*.py"))
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
        if written := names & {"write_report", "write_figures", "write_pages"}:
            found[file.stem] = written
    assert found == {"console": {"write_figures", "write_pages"}}


def test_a_page_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "out" / "report.html" / "in the way").mkdir(parents=True)
    code, shown, told = inside(*COMMANDS["audit source"], "out", cwd=folder)
    assert code == 0
    assert "NDCG@5" in shown
    assert "report.html was not written" in " ".join(told.split())
    read_report(folder / "out" / "report.json")
    assert (folder / "out" / "report.md").is_file()


def test_a_table_of_pairs_that_cannot_be_written_costs_itself(folder: Path) -> None:
    (folder / "out" / "pairs-rewriter.csv" / "in the way").mkdir(parents=True)
    code, _, told = inside(*COMMANDS["check-pairs"], "out", cwd=folder)
    assert code == 0
    assert "pairs-rewriter.csv cannot be written" in " ".join(told.split())
    assert (folder / "out" / "report.html").is_file()


def test_figures_that_cannot_be_written_leave_the_table(folder: Path) -> None:
    (folder / "out" / "report.json" / "in the way").mkdir(parents=True)
    code, shown, told = inside(*COMMANDS["audit source"], "out", cwd=folder)
    assert code == 2
    assert "NDCG@5" in shown
    assert "report.json cannot be written" in " ".join(told.split())


def test_ctrl_c_while_drawing_says_that_the_figures_are_complete(folder: Path, monkeypatch) -> None:
    def interrupted(_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setitem(render._DRAW, "html", interrupted)
    code, _, told = inside(*COMMANDS["audit source"], "out", cwd=folder)
    assert code == 130
    assert "interrupted: out/report.json is complete; for its pages: rag-sourcebias start" in told
    assert "no further result" not in told
    monkeypatch.undo()
    assert inside("start", "out/report.json", "--report", "out", cwd=folder)[0] == 0
    assert (folder / "out" / "report.html").is_file()


def test_an_output_that_cannot_hold_a_minus_sign_costs_no_result(folder: Path) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    argv, sys.argv = sys.argv, ["rag-sourcebias", *COMMANDS["audit source"], "out"]
    try:
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(output),
            pytest.raises(SystemExit) as ended,
        ):
            main()
    finally:
        sys.argv = argv
    output.flush()
    assert ended.value.code == 0
    assert b"Relative \\u0394" in output.buffer.getvalue()
    assert sorted(p.suffix for p in (folder / "out").iterdir()) == [".html", ".json", ".md"]


def test_a_pipe_that_nobody_reads_costs_no_report(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*COMMAND, *COMMANDS["audit source"], "out"],
        cwd=folder, env=os.environ | ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE,
        check=False,
    )  # fmt: skip
    os.close(writer)
    assert b"Traceback" not in ended.stderr
    assert sorted(p.suffix for p in (folder / "out").iterdir()) == [".html", ".json", ".md"]


def test_a_shown_report_of_somebody_else_drives_no_terminal(folder: Path) -> None:
    assert inside(*COMMANDS["audit source"], "out", cwd=folder)[0] == 0
    file = folder / "out" / "report.json"
    text = file.read_text(encoding="utf-8").replace("demo", "de\\u001b[2J\\u202emo")
    file.write_text(text, encoding="utf-8")
    code, shown, told = inside("start", "out/report.json", "--report", "again", cwd=folder)
    assert code == 0
    assert "de\\u001b[2J\\u202emo" in shown
    assert not re.search("[\x1b\u202e]", shown + told)
    page = (folder / "again" / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x1b\u202e]", page)


def test_the_main_table_is_written_as_the_ending_says(folder: Path) -> None:
    command = COMMANDS["check-pairs"][:-1]
    starts = {"csv": "source,", "md": "| source ", "tex": r"\begin{tabular}"}
    for ending, start in starts.items():
        code, _, told = inside(*command, "--table", f"main.{ending}", cwd=folder)
        assert code == 0
        assert f"table: main.{ending}" in told
        assert (folder / f"main.{ending}").read_text(encoding="utf-8").startswith(start)
    code, shown, told = inside(*command, "--table", "main.xlsx", cwd=folder)
    assert (code, shown) == (2, "")
    assert "main.xlsx: a table is written to a file ending in .csv, .md, .tex" in told
    code, _, told = inside(*command, "--table", "nowhere/main.csv", cwd=folder)
    assert code == 2
    assert "nowhere does not exist" in " ".join(told.split())
