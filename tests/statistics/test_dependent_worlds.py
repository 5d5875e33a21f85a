"""Rankers that know no source, asked queries that come in clusters or share popular documents."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.infer.means import ClusterFlips, SkewCode
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SkewVerdict

pytestmark = pytest.mark.slow
CONFIG = AuditConfig(measures=("NDCG",), cutoffs=(5,), resamples=2_000, browsing=())
FAVOURS = {SkewCode.FAVOURS_BASELINE, SkewCode.FAVOURS_OTHER}
World = Callable[..., SkewVerdict]


def popular(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    """Zipf: the k-th of ``size`` things is drawn in proportion to 1/k."""
    weight = 1 / np.arange(1, size + 1)
    return rng.choice(size, size=n, p=weight / weight.sum())


def verdict(
    rng: np.random.Generator,
    taste: np.ndarray,
    asked: list[list[int]],
    bias: float,
    clusters: dict[str, str] | None = None,
) -> SkewVerdict:
    """Judge rankings of pairs of versions; ``taste[q][i]`` is for the human version of a pair."""
    results, judged, sides = {}, {}, {}
    for q, pairs in enumerate(asked):
        scores = {f"q{q}x{i}": rng.normal() for i in range(8)}
        sides.update({name: ("human", "llm:x")[i % 2] for i, name in enumerate(scores)})
        for pair, liking in zip(pairs, taste[q], strict=True):
            lead = (liking + bias) / 2
            scores |= {f"h{pair}": 0.6 + lead + rng.normal(), f"l{pair}": 0.6 - lead + rng.normal()}
            sides |= {f"h{pair}": "human", f"l{pair}": "llm:x"}
        results[f"q{q}"] = scores
        judged[f"q{q}"] = {f"{side}{pair}": 1 for pair in pairs for side in "hl"}
    tags = TagTable.from_tags((name, DocTags(source=side)) for name, side in sides.items())
    report = measure_source_bias(
        Run.from_dict(results), Qrels.from_dict(judged), tags, config=CONFIG, clusters=clusters
    )
    return report.systems[0].verdicts[0]


def clustered(rng: np.random.Generator, n: int, bias: float = 0.0) -> SkewVerdict:
    """Queries of one of 40 topics of Zipf sizes share a taste."""
    topic = popular(rng, n, 40)
    taste = 1.2 * rng.normal(size=40)[topic][:, None]
    clusters = {f"q{q}": f"topic {t}" for q, t in enumerate(topic)}
    return verdict(rng, taste, [[q] for q in range(n)], bias, clusters)


def shared(rng: np.random.Generator, n: int, bias: float = 0.0) -> SkewVerdict:
    """Eight of 2,000 documents are relevant to a query, and are liked by all queries alike."""
    asked = [np.unique(popular(rng, 8, 2_000)).tolist() for _ in range(n)]
    liked = 2 * rng.normal(size=2_000)
    return verdict(rng, [liked[pairs] for pairs in asked], asked, bias)  # type: ignore[arg-type]


@pytest.mark.parametrize("world", [clustered, shared])
def test_a_blind_ranker_is_not_called_biased(world: World) -> None:
    rng, draws = np.random.default_rng(1), 50
    wrong = sum(world(rng, 100).code in FAVOURS for _ in range(draws))
    assert binomtest(wrong, draws, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("world", "bias"), [(clustered, 1.8), (shared, 1.2)])
def test_a_planted_bias_is_found(world: World, bias: float) -> None:
    rng, draws = np.random.default_rng(2), 30
    found = sum(world(rng, 100, bias).code is SkewCode.FAVOURS_BASELINE for _ in range(draws))
    assert binomtest(found, draws, 0.8, alternative="less").pvalue > 0.001


def test_the_win_rate_of_twins_holds_what_flips_of_topics_leave() -> None:
    rng = np.random.default_rng(3)
    topic, n = popular(rng, 100, 40), 100
    likes = rng.normal(size=40)[topic] > 0
    results = {f"q{q}": {f"h{q}": 1.0 + likes[q], f"l{q}": 1.5} for q in range(n)}
    tags = TagTable.from_tags(
        (f"{side}{q}", DocTags(source=source, pair_id=f"p{q}"))
        for q in range(n)
        for side, source in (("h", "human"), ("l", "llm:x"))
    )
    judged = {f"q{q}": {f"h{q}": 1, f"l{q}": 1} for q in range(n)}
    clusters = {f"q{q}": f"topic {t}" for q, t in enumerate(topic)}
    given = (Run.from_dict(results), Qrels.from_dict(judged), tags)
    alone, found = (
        measure_source_bias(*given, config=CONFIG, clusters=declared).systems[0].twins[0].win_rate
        for declared in (None, clusters)
    )
    wins, sizes = np.bincount(topic, ~likes), np.bincount(topic)
    asked = sizes > 0
    flips = ClusterFlips(numerator=wins[asked], denominator=1.0 * sizes[asked], resamples=2_000)
    lower, upper = flips.ends(0.95)
    slack = 0.02  # flips are drawn for topics in another order
    assert found.lower <= lower + slack < upper - slack <= found.upper
    assert alone.lower > lower + 2 * slack  # the control: queries one by one claim more
