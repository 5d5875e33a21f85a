"""``start``: look at what somebody has, say what it is, and run the command that goes with it."""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.answers import answer_rows
from rag_sourcebias.intake.beir import corpus_files, read_corpus, splits_of
from rag_sourcebias.intake.files import open_bytes, read_lines
from rag_sourcebias.intake.judged import read_judged_items
from rag_sourcebias.intake.samples import list_datasets
from rag_sourcebias.intake.tables import (
    Table,
    find_column,
    find_ids,
    read_table,
    score_columns,
)
from rag_sourcebias.kinds import read_report
from rag_sourcebias.monitor.command import log_figures, log_lines
from rag_sourcebias.monitor.follow import parquet_events
from rag_sourcebias.observe.document_stores import summarise
from rag_sourcebias.observe.log.reading import log_summary
from rag_sourcebias.report.render import print_report
from rag_sourcebias.tagging.command import open_store
from rag_sourcebias.tagging.documents import SidecarStore
from rag_sourcebias.tagging.tables import summary_parts
from rag_sourcebias.terminal.console import deliver, out, say, show, stages, tell, write_json
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable_file, rows

_SAMPLES = (
    ("audit source --sample", "a retriever's favourites"),
    ("audit app --sample", "what is shown of what is held"),
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
    texts: Texts = None,
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
        # what a stored report holds was decided when it was made
        _show_report(shown, report, texts=texts is not False, table=table)
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
    texts: bool | None,
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
    if texts is not None:
        command.append("--texts" if texts else "--no-texts")
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
_QUICK = 50_000_000  # bytes of a corpus or table that are read in some seconds
_HEAD = 4_096  # bytes of a report in which its version stands


def _is_report(file: Path) -> bool:
    """Whether a file is JSON with the version of a report."""
    if not file.is_file() or not file.name.endswith((".json", ".json.gz")):
        return False
    with suppress(DataError), open_bytes(file) as stream:
        return b'"schema_version"' in stream.read(_HEAD)
    return False


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
    try:
        first = next(chain.from_iterable(map(path.glob, places)), None)
        return first is not None and next(parquet_events(first), None) is not None
    except (DataError, OSError):  # a folder of a process goes when it ends
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
    counts = read_corpus(path).corpus.tags.counts()
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
    name = str(path)
    head: list[str] = []
    with suppress(DataError):  # not text: it may be Parquet
        head.extend(line for _, line in islice(read_lines(path), 3))
    cells = list(map(str.split, head))
    if cells and all(len(row) == _TREC_RUN and row[3].isdigit() for row in cells):
        yield Guess(
            "a TREC run",
            (),
            "audit source --run takes it, with judgments (--qrels) and a table of doc_id and "
            "source (--tags).",
        )
    large = path.stat().st_size > _QUICK
    if large and head and head[0].lstrip().startswith("["):
        raise DataError(
            f"{name} is a JSON array of {path.stat().st_size / 1e6:,.0f} MB, which was not looked "
            "at; write it as JSON lines"
        )
    try:
        table = read_table(path, most=_ROWS if large else None)
    except DataError:
        if head and _TABLES.search(name) is None:
            return  # any text may look like a table of one column
        raise
    for found in _of_table(table):
        yield replace(found, lacks=f"{_PART} {found.lacks}".strip()) if large else found
    if _TABLES.search(name):
        raise DataError(
            f"{name} is not recognised: of its columns {', '.join(table.names)} none has a usual "
            "name; interval takes judged items, with the judge's column after --judge and that of "
            "people's labels after --human"
        )


_ROWS = 10_000  # of a large table that are looked at
_PART = f"Only its first {_ROWS:,} rows were looked at: run it when you mean to."
_TABLES = re.compile(r"\.(csv|tsv|json|jsonl|ndjson|parquet|pq)(\.(gz|bz2|xz|zst))?$")


def _of_table(table: Table) -> Iterator[Guess]:
    name, has = table.path, {*table.names}
    what = f"a table with the columns {', '.join(table.names)}"
    if {"query_id", "side", "style", "text"} <= has or {"query", "doc_styles"} <= has:
        yield Guess(f"{what}: styled texts", ("audit", "style", name))
    yield from _of_scores(table, what)
    if _column(table, "doc_id") and "source" in has:
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


def _of_scores(table: Table, what: str) -> Iterator[Guess]:
    """Guess what answers or items are for, going by who graded them."""
    answers: Table | None = None
    with suppress(DataError):
        answers, marked = answer_rows(table)
    long = answers is table
    human = _numbered(table, _PEOPLE)
    usual = _column(table, "human") or (marked["correct"] if long else None)
    if usual and not human:
        human = [usual]
    answer, judge = _column(table, "answer"), _column(table, "judge")
    several = _numbered(table, _JUDGES)
    judges = [[judge]] if judge else [several] if several else []
    if human or answer or _column(table, "question"):
        judges += [[one] for one in score_columns(table, taken={judge, *human, *several})]
    judged = None
    if judges or (human and not answer):
        judged = _judged(table, what, judges, human)
    items = None if judged is None else judged.items
    whole = items is not None and not items.n_unlabeled
    score = ["--encoder", "all-MiniLM-L6-v2"]
    if judged and items is not None and long:
        score = ["--judge", judged.judges[0]]
    # labels of some rows go with the judge's values of all, labels of all with an audit
    if judged and human and not whole:
        yield judged.guess
    if answers:
        yield Guess(
            f"{what}: answers that people marked",
            ("audit", "answers", table.path, *score),
            judged.guess.lacks if judged and long else "",
        )
    if judged:
        yield judged.guess
    if answer and _column(table, "reference"):
        yield Guess(
            f"{what}: answers that nobody graded",
            ("judge", "grade", table.path, "--model", "openai:gpt-4o-mini", "--dry-run"),
            "Name the model that grades them.",
        )


@dataclass(frozen=True, slots=True)
class _Judged:
    """What judged items are for, and the items if they can be read."""

    guess: Guess
    items: JudgedItems | None = None
    judges: Sequence[str] = ()


def _judged(
    table: Table, what: str, judges: Sequence[Sequence[str]], human: Sequence[str]
) -> _Judged:
    """Return the items by the first judge and the first ids that can be read, and their use."""
    name, labels = table.path, " and ".join(human)
    if not judges:
        lacks = "interval takes it, with the column of the judge (--judge): none holds numbers."
        return _Judged(Guess(f"{what}: human labels in {labels}", (), lacks))
    errors: list[DataError] = []
    for judge, given in _columns(table, judges, human):
        try:
            items = read_judged_items(table, require_human=False, **given)
        except DataError as error:
            errors.append(error)
            continue
        what = f"{what}: judge values in {' and '.join(judge)}, "
        note = _doubt(given, judges)
        if human:
            command = ("interval", name, *_options(given))
            return _Judged(Guess(f"{what}human labels in {labels}", command, note), items, judge)
        n = str(min(_PILOT, len(items)))
        command = ("labels", name, *_options(given), "-n", n, "--output", "sheet.csv")
        note = f"{note} It draws what people should label; then: rag-sourcebias interval"
        return _Judged(Guess(f"{what}no human labels", command, note.lstrip()), items, judge)
    return _Judged(Guess(f"{what}: judged items that cannot be read", (), str(errors[0])))


def _columns(
    table: Table, judges: Sequence[Sequence[str]], human: Sequence[str]
) -> Iterator[tuple[Sequence[str], dict[str, Any]]]:
    """Give each judge, for each way to tell items apart, and the columns that must be named."""
    usual = {role: _column(table, role) for role in _ROLES}
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
    if human or find_ids(table):
        ids = [[], *ids]
    for judge, id_columns in product(judges, ids):
        given = named | ({} if judge == [usual["judge"]] else {"judge": judge})
        if any(id_columns):
            given["id"] = list(filter(None, id_columns))
        if usual["id"] and usual["id"] in id_columns:  # an answer of each system to it
            given["cluster"] = usual["id"]
        yield judge, given


_ROLES = ("human", "judge", "id", "group", "cluster", "system", "question")


def _doubt(given: Mapping[str, Any], judges: Sequence[Sequence[str]]) -> str:
    """Say that another column may be the judge's, where its name does not tell."""
    if "judge" not in given:
        return ""
    others = " or ".join(map(" and ".join, judges))
    if len(judges) > 1:
        return f"Which is the judge's: {others}? Put its column after --judge."
    if len(given["judge"]) > 1:
        return ""
    return f"Only {others} holds numbers: run it if that is what the judge said."


def _options(given: Mapping[str, Any]) -> Iterator[str]:
    """Give columns as they are typed."""
    for role, names in given.items():
        for column in [names] if isinstance(names, str) else names:
            yield from (f"--{role}", column)


_PEOPLE = re.compile(r"(human|annotator|expert|rater)[ _-]?(label|score)?[ _-]?\w{1,2}")
_JUDGES = re.compile(r"(judge|llm)[ _-](?!swapped).+")


def _numbered(table: Table, pattern: re.Pattern[str]) -> list[str]:
    """Return the columns of several people or judges, none if there is one alone."""
    found = [name for name in table.names if pattern.fullmatch(name.lower())]
    return found if len(found) > 1 else []


def _column(table: Table, role: str) -> str | None:
    with suppress(DataError):  # several could be meant
        return find_column(table.names, role)
    return None
