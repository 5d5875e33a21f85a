"""Which files an interval is computed from, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from rag_sourcebias.audit import judge_items_with_intervals, judge_ranking_with_intervals
from rag_sourcebias.cli.console import err
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import read_qrels, read_run, read_tags
from rag_sourcebias.io.judged import join_judged, read_judged_items
from rag_sourcebias.io.judged_sample import JUDGED_SAMPLE_LICENSE, judged_sample_file
from rag_sourcebias.io.label_files import read_label_distributions
from rag_sourcebias.io.ragas_results import read_ragas_result
from rag_sourcebias.types.judged import JudgedConfig, JudgedReport
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["Asked", "Columns", "ItemFiles", "RankingFiles", "chosen_input"]

OnStage = Callable[[str], None]


class Factors(TypedDict):
    """Columns that tell how items belong together."""

    group: str | None
    cluster: str | None
    stratum: str | None


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns named on the command line."""

    id: list[str] | None = None
    human: str | None = None
    judge: str | None = None
    group: str | None = None
    cluster: str | None = None
    stratum: str | None = None

    def given(self) -> list[str]:
        """Return the options that were used."""
        return [f"--{name}" for name in self.__slots__ if getattr(self, name)]

    def factors(self) -> Factors:
        """Return group, cluster and stratum."""
        return Factors(group=self.group, cluster=self.cluster, stratum=self.stratum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of the input."""

    measures: Sequence[str]
    bounds: tuple[float, float] | None
    worst_case: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFiles:
    """Files with one value per item."""

    file: Path | None
    sample: bool
    human: Path | None
    judge: Path | None
    ragas: Path | None
    metric: str | None

    def read(self, columns: Columns) -> tuple[JudgedItems, str, str]:
        """Return the items, the name of what is measured, and the name of the data."""
        factors = columns.factors()
        if self.sample:
            with judged_sample_file() as file:
                err.print(
                    f"sample: {file} ({JUDGED_SAMPLE_LICENSE}); the judge is lexical match",
                    highlight=False,
                    soft_wrap=True,
                )
                items = read_judged_items(file)
            return items, "correctness", "EVOUNA sample"
        if self.ragas is not None:
            found = read_ragas_result(
                self.ragas,
                metric=self.metric,
                human_path=self.human,
                id=columns.id,
                human=columns.human,
                **factors,
            )
            err.print(f"joined by {found.joined_by}", highlight=False)
            return found.items, found.metric, self.ragas.name
        if self.human is not None and self.judge is not None:
            items = join_judged(
                self.human,
                self.judge,
                id=columns.id,
                human=columns.human,
                judge=columns.judge,
                allow_judge_missing=True,
                **factors,
            )
            return items, "score", self.judge.name
        if self.file is None:
            raise DataError("no file given")
        items = read_judged_items(
            self.file, id=columns.id, human=columns.human, judge=columns.judge, **factors
        )
        return items, "score", self.file.name

    def measure(
        self, columns: Columns, asked: Asked, config: JudgedConfig, on_stage: OnStage
    ) -> JudgedReport:
        """Compute the intervals."""
        on_stage("reading")
        items, measure, name = self.read(columns)
        return judge_items_with_intervals(
            items,
            measure=asked.measures[0] if asked.measures else measure,
            config=config,
            name=name,
            bounds=asked.bounds,
            missing="worst-case" if asked.worst_case else "mean",
            on_stage=on_stage,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFiles:
    """Rankings with human and judge labels of their documents."""

    runs: list[Path]
    qrels: Path | None
    labels: Path | None
    tags: Path | None
    grades: int | None
    baseline_source: str

    def measure(
        self, measures: Sequence[str], config: JudgedConfig, on_stage: OnStage
    ) -> JudgedReport:
        """Compute the intervals."""
        if self.qrels is None or self.labels is None:
            raise DataError("rankings need --qrels and --labels")
        on_stage("reading")
        runs = [read_run(path) for path in self.runs]
        return judge_ranking_with_intervals(
            runs,
            read_qrels(self.qrels),
            read_label_distributions(self.labels, n_grades=self.grades),
            measures=measures or ("NDCG@10",),
            tags=None if self.tags is None else read_tags(self.tags),
            baseline_source=self.baseline_source,
            config=config,
            name=", ".join(path.name for path in self.runs),
            on_stage=on_stage,
        )


def chosen_input(
    items: ItemFiles, rankings: RankingFiles, columns: Columns, asked: Asked
) -> Callable[[JudgedConfig, OnStage], JudgedReport]:
    """Return how to compute the intervals of the one input that is given.

    Raises
    ------
    DataError
        If none or several are given, a part is missing, or an option would do nothing.
    """
    is_ranking = bool(rankings.runs or rankings.qrels or rankings.labels)
    pair = items.judge is not None or (items.human is not None and items.ragas is None)
    if sum((is_ranking, items.file is not None, items.sample, items.ragas is not None, pair)) != 1:
        raise DataError(
            "give one input: a file of items, --human-file with --judge-file, --ragas, --sample, "
            "or --run with --qrels and --labels"
        )
    if is_ranking:
        _check_ranking(rankings, columns, asked)
        return lambda config, on_stage: rankings.measure(asked.measures, config, on_stage)
    if pair and (items.human is None or items.judge is None):
        lacking = "--human-file" if items.human is None else "--judge-file"
        raise DataError(f"{lacking} missing: two files are joined by id, or give one file")
    if items.metric and items.ragas is None:
        raise DataError("--metric is a column of a --ragas result; a file's column is --judge")
    if items.ragas is not None and columns.judge:
        raise DataError("--judge is a column of a file; of a --ragas result it is --metric")
    if len(asked.measures) > 1:
        raise DataError(
            f"items have one value; --measure names it once, not {', '.join(asked.measures)}"
        )
    useless = columns.given() if items.sample else []
    useless += ["--tags"] if rankings.tags else []
    useless += ["--grades"] if rankings.grades else []
    if useless:
        raise DataError(f"{', '.join(useless)}: no use with this input; leave it out")
    return lambda config, on_stage: items.measure(columns, asked, config, on_stage)


def _check_ranking(rankings: RankingFiles, columns: Columns, asked: Asked) -> None:
    parts = (
        ("--run", rankings.runs),
        ("--qrels", rankings.qrels),
        ("--labels", rankings.labels),
    )
    missing = [name for name, value in parts if not value]
    if missing:
        raise DataError(
            f"{', '.join(missing)} missing: rankings need --run, --qrels (by people) and --labels "
            "(by the judge)"
        )
    if asked.bounds is not None or asked.worst_case:
        raise DataError(
            "--bounds and --worst-case are for items; for rankings see --failures of "
            "rag-sourcebias judge relevance"
        )
    if columns.given():
        raise DataError(f"{', '.join(columns.given())}: no use with rankings; leave it out")
