"""What is measured: ranking quality per source, twins, exposure, text.

What concerns answers is loaded when first used: rankings need nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias._lazy import lazy_names
from rag_sourcebias.measures.chance import ChanceScores, chance_scores
from rag_sourcebias.measures.exposure import (
    Exposure,
    attention_weights,
    awrf,
    delta_ndsr,
    exposure,
)
from rag_sourcebias.measures.ranking import MEASURES, group_scores, score_run
from rag_sourcebias.measures.source import relative_delta, source_codes_for, source_scores
from rag_sourcebias.measures.style import (
    max_unfairness,
    null_unfairness,
    summarise_unfairness,
    unfairness,
    unfairness_score,
)
from rag_sourcebias.measures.style_length import LengthAdjusted, length_adjusted
from rag_sourcebias.measures.style_matching import MatchingEffect, matching_effect
from rag_sourcebias.measures.style_matrix import StyleMatrix
from rag_sourcebias.measures.style_ranks import StyleRanks, rank_versions, style_ranks
from rag_sourcebias.measures.style_run import run_style_ranks
from rag_sourcebias.measures.text import (
    cut_to_words,
    jaccard,
    match_lengths,
    mean_words,
    overlap,
    word_counts,
)
from rag_sourcebias.measures.text_similarity import meteor_mode
from rag_sourcebias.measures.text_values import (
    TEXT_STATISTICS,
    installed_statistics,
    text_scores,
)
from rag_sourcebias.measures.twins import TwinRanks, count_pairs, other_above, twin_ranks

if TYPE_CHECKING:
    from rag_sourcebias.measures.adjusted_similarity import (
        AdjustedScores,
        ResponseAdjuster,
        cosine_similarities,
        fit_similarity_adjustment,
    )
    from rag_sourcebias.measures.adjustment_file import read_adjustment, write_adjustment
    from rag_sourcebias.measures.answer_adjustment import (
        StyleAdjustment,
        cross_fit_adjustment,
        fit_adjustment,
    )
    from rag_sourcebias.measures.answer_similarity import reference_similarity, split_references
    from rag_sourcebias.measures.answer_verdicts import (
        rank_inversions,
        threshold_verdicts,
        verdict_flips,
    )
    from rag_sourcebias.measures.answers import (
        PairedAnswers,
        answer_spread,
        correctness_auc,
        paired_correct,
        system_aucs,
    )

_HOMES = {
    "adjusted_similarity": (
        "AdjustedScores",
        "ResponseAdjuster",
        "cosine_similarities",
        "fit_similarity_adjustment",
    ),
    "adjustment_file": (
        "read_adjustment",
        "write_adjustment",
    ),
    "answer_adjustment": (
        "StyleAdjustment",
        "cross_fit_adjustment",
        "fit_adjustment",
    ),
    "answer_similarity": (
        "reference_similarity",
        "split_references",
    ),
    "answer_verdicts": (
        "rank_inversions",
        "threshold_verdicts",
        "verdict_flips",
    ),
    "answers": (
        "PairedAnswers",
        "answer_spread",
        "correctness_auc",
        "paired_correct",
        "system_aucs",
    ),
}

__all__ = [
    "MEASURES",
    "TEXT_STATISTICS",
    "AdjustedScores",
    "ChanceScores",
    "Exposure",
    "LengthAdjusted",
    "MatchingEffect",
    "PairedAnswers",
    "ResponseAdjuster",
    "StyleAdjustment",
    "StyleMatrix",
    "StyleRanks",
    "TwinRanks",
    "answer_spread",
    "attention_weights",
    "awrf",
    "chance_scores",
    "correctness_auc",
    "cosine_similarities",
    "count_pairs",
    "cross_fit_adjustment",
    "cut_to_words",
    "delta_ndsr",
    "exposure",
    "fit_adjustment",
    "fit_similarity_adjustment",
    "group_scores",
    "installed_statistics",
    "jaccard",
    "length_adjusted",
    "match_lengths",
    "matching_effect",
    "max_unfairness",
    "mean_words",
    "meteor_mode",
    "null_unfairness",
    "other_above",
    "overlap",
    "paired_correct",
    "rank_inversions",
    "rank_versions",
    "read_adjustment",
    "reference_similarity",
    "relative_delta",
    "run_style_ranks",
    "score_run",
    "source_codes_for",
    "source_scores",
    "split_references",
    "style_ranks",
    "summarise_unfairness",
    "system_aucs",
    "text_scores",
    "threshold_verdicts",
    "twin_ranks",
    "unfairness",
    "unfairness_score",
    "verdict_flips",
    "word_counts",
    "write_adjustment",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
