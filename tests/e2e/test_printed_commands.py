"""Every command that is printed runs where it was printed, and is about the same data."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import inside, read_csv
from outputs import to_markdown
from paired_texts import human_text, rewritten
from small_data import PLACE, N, write_place

import rag_sourcebias as rsb
from rag_sourcebias.report.render import Report

# What is printed.


def printed(text: str) -> Iterator[str]:
    """Yield each command line of a text: it stands last on its line, or in backticks."""
    for line in text.splitlines():
        yield from re.findall(r"`+ ?(rag-sourcebias .+?) ?`+(?!`)", line)
        if "`" in line:
            continue
        told = re.search(r"(.?)\b(rag-sourcebias [a-z].*)", line)
        if told:
            whole = told[2].split("  ")[0]  # what stands beside it in a list is another column
            yield whole.split(")")[0] if told[1] == "(" else whole


def words_of(line: str) -> list[str]:
    return shlex.split(line)[1:]


def of_report(report: Report) -> set[str]:
    """Return what a report prints, the same on its page, in Markdown and stored."""
    step = report.page().first.next
    found = set(printed(to_markdown(report)))
    assert found == ({step.command} - {""} if step is not None else set())
    return found


NOT_RUN = (
    "rag-sourcebias explain --sample",  # a model that has to be there, half a minute
    "rag-sourcebias debias --sample --output parity.json",  # likewise, a minute
)  # and monitor serve, which ends only when it is ended

# One word of a command stands for a model or a place that a test cannot have.
OFFLINE = {"all-MiniLM-L6-v2": "model"}  # the smallest model there is answers in its place


def outcome(line: str, folder: Path) -> str:
    """Run a printed command where it was printed; return why it is wrong, or nothing."""
    if any(re.search(r"[<>…]|^[A-Z]{3,}$", word) for word in words_of(line)):
        return "a placeholder"
    words = [OFFLINE.get(word, word) for word in words_of(line)]
    if line in NOT_RUN or words[:2] == ["monitor", "serve"]:
        words.append("--help")
    code, shown, told = inside(*words, cwd=folder)
    return "" if code == 0 else f"exit code {code}: {told or shown}"


# The data.


@dataclass(frozen=True)
class Row:
    """A command, and what its printed commands have to be.

    Parameters
    ----------
    args : tuple of str
        As typed; ``@`` stands for the place of the data.
    then : tuple of str
        First words of each command that it prints, in any order.
    about : tuple of str
        Words that name the same data in each of them, out of ``args``.
    before : callable
        What a person does with the folder before the printed command is run.
    """

    args: tuple[str, ...]
    then: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    before: Callable[[Path], object] = lambda _: None

    def typed(self, words: Sequence[str]) -> list[str]:
        return [word.replace("@/", f"{PLACE}/") for word in words]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("printed")
    write_place(root)
    return root


def _answer(column: str, *answers: str) -> Callable[[Path], None]:
    """Fill in a column of every sheet that was written, as people would."""

    def fill(folder: Path) -> None:
        for sheet in (folder / "sheet.csv", *sorted((folder / "sheets").glob("*.csv"))):
            if not sheet.is_file():
                continue
            rows = read_csv(sheet)
            for number, row in enumerate(rows):
                for name in row:
                    if name.partition(":")[0] in column.split(",") and not row[name]:
                        row[name] = answers[number % len(answers)]
            with sheet.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)

    return fill


_QUICK = ("--cutoffs", "1", "--no-length-matched", "--no-settings-strip")
_RUNS = ("--qrels", "@/qrels.txt", "--tags", "@/tags.tsv", "--cutoffs", "1")
_FEW = ("--resamples", "100", "--no-text-statistics")
_LABELS = ("--labels", "@/judge.tsv")
_TEXTS = ("--queries", "@/asked.jsonl", "--documents", "@/texts.jsonl")
_ODD = (
    *("--question", "Q no.", "--group", "who", "--answer", "said", "--reference", "right"),
    *("--human", "ok", "--judge", "$im"),
)

ROWS = {
    "source, favoured": Row(
        ("audit", "source", "@/pairs", "--no-sole-corpus", *_QUICK), ("explain",), ("@/pairs",)
    ),
    "source, another split": Row(
        ("audit", "source", "@/pairs", "--split", "dev", "--no-sole-corpus", *_QUICK),
        ("explain",), ("@/pairs", "dev"),
    ),
    "source, control fails": Row(
        ("audit", "source", "@/apart", *_QUICK), ("check-pairs",), ("@/apart",)
    ),
    "source, content": Row(("audit", "source", "@/plain", *_QUICK), ("rewrite",), ("@/plain",)),
    "source, sample": Row(
        ("audit", "source", "--sample", "--no-sole-corpus", *_QUICK), ("explain",), ("--sample",)
    ),
    "source, by name": Row(("audit", "source", "--dataset", "crowdrag25", *_QUICK)),
    "source, run": Row(("audit", "source", "--run", "@/one.run", *_RUNS)),
    "source, several runs": Row(
        ("audit", "source", "--run", "@/one.run", "--run", "@/two.run", *_RUNS)
    ),
    "source, alike": Row(
        ("audit", "source", "--run", "@/even.run", *_RUNS[:-1], "5"), ("monitor",)
    ),
    "style": Row(("audit", "style", "@/styles.jsonl", *_FEW), ("monitor",)),
    "style, sample": Row(("audit", "style", "--sample", *_FEW), ("monitor",)),
    "answers": Row(
        ("audit", "answers", "@/answers.csv", "--judge", "sim", *_FEW),
        ("audit",), ("@/answers.csv", "sim"),
    ),
    "answers, two scores": Row(
        ("audit", "answers", "@/answers.csv", "--judge", "noise", "--judge", "sim", *_FEW),
        ("audit",), ("@/answers.csv", "sim", "noise"),
    ),
    "answers, named columns": Row(
        ("audit", "answers", "@/odd.csv", *_ODD, *_FEW), ("audit",), ("@/odd.csv", *_ODD)
    ),
    "answers, sample": Row(
        ("audit", "answers", "--sample", *_FEW), ("audit",), ("--sample",)
    ),
    "interval": Row(("interval", "./-n.csv"), ("labels",), ("./-n.csv",)),
    "interval, named columns": Row(
        ("interval", "@/named.csv", "--id", "my id", "--human", "ann's mark", "--judge",
         "the judge"),
        ("labels",), ("@/named.csv", "my id", "ann's mark", "the judge"),
    ),
    "interval, groups": Row(
        ("interval", "@/grouped.csv", "--id", "question", "--id", "system", "--group", "system",
         "--cluster", "question"),
        ("labels",), ("@/grouped.csv", "--group", "--cluster"),
    ),
    "interval, sample": Row(("interval", "--sample"), ("labels",), ("--sample",)),
    "interval, two files": Row(
        ("interval", "--human-file", "@/humans.csv", "--judge-file", "@/judged.csv")
    ),
    "interval, ragas": Row(("interval", "--ragas", "@/ragas.csv", "--human", "human")),
    "interval, rankings": Row(
        ("interval", "--run", "@/a.run", "--qrels", "@/graded.txt", *_LABELS, "--no-per-query"),
        ("labels",), ("@/a.run", "@/graded.txt", "@/judge.tsv"),
    ),
    "interval, several runs": Row(
        ("interval", "--run", "@/a.run", "--run", "@/b.run", "--qrels", "@/graded.txt", *_LABELS,
         "--no-per-query", "--measure", "P@5", "--min-grade", "2", "--gain", "linear"),
        ("labels",), ("@/a.run", "--min-grade", "linear"),
    ),
    "labels of items": Row(
        ("labels", "@/named.csv", "--id", "my id", "--human", "ann's mark", "--judge",
         "the judge", "-n", "90", "-o", "sheet.csv"),
        ("interval",), ("@/named.csv", "my id", "the judge"), _answer("label", "1", "0", "1"),
    ),
    "labels of groups": Row(
        ("labels", "@/grouped.csv", "--id", "question", "--id", "system", "--group", "system",
         "--cluster", "question", "-n", "270", "-o", "sheet.csv"),
        ("interval",), ("@/grouped.csv", "--group", "--cluster"), _answer("label", "1", "0", "1"),
    ),
    "labels of the sample": Row(
        ("labels", "--sample", "-n", "400", "-o", "sheet.csv"),
        ("interval",), (), _answer("label", "1", "0", "1"),
    ),
    "labels of documents": Row(
        ("labels", "--run", "@/a.run", *_LABELS, *_TEXTS, "-n", "60", "-o", "sheet.csv"),
        ("interval",), ("@/a.run", "@/judge.tsv"), _answer("label", "0", "1", "2"),
    ),
    "check-pairs": Row(
        ("check-pairs", "@/pairs", "--no-sole-corpus"), ("audit",), ("@/pairs",)
    ),
    "check-pairs, broken": Row(
        ("check-pairs", "@/broken", "--no-sole-corpus", "--threshold", "copied=0.9"),
        ("check-pairs",), ("@/broken", "copied=0.9"),
    ),
    "check-pairs, not judged": Row(("check-pairs", "@/unjudged")),
    "check-pairs, sample": Row(
        ("check-pairs", "--sample", "--no-sole-corpus"), ("audit",), ("--sample",)
    ),
    "annotate": Row(
        ("annotate", "@/pairs", "--annotators", "ann,bob", "-n", "12", "-o", "sheets"),
        ("annotate",), ("sheets",), _answer("relevance,quality", "A", "B", "equal"),
    ),
    "explain": Row(
        ("explain", "@/pairs", "--encoder", "none"), ("explain",), ("@/pairs",)
    ),
    "explain, sample": Row(
        ("explain", "--sample", "--encoder", "none"), ("explain",), ("--sample",)
    ),
    "explain, with a model": Row(
        ("explain", "@/pairs", "--encoder", "model"), ("audit",), ("@/pairs",)
    ),
    "judge audit": Row(("judge", "audit", "./-n.csv")),
    "start": Row(("start",), ()),
    "start, log": Row(("start", "@/log.db"), ("monitor", "monitor"), ("@/log.db",)),
    "start, items": Row(("start", "@/grouped.csv"), ("interval", "labels"), ("@/grouped.csv",)),
    "start, answers": Row(("start", "@/answers.csv"), ("audit",), ("@/answers.csv",)),
    "start, run": Row(("start", "@/one.run")),
    "start, tags": Row(("start", "@/tags.tsv")),
    "start, not judged": Row(("start", "@/unjudged"), ("check-pairs",), ("@/unjudged",)),
    "start, styles": Row(("start", "@/styles.jsonl"), ("audit", "monitor")),
}  # fmt: skip
REPORTING = ("audit", "interval", "check-pairs", "explain")


@pytest.mark.parametrize("name", ROWS)
def test_what_a_command_prints_runs_on_the_same_data(data: Path, tmp_path: Path, name: str) -> None:
    row = ROWS[name]
    for there in data.iterdir():
        (tmp_path / there.name).symlink_to(there)
    for dashed in (data / PLACE).glob("-*"):
        (tmp_path / dashed.name).symlink_to(dashed)
    args = row.typed(row.args)
    if args[0] in REPORTING:
        args += ["--report", "out"]
    code, shown, told = inside(*args, cwd=tmp_path)
    assert code == 0, told
    found = list(dict.fromkeys(printed(f"{shown}\n{told}")))
    reports = [rsb.read_report(path) for path in sorted(tmp_path.glob("out/**/report.json"))]
    assert {command for report in reports for command in of_report(report)} <= {*found}
    if name == "start":
        assert len(found) > 5
    else:
        assert sorted(words_of(line)[0] for line in found) == sorted(row.then), found
    row.before(tmp_path)
    for line in found:
        lacking = {word for word in row.typed(row.about) if word not in words_of(line)}
        assert lacking == set(), line
        assert outcome(line, tmp_path) == "", line


# What Python gets.


def _frames(data: Path) -> dict[str, Callable[[], Report]]:
    import pandas as pd

    place = data / PLACE
    rows = [
        {"query_id": f"q{i}", "query": f"number{i}", "doc_id": f"{source[0]}{i}", "text": text,
         "relevance": 1, "source": source}
        for i in range(N)
        for source, text in (("human", human_text(i)), ("llm:x", rewritten(i)))
    ]  # fmt: skip
    grouped = pd.read_csv(place / "grouped.csv")
    answers = pd.read_csv(place / "answers.csv")
    return {
        "audit": lambda: rsb.audit("bm25", pd.DataFrame(rows), cutoffs=[1]),
        "audit of a folder": lambda: rsb.audit("bm25", place / "apart", cutoffs=[1]),
        "audit of results": lambda: rsb.audit(
            {f"q{i}": [f"h{i}", f"l{i}"] for i in range(N)}, pd.DataFrame(rows), cutoffs=[1]
        ),
        "interval": lambda: rsb.interval(
            grouped, id=["question", "system"], group="system", cluster="question"
        ),
        "interval of a file": lambda: rsb.interval(place / "named.csv", id="my id",
                                                   human="ann's mark", judge="the judge"),
        "answers": lambda: rsb.measure_answer_bias(
            {"sim": answers["sim"].to_numpy()}, rsb.read_answer_texts(place / "answers.csv"),
        ),
        "styles": lambda: rsb.measure_style_bias(
            [], rsb.read_styled_texts(place / "styles.jsonl")
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    "name", ["audit", "audit of a folder", "audit of results", "interval", "interval of a file",
             "answers"]
)  # fmt: skip
def test_what_a_report_made_in_python_prints_runs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    report = _frames(data)[name]()
    for line in of_report(report):
        assert outcome(line, tmp_path) == "", line


# The checker itself.


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("rag-sourcebias check-pairs my-data", "exit code 2"),
        ("rag-sourcebias interval FILE --judge COLUMN", "a placeholder"),
        ("rag-sourcebias annotate <sheets> --key k.json", "a placeholder"),
        (f"rag-sourcebias labels {PLACE[:2]} --half-width 1", "exit code 2"),
        ("rag-sourcebias rewrite . --output paired", "exit code 2"),
        ("rag-sourcebias monitor replay log.db --tag…", "a placeholder"),
    ],
)
def test_a_broken_command_is_seen(tmp_path: Path, line: str, why: str) -> None:
    assert outcome(line, tmp_path).startswith(why)


def test_commands_are_found_where_they_stand() -> None:
    text = (
        "Next: `rag-sourcebias a 'b c'`\n$ rag-sourcebias x 'y'\nsee (rag-sourcebias z --help).\n"
    )
    assert list(printed(text)) == [
        "rag-sourcebias a 'b c'", "rag-sourcebias x 'y'", "rag-sourcebias z --help"
    ]  # fmt: skip
