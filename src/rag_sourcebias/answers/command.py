"""``audit answers``: how much a correctness score rewards style."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from rag_sourcebias.answers.audit import audit_answers, measure_answer_bias
from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.core.errors import DataError, setting
from rag_sourcebias.core.finding import Finding
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.intake.answers import read_answer_scores, read_answer_texts
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.terminal import options as common
from rag_sourcebias.terminal.console import deliver, stages
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable, spread, typed

# Options of ``audit answers``, named once.


_DATA, _SCORES, _ADJUSTMENT, _STATISTICS = "Data", "Scores", "Adjustment", "Statistics"
_COLUMNS = "Columns (found by their usual names)"


# ``audit answers``: how much a correctness score rewards style.


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns of a table with one row per answer."""

    panel = _COLUMNS

    question: str | None = setting(None, "Question, or its id.")
    group: str | None = setting(None, "System.")
    answer: str | None = setting(None, "Answer.")
    reference: str | None = setting(None, "Right answer.")
    human: str | None = setting(None, "Human verdict: correct or not.")

    def named(self) -> dict[str, str | None]:
        """Return the column of each role."""
        return {
            "question": self.question,
            "system": self.group,
            "answer": self.answer,
            "reference": self.reference,
            "correct": self.human,
        }


@spread
def answers(
    ctx: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Table (CSV, TSV, JSON lines, Parquet) or JSON array with question, system, "
            "answer, reference and correct, or answer_<system> and judge_<system>. Also .gz; "
            "several files where each holds one system.",
        ),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Use the bundled sample: 300 questions answered by five systems, with the values "
            "of a judge that matches words.",
            rich_help_panel=_DATA,
        ),
    ] = False,
    columns: Columns,
    separator: Annotated[
        str | None,
        typer.Option(
            help="What stands between alternative wordings in one cell of references, such as /.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            help="Score = cosine of reference and answer by this sentence-transformers name or "
            "path[,dtype=…,max_length=…,batch_size=…,device=…]; repeatable, to compare several.",
            rich_help_panel=_SCORES,
        ),
    ] = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            help="Column of judge values that the table holds already (scores of ragas, for "
            "example), instead of --encoder; repeatable.",
            rich_help_panel=_SCORES,
        ),
    ] = None,
    cache: common.Cache = None,
    fit_on: Annotated[
        Path | None,
        typer.Option(
            help="Learn the adjustment from these answers, not by cross-fitting. Form as FILE.",
            rich_help_panel=_ADJUSTMENT,
        ),
    ] = None,
    text_statistics: Annotated[
        bool,
        typer.Option(
            help="Also describe the answers: words, BLEU, METEOR, ROUGE-L against the reference.",
            rich_help_panel=_STATISTICS,
        ),
    ] = True,
    config: AnswerConfig,
    clusters: common.ClusterFile,
    report: common.ReportFolder = None,
    texts: Texts = None,
    table: TableFile = None,
) -> None:
    """Measure how much a similarity score of correctness rewards a system's style.

    People marked the answers of several systems correct or wrong. Where all are correct, scores
    should not differ between systems; where they do, style decides. Reports the differences with
    intervals, what they do to verdicts and to the order of systems, and a score adjusted for
    style.

    For example:

        rag-sourcebias audit answers --sample

        rag-sourcebias audit answers answers.csv --encoder all-MiniLM-L6-v2 --report report

        rag-sourcebias audit answers NQ.json.gz --encoder all-MiniLM-L6-v2 --fit-on TQ.json.gz

        rag-sourcebias audit answers ragas.csv --judge semantic_similarity --threshold 0.7
    """
    if sample == bool(files):
        raise DataError("give one table of answers, or --sample")
    if not sample and bool(encoder) == bool(judge):
        raise DataError(
            "give the score to audit: --encoder <model>, such as all-MiniLM-L6-v2, or --judge "
            "<column> of the table"
        )
    if fit_on is not None and not config.adjust:
        raise DataError("--fit-on names what the adjustment is learnt from; leave --no-adjust out")
    require_writable(report)
    named = columns.named()
    other = (
        None if fit_on is None else read_answer_texts(fit_on, separator=separator, columns=named)
    )
    with _files(files) as tables:
        read = _read(tables, separator, named)
        answered = replace(read, name="EVOUNA sample") if sample else read
        if not encoder:
            values, notes = _columns(tables, judge or ["judge"], named)
            answered = replace(answered, notes=(*answered.notes, *notes))
    if not encoder:
        found = measure_answer_bias(
            values,
            answered,
            config=config,
            fit_scores=None
            if fit_on is None
            else read_answer_scores(fit_on, tuple(values), named)[0],
            fit_on=other,
            clusters=clusters.read(),
            text_statistics=text_statistics,
        )
    else:
        with stages() as progress:
            builder = SpecBuilder(cache, progress.advance)
            found = audit_answers(
                answered,
                [builder.encoder(text) for text in encoder or []],
                fit_on=other,
                config=config,
                clusters=clusters.read(),
                text_statistics=text_statistics,
                on_stage=progress.begin,
            )
    found = replace(found, inputs=typed(ctx))
    deliver(found, report, texts=texts, table=table)


@contextmanager
def _files(files: Sequence[Path] | None) -> Iterator[Sequence[Path]]:
    """Yield the files, or that of the bundled sample."""
    if files:
        yield files
        return
    place = resources.files("rag_sourcebias.intake").joinpath("samples", "evouna", "answers.csv.gz")
    with resources.as_file(place) as file:
        yield [file]


def _read(
    files: Sequence[Path], separator: str | None, columns: Mapping[str, str | None]
) -> AnswerTexts:
    """Read one file, or several with one system each."""
    parts = [read_answer_texts(file, separator=separator, columns=columns) for file in files]
    if len(parts) == 1:
        return parts[0]
    columns_of_text: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(part, name) for part in parts))
        for name in ("question_ids", "systems", "answers", "references")
    }
    return AnswerTexts(
        **columns_of_text,
        correct=np.concatenate([part.correct for part in parts]),
        notes=tuple(chain.from_iterable(part.notes for part in parts)),
        name=", ".join(part.name for part in parts),
    )


def _columns(
    files: Sequence[Path], names: Sequence[str], columns: Mapping[str, str | None]
) -> tuple[dict[str, npt.NDArray[np.float64]], tuple[Finding, ...]]:
    parts = [read_answer_scores(file, names, columns) for file in files]
    notes = tuple(chain.from_iterable(notes for _, notes in parts))
    return {name: np.concatenate([part[name] for part, _ in parts]) for name in names}, notes
