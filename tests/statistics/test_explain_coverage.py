"""Coverage of the intervals for query words, whose weights come from the corpus itself."""

from __future__ import annotations

import numpy as np
import pytest
from simulation import FLOOR, acceptable

from rag_sourcebias.explain.causes import JudgedWords, judged_words, lexical_shift, word_sets

pytestmark = pytest.mark.slow
RUNS, POPULATION = 400, 4000


def population(seed: int, *, dropped: float):
    """4,000 queries with one to three relevant pairs each, among documents of both sources."""
    rng = np.random.default_rng(seed)
    names = np.array([f"w{i}" for i in range(400)])
    weights = 1 / (5 + np.arange(400))
    weights /= weights.sum()
    rows = np.repeat(np.arange(POPULATION), rng.integers(1, 4, POPULATION))
    texts = rng.choice(names, (len(rows), 15), p=weights)
    hard = rng.beta(2, 4, POPULATION)[rows]  # some queries are kept less well than others
    kept = rng.random(texts.shape) > dropped * 3 * hard[:, None]
    human = [" ".join(words) for words in texts]
    other = [
        " ".join([*words[some], *rng.choice(names, 4)])
        for words, some in zip(texts, kept, strict=True)
    ]
    first = np.searchsorted(rows, np.arange(POPULATION))
    queries = [" ".join([*rng.choice(texts[at], 3), rng.choice(names)]) for at in first]
    vocabulary: dict[str, int] = {}
    ours, theirs, asked = (word_sets(column, vocabulary) for column in (human, other, queries))
    return ours, theirs, asked, rows, vocabulary


@pytest.mark.parametrize("queries", [20, 80])
@pytest.mark.parametrize("dropped", [0.3, 0.02])
def test_gap_in_query_words(dropped, queries) -> None:
    ours, theirs, asked, rows, vocabulary = population(1, dropped=dropped)

    def judged(chosen: np.ndarray) -> JudgedWords:
        return JudgedWords(
            queries=asked,
            query_rows=rows[chosen],
            human=ours,
            other=theirs,
            human_rows=chosen,
            other_rows=chosen,
        )

    every = judged_words(judged(np.arange(len(rows))), n_codes=len(vocabulary))
    truth = {
        "coverage_human": every.human.mean(),
        "coverage_gap": (every.other - every.human).mean(),
        "gap_own_idf": (every.other_own - every.human_own).mean(),
    }
    rng = np.random.default_rng(queries)
    hits = dict.fromkeys(truth, 0)
    for _ in range(RUNS):
        drawn = np.isin(rows, rng.choice(POPULATION, queries, replace=False))
        case = judged(np.flatnonzero(drawn))
        found = lexical_shift(
            case, judged_words(case, n_codes=len(vocabulary)), vocabulary=vocabulary, terms=1
        )
        for name, value in truth.items():
            hits[name] += not getattr(found, name).excludes(value)
    assert min(hits.values()) / RUNS >= acceptable(FLOOR, RUNS), hits
