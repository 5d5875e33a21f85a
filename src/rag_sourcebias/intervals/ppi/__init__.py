"""Prediction-powered inference for a mean, offered by name."""

from rag_sourcebias.intervals.ppi.crossfit import crossfit_ppi_interval
from rag_sourcebias.intervals.ppi.fixed import ppi_interval, tuned_power
from rag_sourcebias.intervals.ppi.paper import paper_ppi_interval

__all__ = ["crossfit_ppi_interval", "paper_ppi_interval", "ppi_interval", "tuned_power"]
