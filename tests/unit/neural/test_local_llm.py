"""The local completer against plain transformers."""

import pytest

pytest.importorskip("sentence_transformers")

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rag_sourcebias.core.completions import CompletionError
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.neural.causal import LocalCompleter

pytestmark = pytest.mark.frameworks

TEXTS = {"query": "what is wet", "passage": "Water is wet. naïve “text”"}
TEXTS["document"] = TEXTS["passage"]


def plain_logprob(model, tokenizer, prompt: str, label: str) -> float:
    """Sum the label's tokens in one whole sequence, the label's length counted by tokenizing."""
    ids = tokenizer(prompt + label, add_special_tokens=False, return_tensors="pt").input_ids
    n_label = ids.shape[1] - len(tokenizer(prompt, add_special_tokens=False).input_ids)
    with torch.inference_mode():
        table = model(ids).logits[0, :-1].double().log_softmax(-1)
    return float(table.gather(1, ids[0, 1:, None])[-n_label:].sum())


def test_scores_equal_plain_transformers_on_a_tiny_model(causal_folder) -> None:
    completer = LocalCompleter(causal_folder)
    assert isinstance(completer, Completer)
    model = AutoModelForCausalLM.from_pretrained(causal_folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(causal_folder)
    prompt, labels = "alpha beta gamma :", (" mu", " kappa iota", " zeta zeta mu")
    found = completer.label_logprobs(prompt, labels)
    expected = [plain_logprob(model, tokenizer, prompt, label) for label in labels]
    assert found.logprobs == pytest.approx(expected, abs=1e-4)
    assert found.n_bounded == 0
    assert found.prompt_tokens == 4


def test_generation_is_repeatable_and_leaves_the_global_generator_alone(causal_folder) -> None:
    completer = LocalCompleter(causal_folder)
    torch.manual_seed(5)
    before = torch.get_rng_state()

    def write(seed: int, temperature: float = 1.0):
        return completer.complete("alpha beta", max_tokens=12, temperature=temperature, seed=seed)

    first = write(1)
    assert write(1) == first
    assert write(2).text != first.text
    assert write(1, 0.0) == write(2, 0.0)
    assert first.completion_tokens == 12
    assert first.finish_reason == "length"
    assert torch.equal(torch.get_rng_state(), before)


def test_prompts_that_do_not_fit_fail_alone(causal_folder) -> None:
    completer = LocalCompleter(causal_folder)
    long = "alpha " * 300
    with pytest.raises(CompletionError, match=r"tiny-llama reads 256; cut the text") as caught:
        completer.label_logprobs(long, (" mu", " iota"))
    assert caught.value.reason == "rejected"
    with pytest.raises(CompletionError, match="have 260 tokens"):
        completer.complete("alpha " * 200, max_tokens=60, temperature=0.0, seed=0)
    with pytest.raises(CompletionError, match="the prompt is empty"):
        completer.complete("", max_tokens=1, temperature=0.0, seed=0)


def test_settings_and_fingerprint(causal_folder) -> None:
    plain, other = LocalCompleter(causal_folder), LocalCompleter(causal_folder, dtype="bfloat16")
    assert plain.name == "local:tiny-llama"
    assert plain.fingerprint != other.fingerprint
    assert plain.settings["dtype"] == "float32"
    with pytest.raises(DataError, match="has no chat template; use chat=False"):
        LocalCompleter(causal_folder, chat=True).label_logprobs("alpha", ("mu", "iota"))
    with pytest.raises(DataError, match="there is no model folder"):
        LocalCompleter("./nowhere")
    with pytest.raises(DataError, match="dtype 'int4' is not one of"):
        LocalCompleter(causal_folder, dtype="int4")
