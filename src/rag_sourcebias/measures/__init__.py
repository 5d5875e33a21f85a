"""What is measured: ranking quality per source, twins, exposure, text."""

from rag_sourcebias.measures.exposure import (
    Exposure,
    attention_weights,
    awrf,
    delta_ndsr,
    exposure,
)
from rag_sourcebias.measures.ranking import MEASURES, group_scores, score_run
from rag_sourcebias.measures.source import relative_delta, source_codes_for, source_scores
from rag_sourcebias.measures.text import jaccard, match_lengths, mean_words, overlap, word_counts
from rag_sourcebias.measures.twins import TwinRanks, count_pairs, other_above, twin_ranks

__all__ = [
    "MEASURES",
    "Exposure",
    "TwinRanks",
    "attention_weights",
    "awrf",
    "count_pairs",
    "delta_ndsr",
    "exposure",
    "group_scores",
    "jaccard",
    "match_lengths",
    "mean_words",
    "other_above",
    "overlap",
    "relative_delta",
    "score_run",
    "source_codes_for",
    "source_scores",
    "twin_ranks",
    "word_counts",
]
