"""What was done to the systems of a before/after comparison."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.parity import ParityCalibration
from rag_sourcebias.mitigate.projected_encoder import ProjectedEncoder
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.protocols import RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types.debias_report import DebiasMethod

__all__ = ["described_methods", "unchecked_fit"]


def described_methods(
    after: Sequence[RetrieverSpec], methods: Sequence[DebiasMethod]
) -> tuple[DebiasMethod, ...]:
    """One description per changed system, in the order of the systems.

    Systems without a description get one from their own parts: ``"calibration"`` and
    ``"projection"`` where these are known, otherwise ``"model"``.

    Raises
    ------
    DataError
        If a name is described twice or belongs to no changed system.
    """
    given = {method.name: method for method in methods}
    names = [spec.name for spec in after]
    for method in methods:
        if method.name not in names or given[method.name] is not method:
            raise DataError(
                f"methods {[m.name for m in methods]} must describe changed systems, each at most "
                f"once; there are {names}"
            )
    return tuple(given.get(spec.name) or _of_parts(spec) for spec in after)


def unchecked_fit(
    methods: Sequence[DebiasMethod], fitted_texts: Collection[str]
) -> tuple[str, ...]:
    """Warn where it could not be checked whether judged pairs were fitted on."""
    fitted = [method.name for method in methods if method.kind != "model"]
    if fitted_texts or not fitted:
        return ()
    return (
        f"the texts that {', '.join(fitted)} was fitted on were not given: whether it is judged "
        "on pairs it was fitted on is not checked",
    )


def _of_parts(spec: RetrieverSpec) -> DebiasMethod:
    settings = dict(spec.settings)
    if isinstance(spec, RescoredSpec) and isinstance(spec.rescorer, ParityCalibration):
        return DebiasMethod(
            name=spec.name,
            kind="calibration",
            settings=settings,
            n_pairs=sum(spec.rescorer.n_pairs),
        )
    if isinstance(spec, DenseSpec) and isinstance(spec.encoder, ProjectedEncoder):
        return DebiasMethod(
            name=spec.name,
            kind="projection",
            settings=settings,
            n_pairs=spec.encoder.projection.n_pairs,
        )
    return DebiasMethod(name=spec.name, kind="model", settings=settings)
