"""Audit of a paired corpus: criteria, every pair, each corpus searched alone, values as CSV."""

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import environment
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
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.names import visible
from rag_sourcebias.core.protocols import Encoder, RetrieverSpec
from rag_sourcebias.infer.decide import adjust_p_values
from rag_sourcebias.infer.equivalence import equivalence_test
from rag_sourcebias.infer.sole_corpus import SoleCorpusCheck, sole_corpus_checks
from rag_sourcebias.io.files import PathLike, write_atomic
from rag_sourcebias.measure.dataset import require_sources, summarise, summarise_dataset
from rag_sourcebias.measure.relevance import SourceScores, score_run
from rag_sourcebias.pairs.checks import check_pairs
from rag_sourcebias.pairs.data import (
    PAIR_FLAGS,
    PAIR_VALUES,
    CheckedPair,
    NamedIds,
    PairCheckConfig,
    PairChecks,
    PairCriteria,
    PairReport,
    PairThresholds,
    SoleCorpusTest,
    SourcePairs,
)

# The three criteria of a paired corpus ([K] §2): sources known, labels copied, one to one.


_FIRST = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class PairRows:
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
    baseline_alone: IntArray = field(repr=False)
    other_alone: IntArray = field(repr=False)
    repeated: IntArray = field(repr=False)


def pair_rows(tags: TagTable, baseline: str, other: str) -> PairRows:
    """Find the pairs of two sources; of several versions in one source the first counts."""
    every = [
        np.flatnonzero(tags.source_codes == tags.sources.index(source))
        for source in (baseline, other)
    ]
    paired = [rows[tags.pair_codes[rows] >= 0] for rows in every]
    places = [np.unique(tags.pair_codes[rows], return_index=True)[1] for rows in paired]
    first = [rows[np.sort(place)] for rows, place in zip(paired, places, strict=True)]
    repeated = [np.delete(rows, place) for rows, place in zip(paired, places, strict=True)]
    ours = first[0][np.isin(tags.pair_codes[first[0]], tags.pair_codes[first[1]])]
    row_of = dict(zip(tags.pair_codes[first[1]].tolist(), first[1].tolist(), strict=True))
    theirs = np.array([row_of[code] for code in tags.pair_codes[ours].tolist()], dtype=np.int64)
    return PairRows(
        baseline=ours,
        other=theirs,
        baseline_alone=np.setdiff1d(every[0], np.concatenate([ours, repeated[0]])),
        other_alone=np.setdiff1d(every[1], np.concatenate([theirs, repeated[1]])),
        repeated=np.concatenate(repeated),
    )


def criteria_of(corpus: Corpus, qrels: Qrels, rows: PairRows) -> PairCriteria:
    """Count what the criteria ask for; without judgments nothing is said about labels."""
    tags = corpus.tags
    # Judgments by (query, pair), one mapping per side.
    judged: list[dict[tuple[int, int], int]] = []
    doc_rows = tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    for side in (rows.baseline, rows.other):
        place = np.full(len(tags) + 1, -1, dtype=np.int64)  # the last one is that of row -1
        place[side] = np.arange(len(side))
        pairs = place[doc_rows]
        at = np.flatnonzero(pairs >= 0)
        columns = (qrels.query_codes[at], pairs[at], qrels.grades[at])
        judged.append({(q, p): g for q, p, g in zip(*(c.tolist() for c in columns), strict=True)})
    base, other = judged

    def name(key: tuple[int, int]) -> str:
        return f"{qrels.query_ids[key[0]]}: {tags.doc_ids[rows.other[key[1]]]}"

    return PairCriteria(
        n_documents=len(corpus),
        untagged=_documents(tags, np.flatnonzero(tags.source_codes < 0)),
        n_pairs=len(rows.baseline),
        baseline_alone=_documents(tags, rows.baseline_alone),
        other_alone=_documents(tags, rows.other_alone),
        repeated=_documents(tags, rows.repeated),
        n_labels=len(base),
        labels_missing=_named([name(key) for key in base if key not in other]),
        labels_differ=_named([name(k) for k, g in base.items() if k in other and other[k] != g]),
        labels_added=_named([name(key) for key in other if key not in base]),
    )


