"""The verb: score answers with encoders, then measure what the scores reward."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from rag_sourcebias.answers.data import (
    ANSWER_SCHEMA_VERSION,
    AnswerBias,
    AnswerConfig,
    AnsweringSystem,
    AnswerScorer,
    AnswerScores,
    AnswerSpread,
    AnswerStyle,
    RankInversions,
    SystemDifference,
    extremes,
)
from rag_sourcebias.answers.measure import (
    SMALL,
    PairedAnswers,
    QuestionAUC,
    answer_finding,
    answer_spread,
    answer_style,
    answered_by_all,
    best_threshold,
    cross_fit_adjustment,
    fit_adjustment,
    length_correlation,
    paired_correct,
    question_auc,
    rank_inversions,
    reference_similarity,
    system_aucs,
    threshold_verdicts,
)
from rag_sourcebias.answers.page import AnswerBiasReport
from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.data import FloatArray, IntArray
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    as_generator,
    attempt,
    if_enough,
)
from rag_sourcebias.core.finding import Evidence, EvidenceText, Interval, telling
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.texts import AnswerTexts
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    ClusterFlips,
    bootstrap_means,
    cluster_flips,
    crossing,
    declared_clusters,
    expit,
    means_of,
    normal_quantile,
    of_queries,
    queries_to_tell,
    require_flippable,
    t_quantile,
)
from rag_sourcebias.infer.texts import TextStatistic, text_statistics
from rag_sourcebias.measure.texts import installed_statistics, missing_statistics, word_counts

MIN_ROWS = 20


def spread_interval(
    columns: FloatArray,
    clusters: IntArray | None = None,
    *,
    ddof: int = 0,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """Interval for the standard deviation of the columns' true means.

    Sampling error alone spreads means, so that the spread of resampled means lies above that of
    the data, and percentiles never reach 0. Here each candidate spread is tested instead: true
    means that deviate in the seen direction by t are kept if the seen spread lies within the
    central part of those of t·direction + (resampled − seen means).

    Parameters
    ----------
    columns : float64 array of shape (n, k)
        One row per query, one column per system.
    clusters : int64 array of shape (n,), optional
        Codes of clusters of queries. The means that sign flips of whole clusters do not reject,
        along the direction seen, are kept then.
    ddof : int
        As for the estimate, the plain standard deviation of the column means.

    Raises
    ------
    InsufficientDataError
        With fewer than 20 rows, or clusters that are too few or too uneven.
    """
    n, k = columns.shape
    if n < MIN_ROWS:
        raise InsufficientDataError(
            f"a bootstrap over {n} rows covers too rarely; at least {MIN_ROWS} are needed",
            n=n,
            n_needed=MIN_ROWS,
        )
    means = columns.mean(axis=0)
    deviations = means - means.mean()
    seen = float(np.linalg.norm(deviations))
    scale = math.sqrt(k - ddof)
    if clusters is not None:
        require_flippable(clusters, confidence_level)
        centred = columns - columns.mean(axis=1, keepdims=True)
        flips = cluster_flips(centred, clusters, resamples=resamples, seed=rng)
        lower, upper = flips.ends(confidence_level, flips.direction)
        return flips.interval(
            seen / scale, max(lower, 0.0) / scale, upper / scale, confidence_level
        )
    errors = bootstrap_means(columns, resamples=resamples, rng=as_generator(rng)) - means
    errors -= errors.mean(axis=1, keepdims=True)
    # To the variance and the quantile of a t interval: without it 20 rows of 2 columns cover .91.
    probability = 0.5 + confidence_level / 2
    errors *= t_quantile(probability, n - 1) / normal_quantile(probability)
    errors *= math.sqrt(n / (n - 1))
    along = errors @ (deviations / seen) if seen > 0 else np.zeros(resamples)
    square = (errors**2).sum(axis=1)
    tail = (1 - confidence_level) / 2

    def at(probability: float, t: float) -> float:
        spread = np.sqrt(np.maximum(t**2 + 2 * t * along + square, 0.0))
        return float(np.quantile(spread, probability))

    start = seen + float(np.sqrt(square.max()))
    lower, upper = (
        crossing(partial(at, p), seen, start=start) if start else 0.0 for p in (1 - tail, tail)
    )
    return of_queries(
        seen / scale,
        lower / scale,
        upper / scale,
        level=confidence_level,
        method=InferCode.SPREAD,
        n=n,
    )


# Intervals for how well a score separates correct from wrong answers.


_MIN_PAIRS = 5  # pairs of different questions, below which an error estimate means nothing
_NO_ERROR = 1e-12


def auc_interval(
    answers: AnswerScores,
    *,
    confidence_level: float = 0.95,
    within_systems: bool = False,
    resamples: int = 10_000,
) -> Interval:
    """AUC of correct against wrong answers, with an interval for resampled questions.

    The error comes from each question's influence (DeLong et al. 1988, clustered as Obuchowski
    1997), which costs one sort instead of thousands of resamples. The interval is symmetric in
    the logit, with t quantiles for the number of independent pairs of questions: simulated
    coverage of a nominal 95 % is .93–.97 from 10 such pairs on, but .90 at an AUC of .97 and .84 to
    .86 above .99 where only 2 % of the answers are wrong. With perfect separation it is the exact
    bound that the independent pairs allow. With clusters the signs of their influences are flipped.

    Raises
    ------
    InsufficientDataError
        Without correct or wrong answers, with fewer than 5 independent pairs of questions, or if
        no question differs from another.
    """
    found = _usable(answers, confidence_level, within_systems=within_systems)
    auc = found.auc
    tail = (1 - confidence_level) / 2
    if auc in (0.0, 1.0):
        code, bound = InferCode.SEPARATED, tail ** (1 / found.n_pairs)
        lower, upper = (bound, 1.0) if auc == 1 else (0.0, 1 - bound)
    else:
        code = InferCode.DELONG if answers.clusters is None else InferCode.CLUSTER_FLIPS
        middle = math.log(auc / (1 - auc))
        reach = _reach(found, found.influence, answers, confidence_level, resamples)
        lower, upper = (expit(middle + step / (auc * (1 - auc))) for step in reach)
    return of_queries(
        auc,
        lower,
        upper,
        level=confidence_level,
        method=code,
        n=len(found.influence),
        sampled=InferCode.CLUSTERS_SAMPLED,
    )


def auc_change_interval(
    before: AnswerScores,
    after: AnswerScores,
    *,
    confidence_level: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """Change of the AUC within systems from one score of the same answers to another.

    Raises
    ------
    InsufficientDataError
        As for :func:`auc_interval`.
    """
    first, second = (_usable(a, confidence_level, within_systems=True) for a in (before, after))
    influence = second.influence - first.influence
    estimate = second.auc - first.auc
    lower, upper = _reach(first, influence, before, confidence_level, resamples)
    return of_queries(
        estimate,
        max(estimate + lower, -1.0),
        min(estimate + upper, 1.0),
        level=confidence_level,
        method=InferCode.DELONG_CHANGE,
        n=len(influence),
        sampled=InferCode.CLUSTERS_SAMPLED,
    )


def _usable(answers: AnswerScores, level: float, *, within_systems: bool) -> QuestionAUC:
    found = question_auc(answers, within_systems=within_systems)
    if answers.clusters is not None:
        require_flippable(np.repeat(np.arange(len(found.sizes)), found.sizes), level)
    if found.n_pairs < _MIN_PAIRS:
        raise InsufficientDataError(
            f"the AUC is {found.auc:.3f}, but only {found.n_pairs} pair(s) of different questions "
            f"with a correct and a wrong answer can be formed; an interval needs {_MIN_PAIRS}",
            n=found.n_pairs,
            n_needed=_MIN_PAIRS,
        )
    return found


def _reach(
    found: QuestionAUC,
    influence: FloatArray,
    answers: AnswerScores,
    level: float,
    resamples: int,
) -> tuple[float, float]:
    """Return how far below and above the estimate an interval reaches.

    Raises
    ------
    InsufficientDataError
        If no influence differs from their mean, which is 0.
    """
    n = len(influence)
    error = math.sqrt(np.sum(influence**2) / (n * (n - 1)))
    if error < _NO_ERROR:
        raise InsufficientDataError(
            f"the {n} questions do not differ in how well the score separates their answers, so "
            "nothing is known about how much they vary",
            n=n,
        )
    if answers.clusters is None:
        half = t_quantile(0.5 + level / 2, found.n_pairs - 1) * error
        return -half, half
    sizes = found.sizes / found.sizes.sum()
    return ClusterFlips(numerator=influence / n, denominator=sizes, resamples=resamples).ends(level)


# Everything that can be said about one correctness score.


def measure_bias(
    answers: AnswerScores, config: AnswerConfig, *, notes: list[str], called: str
) -> AnswerBias:
    """Measure what one score rewards besides correctness.

    Parameters
    ----------
    notes : list of str
        What a reader must know is appended.
    called : str
        The score in such notes, as "raw score".

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system.
    """
    pairs = paired_correct(answers)
    spread = answer_spread(answers, ddof=config.ddof)
    level = config.confidence_level
    mean_of = means_of(pairs.clusters, config)
    threshold = _threshold(answers, config, notes, called)
    inversions = attempt(lambda: rank_inversions(answers), notes, f"{called}, order of systems")
    if inversions is not None:
        sure = tuple(_beyond_chance(answers, inversions, config))
        inversions = replace(inversions, beyond_chance=sure)
    return AnswerBias(
        spread=spread,
        means=tuple(
            attempt(
                partial(mean_of, column),
                notes,
                f"{called}, mean of {name!r}",
            )
            for name, column in zip(pairs.systems, pairs.scores.T, strict=True)
        ),
        unfairness=attempt(
            lambda: spread_interval(
                pairs.scores,
                pairs.clusters,
                ddof=config.ddof,
                confidence_level=level,
                resamples=config.resamples,
                rng=config.seed,
            ),
            notes,
            f"{called}, unfairness",
        ),
        differences=tuple(_differences(pairs, spread, mean_of, notes, called)),
        length_correlation=length_correlation(answers),
        auc=attempt(
            lambda: auc_interval(answers, confidence_level=level, resamples=config.resamples),
            notes,
            f"{called}, AUC",
        ),
        auc_within=attempt(
            lambda: auc_interval(
                answers, confidence_level=level, within_systems=True, resamples=config.resamples
            ),
            notes,
            f"{called}, AUC within systems",
        ),
        system_aucs=system_aucs(answers),
        threshold=threshold,
        verdicts=threshold_verdicts(answers, threshold),
        inversions=inversions,
    )


def questions_needed(answers: AnswerScores, config: AnswerConfig) -> int:
    """Questions answered correctly by all systems that would tell whether a score rewards style."""
    pairs = paired_correct(answers)
    columns = pairs.scores
    if len(columns) < MIN_ROWS:
        return MIN_ROWS
    within = np.sqrt(columns.var(axis=0, ddof=1).mean())
    if pairs.clusters is not None:
        require_flippable(pairs.clusters, config.confidence_level)
    tail = (1 - config.confidence_level) / 2
    quantile = normal_quantile(1 - tail)

    def alike(
        found: npt.NDArray[np.float64], queries: int, contrast: float
    ) -> npt.NDArray[np.bool_]:
        error = contrast / np.sqrt(queries * columns.shape[1])
        return np.asarray(found.std(axis=-1) + quantile * error < SMALL * within)

    return queries_to_tell(columns, pairs.clusters, alpha=tail, alike=alike, rng=config.seed)


def _threshold(answers: AnswerScores, config: AnswerConfig, notes: list[str], called: str) -> float:
    if config.threshold is not None:
        return config.threshold
    best = best_threshold(answers)
    if best is not None:
        notes.append(
            f"{called}, threshold {best:.3g}: the one that separates correct from wrong best among "
            "these same answers; on others it will do a little worse"
        )
        return best
    middle = float(np.median(answers.scores[answers.scored & (answers.correct == 1)]))
    notes.append(
        f"{called}, threshold {middle:.3g}: the median score of correct answers; without wrong "
        "answers there is nothing to choose it by"
    )
    return middle


def _differences(
    pairs: PairedAnswers,
    spread: AnswerSpread,
    mean_of: Callable[[FloatArray], Interval],
    notes: list[str],
    called: str,
) -> Iterator[SystemDifference]:
    for i, j in combinations(range(len(pairs.systems)), 2):
        first, second = pairs.systems[i], pairs.systems[j]
        interval = attempt(
            partial(mean_of, pairs.scores[:, i] - pairs.scores[:, j]),
            notes,
            f"{called}, difference of {first!r} and {second!r}",
        )
        if interval is not None:
            sd = spread.within_sd
            effect = None if sd is None else interval.estimate / sd
            yield SystemDifference(first=first, second=second, difference=interval, effect=effect)


def _beyond_chance(
    answers: AnswerScores, found: RankInversions, config: AnswerConfig
) -> Iterator[tuple[str, str]]:
    """Yield the inversions that are more than noise: both orders are beyond chance."""
    rows = answered_by_all(answers)
    mean_of = means_of(answers.clusters_of(rows), config)
    rows_of = dict(zip(found.systems, rows.T, strict=True))
    for better, worse in found.inversions:
        first, second = rows_of[better], rows_of[worse]
        human = answers.correct[first] - answers.correct[second]
        score = answers.scores[second] - answers.scores[first]
        with suppress(InsufficientDataError):
            if mean_of(human, bounds=(-1.0, 1.0)).lower > 0 and mean_of(score).lower > 0:
                yield better, worse


# One correctness score, raw and without what style adds to it.


_NO_SPREAD = 1e-12
_OUTSIDE = 0.05  # share of answers beyond the lengths of the fit worth a note


def measure_scorer(
    name: str,
    answers: AnswerScores,
    config: AnswerConfig,
    *,
    settings: Mapping[str, str],
    fit: tuple[str, AnswerScores] | None,
) -> AnswerScorer:
    """Measure one score before and after adjustment.

    Parameters
    ----------
    fit : (str, AnswerScores) or None
        Name and scores of other answers on which the adjustment is fitted.

    Raises
    ------
    InsufficientDataError
        If no question was answered correctly by every system, or the data to fit on are too few.
    """
    notes: list[str] = []
    if missing := np.count_nonzero(np.isnan(answers.scores) & (answers.words > 0)):
        notes.append(f"{missing} of {len(answers)} answers have words but no score; left out")
    raw = measure_bias(answers, config, notes=notes, called="raw score")
    found = _adjust(answers, config, fit, notes) if config.adjust else None
    scorer = AnswerScorer(
        name=name,
        settings=dict(settings),
        scores=answers.scores,
        adjusted_scores=np.empty(0),
        raw=raw,
    )
    if found is not None:
        after, how = found
        adjusted = measure_bias(after, config, notes=notes, called="adjusted score")
        spread = raw.spread.unfairness
        # what is lacking was noted with the AUC itself, or nothing has changed
        change = if_enough(
            auc_change_interval,
            answers,
            after,
            confidence_level=config.confidence_level,
            resamples=config.resamples,
        )
        notes.append(
            "intervals of the adjusted score take the fitted adjustment as given; where one system "
            "alone writes answers of some length, its own part and that of length cannot be told "
            "apart"
        )
        scorer = replace(
            scorer,
            adjusted_scores=after.scores,
            adjusted=adjusted,
            adjustment=how,
            spread_cut=1 - adjusted.spread.unfairness / spread if spread > _NO_SPREAD else None,
            auc_change_within=change,
        )
    undecided = answer_style(raw) in (AnswerStyle.CANNOT_TELL, AnswerStyle.TOO_FEW)
    return replace(
        scorer,
        notes=tuple(notes),
        finding=answer_finding(
            scorer, n_needed=if_enough(questions_needed, answers, config) if undecided else None
        ),
    )


def _adjust(
    answers: AnswerScores,
    config: AnswerConfig,
    fit: tuple[str, AnswerScores] | None,
    notes: list[str],
) -> tuple[AnswerScores, str] | None:
    """Adjusted answers and how they came about; None (and a note) where too few are correct."""
    what = (
        "score minus what length adds, learned from correct answers to the same question (least "
        "squares on ln(1 + words), linear between its quartiles)"
    )
    if fit is not None:
        name, others = fit
        try:
            learned = fit_adjustment(others)
        except InsufficientDataError as error:
            raise InsufficientDataError(
                f"no adjustment can be fitted on {name!r}: {error}",
                n=error.n,
                n_needed=error.n_needed,
            ) from error
        length = np.log1p(answers.words[answers.scored])
        outside = np.mean((length < learned.shortest) | (length > learned.longest))
        if outside > _OUTSIDE:
            notes.append(
                f"adjusted score: {outside:.0%} of the answers are shorter or longer than any "
                f"correct answer of {name!r}, where the adjustment is constant"
            )
        return learned.apply(answers), (
            f"{what}; fitted on {name!r} ({learned.n_answers:,} answers to "
            f"{learned.n_questions:,} questions)"
        )
    n_questions = len(set(answers.question_ids))
    if n_questions < config.folds:
        notes.append(
            f"adjusted score: {n_questions} question(s) cannot be dealt into {config.folds} folds"
        )
        return None
    moved = attempt(
        lambda: cross_fit_adjustment(answers, folds=config.folds, rng=config.seed),
        notes,
        "adjusted score",
    )
    if moved is None:
        return None
    return moved, (
        f"{what}; cross-fitted: each answer by a fit on the other {config.folds - 1} of "
        f"{config.folds} groups of questions"
    )


# What a report of an answer audit says about the answers themselves.


_FEW = 100  # questions all systems answered correctly, below which differences are coarse
_FACTOR = 1.5  # of mean lengths worth a warning


def check_answers(answers: AnswerTexts) -> None:
    """Refuse answers that allow no comparison.

    Raises
    ------
    DataError
        If there is only one system.
    InsufficientDataError
        If nobody judged an answer, or none is correct.
    """
    names = list(dict.fromkeys(answers.systems))
    if len(names) < 2:
        raise DataError(
            f"all {len(answers)} answers are of system {names[0]!r}; a score's preference shows "
            "between at least 2 systems that answer the same questions"
        )
    judged = np.count_nonzero(~np.isnan(answers.correct))
    if not np.any(answers.correct == 1):
        state = f"{judged} judged answers" if judged else f"{len(answers)} answers, none judged,"
        raise InsufficientDataError(
            f"among {state} there is no answer that people marked correct; style shows between "
            "correct answers: judge some answers of every system to the same questions",
            n=0,
        )


def describe_systems(answers: AnswerTexts, words: IntArray) -> Iterator[AnsweringSystem]:
    """Count and measure the answers of each system."""
    column = np.asarray(answers.systems)
    for name in dict.fromkeys(answers.systems):
        rows = column == name
        filled = rows & (words > 0)
        right = filled & (answers.correct == 1)
        yield AnsweringSystem(
            name=name,
            n_answers=int(rows.sum()),
            n_correct=int((rows & (answers.correct == 1)).sum()),
            n_wrong=int((rows & (answers.correct == 0)).sum()),
            n_empty=int((rows & (words == 0)).sum()),
            mean_words=float(words[filled].mean()) if filled.any() else 0.0,
            mean_words_correct=float(words[right].mean()) if right.any() else None,
        )


def answer_warnings(
    answers: AnswerTexts, words: IntArray, systems: tuple[AnsweringSystem, ...]
) -> Iterator[str]:
    """Say what limits what can be concluded from these answers."""
    yield from map(str, answers.notes)
    counts: dict[str, int] = {}
    for question, right in zip(
        answers.question_ids, ((words > 0) & (answers.correct == 1)).tolist(), strict=True
    ):
        counts[question] = counts.get(question, 0) + right
    shared = sum(count == len(systems) for count in counts.values())
    if shared < _FEW:
        least = min(systems, key=lambda s: s.n_correct)
        yield (
            f"only {shared} of {len(counts)} questions were answered correctly by all "
            f"{len(systems)} systems; differences are uncertain (fewest correct: {least.name!r}, "
            f"{least.n_correct})"
        )
    lengths = {s.name: s.mean_words_correct for s in systems if s.mean_words_correct}
    if len(lengths) > 1:
        shortest, *_, longest = sorted(lengths, key=lengths.__getitem__)
        ratio = lengths[longest] / lengths[shortest]
        if ratio >= _FACTOR:
            yield (
                f"correct answers of {longest!r} are {ratio:.1f} times as long as those of "
                f"{shortest!r} ({lengths[longest]:.0f} and {lengths[shortest]:.0f} words): a score "
                "that follows length orders systems by it"
            )
    unjudged = np.count_nonzero(np.isnan(answers.correct))
    if unjudged:
        yield (
            f"{unjudged} of {len(answers)} answers have no human verdict; they count only in "
            "intervals of human correctness, which take the judged ones for a random sample"
        )
    empty = words == 0
    if empty.any():
        marked = np.count_nonzero(empty & (answers.correct == 1))
        yield (
            f"{np.count_nonzero(empty)} of {len(answers)} answers have no words and take part "
            "in no comparison of scores" + (f"; people marked {marked} correct" if marked else "")
        )


def describe_texts(
    answers: AnswerTexts, words: IntArray, config: AnswerConfig, warnings: list[str]
) -> tuple[TextStatistic, ...]:
    """Statistics of each system's correct answers against the references ([W] Fig. 6)."""
    rows: dict[str, list[int]] = {}
    for row in np.flatnonzero((words > 0) & (answers.correct == 1)).tolist():
        rows.setdefault(answers.systems[row], []).append(row)
    warnings += missing_statistics()
    return text_statistics(
        {name: [answers.answers[i] for i in chosen] for name, chosen in rows.items()},
        {name: [answers.references[i] for i in chosen] for name, chosen in rows.items()},
        statistics=installed_statistics(),
        confidence_level=config.confidence_level,
        rng=config.seed,
    )


