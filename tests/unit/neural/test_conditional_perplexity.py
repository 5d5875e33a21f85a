"""Perplexity of a text after another one, against one token at a time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.neural.perplexity import CausalPerplexity

pytestmark = pytest.mark.frameworks

PREFIXES = [
    "alpha beta gamma delta epsilon .",
    "zeta eta",
    "",
    "please write a question based on this passage :",
    "mu",
]
TEXTS = ["alpha gamma delta .", "theta iota kappa lambda mu alpha", "beta beta", "zeta", ""]


def one_token_at_a_time(model, before: list[int], tokens: list[int], *, from_: int) -> float:
    """Mean −log P of tokens from place ``from_`` on, a forward pass of its own for each."""
    import torch

    losses = []
    for place in range(from_, len(tokens)):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*before, *tokens[:place]]])).logits[0, -1]
        losses.append(-float(logits.float().log_softmax(-1)[tokens[place]]))
    return float(np.mean(losses)) if losses else np.nan


@cache
def loaded(folder):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(
        folder
    )


def tiny(folder, **settings) -> CausalPerplexity:
    return CausalPerplexity(folder, dtype="float32", device="cpu", **settings)


def test_it_equals_one_token_at_a_time(causal_folder) -> None:
    model, tokenizer = loaded(causal_folder)
    seen = []
    found = tiny(causal_folder).conditional(
        PREFIXES, TEXTS, progress=lambda done, of: seen.append((done, of))
    )
    expected = [
        one_token_at_a_time(model, tokenizer(a).input_ids, tokenizer(b).input_ids, from_=1)
        for a, b in zip(PREFIXES, TEXTS, strict=True)
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-4)
    assert found.tokens.tolist() == [3, 5, 1, 0, 0]
    assert (found.parts > 1).sum() == found.n_prefix_cut == 0
    assert seen[-1] == (3, 3)


def test_without_a_prefix_it_is_the_plain_perplexity(causal_folder) -> None:
    model = tiny(causal_folder)
    plain = model.log_perplexities(TEXTS)
    found = model.conditional([""] * len(TEXTS), TEXTS)
    np.testing.assert_allclose(found.values, plain.values, atol=1e-5)
    np.testing.assert_array_equal(found.tokens, plain.tokens)


@pytest.mark.parametrize("tokens_per_pass", [1, 12, 100_000])
def test_how_texts_are_batched_changes_nothing(causal_folder, tokens_per_pass) -> None:
    found = tiny(causal_folder, tokens_per_pass=tokens_per_pass).conditional(PREFIXES, TEXTS)
    usual = tiny(causal_folder).conditional(PREFIXES, TEXTS)
    np.testing.assert_allclose(found.values, usual.values, atol=1e-5)


def test_a_long_prefix_is_cut_at_its_end_and_counted(causal_folder) -> None:
    model, tokenizer = loaded(causal_folder)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
    prefix, text = " ".join(words * 3), "mu mu kappa lambda"  # 24 and 4 tokens
    found = tiny(causal_folder, window=12).conditional([prefix, "mu"], [text, text])
    assert found.prefix_cut.tolist() == [16, 0]  # 12 − 4 are read
    assert (found.n_prefix_cut, (found.parts > 1).sum()) == (1, 0)
    before = tokenizer(" ".join(words)).input_ids
    expected = one_token_at_a_time(model, before, tokenizer(text).input_ids, from_=1)
    assert found.values[0] == pytest.approx(expected, abs=1e-4)


def test_a_long_text_is_read_in_windows_after_the_same_prefix(causal_folder) -> None:
    model, tokenizer = loaded(causal_folder)
    text = "alpha beta gamma delta epsilon zeta eta theta"
    found = tiny(causal_folder, window=8).conditional(["kappa lambda mu mu iota"], [text])
    assert found.prefix_cut.tolist() == [1]  # half of the window is left to the text
    assert (found.parts.tolist(), found.tokens.tolist()) == ([3], [7])
    before, ids = tokenizer("kappa lambda mu mu").input_ids, tokenizer(text).input_ids
    parts = [(0, 1, 4), (2, 4, 6), (4, 6, 8)]
    losses = [
        one_token_at_a_time(model, before, ids[first:end], from_=middle - first)
        for first, middle, end in parts
    ]
    assert found.values[0] == pytest.approx(np.average(losses, weights=[3, 2, 2]), abs=1e-4)


def test_what_cannot_be_read(causal_folder) -> None:
    model = tiny(causal_folder, window=2)
    with pytest.raises(DataError, match=r"a window of 2 tokens has no room .* at least 3"):
        model.conditional(["alpha beta gamma"], ["mu mu mu"])
    with pytest.raises(DataError, match="tokens_per_pass must be at least 1"):
        tiny(causal_folder, tokens_per_pass=0)
