"""``explain``: what distinguishes the sources, for an encoder and for its scores."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.audit.explain import explain_sources
from rag_sourcebias.cli import explain_options as opt
from rag_sourcebias.cli.checks import choice, require_writable
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.delivery import deliver
from rag_sourcebias.cli.explain_models import perplexity_models
from rag_sourcebias.cli.specs import SpecBuilder
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import cache_dir, load_sample, read_beir
from rag_sourcebias.types import Dataset
from rag_sourcebias.types.explain_report import ExplainConfig

__all__ = ["explain"]


def explain(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    split: opt.Split = "test",
    encoder: opt.Encoder = "all-MiniLM-L6-v2",
    source: opt.Sources = None,
    baseline_source: opt.BaselineSource = "human",
    perplexity: opt.Perplexities = None,
    perplexity_pairs: opt.PerplexityPairs = 500,
    limit: opt.Limit = None,
    map_: opt.Map = "pca",
    centre: opt.Centre = False,
    normalise: opt.Normalise = False,
    confidence_level: opt.ConfidenceLevel = 0.95,
    seed: opt.Seed = 0,
    report: opt.ReportFolder = None,
    cache: opt.Cache = None,
) -> None:
    """Show what distinguishes LLM texts from human ones for your encoder.

    Compares both versions of documents: length, wording, words that queries need, singular values
    and places of their vectors, perplexity if you name a language model, and which of these goes
    with the difference in scores. Associations: it cannot tell what causes a preference.

    [bold]Examples[/]

        rag-sourcebias explain --sample --report report

        rag-sourcebias explain my-data --encoder path/to/model --perplexity causal:smollm2

        rag-sourcebias explain my-data --source llm:gpt-4o --limit 2000 --map tsne --report report

        rag-sourcebias explain my-data --encoder none --perplexity masked:path/to/bert

    An interrupted run goes on where it stopped: vectors and perplexities are cached.
    """
    if not 0 < confidence_level < 1:
        raise DataError(f"--confidence-level {confidence_level:g} is outside (0, 1)")
    config = ExplainConfig(
        baseline_source=baseline_source,
        limit=limit,
        perplexity_limit=perplexity_pairs,
        map_method=choice("map", map_, ("pca", "tsne", "umap")),
        centre=centre,
        normalise=normalise,
        confidence_level=confidence_level,
        seed=seed,
    )
    require_writable(report)
    kept = cache or cache_dir()
    models = perplexity_models(perplexity, cache=kept)
    data = _load(folder, sample=sample, split=split)
    with stages() as progress:
        builder = SpecBuilder(kept, progress.advance)
        found = explain_sources(
            data,
            encoder=None if encoder == "none" else builder.encoder(encoder),
            sources=source,
            perplexities=models,
            config=config,
            on_stage=progress.begin,
            on_progress=progress.advance,
        )
    deliver(found, report)


def _load(folder: Path | None, *, sample: bool, split: str) -> Dataset:
    if (folder is None) != sample:
        raise DataError("give one data set: a BEIR folder or --sample")
    return load_sample() if folder is None else read_beir(folder, split=split)
