"""The verb: prove what a mitigation changed in skew and what it cost in quality."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from rag_sourcebias.audit.data_summary import summarise_dataset
from rag_sourcebias.audit.debias_changes import (
    quality_changes,
    skew_changes,
    unchanged_qualities,
)
from rag_sourcebias.audit.debias_data import debias_warnings, judged_pairs, seen_pairs
from rag_sourcebias.audit.debias_methods import described_methods, unchecked_fit
from rag_sourcebias.audit.debias_scores import other_sources, score_debias, two_sources
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.errors import DataError
from rag_sourcebias.inference import adjust_p_values
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias import DebiasSearch
from rag_sourcebias.types.debias_report import (
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasReport,
)
from rag_sourcebias.types.debias_scores import DebiasScores
from rag_sourcebias.types.debias_training import TrainingHistory

__all__ = ["measure_debias"]


def measure_debias(
    before: RetrieverSpec,
    after: Sequence[RetrieverSpec],
    datasets: Sequence[Dataset],
    *,
    methods: Sequence[DebiasMethod] = (),
    fitted_texts: Collection[str] = (),
    other: str | None = None,
    config: DebiasConfig | None = None,
    depth: int = 100,
    search: DebiasSearch | None = None,
    searched: str = "",
    search_data: str = "",
    training: Sequence[TrainingHistory] = (),
    on_stage: Callable[[str], None] | None = None,
) -> DebiasReport:
    """Compare a system with what mitigations made of it, on every data set.

    Parameters
    ----------
    before : RetrieverSpec
        The unchanged system.
    after : sequence of RetrieverSpec
        The changed ones; all names must differ.
    datasets : sequence of Dataset
        With judged queries and tagged documents; names must differ.
    methods : sequence of DebiasMethod, optional
        What was done, by name of the changed system; read off the system where it is not given.
    fitted_texts : collection of str
        Baseline texts of all pairs that any method was fitted on; judged pairs among them are
        counted and warned of.
    other : str, optional
        Source compared with the baseline. By default every other source is, one by one, each in a
        mixed corpus of its own (:func:`~rag_sourcebias.audit.debias_scores.score_debias`).
    config : DebiasConfig, optional
    depth : int
        Documents retrieved per query; at least the largest cutoff.
    search, searched, search_data, training
        Put into the report as they are.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    DebiasReport

    Raises
    ------
    DataError
        If names repeat, a source is missing or has no relevant document, a method belongs to no
        system, or no judged query has a text.
    """
    config = config or DebiasConfig()
    names = _distinct("system", [before.name, *(spec.name for spec in after)])
    if len(names) < 2:
        raise DataError("there is nothing to compare: give at least one changed system")
    if not datasets:
        raise DataError("there is nothing to judge on: give at least one data set")
    _distinct("data set", [dataset.name for dataset in datasets])
    described = described_methods(after, methods)
    work = _Work(
        before=before,
        after=tuple(after),
        config=config,
        depth=depth,
        fitted_texts=frozenset(fitted_texts),
        on_stage=on_stage or (lambda _: None),
    )
    # Sources are checked for all data before anything is retrieved.
    parts = [
        (two_sources(dataset, config.baseline_source, source), source)
        for dataset in datasets
        for source in ((other,) if other else other_sources(dataset, config.baseline_source))
    ]
    found, n_tests = _adjusted([work.measure(dataset, source) for dataset, source in parts])
    return DebiasReport(
        config=config,
        methods=described,
        datasets=found,
        family=(
            "Holm correction over all changed systems × data sets × sources × cutoffs, tests of "
            "no change in Relative Δ"
        ),
        n_tests=n_tests,
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        search=search,
        searched=searched,
        search_data=search_data,
        training=tuple(training),
        warnings=unchecked_fit(described, fitted_texts),
    )


@dataclass(frozen=True, kw_only=True)
class _Work:
    """One comparison in progress."""

    before: RetrieverSpec
    after: tuple[RetrieverSpec, ...]
    config: DebiasConfig
    depth: int
    fitted_texts: frozenset[str] = field(repr=False)
    on_stage: Callable[[str], None]

    def measure(self, dataset: Dataset, other: str) -> DebiasDataset:
        """Score and compare all systems on a data set of two sources."""
        config = self.config
        reference = self._scores(self.before, dataset, other)
        pairs = judged_pairs(dataset, config.baseline_source, other)
        n_seen = seen_pairs(dataset, config.baseline_source, pairs, self.fitted_texts)
        outcomes = [DebiasOutcome(scores=reference, skew=skew_changes(None, reference, config))]
        for spec in self.after:
            scores = self._scores(spec, dataset, other)
            self.on_stage(f"{dataset.name}: {spec.name}: comparing")
            outcomes.append(
                DebiasOutcome(
                    scores=scores,
                    skew=skew_changes(reference, scores, config),
                    quality=quality_changes(
                        reference,
                        scores,
                        config,
                        unchanged=unchanged_qualities(self.before, spec),
                    ),
                    n_seen=n_seen,
                )
            )
        return DebiasDataset(
            data=summarise_dataset(dataset),
            other=other,
            n_pairs=len(pairs),
            outcomes=tuple(outcomes),
            warnings=tuple(debias_warnings(dataset, outcomes, config, n_pairs=len(pairs))),
        )

    def _scores(self, spec: RetrieverSpec, dataset: Dataset, other: str) -> DebiasScores:
        return score_debias(
            spec,
            dataset,
            self.config,
            other=other,
            depth=self.depth,
            on_stage=lambda stage: self.on_stage(f"{dataset.name}: {stage}"),
        )


def _distinct(what: str, names: list[str]) -> list[str]:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(
            f"{what} names must differ, {repeated[0]!r} occurs {names.count(repeated[0])} times in "
            f"{names}; rename one"
        )
    return names


def _adjusted(datasets: Sequence[DebiasDataset]) -> tuple[tuple[DebiasDataset, ...], int]:
    """Adjust the tests of a change in skew over the whole report."""
    raw = [s.p_value for d in datasets for o in d.outcomes for s in o.skew]
    values = iter(adjust_p_values(raw))
    done = tuple(
        replace(
            dataset,
            outcomes=tuple(
                replace(o, skew=tuple(replace(s, p_adjusted=next(values)) for s in o.skew))
                for o in dataset.outcomes
            ),
        )
        for dataset in datasets
    )
    return done, sum(p is not None for p in raw)
