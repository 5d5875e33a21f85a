"""Confidence intervals for evaluations that a judge labelled and people labelled in part."""

from rag_sourcebias.intervals.bootstrap import bootstrap_interval
from rag_sourcebias.intervals.classical import (
    clopper_pearson_interval,
    t_interval,
    wilson_interval,
)
from rag_sourcebias.intervals.comparison import (
    difference_interval,
    unpaired_difference_interval,
    win_rate_interval,
)
from rag_sourcebias.intervals.mean import mean_interval
from rag_sourcebias.intervals.ppi import (
    crossfit_ppi_interval,
    paper_ppi_interval,
    ppi_interval,
)
from rag_sourcebias.intervals.ranking import JudgedRanking
from rag_sourcebias.intervals.relative_delta import judged_relative_delta_interval
from rag_sourcebias.intervals.utility import RankedLabels

__all__ = [
    "JudgedRanking",
    "RankedLabels",
    "bootstrap_interval",
    "clopper_pearson_interval",
    "crossfit_ppi_interval",
    "difference_interval",
    "judged_relative_delta_interval",
    "mean_interval",
    "paper_ppi_interval",
    "ppi_interval",
    "t_interval",
    "unpaired_difference_interval",
    "wilson_interval",
    "win_rate_interval",
]
