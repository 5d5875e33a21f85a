"""The verb: measure source bias from runs and judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np

from rag_sourcebias.audit.cells import adjusted
from rag_sourcebias.audit.dependence import Dependence, merge_llms
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.system import measure_system
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import count_pairs, mean_words, source_codes_for
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, TagTable
from rag_sourcebias.types.rankings import Run
from rag_sourcebias.types.relevance import Qrels
from rag_sourcebias.types.reports import (
    SCHEMA_VERSION,
    AuditConfig,
    DataSummary,
    SkewReport,
    SystemSkew,
)

__all__ = ["assemble", "data_warnings", "measure_source_bias", "summarise", "summarise_dataset"]

Design = Literal["rewrites", "independent", "unknown"]


def measure_source_bias(
    runs: Run | Sequence[Run],
    qrels: Qrels,
    tags: TagTable,
    *,
    config: AuditConfig | None = None,
    corpus: Corpus | None = None,
    name: str = "data",
    design: Design = "unknown",
    settings: Mapping[str, Mapping[str, str]] | None = None,
    clusters: Mapping[str, str] | None = None,
) -> SkewReport:
    """Measure whether rankings favour a source, from finished runs ([K] §3.1).

    Parameters
    ----------
    runs : Run or sequence of Run
        Retrieved from the mixed corpus; names must differ.
    qrels : Qrels
    tags : TagTable
        Sources of all documents of the corpus (their shares are the exposure baseline).
    config : AuditConfig, optional
    corpus : Corpus, optional
        Texts, for length and overlap. Its tags must be ``tags``.
    name : str
        Name of the data, for the report.
    design : {"rewrites", "independent", "unknown"}
        What documents of different sources have in common, see :class:`Dataset`.
    settings : mapping of str to mapping, optional
        Settings to state per run name.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each judged query: queries of one cluster may
        depend on one another.

    Returns
    -------
    SkewReport

    Examples
    --------
    >>> from rag_sourcebias.types import DocTags
    >>> run = Run.from_dict({f"q{i}": {"h": 2.0, "l": 1.0} for i in range(9)})
    >>> qrels = Qrels.from_dict({f"q{i}": {"h": 1, "l": 1} for i in range(9)})
    >>> tags = TagTable.from_tags(
    ...     [("h", DocTags(source="human")), ("l", DocTags(source="llm:x"))]
    ... )
    >>> report = measure_source_bias(run, qrels, tags)
    >>> report.system("run").cell("NDCG@1", "llm:x").relative_delta
    200.0
    """
    config = config or AuditConfig()
    many = [runs] if isinstance(runs, Run) else list(runs)
    if not many:
        raise DataError("no run was given; give at least one")
    names = [run.name for run in many]
    if len(set(names)) != len(names):
        raise DataError(f"run names must differ, got {names}")
    separate, tags = tags, merge_llms(tags) if config.merge_llms else tags
    if corpus is not None and config.merge_llms:
        corpus = replace(corpus, tags=tags)
    dependence = Dependence.of(
        qrels, tags, clusters, merged_from=separate if config.merge_llms else None
    )
    systems = [
        measure_system(
            run,
            qrels,
            tags,
            config,
            dependence=dependence,
            corpus=corpus,
            settings=(settings or {}).get(run.name),
        )
        for run in many
    ]
    dataset = summarise(
        name=name, design=design, qrels=qrels, tags=tags, corpus=corpus, license="", attribution=""
    )
    return assemble(systems, dataset, config, warnings=data_warnings(dataset, qrels, tags, config))


def assemble(
    systems: Sequence[SystemSkew],
    data: DataSummary,
    config: AuditConfig,
    *,
    warnings: Sequence[str],
) -> SkewReport:
    """Adjust p-values over the report's family and put the report together."""
    done, n_tests = adjusted(systems, config)
    names = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "no"}
    return SkewReport(
        schema_version=SCHEMA_VERSION,
        data=data,
        config=config,
        systems=done,
        family=(
            f"{names[config.correction]} correction over {config.primary_measure} of all "
            "retrievers × sources of the mixed corpus; length-matched and exact-search repeats "
            "are corrected among themselves; other measures are exploratory and not corrected"
        ),
        n_tests=n_tests,
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(warnings),
    )


def summarise(
    *,
    name: str,
    design: Design,
    qrels: Qrels,
    tags: TagTable,
    corpus: Corpus | None,
    license: str,
    attribution: str,
) -> DataSummary:
    """Describe the data of a report."""
    return DataSummary(
        name=name,
        design=design,
        n_queries=len(qrels.query_ids),
        n_judgments=len(qrels),
        documents=tags.counts(),
        n_pairs=count_pairs(tags),
        mean_words={} if corpus is None else mean_words(corpus),
        license=license,
        attribution=attribution,
    )


def summarise_dataset(dataset: Dataset) -> DataSummary:
    """Describe a data set."""
    return summarise(
        name=dataset.name,
        design=dataset.design,
        qrels=dataset.qrels,
        tags=dataset.corpus.tags,
        corpus=dataset.corpus,
        license=dataset.license,
        attribution=dataset.attribution,
    )


def data_warnings(
    data: DataSummary,
    qrels: Qrels,
    tags: TagTable,
    config: AuditConfig,
    *,
    length_adjusted: bool = True,
) -> list[str]:
    """List what a reader must know about the data before trusting a number.

    Parameters
    ----------
    length_adjusted : bool
        Whether the report has such figures.
    """
    warnings = []
    elsewhere = ", see the length-adjusted figures" if length_adjusted else ""
    if untagged := data.documents.get("", 0):
        warnings.append(
            f"{untagged} of {tags.n_documents} documents have no source tag: they keep their ranks "
            "but belong to no source"
        )
    outside = int(np.count_nonzero(tags.rows_for(qrels.doc_ids) < 0))
    if outside:
        warnings.append(f"{outside} judged documents have no tag row: they belong to no source")
    warnings += _coverage_warnings(qrels, tags)
    if data.n_queries < 100:
        warnings.append(
            f"{data.n_queries} queries are few: Relative Δ at cutoff {min(config.cutoffs)} is "
            "dominated by noise, read the intervals"
        )
    base = data.mean_words.get(config.baseline_source)
    for source, mean in data.mean_words.items():
        if base and source != config.baseline_source and abs(mean / base - 1) > 0.1:
            warnings.append(
                f"documents of {source} are {abs(mean / base - 1):.0%} "
                f"{'longer' if mean > base else 'shorter'} in words than those of "
                f"{config.baseline_source}: length alone can move a ranking{elsewhere}"
            )
    if data.design == "independent":
        warnings.append(
            "documents of different sources are independent texts, not rewrites: a difference may "
            "be one of content or quality, so it is skew, not source bias proper"
        )
    elif data.design == "unknown" and not data.n_pairs:
        warnings.append(
            "documents are not paired across sources: a difference may be one of content or quality"
        )
    return warnings


def _coverage_warnings(qrels: Qrels, tags: TagTable) -> list[str]:
    """Name sources without relevant documents for some queries."""
    codes = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
    relevant = qrels.grades > 0
    result = []
    for code, source in enumerate(tags.sources):
        having = len(np.unique(qrels.query_codes[relevant & (codes == code)]))
        missing = len(qrels.query_ids) - having
        if missing:
            result.append(
                f"{missing} of {len(qrels.query_ids)} queries have no relevant document of "
                f"{source}: they score 0 for it in the published Relative Δ, the centred one "
                "leaves them out"
            )
    return result
