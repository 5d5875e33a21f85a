"""A retriever whose results are given new scores before anyone sees them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, DocTags, Query, RankedList, Run, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.protocols import Encoder, Reranker, Rescorer, Retriever, RetrieverSpec
from rag_sourcebias.core.values import FloatArray, Interval, check_level, t_quantile
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, described, fit_twins
from rag_sourcebias.retrieval.search import require_depth
from rag_sourcebias.stats.ranking import source_codes_for

# Exposure-aware re-ranking: every source keeps a minimum share at every depth.
# The method is DetConstSort (Geyik, Ambler & Kenthapadi, "Fairness-aware ranking in search &
# recommendation systems with application to LinkedIn Talent Search", KDD 2019, Algorithm 3), which
# has a feasible answer for any number of sources, with the changes named in
# :func:`constrained_order`. It is written here because no well-kept library offers one:
# fairsearchcore (FA*IR, two groups) was last released in 2019, FairRankTune in 2023, AIF360 in
# April 2024, and fairlearn has no re-ranking.
# It is for a source that is crowded out. Rounded down, a minimum share says nothing about the
# first place, and where twins already alternate in the ranking there is next to nothing to change.


def constrained_order(groups: Sequence[int], shares: Sequence[Fraction]) -> list[int]:
    """Order candidates so that each prefix holds a minimum number of every group.

    The first k places hold at least ``min(floor(share · k), size of the group)`` of each group.
    Within a group the order stays; a candidate moves ahead of a better one only where a minimum
    demands it.

    Parameters
    ----------
    groups : sequence of int, length n
        Group of each candidate, best candidate first.
    shares : sequence of Fraction
        Minimum share of each group, in [0, 1], together at most 1.

    Returns
    -------
    list of int, length n
        Indices of the candidates in their new order.

    Raises
    ------
    DataError
        If the shares add up to more than 1.

    Notes
    -----
    DetConstSort places the next best of a group in the first prefix that needs it, and moves it up
    past worse ones that can still wait. Two things differ from the printed algorithm. Its condition
    for waiting (``maxIndices[start − 1] ≥ start``, places counted from 0 and prefixes from 1) lets
    a candidate slip one place below its minimum; here it must be in the prefix. And it takes groups
    that never run out and shares that add up to 1; here a group may run out, and who is in no
    minimum is merged in by rank, as far up as the others can wait.

    Among all orders that keep the minima, the one for two groups reverses the fewest pairs of
    candidates and is the first in lexical order of ranks (tested against all orders of up to 6).
    With three groups or more it need not be, as in the paper: 5 % of random small cases had a
    better one.
    """
    if sum(shares) > 1:
        raise DataError(f"minimum shares {[float(s) for s in shares]} add up to more than 1")
    n = len(groups)
    waiting: list[list[int]] = [[] for _ in shares]
    for index in range(n - 1, -1, -1):
        waiting[groups[index]].append(index)  # the best candidate of a group is its last item
    placed: list[int] = []
    deadlines: list[int] = []

    def place(candidate: int, deadline: int) -> None:
        at = len(placed)
        while at and placed[at - 1] > candidate and deadlines[at - 1] > at:
            at -= 1
        placed.insert(at, candidate)
        deadlines.insert(at, deadline)

    counts = [0] * len(shares)
    for k in range(1, n + 1):
        due = [
            group
            for group, share in enumerate(shares)
            if waiting[group] and share.numerator * k // share.denominator > counts[group]
        ]
        for group in sorted(due, key=lambda g: waiting[g][-1]):
            place(waiting[group].pop(), k)
            counts[group] += 1
    for candidate in sorted(index for rest in waiting for index in rest):
        place(candidate, n)
    return placed


class ExposureReranker:
    """Re-rank what one query retrieved; a :class:`~rag_sourcebias.core.Rescorer`.

    Only the order of the documents is read, not their scores. Untagged documents keep their ranks;
    minimum shares count among the tagged ones. The new scores are n, n − 1, …, 1.

    Parameters
    ----------
    minimum_shares : mapping of str to float, optional
        Minimum share of each source among the first k documents, for every k; together at most 1.
        Sources that are not named have no minimum. By default the share of each source among the
        candidates of the query, so that who ranks first no longer depends on the source; retrieve
        more documents than are shown, so that this share is that of a wider pool.

    Raises
    ------
    DataError
        If a share is outside [0, 1], or they add up to more than 1.
    """

    def __init__(self, minimum_shares: Mapping[str, float] | None = None) -> None:
        self.minimum_shares = None if minimum_shares is None else dict(minimum_shares)
        self._shares = None if minimum_shares is None else _exact(minimum_shares)

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],  # noqa: ARG002
        tags: Sequence[DocTags],
        scores: Sequence[float] | None,  # noqa: ARG002
    ) -> list[float] | None:
        """Return scores that fall with the new rank; None when there is one source only."""
        if len(tags) != len(doc_ids):
            raise DataError(f"{len(doc_ids)} documents but {len(tags)} tags; need as many")
        order = self.order([tag.source for tag in tags])
        if order is None:
            return None
        return [float(len(order) - rank) for rank in np.argsort(order)]

    def order(self, sources: Sequence[str | None]) -> list[int] | None:
        """Return the new order of documents of these sources, given best first."""
        names = sorted({source for source in sources if source is not None})
        if len(names) < 2:
            return None
        tagged = [index for index, source in enumerate(sources) if source is not None]
        groups = [names.index(source) for source in sources if source is not None]
        shares = [
            Fraction(groups.count(group), len(groups))
            if self._shares is None
            else self._shares.get(name, Fraction(0))
            for group, name in enumerate(names)
        ]
        order = list(range(len(sources)))
        for place, chosen in zip(tagged, constrained_order(groups, shares), strict=True):
            order[place] = tagged[chosen]
        return order

    def apply_to(self, run: Run, tags: TagTable) -> Run:
        """Return the run with every query re-ranked; it has no scores any more."""
        codes = source_codes_for(run.doc_ids, tags)[run.doc_codes]
        sources = [tags.sources[code] if code >= 0 else None for code in codes.tolist()]
        picked = np.arange(len(codes))
        for start, stop in zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True):
            order = self.order(sources[start:stop])
            if order is not None:
                picked[start:stop] = np.asarray(order) + start
        return Run(
            query_ids=run.query_ids,
            offsets=run.offsets,
            doc_codes=run.doc_codes[picked],
            doc_ids=run.doc_ids,
            name=run.name,
            n_duplicates=run.n_duplicates,
        )


def _exact(shares: Mapping[str, float]) -> dict[str, Fraction]:
    """Shares as the decimals they were written as: .29 of 100 is 29, not 28."""
    for source, share in shares.items():
        if not (math.isfinite(share) and 0 <= share <= 1):
            raise DataError(
                f"minimum share {share!r} of {source!r} is outside [0, 1]; give shares such as .5"
            )
    exact = {source: Fraction(str(float(share))) for source, share in shares.items()}
    if not exact or sum(exact.values()) > 1:
        raise DataError(
            f"minimum shares {dict(shares)} add up to {float(sum(exact.values())):g}; expected at "
            "least one source and at most 1 together"
        )
    return exact


# Scores without the part that goes with a text's perplexity (CDC, Wang et al., ICLR 2025).
# Two stages, with the source as instrument. First: the mean perplexity of both versions of the
# same documents. Second: the slope of the score on those means. A document's score then loses
# ``slope · perplexity``. As retrieval scores and texts' worth both vary with perplexity for many
# reasons, only the part of perplexity that the source explains is used for the slope.
# This needs no tags when it is used, but it changes the order within a source, and it attributes
# the whole score gap between versions to perplexity. That is an assumption: later work points at
# the supervision of retrievers as the cause. Compare it with a parity calibration on your own
# data.


_MIN_QUERIES = 10
_MIN_F = 10.0  # Staiger & Stock (1997): below it the instrument is weak


@dataclass(frozen=True, kw_only=True, eq=False)
class PerplexityCorrection:
    """A fitted correction.

    Parameters
    ----------
    encoder : str
        Fingerprint of the encoder (or reranker) whose scores were fitted.
    perplexity_model : str
        Identity of what computed the perplexities, scale included.
    slope : Interval
        Change of the score per unit of perplexity; the interval is Anderson & Rubin's, which holds
        however weak the instrument is.
    first_stage_f : float
        F statistic of the first stage, clustered by query.
    reference : float
        Mean perplexity of the baseline versions; a document with it keeps its score.
    n_pairs : int
    """

    encoder: str
    perplexity_model: str
    slope: Interval
    first_stage_f: float
    reference: float
    n_pairs: int

    def apply(self, scores: FloatArray, perplexities: FloatArray) -> FloatArray:
        """Return ``score − slope · (perplexity − reference)``; shape (n,).

        The reference shifts all scores alike, and lets a document whose perplexity is unknown (not
        finite) keep its score.
        """
        if np.shape(scores) != np.shape(perplexities):
            raise DataError(
                f"{np.size(scores)} scores but {np.size(perplexities)} perplexities; need as many"
            )
        return scores - self.slope.estimate * np.where(
            np.isfinite(perplexities), perplexities - self.reference, 0.0
        )


class PerplexityRescorer:
    """A correction at work; a :class:`~rag_sourcebias.core.Rescorer`.

    Parameters
    ----------
    correction : PerplexityCorrection
    perplexity : callable
        Texts to perplexities, by the model and on the scale the correction was fitted with. It is
        called for every query, from several threads: look up what was computed when indexing.
    """

    def __init__(
        self,
        correction: PerplexityCorrection,
        perplexity: Callable[[Sequence[str]], Sequence[float]],
    ) -> None:
        self.correction = correction
        self.perplexity = perplexity

    def __call__(
        self,
        query: str,  # noqa: ARG002 - of the protocol
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],
        tags: Sequence[DocTags],  # noqa: ARG002
        scores: Sequence[float] | None,
    ) -> list[float]:
        """Return corrected scores.

        Raises
        ------
        DataError
            If the retriever gave no scores, or the perplexities are not one for each text.
        """
        if scores is None:
            raise DataError(
                "perplexity correction needs the retriever's scores of the "
                f"{len(doc_ids)} documents, there are none; keep them with "
                "InstrumentedRetriever(score_key=…)"
            )
        corrected = self.correction.apply(
            np.asarray(scores, dtype=np.float64),
            np.asarray(self.perplexity(texts), dtype=np.float64),
        )
        return [float(score) for score in corrected]


def fit_perplexity_correction(
    *,
    baseline_scores: FloatArray,
    source_scores: FloatArray,
    baseline_perplexities: FloatArray,
    source_perplexities: FloatArray,
    queries: npt.NDArray[np.integer[Any]],
    encoder: str,
    perplexity_model: str,
    confidence_level: float = 0.95,
) -> PerplexityCorrection:
    """Fit the two-stage regression on pairs: both versions of documents, for the same queries.

    With one instrument of two values the slope is mean score gap over mean perplexity gap.

    Parameters
    ----------
    baseline_scores, source_scores : float64 arrays of shape (n,)
        Row i holds one query and both versions of one relevant document.
    baseline_perplexities, source_perplexities : float64 arrays of shape (n,)
        On any one scale; the paper takes the mean log loss of a masked model.
    queries : integer array of shape (n,)
        Same number, same query.

    Raises
    ------
    InsufficientDataError
        If the source is a weak instrument (F below 10) or there are fewer than 10 queries.
    DataError
        If the columns differ in length or hold a number that is not finite.
    """
    check_level(confidence_level)
    _check((baseline_scores, source_scores, baseline_perplexities, source_perplexities), queries)
    score_gap = source_scores - baseline_scores
    perplexity_gap = source_perplexities - baseline_perplexities
    n, n_queries = len(queries), len(np.unique(queries))
    if n_queries < _MIN_QUERIES:
        raise InsufficientDataError(
            f"{n} pairs for {n_queries} queries; at least {_MIN_QUERIES} queries are needed",
            n=n_queries,
            n_needed=_MIN_QUERIES,
        )
    means = np.array([score_gap.mean(), perplexity_gap.mean()])
    covariance = _clustered_covariance(np.stack((score_gap, perplexity_gap)), queries)
    f = _f_statistic(float(means[1]), float(covariance[1, 1]))
    t = t_quantile(0.5 + confidence_level / 2, n_queries - 1)
    needed = max(_MIN_F, t**2)
    if not f > needed:
        # F grows with the pairs from 1, which it has on average where perplexities do not differ
        pairs = math.ceil(n * (needed - 1) / (f - 1)) if f > 1 else None
        raise InsufficientDataError(
            f"the source is a weak instrument: it shifts perplexity by {means[1]:.3g} with F = "
            f"{f:.3g} over {n} pairs of {n_queries} queries, and F must be above {needed:.3g}; "
            + (
                f"about {pairs} pairs would do"
                if pairs
                else "no number of pairs can be promised to do; use a parity calibration"
            ),
            n=n,
            n_needed=pairs,
        )
    lower, upper = _anderson_rubin(means, covariance, t)
    slope = float(means[0] / means[1])
    return PerplexityCorrection(
        encoder=encoder,
        perplexity_model=perplexity_model,
        slope=Interval(
            estimate=slope,
            lower=min(lower, slope),
            upper=max(upper, slope),
            confidence_level=confidence_level,
            method="Anderson–Rubin, clustered",
            n_labeled=n_queries,
            assumptions=("the source changes scores through perplexity only",),
        ),
        first_stage_f=f,
        reference=float(baseline_perplexities.mean()),
        n_pairs=n,
    )


def _check(columns: Sequence[FloatArray], queries: npt.NDArray[np.integer[Any]]) -> None:
    shapes = [np.shape(column) for column in (*columns, queries)]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        raise DataError(f"columns of shapes {shapes}; expected five of the same length")
    for name, column in zip(
        ("baseline score", "source score", "baseline perplexity", "source perplexity"),
        columns,
        strict=True,
    ):
        if len(bad := np.flatnonzero(~np.isfinite(column))):
            raise DataError(
                f"{name} {column[bad[0]]} in pair {bad[0]}; leave such pairs out, expected finite "
                "numbers"
            )


def _clustered_covariance(gaps: FloatArray, queries: npt.NDArray[np.integer[Any]]) -> FloatArray:
    """CR1 covariance of the two mean gaps, shape (2, 2)."""
    codes = np.unique(queries, return_inverse=True)[1]
    g = int(codes.max()) + 1
    centred = gaps - gaps.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(codes, weights=row) for row in centred])
    return np.asarray(sums @ sums.T * (g / (g - 1)) / gaps.shape[1] ** 2)


def _f_statistic(gap: float, variance: float) -> float:
    if variance > 0:
        return gap**2 / variance
    return math.inf if gap else 0.0


def _anderson_rubin(means: FloatArray, covariance: FloatArray, t: float) -> tuple[float, float]:
    """Slopes b for which the mean of score gap − b · perplexity gap is within t errors of 0."""
    a = means[1] ** 2 - t**2 * covariance[1, 1]
    half_b = means[0] * means[1] - t**2 * covariance[0, 1]
    c = means[0] ** 2 - t**2 * covariance[0, 0]
    root = math.sqrt(max(float(half_b**2 - a * c), 0.0))
    return float((half_b - root) / a), float((half_b + root) / a)


# A retriever whose results are given new scores before anyone sees them.


_KINDS = {
    ParityCalibration: "parity",
    ExposureReranker: "exposure",
    PerplexityRescorer: "perplexity",
    TwinRescorer: "twins",
}


class RescoredSpec:
    """Recipe of a first stage with a rescorer behind it.

    Documents below ``candidates`` cannot come up. 100 are ample for a top 10: with
    all-MiniLM-L6-v2, offsets of .0034 (as fitted), .017 and .034 on ``nfcorpus`` and ``nq-utd``
    (2,994 queries) gave the top 10 of all documents with 30 candidates already.

    Parameters
    ----------
    first : RetrieverSpec
    rescorer : Rescorer
        Its ``apply_to(run, tags)`` is used where it has one; otherwise it is called query by query.
    name : str, optional
        ``"<first>+<kind of rescorer>"`` by default.
    candidates : int
        Documents of the first stage that are rescored, or as many as are asked for if that is
        more; so the top k does not depend on how many are asked for below this number.

    Raises
    ------
    DataError
        If the rescorer was fitted on scores of another encoder (or reranker) than the first
        stage's, where both are known.
    """

    def __init__(
        self,
        first: RetrieverSpec,
        rescorer: Rescorer,
        *,
        name: str | None = None,
        candidates: int = 100,
    ) -> None:
        if candidates < 1:
            raise DataError(f"candidates must be at least 1, got {candidates}")
        _check_fitted(first, rescorer)
        self.first = first
        self.rescorer = rescorer
        self.candidates = candidates
        self.name = name or f"{first.name}+{_kind(rescorer)}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state, those of the rescorer prefixed with ``rescore.``."""
        return {
            **self.first.settings,
            "rescore.kind": _kind(self.rescorer),
            **{f"rescore.{key}": value for key, value in _described(self.rescorer).items()},
            "rescore.candidates": str(self.candidates),
        }

    @property
    def keeps_order_within_source(self) -> bool:
        """Whether documents of one source cannot change places among themselves."""
        return isinstance(self.rescorer, ParityCalibration | ExposureReranker)

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage."""
        return _RescoredRetriever(
            name=self.name,
            first=self.first.build(corpus),
            rescorer=self.rescorer.within(corpus)
            if isinstance(self.rescorer, TwinRescorer)
            else self.rescorer,
            corpus=corpus,
            candidates=self.candidates,
        )


class TwinSpec:
    """Recipe of a first stage with twin smoothing, whose groups are those of what is indexed.

    A corpus that is part of the one indexed before it, such as the documents of one source, has
    the groups that its documents have there.

    Parameters
    ----------
    first : RetrieverSpec
    encoder : Encoder, optional
        The one that searches; without one copies are told by their words.
    seed : int

    Attributes
    ----------
    groups : TwinGroups or None
        Of the corpus indexed first; None before.
    """

    def __init__(
        self,
        first: RetrieverSpec,
        encoder: Encoder | None = None,
        *,
        name: str | None = None,
        seed: int = 0,
    ) -> None:
        self.first = first
        self.encoder = encoder
        self.seed = seed
        self.name = name or f"{first.name}+twins"
        self._texts: dict[str, str] = {}
        self.groups: TwinGroups | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {**self.first.settings, "rescore.kind": "twins", "rescore.seed": str(self.seed)}

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage, and find its copies."""
        texts = dict(zip(corpus.doc_ids, corpus.texts, strict=True))
        if self.groups is None or not texts.items() <= self._texts.items():
            self.groups, self._texts = fit_twins(corpus, self.encoder), texts
        rescorer = TwinRescorer(self.groups, seed=self.seed)
        return RescoredSpec(self.first, rescorer, name=self.name).build(corpus)