# The verb: how much correctness scores reward a system's style ([W] §5).


def measure_answer_bias(
    scores: Mapping[str, npt.ArrayLike],
    answers: AnswerTexts,
    *,
    config: AnswerConfig | None = None,
    fit_scores: Mapping[str, npt.ArrayLike] | None = None,
    fit_on: AnswerTexts | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
    clusters: Mapping[str, str] | None = None,
    text_statistics: bool = True,
) -> AnswerBiasReport:
    """Measure what correctness scores of answers reward besides correctness.

    Parameters
    ----------
    scores : mapping of scorer name to array-like of shape (n,)
        Score of each answer, higher is better, in any unit; NaN where there is none. The score of
        an answer without words is not used.
    answers : AnswerTexts of n answers
        Of at least 2 systems to the same questions, with human verdicts.
    config : AnswerConfig, optional
    fit_scores : mapping of scorer name to array-like of shape (m,), optional
        Scores of the answers in ``fit_on``, by the same scorers.
    fit_on : AnswerTexts of m answers, optional
        Other judged answers from which the adjustment is learned. Without them it is cross-fitted
        on ``answers``.
    settings : mapping of str to mapping, optional
        Settings to state per scorer.
    clusters : mapping of str to str, optional
        Topic, paraphrase group or user session of each question: questions of one cluster may
        depend on one another.
    text_statistics : bool
        Compare the correct answers' texts with their references too.

    Returns
    -------
    AnswerBiasReport

    Raises
    ------
    DataError
        If there is only one system, a score is infinite, shapes disagree, or ``fit_on`` and
        ``fit_scores`` do not go together.
    InsufficientDataError
        If no question was answered correctly by every system.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lengths = np.tile([2, 12], 60)
    >>> answers = AnswerTexts(
    ...     question_ids=tuple(f"q{i // 2}" for i in range(120)),
    ...     systems=("short", "long") * 60,
    ...     answers=tuple("word " * n for n in lengths),
    ...     references=(("word",),) * 120,
    ...     correct=np.ones(120),
    ... )
    >>> scores = {"cosine": 0.9 - 0.1 * np.log1p(lengths) + 0.02 * rng.normal(size=120)}
    >>> report = measure_answer_bias(scores, answers, text_statistics=False)
    >>> scorer = report.scorer("cosine")
    >>> scorer.raw.spread.unfairness > 0.05, scorer.spread_cut > 0.9
    (True, True)
    """
    config = config or AnswerConfig()
    if not scores:
        raise DataError("no scores were given; give at least one scorer with a score per answer")
    check_answers(answers)
    cluster, told = declared_clusters(
        answers.question_ids, clusters, of="answers", alone="statistics of texts"
    )
    fits = _fit_data(scores, config, fit_scores, fit_on)
    words = word_counts(answers.answers)
    scorers = tuple(
        measure_scorer(
            name,
            _scored(name, column, answers, words, cluster),
            config,
            settings=(settings or {}).get(name, {}),
            fit=fits.get(name),
        )
        for name, column in scores.items()
    )
    scorers = tuple(replace(s, evidence=evidence_of(s, answers)) for s in scorers)
    systems = tuple(describe_systems(answers, words))
    warnings = [*told, *answer_warnings(answers, words, systems)]
    texts = describe_texts(answers, words, config, warnings) if text_statistics else ()
    return AnswerBiasReport(
        schema_version=ANSWER_SCHEMA_VERSION,
        name=answers.name,
        config=config,
        question_ids=answers.question_ids,
        answer_systems=answers.systems,
        correct=answers.correct,
        words=words,
        systems=systems,
        scorers=scorers,
        environment=environment(),
        created=timestamp(),
        text_statistics=texts,
        license=answers.license,
        attribution=answers.attribution,
        warnings=tuple(warnings),
    )


