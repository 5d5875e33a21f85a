"""What was done to a system, as the report on a mitigation states it."""

from rag_sourcebias.core.protocols import RetrieverSpec
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.debias.data import DebiasMethod
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, described
from rag_sourcebias.retrieval.projection import ProjectedEncoder, SourceProjection


def method_of(spec: RetrieverSpec) -> DebiasMethod:
    """Tell by the parts of a system what was done to it."""
    rescorer, encoder = getattr(spec, "rescorer", None), getattr(spec, "encoder", None)
    if isinstance(rescorer, ParityCalibration):
        return calibration_method(rescorer, spec.name)
    if isinstance(rescorer, TwinRescorer):
        return twins_method(rescorer.groups, spec.name)
    if isinstance(encoder, ProjectedEncoder):
        return projection_method(encoder.projection, spec.name)
    return DebiasMethod(name=spec.name, kind="model", settings=dict(spec.settings))


def calibration_method(
    calibration: ParityCalibration, name: str, *, fitted_on: str = ""
) -> DebiasMethod:
    """Describe a calibration."""
    gaps = {
        f"gap {source}": f"{gap.estimate:+.4f} [{gap.lower:+.4f}, {gap.upper:+.4f}]"
        for source, gap in zip(calibration.sources, calibration.gaps, strict=True)
    }
    return DebiasMethod(
        name=name,
        kind="calibration",
        settings={"needs": "source tags of what is retrieved", **gaps},
        fitted_on=fitted_on,
        n_pairs=sum(calibration.n_pairs),
    )


def twins_method(groups: TwinGroups, name: str, *, fitted_on: str = "") -> DebiasMethod:
    """Describe groups of copies that share their score."""
    return DebiasMethod(name=name, kind="twins", settings=described(groups), fitted_on=fitted_on)


def projection_method(
    projection: SourceProjection,
    name: str,
    *,
    fitted_on: str = "",
    encode_cost: float | None = None,
) -> DebiasMethod:
    """Describe a projection."""
    return DebiasMethod(
        name=name,
        kind="projection",
        settings={
            "method": projection.method,
            "directions": str(projection.directions.shape[1]),
            "strength": f"{projection.strength:g}",
            "reliability": f"{projection.reliability:.3f}",
        },
        fitted_on=fitted_on,
        n_pairs=projection.n_pairs,
        encode_cost=encode_cost,
    )


def training_method(
    history: TrainingHistory, name: str, *, fitted_on: str, encode_cost: float | None = None
) -> DebiasMethod:
    """Describe a training."""
    return DebiasMethod(
        name=name,
        kind="training",
        settings=history.settings,
        fitted_on=fitted_on,
        n_pairs=history.n_pairs,
        encode_cost=encode_cost,
    )
