"""Parity calibrations with an offset of one's own."""

from __future__ import annotations

from intervals import around

from rag_sourcebias.debias.parity import ParityCalibration


def offset(
    by: float, *, half: float = 0.0, encoder: str = "e1", sources: tuple[str, ...] = ("llm:x",)
) -> ParityCalibration:
    """Return a calibration that adds ``by`` to each source."""
    return ParityCalibration(
        encoder=encoder,
        baseline="human",
        sources=sources,
        gaps=(around(by, half, n=300),) * len(sources),
        n_pairs=(300,) * len(sources),
    )
