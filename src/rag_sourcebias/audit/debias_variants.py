"""The systems a search over the strength of a projection, or the size of an offset, tries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_sourcebias.audit.debias_groups import DebiasVariant
from rag_sourcebias.audit.remembered import RememberedEncoder, RememberedSpec
from rag_sourcebias.mitigate.fit import fit_source_projection
from rag_sourcebias.mitigate.parity import ParityCalibration
from rag_sourcebias.mitigate.parity_scale import scaled_calibration
from rag_sourcebias.mitigate.projected_encoder import ProjectedEncoder
from rag_sourcebias.mitigate.projection import ProjectionMethod, Sides
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.mitigate.twin_texts import TwinTexts
from rag_sourcebias.protocols import Encoder, RetrieverSpec
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.retrieval.vectors import Similarity

__all__ = ["calibration_variants", "projection_variants"]


def projection_variants(
    encoder: Encoder,
    twins: TwinTexts,
    *,
    strengths: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    method: ProjectionMethod = "pca",
    n_directions: int = 4,
    sides: Sides = "both",
    similarity: Similarity = "cosine",
) -> list[DebiasVariant]:
    """Fit a projection once and apply it at every strength; 0 is the encoder itself.

    Texts are encoded once: the vectors of every text that is searched stay in memory.

    Parameters
    ----------
    strengths : sequence of float in [0, 1]
    twins, method, n_directions, sides
        As in :func:`~rag_sourcebias.mitigate.fit.fit_source_projection`.
    similarity : {"cosine", "dot"}
        Of the search.
    """
    remembered = RememberedEncoder(encoder)
    fitted = fit_source_projection(
        twins, remembered, method=method, n_directions=n_directions, sides=sides
    )
    return [
        DebiasVariant(
            weight=strength,
            spec=DenseSpec(
                ProjectedEncoder(
                    remembered,
                    replace(fitted, strength=strength),
                    name=f"{encoder.name}+projection×{strength:g}",
                )
                if strength
                else remembered,
                similarity=similarity,
            ),
        )
        for strength in strengths
    ]


def calibration_variants(
    spec: RetrieverSpec,
    calibration: ParityCalibration,
    *,
    shares: Sequence[float] = (0, 0.25, 0.5, 0.75, 1, 1.25),
) -> list[DebiasVariant]:
    """Rescore a retriever with shares of a calibration; 0 is the retriever itself.

    The first stage retrieves once for all of them.

    Parameters
    ----------
    spec : RetrieverSpec
        The first stage, with the encoder the calibration was fitted for.
    shares : sequence of float
        At least 0; above 1 corrects more than twins ask for.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.mitigate.parity_scale.scaled_calibration`.
    """
    first = RememberedSpec(spec)
    return [
        DebiasVariant(
            weight=share,
            spec=RescoredSpec(
                first,
                scaled_calibration(calibration, share),
                name=f"{spec.name}+parity×{share:g}",
            )
            if share
            else first,
        )
        for share in shares
    ]
