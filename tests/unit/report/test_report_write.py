from __future__ import annotations

import builtins
import sys

import pytest

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias.io.reports import read_report_json
from rag_sourcebias.report import to_html, to_markdown, write_report
from rag_sourcebias.report import write as module


@pytest.fixture(scope="module")
def report(make):
    return make.report([make.simple(make.cell(), make.cell("NDCG@5"))])


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
    again = read_report_json(paths["json"])
    assert to_markdown(again) == to_markdown(report)


def test_only_the_reports_own_files_are_overwritten(report, tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "report.md").write_text("old", encoding="utf-8")
    write_report(report, tmp_path)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "report.md").read_text(encoding="utf-8") != "old"


def test_an_interrupt_while_rendering_leaves_nothing(report, tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rag_sourcebias.report.html.to_html", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(report, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_leaves_the_old_report(report, tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_report(report, out)
    before = {p.name: p.read_bytes() for p in out.iterdir()}

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_report_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(report, out)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_formats_can_be_chosen(report, tmp_path):
    assert list(write_report(report, tmp_path, formats=["md"])) == ["md"]
    assert [p.name for p in tmp_path.iterdir()] == ["report.md"]
    with pytest.raises(DataError, match=r"unknown report formats \['pdf'\]"):
        write_report(report, tmp_path, formats=["pdf"])


def test_a_file_in_place_of_the_folder(report, tmp_path):
    (tmp_path / "out").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match="is a file; a report needs a folder"):
        write_report(report, tmp_path / "out")


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named_and_nothing_is_written(report, tmp_path, monkeypatch, package):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=rf"{package}; install .*\[report\]"):
        write_report(report, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
