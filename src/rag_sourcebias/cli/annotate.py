"""``annotate``: blind sheets for people who compare texts, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import typer

from rag_sourcebias.audit.annotated_twins import annotation_units
from rag_sourcebias.cli import annotate_options as opt
from rag_sourcebias.cli.annotate_summary import figures, print_figures
from rag_sourcebias.cli.checks import choice, require_writable_file
from rag_sourcebias.cli.console import err, json_text, out, print_json
from rag_sourcebias.cli.wording import as_options
from rag_sourcebias.corpora.annotate import annotation_sheet
from rag_sourcebias.corpora.annotate_read import read_annotations
from rag_sourcebias.corpora.annotate_write import write_annotation_sheets
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import load_sample, read_beir
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.types import Corpus, Dataset
from rag_sourcebias.types.annotations import AnnotationUnit

__all__ = ["app"]

_TRIPLES = 50  # [K] Table 3
_OPTIONS = {
    "overwrite=True": "--overwrite",
    "name one of them as source": "name one of them with --other-source",
}
_FILLED = (".csv", ".tsv", ".json")

app = typer.Typer(
    no_args_is_help=True,
    help="Ask people, blind, whether rewrites are as relevant and as good as their originals.",
)


@app.command()
def sheet(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    split: opt.Split = "test",
    other_source: opt.OtherSource = None,
    baseline_source: opt.BaselineSource = "human",
    min_grade: opt.MinGrade = 1,
    output: opt.Output,
    n: opt.Number = None,
    annotators: opt.Annotators = "3",
    overlap: opt.Overlap = 1.0,
    task: opt.Task = None,
    seed: opt.Seed = 0,
    formats: opt.Format = "csv,html",
    key: opt.Key = None,
    title: opt.Title = "Which text?",
    instructions: opt.Instructions = "",
    overwrite: opt.Overwrite = False,
) -> None:
    """Draw pairs and write one blind sheet per annotator, and the key apart from them.

    Nothing on a sheet tells who wrote a text: ids are random, and each source stands first in half
    of the pairs. Hand out the folder, keep the key.

    [bold]Examples[/]

        rag-sourcebias annotate sheet --sample -o sheets

        rag-sourcebias annotate sheet paired -n 100 --annotators ann,bob,eve -o sheets

    Then: rag-sourcebias annotate read sheets
    """
    with as_options(_OPTIONS):
        units = annotation_units(
            _pairs(folder, sample=sample, split=split),
            source=other_source,
            baseline=baseline_source,
            min_grade=min_grade,
        )
        plan = annotation_sheet(
            units,
            task=_names(task) if task else _tasks(units),
            n=min(_TRIPLES, len(units)) if n is None else n,
            annotators=int(annotators) if annotators.strip().isdecimal() else _names(annotators),
            overlap=overlap,
            rng=seed,
        )
        written = write_annotation_sheets(
            plan,
            output,
            formats=[_format(name) for name in _names(formats)],
            key=key,
            title=title,
            instructions=instructions,
            overwrite=overwrite,
        )
    out.print(
        f"{len(plan.units)} of {len(units):,} pairs, {len(plan.key.annotators)} annotators, "
        f"questions: {', '.join(q.name for q in plan.key.questions)}",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    for path in written.sheets:
        _tell(f"sheet: {path}")
    _tell(f"key: {written.key} (keep it from annotators)")
    _tell(f"when they come back: rag-sourcebias annotate read <sheets> --key {written.key}")


@app.command()
def read(
    sheets: opt.Sheets,
    *,
    key: opt.KeyToRead = None,
    min_answers: opt.MinAnswers = None,
    confidence_level: opt.ConfidenceLevel = 0.95,
    seed: opt.ReadSeed = 0,
    json: opt.JsonFile = None,
) -> None:
    """Un-blind filled sheets: what the majority says, and how far annotators agree.

    Prints the figures of Table 3 of Dai et al. (2024): the share of pairs with that majority and,
    in brackets, the share of those on which all agreed. Rows may come in any order and files may
    be renamed; what is empty counts as not answered.

    [bold]Examples[/]

        rag-sourcebias annotate read sheets

        rag-sourcebias annotate read ann.csv bob.json --key sheets.key.json --json figures.json
    """
    require_writable_file("json", None if json in (None, "-") else Path(json))
    annotations = read_annotations(_files(sheets), key=key or _key_of(sheets))
    found = figures(
        annotations, min_answers=min_answers, confidence_level=confidence_level, seed=seed
    )
    if json == "-":
        print_json(found.to_dict())
        return
    if json is not None:
        write_atomic(json, json_text(found.to_dict()))
        _tell(f"json: {json}")
    print_figures(found)


def _pairs(folder: Path | None, *, sample: bool, split: str) -> Dataset | Corpus:
    """Read pairs without titles, which rewrites may lack; a corpus where nothing is judged."""
    if sample == (folder is not None):
        raise DataError("give one set of pairs: a BEIR folder, or --sample")
    if folder is None:
        return load_sample()
    if folder.is_dir() and not (folder / "qrels").is_dir():
        return read_corpus(folder, sources=None, titles=False).corpus
    return read_beir(folder, split=split, titles=False)


def _tasks(units: Sequence[AnnotationUnit]) -> tuple[str, ...]:
    return ("relevance", "quality") if units[0].query else ("quality",)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _format(name: str) -> Literal["csv", "html"]:
    return "csv" if choice("format", name, ("csv", "html")) == "csv" else "html"


def _files(sheets: Sequence[Path]) -> list[Path]:
    """Files as given, and those in folders."""
    found: list[Path] = []
    for path in sheets:
        if not path.exists():
            raise DataError(f"{path} does not exist; name filled sheets, or their folder")
        within = sorted(p for p in path.iterdir() if p.suffix in _FILLED) if path.is_dir() else []
        if path.is_dir() and not within:
            raise DataError(f"{path} holds no filled sheet; expected files in {', '.join(_FILLED)}")
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


def _tell(line: str) -> None:
    err.print(line, markup=False, highlight=False, soft_wrap=True)
