"""Every command line that is printed anywhere is one that today's application takes."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import typer
from command_line import inside
from outputs import document_of, to_markdown
from typer.core import TyperOption

from rag_sourcebias.cli import _Root, app
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import Report
from rag_sourcebias.terminal.options import leaves

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SOURCES = [
    file
    for folder in ("src", "integrations")
    for file in sorted((ROOT / folder).rglob("*"))
    if file.suffix in (".py", ".js", ".html", ".yml")
]


REPORTS = sorted((ROOT / "tests" / "golden" / "reports").glob("*.json.gz"))


def lines(text: str) -> Iterator[str]:
    """Yield what stands in blocks and in code of a sentence, continued lines joined."""
    whole = re.sub(r" *\\\n\s*", " ", text)
    for block in re.findall(r"```\w*\n(.*?)```", whole, flags=re.DOTALL):
        yield from re.findall(r"^\$? ?(?:uvx .*?)?(rag-sourcebias .+)$", block, re.MULTILINE)
    outside = re.sub(r"```.*?```", "", whole, flags=re.DOTALL)
    yield from re.findall(r"`(rag-sourcebias [^`]+)`", " ".join(outside.split("\n")))


def taken(line: str) -> str:
    """Return why a line is not taken, empty where it is; nothing is run."""
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "…"]
    command = typer.main.get_command(app)
    for leaf in leaves(command).values():
        leaf.callback = lambda **_: None
    try:
        command.main(words, "rag-sourcebias", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - whatever the parser raises
        return str(getattr(error, "message", error))
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_lines_of_a_page(page: Path) -> None:
    wrong = {line: why for line in lines(page.read_text("utf-8")) if (why := taken(line))}
    assert wrong == {}


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.name)
def test_the_command_lines_of_a_notebook(page: Path) -> None:
    cells = json.loads(page.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    assert {line: why for line in lines(text) if (why := taken(line))} == {}


def test_the_examples_of_help() -> None:
    found = {
        line.strip(): taken(line)
        for leaf in leaves(typer.main.get_command(app)).values()
        for line in re.findall(r"^ {4,}(rag-sourcebias .+)$", _joined(leaf.help), re.MULTILINE)
    }
    assert len(found) > 40
    assert {line: why for line, why in found.items() if why} == {}


def _joined(text: str) -> str:
    return re.sub(r" *\\\n\s*", " ", text)


def test_the_commands_that_messages_name() -> None:
    known = {*leaves(typer.main.get_command(app)), "audit", "judge", "monitor", "tag", "--help"}
    wrong = []
    for file in SOURCES:
        text = re.sub(r"\"\s*\n\s*f?\"", "", file.read_text("utf-8"))
        for told in re.findall(r"rag-sourcebias ([a-z-]+(?: [a-z]+)?)", text):
            if not {told, told.split()[0]} & known:
                wrong.append((file.name, told))
    assert [entry for entry in wrong if entry[1].split()[0] not in PROSE] == []


def next_commands(file: Path) -> set[str]:
    """Return the command of a report's first screen, and those that its text names."""
    report = read_report(file)
    if isinstance(report, Report):
        step = report.page().first.next
        first = "" if step is None else step.command
    else:
        first = document_of(report).first.command
    return {*lines(to_markdown(report)), *([first] if first.startswith("rag-sourcebias") else [])}


# Before and after is the end; a few queries, or pairs nobody judged, lead to nothing that runs.
NONE_FOLLOWS = ("debias", "style-few", "pairs-clean", "pairs-full")


@pytest.mark.parametrize("file", REPORTS, ids=lambda file: file.name.removesuffix(".json.gz"))
def test_the_commands_of_every_kind_of_report(file: Path) -> None:
    found = next_commands(file)
    assert found or file.name.startswith(NONE_FOLLOWS), file
    assert {line: why for line in found if (why := taken(line))} == {}