@dataclass(slots=True, kw_only=True)
class _RescoredRetriever:
    name: str
    first: Retriever
    rescorer: Rescorer
    corpus: Corpus = field(repr=False)
    candidates: int

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query, in the order of the new scores."""
        require_depth(depth)
        run = self.first.retrieve(queries, max(depth, self.candidates))
        return replace(rescore_run(run, self.rescorer, self.corpus, queries), name=self.name).top(
            depth
        )


def rescore_run(run: Run, rescorer: Rescorer, corpus: Corpus, queries: Sequence[Query]) -> Run:
    """Reorder every query of a run by a rescorer; documents it scores alike keep their order.

    Parameters
    ----------
    run : Run
    rescorer : Rescorer
    corpus : Corpus
        Texts and tags of every document of the run.
    queries : sequence of Query
        Texts of every query of the run; others are ignored.

    Returns
    -------
    Run
        Without scores where the rescorer only orders.

    Raises
    ------
    DataError
        If a query or document of the run is unknown, or the rescorer does not return one finite
        number for each document.
    """
    apply_to: Callable[[Run, TagTable], Run] | None = getattr(rescorer, "apply_to", None)
    if apply_to is not None:
        return apply_to(run, corpus.tags)
    text_of = {query.query_id: query.text for query in queries}
    rows = corpus.tags.rows_for(run.doc_ids)
    missing = np.flatnonzero(rows[run.doc_codes] < 0)
    if len(missing):
        raise DataError(
            f"run {run.name!r} holds document {run.doc_ids[run.doc_codes[missing[0]]]!r}, which "
            "the corpus does not have; rescore with the corpus that was searched"
        )
    scores = np.empty(len(run), dtype=np.float64)
    for index, found in enumerate(run):
        if found.query_id not in text_of:
            raise DataError(f"query {found.query_id!r} of run {run.name!r} has no text; give it")
        part = slice(int(run.offsets[index]), int(run.offsets[index + 1]))
        scores[part] = _new_scores(
            rescorer, text_of[found.query_id], found, corpus, rows[run.doc_codes[part]].tolist()
        )
    # As numbers of full length: what serves copies in a drawn order differs in the last digit
    order = np.lexsort((-scores, run.query_codes))
    served = replace(run, doc_codes=run.doc_codes[order], scores=scores[order].astype(np.float32))
    return _tied(served, rescorer) if isinstance(rescorer, TwinRescorer) else served


def _tied(run: Run, rescorer: TwinRescorer) -> Run:
    """Let copies tie in the order in which they are served, for expectations over their orders."""
    scores = [
        rescorer.tied(found.doc_ids, found.scores.tolist())
        for found in run
        if found.scores is not None
    ]
    return replace(run, scores=np.array([s for part in scores for s in part], dtype=np.float32))


def _new_scores(
    rescorer: Rescorer, query: str, found: RankedList, corpus: Corpus, rows: list[int]
) -> npt.NDArray[np.float64]:
    n = len(found)
    given = None if found.scores is None else found.scores.tolist()
    scores = rescorer(
        query,
        doc_ids=found.doc_ids,
        texts=[corpus.texts[row] for row in rows],
        tags=[corpus.tags.get(doc_id) for doc_id in found.doc_ids],
        scores=given,
    )
    if scores is None:  # as it was; without scores the order alone says how it was
        scores = given if given is not None else list(range(n, 0, -1))
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise DataError(
            f"rescorer {_kind(rescorer)} returned {values.tolist()} for the {n} documents of query "
            f"{found.query_id!r}; expected one finite number for each"
        )
    return values


def _kind(rescorer: Rescorer) -> str:
    return _KINDS.get(type(rescorer), type(rescorer).__name__)


def _described(rescorer: Rescorer) -> dict[str, str]:
    if isinstance(rescorer, TwinRescorer):
        return {**described(rescorer.groups), "show": rescorer.show, "seed": str(rescorer.seed)}
    if isinstance(rescorer, ParityCalibration):
        found = zip(rescorer.sources, rescorer.gaps, rescorer.n_pairs, strict=True)
        return {
            "form": rescorer.form,
            "baseline": rescorer.baseline,
            **{f"gap {source}": f"{gap.estimate:+.4g} ({n} pairs)" for source, gap, n in found},
        }
    if isinstance(rescorer, PerplexityRescorer):
        fitted = rescorer.correction
        return {"slope": f"{fitted.slope.estimate:.4g}", "perplexity": fitted.perplexity_model}
    if isinstance(rescorer, ExposureReranker):
        shares = rescorer.minimum_shares
        return {"minimum shares": "of the candidates" if shares is None else str(shares)}
    return {}


def _check_fitted(first: RetrieverSpec, rescorer: Rescorer) -> None:
    fitted = ""
    if isinstance(rescorer, ParityCalibration | TwinRescorer):
        fitted = rescorer.encoder or ""
    elif isinstance(rescorer, PerplexityRescorer):
        fitted = rescorer.correction.encoder
    # Recipes need not say what scores their documents; the package's own do.
    scorer = getattr(first, "reranker", None) or getattr(first, "encoder", None)
    if fitted and isinstance(scorer, Encoder | Reranker) and scorer.fingerprint != fitted:
        raise DataError(
            f"the {_kind(rescorer)} rescorer was fitted on scores of {fitted!r}, but "
            f"{first.name!r} scores with {scorer.fingerprint!r}; fit it on scores of that model"
        )
