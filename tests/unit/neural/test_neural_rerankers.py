"""Cross-encoders and query likelihood against computations written out."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Reranker
from rag_sourcebias.neural import loading
from rag_sourcebias.neural.causal import QueryLikelihoodReranker
from rag_sourcebias.neural.loading import CrossEncoderReranker, fast_dtype

pytestmark = pytest.mark.frameworks

PASSAGES = ["alpha beta gamma delta", "mu lambda kappa iota theta eta zeta", "epsilon"]
QUERIES = ["alpha mu", "beta", "zeta eta theta iota kappa", "gamma gamma delta"]
PAIRS = [(query, passage) for query in QUERIES for passage in PASSAGES]


def test_cross_encoder_scores_are_raw_logits_in_order(cross_encoder_folder: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reranker = CrossEncoderReranker(cross_encoder_folder, batch_size=4)
    assert isinstance(reranker, Reranker)
    assert reranker.name == "tiny-cross"
    tokenizer = AutoTokenizer.from_pretrained(cross_encoder_folder)
    model = AutoModelForSequenceClassification.from_pretrained(cross_encoder_folder).eval()
    with torch.inference_mode():
        wanted = [
            float(model(**tokenizer(q, t, return_tensors="pt")).logits[0, 0]) for q, t in PAIRS
        ]
    assert np.std(wanted) > 0.05
    assert reranker.score(PAIRS) == pytest.approx(wanted, abs=1e-4)
    assert reranker.score([]).shape == (0,)


def test_cross_encoder_settings_and_fingerprint(cross_encoder_folder: Path) -> None:
    short = CrossEncoderReranker(cross_encoder_folder, max_length=5)
    whole = CrossEncoderReranker(cross_encoder_folder)
    assert "5" in short.settings["maximum length"]
    assert short.fingerprint != whole.fingerprint
    assert not np.allclose(short.score(PAIRS[:3]), whole.score(PAIRS[:3]), atol=1e-3)
    with pytest.raises(DataError, match="nowhere"):
        CrossEncoderReranker("./nowhere")


def literal_likelihood(folder: Path, query: str, passage: str, max_length: int = 400) -> float:
    """Mean log-probability of the query's tokens, one pair in one plain forward pass."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    words = passage.split()[:max_length]
    prompt = ["Passage:", *words, "Please write a question based on this passage. Question:"]
    before = tokenizer(" ".join(prompt), add_special_tokens=False).input_ids
    target = tokenizer(query, add_special_tokens=False).input_ids
    with torch.inference_mode():
        logits = model(torch.tensor([before + target])).logits[0].log_softmax(-1)
    steps = [float(logits[len(before) - 1 + i, token]) for i, token in enumerate(target)]
    return sum(steps) / len(steps)


def test_queries_that_share_a_passage_score_as_if_alone(
    causal_folder: Path, tmp_path: Path
) -> None:
    reranker = QueryLikelihoodReranker(causal_folder, dtype="float32", cache=tmp_path)
    assert isinstance(reranker, Reranker)
    assert reranker.name == "ql:tiny-llama"
    wanted = [literal_likelihood(causal_folder, query, passage) for query, passage in PAIRS]
    assert np.std(wanted) > 0.1
    together = reranker.score(PAIRS)
    assert together == pytest.approx(wanted, abs=1e-4)
    alone = np.concatenate([reranker.score([pair]) for pair in PAIRS])
    assert together == pytest.approx(alone, abs=1e-4)
    assert reranker.score(PAIRS[::-1]) == pytest.approx(together[::-1], abs=1e-5)
    assert reranker.score([]).shape == (0,)


def test_long_passages_are_cut(causal_folder: Path, tmp_path: Path) -> None:
    reranker = QueryLikelihoodReranker(causal_folder, dtype="float32", max_length=3, cache=tmp_path)
    wanted = [literal_likelihood(causal_folder, q, t, max_length=3) for q, t in PAIRS]
    assert reranker.score(PAIRS) == pytest.approx(wanted, abs=1e-4)
    assert "3" in reranker.settings["maximum length"]


def test_query_likelihood_fingerprint(causal_folder: Path, tmp_path: Path) -> None:
    options = [{"dtype": "bfloat16"}, {"dtype": "float32"}, {"dtype": "float32", "max_length": 7}]
    marks = {
        QueryLikelihoodReranker(causal_folder, cache=tmp_path, **option).fingerprint
        for option in options
    }
    assert len(marks) == 3


AVX2 = "processor\t: 0\nflags\t\t: fpu sse4_2 avx2 fma f16c avx512f avx512_bf16_no\n"


@pytest.mark.parametrize(
    ("cpuinfo", "dtype"),
    [
        (AVX2, "float32"),
        (AVX2.replace("fma", "fma avx512_bf16"), "bfloat16"),
        (AVX2.replace("fma", "amx_tile amx_bf16"), "bfloat16"),
        ("processor\t: 0\nFeatures\t: fp asimd i8mm bf16\n", "bfloat16"),
        ("processor\t: 0\nFeatures\t: fp asimd\n", "float32"),
        (None, "float32"),  # no such file: not Linux
    ],
)
def test_the_processor_chooses_the_dtype(
    cpuinfo: str | None, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    file = tmp_path / "cpuinfo"
    if cpuinfo is not None:
        file.write_text(cpuinfo)
    monkeypatch.setattr(loading, "_CPUINFO", file)
    assert fast_dtype("cpu") == dtype
    assert fast_dtype("cuda:0") == "bfloat16"
