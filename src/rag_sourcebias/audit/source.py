"""The verb: measure source bias from runs and judgments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from rag_sourcebias.audit.cells import adjusted
from rag_sourcebias.audit.data_summary import (
    Design,
    data_warnings,
    summarise,
)
from rag_sourcebias.audit.dependence import Dependence, merge_llms
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.system import measure_system
from rag_sourcebias.errors import DataError
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

__all__ = ["assemble", "measure_source_bias"]


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
