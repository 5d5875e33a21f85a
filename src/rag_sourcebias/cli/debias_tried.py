"""What ``debias search`` tries: one kind of system at several weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from rag_sourcebias.cli.debias_job import Job
from rag_sourcebias.cli.debias_methods import (
    ProjectionChoice,
    calibration_method,
    projection_settings,
)
from rag_sourcebias.cli.debias_models import encode_cost
from rag_sourcebias.mitigate.fit import fit_parity_calibration
from rag_sourcebias.mitigate.parity_file import write_parity
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types import DebiasMethod, TrainingHistory

if TYPE_CHECKING:
    from rag_sourcebias.audit.debias_search import DebiasVariant
    from rag_sourcebias.mitigate.parity import ParityForm

__all__ = ["TriedOffsets", "TriedStrengths", "TriedSystems"]


class TriedSystems(Protocol):
    """Systems at several weights, and what to make of one of them.

    ``variants`` hold weight 0, the model as it is.
    """

    searched: str
    deterministic: bool
    variants: Sequence[DebiasVariant]
    training: tuple[TrainingHistory, ...]

    def system(self, variant: DebiasVariant, name: str) -> RetrieverSpec:
        """Return a variant as it stands in the report."""
        ...

    def write(self, variant: DebiasVariant, path: Path) -> None:
        """Write a variant where it was asked for."""
        ...

    def method(self, variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:
        """Return its row in the report; ``path`` is None where it was not written."""
        ...


class TriedStrengths:
    """A projection at several strengths."""

    searched = "strength"
    deterministic = True
    training: tuple[TrainingHistory, ...] = ()

    def __init__(
        self,
        job: Job,
        model: str,
        before: Encoder,
        values: Sequence[float],
        chosen: ProjectionChoice,
    ) -> None:
        from rag_sourcebias.audit.debias_variants import projection_variants

        self._job = job
        self._model = model
        self._before = before
        self.variants: Sequence[DebiasVariant] = projection_variants(
            before,
            job.twins,
            strengths=values,
            method=chosen.method,
            n_directions=chosen.directions,
            sides=chosen.sides,
        )

    def system(self, variant: DebiasVariant, name: str) -> RetrieverSpec:
        """Return the projected encoder."""
        return DenseSpec(_encoder(variant), name=name)

    def write(self, variant: DebiasVariant, path: Path) -> None:
        """Write a model folder."""
        from rag_sourcebias.neural.projected import write_projected_model

        write_projected_model(self._model, _encoder(variant).projection, path)

    def method(self, variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:
        """Return what the projection is."""
        from rag_sourcebias.neural import SentenceEncoder

        cost = None
        if path is not None:
            cost = encode_cost(self._before, SentenceEncoder(path), self._job.twins.baseline_texts)
        return DebiasMethod(
            name=name,
            kind="projection",
            settings=projection_settings(_encoder(variant).projection),
            fitted_on=self._job.fitting.name,
            n_pairs=len(self._job.twins),
            encode_cost=cost,
        )


class TriedOffsets:
    """Shares of a parity calibration."""

    searched = "share of the calibration"
    deterministic = True
    training: tuple[TrainingHistory, ...] = ()

    def __init__(
        self, job: Job, before: Encoder, values: Sequence[float], form: ParityForm
    ) -> None:
        from rag_sourcebias.audit.debias_variants import calibration_variants

        self._job = job
        self._first = DenseSpec(before)
        fitted = fit_parity_calibration(
            job.fitting.judged,
            before,
            sources=[job.source],
            baseline=job.baseline,
            form=form,
            exclude=job.excluded,
        )
        self.variants: Sequence[DebiasVariant] = calibration_variants(
            self._first, fitted, shares=values
        )

    def system(self, variant: DebiasVariant, name: str) -> RetrieverSpec:
        """Return the retriever with its calibrated scores."""
        # over the first stage itself: a report tells from it what cannot have changed
        return RescoredSpec(self._first, _calibration(variant), name=name)

    def write(self, variant: DebiasVariant, path: Path) -> None:
        """Write the calibration as JSON."""
        write_parity(_calibration(variant), path)

    def method(self, variant: DebiasVariant, name: str, path: Path | None) -> DebiasMethod:  # noqa: ARG002
        """Return what the calibration is."""
        return calibration_method(
            _calibration(variant),
            name,
            fitted_on=self._job.fitting.name,
            share=f"{variant.weight:g}",
        )


def _encoder(variant: DebiasVariant) -> Any:  # noqa: ANN401 - projected or plain
    return cast("DenseSpec", variant.spec).encoder


def _calibration(variant: DebiasVariant) -> Any:  # noqa: ANN401
    return cast("RescoredSpec", variant.spec).rescorer
