"""Answer-style bias on EVOUNA: a real encoder's score rewards short answers; adjusting it helps.

Measured with all-MiniLM-L6-v2 on all questions (NQ 1,312 and TQ 1,261 that all five systems
answered correctly): mean cosine .958 / .972 for answers of 2 words against .415 / .508 for the
longest, unfairness .197 / .160; fitted on the other set, the adjustment cuts it by 78 % / 78 % and
the AUC goes from .805 / .870 to .865 / .896 (learnt within systems: 68 % / 85 %, .865 / .916).
Within single systems the AUC may fall: by .01 and .02 for FiD, .01 and .04 for GPT-4. Here: a
sample, as encoding takes minutes.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.answers.measure import (
    answer_spread,
    correctness_auc,
    cross_fit_adjustment,
    fit_adjustment,
    rank_inversions,
    reference_similarity,
    threshold_verdicts,
)
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.stats.texts import word_counts

pytestmark = pytest.mark.data
SYSTEMS = ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
OTHER = {"NQ": "TQ", "TQ": "NQ"}


def sample(root, name):
    """40 questions that all systems got right and 20 that some got wrong, drawn at random."""
    with gzip.open(root / "evouna" / f"{name}.json.gz", "rt", encoding="utf-8") as lines:
        rows = [q for q in json.load(lines) if q["golden_answer"] and not q["improper"]]
    rows = [q for q in rows if all(q[f"judge_{s}"] is not None for s in SYSTEMS)]
    rows = [q for q in rows if q["golden_answer"].count("/") < 10]  # some have 185 wordings
    order = np.random.default_rng(5).permutation(len(rows))
    right = [i for i in order if all(rows[i][f"judge_{s}"] for s in SYSTEMS)]
    some = [i for i in order if not all(rows[i][f"judge_{s}"] for s in SYSTEMS)]
    return [rows[i] for i in right[:40] + some[:20]]


@pytest.fixture(scope="module")
def evouna():
    root = os.environ.get("RAG_SOURCEBIAS_DATA")
    if not root:
        pytest.skip("RAG_SOURCEBIAS_DATA does not name the folder of real data sets")
    encoder = SentenceEncoder("all-MiniLM-L6-v2", device="cpu")
    found = {}
    for name in OTHER:
        rows = [(str(i), s, q) for i, q in enumerate(sample(Path(root), name)) for s in SYSTEMS]
        texts = [q[f"answer_{s}"] or "" for _, s, q in rows]
        found[name] = AnswerScores(
            question_ids=tuple(i for i, _, _ in rows),
            systems=tuple(s for _, s, _ in rows),
            scores=reference_similarity([q["golden_answer"] for *_, q in rows], texts, encoder),
            correct=[float(q[f"judge_{s}"]) for _, s, q in rows],
            words=word_counts(texts),
        )
    return found


@pytest.mark.parametrize("name", ["NQ", "TQ"])
def test_the_score_rewards_short_answers(evouna, name):
    answers = evouna[name]
    spread = answer_spread(answers)
    assert spread.n_questions >= 39
    assert spread.unfairness > 0.12
    means = dict(zip(spread.systems, spread.means, strict=True))
    assert max(means, key=means.get) == "fid"
    assert means["fid"] - means["newbing"] > 0.35
    order = rank_inversions(answers)
    best = [order.systems[int(np.argmax(v))] for v in (order.mean_scores, order.correctness)]
    assert best[0] == "fid"
    assert best[1] != "fid"
    assert threshold_verdicts(answers, 0.6).n_flipped > 0.6 * spread.n_questions


@pytest.mark.parametrize("name", ["NQ", "TQ"])
def test_adjusting_cuts_the_spread_without_losing_auc(evouna, name):
    """Fitted on the other data set; the bar is 60 %."""
    answers = evouna[name]
    raw = answer_spread(answers).unfairness
    moved = fit_adjustment(evouna[OTHER[name]]).apply(answers)
    assert answer_spread(moved).unfairness < 0.4 * raw
    assert correctness_auc(moved) >= correctness_auc(answers)
    inside = cross_fit_adjustment(answers)
    assert answer_spread(inside).unfairness < 0.2 * raw
    assert correctness_auc(inside) >= correctness_auc(answers)
