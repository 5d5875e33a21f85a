"""Log-perplexities against the plain definition, one token at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.neural.perplexity import (
    CausalPerplexity,
    MaskedPerplexity,
    MaskedScorer,
    even_chunks,
    sliding_windows,
)

pytestmark = pytest.mark.frameworks

TEXTS = [
    "alpha beta gamma delta epsilon .",
    "please write a question based on this passage : kappa lambda mu unknownword ?",
    "",
    "theta",
    "   ",
    "zeta eta theta iota kappa",
]


@pytest.fixture(scope="session")
def masked_folder(encoder_folder, tmp_path_factory) -> Path:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    torch.manual_seed(4)
    tokenizer = AutoTokenizer.from_pretrained(encoder_folder)
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    folder = tmp_path_factory.mktemp("masked") / "tiny-bert"
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def one_mask_at_a_time(folder: Path, texts: list[str]) -> np.ndarray:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    return naive_loop(model, AutoTokenizer.from_pretrained(folder), texts)


def naive_loop(model, tokenizer, texts: list[str]) -> np.ndarray:
    """Pseudo-log-perplexity by definition: a forward pass of its own for every token."""
    import torch

    values = []
    for text in texts:
        ids = tokenizer(text, return_tensors="pt").input_ids
        losses = []
        for place in range(1, ids.shape[1] - 1):
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_token_id
            with torch.no_grad():
                logits = model(input_ids=masked).logits
            losses.append(-float(logits[0, place].log_softmax(-1)[ids[0, place]]))
        values.append(np.mean(losses) if losses else np.nan)
    return np.array(values)


def one_token_at_a_time(folder: Path, text: str) -> float:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer(text, add_special_tokens=False).input_ids
    losses = []
    for place in range(1, len(ids)):
        with torch.no_grad():
            last = model(input_ids=torch.tensor([ids[:place]])).logits[0, -1]
        losses.append(-float(last.log_softmax(-1)[ids[place]]))
    return float(np.mean(losses)) if losses else np.nan


def test_masked_equals_one_mask_at_a_time(masked_folder) -> None:
    found = MaskedPerplexity(masked_folder, device="cpu").log_perplexities(TEXTS)
    np.testing.assert_allclose(found.values, one_mask_at_a_time(masked_folder, TEXTS), atol=1e-4)
    assert found.tokens.tolist() == [6, 14, 0, 1, 0, 5]
    assert np.isnan(found.values).sum() == 2
    assert (found.parts > 1).sum() == 0


@pytest.mark.parametrize("tokens_per_pass", [1, 40, 100_000])
def test_how_copies_are_batched_changes_nothing(masked_folder, tokens_per_pass) -> None:
    model = MaskedPerplexity(masked_folder, tokens_per_pass=tokens_per_pass, device="cpu")
    usual = MaskedPerplexity(masked_folder, device="cpu").log_perplexities(TEXTS).values
    np.testing.assert_allclose(model.log_perplexities(TEXTS).values, usual, atol=1e-4)


def test_the_head_sees_masked_positions_only_and_scores_the_same_as_all(masked_folder) -> None:
    model = MaskedPerplexity(masked_folder, device="cpu")
    scorer: MaskedScorer = model._scorer
    assert scorer.cuts
    short = model.log_perplexities(TEXTS).values
    scorer.cuts = False
    np.testing.assert_allclose(model.log_perplexities(TEXTS).values, short, atol=1e-4)


def test_long_texts_are_read_in_even_chunks(masked_folder) -> None:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]
    text = " ".join(words * 3)  # 21 tokens; windows of 10 hold 8 of them
    model = MaskedPerplexity(masked_folder, window=10, device="cpu")
    found = model.log_perplexities([text])
    parts = [" ".join((words * 3)[a:b]) for a, b in ((0, 7), (7, 14), (14, 21))]
    assert found.parts.tolist() == [3]
    assert (found.parts > 1).sum() == 1
    np.testing.assert_allclose(
        found.values[0], one_mask_at_a_time(masked_folder, parts).mean(), atol=1e-4
    )
    assert "at most 8 tokens" in model.settings["longer texts"]


def test_no_window_is_longer_than_the_model_reads(masked_folder, causal_folder) -> None:
    long = " ".join(["alpha", "beta", "gamma"] * 100)
    masked = MaskedPerplexity(masked_folder, window=512, device="cpu")
    assert masked.log_perplexities([long]).parts.tolist() == [5]  # 64 positions, 2 of them special
    causal = CausalPerplexity(causal_folder, dtype="float32", device="cpu")
    found = causal.log_perplexities([long])  # 256 positions
    assert found.parts.tolist() == [2]
    assert found.tokens.tolist() == [299]


def test_causal_equals_one_token_at_a_time(causal_folder) -> None:
    model = CausalPerplexity(causal_folder, dtype="float32", device="cpu")
    seen = []
    found = model.log_perplexities(TEXTS, progress=lambda done, of: seen.append((done, of)))
    expected = [one_token_at_a_time(causal_folder, text) for text in TEXTS]
    np.testing.assert_allclose(found.values, expected, atol=1e-4)
    assert found.tokens.tolist() == [5, 13, 0, 0, 0, 4]
    assert np.isnan(found.values).sum() == 3
    assert seen[-1] == (6, 6)
    assert model.settings["first token"] == "read, not predicted"


def test_causal_windows_overlap_by_half(causal_folder) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    ids = AutoTokenizer.from_pretrained(causal_folder)(text, return_tensors="pt").input_ids[0]
    model = AutoModelForCausalLM.from_pretrained(causal_folder).eval()
    losses = []
    for first, middle, end in ((0, 1, 4), (2, 4, 6), (4, 6, 8), (6, 8, 10)):
        with torch.no_grad():
            logits = model(input_ids=ids[None, first:end]).logits[0].log_softmax(-1)
        losses += [-float(logits[at - first - 1, ids[at]]) for at in range(middle, end)]
    found = CausalPerplexity(causal_folder, window=4, dtype="float32").log_perplexities([text])
    np.testing.assert_allclose(found.values[0], np.mean(losses), atol=1e-4)
    assert found.parts.tolist() == [4]


def test_a_sentence_encoder_is_refused(encoder_folder, causal_folder) -> None:
    with pytest.raises(DataError, match=r"no trained head for masked tokens \(\d+ weights"):
        MaskedPerplexity(encoder_folder).log_perplexities(["alpha"])
    with pytest.raises(DataError, match="cannot be loaded as a masked language model"):
        MaskedPerplexity(causal_folder).log_perplexities(["alpha"])


def test_a_tokenizer_without_mask_is_refused(masked_folder, tmp_path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model = AutoModelForMaskedLM.from_pretrained(masked_folder)
    tokenizer = AutoTokenizer.from_pretrained(masked_folder)
    tokenizer.mask_token = None
    with pytest.raises(DataError, match="has no mask token"):
        MaskedScorer(model, tokenizer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: CausalPerplexity(f, window=1), "window must be at least 2, got 1"),
        (lambda f: MaskedPerplexity(f, tokens_per_pass=0), "tokens_per_pass must be at least 1"),
        (lambda f: MaskedPerplexity(f, dtype="float16"), "dtype 'float16' is not one of"),
        (lambda f: MaskedPerplexity(f, window=2).log_perplexities([""]), "at least 3"),
    ],
)
def test_settings_are_checked(masked_folder, make, message) -> None:
    with pytest.raises(DataError, match=message):
        make(masked_folder)


def test_no_text_is_no_value(masked_folder, causal_folder) -> None:
    for model in (MaskedPerplexity(masked_folder), CausalPerplexity(causal_folder)):
        assert model.log_perplexities([]).values.shape == (0,)


def test_chunks_are_even_and_hold_everything() -> None:
    for length in range(30):
        chunks = even_chunks(list(range(length)), 7)
        assert [t for chunk in chunks for t in chunk] == list(range(length))
        assert len(chunks) == -(-length // 7)
        assert max(map(len, chunks), default=0) - min(map(len, chunks), default=0) <= 1


@pytest.mark.parametrize("width", [2, 3, 8, 50])
def test_windows_predict_every_token_but_the_first_once(width) -> None:
    for length in range(1, 30):
        windows = list(sliding_windows(length, width))
        predicted = [t for _, middle, end in windows for t in range(middle, end)]
        assert predicted == list(range(1, length))
        assert all(end - first <= width and first < middle for first, middle, end in windows)
