"""The rivals of ``benchmarks/debias/learnt.py``: attention by position, and pooled pairs."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmark_modules import load
from tiny_training import paired_texts

pytest.importorskip("sentence_transformers", reason="needs the neural extra")

import torch

from rag_sourcebias.core.tags import training_pairs

positions, pooled = load("debias", "positions", "pooled")


def attended(strength: float, lengths: list[int]) -> torch.Tensor:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, len(lengths), 2, 300, 4)
    mask = torch.arange(300) < torch.tensor(lengths)[:, None, None, None]
    mask = mask.expand(-1, 1, 300, -1)
    module = SimpleNamespace(calibrated=strength, training=False, is_causal=False)
    found, _ = positions.attend(module, query, key, value, mask, scaling=0.5, dropout=0.0)
    scores = (query @ key.transpose(-1, -2) * 0.5).masked_fill(~mask, -torch.inf)
    attended.plain = (scores.softmax(-1) @ value).transpose(1, 2)
    share = scores.softmax(-1)
    for row, length in enumerate(lengths):
        n = -(-length // positions.BASKET)
        for start in range(0, length, positions.BASKET):
            basket = share[row, :, :, start : start + positions.BASKET]
            basket *= 1 / n / basket.sum(-1, keepdim=True)
    attended.even = (share @ value).transpose(1, 2)
    return found


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_each_basket_gets_the_same_attention(strength: float) -> None:
    found = attended(strength, [300, 129, 256])
    wanted = strength * attended.even + (1 - strength) * attended.plain
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert bool((attended.even - attended.plain).abs().max() > 0.01)


def test_a_text_of_one_basket_stays() -> None:
    found = attended(1.0, [128, 5, 300])
    torch.testing.assert_close(found[:2], attended.plain[:2], rtol=1e-4, atol=1e-5)
    assert bool((found[2] - attended.plain[2]).abs().max() > 0.01)


def test_pairs_of_several_rewriters_are_pooled() -> None:
    data = paired_texts(40, sources=("human", "llm:x", "llm:y"))
    left_out = set(training_pairs(data, source="llm:x").twins.pair_ids[:10])
    both = {("a", "llm:x"): (data, left_out), ("a", "llm:y"): (data, set())}
    found = training_pairs(pooled.pooled(both, 25))
    of = [pair_id.split("/")[1] for pair_id in found.twins.pair_ids]
    assert of.count("llm:x") == of.count("llm:y") == 25
    assert not left_out & {p.split("/")[2] for p in found.twins.pair_ids if "llm:x" in p}
    texts = dict(zip(data.corpus.doc_ids, data.corpus.texts, strict=True))
    assert set(found.twins.source_texts) <= set(texts.values()) - set(found.twins.baseline_texts)
    assert len(set(found.query_ids)) < len(found.query_ids)  # one id through the rewriters
    assert np.array_equal(np.sort(np.unique(found.rows)), np.arange(50))
