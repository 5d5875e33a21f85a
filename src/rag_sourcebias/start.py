"""``start``: look at what somebody has, say what it is, and run the command that goes with it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_sourcebias.answers.files import find_answer_columns
from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.beir import corpus_files, read_corpus, splits_of
from rag_sourcebias.intake.document_stores import summarise
from rag_sourcebias.intake.files import read_json, read_lines
from rag_sourcebias.intake.samples import list_datasets
from rag_sourcebias.intake.tables import find_column, find_ids, read_table, score_columns
from rag_sourcebias.judged.files import read_judged_items
from rag_sourcebias.kinds import read_report
from rag_sourcebias.monitor.command import log_figures, log_lines
from rag_sourcebias.monitor.follow import parquet_events
from rag_sourcebias.monitor.log.reading import log_summary
from rag_sourcebias.report.render import print_report
from rag_sourcebias.tagging.command import open_store
from rag_sourcebias.tagging.documents import SidecarStore
from rag_sourcebias.tagging.tables import summary_parts
from rag_sourcebias.terminal.console import deliver, out, say, show, stages, tell, write_json
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable_file, rows

_SAMPLES = (
    ("audit source --sample", "a retriever's favourites"),
    ("audit style --sample", "by writing style"),
    ("audit answers --sample", "a score that rewards style"),
    ("explain --sample", "how LLM texts differ"),
    ("interval --sample", "a judged score, ± what"),
    ("labels --sample --half-width 0.03", "how many labels for ±0.03"),
    ("judge audit --sample", "a judge against people"),
    ("check-pairs --sample", "what rewrites changed"),
    ("annotate --sample --output sheets", "blind sheets for people"),
    ("debias --sample --output parity.json", "scores without skew"),
)
_WIDTH = 80


@dataclass(frozen=True, slots=True)
class Guess:
    """What something is, and the command for it.

    Parameters
    ----------
    what : str
    command : tuple of str
        Without the program's name; empty where a part of it is not known.
    lacks : str
        Why the command cannot be run as it stands; empty where it can.
    """

    what: str
    command: tuple[str, ...]
    lacks: str = ""

    @property
    def line(self) -> str:
        """The command as it is typed."""
        return f"rag-sourcebias {shlex.join(self.command)}"


def start(
    context: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(
            help="A BEIR folder; a table of answers, judge values or styled texts; a report.json; "
            "the log of an application; a store, such as chroma:FOLDER, chroma:http://host:8000 or "
            "corpus:FOLDER; a run.",
        ),
    ] = None,
    *,
    report: Annotated[
        Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
    ] = None,
    texts: Texts = True,
    table: TableFile = None,
    json: Annotated[
        str | None,
        typer.Option("--json", help="Of a store or log: write its figures; - prints them."),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Of a store that holds several.")] = None,
    sidecar: Annotated[
        Path | None, typer.Option(help="Of a store: read the tags from this file.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and run nothing.")
    ] = False,
) -> None:
    """Look at a file, folder, store or log, say what it is, and run the command that goes with it.

    Without PATH, list what can be tried without data. A report is shown, or with --report written
    anew; of a store, the share of each source and style; of a log, what it holds.

    For example:

        rag-sourcebias start

        rag-sourcebias start my-data --report report

        rag-sourcebias start answers.csv

        rag-sourcebias start chroma:./db --json tags.json
    """
    if path is None:
        _list()
        return
    require_writable_file("json", json)
    if ":" in path and not Path(path).exists():
        _show_store(path, collection, sidecar, json)
        return
    here = Path(path)
    shown = here / "report.json" if (here / "report.json").is_file() else here
    if _is_report(shown):
        _show_report(shown, report, texts=texts, table=table)
    elif (here / "chroma.sqlite3").is_file():
        _show_store(f"chroma:{path}", collection, sidecar, json)
    elif _is_log(here):
        _show_log(here, json)
    else:
        if json or sidecar or collection:
            raise DataError("--json, --sidecar and --collection are of a store or log")
        _run(
            context.find_root().command.main,
            path,
            guess(here),
            report,
            texts=texts,
            dry_run=dry_run,
        )


def _run(
    main: Callable[..., Any],
    path: str,
    found: Guess,
    report: Path | None,
    *,
    texts: bool,
    dry_run: bool,
) -> None:
    """Say what was found, and run its command in this process, through the program's main."""
    say(f"{path}: {found.what}")
    if not found.command:
        say(found.lacks)
        return
    command = [*found.command]
    if report is not None:
        command += ["--report", str(report)]
    if not texts:
        command.append("--no-texts")
    say(f"$ rag-sourcebias {shlex.join(command)}")
    if found.lacks:
        say(found.lacks)
        return
    if dry_run:
        return
    code = main(command, "rag-sourcebias", standalone_mode=False)
    if code:
        raise typer.Exit(code)


