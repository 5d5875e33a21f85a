"""What a command of ``debias`` works on: pairs to fit on, data to judge on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rag_sourcebias.cli.debias_data import FittingData, fitted_sources, read_fitting
from rag_sourcebias.cli.debias_judging import Figures, Judging, judging
from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.twin_texts import TwinTexts, twin_texts

__all__ = ["Job", "prepare"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """Pairs of one or several LLM sources, and the data for the report.

    Parameters
    ----------
    fitting : FittingData
    judged : Judging
    sources : tuple of str
    """

    fitting: FittingData
    judged: Judging
    sources: tuple[str, ...]

    @property
    def source(self) -> str:
        """The source, where there is one."""
        return self.sources[0]

    @property
    def baseline(self) -> str:
        """Source of the originals."""
        return self.judged.config.baseline_source

    @cached_property
    def excluded(self) -> frozenset[str]:
        """Pair ids that are not fitted on."""
        return self.judged.excluded(self.fitting, self.sources)

    @cached_property
    def twins_of(self) -> tuple[TwinTexts, ...]:
        """Pairs that are fitted on, of each source."""
        return tuple(
            twin_texts(
                self.fitting.corpus,
                source=source,
                baseline=self.baseline,
                qrels=self.fitting.qrels,
                exclude=self.excluded,
            )
            for source in self.sources
        )

    @property
    def twins(self) -> TwinTexts:
        """Pairs of the source."""
        return self.twins_of[0]

    @property
    def fitted_texts(self) -> frozenset[str]:
        """Originals of the pairs."""
        return frozenset(text for twins in self.twins_of for text in twins.baseline_texts)


def prepare(
    folder: Path | None,
    *,
    sample: bool,
    split: str,
    source: str | None,
    baseline_source: str,
    judge: Sequence[str] | None,
    all_pairs: bool = False,
    several: bool = False,
    report: Path | None,
    unseen: bool,
    figures: Figures,
    seed: int,
) -> Job:
    """Read and check all data of a command, before any model is loaded.

    Parameters
    ----------
    several : bool
        Whether more than one source can be fitted on.
    """
    fitting = read_fitting(folder, sample=sample, split=split, all_pairs=all_pairs)
    sources = fitted_sources(fitting, source, baseline=baseline_source)
    if len(sources) > 1 and not several:
        raise DataError(
            f"{fitting.name} has pairs of {', '.join(sources)}: name one with --source {sources[0]}"
        )
    judged = judging(
        judge, fitting, report=report, unseen=unseen, figures=figures,
        baseline_source=baseline_source, seed=seed,
    )  # fmt: skip
    job = Job(fitting=fitting, judged=judged, sources=sources)
    try:
        _ = job.twins_of  # says what is missing while nothing has been done
    except DataError as error:
        if not job.excluded:
            raise
        raise DataError(
            f"{error} (--unseen left out {len(job.excluded)} pairs that the judged data judge)"
        ) from error
    return job
