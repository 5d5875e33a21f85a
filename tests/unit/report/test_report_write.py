from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from outputs import to_html, to_markdown
from stored_reports import stored

from rag_sourcebias.core.errors import DataError, MissingExtraError
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report import render as module
from rag_sourcebias.report.render import write_report, write_report_json


@pytest.fixture(scope="module")
def report():
    return stored("judged-mean")


def same(one, other):
    return json.dumps(one.to_dict()) == json.dumps(other.to_dict())


def test_three_files_that_agree_with_the_report(report, tmp_path):
    paths = write_report(report, tmp_path / "deep" / "out")
    assert {k: p.name for k, p in paths.items()} == {
        "json": "report.json",
        "md": "report.md",
        "html": "report.html",
    }
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["out"]
    assert paths["md"].read_text(encoding="utf-8") == to_markdown(report)
    assert paths["html"].read_text(encoding="utf-8") == to_html(report)
    again = read_report(paths["json"])
    assert to_markdown(again) == to_markdown(report)


def test_only_the_reports_own_files_are_overwritten(report, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "report.md").write_text("old", encoding="utf-8")
    write_report(report, tmp_path)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "report.md").read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize("while_", ["jinja2", "matplotlib.figure"])
def test_a_kill_while_drawing_leaves_complete_figures(report, tmp_path, while_):
    source, out = tmp_path / "report.json", tmp_path / "out"
    write_report_json(report, source)
    code = (
        "import os, signal, sys\n"
        "class Dying:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {while_!r}:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "from rag_sourcebias.report.render import write_report\n"
        "from rag_sourcebias.kinds import read_report\n"
        "report = read_report(sys.argv[1])\n"
        "sys.meta_path.insert(0, Dying)\n"
        "write_report(report, sys.argv[2])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, str(source), str(out)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert sorted(p.name for p in out.iterdir()) == ["report.json", "report.md"]
    assert same(read_report(out / "report.json"), read_report(source))


def test_an_interrupt_while_writing_leaves_the_old_report(report, tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_report(report, out)
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_report_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(report, out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_file_in_place_of_the_folder(report, tmp_path):
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="is a file; a report needs a folder"):
        write_report(report, tmp_path / "out")


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_extra_costs_the_page_that_needs_it(
    report, tmp_path, monkeypatch, caplog, package
):
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed
    written = write_report(report, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["report.json", "report.md"]
    assert list(written) == ["json", "md"]
    (message,) = [record.getMessage() for record in caplog.records]
    assert re.search(rf"report\.html was not written \(.*{package}; install .*\[report\]", message)
    assert "rag-sourcebias start" in message
    with pytest.raises(MissingExtraError, match=rf"{package}; install .*\[report\]"):
        write_report(report, tmp_path / "alone", formats=["html"])


def test_figures_that_cannot_be_written_are_an_error_and_leave_the_pages(report, tmp_path):
    write_report(report, tmp_path, formats=["md"])
    (tmp_path / "report.json" / "in the way").mkdir(parents=True)
    with pytest.raises(DataError, match=r"report\.json cannot be written"):
        write_report(report, tmp_path, formats=["json"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.json", "report.md"]