def _list() -> None:
    """List the samples with their commands, and the data sets that have a name."""
    say("Try it without data:\n")
    tried = [(f"rag-sourcebias {command}", what) for command, what in _SAMPLES]
    say(rows(tried, _WIDTH, widest=_WIDTH))
    say("\nData sets by name, for audit source --dataset NAME:\n")
    listed = [
        (
            entry.name,
            f"{entry.description}: {entry.n_documents:,} documents, {entry.n_queries:,} queries "
            f"({entry.license}; bundled)",
        )
        for entry in list_datasets()
    ]
    say(rows(listed, _WIDTH))
    say("\nOn your own data: name a file, folder, store or log after start")


# What shows itself: reports, stores and logs.


def _show_report(file: Path, folder: Path | None, *, texts: bool, table: Path | None) -> None:
    found = read_report(file)
    if folder is None and table is None:
        print_report(found, out)
    else:
        deliver(found, folder, texts=texts, table=table)


def _show_store(spec: str, collection: str | None, sidecar: Path | None, json: str | None) -> None:
    """Print the share of each source and style, how the sources are known, and how surely."""
    if sidecar is not None and not sidecar.is_file():
        raise DataError(
            f"--sidecar {sidecar} does not exist; write it with: rag-sourcebias tag apply --store "
            f"{spec} --sidecar {sidecar} …"
        )
    opened = open_store(spec, collection=collection, sidecar=sidecar)
    with stages() as progress:
        total = len(opened)
        progress.begin(f"reading the tags of {opened.name}")
        found = summarise(opened.tags(), lambda done: progress.advance(done, total))
    if write_json(json, {"store": opened.name, **found.to_dict()}):
        return
    show(summary_parts(opened.name, found))
    if isinstance(opened, SidecarStore) and (left := opened.left_over()):
        tell(
            f"{sidecar} also holds tags of {len(left):,} documents that the store lacks, first "
            f"{', '.join(left[:3])}"
        )


def _show_log(log: Path, json: str | None) -> None:
    found = log_summary(log)
    if write_json(json, log_figures(found)):
        return
    for line in log_lines(found):
        say(line)
    for verb in ("replay", "serve"):
        say(f"next: rag-sourcebias monitor {verb} {shlex.quote(str(log))}")


# What has a command.


_MANY_SOURCES = 2
_TREC_RUN = 6  # columns of a run
_QUICK = 50_000_000  # bytes of a corpus that are read in some seconds


def _is_report(file: Path) -> bool:
    """Whether a file is JSON with the version of a report."""
    if not file.is_file() or not file.name.endswith((".json", ".json.gz")):
        return False
    try:
        data = read_json(file, "the JSON of a report")
    except DataError:
        return False
    return isinstance(data, dict) and "schema_version" in data


