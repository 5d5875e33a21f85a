"""Source and style detectors fitted to labelled documents (needs the extra ``detector``)."""

from rag_sourcebias.tagging.detector.features import FeatureSettings, Perplexity
from rag_sourcebias.tagging.detector.files import (
    check_detector_folder,
    load_detector,
    save_detector,
)
from rag_sourcebias.tagging.detector.fit import fit_detector
from rag_sourcebias.tagging.detector.measures import Rate, ReliabilityBin
from rag_sourcebias.tagging.detector.model import Decision, Detector, TagErrors
from rag_sourcebias.tagging.detector.prediction import Prediction
from rag_sourcebias.tagging.detector.report import DetectorReport, evaluate
from rag_sourcebias.tagging.detector.tagger import DetectorTagger

__all__ = [
    "Decision",
    "Detector",
    "DetectorReport",
    "DetectorTagger",
    "FeatureSettings",
    "Perplexity",
    "Prediction",
    "Rate",
    "ReliabilityBin",
    "TagErrors",
    "check_detector_folder",
    "evaluate",
    "fit_detector",
    "load_detector",
    "save_detector",
]
