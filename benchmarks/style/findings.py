"""What [W] found, checked on a report; and whether the adjustment of answers meets its bar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_sourcebias.answers.data import AnswerBiasReport, AnswerScorer, AnswerScores
from rag_sourcebias.answers.measure import correctness_auc
from rag_sourcebias.core.values import Interval
from rag_sourcebias.style.data import StyleReport, StyleSystem

FAVOURED = ("human", "2")
SILENCED = ("3", "6", "7", "8")
CUT = 0.6


def ends(interval: Interval | None) -> list[float] | None:
    """Estimate, lower and upper end."""
    if interval is None:
        return None
    return [round(float(x), 4) for x in (interval.estimate, interval.lower, interval.upper)]


def most_favoured(system: StyleSystem, styles: Sequence[str]) -> dict:
    """(a) The human text or style 2 is ranked highest under original queries."""
    best = styles[int(system.average_ranks[0].argmin())]
    return {"best": best, "holds": best in FAVOURED}


def least_favoured(system: StyleSystem, styles: Sequence[str]) -> dict:
    """(b) Styles 3, 6, 7 and 8 are ranked lowest under original queries.

    ``below the original`` are the styles whose difference to it is beyond chance (adjusted over
    the styles).
    """
    order = np.argsort(-system.average_ranks[0], kind="stable")[: len(SILENCED)]
    worst = [styles[i] for i in order]
    below = [
        pair.first
        for pair in system.rows[0].against_original
        if pair.difference > 0 and pair.p_adjusted < 0.05
    ]
    return {
        "worst": worst,
        "below the original": below,
        "holds": set(worst) == set(SILENCED),
    }


def matching(system: StyleSystem) -> dict:
    """(c) A query in style k raises documents in style k."""
    gains = {gain.style or "all": ends(gain.gain) or [gain.mean] for gain in system.matching}
    raised = [s for s, gain in gains.items() if s != "all" and len(gain) == 3 and gain[1] > 0]
    together = gains.get("all")
    return {
        "gains": gains,
        "raised": raised,
        "holds": bool(together and len(together) == 3 and together[1] > 0),
    }


def style_figures(report: StyleReport) -> list[dict]:
    """Key figures of each system of a style report."""
    styles = report.data.doc_styles
    rows = []
    for system in report.systems:
        sums = system.average_ranks.sum(axis=1)
        expected = len(styles) * (len(styles) + 1) / 2
        if np.abs(sums - expected).max() > 1e-9 * expected:
            raise SystemExit(f"{system.name}: average ranks sum to {sums}, not {expected}")
        rows.append({
            "system": system.name,
            "settings": dict(system.settings),
            "average_ranks": {
                form: dict(zip(styles, np.round(ranks, 3).tolist(), strict=True))
                for form, ranks in zip(report.data.query_styles, system.average_ranks, strict=True)
            },
            "unfairness": {
                row.query_style: ends(row.unfairness_interval) or [round(row.unfairness.score, 4)]
                for row in system.rows
            },
            "corrected": {r.query_style: round(r.unfairness.corrected, 4) for r in system.rows},
            "kendall_w": {r.query_style: r.friedman.w and round(r.friedman.w, 4)
                          for r in system.rows},
            "mean_unfairness": ends(system.mean_unfairness),
            "a_most_favoured": most_favoured(system, styles),
            "b_least_favoured": least_favoured(system, styles),
            "c_matching": matching(system),
        })  # fmt: skip
    return rows


def auc_change(
    report: AnswerBiasReport, scorer: AnswerScorer, *, resamples: int = 1_000, seed: int = 0
) -> list[float]:
    """AUC after minus before the adjustment, with a 95 % interval over resampled questions."""
    before = AnswerScores(
        question_ids=report.question_ids,
        systems=report.answer_systems,
        scores=scorer.scores,
        correct=report.correct,
        words=report.words,
    )
    after = before.with_scores(scorer.adjusted_scores)
    change = (correctness_auc(after) or np.nan) - (correctness_auc(before) or np.nan)
    used = before.scored & ~np.isnan(before.correct)
    codes = before.question_codes[used]
    right = before.correct[used] == 1
    pairs = [sorted_once(a.scores[used]) for a in (before, after)]
    rng = np.random.default_rng(seed)
    n = int(codes.max()) + 1
    drawn = []
    for _ in range(resamples):
        weights = np.bincount(rng.integers(0, n, n), minlength=n)[codes]
        drawn.append(
            weighted_auc(*pairs[1], right, weights) - weighted_auc(*pairs[0], right, weights)
        )
    lower, upper = np.quantile(drawn, [0.025, 0.975])
    return [round(float(x), 4) for x in (change, lower, upper)]


def sorted_once(scores: np.ndarray) -> tuple[np.ndarray, int]:
    """Place of each score among the distinct ones, and their number."""
    distinct, place = np.unique(scores, return_inverse=True)
    return place, len(distinct)


def weighted_auc(place: np.ndarray, n: int, right: np.ndarray, weights: np.ndarray) -> float:
    """Probability that a correct answer scores above a wrong one, each counted by its weight."""
    good = np.bincount(place, weights=weights * right, minlength=n)
    bad = np.bincount(place, weights=weights * ~right, minlength=n)
    below = np.cumsum(bad) - bad
    return float(good @ (below + bad / 2) / (good.sum() * bad.sum()))


def answer_figures(report: AnswerBiasReport, *, fitted_on: str) -> list[dict]:
    """Key figures of each scorer of an answer report."""
    words = {s.name: rounded_or_none(s.mean_words_correct) for s in report.systems}
    rows = []
    for scorer in report.scorers:
        raw, adjusted = scorer.raw, scorer.adjusted
        if adjusted is None or scorer.spread_cut is None:
            raise SystemExit(f"{scorer.name}: the scores were not adjusted")
        change = auc_change(report, scorer)
        rows.append({
            "encoder": scorer.name,
            "settings": dict(scorer.settings),
            "answers": report.name,
            "adjustment fitted on": fitted_on,
            "n_questions_all_correct": raw.spread.n_questions,
            "mean_words_correct": words,
            "means": rounded(raw.spread.systems, raw.spread.means),
            "adjusted_means": rounded(adjusted.spread.systems, adjusted.spread.means),
            "unfairness": ends(raw.unfairness),
            "adjusted_unfairness": ends(adjusted.unfairness),
            "spread_cut": round(scorer.spread_cut, 4),
            "length_correlation": [rounded_or_none(raw.length_correlation),
                                   rounded_or_none(adjusted.length_correlation)],
            "auc": ends(raw.auc),
            "adjusted_auc": ends(adjusted.auc),
            "auc_change": change,
            "system_aucs": {name: [rounded_or_none(value),
                                   rounded_or_none(adjusted.system_aucs[name])]
                            for name, value in raw.system_aucs.items()},
            "thresholds": [round(raw.threshold, 4), round(adjusted.threshold, 4)],
            "n_flipped": [raw.verdicts.n_flipped, adjusted.verdicts.n_flipped],
            "n_flips": scorer.n_flips,
            "inversions": [None if b.inversions is None
                           else [len(b.inversions.inversions), b.inversions.n_pairs]
                           for b in (raw, adjusted)],
            "cut_met": bool(scorer.spread_cut >= CUT),
            "auc_kept": bool(change[0] >= 0),
        })  # fmt: skip
    return rows


def rounded(names: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in zip(names, values, strict=True)}


def rounded_or_none(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
