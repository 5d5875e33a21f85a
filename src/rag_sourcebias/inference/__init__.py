"""How sure one can be: intervals, tests, corrections."""

from rag_sourcebias.inference.clusters import (
    bounded_mean,
    clustered_difference,
    clustered_mean,
    clustered_standardised_mean,
    difference_test,
)
from rag_sourcebias.inference.delta_change import delta_change_interval, delta_change_test
from rag_sourcebias.inference.friedman import friedman_test, kendalls_w
from rag_sourcebias.inference.logit import win_rate_at
from rag_sourcebias.inference.multiplicity import adjust_p_values
from rag_sourcebias.inference.multiway import (
    independent_share,
    multiway_variance,
    require_clusters,
)
from rag_sourcebias.inference.noisy_tags import DetectorQuality, correct_relative_delta
from rag_sourcebias.inference.noninferiority import CrossedMean, noninferiority_test
from rag_sourcebias.inference.rank_pairs import compare_ranks
from rag_sourcebias.inference.ratio import relative_delta_interval
from rag_sourcebias.inference.resampling import bootstrap_means, bootstrap_relative_delta
from rag_sourcebias.inference.spread import mean_differences, spread_interval
from rag_sourcebias.inference.verdicts import queries_for_verdict, skew_code
from rag_sourcebias.inference.weighted import BoundedRatio

__all__ = [
    "BoundedRatio",
    "CrossedMean",
    "DetectorQuality",
    "adjust_p_values",
    "bootstrap_means",
    "bootstrap_relative_delta",
    "bounded_mean",
    "clustered_difference",
    "clustered_mean",
    "clustered_standardised_mean",
    "compare_ranks",
    "correct_relative_delta",
    "delta_change_interval",
    "delta_change_test",
    "difference_test",
    "friedman_test",
    "independent_share",
    "kendalls_w",
    "mean_differences",
    "multiway_variance",
    "noninferiority_test",
    "queries_for_verdict",
    "relative_delta_interval",
    "require_clusters",
    "skew_code",
    "spread_interval",
    "win_rate_at",
]
