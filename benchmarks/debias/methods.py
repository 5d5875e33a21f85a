"""What is fitted without training: projections of vectors and calibrated scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.core.tags import TwinTexts
from rag_sourcebias.debias.data import DebiasMethod
from rag_sourcebias.debias.fit import fit_parity_calibration, fit_source_projection
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.projection import ProjectedEncoder
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.retrieval.search import DenseSpec

PROJECTIONS = {"pca": ("pca", 4), "mean": ("mean", 1)}
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
    fitted = fit_parity_calibration(train, encoder, exclude=exclude)
    gap = fitted.gaps[0]
    shown = f"{gap.estimate:+.5f} [{gap.lower:+.5f}, {gap.upper:+.5f}]"
    name = f"calibration, offset{suffix}"
    return [
        calibrated(fitted, encoder, name=name, fitted_on=fitted_on, settings={"mean gap": shown})
    ]


def calibrated(
    fitted: ParityCalibration,
    encoder: Encoder,
    *,
    name: str,
    fitted_on: str,
    settings: dict[str, str],
) -> System:
    described = DebiasMethod(
        name=name,
        kind="calibration",
        settings=settings,
        fitted_on=fitted_on,
        n_pairs=fitted.n_pairs[0],
    )

    def spec_for(data: Dataset) -> RescoredSpec:
        calibration = carried_over(fitted, llm_sources(data))
        return RescoredSpec(DenseSpec(encoder), calibration, name=name)

    return System(described, spec_for)


def dial(train: Dataset, encoder: Encoder, *, fitted_on: str) -> dict[str, System]:
    """Multiples of the fitted offset: the dial of [K] §5.2 without any training."""
    fitted = fit_parity_calibration(train, encoder)
    found = {}
    for multiple in MULTIPLES:
        name = f"calibration, offset × {multiple:g}"
        gap = fitted.gaps[0]
        moved = replace(
            gap,
            estimate=gap.estimate * multiple,
            lower=gap.lower * multiple,
            upper=gap.upper * multiple,
        )
        scaled = replace(fitted, gaps=(moved,))
        settings = {"multiple": f"{multiple:g}"}
        found[name] = calibrated(scaled, encoder, name=name, fitted_on=fitted_on, settings=settings)
    return found


def llm_sources(data: Dataset) -> tuple[str, ...]:
    return tuple(source for source in data.corpus.tags.sources if source != "human")


def carried_over(fitted: ParityCalibration, sources: Sequence[str]) -> ParityCalibration:
    """Apply what was fitted on the one LLM there was to the LLM sources of another data set."""
    n = len(sources)
    return replace(
        fitted,
        sources=tuple(sources),
        gaps=fitted.gaps[:1] * n,
        n_pairs=fitted.n_pairs[:1] * n,
    )