def written(source: str) -> Iterator[str]:
    """Yield the command lines that code puts together, a number in place of each value."""
    nodes = list(ast.walk(ast.parse(source)))
    inner = {one for node in nodes if isinstance(node, ast.JoinedStr) for one in node.values}
    for node in nodes:
        if node in inner:
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        text = "".join(
            (one.value if isinstance(one.value, str) else "")
            if isinstance(one, ast.Constant)
            else "9"
            for one in parts
            if isinstance(one, ast.Constant | ast.FormattedValue)
        )
        if text.startswith("rag-sourcebias ") and len(text.split()) > 1:
            yield text
        for command in re.findall(r"`(rag-sourcebias [a-z][^`]+)`", text):  # of a template
            yield re.sub(r"\{\w+\}", "9", command)


WORDINGS = [
    file for file in SOURCES if file.name in ("words.py", "report.py", "findings.py", "page.py")
]


def test_the_commands_that_no_stored_report_has() -> None:
    found = {line: taken(line) for file in WORDINGS for line in written(file.read_text("utf-8"))}
    assert len(found) > 11
    assert {line: why for line, why in found.items() if why} == {}


@pytest.mark.parametrize(
    "code",
    [
        "command = f'rag-sourcebias explain {data} --retriever bm25'",
        "NEXT = 'What differs? `rag-sourcebias explain {data} --retriever bm25`'",
    ],
)
def test_a_wrong_command_of_a_report_is_seen(code: str) -> None:
    (line,) = written(code)
    assert "No such option" in taken(line)


# the name of the package before an ordinary word
PROSE = {
    *(
        "is",
        "was",
        "and",
        "measures",
        "has",
        "to",
        "cannot",
        "wrote",
        "writes",
        "needs",
        "reads",
        "in",
    ),
    *("that", "labelling", "dashboard", "or", "before", "answers", "detector", "works"),
}


def test_a_wrong_line_is_seen() -> None:
    assert "No such option" in taken("rag-sourcebias interval --sample --humn x")
    assert "No such command" in taken("rag-sourcebias intervall --sample")
    assert list(lines("a\n```console\n$ rag-sourcebias x \\\n  --y\n```")) == [
        "rag-sourcebias x --y"
    ]


# The surface.


def test_there_are_at_most_twenty_commands_each_under_a_question() -> None:
    found = leaves(typer.main.get_command(app))
    assert len(found) <= 20
    asked = [name for names in _Root.questions.values() for name in names]
    assert sorted(asked) == sorted(found)


@pytest.mark.parametrize("name", ["", *leaves(typer.main.get_command(app))])
def test_help_is_whole_at_eighty_columns(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, shown, _ = inside(*name.split(), "--help", cwd=tmp_path)
    assert code == 0
    assert max(map(len, shown.splitlines())) <= 80
    assert "[bold]" not in shown
    options = {
        w for o in leaves(typer.main.get_command(app)).get(name, app_root()).params for w in o.opts
    }
    assert [option for option in options if option.startswith("--") and option not in shown] == []


def app_root() -> typer.core.TyperGroup:
    return typer.main.get_command(app)


def of_two_kinds(commands: Mapping[str, typer.core.TyperCommand]) -> set[str]:
    """Return options that take a value in one command and none in another."""
    options = [p for c in commands.values() for p in c.params if isinstance(p, TyperOption)]
    flags = [
        {name for p in options if p.is_flag is kind for name in p.opts} for kind in (True, False)
    ]
    return flags[0] & flags[1]


def test_an_option_takes_a_value_everywhere_or_nowhere() -> None:
    found = leaves(typer.main.get_command(app))
    assert of_two_kinds(found) == set()
    assert [n for n, c in found.items() if any("--baseline" in p.opts for p in c.params)] == [
        "monitor serve", "monitor replay",
    ]  # fmt: skip
    other = typer.Typer()
    for name, default in (("a", ""), ("b", False)):
        option = typer.Option(default, "--json")
        other.command(name)(lambda json=option: json)
    assert of_two_kinds(leaves(typer.main.get_command(other))) == {"--json"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("aduit",), "Did you mean 'audit'?"),
        (("source",), "Did you mean 'audit source'?"),
        (("data",), "Did you mean 'start data'?"),
        (("interval", "--humn", "x"), "Did you mean --human"),
        (("monitor", "srve"), "Did you mean 'serve'?"),
    ],
)
def test_typos_are_guessed(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    code, _, told = inside(*args, cwd=tmp_path)
    assert code == 2
    assert words in told
