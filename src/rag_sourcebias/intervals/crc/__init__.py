"""Conformal risk control with perturbed label distributions ([R] §6)."""

from __future__ import annotations

from rag_sourcebias.intervals.crc.critical import Crossing, crossings, set_crossing
from rag_sourcebias.intervals.crc.dual import CRCCalibration, calibrate_dual, crc_interval
from rag_sourcebias.intervals.crc.per_query import (
    PerQueryIntervals,
    PerQueryRule,
    per_query_intervals,
)
from rag_sourcebias.intervals.crc.perturb import perturb, perturbed_utilities
from rag_sourcebias.intervals.crc.recalibrate import recalibrated_utilities, recalibration

__all__ = [
    "CRCCalibration",
    "Crossing",
    "PerQueryIntervals",
    "PerQueryRule",
    "calibrate_dual",
    "crc_interval",
    "crossings",
    "per_query_intervals",
    "perturb",
    "perturbed_utilities",
    "recalibrated_utilities",
    "recalibration",
    "set_crossing",
]
