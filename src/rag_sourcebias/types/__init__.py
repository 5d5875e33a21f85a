"""The data model: frozen, validated, free of any framework.

Names are loaded when first used: making all classes takes longer than importing numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias._lazy import lazy_names

if TYPE_CHECKING:
    from rag_sourcebias.types.anchors import AnchorSet, DriftCheck
    from rag_sourcebias.types.answer_parts import AnswerSpread, RankInversions, ThresholdVerdicts
    from rag_sourcebias.types.answer_report import (
        AnswerBias,
        AnswerBiasReport,
        AnswerConfig,
        AnsweringSystem,
        AnswerScorer,
        SystemCorrectness,
        SystemDifference,
    )
    from rag_sourcebias.types.answer_texts import AnswerTexts
    from rag_sourcebias.types.answers import AnswerScores
    from rag_sourcebias.types.canary import CanaryPoint
    from rag_sourcebias.types.dataset import Dataset
    from rag_sourcebias.types.debias import DebiasCandidate, DebiasPoint, DebiasSearch
    from rag_sourcebias.types.debias_report import (
        DebiasConfig,
        DebiasDataset,
        DebiasMethod,
        DebiasOutcome,
        DebiasReport,
        QualityChange,
        SkewChange,
    )
    from rag_sourcebias.types.debias_scores import DebiasScores
    from rag_sourcebias.types.debias_training import TrainingHistory, TrainingPoint
    from rag_sourcebias.types.documents import Corpus, DocTags, Query, TagTable
    from rag_sourcebias.types.explain_report import ExplainConfig, ExplainReport
    from rag_sourcebias.types.intervals import Interval
    from rag_sourcebias.types.judge_audit import JudgeAudit
    from rag_sourcebias.types.judge_calibration import LabelCalibration
    from rag_sourcebias.types.judged import JudgedConfig, JudgedReport
    from rag_sourcebias.types.judged_items import JudgedItems
    from rag_sourcebias.types.judged_parts import (
        CoveragePoint,
        JudgedComparison,
        JudgedMean,
        QueryIntervals,
    )
    from rag_sourcebias.types.judgments import JudgeItem, Judgments
    from rag_sourcebias.types.labels import LabelDistributions
    from rag_sourcebias.types.monitor import Alarm, GroupCount, GroupShare, MonitorSnapshot
    from rag_sourcebias.types.pair_checks import PairThresholds
    from rag_sourcebias.types.pair_report import PairCheckConfig, PairReport
    from rag_sourcebias.types.rankings import RankedList, Run
    from rag_sourcebias.types.relevance import Qrels
    from rag_sourcebias.types.reports import (
        SCHEMA_VERSION,
        AuditConfig,
        DataSummary,
        ExposureShare,
        SkewCell,
        SkewReport,
        SoleCorpusCheck,
        SourceScores,
        SystemSkew,
        TwinSkew,
    )
    from rag_sourcebias.types.style_data import StyledTexts
    from rag_sourcebias.types.style_parts import Unfairness
    from rag_sourcebias.types.style_report import (
        StyleConfig,
        StyleData,
        StyleGain,
        StyleIndexScore,
        StyleQuality,
        StyleReport,
        StyleRow,
        StyleSystem,
    )
    from rag_sourcebias.types.tests import FriedmanTest, NoninferiorityTest, RankPair
    from rag_sourcebias.types.text_stats import TextStatistic

_HOMES = {
    "anchors": (
        "AnchorSet",
        "DriftCheck",
    ),
    "answer_parts": (
        "AnswerSpread",
        "RankInversions",
        "ThresholdVerdicts",
    ),
    "answer_report": (
        "AnswerBias",
        "AnswerBiasReport",
        "AnswerConfig",
        "AnsweringSystem",
        "AnswerScorer",
        "SystemCorrectness",
        "SystemDifference",
    ),
    "answer_texts": ("AnswerTexts",),
    "answers": ("AnswerScores",),
    "canary": ("CanaryPoint",),
    "dataset": ("Dataset",),
    "debias": (
        "DebiasCandidate",
        "DebiasPoint",
        "DebiasSearch",
        "NoninferiorityTest",
    ),
    "debias_report": (
        "DebiasConfig",
        "DebiasDataset",
        "DebiasMethod",
        "DebiasOutcome",
        "DebiasReport",
        "QualityChange",
        "SkewChange",
    ),
    "debias_scores": ("DebiasScores",),
    "debias_training": (
        "TrainingHistory",
        "TrainingPoint",
    ),
    "documents": (
        "Corpus",
        "DocTags",
        "Query",
        "TagTable",
    ),
    "explain_report": (
        "ExplainConfig",
        "ExplainReport",
    ),
    "intervals": ("Interval",),
    "judge_audit": ("JudgeAudit",),
    "judge_calibration": ("LabelCalibration",),
    "judged": (
        "JudgedConfig",
        "JudgedReport",
    ),
    "judged_items": ("JudgedItems",),
    "judged_parts": (
        "CoveragePoint",
        "JudgedComparison",
        "JudgedMean",
        "QueryIntervals",
    ),
    "judgments": (
        "JudgeItem",
        "Judgments",
    ),
    "labels": ("LabelDistributions",),
    "monitor": (
        "Alarm",
        "GroupCount",
        "GroupShare",
        "MonitorSnapshot",
    ),
    "pair_checks": ("PairThresholds",),
    "pair_report": (
        "PairCheckConfig",
        "PairReport",
    ),
    "rankings": (
        "RankedList",
        "Run",
    ),
    "relevance": ("Qrels",),
    "reports": (
        "SCHEMA_VERSION",
        "AuditConfig",
        "DataSummary",
        "ExposureShare",
        "SkewCell",
        "SkewReport",
        "SoleCorpusCheck",
        "SourceScores",
        "SystemSkew",
        "TwinSkew",
    ),
    "style_data": ("StyledTexts",),
    "style_parts": (
        "FriedmanTest",
        "RankPair",
        "Unfairness",
    ),
    "style_report": (
        "StyleConfig",
        "StyleData",
        "StyleGain",
        "StyleIndexScore",
        "StyleQuality",
        "StyleReport",
        "StyleRow",
        "StyleSystem",
    ),
    "text_stats": ("TextStatistic",),
}

__all__ = [
    "SCHEMA_VERSION",
    "Alarm",
    "AnchorSet",
    "AnswerBias",
    "AnswerBiasReport",
    "AnswerConfig",
    "AnswerScorer",
    "AnswerScores",
    "AnswerSpread",
    "AnswerTexts",
    "AnsweringSystem",
    "AuditConfig",
    "CanaryPoint",
    "Corpus",
    "CoveragePoint",
    "DataSummary",
    "Dataset",
    "DebiasCandidate",
    "DebiasConfig",
    "DebiasDataset",
    "DebiasMethod",
    "DebiasOutcome",
    "DebiasPoint",
    "DebiasReport",
    "DebiasScores",
    "DebiasSearch",
    "DocTags",
    "DriftCheck",
    "ExplainConfig",
    "ExplainReport",
    "ExposureShare",
    "FriedmanTest",
    "GroupCount",
    "GroupShare",
    "Interval",
    "JudgeAudit",
    "JudgeItem",
    "JudgedComparison",
    "JudgedConfig",
    "JudgedItems",
    "JudgedMean",
    "JudgedReport",
    "Judgments",
    "LabelCalibration",
    "LabelDistributions",
    "MonitorSnapshot",
    "NoninferiorityTest",
    "PairCheckConfig",
    "PairReport",
    "PairThresholds",
    "Qrels",
    "QualityChange",
    "Query",
    "QueryIntervals",
    "RankInversions",
    "RankPair",
    "RankedList",
    "Run",
    "SkewCell",
    "SkewChange",
    "SkewReport",
    "SoleCorpusCheck",
    "SourceScores",
    "StyleConfig",
    "StyleData",
    "StyleGain",
    "StyleIndexScore",
    "StyleQuality",
    "StyleReport",
    "StyleRow",
    "StyleSystem",
    "StyledTexts",
    "SystemCorrectness",
    "SystemDifference",
    "SystemSkew",
    "TagTable",
    "TextStatistic",
    "ThresholdVerdicts",
    "TrainingHistory",
    "TrainingPoint",
    "TwinSkew",
    "Unfairness",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
