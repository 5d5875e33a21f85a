"""Log-perplexities, also after another text, against one token at a time."""

from functools import cache
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
    """Pseudo-log-perplexity by definition: a forward pass of its own for every token."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
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
    plain, tokenizer = loaded(causal_folder)
    expected = [one_token_at_a_time(plain, [], tokenizer(t).input_ids, from_=1) for t in TEXTS]
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


# Perplexity of a text after another one, against one token at a time


PREFIXES = [
    "alpha beta gamma delta epsilon .",
    "zeta eta",
    "",
    "please write a question based on this passage :",
    "mu",
]
AFTER = ["alpha gamma delta .", "theta iota kappa lambda mu alpha", "beta beta", "zeta", ""]


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
        PREFIXES, AFTER, progress=lambda done, of: seen.append((done, of))
    )
    expected = [
        one_token_at_a_time(model, tokenizer(a).input_ids, tokenizer(b).input_ids, from_=1)
        for a, b in zip(PREFIXES, AFTER, strict=True)
    ]
    np.testing.assert_allclose(found.values, expected, atol=1e-4)
    assert found.tokens.tolist() == [3, 5, 1, 0, 0]
    assert (found.parts > 1).sum() == found.n_prefix_cut == 0
    assert seen[-1] == (3, 3)


def test_without_a_prefix_it_is_the_plain_perplexity(causal_folder) -> None:
    model = tiny(causal_folder)
    plain = model.log_perplexities(AFTER)
    found = model.conditional([""] * len(AFTER), AFTER)
    np.testing.assert_allclose(found.values, plain.values, atol=1e-5)
    np.testing.assert_array_equal(found.tokens, plain.tokens)


@pytest.mark.parametrize("tokens_per_pass", [1, 12, 100_000])
def test_how_texts_are_batched_changes_nothing(causal_folder, tokens_per_pass) -> None:
    found = tiny(causal_folder, tokens_per_pass=tokens_per_pass).conditional(PREFIXES, AFTER)
    usual = tiny(causal_folder).conditional(PREFIXES, AFTER)
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
