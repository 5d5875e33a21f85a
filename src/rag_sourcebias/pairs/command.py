"""``check-pairs`` and ``annotate``: is a paired corpus sound, by figures and by people."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rag_sourcebias.core.codec import to_plain
from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Finding, Frame
from rag_sourcebias.intake.beir import query_files, read_beir, read_corpus, splits_of
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.pairs.annotate import (
    AnswerTable,
    MajorityTable,
    RaterAgreement,
    annotation_sheet,
    annotation_units,
    write_annotation_sheets,
)
from rag_sourcebias.pairs.annotated import annotator_agreement, majority_tables, read_annotations
from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.checks import sound_pairs
from rag_sourcebias.pairs.data import PairCheckConfig, PairChecks, PairThresholds
from rag_sourcebias.pairs.files import pair_files, write_pair_checks
from rag_sourcebias.pairs.findings import PairsCode, failed
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.report.document import Heading, Table
from rag_sourcebias.report.render import print_block
from rag_sourcebias.retrieval.search import named_retriever
from rag_sourcebias.terminal import options as opt
from rag_sourcebias.terminal.console import deliver, out, say, say_written, stages, tell, write_json
from rag_sourcebias.terminal.options import (
    TableFile,
    Texts,
    as_options,
    number_pair,
    require_writable,
    require_writable_file,
    spread,
    used,
)

# Options of ``check-pairs``.


_CHECKS, _RETRIEVAL = "Checks", "Retrieval"
_OFF, _ON = ("off", "none", "false", "no"), ("on", "true", "yes")


def read_thresholds(given: Sequence[str]) -> PairThresholds:
    """Read ``name=value`` pairs.

    Raises
    ------
    DataError
        If a name is unknown or given twice, or a value is not of its kind.
    """
    known = list(PairThresholds.__dataclass_fields__)
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in known:
            raise DataError(f"--threshold {text!r}: write name=value; names are {', '.join(known)}")
        if name in values:
            raise DataError(f"--threshold {name} is given twice")
        values[name] = _value(name, value.lower(), text)
    return PairThresholds(**values)


def _value(name: str, value: str, text: str) -> Any:  # noqa: ANN401 - of the threshold
    if name in ("language", "writing"):
        if value not in (*_OFF, *_ON):
            raise DataError(f"--threshold {text!r}: {name} is on or off")
        return value in _ON
    if value in _OFF:
        return None
    if name == "length_ratio":
        return number_pair("threshold length_ratio", value)
    try:
        return float(value)
    except ValueError:
        raise DataError(f"--threshold {text!r}: {value!r} is not a number, nor off") from None


# The data that ``check-pairs`` reads: with judgments where there are some.


def load_paired(
    folder: Path | None, *, sample: bool, dataset: str | None, split: str, titles: bool = True
) -> Dataset | Corpus:
    """Read a BEIR folder, which may lack ``qrels/`` or ``queries.jsonl``, or a named data set.

    Parameters
    ----------
    titles : bool
        Whether they are part of the texts; rewrites may lack them.

    Raises
    ------
    DataError
        If none or several are given, or the folder holds no corpus.
    """
    if sum([bool(folder), sample, bool(dataset)]) != 1:
        raise DataError("give one data set: a BEIR folder, --sample, or --dataset <name>")
    if folder is None:
        return load_sample(dataset or "crowdrag-rewrites")
    if (query_files(folder) and splits_of(folder)) or not folder.is_dir():
        return read_beir(folder, split=split, titles=titles)
    return read_corpus(folder, titles=titles).corpus


def has_judgments(data: Dataset | Corpus) -> bool:
    """Whether each corpus can be searched alone."""
    return isinstance(data, Dataset) and len(data.qrels) > 0


# ``check-pairs``: is a paired corpus fit for an audit.


@spread
def check_pairs(
    ctx: typer.Context,
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    dataset: opt.DatasetName = None,
    split: opt.Split = "test",
    baseline_source: opt.BaselineSource = "human",
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="Check only this source against the baseline; repeatable. \\[default: all others]",
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            "--encoder",
            help="Also compare both texts by this encoder, a sentence-transformers name or path.",
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            help="name=value, such as length_ratio=0.5,2 · copied=0.8 · repeated=0.2 · "
            "end_kept=0.25 · chance=0.99 · cosine=0.7 · numbers_kept=1 · names_kept=0.6 · "
            "language=off · writing=off; off switches a check off; repeatable.",
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    fail_above: Annotated[
        float | None,
        typer.Option(
            help="End with code 1 if more than this share of any source's pairs is broken, such as "
            "0.05: for continuous integration.",
            min=0,
            max=1,
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the pairs that are not broken, with their queries and judgments, as a BEIR "
            "folder to audit with.",
            rich_help_panel=_CHECKS,
        ),
    ] = None,
    sole_corpus: Annotated[
        bool, typer.Option(help="Search each corpus alone.", rich_help_panel=_RETRIEVAL)
    ] = True,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            help="Search each corpus alone with bm25[:…] · dense:<model> · chroma:<model>[,…], as "
            "in audit source; repeatable. \\[default: bm25, where there are judgments]",
            rich_help_panel=_RETRIEVAL,
        ),
    ] = None,
    config: PairCheckConfig,
    cache: opt.Cache = None,
    report: opt.ReportFolder = None,
    texts: Texts = True,
    table: TableFile = None,
) -> None:
    """Check that rewrites say what their originals say, before you audit with them.

    Pairs: refusals, leftovers, copies, cut ends, loops, other languages,
    numbers and names lost or added. Corpus: source known, judgments copied,
    one to one. Each source's corpus is also searched alone, with a test of
    whether both are equally hard. --report writes the worst pairs side by
    side, and a CSV file with all values of all pairs.

    For example:

        rag-sourcebias check-pairs --sample --report report

        rag-sourcebias check-pairs my-corpus --encoder all-MiniLM-L6-v2 --retriever bm25

        rag-sourcebias check-pairs my-corpus --threshold cosine=0.7 --fail-above 0.05

        rag-sourcebias check-pairs my-corpus --output sound
    """
    thresholds = read_thresholds(threshold or ())
    require_writable(report)
    if retriever and not sole_corpus:
        raise DataError("--retriever searches each corpus alone, which --no-sole-corpus forbids")
    data = load_paired(folder, sample=sample, dataset=dataset, split=split)
    if output is not None:  # refused before the checks, not after them
        if not has_judgments(data):
            raise DataError(f"--output {output}: there are no queries and judgments to audit with")
        if output.exists() and (not output.is_dir() or any(output.iterdir())):
            raise DataError(f"--output {output} is there already; name a new folder")
    searched = (retriever or ["bm25"]) if retriever or has_judgments(data) else []
    every: dict[str, PairChecks] = {}
    with stages() as progress:
        builder = SpecBuilder(cache, progress.advance)
        found = check_paired_corpus(
            data,
            baseline_source=baseline_source,
            sources=source,
            encoder=None if encoder is None else builder.encoder(encoder),
            retrievers=[named_retriever(text, builder) for text in searched if sole_corpus],
            thresholds=thresholds,
            config=config,
            on_stage=progress.begin,
            on_checks=every.__setitem__,
        )
    found = replace(
        found,
        inputs=opt.typed(ctx, "folder", "sample", "dataset", "split", "baseline_source"),
        again=opt.typed(ctx),
    )
    deliver(found, report, figures=partial(_write_values, every), texts=texts, table=table)
    if output is not None and isinstance(data, Dataset):
        kept = sound_pairs(data, every, baseline_source=baseline_source)
        write_beir(kept, output)
        documents = kept.corpus.tags.counts()[baseline_source]
        sound = PairsCode.SOUND_PAIRS(
            folder=str(output), documents=documents, queries=len(kept.queries)
        )
        tell(str(sound))
    failures = [] if fail_above is None else list(failed(found.sources, fail_above))
    for failure in failures:
        tell(str(failure))
    if failures:
        raise typer.Exit(1)


def _write_values(every: dict[str, PairChecks], folder: Path) -> None:
    for source, name in pair_files(list(every)).items():
        try:
            write_pair_checks(every[source], folder / name)
        except DataError as error:  # costs this file, not the report
            tell(str(error))
        else:
            say_written("csv", folder / name)


# Options of ``annotate``, named once.


_DATA, _DRAW, _SHEETS, _FILLED_SHEETS = (
    "Pairs",
    "What is asked of whom",
    "Sheets",
    "Reading filled sheets",
)


# What annotators said: the figures of [K] Table 3, agreement, and what to mind.


_HABIT = 2.58  # standard deviations: one in a hundred questions without a habit


class QuestionFigures(NamedTuple):
    """What came back for one question."""

    answers: AnswerTable
    majority: MajorityTable
    agreement: tuple[RaterAgreement, ...]

    def plain(self) -> dict[str, Any]:
        """Return the figures as JSON holds them."""
        table = self.answers
        return {
            "question": table.question,
            "n_answered": table.n_answered,
            "n_unanswered": table.n_unanswered,
            "n_first": table.n_first,
            "n_second": table.n_second,
            "majority": to_plain(self.majority),
            "agreement": to_plain(self.agreement),
        }

    def majorities(self) -> Frame:
        """Return the answer of the majority, and how often all agreed ([K] Table 3)."""
        shares, without = self.majority.shares, self.majority.n_no_majority
        return Frame(
            columns={
                "answer": [*(found.category for found in shares), "no majority"],
                "pairs": [*(found.n for found in shares), without],
                "majority": [
                    *(found.share for found in shares),
                    without / self.majority.n_units,
                ],
                "all agreed": [*(found.unanimous for found in shares), None],
            },
            formats={"majority": "percent", "all agreed": "percent"},
        )

    def agreements(self) -> Frame:
        """Return the coefficients of agreement."""
        return Frame(
            columns={
                "agreement": [found.name.replace("_", " ") for found in self.agreement],
                "value": [found.interval or found.value for found in self.agreement],
                "pairs": [found.n_units for found in self.agreement],
            },
            formats={"value": "2"},
        )

    def findings(self) -> Iterator[Finding]:
        """Yield what to mind."""
        table, few = self.answers, self.majority.n_too_few
        question, first, second = table.question, table.n_first, table.n_second
        if few:
            yield PairsCode.TOO_FEW_ANSWERS(question=question, few=few)
        for note in {str(found.note): found.note for found in self.agreement}.values():
            if note is not None:
                yield PairsCode.MIND(question=question, why=note)
        if table.n_unanswered:
            yield PairsCode.UNANSWERED(question=question, unanswered=table.n_unanswered)
        if abs(first - second) > _HABIT * (first + second) ** 0.5:
            yield PairsCode.HABIT(question=question, first=first, second=second)


# ``annotate``: blind sheets for people who compare texts, and what comes back.


_OPTIONS = {
    "overwrite=True": "--overwrite",
    "name one of them as source": "name one of them with --source",
}
_FILLED = (".csv", ".tsv")


@dataclass(frozen=True, kw_only=True)
class Sheets:
    """What is drawn from which pairs, and how sheets look."""

    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Use the bundled sample: 160 human passages and their LLM rewrites.",
            rich_help_panel=_DATA,
        ),
    ] = False
    split: Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)] = "test"
    source: Annotated[
        str | None,
        typer.Option(
            help="LLM source, such as llm:gpt-4o; needed where there are several.",
            rich_help_panel=_DATA,
        ),
    ] = None
    baseline_source: Annotated[
        str, typer.Option(help="Source that the other is compared with.", rich_help_panel=_DATA)
    ] = "human"
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            "-n",
            min=1,
            help="Pairs with their query, drawn at random.",
            rich_help_panel=_DRAW,
            show_default="50, as Dai et al. 2024",
        ),
    ] = None
    annotators: Annotated[
        str,
        typer.Option(
            help="How many, or names separated by commas, which name the files.",
            rich_help_panel=_DRAW,
        ),
    ] = "3"
    overlap: Annotated[
        float,
        typer.Option(
            help="Share of the pairs that every annotator judges; only these tell agreement.",
            rich_help_panel=_DRAW,
        ),
    ] = 1.0
    task: Annotated[
        str | None,
        typer.Option(
            help="relevance, quality, content, author, separated by commas.",
            rich_help_panel=_DRAW,
            show_default="relevance,quality; without queries quality",
        ),
    ] = None
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace sheets that are there, and the answers on them.",
            rich_help_panel=_SHEETS,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How filled sheets are read."""

    min_answers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Pairs with fewer answers are left out.",
            rich_help_panel=_FILLED_SHEETS,
            show_default="3, or all annotators",
        ),
    ] = None
    confidence_level: Annotated[float, typer.Option(rich_help_panel=_FILLED_SHEETS)] = 0.95
    json: Annotated[
        str | None,
        typer.Option(
            "--json",
            help="Write the figures as JSON here; - prints them.",
            rich_help_panel=_FILLED_SHEETS,
        ),
    ] = None


