"""The verb: prove what a mitigation changed in skew and what it cost in quality."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np

from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.data import Corpus, Dataset, FloatArray, IntArray, Qrels, Run
from rag_sourcebias.core.errors import DataError, attempt, require_distinct
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.protocols import RetrieverSpec
from rag_sourcebias.core.tags import relevant_pairs
from rag_sourcebias.core.training import TrainingHistory
from rag_sourcebias.debias.data import (
    QUALITIES,
    DebiasConfig,
    DebiasDataset,
    DebiasMethod,
    DebiasOutcome,
    DebiasScores,
    QualityChange,
    SkewChange,
)
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.debias.methods import method_of
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.rescore import RescoredSpec, TwinSpec
from rag_sourcebias.debias.words import quality_kind
from rag_sourcebias.infer.equivalence import (
    NoninferiorityTest,
    delta_change_interval,
    delta_change_test,
    noninferiority_test,
)
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    SkewCode,
    adjust_p_values,
    clustered_difference,
    difference_test,
    queries_for_verdict,
    relative_delta_interval,
    skew_code,
)
from rag_sourcebias.measure.relevance import (
    Retrieved,
    filled,
    of_sources,
    says_what_is_not_relevant,
    score_run,
    source_codes_for,
    source_scores,
    stays,
)
from rag_sourcebias.measure.texts import data_warnings, summarise_dataset

# What a system scores before or after a mitigation: five kinds of NDCG per query.


_DEPTH = 100  # documents retrieved per query, or as many as the largest cutoff


def score_debias(
    spec: RetrieverSpec,
    dataset: Dataset,
    config: DebiasConfig,
    *,
    other: str,
    on_stage: Callable[[str], None] | None = None,
) -> DebiasScores:
    """Retrieve from three corpora and score every judged query.

    The mixed corpus holds the documents of the baseline, of ``other`` and those of unknown source,
    which keep their ranks and are relevant to nothing. Documents of further sources are left out
    (:func:`two_sources`), so that every LLM source is compared in a mixed corpus of its own. The
    other two corpora hold one source each.

    Parameters
    ----------
    spec : RetrieverSpec
        Built three times.
    dataset : Dataset
    config : DebiasConfig
    other : str
        Source compared with ``config.baseline_source``.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    DebiasScores
        One column per judged query, in the order of the judgments. A query without results or
        without relevant documents of a source scores 0 there and counts.

    Raises
    ------
    DataError
        If a source is missing or has no relevant document, or no judged
        query has a text.
    """
    depth = max(_DEPTH, *config.cutoffs)
    data = two_sources(dataset, config.baseline_source, other)
    tags, qrels = data.corpus.tags, data.qrels
    judged = set(qrels.query_ids)
    queries = [query for query in data.queries if query.query_id in judged]
    if not queries:
        raise DataError(
            f"none of {len(data.queries)} queries of data set {data.name!r} is judged; "
            "queries and judgments must share ids"
        )

    say = on_stage or (lambda _: None)

    def search(what: str, corpus: Corpus) -> Run:
        say(f"{spec.name}: {what} ({len(corpus):,})")
        return spec.build(corpus).retrieve(queries, depth)

    sources = (config.baseline_source, other)
    mixed = search("mixed documents", data.corpus)
    alone = [search(f"{name} documents alone", data.corpus.of_source(name)) for name in sources]

    def values(qrels: Qrels) -> FloatArray:
        source_of = source_codes_for(qrels.doc_ids, tags)[qrels.doc_codes]
        by_source = source_scores(
            mixed,
            qrels,
            tags,
            sources=sources,
            measures=("NDCG",),
            cutoffs=config.cutoffs,
            ties=config.ties,
            gain=config.gain,
        ).values
        judged = [qrels.take(source_of == tags.sources.index(name)) for name in sources]
        judged.append(qrels.take(source_of >= 0))
        rows = [_ndcg(*pair, config) for pair in zip((*alone, mixed), judged, strict=True)]
        return np.stack((by_source[:, 0], by_source[:, 1], *rows))

    scores = DebiasScores(
        name=spec.name,
        query_ids=qrels.query_ids,
        cutoffs=config.cutoffs,
        values=values(qrels),
        settings=dict(spec.settings),
    )
    retrieved = Retrieved.of(mixed, qrels, tags, ties=config.ties)
    if not says_what_is_not_relevant(qrels) or retrieved.judged.all():
        return scores
    grade = filled(
        retrieved,
        np.random.default_rng(config.seed),
        np.arange(len(qrels.query_ids)) % _PARTS,
    )
    shares = [
        retrieved.share_judged(tags.sources.index(name), config.skew_cutoff) for name in sources
    ]
    first, second = (1.0 if share is None else share for share in shares)
    # nothing is scored where nothing is known of a source
    counted = 0 * scores.values if grade is None else values(retrieved.judgments(grade))
    return replace(scores, judged=(first, second), filled=counted)


_PARTS = 10  # of the queries, that draw grades from their own judgments, as in source audits


def two_sources(dataset: Dataset, baseline: str, other: str) -> Dataset:
    """Leave out the documents of all sources but two, and their judgments.

    Queries stay, also those that lose every relevant document, so that all comparisons of a data
    set average over the same queries. Documents of unknown source stay.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If one of the two sources is missing.
    """
    tags, qrels = dataset.corpus.tags, dataset.qrels
    others = other_sources(dataset, baseline)
    if other not in others:
        raise DataError(
            f"data set {dataset.name!r} has no document of source {other!r} to compare with "
            f"{baseline!r}; there are {', '.join(others)}"
        )
    wanted = sorted((baseline, other))
    if list(tags.sources) == wanted:
        return dataset
    new, rows = of_sources(tags, wanted)
    judged = stays(source_codes_for(qrels.doc_ids, tags), tags, wanted)
    return replace(
        dataset,
        corpus=replace(dataset.corpus.take(rows), tags=new),
        qrels=qrels.take(judged[qrels.doc_codes]),
    )


def other_sources(dataset: Dataset, baseline: str) -> tuple[str, ...]:
    """Sources of a data set that can be compared with the baseline, by name.

    Raises
    ------
    MissingTagsError
        If no document has a source tag.
    DataError
        If the baseline is missing, or is the only source.
    """
    tags = dataset.corpus.tags
    tags.require_sources(baseline)
    return tuple(
        source for source, n in tags.counts().items() if n and source not in ("", baseline)
    )


def _ndcg(run: Run, qrels: Qrels, config: DebiasConfig) -> FloatArray:
    """NDCG of all documents of the judgments taken together, shape (cutoffs, queries)."""
    return score_run(
        run,
        qrels,
        measures=("NDCG",),
        cutoffs=config.cutoffs,
        ties=config.ties,
        gain=config.gain,
    ).values[:, 0]


# What changed between two systems on the same queries: Relative Δ and quality.


_SAME = 1e-9
_BY_CONSTRUCTION = InferCode.UNCHANGEABLE()


def skew_changes(
    before: DebiasScores | None, after: DebiasScores, config: DebiasConfig
) -> tuple[SkewChange, ...]:
    """Relative Δ at every cutoff, and its change where there is something to compare with.

    Parameters
    ----------
    before : DebiasScores or None
        Of the unchanged system; None for that system itself.
    """
    return tuple(_skew(before, after, cutoff, config) for cutoff in config.cutoffs)


def quality_changes(
    before: DebiasScores,
    after: DebiasScores,
    config: DebiasConfig,
    *,
    unchanged: Sequence[str] = (),
) -> tuple[QualityChange, ...]:
    """Change of the three qualities at every cutoff, tested at the quality cutoff.

    Parameters
    ----------
    unchanged : sequence of str
        Qualities that cannot change by construction: where they did not, they pass without a test.
    """
    return tuple(
        _quality(before, after, quality, cutoff, config, by_construction=quality in unchanged)
        for cutoff in config.cutoffs
        for quality in QUALITIES
    )


def unchanged_qualities(
    before: RetrieverSpec, after: RetrieverSpec, corpus: Corpus, sources: Sequence[str]
) -> tuple[str, ...]:
    """Qualities that a system cannot change: new scores may keep the order within a source.

    Twin smoothing keeps it where no two documents of the source are copies.
    """
    if not (isinstance(after, RescoredSpec | TwinSpec) and _same_system(before, after.first)):
        return ()
    if isinstance(after, RescoredSpec) and after.keeps_order_within_source:
        return QUALITIES[:2]
    groups = getattr(after.rescorer if isinstance(after, RescoredSpec) else after, "groups", None)
    if groups is None:
        return ()
    return tuple(
        quality
        for quality, source in zip(QUALITIES, sources, strict=False)
        if not groups.within(corpus.of_source(source).doc_ids).groups
    )


def _same_system(one: RetrieverSpec, two: RetrieverSpec) -> bool:
    """Whether two recipes retrieve the same, whatever they are called."""

    def identity(spec: RetrieverSpec) -> tuple[object, ...]:
        scorers = (getattr(spec, name, None) for name in ("encoder", "reranker"))
        return type(spec), dict(spec.settings), [getattr(s, "fingerprint", None) for s in scorers]

    return one is two or identity(one) == identity(two)


def _skew(
    before: DebiasScores | None, after: DebiasScores, cutoff: int, config: DebiasConfig
) -> SkewChange:
    refusals: list[str] = []

    def relative_delta(scores: DebiasScores) -> Interval:
        return relative_delta_interval(
            scores.of("baseline", cutoff),
            scores.of("other", cutoff),
            confidence_level=config.confidence_level,
        )

    now = attempt(lambda: relative_delta(after), refusals, "after")
    was = change = p_value = None
    worse = False
    if before is not None:
        was = attempt(lambda: relative_delta(before), refusals, "before")
        columns = [s.of(row, cutoff) for s in (before, after) for row in ("baseline", "other")]
        change = attempt(
            lambda: delta_change_interval(*columns, confidence_level=config.confidence_level),
            refusals,
            "change",
        )
        worse = change is not None and _further(columns, change, config)
        if was is not None and now is not None:
            p_value = delta_change_test(
                *columns,
                resamples=config.resamples,
                rng=np.random.default_rng((config.seed, cutoff)),
            )
    code, n_needed = skew_standing(now, config)
    found = SkewChange(
        cutoff=cutoff,
        before=was,
        after=now,
        change=change,
        p_value=p_value,
        refusal="; ".join(refusals) or None,
        code=code,
        worse=worse,
        n_needed=n_needed,
    )
    counted = before and before.counted
    if counted is before and after.counted is after:
        return found
    again = _skew(counted, after.counted, cutoff, config)
    holes = found.code not in (SkewCode.REFUSED, SkewCode.CANNOT_TELL, again.code)
    return replace(
        found,
        code=SkewCode.CANNOT_TELL if holes else found.code,
        worse=found.worse and again.worse,
        holes=holes,
        stands=again.p_value is not None and again.p_value < 1 - config.confidence_level,
    )


def skew_standing(now: Interval | None, config: DebiasConfig) -> tuple[SkewCode, int | None]:
    """Return what Relative Δ after a change says, and the queries needed where that is nothing."""
    if now is None:
        return SkewCode.REFUSED, None
    ends = {name: getattr(now, name) - config.target for name in ("estimate", "lower", "upper")}
    off = replace(now, **ends)
    code = skew_code(off, 0.0, margin=config.tolerance)
    open_ = code is SkewCode.CANNOT_TELL
    return code, queries_for_verdict(off, margin=config.tolerance) if open_ else None


def _further(columns: list[FloatArray], change: Interval, config: DebiasConfig) -> bool:
    """Whether Relative Δ is shown to lie further from the target than before.

    abs(after) > abs(before) where after − before and after + before have one sign. Exchanging the
    sources before turns the change into the sum.
    """
    h, other, *after = columns
    total = delta_change_interval(other, h, *after, confidence_level=config.confidence_level)
    twice = 2 * config.target
    return (change.lower > 0 and total.lower > twice) or (change.upper < 0 and total.upper < twice)


def _quality(
    before: DebiasScores,
    after: DebiasScores,
    quality: str,
    cutoff: int,
    config: DebiasConfig,
    *,
    by_construction: bool,
) -> QualityChange:
    reference, treated = before.of(quality, cutoff), after.of(quality, cutoff)
    changes = treated - reference
    refusals: list[str] = []
    difference = attempt(
        lambda: clustered_difference(changes, confidence_level=config.confidence_level),
        refusals,
        "difference",
    )
    test = None
    if cutoff == config.quality_cutoff:
        test = attempt(
            lambda: noninferiority_test(
                treated[None, :],
                reference[None, :],
                relative_margin=config.relative_margin,
                level=config.level,
                quality=quality,
            ),
            refusals,
            "test",
        )
    if by_construction and np.all(np.abs(changes) <= _SAME):
        if difference is not None:
            difference = replace(difference, lower=0.0, upper=0.0, method=_BY_CONSTRUCTION)
        if test is not None:
            test = replace(test, p_value=0.0, lower=0.0, n_needed=None, note=_BY_CONSTRUCTION)
    found = QualityChange(
        quality=quality,
        cutoff=cutoff,
        before=float(reference.mean()),
        after=float(treated.mean()),
        difference=difference,
        p_value=difference_test(changes),
        test=test,
        refusal="; ".join(refusals) or None,
    )
    if by_construction or (before.filled is None and after.filled is None):
        return found
    return replace(found, holes=not _shown(before.counted, after.counted, found, config))


def _shown(
    before: DebiasScores, after: DebiasScores, found: QualityChange, config: DebiasConfig
) -> bool:
    """Whether what a test shows of a quality is shown by scores with the unjudged counted too."""
    base, treated = (each.of(found.quality, found.cutoff) for each in (before, after))
    if np.array_equal(base, treated):
        return True
    # what was counted is as uncertain as the rates of each part
    ends = clustered_difference(treated - base, np.arange(len(base)) % _PARTS)
    margin = -config.relative_margin * float(base.mean())
    shown = {"kept": ends.lower > margin, "lost": ends.upper < margin}
    return shown.get(quality_kind(config, found), True)


# What a reader must know about the data of a before/after comparison.


def judged_pairs(dataset: Dataset, baseline: str, other: str) -> IntArray:
    """Codes of the pairs that both sources have and of which a version is judged relevant."""
    tags = dataset.corpus.tags
    sides = [
        tags.pair_codes[tags.source_codes == tags.sources.index(name)] for name in (baseline, other)
    ]
    _, relevant = relevant_pairs(dataset.qrels, tags, min_grade=1)
    return np.asarray(reduce(np.intersect1d, [*sides, relevant]), dtype=np.int64)


def seen_pairs(
    dataset: Dataset, baseline: str, pairs: IntArray, fitted_texts: Collection[str]
) -> int:
    """Number of pairs whose baseline version is among the texts that were fitted on."""
    texts, tags = dataset.corpus.texts, dataset.corpus.tags
    rows = np.flatnonzero(
        (tags.source_codes == tags.sources.index(baseline)) & np.isin(tags.pair_codes, pairs)
    )
    return len({tags.pair_codes[row] for row in rows.tolist() if texts[row] in fitted_texts})


def debias_warnings(
    dataset: Dataset, outcomes: Sequence[DebiasOutcome], config: DebiasConfig, *, n_pairs: int
) -> list[str]:
    """List what a reader must know before trusting the numbers of one data set."""
    summary = summarise_dataset(dataset)
    found = data_warnings(summary, dataset.qrels, dataset.corpus.tags, config)
    warnings = list(map(str, found))
    if seen := max(outcome.n_seen for outcome in outcomes):
        warnings.append(
            f"judged on pairs that a method was fitted on: {seen} of {n_pairs} judged pairs, so "
            "its figures here are optimistic"
        )
    without_text = {*dataset.qrels.query_ids} - {query.query_id for query in dataset.queries}
    if without_text:
        warnings.append(
            f"{len(without_text)} of {len(dataset.qrels.query_ids)} judged queries have no text: "
            "they score 0 and count"
        )
    for outcome in outcomes[1:]:
        undecided = [
            (found.quality, found.test)
            for found in outcome.quality
            if found.test is not None and _undecided(found.test)
        ]
        if undecided:
            n = max(test.n_queries for _, test in undecided)
            needed = ", ".join(f"{quality} {test.n_needed:,}" for quality, test in undecided)
            warnings.append(
                f"{outcome.name}: {n} queries are too few to prove that "
                f"NDCG@{config.quality_cutoff} lost less than {100 * config.relative_margin:g} %; "
                f"about so many are needed: {needed}"
            )
    return warnings


def calibration_warnings(after: Sequence[RetrieverSpec], other: str) -> Iterator[str]:
    """Yield what the calibrations know of a source: nothing, or a gap that may be none."""
    for spec in after:
        if not (isinstance(spec, RescoredSpec) and isinstance(spec.rescorer, ParityCalibration)):
            continue
        gaps = dict(zip(spec.rescorer.sources, spec.rescorer.gaps, strict=True))
        gap = gaps.get(other)
        if gap is None:
            yield (
                f"{spec.name}: {other} was not calibrated, its scores stay as they are; calibrated "
                f"{'is' if len(gaps) == 1 else 'are'} {', '.join(gaps)}"
            )
        elif not gap.excludes(0.0):
            yield (
                f"{spec.name}: the gap of {other} that it takes out, {gap.estimate:+.2g} "
                f"[{gap.lower:+.2g}, {gap.upper:+.2g}], may be 0: the pairs do not show that there "
                "is one"
            )


def _undecided(test: NoninferiorityTest) -> bool:
    """Whether more queries might show that the quality is kept."""
    return (
        not test.passed
        and test.n_needed is not None
        and test.n_needed > test.n_queries
        and test.change > -100 * test.relative_margin
    )


# The verb: prove what a mitigation changed in skew and what it cost in quality.


def measure_debias(
    before: RetrieverSpec,
    after: Sequence[RetrieverSpec],
    datasets: Sequence[Dataset],
    *,
    methods: Sequence[DebiasMethod] = (),
    fitted_texts: Collection[str] = (),
    other: str | None = None,
    config: DebiasConfig | None = None,
    training: Sequence[TrainingHistory] = (),
    on_stage: Callable[[str], None] | None = None,
) -> DebiasReport:
    """Compare a system with what mitigations made of it, on every data set.

    Parameters
    ----------
    before : RetrieverSpec
        The unchanged system.
    after : sequence of RetrieverSpec
        The changed ones; all names must differ.
    datasets : sequence of Dataset
        With judged queries and tagged documents; names must differ.
    methods : sequence of DebiasMethod, optional
        What was done, by name of the changed system; read off the system where it is not given.
    fitted_texts : collection of str
        Baseline texts of all pairs that any method was fitted on; judged pairs among them are
        counted and warned of.
    other : str, optional
        Source compared with the baseline. By default every other source is, one by one, each in a
        mixed corpus of its own (:func:`~rag_sourcebias.debias.audit.score_debias`).
    config : DebiasConfig, optional
    training : sequence of TrainingHistory
        Put into the report as they are.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    DebiasReport

    Raises
    ------
    DataError
        If names repeat, a source is missing or has no relevant document, a method belongs to no
        system, or no judged query has a text.
    """
    config = config or DebiasConfig()
    require_distinct("system", [before.name, *(spec.name for spec in after)])
    if not after:
        raise DataError("there is nothing to compare: give at least one changed system")
    if not datasets:
        raise DataError("there is nothing to judge on: give at least one data set")
    require_distinct("data set", [dataset.name for dataset in datasets])
    given = {method.name: method for method in methods}
    described = [given.get(spec.name) or method_of(spec) for spec in after]
    # Sources are checked for all data before anything is retrieved.
    parts = [
        (two_sources(dataset, config.baseline_source, source), source)
        for dataset in datasets
        for source in ((other,) if other else other_sources(dataset, config.baseline_source))
    ]
    measured = [
        _measured(
            dataset,
            source,
            before=before,
            after=after,
            config=config,
            fitted_texts=frozenset(fitted_texts),
            on_stage=on_stage or (lambda _: None),
        )
        for dataset, source in parts
    ]
    found, n_tests = _adjusted(measured)
    # Twins are found without judgments and without pairs
    fitted = [method.name for method in described if method.kind not in ("model", "twins")]
    warnings = []
    if fitted and not fitted_texts:
        warnings.append(
            f"the texts that {', '.join(fitted)} was fitted on were not given: whether it is "
            "judged on pairs it was fitted on is not checked"
        )
    return DebiasReport(
        config=config,
        methods=tuple(described),
        datasets=found,
        family=(
            "Holm correction over all changed systems × data sets × sources × cutoffs, tests of "
            "no change in Relative Δ"
        ),
        n_tests=n_tests,
        environment=environment(),
        created=timestamp(),
        training=tuple(training),
        warnings=tuple(warnings),
    )


def _measured(
    dataset: Dataset,
    other: str,
    *,
    before: RetrieverSpec,
    after: Sequence[RetrieverSpec],
    config: DebiasConfig,
    fitted_texts: frozenset[str],
    on_stage: Callable[[str], None],
) -> DebiasDataset:
    """Score and compare all systems on a data set of two sources."""
    score = partial(
        score_debias,
        dataset=dataset,
        config=config,
        other=other,
        on_stage=lambda stage: on_stage(f"{dataset.name}: {stage}"),
    )
    reference = score(before)
    pairs = judged_pairs(dataset, config.baseline_source, other)
    n_seen = seen_pairs(dataset, config.baseline_source, pairs, fitted_texts)
    outcomes = [DebiasOutcome(scores=reference, skew=skew_changes(None, reference, config))]
    for spec in after:
        scores = score(spec)
        on_stage(f"{dataset.name}: {spec.name}: comparing")
        outcomes.append(
            DebiasOutcome(
                scores=scores,
                skew=skew_changes(reference, scores, config),
                quality=quality_changes(
                    reference,
                    scores,
                    config,
                    unchanged=unchanged_qualities(
                        before, spec, dataset.corpus, (config.baseline_source, other)
                    ),
                ),
                n_seen=n_seen,
            )
        )
    return DebiasDataset(
        data=summarise_dataset(dataset),
        other=other,
        n_pairs=len(pairs),
        outcomes=tuple(outcomes),
        warnings=(
            *calibration_warnings(after, other),
            *debias_warnings(dataset, outcomes, config, n_pairs=len(pairs)),
        ),
    )


def _adjusted(datasets: Sequence[DebiasDataset]) -> tuple[tuple[DebiasDataset, ...], int]:
    """Adjust the tests of a change in skew over the whole report."""
    raw = [s.p_value for d in datasets for o in d.outcomes for s in o.skew]
    values = iter(adjust_p_values(raw))
    return tuple(
        replace(
            dataset,
            outcomes=tuple(
                replace(o, skew=tuple(replace(s, p_adjusted=next(values)) for s in o.skew))
                for o in dataset.outcomes
            ),
        )
        for dataset in datasets
    ), sum(p is not None for p in raw)
