"""The verb: measure writing-style bias from similarities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, compress, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.data import (
    BoolArray,
    Corpus,
    DocTags,
    FloatArray,
    IntArray,
    Qrels,
    Query,
    Run,
    TagTable,
)
from rag_sourcebias.core.errors import DataError, InsufficientDataError, if_enough
from rag_sourcebias.core.finding import Evidence, EvidenceText, Interval, telling
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    ClusterFlips,
    adjust_p_values,
    bootstrap_intervals,
    cluster_flips,
    crossing,
    declared_clusters,
    difference_test,
    dirichlet_sums,
    flipped_mean,
    group_codes,
    means_of,
    normal_quantile,
    of_queries,
    published_delta,
    require_flippable,
    t_quantile,
)
from rag_sourcebias.infer.texts import text_statistics
from rag_sourcebias.measure.relevance import SourceScores, group_scores, rank_span, score_run
from rag_sourcebias.measure.texts import installed_statistics, missing_statistics, word_counts
from rag_sourcebias.retrieval.cache import (
    DocumentVectors,
    RememberedEncoder,
    encode_corpus,
    query_vectors,
)
from rag_sourcebias.retrieval.search import BM25Spec, DenseRetriever, version_scores
from rag_sourcebias.style.data import (
    STYLE_SCHEMA_VERSION,
    StyleCode,
    StyleConfig,
    StyleData,
    StyleFinding,
    StyleGain,
    StyleIndexScore,
    StyleQuality,
    StyleRow,
    StyleSystem,
    telling_styles,
)
from rag_sourcebias.style.measure import (
    StyleMatrix,
    adjusted_from_means,
    compare_ranks,
    friedman_test,
    length_columns,
    length_slope,
    lengths_vary,
    matching_gains,
    max_unfairness,
    rank_versions,
    style_finding,
    unfairness,
    unfairness_score,
)
from rag_sourcebias.style.page import StyleReport

# The queries of a style audit that have every version, and what to warn about.

_FEW = 100
_VERY_FEW = 20
_SHOWN = 5
_ALONE = "ranks at equal length, what chance alone gives and statistics of texts"
_LENGTH_DIFFERS = 0.1


def with_every_version(texts: StyledTexts, missing: str) -> BoolArray:
    """Tell which queries have a text in every style; shape (n,). A blank text is none.

    Raises
    ------
    DataError
        If there are fewer than 2 document styles, or a version is missing and
        ``config.missing`` is ``"refuse"``.
    InsufficientDataError
        If no query has every version.
    """
    styles = list(texts.documents)
    if len(styles) < 2:
        raise DataError(f"there is 1 document style ({styles[0]!r}); a comparison needs at least 2")
    versions, columns = [], []
    for side, of_side in (("query", texts.queries), ("document", texts.documents)):
        for style, column in of_side.items():
            versions.append(f"{side} style {style!r}")
            columns.append([bool(text and text.strip()) for text in column])
    return _complete(np.column_stack(columns), texts.query_ids, versions, "text", missing)


def _complete(
    has: BoolArray,
    query_ids: Sequence[str],
    versions: Sequence[str],
    what: str,
    missing: str,
) -> BoolArray:
    """Tell which rows of (queries, versions) are complete; shape (n,)."""
    keep = np.asarray(has.all(axis=1))
    if missing == "refuse" and not keep.all():
        query, version = np.argwhere(~has)[0]
        raise DataError(
            f"{np.count_nonzero(~has)} version(s) have no {what}, first {versions[version]} of "
            f"query {query_ids[query]!r}; add it, or use only the {np.count_nonzero(keep)} of "
            f"{len(keep)} queries that have every version (missing='balanced')"
        )
    if not keep.any():
        lacking = np.count_nonzero(~has, axis=0)
        raise InsufficientDataError(
            f"none of the {len(keep)} queries left has a {what} in every style; "
            f"{versions[int(lacking.argmax())]} lacks {lacking.max()} of them: leave that style "
            "out, or add versions",
            n=0,
            n_needed=1,
        )
    return keep


def columns_of(versions: Mapping[str, tuple[str | None, ...]]) -> dict[str, list[str]]:
    """Texts per style of queries that have every version."""
    return {style: [text or "" for text in column] for style, column in versions.items()}


def style_settings(
    texts: StyledTexts, config: StyleConfig | None
) -> tuple[StyleConfig, tuple[str, ...]]:
    """Settings with the names of the originals that the data has, and warnings.

    A name left at its default that the data does not have means the first style.

    Raises
    ------
    DataError
        If an original was named that the data does not have.
    """
    config, default = config or StyleConfig(), StyleConfig()
    original, note = _original(config.original, default.original, texts.documents, "document")
    query, query_note = _original(
        config.original_query, default.original_query, texts.queries, "query"
    )
    settings = replace(config, original=original, original_query=query)
    return settings, tuple(text for text in (note, query_note) if text)


def _original(
    asked: str, default: str, styles: Mapping[str, object], side: str
) -> tuple[str, str | None]:
    if asked in styles:
        return asked, None
    if asked != default:
        raise DataError(f"original {asked!r} is no {side} style; there are {list(styles)}")
    first = next(iter(styles))
    return first, f"there is no {side} style {asked!r}: {first!r}, the first, is the original"


def style_warnings(
    texts: StyledTexts, dropped: Sequence[str], config: StyleConfig
) -> Iterator[str]:
    """Say what a reader must know about the data before trusting a number.

    Parameters
    ----------
    texts : StyledTexts
        With every version.
    dropped : sequence of str
        Queries that were left out.
    """
    n = len(texts)
    if dropped:
        shown = ", ".join(dropped[:_SHOWN])
        if len(dropped) > _SHOWN:
            shown += ", …"
        yield (
            f"{len(dropped)} of {n + len(dropped)} queries lack a version and are left "
            f"out ({shown}), so that all styles are compared on the same queries"
        )
    if n < _VERY_FEW:
        yield (
            f"{n} queries are too few to rank styles: intervals are rough, and only "
            f"very large differences can be told from chance; use {_FEW} or more"
        )
    elif n < _FEW:
        yield f"{n} queries are few: read the intervals, not the averages alone"
    shared = sum(count for count in Counter(texts.doc_ids).values() if count > 1)
    if shared:
        yield (
            f"{shared} queries share their document with another query; intervals treat queries "
            "as independent, so they are too narrow"
        )
    yield from _lengths(texts, config)
    for side, versions in (("document", texts.documents), ("query", texts.queries)):
        rows = zip(*columns_of(versions).values(), strict=True)
        same = [i for i, row in enumerate(rows) if len({*row}) < len(row)]
        if same:
            yield (
                f"{len(same)} of {n} queries have the same {side} text in two or more "
                f"styles (first {texts.query_ids[same[0]]!r}); they rank alike"
            )


def _lengths(texts: StyledTexts, config: StyleConfig) -> Iterator[str]:
    means = {s: word_counts(c).mean() for s, c in columns_of(texts.documents).items()}
    base = means.pop(config.original)
    if not base:
        return
    ratio = {style: mean / base for style, mean in means.items()}
    differing = [style for style in ratio if abs(ratio[style] - 1) > _LENGTH_DIFFERS]
    if differing:
        most = max(differing, key=lambda style: abs(ratio[style] - 1))
        yield (
            f"{len(differing)} of {len(ratio)} document styles differ by more than "
            f"{_LENGTH_DIFFERS:.0%} in length from {config.original!r} ({most!r} has "
            f"{ratio[most]:.2f} times its words): length alone can move ranks, compare the ranks "
            "at equal length"
        )


# Intervals for everything a style matrix shows.


_MIN_QUERIES = 2
_MIN_UNFAIR = 10  # simulated from here on


class StyleMatrixIntervals(NamedTuple):
    """Intervals from one resampling of the queries.

    Parameters
    ----------
    average_ranks : tuple of tuple of Interval, shape (q, d)
    unfairness : tuple of Interval or None, length q
        Per query style; None with fewer than 10 queries.
    mean_unfairness : Interval or None
        Mean over query styles ([W] Table 1, Avg).
    adjusted_ranks : tuple of tuple of Interval or None, shape (q, d)
        Average ranks at equal length (:func:`adjusted_from_means`); rows are empty where lengths
        cannot be told apart from styles.
    length_slopes : tuple of float or None, length q
        None where rows of ``adjusted_ranks`` are empty.
    """

    average_ranks: tuple[tuple[Interval | None, ...], ...]
    unfairness: tuple[Interval | None, ...]
    mean_unfairness: Interval | None
    adjusted_ranks: tuple[tuple[Interval | None, ...], ...]
    length_slopes: tuple[float | None, ...]


def style_matrix_intervals(
    matrix: StyleMatrix,
    lengths: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> StyleMatrixIntervals:
    """Resample queries, each with all its versions.

    Parameters
    ----------
    lengths : array of shape (n, d)
        Length of every document version, positive.
    ddof : int
        Of the unfairness score.

    Notes
    -----
    Of one query there are no intervals.

    An average rank is a mean of bounded values: its ends are Gaffke's, with one query more at the
    last or at the first place (:func:`~rag_sourcebias.infer.means.dirichlet_sums`).

    Noise can only raise unfairness, so that resampled values lie above the truth. Its ends are
    those of a test instead: average ranks that deviate in the seen direction by t are kept if the
    seen unfairness lies within the central part of what they give with the errors of resampling.
    Errors are enlarged to the variance and the quantile of a t interval; the query not seen has
    no preference for the lower end, and the order seen for the upper one.
    """
    n, q, d = matrix.ranks.shape
    if n < _MIN_QUERIES:
        return StyleMatrixIntervals(((None,) * d,) * q, (None,) * q, None, ((),) * q, (None,) * q)
    terms = np.stack([length_columns(matrix.ranks[:, a], lengths) for a in range(q)], axis=1)
    # One resampling for everything: a query is drawn with its ranks and its lengths.
    columns = np.concatenate((matrix.ranks.reshape(n, -1), terms.reshape(n, -1)), axis=1)
    drawn, share = dirichlet_sums(columns, resamples=resamples, rng=rng)
    sums = drawn[:, : q * d]
    means = terms.mean(axis=0)
    adjusted: tuple[tuple[Interval | None, ...], ...] = ((),) * q
    slopes: list[float | None] = [None] * q
    if lengths_vary(means):
        slopes = length_slope(means).tolist()
        resampled = drawn[:, q * d :] / (1 - share[:, None])
        found = bootstrap_intervals(
            adjusted_from_means(means).ravel(),
            adjusted_from_means(resampled.reshape(-1, *means.shape)).reshape(-1, q * d),
            n=n,
            confidence_level=confidence_level,
        )
        adjusted = _by_row(found, d)

    tail = (1 - confidence_level) / 2
    parts = [slice(a, a + 1) for a in range(q)]
    if q > 1:
        parts.append(slice(None))
    rows: list[Interval | None] = [None] * (q + 1)
    if matrix.clusters is None:
        lowest = np.quantile(sums + share[:, None], tail, axis=0).clip(1)
        highest = np.quantile(sums + d * share[:, None], 1 - tail, axis=0).clip(None, d)
        ends = np.stack((matrix.average.ravel(), lowest, highest), axis=1).tolist()
        of_cell = partial(of_queries, level=confidence_level, method=InferCode.GAFFKE, n=n)
        cells = [of_cell(*cell) for cell in ends]
        shaped = sums.reshape(-1, q, d)
        inverted = partial(_unfairness, share=share, n=n, ddof=ddof, level=confidence_level)
        if n >= _MIN_UNFAIR:
            rows = [inverted(matrix.average[at], shaped[:, at]) for at in parts]
    else:
        mean_of = partial(flipped_mean, clusters=matrix.clusters, resamples=resamples, seed=rng)
        of_cell = partial(mean_of, confidence_level=confidence_level, bounds=(1.0, float(d)))
        cells = [of_cell(column) for column in matrix.ranks.reshape(n, q * d).T]
        flip = partial(cluster_flips, clusters=matrix.clusters, resamples=resamples, seed=rng)
        flipped = partial(_flipped_unfairness, flip=flip, ddof=ddof, level=confidence_level)
        rows = [flipped(matrix.ranks[:, at]) for at in parts]
    return StyleMatrixIntervals(
        average_ranks=_by_row(cells, d),
        unfairness=tuple(rows[:q]),
        mean_unfairness=rows[-1],
        adjusted_ranks=adjusted,
        length_slopes=tuple(slopes),
    )


def _unfairness(
    average: FloatArray, sums: FloatArray, share: FloatArray, *, n: int, ddof: int, level: float
) -> Interval:
    """Return the interval of the mean unfairness of average ranks of shape (r, d).

    From sums of shape (resamples, r, d) over n queries.
    """
    d, tail = average.shape[1], (1 - level) / 2
    head = 1 - tail
    of = partial(of_queries, level=level, n=n)
    seen = float(unfairness_score(average, ddof=ddof).mean())
    root, most = math.sqrt(seen), max_unfairness(d, ddof=ddof)
    if average.size == 2:
        # Half the squared difference (ddof 0), so that its interval is that of the difference.
        difference = sums[:, 0, 0] - sums[:, 0, 1]
        low = float(np.quantile(difference - share, tail))
        high = float(np.quantile(difference + share, head))
        nearest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
        farthest = max(abs(low), abs(high))
        return of(seen, nearest**2 * most, farthest**2 * most, method=InferCode.GAFFKE)
    deviations = average - average.mean(axis=1, keepdims=True)
    centred = sums - sums.mean(axis=2, keepdims=True)
    outward = rank_versions(-deviations) - (d + 1) / 2
    direction, unit = deviations, seen
    if seen == 0:
        direction = np.broadcast_to(np.arange(d) - (d - 1) / 2, average.shape)
        unit = most
    scale = math.sqrt((n + 1) * (n + 2) / (n * (n - 1)))
    scale *= t_quantile(head, n - 1) / normal_quantile(head)

    def end(errors: FloatArray, probability: float) -> float:
        middle = errors.mean(axis=0)
        enlarged = middle + scale * (errors - middle)

        def at(t: float) -> float:
            # The root, because unfairness grows with the square of t.
            moved = np.sqrt(unfairness_score(t * direction + enlarged, ddof=ddof).mean(axis=1))
            return float(np.quantile(moved, probability))

        return crossing(at, root)

    errors = deviations - centred
    lower = end(errors, head) if seen > 0 else 0.0
    upper = end(errors - share[:, None, None] * outward, tail)
    upper = min(upper**2 * unit, most)
    return of(seen, lower**2 * unit, upper, method=InferCode.INVERTED_TEST)


def _flipped_unfairness(
    ranks: FloatArray, *, flip: Callable[[FloatArray], ClusterFlips], ddof: int, level: float
) -> Interval:
    """Return the interval of the mean unfairness of ranks of shape (n, r, d) over clusters.

    Unfairness grows with the square of the length of all deviations of average ranks.
    """
    n, r, d = ranks.shape
    average = ranks.mean(axis=0)
    flips = flip((ranks - (d + 1) / 2).reshape(n, r * d))
    along = flips.direction
    unit = float(unfairness_score(along.reshape(r, d), ddof=ddof).mean())
    lower, upper = (max(end, 0.0) ** 2 * unit for end in flips.ends(level, along))
    seen, most = unfairness_score(average, ddof=ddof).mean(), max_unfairness(d, ddof=ddof)
    return flips.interval(float(seen), lower, min(upper, most), level)


def _by_row(cells: Sequence[Interval | None], d: int) -> tuple[tuple[Interval | None, ...], ...]:
    return tuple(tuple(cells[i : i + d]) for i in range(0, len(cells), d))


# Everything that the similarities of one encoder or retriever say about styles.


def style_system(
    name: str,
    similarity: FloatArray,
    complete: StyledTexts,
    config: StyleConfig,
    *,
    settings: Mapping[str, str] | None,
    clusters: IntArray | None,
    notes: Sequence[str] = (),
) -> StyleSystem:
    """Rank, compare and test the styles for one system.

    Parameters
    ----------
    similarity : float64 array of shape (n, q, d)
        No NaN.
    complete : StyledTexts
        Queries that have every version.
    clusters : int64 array of shape (n,), optional
        Codes of their clusters.
    """
    matrix = StyleMatrix(
        query_styles=tuple(complete.queries),
        doc_styles=tuple(complete.documents),
        ranks=rank_versions(similarity),
        clusters=clusters,
    )
    intervals = style_matrix_intervals(
        matrix,
        np.stack(
            [np.maximum(word_counts(c), 1) for c in columns_of(complete.documents).values()],
            axis=1,
        ),
        ddof=config.ddof,
        confidence_level=config.confidence_level,
        resamples=config.resamples,
        rng=config.seed,
    )
    rows = _rows(matrix, intervals, config)
    at = matrix.query_styles.index(config.original_query)
    finding = style_finding(
        matrix.ranks[:, at],
        matrix.doc_styles,
        test=rows[at].friedman,
        against_original=rows[at].against_original,
        margin=config.margin,
        clusters=clusters,
        confidence_level=config.confidence_level,
        rng=np.random.default_rng((config.seed, 3)),
    )
    return StyleSystem(
        name=name,
        settings=dict(settings or {}),
        query_ids=complete.query_ids,
        ranks=matrix.ranks,
        rows=rows,
        mean_unfairness=intervals.mean_unfairness,
        finding=finding,
        evidence=evidence_of(matrix.ranks[:, at], complete, rows[at], finding, config.original),
        matching=_matching(matrix, config),
        notes=(*notes, *_notes(matrix.ranks, intervals)),
    )


def _rows(
    matrix: StyleMatrix, found: StyleMatrixIntervals, config: StyleConfig
) -> tuple[StyleRow, ...]:
    return tuple(
        StyleRow(
            query_style=form,
            average_ranks=found.average_ranks[at],
            unfairness=unfairness(matrix.ranks[:, at], ddof=config.ddof),
            unfairness_interval=found.unfairness[at],
            friedman=friedman_test(matrix.ranks[:, at], matrix.clusters),
            against_original=compare_ranks(
                matrix.ranks[:, at],
                matrix.doc_styles,
                config.original,
                matrix.clusters,
                correction=config.correction,
                confidence_level=config.confidence_level,
                resamples=config.resamples,
                rng=np.random.default_rng((config.seed, 2)),
            ),
            adjusted_ranks=found.adjusted_ranks[at],
            length_slope=found.length_slopes[at],
        )
        for at, form in enumerate(matrix.query_styles)
    )


def evidence_of(
    ranks: FloatArray, texts: StyledTexts, row: StyleRow, found: StyleFinding, original: str
) -> tuple[Evidence, ...]:
    """Return the queries in which the two styles of the verdict lie furthest apart.

    Parameters
    ----------
    ranks : float64 array of shape (n, d)
        Under the query style of ``row``.
    """
    if found.code is StyleCode.TIED:
        return ()
    styles = tuple(texts.documents)
    high, low = telling_styles(found, row, original)
    sides = [(style, ranks[:, styles.index(style)]) for style in (high, low)]
    apart = sides[1][1] - sides[0][1]

    def side(at: int, style: str, places: FloatArray) -> EvidenceText:
        return EvidenceText.of(style, texts.documents[style][at] or "", value=float(places[at]))

    return tuple(
        Evidence(
            item=texts.query_ids[at],
            asked=texts.queries[row.query_style][at] or "",
            value=float(apart[at]),
            first=side(at, *sides[0]),
            second=side(at, *sides[1]),
        )
        for at in telling(apart, texts.query_ids).tolist()
    )


def _matching(matrix: StyleMatrix, config: StyleConfig) -> tuple[StyleGain, ...]:
    """Gain of each style under queries of its own style, against all other query styles.

    The original wording is no style of its own: its row is compared with, never matched.
    """
    styles = [
        form
        for form in matrix.query_styles
        if form in matrix.doc_styles and form != config.original_query
    ]
    if not styles or len(matrix.query_styles) < 2:
        return ()
    gains = matching_gains(matrix, styles)
    columns = np.column_stack((gains, gains.mean(axis=1))).T
    return tuple(
        StyleGain(
            style=style,
            mean=float(column.mean()),
            gain=if_enough(means_of(matrix.clusters, config), column),
        )
        for style, column in zip((*styles, ""), columns, strict=True)
    )


def _notes(averaged: FloatArray, intervals: StyleMatrixIntervals) -> Iterator[str]:
    tied = np.diff(np.sort(averaged, axis=2), axis=2) == 0
    some = np.count_nonzero(tied.any(axis=2))
    if some:
        whole = np.count_nonzero(tied.all(axis=2))
        rest = f", {whole} of them tie every version" if whole else ""
        yield f"{some} of {tied[..., 0].size} rankings (queries × query styles) hold ties{rest}"
    if len(averaged) < _MIN_QUERIES:
        yield "there are no intervals: they need at least 2 queries"
    elif not intervals.adjusted_ranks[0]:
        yield (
            "no ranks at equal length: every style keeps its length relative to the others, so "
            "length and style cannot be told apart"
        )


# The verb: measure writing-style bias from similarities.


def measure_style_bias(
    similarities: Mapping[str, npt.NDArray[np.floating[Any]]],
    texts: StyledTexts,
    *,
    config: StyleConfig | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
    clusters: Mapping[str, str] | None = None,
) -> StyleReport:
    """Measure which writing styles similarities favour, for documents and queries ([W] §3–4).

    Parameters
    ----------
    similarities : mapping of system name to float array of shape (n, q, d)
        Similarity of query i in query style a to its document in style b, in the order of
        ``texts.queries`` and ``texts.documents``; higher is more similar, NaN where there is no
        version.
    texts : StyledTexts
        Lengths are taken from it, and a blank text counts as a missing version.
    config : StyleConfig, optional
        A missing version makes the whole query drop out for all systems, or is refused
        (``config.missing``). Where ``original`` or ``original_query`` has its default and the
        data does not have it, the first style is the original.
    settings : mapping of system name to mapping, optional
        What the report is to state about each system.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each query: queries of one cluster may depend
        on one another.

    Returns
    -------
    StyleReport
        Without text statistics and quality in an index, see
        :func:`~rag_sourcebias.audit_style`. A style's matching gain is its mean rank under
        all other query styles, the original one among them, minus that under its own.

    Raises
    ------
    DataError
        If nothing was given, an array has another shape or an infinite number, there are fewer
        than 2 document styles, or a version is missing and must not be.
    InsufficientDataError
        If no query has every version, or the clusters are too few or too uneven.

    Examples
    --------
    >>> texts = StyledTexts(
    ...     query_ids=("q",),
    ...     queries={"original": ("who?",)},
    ...     documents={"human": ("she",), "llm": ("It was she.",)},
    ... )
    >>> report = measure_style_bias({"x": np.array([[[0.9, 0.4]]])}, texts)
    >>> report.system("x").average_ranks.tolist()
    [[1.0, 2.0]]
    """
    if not similarities:
        raise DataError("no similarities were given; give an array for at least one system")
    unknown = [name for name in settings or {} if name not in similarities]
    if unknown:
        raise DataError(f"settings name {unknown[0]!r}; systems are {list(similarities)}")
    config, warnings = style_settings(texts, config)
    codes, told = declared_clusters(texts.query_ids, clusters, of="texts", alone=_ALONE)
    keep = with_every_version(texts, config.missing)
    arrays = {name: _checked(name, array, texts) for name, array in similarities.items()}
    for name, array in arrays.items():
        keep = _scored(name, array, texts, keep, config.missing)
    complete = texts.take(keep)
    cluster = _kept(codes, keep, config)
    systems = [
        style_system(
            name,
            array[keep],
            complete,
            config,
            settings=(settings or {}).get(name),
            clusters=cluster,
        )
        for name, array in arrays.items()
    ]
    return assemble_styles(
        systems,
        complete,
        config,
        dropped=tuple(compress(texts.query_ids, ~keep)),
        warnings=warnings + told,
    )


def _kept(codes: IntArray | None, keep: BoolArray, config: StyleConfig) -> IntArray | None:
    """Return codes of the clusters of the queries that have every version.

    Raises
    ------
    InsufficientDataError
        If there are too few clusters, or a few hold nearly all queries.
    """
    if codes is None:
        return None
    kept = group_codes(codes[keep])
    require_flippable(kept, config.confidence_level)
    return kept


def assemble_styles(
    systems: Sequence[StyleSystem],
    complete: StyledTexts,
    config: StyleConfig,
    *,
    dropped: Sequence[str],
    warnings: Sequence[str],
    n_distractors: int = 0,
) -> StyleReport:
    """Put the report together."""
    return StyleReport(
        schema_version=STYLE_SCHEMA_VERSION,
        data=StyleData(
            name=complete.name,
            n_queries=len(complete),
            doc_styles=tuple(complete.documents),
            query_styles=tuple(complete.queries),
            dropped=tuple(dropped),
            n_distractors=n_distractors,
            license=complete.license,
            attribution=complete.attribution,
        ),
        config=config,
        systems=tuple(systems),
        environment=environment(),
        created=timestamp(),
        warnings=(*warnings, *style_warnings(complete, dropped, config)),
    )


def _checked(name: str, array: npt.NDArray[np.floating[Any]], texts: StyledTexts) -> FloatArray:
    try:
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"similarities of {name!r} are not an array of numbers: {error}") from error
    shape = (len(texts), len(texts.queries), len(texts.documents))
    if values.shape != shape:
        raise DataError(
            f"similarities of {name!r} have shape {values.shape}, expected {shape}: queries, "
            "query styles, document styles"
        )
    return values


def _scored(
    name: str,
    values: FloatArray,
    texts: StyledTexts,
    keep: BoolArray,
    missing: str,
) -> BoolArray:
    """Which of the queries kept so far have a similarity for every version; shape (n,)."""
    rows = np.flatnonzero(keep)
    ids = [texts.query_ids[row] for row in rows]
    versions = [
        f"query style {query!r} and document style {document!r}"
        for query in texts.queries
        for document in texts.documents
    ]
    table = values[rows].reshape(len(rows), -1)
    if np.isinf(table).any():
        query, version = np.argwhere(np.isinf(table))[0]
        raise DataError(
            f"similarities of {name!r} are infinite, first for {versions[version]} of query "
            f"{ids[query]!r}; a similarity must be a finite number"
        )
    found = np.zeros(len(keep), dtype=np.bool_)
    found[rows] = _complete(~np.isnan(table), ids, versions, f"similarity of {name!r}", missing)
    return found


# The documents of a style audit as corpora to index.


class StyleCorpora(NamedTuple):
    """What is indexed and asked.

    Parameters
    ----------
    queries : mapping of query style to tuple of Query, each of length n
    versions : Corpus
        Every version of every document, each document once, and the distractors; tagged with
        style and document.
    originals : Corpus
        The documents in their original style, and the distractors.
    rows : int64 array of shape (n, d)
        Row in ``versions`` of each version of each query's document.
    styles : tuple of str, length d
        Document styles in the order of the columns.
    original : str
    pair_of : mapping of query id to document id
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries.
    n_distractors : int
    """

    queries: Mapping[str, tuple[Query, ...]]
    versions: Corpus
    originals: Corpus
    rows: npt.NDArray[np.int64]
    styles: tuple[str, ...]
    original: str
    pair_of: Mapping[str, str]
    n_distractors: int
    clusters: IntArray | None
    warnings: tuple[str, ...]

    def qrels(self, styles: Sequence[str]) -> Qrels:
        """Versions of its document in these styles are relevant to a query."""
        columns = [self.styles.index(style) for style in styles]
        return Qrels.from_rows(
            (query, self.versions.doc_ids[row], 1)
            for query, rows in zip(self.pair_of, self.rows, strict=True)
            for row in rows[columns].tolist()
        )


def build_corpora(
    complete: StyledTexts, original: str, clusters: IntArray | None = None
) -> StyleCorpora:
    """Put documents and distractors together; equal distractors and known texts come once.

    Parameters
    ----------
    complete : StyledTexts
        With every version.
    original : str
        Document style whose versions make an index of their own.

    Raises
    ------
    DataError
        If two queries name the same document but give different texts.
    """
    columns = columns_of(complete.documents)
    texts = list(zip(*columns.values(), strict=True))
    first: dict[str, int] = {}
    for at, doc_id in enumerate(complete.doc_ids):
        before = first.setdefault(doc_id, at)
        if texts[before] != texts[at]:
            same = [a == b for a, b in zip(texts[before], texts[at], strict=True)]
            raise DataError(
                f"document {doc_id!r} has different texts in style "
                f"{list(complete.documents)[same.index(False)]!r} for queries "
                f"{complete.query_ids[before]!r} and {complete.query_ids[at]!r}; give such "
                "documents different ids"
            )
    place = {doc_id: i for i, doc_id in enumerate(first)}
    d, at_original = len(columns), list(columns).index(original)
    documents = [texts[at] for at in first.values()]
    known = {text for versions in documents for text in versions}
    others = [t for t in dict.fromkeys(complete.distractors) if t.strip() and t not in known]
    tags = [
        (f"d{i}.{style}", DocTags(style=style, pair_id=doc_id))
        for i, doc_id in enumerate(first)
        for style in columns
    ]
    tags += [(f"x{i}", DocTags()) for i in range(len(others))]
    versions = Corpus(
        texts=(*(t for row in documents for t in row), *others), tags=TagTable.from_tags(tags)
    )
    start = np.array([place[doc_id] * d for doc_id in complete.doc_ids], dtype=np.int64)
    return StyleCorpora(
        queries={
            form: tuple(
                Query(query_id=q, text=t) for q, t in zip(complete.query_ids, column, strict=True)
            )
            for form, column in columns_of(complete.queries).items()
        },
        versions=versions,
        originals=versions.take(
            np.r_[at_original : len(first) * d : d, len(first) * d : len(versions)]
        ),
        rows=start[:, None] + np.arange(d),
        styles=tuple(columns),
        original=original,
        pair_of=dict(zip(complete.query_ids, complete.doc_ids, strict=True)),
        n_distractors=len(others),
        clusters=clusters,
        warnings=tuple(_warnings(complete, [row[at_original] for row in documents], len(others))),
    )


def _warnings(complete: StyledTexts, originals: Sequence[str], n_others: int) -> Iterator[str]:
    left_out = len(complete.distractors) - n_others
    if left_out:
        yield (
            f"{left_out} of {len(complete.distractors)} distractors are blank, occur twice or are "
            "a version of a query's document: they are left out"
        )
    copies = len(originals) - len(set(originals))
    if copies:
        yield (
            f"{copies} documents have the text of another document: in an index they tie with it, "
            "and only the query's own counts as found"
        )


# Quality in a real index: per query style, and per document style among all styles.


_NO_CHANGE = 1e-12


def index_depth(config: StyleConfig) -> int:
    """Documents to retrieve, so that ties across the largest cutoff are seen whole."""
    return max(100, 2 * max(config.cutoffs))


def style_quality(
    retriever: Retriever, corpora: StyleCorpora, config: StyleConfig
) -> tuple[StyleQuality, ...]:
    """NDCG and recall of every query style over an index of the original documents.

    A query's own document is the one that is relevant. Recall@1 is left out: with one relevant
    document it is NDCG@1, and would be tested twice.

    Parameters
    ----------
    retriever : Retriever
        Over ``corpora.originals``.
    """
    qrels = corpora.qrels([corpora.original])
    scores = {
        form: score_run(
            retriever.retrieve(queries, index_depth(config)),
            qrels,
            measures=("NDCG", "Recall"),
            cutoffs=config.cutoffs,
        )
        for form, queries in corpora.queries.items()
    }
    rows = list(_quality_rows(scores, corpora.clusters, config))
    adjusted = adjust_p_values([row.p_value for row in rows], correction=config.correction)
    return tuple(replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def _quality_rows(
    scores: Mapping[str, SourceScores], clusters: IntArray | None, config: StyleConfig
) -> Iterator[StyleQuality]:
    mean_of = means_of(clusters, config)
    for form, found in scores.items():
        for measure in found.measures:
            if measure == "Recall@1":
                continue
            column = found.of(measure, "all")
            change = column - scores[config.original_query].of(measure, "all")
            yield StyleQuality(
                query_style=form,
                measure=measure,
                mean=float(column.mean()),
                score=_share(column, mean_of),
                change=if_enough(mean_of, change, bounds=(-1.0, 1.0))
                if np.any(np.abs(change) > _NO_CHANGE)
                else None,
                p_value=None
                if form == config.original_query
                else _p_value(change, clusters, config),
            )


def _p_value(change: FloatArray, clusters: IntArray | None, config: StyleConfig) -> float:
    if clusters is None:
        return difference_test(change)
    return cluster_flips(change, clusters, resamples=config.resamples, seed=config.seed).p_value()


def index_scores(run: Run, corpora: StyleCorpora, config: StyleConfig) -> Iterator[StyleIndexScore]:
    """Yield NDCG of each document style alone, and Relative Δ of the original against it ([K]).

    Parameters
    ----------
    run : Run
        Of the original queries, over ``corpora.versions``.
    """
    styles, tags = corpora.styles, corpora.versions.tags
    qrels = corpora.qrels(styles)
    column = np.array([styles.index(name) for name in tags.styles], dtype=np.int64)
    scores = group_scores(
        run,
        qrels,
        column[tags.style_codes[tags.rows_for(qrels.doc_ids)]],
        styles,
        measures=("NDCG",),
        cutoffs=config.cutoffs,
    )
    for style, measure in product(styles, scores.measures):
        values = scores.of(measure, style)
        delta, interval = None, None
        if style != corpora.original:
            base = scores.of(measure, corpora.original)
            delta, interval, _ = published_delta(
                base, values, confidence_level=config.confidence_level
            )
            if corpora.clusters is not None and delta is not None:
                flips = cluster_flips(
                    200 * (base - values),
                    corpora.clusters,
                    base + values,
                    resamples=config.resamples,
                    seed=config.seed,
                )
                ends = flips.ends(config.confidence_level)
                interval = flips.interval(delta, *ends, config.confidence_level)
        yield StyleIndexScore(
            doc_style=style,
            measure=measure,
            mean=float(values.mean()),
            score=_share(values, means_of(corpora.clusters, config)),
            relative_delta=delta,
            interval=interval,
        )


def _share(values: FloatArray, mean_of: Callable[..., Interval]) -> Interval | None:
    return if_enough(mean_of, np.clip(values, 0.0, 1.0), bounds=(0.0, 1.0))


# Encoders and BM25, asked the same things: similarity of versions, and search.


Stage = Callable[[str], None]
_QUERIES = 1_000  # whose vectors are copied together


class _EncoderSearch:
    """Cosine similarity of vectors; every distinct text is encoded once.

    As all searches: ``similarity`` is that of every query form to every version of its document,
    shape (n, q, d); ``versions_run`` searches all versions and distractors with one query style,
    ``originals`` indexes the original documents and distractors.
    """

    def __init__(self, encoder: Encoder, corpora: StyleCorpora, on_stage: Stage) -> None:
        self.name, self.corpora = encoder.name, corpora
        self.notes: list[str] = []
        on_stage(f"{self.name}: encoding {len(set(corpora.versions.texts)):,} documents")
        self.settings = {**encoder.settings, "similarity": "cosine"}  # may load the model
        self.vectors = encode_corpus(encoder, corpora.versions, similarity="cosine")
        asked = [query.text for form in corpora.queries.values() for query in form]
        on_stage(f"{self.name}: encoding {len(set(asked)):,} queries")
        self.encoder = RememberedEncoder(encoder)
        self.encoder.encode_queries(asked)

    def similarity(self) -> FloatArray:
        rows = self.vectors.row_of_doc[self.corpora.rows]
        encoded = np.stack(
            [
                query_vectors(self.encoder, form, similarity="cosine")
                for form in self.corpora.queries.values()
            ],
            axis=1,
        )
        size = self.vectors.distinct.shape[1]
        if encoded.shape[2] != size:
            raise DataError(
                f"encoder {self.name!r}: query vectors have {encoded.shape[2]} dimensions, "
                f"document vectors {size}; both sides must come from one model"
            )
        found = np.empty((len(rows), encoded.shape[1], rows.shape[1]))
        for start in range(0, len(rows), _QUERIES):
            part = slice(start, start + _QUERIES)
            found[part] = np.matmul(
                encoded[part], self.vectors.distinct[rows[part]].transpose(0, 2, 1)
            )
        # Equal texts must tie exactly, and a product may round differently in each column.
        same = np.argmax(rows[:, :, None] == rows[:, None, :], axis=2)
        return np.take_along_axis(found, same[:, None, :], axis=2)

    def versions_run(self, form: str, depth: int) -> Run:
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=self.vectors).retrieve(
            self.corpora.queries[form], depth
        )

    def originals(self) -> Retriever:
        """Index the vectors at hand: nothing is encoded again."""
        kept = self.corpora.originals.doc_ids
        rows = self.vectors.row_of_doc[self.corpora.versions.tags.rows_for(kept)]
        distinct, row_of_doc = np.unique(rows, return_inverse=True)
        vectors = DocumentVectors(
            doc_ids=kept,
            distinct=self.vectors.distinct[distinct],
            row_of_doc=row_of_doc.reshape(-1),
            similarity="cosine",
        )
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=vectors)


class _BM25Search:
    """BM25 scores as a similarity ([W] W2)."""

    def __init__(self, spec: BM25Spec, corpora: StyleCorpora) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings = {**spec.settings, "similarity": "score, idf over all versions"}
        self.notes: list[str] = []

    def similarity(self) -> FloatArray:
        texts, forms = self.corpora.versions.texts, self.corpora.queries.values()
        found = version_scores(
            self.spec,
            [[query.text for query in queries] for queries in zip(*forms, strict=True)],
            [[texts[row] for row in rows] for rows in self.corpora.rows.tolist()],
        )
        heard = found.any(axis=2)
        silent = np.count_nonzero(~heard)
        if silent:
            self.notes.append(
                f"{silent} of {heard.size} query versions share no word with any version of "
                "their document, which all tie"
            )
        return found

    def versions_run(self, form: str, depth: int) -> Run:
        return self.spec.build(self.corpora.versions).retrieve(self.corpora.queries[form], depth)

    def originals(self) -> Retriever:
        return self.spec.build(self.corpora.originals)


# A whole retriever, asked what an encoder is asked: similarity of versions, and search.


_DEPTH = (1_000, 10_000)  # fewest and most documents asked for per query
_ENTRIES = 1_000_000  # of one run


class _StackSearch:
    """A whole retriever: versions are ranked as it ranks them among everything else."""

    def __init__(
        self, spec: RetrieverSpec, corpora: StyleCorpora, on_stage: Callable[[str], None]
    ) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings, self.on_stage = dict(spec.settings), on_stage
        self.notes: list[str] = []
        self.depth = min(
            len(corpora.versions), int(np.clip(_ENTRIES // len(corpora.rows), *_DEPTH))
        )
        on_stage(f"{self.name}: indexing {len(corpora.versions):,} documents")
        self.retriever = spec.build(corpora.versions)
        self.runs: dict[str, Run] = {}

    def similarity(self) -> npt.NDArray[np.float64]:
        """Minus the place in the run; what was not retrieved ties below the rest."""
        found = [self._places(self.versions_run(form, self.depth)) for form in self.corpora.queries]
        places = np.stack(found, axis=1)
        unseen = np.isinf(places).mean()
        last = 1.0 + max(len(run) for run in self.runs.values())
        rest = f"{unseen:.1%} of the versions were not returned and rank below the others, tied"
        self.notes.append(
            f"ranked among the versions that the retriever returned, at most {self.depth} "
            f"documents per query; {rest if unseen else 'every version was returned'}"
        )
        return -np.minimum(places, last)

    def _places(self, run: Run) -> FloatArray:
        """Place of every version of a query's document in a run, infinite where it is not there.

        Equal neighbouring scores share the middle of their places; shape (n, d).
        """
        start, stop = rank_span(run, np.arange(len(run)), ties="expected")
        row = self.corpora.versions.tags.rows_for(run.doc_ids)[run.doc_codes]
        column = row - self.corpora.rows[run.query_codes, 0]
        own = np.flatnonzero((row >= 0) & (column >= 0) & (column < len(self.corpora.styles)))
        places = np.full(self.corpora.rows.shape, np.inf)
        places[run.query_codes[own], column[own]] = (start[own] + 1 + stop[own]) / 2
        return places

    def versions_run(self, form: str, depth: int) -> Run:
        """Search all versions, once per query style."""
        if form not in self.runs:
            self.on_stage(f"{self.name}: retrieving for query style {form!r}")
            queries = self.corpora.queries[form]
            run = self.retriever.retrieve(queries, max(depth, self.depth))
            if run.query_ids != tuple(query.query_id for query in queries):
                raise DataError(
                    f"{self.name}: retrieved for {len(run.query_ids)} queries, not for the "
                    f"{len(queries)} asked for in their order; a retriever returns one list per "
                    "query, empty where nothing was found"
                )
            self.runs[form] = run
        return self.runs[form]

    def originals(self) -> Retriever:
        return self.spec.build(self.corpora.originals)


# The verb: encode or retrieve texts in several styles, then measure style bias.


_SMALL_INDEX = 1000


def audit_style(
    texts: StyledTexts,
    *,
    encoders: Sequence[Encoder] = (),
    bm25: BM25Spec | None = None,
    retrievers: Sequence[RetrieverSpec] = (),
    config: StyleConfig | None = None,
    clusters: Mapping[str, str] | None = None,
    index: bool = True,
    text_statistics: bool = True,
    on_stage: Callable[[str], None] | None = None,
) -> StyleReport:
    """Measure which writing styles encoders, BM25 and whole retrievers favour ([W] §3–4).

    Parameters
    ----------
    texts : StyledTexts
    encoders : sequence of Encoder
        Versions are ranked by cosine similarity. Every distinct text is encoded once; a
        :class:`~rag_sourcebias.retrieval.CachedEncoder` keeps vectors and reports progress.
    bm25 : BM25Spec, optional
        Versions are ranked by their BM25 score, with idf over all versions.
    retrievers : sequence of RetrieverSpec
        Versions are ranked as each retriever ranks them in an index of all versions and
        distractors; a version that it does not return ranks below the others. At
        least 1,000 documents are asked for.
    config : StyleConfig, optional
        As in :func:`measure_style_bias`.
    clusters : mapping of str to str, optional
        As in :func:`measure_style_bias`.
    index : bool
        Also measure quality in an index: NDCG and recall of every query style over the original
        documents and distractors (a query's own document is the one that is relevant), and NDCG
        of each document style where all are indexed together. Without it, distractors are not
        used.
    text_statistics : bool
        Also describe the texts (extra ``text``).
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    StyleReport

    Raises
    ------
    DataError
        If no system was given, two have the same name, there are fewer than 2 document styles,
        or a version is missing and must not be.
    InsufficientDataError
        If no query has every version, or the clusters are too few or too uneven.
    """
    stage = on_stage or (lambda _: None)
    names = [one.name for one in (*encoders, bm25, *retrievers) if one is not None]
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"give one or more encoders, retrievers or BM25 with different names, got {names}"
        )
    config, warnings = style_settings(texts, config)
    codes, told = declared_clusters(texts.query_ids, clusters, of="texts", alone=_ALONE)
    keep = with_every_version(texts, config.missing)
    complete = texts.take(keep)
    cluster = _kept(codes, keep, config)
    corpora = build_corpora(
        complete if index else replace(complete, distractors=()), config.original, cluster
    )
    warnings += told + corpora.warnings
    if index and len(corpora.originals) < _SMALL_INDEX:
        warnings += (
            f"the index holds {len(corpora.originals)} documents ({corpora.n_distractors} of them "
            "distractors): finding the right one is easier than in a large index, so a loss of "
            "quality shows less",
        )
    # one after the other, so that only one holds its vectors
    searches: Iterator[_EncoderSearch | _BM25Search | _StackSearch] = chain(
        [_BM25Search(bm25, corpora)] if bm25 is not None else [],
        (_EncoderSearch(encoder, corpora, stage) for encoder in encoders),
        (_StackSearch(spec, corpora, stage) for spec in retrievers),
    )
    report = assemble_styles(
        [
            _system(search, complete, corpora, config, index=index, stage=stage)
            for search in searches
        ],
        complete,
        config,
        dropped=tuple(compress(texts.query_ids, ~keep)),
        warnings=warnings,
        n_distractors=corpora.n_distractors,
    )
    return _with_statistics(report, complete, stage) if text_statistics else report


def _system(
    search: _EncoderSearch | _BM25Search | _StackSearch,
    complete: StyledTexts,
    corpora: StyleCorpora,
    config: StyleConfig,
    *,
    index: bool,
    stage: Stage,
) -> StyleSystem:
    similarity = search.similarity()
    stage(f"{search.name}: ranking {similarity.shape[2]} document styles")
    system = style_system(
        search.name,
        similarity,
        complete,
        config,
        settings=search.settings,
        clusters=corpora.clusters,
        notes=search.notes,
    )
    if not index:
        return system
    stage(f"{search.name}: searching an index of {len(corpora.originals):,} documents")
    quality = style_quality(search.originals(), corpora, config)
    stage(f"{search.name}: searching an index of {len(corpora.versions):,} versions")
    run = search.versions_run(config.original_query, index_depth(config))
    return replace(system, quality=quality, index_scores=tuple(index_scores(run, corpora, config)))


def _with_statistics(report: StyleReport, complete: StyledTexts, stage: Stage) -> StyleReport:
    """Describe the texts by the statistics whose library is installed; warn of the others."""
    stage("text statistics")
    config = report.config
    documents, queries = (
        text_statistics(
            columns,
            columns[original],
            original=original,
            statistics=installed_statistics(),
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
        for columns, original in (
            (columns_of(complete.documents), config.original),
            (columns_of(complete.queries), config.original_query),
        )
    )
    return replace(
        report,
        document_statistics=documents,
        query_statistics=queries,
        warnings=(*report.warnings, *missing_statistics()),
    )