@spread
def annotate(
    ctx: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="With --output, the pairs: a BEIR folder with corpus/<source>.jsonl per source "
            "(same _id = same document rewritten) and, where you have them, queries.jsonl and "
            "qrels/<split>.tsv. Without it, filled sheets and what pages downloaded, or a "
            "folder with such.",
        ),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the sheets, to be handed out; the key is written beside it.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="File that un-blinds the sheets.", show_default="<sheets>.key.json beside them"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw, the orders and the bootstrap.")] = 0,
    sheets: Sheets,
    reading: Reading,
) -> None:
    """Ask people, blind, whether rewrites are as relevant and as good as their originals.

    With --output, draws pairs and writes one blind sheet per annotator. Nothing on a sheet tells
    who wrote a text: ids are random, and each source stands first in half of the pairs. Hand out
    the folder, keep the key.

    Without it, reads filled sheets and prints the figures of Table 3 of Dai et al. (2024): the
    share of pairs with that majority and, in brackets, of those on which all agreed. Rows may come
    in any order and files may be renamed; what is empty counts as not answered.

    For example:

        rag-sourcebias annotate --sample --output sheets

        rag-sourcebias annotate paired -n 100 --annotators ann,bob,eve --output sheets

        rag-sourcebias annotate sheets

        rag-sourcebias annotate ann.csv bob.csv --key sheets.key.json --json figures.json
    """
    useless = used(ctx, Reading if output is not None else Sheets)
    if useless:
        when = "filled sheets are read, without --output" if output is not None else "with --output"
        raise DataError(f"{', '.join(useless)}: {when}")
    if output is None:
        _read_sheets(paths or (), key, reading, seed)
        return
    if sheets.sample == bool(paths) or len(paths or ()) > 1:
        raise DataError("give one set of pairs: a BEIR folder, or --sample")
    _draw_sheets(paths[0] if paths else None, output, key, sheets, seed)


