"""Coverage studies: whether intervals hold the truth as often as they say."""

from rag_sourcebias.intervals.coverage.study import CoverageStudy, coverage_study
from rag_sourcebias.intervals.coverage.tally import CoverageCell, Tally

__all__ = ["CoverageCell", "CoverageStudy", "Tally", "coverage_study"]
