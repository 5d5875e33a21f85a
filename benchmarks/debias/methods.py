"""What is fitted without training: projections of vectors and calibrated scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.core.tags import TwinTexts
from rag_sourcebias.debias.data import DebiasMethod
from rag_sourcebias.debias.fit import fit_parity_calibration, fit_source_projection
from rag_sourcebias.debias.parity import ParityCalibration, ScoreMap
from rag_sourcebias.debias.projection import ProjectedEncoder
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.retrieval.search import DenseSpec

PROJECTIONS = {"pca": ("pca", 4), "mean": ("mean", 1)}
FORMS = ("offset", "quantiles")
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
UNSEEN = ", unseen pairs"


@dataclass(frozen=True)
class System:
    """A changed system, and how it is built for a data set."""

    method: DebiasMethod
    spec_for: Callable[[Dataset], RetrieverSpec]


def projections(
    twins: TwinTexts, encoder: Encoder, *, fitted_on: str, suffix: str = ""
) -> list[System]:
    found = []
    for method, directions in PROJECTIONS.values():
        fitted = fit_source_projection(twins, encoder, method=method, n_directions=directions)
        name = f"projection, {method}" + (f" {directions}" if directions > 1 else "") + suffix
        spec = DenseSpec(ProjectedEncoder(encoder, fitted, name=name))
        described = DebiasMethod(
            name=name,
            kind="projection",
            settings={
                "method": method,
                "directions": str(directions),
                "strength": "1",
                "reliability": f"{fitted.reliability:.3f}",
            },
            fitted_on=fitted_on,
            n_pairs=fitted.n_pairs,
        )
        found.append(System(described, lambda _, spec=spec: spec))
    return found


def calibrations(
    train: Dataset,
    encoder: Encoder,
    *,
    fitted_on: str,
    exclude: Collection[str] = (),
    suffix: str = "",
) -> list[System]:
    found = []
    for form in FORMS:
        fitted = fit_parity_calibration(train, encoder, form=form, exclude=exclude)
        name = f"calibration, {form}{suffix}"
        gap = fitted.gaps[0]
        described = DebiasMethod(
            name=name,
            kind="calibration",
            settings={
                "form": form,
                "mean gap": f"{gap.estimate:+.5f} [{gap.lower:+.5f}, {gap.upper:+.5f}]",
            },
            fitted_on=fitted_on,
            n_pairs=fitted.n_pairs[0],
        )

        def spec_for(data: Dataset, fitted: ParityCalibration = fitted, name: str = name):
            calibration = carried_over(fitted, llm_sources(data))
            return RescoredSpec(DenseSpec(encoder), calibration, name=name)

        found.append(System(described, spec_for))
    return found


def dial(train: Dataset, encoder: Encoder, *, fitted_on: str) -> dict[str, System]:
    """Multiples of the fitted offset: the dial of [K] §5.2 without any training."""
    fitted = fit_parity_calibration(train, encoder)
    found = {}
    for multiple in MULTIPLES:
        name = f"calibration, offset × {multiple:g}"
        moved = ScoreMap(knots=np.zeros(1), values=fitted.maps[0].values * multiple)
        scaled = replace(fitted, maps=(moved,))
        described = DebiasMethod(
            name=name,
            kind="calibration",
            settings={"form": "offset", "multiple": f"{multiple:g}"},
            fitted_on=fitted_on,
            n_pairs=fitted.n_pairs[0],
        )

        def spec_for(data: Dataset, scaled: ParityCalibration = scaled, name: str = name):
            calibration = carried_over(scaled, llm_sources(data))
            return RescoredSpec(DenseSpec(encoder), calibration, name=name)

        found[name] = System(described, spec_for)
    return found


def llm_sources(data: Dataset) -> tuple[str, ...]:
    return tuple(source for source in data.corpus.tags.sources if source != "human")


def carried_over(fitted: ParityCalibration, sources: Sequence[str]) -> ParityCalibration:
    """Apply what was fitted on the one LLM there was to the LLM sources of another data set."""
    n = len(sources)
    return replace(
        fitted,
        sources=tuple(sources),
        maps=fitted.maps[:1] * n,
        gaps=fitted.gaps[:1] * n,
        n_pairs=fitted.n_pairs[:1] * n,
    )
