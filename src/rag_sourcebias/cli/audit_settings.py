"""Options of ``audit source`` that belong together."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.cli import options as opt
from rag_sourcebias.cli.checks import choice, whole_numbers
from rag_sourcebias.types import AuditConfig

__all__ = ["Retrieval", "Statistics"]

_INTERVALS = ("auto", "delta", "bootstrap", "fieller", "exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What retrieves, and which controls are made."""

    retriever: opt.Retrievers = None
    rerank: opt.Rerankers = None
    depth: opt.Depth = 100
    rerank_depth: opt.RerankDepth = 100
    cache: opt.Cache = None
    sole_corpus: opt.SoleCorpus = True
    length_matched: opt.LengthMatched = True
    rerank_controls: opt.RerankControls = False
    text_statistics: opt.TextStatistics = False
    settings_strip: opt.SettingsStrip = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What is measured, and how sure one can be of it."""

    baseline_source: opt.BaselineSource = "human"
    cutoffs: opt.Cutoffs = "1,3,5"
    measures: opt.Measures = "NDCG,MAP"
    primary: opt.Primary = None
    margin: opt.Margin = 5.0
    merge_llms: opt.MergeLLMs = False
    clusters: opt.Clusters = None
    ties: opt.TiesOption = "expected"
    confidence_level: opt.ConfidenceLevel = 0.95
    interval: opt.IntervalOption = "auto"
    correction: opt.CorrectionOption = "holm"
    seed: opt.Seed = 0

    def config(self) -> AuditConfig:
        """Return the checked configuration.

        Raises
        ------
        DataError
            If a value is none of those allowed; the message lists them.
        """
        return AuditConfig(
            baseline_source=self.baseline_source,
            cutoffs=whole_numbers("cutoffs", self.cutoffs),
            measures=tuple(m.strip() for m in self.measures.split(",") if m.strip()),
            primary=self.primary,
            margin=self.margin,
            merge_llms=self.merge_llms,
            ties=choice("ties", self.ties, ("expected", "trec")),
            confidence_level=self.confidence_level,
            interval_method=choice("interval", self.interval, _INTERVALS),
            correction=choice("correction", self.correction, ("holm", "bh", "none")),
            seed=self.seed,
        )
