"""Audit of a paired corpus: its criteria, every pair, each corpus searched alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.data import (
    BoolArray,
    Corpus,
    Dataset,
    FloatArray,
    Histogram,
    IntArray,
    Qrels,
    TagTable,
)
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    if_enough,
    require_distinct,
)
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.infer.equivalence import EquivalenceTest, equivalence_test
from rag_sourcebias.infer.means import adjust_p_values, clustered_difference, difference_test
from rag_sourcebias.intake.belong import cause
from rag_sourcebias.measure.relevance import score_run
from rag_sourcebias.measure.texts import summarise_dataset
from rag_sourcebias.pairs.checks import check_pairs
from rag_sourcebias.pairs.data import (
    PAIR_FLAGS,
    NamedIds,
    PairCheckConfig,
    PairChecks,
    PairCriteria,
    PairThresholds,
    SoleCorpusTest,
    SourcePairs,
)
from rag_sourcebias.pairs.findings import PairsCode
from rag_sourcebias.pairs.report import PairReport

# The three criteria of a paired corpus ([K] §2): sources known, labels copied, one to one.


_FIRST = 5  # ids that a report names
_SAME = 1e-12  # scores that differ by less are the same but for rounding


class PairRows(NamedTuple):
    """Rows of a corpus that are versions of one another, and those that are not.

    Parameters
    ----------
    baseline, other : int64 arrays of shape (n,)
        In the order of the baseline's documents.
    baseline_alone, other_alone : int64 arrays
        Documents without a counterpart, including those without a pair id.
    repeated : int64 array
        Second and further documents of one source with the same pair id.
    """

    baseline: IntArray
    other: IntArray
    baseline_alone: IntArray
    other_alone: IntArray
    repeated: IntArray


def pair_rows(tags: TagTable, baseline: str, other: str) -> PairRows:
    """Find the pairs of two sources; of several versions in one source the first counts."""
    codes, repeated, alone = [], [], []
    for source in (baseline, other):
        rows = np.flatnonzero(tags.source_codes == tags.sources.index(source))
        paired = rows[tags.pair_codes[rows] >= 0]
        _, places = np.unique(tags.pair_codes[paired], return_index=True)
        first = paired[np.sort(places)]
        codes.append(first)
        repeated.append(np.setdiff1d(paired, first))
        alone.append(np.setdiff1d(rows, repeated[-1]))
    ours, theirs = codes
    _, at, counterpart = np.intersect1d(
        tags.pair_codes[ours], tags.pair_codes[theirs], return_indices=True
    )
    order = np.argsort(at)
    both = (ours[at[order]], theirs[counterpart[order]])
    return PairRows(
        baseline=both[0],
        other=both[1],
        baseline_alone=np.setdiff1d(alone[0], both[0]),
        other_alone=np.setdiff1d(alone[1], both[1]),
        repeated=np.concatenate(repeated),
    )


def criteria_of(corpus: Corpus, qrels: Qrels, rows: PairRows) -> PairCriteria:
    """Count what the criteria ask for; without judgments nothing is said about labels."""
    tags = corpus.tags
    base, other = (_judged(tags, qrels, side) for side in (rows.baseline, rows.other))

    def documents(chosen: npt.NDArray[np.intp]) -> NamedIds:
        return NamedIds(n=len(chosen), first=tuple(tags.doc_ids[row] for row in chosen[:_FIRST]))

    def labels(keys: list[tuple[int, int]]) -> NamedIds:
        names = (
            f"{qrels.query_ids[query]}: {tags.doc_ids[rows.other[pair]]}"
            for query, pair in keys[:_FIRST]
        )
        return NamedIds(n=len(keys), first=tuple(names))

    return PairCriteria(
        n_documents=len(corpus),
        untagged=documents(np.flatnonzero(tags.source_codes < 0)),
        n_pairs=len(rows.baseline),
        baseline_alone=documents(rows.baseline_alone),
        other_alone=documents(rows.other_alone),
        repeated=documents(rows.repeated),
        n_labels=len(base),
        labels_missing=labels([key for key in base if key not in other]),
        labels_differ=labels([key for key in base if base[key] != other.get(key, base[key])]),
        labels_added=labels([key for key in other if key not in base]),
    )


def _judged(tags: TagTable, qrels: Qrels, side: IntArray) -> dict[tuple[int, int], int]:
    """Return the grade of each (query, pair) for the documents of one side."""
    place = np.full(len(tags) + 1, -1, dtype=np.int64)  # the last one is that of row -1
    place[side] = np.arange(len(side))
    pairs = place[tags.rows_for(qrels.doc_ids)[qrels.doc_codes]]
    at = np.flatnonzero(pairs >= 0)
    keys = zip(qrels.query_codes[at].tolist(), pairs[at].tolist(), strict=True)
    return dict(zip(keys, qrels.grades[at].tolist(), strict=True))


# Corpora of paired documents searched alone, and whether they are equally hard ([K] Table 2).


def shared_queries(dataset: Dataset, rows: PairRows) -> BoolArray:
    """Which judged queries have a text and a relevant document among both versions; shape (nq,)."""
    qrels = dataset.qrels
    doc_rows = dataset.corpus.tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    found = np.isin(qrels.query_ids, [query.query_id for query in dataset.queries])
    for side in (rows.baseline, rows.other):
        relevant = np.zeros(len(qrels.query_ids), dtype=np.bool_)
        relevant[qrels.query_codes[(qrels.grades > 0) & np.isin(doc_rows, side)]] = True
        found &= relevant
    return found


def sole_corpus_tests(
    dataset: Dataset,
    rows: PairRows,
    retriever: RetrieverSpec,
    config: PairCheckConfig,
    *,
    sources: tuple[str, str],
    shared: BoolArray,
    n_tests: int,
    on_stage: Callable[[str], None],
) -> Iterator[SoleCorpusTest]:
    """Search the paired documents of each source alone and compare, query by query.

    Only documents with a counterpart are searched, so that both corpora are of one size, and only
    queries with a relevant document in both are compared; in a one-to-one corpus these are all.

    Parameters
    ----------
    sources : (str, str)
        Baseline and other.
    shared : bool array of shape (nq,)
        Which judged queries are compared.
    n_tests : int
        In the whole report, for the queries needed after correction.
    """
    qrels = dataset.qrels
    wanted = {qrels.query_ids[code] for code in np.flatnonzero(shared)}
    queries = [query for query in dataset.queries if query.query_id in wanted]
    if not queries:
        return
    doc_rows = dataset.corpus.tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    alone = []
    for source, side in zip(sources, (rows.baseline, rows.other), strict=True):
        corpus = dataset.corpus.take(side)
        stage = PairsCode.SEARCHING(system=retriever.name, documents=len(corpus), source=source)
        on_stage(str(stage))
        scores = score_run(
            retriever.build(corpus).retrieve(queries, config.depth),
            qrels.take(np.isin(doc_rows, side)),
            measures=config.measures,
            cutoffs=config.cutoffs,
            ties=config.ties,
            gain=config.gain,
        )
        alone.append(scores)
    for measure in alone[0].measures:
        baseline, other = (scores.of(measure, "all")[shared] for scores in alone)
        difference = baseline - other
        test, needed = _equivalence(baseline, other, config, n_tests)
        few = test is not None and test.note is not None
        yield SoleCorpusTest(
            system=retriever.name,
            other=sources[1],
            measure=measure,
            mean_baseline=float(baseline.mean()),
            mean_other=float(other.mean()),
            difference=if_enough(
                clustered_difference, difference, confidence_level=config.confidence_level
            ),
            p_different=difference_test(difference),
            margin=config.margin,
            level=config.level,
            p_equivalent=None if test is None else test.p_value,
            n_queries=len(difference),
            n_needed=needed,
            n_changed=int(np.count_nonzero(np.abs(difference) > _SAME)) if few else None,
        )


def _equivalence(
    baseline: FloatArray, other: FloatArray, config: PairCheckConfig, n_tests: int
) -> tuple[EquivalenceTest | None, int | None]:
    """Return the test, None where there are too few queries, and those needed after correction."""
    test = partial(equivalence_test, baseline, other, margin=config.margin)
    try:
        # Holm asks the smallest p-value to pass at the level over the number of tests.
        return test(level=config.level), test(level=config.level / n_tests).n_needed
    except InsufficientDataError as error:
        return None, error.n_needed


# What a report keeps of the checks of one source: counts, histograms, the worst pairs.


_EDGES = {
    "length_ratio": np.linspace(0, 3, 61),
    "jaccard": np.linspace(0, 1, 41),
    "overlap": np.linspace(0, 1, 41),
    "cosine": np.linspace(0, 1, 51),
}


def source_pairs(
    source: str,
    checks: PairChecks,
    texts: tuple[Sequence[str], Sequence[str]],
    criteria: PairCriteria,
    *,
    config: PairCheckConfig,
) -> SourcePairs:
    """Put together what is kept of one source.

    Parameters
    ----------
    texts : pair of sequences of str
        Baseline and other versions, in the order of ``checks``.
    """
    flagged = {
        flag: tuple(checks.pair_ids[row] for row in np.flatnonzero(checks.flag(flag)))
        for flag in PAIR_FLAGS
    }
    return SourcePairs(
        source=source,
        criteria=criteria,
        summary=checks.summary(),
        histograms={
            name: Histogram.of(checks.values[name], edges)
            for name, edges in _EDGES.items()
            if not np.isnan(checks.values[name]).all()
        },
        flagged_ids={flag: ids for flag, ids in flagged.items() if ids},
        worst=tuple(
            replace(
                checks.pair(row),
                baseline_text=texts[0][row][: config.text_limit],
                other_text=texts[1][row][: config.text_limit],
                baseline_length=len(texts[0][row]),
                other_length=len(texts[1][row]),
            )
            for row in checks.worst(config.worst).tolist()
        ),
        by_chance=checks.by_chance,
    )


# The verb: is a paired corpus what an audit of source bias needs ([K] §2).


def check_paired_corpus(
    data: Dataset | Corpus,
    *,
    baseline_source: str = "human",
    sources: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    retrievers: Sequence[RetrieverSpec] = (),
    thresholds: PairThresholds | None = None,
    config: PairCheckConfig | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_checks: Callable[[str, PairChecks], None] | None = None,
) -> PairReport:
    """Validate a paired corpus: the criteria of [K] §2, every pair, and each corpus alone.

    Parameters
    ----------
    data : Dataset or Corpus
        A corpus has no judgments: whether labels were copied is then not checked.
    baseline_source : str
    sources : sequence of str, optional
        Sources to check against the baseline; all others by default.
    encoder : Encoder, optional
        For the cosine of every pair ([K] Fig. 5); "unrelated" is judged by word overlap without.
    retrievers : sequence of RetrieverSpec
        Each searches the paired documents of the baseline alone and of the other source alone;
        differences and their equivalence within a margin are tested, paired by query ([K] Table
        2). Names must differ.
    thresholds : PairThresholds, optional
    config : PairCheckConfig, optional
    on_stage : callable, optional
        Told what begins, for progress display.
    on_checks : callable, optional
        Given each source and all values of its pairs, which the report itself does not keep.

    Returns
    -------
    PairReport

    Raises
    ------
    DataError
        If the baseline or a source is missing, no document has a counterpart, names of retrievers
        repeat, or retrievers are given without judgments.
    MissingTagsError
        If no document has a source.
    """
    config, thresholds = config or PairCheckConfig(), thresholds or PairThresholds()
    begin = on_stage or (lambda _: None)
    if isinstance(data, Dataset):
        dataset = data
    else:
        dataset = Dataset(name="corpus", corpus=data, queries=(), qrels=Qrels.from_rows(()))
    names = [spec.name for spec in retrievers]
    require_distinct("retriever", names)
    if names and not len(dataset.qrels):
        raise DataError(
            f"retrievers {names} need queries and judgments, which this corpus does not have; "
            "give a data set with both, or no retriever"
        )
    corpus = dataset.corpus
    rows = _rows_of(corpus.tags, baseline_source, sources)
    n_tests = len(rows) * len(retrievers) * len(config.measures) * len(config.cutoffs)
    parts: list[SourcePairs] = []
    tests: list[SoleCorpusTest] = []
    for source, found in rows.items():
        begin(str(PairsCode.CHECKING(source=source, pairs=len(found.baseline))))
        texts = (
            [corpus.texts[row] for row in found.baseline],
            [corpus.texts[row] for row in found.other],
        )
        pair_ids = [corpus.tags.pair_ids[code] for code in corpus.tags.pair_codes[found.baseline]]
        checks = check_pairs(*texts, pair_ids=pair_ids, encoder=encoder, thresholds=thresholds)
        criteria = criteria_of(corpus, dataset.qrels, found)
        part = source_pairs(source, checks, texts, criteria, config=config)
        if on_checks is not None:
            on_checks(source, checks)
        if retrievers:
            shared = shared_queries(dataset, found)
            part = replace(part, n_queries=len(shared), n_left_out=int((~shared).sum()))
            for retriever in retrievers:
                tests += sole_corpus_tests(
                    dataset,
                    found,
                    retriever,
                    config,
                    sources=(baseline_source, source),
                    shared=shared,
                    n_tests=n_tests,
                    on_stage=begin,
                )
        parts.append(part)
    asked: list[Encoder | RetrieverSpec] = [*filter(None, [encoder]), *retrievers]
    return PairReport(
        data=summarise_dataset(dataset),
        baseline_source=baseline_source,
        config=config,
        sources=tuple(parts),
        thresholds=thresholds,
        sole_corpus=_adjusted(tests),
        n_tests=sum(test.p_equivalent is not None for test in tests),
        encoder="" if encoder is None else encoder.name,
        settings={model.name: dict(model.settings) for model in asked},
        environment=environment(),
        created=timestamp(),
    )


def _adjusted(tests: Sequence[SoleCorpusTest]) -> tuple[SoleCorpusTest, ...]:
    """Adjust both kinds of tests by Holm, each over all that were made."""
    different = adjust_p_values([test.p_different for test in tests])
    equivalent = adjust_p_values([test.p_equivalent for test in tests])
    return tuple(
        replace(test, p_different_adjusted=d, p_equivalent_adjusted=e)
        for test, d, e in zip(tests, different, equivalent, strict=True)
    )


def _rows_of(tags: TagTable, baseline: str, sources: Sequence[str] | None) -> dict[str, PairRows]:
    tags.require_sources(baseline)
    others = [name for name in tags.sources if name != baseline]
    wrong = [name for name in sources or () if name not in others]
    if wrong or (sources is not None and not sources):
        raise DataError(f"no other source {wrong or list(sources or ())}; there are {others}")
    chosen = others if sources is None else list(dict.fromkeys(sources))
    rows = {source: pair_rows(tags, baseline, source) for source in chosen}
    if not any(len(found.baseline) for found in rows.values()):
        alone = [rows[chosen[0]].baseline_alone, *(found.other_alone for found in rows.values())]
        ours, theirs = (
            [tags.pair_ids[code] for code in tags.pair_codes[some] if code >= 0]
            for some in alone[:2]
        )
        found = cause(ours, theirs)
        said = f"the first documents are {[tags.doc_ids[some[0]] for some in alone]}"
        if found is not None:
            said = f"ids differ in {found.difference()}, as {found.ours!r} and {found.theirs!r} do"
        raise DataError(
            f"no document of {baseline!r} has a counterpart in {', '.join(map(repr, chosen))}: "
            "versions of a document need the same _id in corpus/<source>.jsonl, or the same "
            f"pair_id; {said}"
        )
    return rows
