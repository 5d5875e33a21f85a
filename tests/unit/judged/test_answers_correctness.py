"""Human correctness of each system from a few labels, the score being the judge."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.data import JudgedConfig
from rag_sourcebias.stats.means import mean_interval


def test_each_system_gets_its_own_interval():
    """The score ranks the terse system first; 80 labels per system put it right."""
    rng = np.random.default_rng(0)
    n, share, level = 600, {"terse": 0.6, "long": 0.85}, {"terse": 0.8, "long": 0.4}
    labeled = rng.random(n) < 80 / n
    truth = {s: rng.random(n) < p for s, p in share.items()}
    scores = {s: level[s] - 0.3 * ~truth[s] + 0.05 * rng.normal(size=n) for s in share}
    answers = AnswerScores(
        question_ids=tuple(f"q{i}" for i in range(n)) * 2,
        systems=("terse",) * n + ("long",) * n,
        scores=np.concatenate([scores["terse"], scores["long"]]),
        correct=np.concatenate([np.where(labeled, truth[s], np.nan) for s in share]),
        words=[2] * n + [40] * n,
    )
    config = JudgedConfig(target="pool")
    report = judge_items_with_intervals(answers.judged_items(), measure="correct", config=config)
    for system in share:
        found = report.mean("correct", system)
        assert found.interval == mean_interval(
            truth[system][labeled],
            scores[system][labeled],
            scores[system][~labeled],
            target="pool",
        )
        assert not found.interval.excludes(truth[system].mean())
        assert found.interval.half_width < 0.05  # 80 labels alone: about 0.10
    (comparison,) = report.comparisons
    assert (comparison.first, comparison.second) == ("terse", "long")
    assert comparison.interval.upper < 0
    assert scores["terse"].mean() > scores["long"].mean() + 0.2
    assert comparison.interval.estimate == pytest.approx(
        truth["terse"].mean() - truth["long"].mean(), abs=0.06
    )