def _draw_sheets(
    folder: Path | None, output: Path, key: Path | None, sheets: Sheets, seed: int
) -> None:
    """Draw pairs and write one blind sheet per annotator, and the key apart from them."""
    people = sheets.annotators
    data = load_paired(folder, sample=sheets.sample, dataset=None, split=sheets.split, titles=False)
    with as_options(_OPTIONS):
        units = annotation_units(
            data,
            source=sheets.source,
            baseline=sheets.baseline_source,
        )
        plan = annotation_sheet(
            units,
            task=_names(sheets.task or ("relevance,quality" if units[0].query else "quality")),
            n=min(50, len(units)) if sheets.n is None else sheets.n,  # 50 as in [K] Table 3
            annotators=int(people) if people.strip().isdecimal() else _names(people),
            overlap=sheets.overlap,
            rng=seed,
        )
        written = write_annotation_sheets(plan, output, key=key, overwrite=sheets.overwrite)
    drawn = PairsCode.DRAWN(
        drawn=len(plan.units),
        pairs=len(units),
        annotators=len(plan.key.annotators),
        questions=len(plan.key.questions),
    )
    say(str(drawn))
    for path in written.sheets:
        say_written("sheet", path)
    tell(str(PairsCode.KEY_WRITTEN(path=str(written.key))))
    files = shlex.join([str(output), "--key", str(written.key)])
    tell(str(PairsCode.NEXT_SHEETS(files=files)))


