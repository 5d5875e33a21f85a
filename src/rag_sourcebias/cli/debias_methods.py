"""What ``debias`` says of a method: checked settings, and its row in the report."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from rag_sourcebias.cli.checks import choice
from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.parity import ParityCalibration
from rag_sourcebias.mitigate.projection import SourceProjection
from rag_sourcebias.types import DebiasMethod

__all__ = [
    "ProjectionChoice",
    "calibration_method",
    "distinct_name",
    "projection_choice",
    "projection_settings",
]

_PCA_DIRECTIONS = 4


class ProjectionChoice(NamedTuple):
    """Checked options of a projection."""

    method: Any
    directions: int
    sides: Any


def projection_choice(method: str, directions: int | None, sides: str) -> ProjectionChoice:
    """Check the options of a projection."""
    choice("method", method, ("pca", "mean", "leace"))
    choice("sides", sides, ("both", "documents"))
    if method != "pca" and directions not in (None, 1):
        raise DataError(
            f"--directions {directions}: --method {method} has one direction; use --method pca"
        )
    default = _PCA_DIRECTIONS if method == "pca" else 1
    return ProjectionChoice(method, default if directions is None else directions, sides)


def projection_settings(found: SourceProjection) -> dict[str, str]:
    """Return what a report states of a projection."""
    return {
        "method": found.method,
        "directions": str(found.directions.shape[1]),
        "strength": f"{found.strength:g}",
        "sides": found.sides,
        "reliability": f"{found.reliability:.3f}",
    }


def calibration_method(
    found: ParityCalibration, name: str, *, fitted_on: str, **settings: str
) -> DebiasMethod:
    """Return the row of a calibration in a report."""
    gaps = {
        f"gap {source}": f"{gap.estimate:+.4f} [{gap.lower:+.4f}, {gap.upper:+.4f}]"
        for source, gap in zip(found.sources, found.gaps, strict=True)
    }
    needs = {"needs": "source tags of what is retrieved"}
    return DebiasMethod(
        name=name,
        kind="calibration",
        settings={"form": found.form, **settings, **needs, **gaps},
        fitted_on=fitted_on,
        n_pairs=sum(found.n_pairs),
    )


def distinct_name(name: str, taken: Collection[str]) -> str:
    """Return the name, numbered where another system has it."""
    number = 2
    found = name
    while found in taken:
        found, number = f"{name} ({number})", number + 1
    return found
