"""Making a retriever indifferent to who wrote a text: projections, calibrated scores, search."""

from rag_sourcebias.mitigate.directions import fit_projection
from rag_sourcebias.mitigate.exposure_rerank import ExposureReranker
from rag_sourcebias.mitigate.fit import fit_parity_calibration, fit_source_projection
from rag_sourcebias.mitigate.parity import ParityCalibration
from rag_sourcebias.mitigate.parity_file import read_parity, write_parity
from rag_sourcebias.mitigate.parity_fit import fit_parity, scored_twins
from rag_sourcebias.mitigate.perplexity_correction import (
    PerplexityCorrection,
    PerplexityRescorer,
    fit_perplexity_correction,
)
from rag_sourcebias.mitigate.projected_encoder import ProjectedEncoder
from rag_sourcebias.mitigate.projection import SourceProjection, read_projection, write_projection
from rag_sourcebias.mitigate.rescored import RescoredSpec
from rag_sourcebias.mitigate.search import search_debias_weight, split_queries
from rag_sourcebias.mitigate.twin_texts import TrainingPairs, TwinTexts, training_pairs, twin_texts

__all__ = [
    "ExposureReranker",
    "ParityCalibration",
    "PerplexityCorrection",
    "PerplexityRescorer",
    "ProjectedEncoder",
    "RescoredSpec",
    "SourceProjection",
    "TrainingPairs",
    "TwinTexts",
    "fit_parity",
    "fit_parity_calibration",
    "fit_perplexity_correction",
    "fit_projection",
    "fit_source_projection",
    "read_parity",
    "read_projection",
    "scored_twins",
    "search_debias_weight",
    "split_queries",
    "training_pairs",
    "twin_texts",
    "write_parity",
    "write_projection",
]