def _read_sheets(sheets: Sequence[Path], key: Path | None, reading: Reading, seed: int) -> None:
    """Un-blind filled sheets: what the majority says, and how far annotators agree."""
    if not sheets:
        raise DataError("name filled sheets, or their folder; or --output to draw new ones")
    level, json = reading.confidence_level, reading.json
    require_writable_file("json", json)
    annotations = read_annotations(_files(sheets), key=key or _key_of(sheets))
    majorities = majority_tables(
        annotations, min_answers=reading.min_answers, confidence_level=level
    )
    questions = [
        QuestionFigures(
            answers=table,
            majority=majority,
            agreement=annotator_agreement(
                annotations, table.question, confidence_level=level, rng=seed
            ),
        )
        for table, majority in zip(annotations.tables, majorities, strict=True)
    ]
    plain = {
        "sheet_id": annotations.sheet_id,
        "annotators": list(annotations.annotators),
        "n_units": len(annotations.units),
        "questions": [found.plain() for found in questions],
    }
    if write_json(json, plain):
        return
    annotators = len(annotations.annotators)
    say(str(PairsCode.ANNOTATED(pairs=len(annotations.units), annotators=annotators)))
    for found in questions:
        print_block(Heading(text=found.answers.question), out)
        if found.majority.shares:
            print_block(Table(caption=found.answers.question, frame=found.majorities()), out)
        print_block(Table(caption=found.answers.question, frame=found.agreements()), out)
        for finding in found.findings():
            say(str(finding))


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _files(sheets: Sequence[Path]) -> list[Path]:
    """Files as given, and those in folders."""
    found: list[Path] = []
    for path in sheets:
        if not path.exists():
            raise DataError(f"{path} does not exist; name filled sheets, or their folder")
        within = sorted(p for p in path.iterdir() if p.suffix in _FILLED) if path.is_dir() else []
        if path.is_dir() and not within:
            raise DataError(
                f"{path} holds no filled sheet; expected files in {', '.join(_FILLED)} (to draw "
                "sheets from pairs, add --output)"
            )
        found += within or [path]
    return found


def _key_of(sheets: Sequence[Path]) -> Path:
    folders = {path if path.is_dir() else path.absolute().parent for path in sheets}
    beside = [p for f in folders if (p := f.with_name(f"{f.name}.key.json")).is_file()]
    if len(folders) != 1 or not beside:
        raise DataError(
            "the key was not found beside the sheets; name it with --key <folder>.key.json"
        )
    return beside[0]