def writable(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON may hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _named(names: Sequence[str]) -> NamedIds:
    return NamedIds(n=len(names), first=tuple(map(writable, names[:_FIRST])))


def _documents(tags: TagTable, rows: npt.NDArray[np.intp]) -> NamedIds:
    return NamedIds(n=len(rows), first=tuple(writable(tags.doc_ids[row]) for row in rows[:_FIRST]))


# Corpora of paired documents searched alone, and whether they are equally hard ([K] Table 2).


def shared_queries(dataset: Dataset, rows: PairRows) -> BoolArray:
    """Which judged queries have a text and a relevant document among both versions; shape (nq,)."""
    qrels = dataset.qrels
    doc_rows = dataset.corpus.tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    with_text = {query.query_id for query in dataset.queries}
    found = np.array([query_id in with_text for query_id in qrels.query_ids], dtype=np.bool_)
    for side in (rows.baseline, rows.other):
        relevant = np.zeros(len(qrels.query_ids), dtype=np.bool_)
        relevant[qrels.query_codes[(qrels.grades > 0) & np.isin(doc_rows, side)]] = True
        found &= relevant
    return found


def sole_corpus_tests(
    dataset: Dataset,
    rows: PairRows,
    retrievers: Sequence[RetrieverSpec],
    config: PairCheckConfig,
    *,
    sources: tuple[str, str],
    n_tests: int,
    on_stage: Callable[[str], None],
) -> list[SoleCorpusTest]:
    """Search the paired documents of each source alone and compare, query by query.

    Only documents with a counterpart are searched, so that both corpora are of one size, and only
    queries with a relevant document in both are compared; in a one-to-one corpus these are all.

    Parameters
    ----------
    sources : (str, str)
        Baseline and other.
    n_tests : int
        In the whole report, for the queries needed after correction.
    """
    kept = shared_queries(dataset, rows)
    wanted = {q for q, keep in zip(dataset.qrels.query_ids, kept, strict=True) if keep}
    queries = [query for query in dataset.queries if query.query_id in wanted]
    if not queries:
        return []
    doc_rows = dataset.corpus.tags.rows_for(dataset.qrels.doc_ids)[dataset.qrels.doc_codes]
    found = []
    for spec in retrievers:
        alone: dict[str, SourceScores] = {}
        for source, side in zip(sources, (rows.baseline, rows.other), strict=True):
            corpus = dataset.corpus.take(side)
            on_stage(f"{spec.name}: {len(corpus):,} documents of {source} alone")
            scores = score_run(
                spec.build(corpus).retrieve(queries, config.depth),
                dataset.qrels.take(np.isin(doc_rows, side)),
                measures=config.measures,
                cutoffs=config.cutoffs,
                ties=config.ties,
                gain=config.gain,
            )
            alone[source] = replace(
                scores,
                query_ids=tuple(q for q, keep in zip(scores.query_ids, kept, strict=True) if keep),
                values=np.ascontiguousarray(scores.values[:, :, kept]),
                n_relevant=np.ascontiguousarray(scores.n_relevant[:, kept]),
            )
        checks = sole_corpus_checks(
            alone, baseline=sources[0], confidence_level=config.confidence_level
        )
        found += [_test(spec.name, check, alone, config, n_tests=n_tests) for check in checks]
    return found


def adjusted_tests(
    tests: Sequence[SoleCorpusTest],
) -> tuple[SoleCorpusTest, ...]:
    """Adjust both kinds of tests by Holm, each over all that were made."""
    return tuple(
        replace(test, p_different_adjusted=d, p_equivalent_adjusted=e)
        for test, d, e in zip(
            tests,
            adjust_p_values([test.p_different for test in tests]),
            adjust_p_values([test.p_equivalent for test in tests]),
            strict=True,
        )
    )


def _test(
    system: str,
    check: SoleCorpusCheck,
    alone: dict[str, SourceScores],
    config: PairCheckConfig,
    *,
    n_tests: int,
) -> SoleCorpusTest:
    first, second = (alone[s].of(check.measure, "all") for s in (check.baseline, check.other))
    test, needed, refusal = None, None, None
    try:
        test = equivalence_test(first, second, margin=config.margin, level=config.level)
        # Holm asks of the smallest p-value that it passes at the level over the number of tests.
        needed = equivalence_test(
            first, second, margin=config.margin, level=config.level / n_tests
        ).n_needed
    except InsufficientDataError as error:
        refusal, needed = str(error), error.n_needed
    return SoleCorpusTest(
        system=system,
        other=check.other,
        measure=check.measure,
        mean_baseline=check.mean_baseline,
        mean_other=check.mean_other,
        difference=check.difference,
        p_different=check.p_value,
        margin=config.margin,
        level=config.level,
        p_equivalent=None if test is None else test.p_value,
        n_queries=len(first),
        n_needed=needed,
        note=None if test is None else test.note,
        refusal=refusal,
    )


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
    return SourcePairs(
        source=source,
        criteria=criteria,
        summary=checks.summary(),
        histograms={
            name: found
            for name, edges in _EDGES.items()
            if (found := _histogram(getattr(checks, name), edges)) is not None
        },
        flagged_ids={
            flag: tuple(writable(checks.pair_ids[row]) for row in np.flatnonzero(column))
            for flag, column in zip(PAIR_FLAGS, checks.flags.T, strict=True)
            if column.any()
        },
        worst=tuple(
            _pair(checks, int(row), texts, config.text_limit) for row in checks.worst(config.worst)
        ),
        by_chance=checks.by_chance,
    )


def _histogram(values: FloatArray, edges: FloatArray) -> Histogram | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    counts, _ = np.histogram(np.clip(known, edges[0], edges[-1]), bins=edges)
    return Histogram(
        edges=edges.copy(),
        counts=counts.astype(np.int64),
        mean=float(known.mean()),
        median=float(np.median(known)),
    )


def _pair(
    checks: PairChecks, row: int, texts: tuple[Sequence[str], Sequence[str]], limit: int
) -> CheckedPair:
    baseline, other = (side[row] for side in texts)
    return CheckedPair(
        pair_id=writable(checks.pair_ids[row]),
        baseline_text=writable(baseline[:limit]),
        other_text=writable(other[:limit]),
        baseline_length=len(baseline),
        other_length=len(other),
        broken=bool(checks.broken[row]),
        flags=tuple(
            flag for flag, found in zip(PAIR_FLAGS, checks.flags[row], strict=True) if found
        ),
        reasons=_all_writable(checks.reasons[row]),
        values={
            name: float(column[row])
            for name in PAIR_VALUES
            if not np.isnan((column := getattr(checks, name))[row])
        },
        numbers_missing=_all_writable(checks.numbers_missing[row]),
        numbers_added=_all_writable(checks.numbers_added[row]),
        names_missing=_all_writable(checks.names_missing[row]),
        names_added=_all_writable(checks.names_added[row]),
    )


def _all_writable(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(writable(text) for text in texts)


# What a reader must know about a paired corpus before trusting an audit of it.


_FEW_PAIRS = 20
_MANY_UNRELATED = 0.2


def pair_warnings(
    dataset: Dataset | None, rows: Mapping[str, PairRows], parts: Sequence[SourcePairs]
) -> Iterator[str]:
    """Yield what the criteria and counts of the report do not say.

    Parameters
    ----------
    dataset : Dataset or None
        Where each corpus was searched alone.
    """
    for part in parts:
        name, n = part.source, part.criteria.n_pairs
        if 0 < n < _FEW_PAIRS and part.by_chance is None:
            yield (
                f"{name}: {n} pairs are too few to know how alike mismatched pairs are, so "
                "rewrites of another text are not recognised"
            )
        unrelated = part.summary.flagged.get("unrelated", 0)
        if part.by_chance is not None and unrelated > _MANY_UNRELATED * n:
            yield (
                f"{name}: {unrelated} of {n} rewrites are no more like their original than "
                f"mismatched pairs ({part.by_chance:.2f}): either they are no rewrites of them, or "
                "all texts of this corpus resemble one another; use an encoder, or switch the "
                "threshold chance off"
            )
        if dataset is None:
            continue
        kept = shared_queries(dataset, rows[name])
        if not kept.all():
            yield (
                f"{name}: {np.count_nonzero(~kept)} of {len(kept)} judged queries have no text or "
                "no relevant document in one of the two corpora, and are left out of the "
                "comparison of corpora searched alone"
            )


# The verb: is a paired corpus what an audit of source bias needs ([K] §2).


_FAMILY = (
    "Holm correction over all retrievers × measures × cutoffs × sources, tests of no difference "
    "and tests of equivalence each among themselves"
)


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
    corpus, dataset = (data.corpus, data) if isinstance(data, Dataset) else (data, None)
    qrels = Qrels.from_rows(()) if dataset is None else dataset.qrels
    _check_retrievers(retrievers, dataset)
    rows = _rows_of(corpus.tags, baseline_source, sources)
    parts: list[SourcePairs] = []
    tests: list[SoleCorpusTest] = []
    for source, found in rows.items():
        begin(f"{source}: checking {len(found.baseline):,} pairs")
        texts = (
            [corpus.texts[row] for row in found.baseline],
            [corpus.texts[row] for row in found.other],
        )
        pair_ids = [corpus.tags.pair_ids[code] for code in corpus.tags.pair_codes[found.baseline]]
        checks = check_pairs(*texts, pair_ids=pair_ids, encoder=encoder, thresholds=thresholds)
        criteria = criteria_of(corpus, qrels, found)
        parts.append(source_pairs(source, checks, texts, criteria, config=config))
        if on_checks is not None:
            on_checks(source, checks)
        if dataset is not None and retrievers:
            tests += sole_corpus_tests(
                dataset, found, retrievers, config, sources=(baseline_source, source),
                n_tests=len(rows) * len(retrievers) * len(config.measures) * len(config.cutoffs),
                on_stage=begin,
            )  # fmt: skip
    return PairReport(
        data=summarise(
            name="corpus",
            design="unknown",
            qrels=qrels,
            tags=corpus.tags,
            corpus=corpus,
        )
        if dataset is None
        else summarise_dataset(dataset),
        baseline_source=baseline_source,
        config=config,
        sources=tuple(parts),
        thresholds=thresholds,
        sole_corpus=adjusted_tests(tests),
        family=_FAMILY if tests else "",
        n_tests=sum(test.p_equivalent is not None for test in tests),
        encoder="" if encoder is None else encoder.name,
        settings=({} if encoder is None else {encoder.name: dict(encoder.settings)})
        | {spec.name: dict(spec.settings) for spec in retrievers},
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=tuple(pair_warnings(dataset if retrievers else None, rows, parts)),
    )


def _check_retrievers(retrievers: Sequence[RetrieverSpec], dataset: Dataset | None) -> None:
    names = [spec.name for spec in retrievers]
    if len(set(names)) < len(names):
        raise DataError(f"names of retrievers must differ, got {names}")
    if names and (dataset is None or not len(dataset.qrels)):
        raise DataError(
            f"retrievers {names} need queries and judgments, which this corpus does not have; "
            "give a data set with both, or no retriever"
        )


def _rows_of(tags: TagTable, baseline: str, sources: Sequence[str] | None) -> dict[str, PairRows]:
    require_sources(tags, baseline)
    others = [name for name in tags.sources if name != baseline]
    wrong = [name for name in sources or () if name not in others]
    if wrong or (sources is not None and not sources):
        raise DataError(f"no other source {wrong or list(sources or ())}; there are {others}")
    chosen = others if sources is None else list(dict.fromkeys(sources))
    rows = {source: pair_rows(tags, baseline, source) for source in chosen}
    if not any(len(found.baseline) for found in rows.values()):
        alone = (rows[chosen[0]].baseline_alone, *(found.other_alone for found in rows.values()))
        raise DataError(
            f"no document of {baseline!r} has a counterpart in {', '.join(map(repr, chosen))}: "
            "versions of a document need the same _id in corpus/<source>.jsonl, or the same "
            f"pair_id; the first documents are {[tags.doc_ids[some[0]] for some in alone]}"
        )
    return rows


# Values, flags and reasons of every pair as a table, a row per pair.


_LISTS = ("numbers_missing", "numbers_added", "names_missing", "names_added")
# What a spreadsheet would take for a formula gets an apostrophe, as in our labelling sheets.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_UNSAFE = re.compile(r'[%/\\:*?"<>|\x00-\x1f]')


def pair_files(sources: Sequence[str]) -> dict[str, str]:
    """Return the file name of each source: ``pairs-<source>.csv``.

    ``llm:`` is left off where that does not make two names one; characters that no file name can
    hold are written as %XX.

    Examples
    --------
    >>> pair_files(["llm:gpt-4", "llm:org/model"])
    {'llm:gpt-4': 'pairs-gpt-4.csv', 'llm:org/model': 'pairs-org%2Fmodel.csv'}
    """
    short = [source.removeprefix("llm:") for source in sources]
    safe = (
        _UNSAFE.sub(lambda c: f"%{ord(c[0]):02X}", name if short.count(name) == 1 else source)
        for source, name in zip(sources, short, strict=True)
    )
    return {source: f"pairs-{name}.csv" for source, name in zip(sources, safe, strict=True)}


def write_pair_checks(checks: PairChecks, path: PathLike) -> None:
    """Write one row per pair as UTF-8 CSV with a byte-order mark, all of it or nothing.

    Columns: pair_id, broken, flags (separated by blanks), reasons (by " | "), the values, numbers
    and names missing and added (by " | "), and the languages. A value nobody has is empty.

    Raises
    ------
    DataError
        If the folder is missing or not writable.
    """
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow(
        [
            *("pair_id", "broken", "flags", "reasons"),
            *PAIR_VALUES,
            *_LISTS,
            *("language_baseline", "language_other"),
        ]
    )
    for row, pair_id in enumerate(checks.pair_ids):
        values = (float(getattr(checks, name)[row]) for name in PAIR_VALUES)
        flags = (name for name, on in zip(PAIR_FLAGS, checks.flags[row], strict=True) if on)
        writer.writerow(
            [
                _text(pair_id),
                "yes" if checks.broken[row] else "no",
                " ".join(flags),
                _text(" | ".join(checks.reasons[row])),
                *("" if math.isnan(value) else f"{value:.4f}" for value in values),
                *(_text(" | ".join(getattr(checks, name)[row])) for name in _LISTS),
                *checks.languages[row],
            ]
        )
    write_atomic(path, "\ufeff" + lines.getvalue())


def _text(cell: str) -> str:
    """Make a cell that is no formula and drives no terminal."""
    cell = visible(cell, lines=True)
    return f"'{cell}" if _FORMULA.match(cell) else cell