def _is_log(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0" and path.suffix != ".sqlite"


def guess(path: Path) -> Guess:
    """Return what a path is and the command for it.

    Raises
    ------
    DataError
        If there is no such path, or nothing here reads it.
    """
    name = str(path)
    if not path.exists():
        raise DataError(
            f"there is no {name}; 'rag-sourcebias start' alone lists what can be tried without data"
        )
    found = next(_of_folder(path) if path.is_dir() else _of_file(path), None)
    if found is None:
        raise DataError(
            f"{name} is not recognised: a BEIR folder (queries.jsonl, qrels/ and corpus/<source>"
            ".jsonl), a table with columns such as human and judge, a report.json, the log of an "
            "application, a store (chroma:FOLDER) or a TREC run would be"
        )
    return found


def _of_folder(path: Path) -> Iterator[Guess]:
    name = str(path)
    data = any(next(path.glob(part), None) for part in ("corpus.*", "queries*", "qrels"))
    files: list[tuple[str | None, Path]] = []
    with suppress(*() if data else (DataError,)):  # an application may have a folder corpus
        files = corpus_files(path) if data or (path / "corpus").is_dir() else []
    if files:
        yield _of_corpus(path, files)
    whole = path.resolve()  # "/" and "." have no name
    if (whole.parent / f"{whole.name}.key.json").is_file():
        yield Guess("sheets of annotators, with the key beside them", ("annotate", name))
    if _has_events(path):
        yield Guess("an archive of an event log", ("monitor", "replay", name))


def _has_events(path: Path) -> bool:
    """Whether Parquet in a folder is an archive of ours; nobody's folder is walked through."""
    places = ("events-*.parquet", "date=*/events-*.parquet", "*/date=*/events-*.parquet")
    first = next(chain.from_iterable(map(path.glob, places)), None)
    if first is None:
        return False
    try:
        return next(parquet_events(first), None) is not None
    except DataError:
        return False


def _of_corpus(path: Path, files: Sequence[tuple[str | None, Path]]) -> Guess:
    """Tell data that can be audited from data that lack judgments or a second source."""
    name = str(path)
    size = sum(file.stat().st_size for _, file in files)
    if size > _QUICK:
        return Guess(
            f"a BEIR folder with a corpus of {size / 1e6:,.0f} MB",
            ("audit", "source", name),
            "Its sources were not looked at, which takes long: run it when you mean to.",
        )
    counts = read_corpus(path, titles=True).corpus.tags.counts()
    known = {source: n for source, n in counts.items() if source}
    told = ", ".join(f"{n:,} {source}" for source, n in known.items()) or "of unknown source"
    what = f"a BEIR folder: documents {told}"
    splits = list(splits_of(path))
    if len(known) < _MANY_SOURCES:
        return Guess(
            f"{what}; a second source is needed to compare",
            ("rewrite", name, "--model", "openai:gpt-4o-mini", "--output", "paired", "--dry-run"),
            "Name the model that rewrites the documents, or tag them: rag-sourcebias tag --help",
        )
    if not splits:
        return Guess(f"{what}; no judgments (qrels/)", ("check-pairs", name))
    chosen = next((s for s in ("test", "dev") if s in splits), splits[0])
    split = () if chosen == "test" else ("--split", chosen)
    return Guess(f"{what}; judgments: {', '.join(splits)}", ("audit", "source", name, *split))


def _of_file(path: Path) -> Iterator[Guess]:
    head = [line.split() for _, line in zip(range(3), _lines(path), strict=False)]
    if head and all(len(row) == _TREC_RUN and row[3].isdigit() for row in head):
        yield Guess(
            "a TREC run",
            (),
            "audit source --run takes it, with judgments (--qrels) and a table of doc_id and "
            "source (--tags).",
        )
    yield from _of_table(path, _columns(path))


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from (line for _, line in read_lines(path))
    except DataError:  # not text: it may be Parquet
        return


class _ColumnsOnly(Exception):  # noqa: N818 - ends a reading, and is no error
    pass


def _columns(path: Path) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    found: list[str] = []

    def choose(names: tuple[str, ...]) -> Sequence[str]:
        found.extend(names)
        raise _ColumnsOnly

    try:
        read_table(path, choose)
    except _ColumnsOnly:
        return tuple(found)
    except DataError:
        return ()
    return ()


def _of_table(path: Path, columns: tuple[str, ...]) -> Iterator[Guess]:
    name, has = str(path), set(columns)
    what = f"a table with the columns {', '.join(columns)}"
    if {"query_id", "side", "style", "text"} <= has or {"query", "doc_styles"} <= has:
        yield Guess(f"{what}: styled texts", ("audit", "style", name))
    yield from _of_scores(path, columns, what)
    if _column(columns, "doc_id", name) and "source" in has:
        yield Guess(
            f"{what}: tags of documents",
            (),
            "audit source --tags takes it, with a run (--run) and judgments (--qrels).",
        )
    if {"text", "source"} <= has:
        yield Guess(
            f"{what}: labelled texts",
            ("tag", "fit", name, "--output", "detector"),
            "It writes a detector: run it when you mean to.",
        )


_PILOT = 50  # labels of a first sheet, if there are so many items


def _of_scores(path: Path, columns: tuple[str, ...], what: str) -> Iterator[Guess]:
    """Guess what answers or items are for, going by who graded them."""
    name = str(path)
    marked: dict[str, Any] = {}
    with suppress(DataError):
        marked = find_answer_columns(columns, name)
    long = "system" in marked
    human = (
        _numbered(columns, _PEOPLE)
        or [
            one
            for one in (_column(columns, "human", name), marked["correct"][0] if long else None)
            if one
        ][:1]
    )
    answer, judge = _column(columns, "answer", name), _column(columns, "judge", name)
    several = _numbered(columns, _JUDGES)
    judges = [[judge]] if judge else []
    if several and not judge:
        judges.append(several)
    if human or answer or _column(columns, "question", name):
        judges += [[one] for one in score_columns(path, taken={judge, *human, *several})]
    judged, items = None, None
    if judges or (human and not answer):
        judged, items = _judged(path, columns, what, judges, human)
    whole = items is not None and not items.read.n_unlabeled
    score = ["--encoder", "all-MiniLM-L6-v2"]
    if items is not None and long:
        score = ["--judge", items.judges[0]]
    answers = Guess(
        f"{what}: answers that people marked",
        ("audit", "answers", name, *score),
        judged.lacks if judged and long else "",
    )
    # labels of some rows go with the judge's values of all, labels of all with an audit
    if judged and human and not whole:
        yield judged
    if marked:
        yield answers
    if judged:
        yield judged
    if answer and _column(columns, "reference", name):
        yield Guess(
            f"{what}: answers that nobody graded",
            ("judge", "grade", name, "--model", "openai:gpt-4o-mini", "--dry-run"),
            "Name the model that grades them.",
        )


def _judged(
    path: Path,
    columns: tuple[str, ...],
    what: str,
    judges: Sequence[Sequence[str]],
    human: Sequence[str],
) -> tuple[Guess, _Items | None]:
    """Return what judged items are for, and the items if they can be read."""
    name = str(path)
    if not judges:
        return Guess(
            f"{what}: human labels in {' and '.join(human)}",
            (),
            "interval takes it, with the column of the judge (--judge): none holds numbers.",
        ), None
    try:
        items = _readable(path, columns, judges, human)
    except DataError as error:
        return Guess(f"{what}: judged items that cannot be read", (), str(error)), None
    return _of_items(name, what, items, judges), items


@dataclass(frozen=True, slots=True)
class _Items:
    """Items as they could be read, and the columns that must be named for it."""

    read: JudgedItems
    judges: Sequence[str]
    human: Sequence[str]
    columns: Mapping[str, Any]

    @property
    def options(self) -> list[str]:
        """The columns as they are typed."""
        options = []
        for role, names in self.columns.items():
            for column in [names] if isinstance(names, str) else names:
                options += [f"--{role}", column]
        return options


def _readable(
    path: Path,
    columns: tuple[str, ...],
    judges: Sequence[Sequence[str]],
    human: Sequence[str],
) -> _Items:
    """Return the items by the first judge and the first ids that can be read.

    Raises
    ------
    DataError
        Of the first judge and ids, if none can be read.
    """
    name = str(path)
    usual = {
        role: _column(columns, role, name)
        for role in ("human", "judge", "id", "group", "cluster", "system", "question")
    }
    named: dict[str, Any] = {}
    if usual["system"] and not usual["group"]:
        named["group"] = usual["system"]
        if usual["question"] and not usual["cluster"]:
            named["cluster"] = usual["question"]
    if human and human != [usual["human"]]:
        named["human"] = human
    system = usual["group"] or usual["system"]
    ids = [[usual["question"]], [usual["question"], system], [usual["id"], system]]
    # a sheet is brought back by ids, not by the numbers of rows
    numbered = bool(human or find_ids(columns, given=None, path=name))
    errors: list[DataError] = []
    for judge, id_columns in product(judges, [[], *ids] if numbered else ids):
        given = named | ({} if judge == [usual["judge"]] else {"judge": judge})
        if any(id_columns):
            given["id"] = list(filter(None, id_columns))
        if usual["id"] and usual["id"] in id_columns:  # an answer of each system to it
            given["cluster"] = usual["id"]
        try:
            items = read_judged_items(path, require_human=False, **given)
        except DataError as error:
            errors.append(error)
        else:
            return _Items(items, judge, human, given)
    raise errors[0]


def _of_items(name: str, what: str, items: _Items, judges: Sequence[Sequence[str]]) -> Guess:
    """Put an interval on items that people labelled, or draw a sheet of those to label."""
    what = f"{what}: judge values in {' and '.join(items.judges)}, "
    others = [" and ".join(columns) for columns in judges]
    note = ""
    if "judge" in items.columns and len(others) > 1:
        note = f"Which is the judge's: {' or '.join(others)}? Put its column after --judge."
    elif "judge" in items.columns and len(items.judges) == 1:
        note = f"Only {others[0]} holds numbers: run it if that is what the judge said."
    if items.human:
        command = ("interval", name, *items.options)
        return Guess(f"{what}human labels in {' and '.join(items.human)}", command, note)
    n = str(min(_PILOT, len(items.read)))
    return Guess(
        f"{what}no human labels",
        ("labels", name, *items.options, "-n", n, "--output", "sheet.csv"),
        f"{note} It draws what people should label; then: rag-sourcebias interval".lstrip(),
    )


_PEOPLE = re.compile(r"(human|annotator|expert|rater)[ _-]?(label|score)?[ _-]?\w{1,2}")
_JUDGES = re.compile(r"(judge|llm)[ _-](?!swapped).+")


def _numbered(columns: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    """Return the columns of several people or judges, none if there is one alone."""
    found = [name for name in columns if pattern.fullmatch(name.lower())]
    return found if len(found) > 1 else []


def _column(columns: tuple[str, ...], role: str, path: str) -> str | None:
    try:
        return find_column(columns, role, given=None, path=path)
    except DataError:  # several could be meant
        return None