def evidence_of(scorer: AnswerScorer, texts: AnswerTexts) -> tuple[Evidence, ...]:
    """Return the questions in which a score parts two correct answers most."""
    if (systems := extremes(scorer.raw)) is None:
        return ()
    rows: dict[str, dict[str, int]] = {}
    for at, (question, system) in enumerate(zip(texts.question_ids, texts.systems, strict=True)):
        usable = texts.correct[at] == 1 and math.isfinite(scorer.scores[at])
        if system in systems and usable:
            rows.setdefault(question, {})[system] = at
    names = [question for question, of in rows.items() if len(of) == 2]
    pairs = [[rows[question][s] for s in systems] for question in names]
    apart = np.array([scorer.scores[i] - scorer.scores[j] for i, j in pairs])

    def side(at: int, system: str) -> EvidenceText:
        return EvidenceText.of(system, texts.answers[at], value=float(scorer.scores[at]))

    return tuple(
        Evidence(
            item=names[place],
            asked=next(iter(texts.references[pairs[place][0]]), ""),
            value=float(apart[place]),
            first=side(pairs[place][0], systems[0]),
            second=side(pairs[place][1], systems[1]),
        )
        for place in telling(apart, names).tolist()
    )


def _scored(
    name: str,
    column: npt.ArrayLike,
    answers: AnswerTexts,
    words: npt.NDArray[np.int64],
    clusters: IntArray | None = None,
) -> AnswerScores:
    where = f"scorer {name!r}, answers {answers.name!r}"
    try:
        scores = np.array(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: scores must be numbers ({error})") from error
    if scores.shape != (len(answers),):
        raise DataError(f"{where}: scores of shape {scores.shape} for {len(answers)} answers")
    if np.isinf(scores).any():
        raise DataError(f"{where}: a score is infinite; NaN says that there is none")
    return AnswerScores(
        question_ids=answers.question_ids,
        systems=answers.systems,
        scores=scores,
        correct=answers.correct,
        words=words,
        clusters=clusters,
    )


def _fit_data(
    scores: Mapping[str, npt.ArrayLike],
    config: AnswerConfig,
    fit_scores: Mapping[str, npt.ArrayLike] | None,
    fit_on: AnswerTexts | None,
) -> dict[str, tuple[str, AnswerScores]]:
    if fit_on is None and fit_scores is None:
        return {}
    if fit_on is None or fit_scores is None:
        raise DataError("fit_on and fit_scores go together: other answers, and their scores")
    if not config.adjust:
        raise DataError("fit_on serves the adjustment, which adjust=False switches off")
    lacking = [name for name in scores if name not in fit_scores]
    if lacking:
        raise DataError(
            f"fit_scores lack scorer {lacking[0]!r}; they have {list(fit_scores)}: an adjustment "
            "holds only for the scorer it was learned from"
        )
    words = word_counts(fit_on.answers)
    return {name: (fit_on.name, _scored(name, fit_scores[name], fit_on, words)) for name in scores}


# The verb: score answers with encoders, then measure what the scores reward.


def audit_answers(
    answers: AnswerTexts,
    encoders: Sequence[Encoder],
    *,
    fit_on: AnswerTexts | None = None,
    config: AnswerConfig | None = None,
    clusters: Mapping[str, str] | None = None,
    text_statistics: bool = True,
    on_stage: Callable[[str], None] | None = None,
) -> AnswerBiasReport:
    """Score answers as embedding-based correctness does, and measure what the scores reward.

    The score is the cosine of the answer and the reference, the nearest where a question has
    several references ([W] §5; the answer similarity of ragas, LlamaIndex and LangChain).

    Parameters
    ----------
    answers : AnswerTexts
        Of at least 2 systems to the same questions, with human verdicts.
    encoders : sequence of Encoder
        Names must differ.
    fit_on : AnswerTexts, optional
        Other judged answers from which each encoder's adjustment is learned. Without them it is
        cross-fitted on ``answers``.
    config : AnswerConfig, optional
    clusters : mapping of str to str, optional
        As in :func:`measure_answer_bias`.
    text_statistics : bool
        Compare the correct answers' texts with their references too.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    AnswerBiasReport
        With one scorer per encoder.

    Raises
    ------
    DataError
        As for :func:`measure_answer_bias`; if encoders are missing or share a name; if an encoder
        returns a vector that is zero or not finite.
    """
    config = config or AnswerConfig()
    stage = on_stage or (lambda _: None)
    names = [encoder.name for encoder in encoders]
    if not names or len(set(names)) != len(names):
        raise DataError(f"give one or more encoders with different names, got {names}")
    if fit_on is not None and not config.adjust:
        raise DataError("fit_on serves the adjustment, which adjust=False switches off")
    check_answers(answers)  # before minutes of encoding
    scores, fit_scores = {}, {}
    for encoder in encoders:
        name = encoder.name
        stage(f"{name}: comparing {len(answers):,} answers with their references")
        scores[name] = reference_similarity(answers.references, answers.answers, encoder)
        if fit_on is not None:
            stage(f"{name}: comparing {len(fit_on):,} answers to fit on")
            fit_scores[name] = reference_similarity(fit_on.references, fit_on.answers, encoder)
    stage("measuring scores and texts" if text_statistics else "measuring")
    return measure_answer_bias(
        scores,
        answers,
        config=config,
        fit_scores=None if fit_on is None else fit_scores,
        fit_on=fit_on,
        settings={encoder.name: dict(encoder.settings) for encoder in encoders},
        clusters=clusters,
        text_statistics=text_statistics,
    )
