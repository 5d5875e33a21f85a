"""The before/after report that every command of ``debias`` ends in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_sourcebias.cli import debias_options as opt
from rag_sourcebias.cli.checks import require_writable, whole_numbers
from rag_sourcebias.cli.console import Stages, err
from rag_sourcebias.cli.debias_data import FittingData, pair_texts, read_judged
from rag_sourcebias.cli.delivery import deliver
from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.twin_texts import twin_texts
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.types import Dataset, DebiasConfig, DebiasMethod, DebiasReport

__all__ = ["Figures", "Judging", "judging"]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What is measured, and what counts as good: options of every command that judges."""

    cutoffs: opt.Cutoffs = "1,3,5,10"
    target: opt.Target = 0.0
    tolerance: opt.Tolerance = 3.0
    margin: opt.Margin = 0.01
    confidence_level: opt.ConfidenceLevel = 0.95


@dataclass(frozen=True, kw_only=True, eq=False)
class Judging:
    """What a method is judged on, and how.

    Parameters
    ----------
    config : DebiasConfig
    datasets : tuple of Dataset
    cautions : tuple of str
        Why figures on these data say less than they seem to.
    folder : Path or None
        Of the report.
    unseen : bool
        Whether pairs that the data judge are left out of the fitting.
    """

    config: DebiasConfig
    datasets: tuple[Dataset, ...]
    cautions: tuple[str, ...]
    folder: Path | None
    unseen: bool

    def excluded(self, fitting: FittingData, sources: Sequence[str]) -> frozenset[str]:
        """Pair ids that must not be fitted on; texts say which, as ids differ between folders."""
        if not self.unseen:
            return frozenset()
        baseline = self.config.baseline_source
        texts = {
            text
            for data in self.datasets
            for text in pair_texts(data.corpus, data.qrels, baseline=baseline)
        }
        pairs = [twin_texts(fitting.corpus, source=s, baseline=baseline) for s in sources]
        return frozenset(
            pair
            for twins in pairs
            for pair, text in zip(twins.pair_ids, twins.baseline_texts, strict=True)
            if text in texts
        )

    def report(
        self,
        before: RetrieverSpec,
        after: Sequence[RetrieverSpec],
        *,
        methods: Sequence[DebiasMethod],
        progress: Stages,
        fitted_texts: frozenset[str] = frozenset(),
        **more: Any,  # noqa: ANN401 - of measure_debias
    ) -> DebiasReport:
        """Measure all systems on all data, with the cautions among the warnings."""
        from rag_sourcebias.audit.debias import measure_debias

        found = measure_debias(
            before,
            after,
            self.datasets,
            methods=methods,
            fitted_texts=fitted_texts,
            config=self.config,
            on_stage=progress.begin,
            **more,
        )
        return replace(found, warnings=(*self.cautions, *found.warnings))

    def deliver(self, report: DebiasReport) -> None:
        """Print the report, and write it where a folder was named."""
        deliver(report, self.folder)


def judging(
    judge: Sequence[str] | None,
    fitting: FittingData | None,
    *,
    report: Path | None,
    unseen: bool = False,
    figures: Figures,
    baseline_source: str,
    seed: int,
) -> Judging:
    """Check the options of the report and read the data, before any model is loaded."""
    for option, share in (
        ("margin", figures.margin),
        ("confidence-level", figures.confidence_level),
    ):
        if not 0 < share < 1:
            raise DataError(f"--{option} {share:g} is outside (0, 1); write a share, such as 0.05")
    if not -200 < figures.target < 200:
        raise DataError(
            f"--target {figures.target:g} is outside (-200, 200), the range of Relative Δ"
        )
    config = DebiasConfig(
        cutoffs=whole_numbers("cutoffs", figures.cutoffs),
        relative_margin=figures.margin,
        confidence_level=figures.confidence_level,
        target=figures.target,
        tolerance=figures.tolerance,
        baseline_source=baseline_source,
        seed=seed,
    )
    require_writable(report)
    datasets, cautions = read_judged(judge, fitting, unseen=unseen)
    for caution in cautions:
        err.print(f"[bold yellow]caution:[/] {caution}", highlight=False, soft_wrap=True)
    return Judging(
        config=config, datasets=datasets, cautions=cautions, folder=report, unseen=unseen
    )
