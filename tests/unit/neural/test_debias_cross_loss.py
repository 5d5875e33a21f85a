"""Debiased losses of cross-encoders against their parts, and against the base losses."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder import losses

from rag_sourcebias.core.errors import DataError, TrainingDivergedError
from rag_sourcebias.neural.losses import DebiasedCrossEncoderLoss

pytestmark = pytest.mark.frameworks

QUERIES = ["alpha beta", "gamma", "delta epsilon", "zeta eta"]
HUMAN = ["alpha gamma", "gamma delta iota", "epsilon", "eta kappa zeta"]
LLM = ["alpha beta kappa", "gamma theta", "delta epsilon iota", "zeta"]
NEGATIVES = ["theta", "kappa alpha", "iota beta", "gamma"]
COLUMNS = [QUERIES, HUMAN, LLM, NEGATIVES]
LABELS = torch.tensor([0.3, -0.2, 1.0, 0.4])


@pytest.fixture
def model(cross_encoder_folder) -> CrossEncoder:
    return CrossEncoder(str(cross_encoder_folder), device="cpu").eval()


def scores(model: CrossEncoder, texts: list[str]) -> np.ndarray:
    pairs = list(zip(QUERIES, texts, strict=True))
    return model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)


def total(components: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(components.values())).sum()


def gradients(model: torch.nn.Module, value: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    value.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def counted(model: CrossEncoder) -> list[int]:
    """Pairs of every forward pass from now on."""
    sizes: list[int] = []
    model.register_forward_hook(lambda _module, _input, out: sizes.append(len(out["scores"])))
    return sizes


@pytest.mark.parametrize("rank_columns", ["human", "both", "all"])
def test_components_against_scores_of_the_model(model: CrossEncoder, rank_columns: str) -> None:
    base = losses.MarginMSELoss(model)
    labels = LABELS if rank_columns != "all" else torch.stack([LABELS, -LABELS], dim=1)
    human, llm, negative = (scores(model, texts) for texts in (HUMAN, LLM, NEGATIVES))
    label = LABELS.numpy()
    errors = {
        "human": np.mean((human - negative - label) ** 2),
        "all": np.mean([(human - llm - label) ** 2, (human - negative + label) ** 2]),
    }
    errors["both"] = errors["human"] + np.mean((llm - negative - label) ** 2)
    loss = DebiasedCrossEncoderLoss(
        base, 0.5, reduction="mean", scale=2.0, rank_columns=rank_columns
    )
    found = loss(COLUMNS, labels)
    hinges = np.maximum(0, 2 * (llm - human))
    assert 0 < (hinges > 0).mean() < 1
    assert found["rank"].item() == pytest.approx(errors[rank_columns], rel=1e-4)
    assert found["debias"].item() == pytest.approx(0.5 * hinges.mean(), rel=1e-4)
    seen = loss.statistics
    assert (seen.steps, seen.pairs) == (1, 4)
    assert seen.hinge_share == (hinges > 0).mean()
    assert seen.mean_gap == pytest.approx((llm - human).mean(), rel=1e-3)
    assert seen.debias_to_rank == pytest.approx(
        0.5 * hinges.mean() / errors[rank_columns], rel=1e-3
    )


@pytest.mark.parametrize(("rank_columns", "extra"), [("human", [4]), ("both", []), ("all", [])])
def test_no_pair_is_scored_twice(model: CrossEncoder, rank_columns: str, extra: list[int]) -> None:
    loss = DebiasedCrossEncoderLoss(
        losses.MultipleNegativesRankingLoss(model, num_negatives=2),
        1.0,
        reduction="sum",
        scale=1.0,
        rank_columns=rank_columns,
    )
    sizes = counted(model)
    # a base loss that samples no pair of a query and its LLM document as an in-batch negative
    loss(COLUMNS, None)
    calls = {"human": 4, "both": 8, "all": 5}[rank_columns]
    assert sizes == [4] * calls + extra
    assert "preprocess" not in vars(model)
    assert len(model._forward_hooks) == 1


def test_gradient_is_the_sum_of_both_parts(model: CrossEncoder) -> None:
    base = losses.MarginMSELoss(model)
    loss = DebiasedCrossEncoderLoss(base, 0.7, reduction="sum", scale=3.0, target="parity")
    found = gradients(model, total(loss(COLUMNS, LABELS)))
    rank = base([QUERIES, HUMAN, NEGATIVES], LABELS)

    def graph(texts: list[str]) -> torch.Tensor:
        features = model.preprocess(list(zip(QUERIES, texts, strict=True)))
        return model(features)["scores"].view(-1)

    wanted = gradients(model, rank + 0.7 * (3 * (graph(LLM) - graph(HUMAN))).abs().sum())
    assert len(found) == len(wanted) > 10
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-3, rtol=1e-3)


def test_a_base_loss_that_caches_gradients(model: CrossEncoder) -> None:
    settings = {"reduction": "sum", "scale": 1.0}
    plain = DebiasedCrossEncoderLoss(
        losses.MultipleNegativesRankingLoss(model, num_negatives=None), 0.7, **settings
    )
    wanted = plain(COLUMNS, None)
    wanted_gradients = gradients(model, total(wanted))
    cached = DebiasedCrossEncoderLoss(
        losses.CachedMultipleNegativesRankingLoss(model, num_negatives=None, mini_batch_size=3),
        0.7,
        **settings,
    )
    found = cached(COLUMNS, None)
    for name in ("rank", "debias"):
        assert found[name].item() == pytest.approx(wanted[name].item(), rel=1e-4)
    for one, other in zip(gradients(model, total(found)), wanted_gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-3, rtol=1e-3)
    with torch.no_grad():
        evaluated = cached(COLUMNS, None)
    assert evaluated["debias"].item() == pytest.approx(wanted["debias"].item(), rel=1e-4)
    assert cached.statistics.steps == 1


def test_weight_0_is_the_base_loss_to_the_bit(model: CrossEncoder) -> None:
    """With dropout and sampled negatives: random numbers are drawn in the same order too."""
    model.train()
    base = losses.MultipleNegativesRankingLoss(model, num_negatives=1)
    loss = DebiasedCrossEncoderLoss(base, 0.0, reduction="mean", scale=20.0)
    torch.manual_seed(3)
    value = base([QUERIES, HUMAN, NEGATIVES], None)
    wanted = gradients(model, value)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    components = loss(COLUMNS, None)
    assert list(components) == ["rank"]
    assert torch.equal(total(components), value)
    found = gradients(model, total(components))
    assert torch.equal(torch.rand(1), drawn)
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


def test_bad_input_says_what_is_accepted(model: CrossEncoder, encoder_folder) -> None:
    from sentence_transformers.sentence_transformer.losses import MarginMSELoss

    settings = {"reduction": "sum", "scale": 1.0}
    encoder = SentenceTransformer(str(encoder_folder), device="cpu")
    with pytest.raises(DataError, match="SentenceTransformer as its model; accepted is a Cross"):
        DebiasedCrossEncoderLoss(MarginMSELoss(encoder), 1.0, **settings)
    loss = DebiasedCrossEncoderLoss(losses.MarginMSELoss(model), 1.0, **settings)
    with pytest.raises(DataError, match="got 2 columns; accepted are query, human document"):
        loss(COLUMNS[:2], LABELS)
    assert loss.get_config_dict()["loss"] == "MarginMSELoss"


def test_a_loss_that_is_not_finite_names_the_step(model: CrossEncoder) -> None:
    base = losses.MarginMSELoss(model)
    loss = DebiasedCrossEncoderLoss(base, 1.0, reduction="sum", scale=1.0)
    loss(COLUMNS, LABELS)
    with pytest.raises(TrainingDivergedError, match=r"step 2 \(rank nan") as caught:
        loss(COLUMNS, LABELS * math.nan)
    assert caught.value.step == 2


def test_training_prefers_human_texts(model: CrossEncoder, tmp_path) -> None:
    from datasets import Dataset
    from sentence_transformers import CrossEncoderTrainer, CrossEncoderTrainingArguments

    before = (scores(model, HUMAN) > scores(model, LLM)).mean()
    loss = DebiasedCrossEncoderLoss(
        losses.MultipleNegativesRankingLoss(model, num_negatives=1),
        1.0,
        reduction="sum",
        scale=1.0,
        margin=1.0,
    )
    trainer = CrossEncoderTrainer(
        model=model,
        args=CrossEncoderTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=60,
            per_device_train_batch_size=4,
            learning_rate=5e-4,
            logging_steps=10,
            save_strategy="no",
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            seed=4,
            dataloader_pin_memory=False,
        ),
        train_dataset=Dataset.from_dict({"query": QUERIES, "human": HUMAN, "llm": LLM}),
        loss=loss,
    )
    trainer.train()
    assert before < 1
    assert (scores(model.eval(), HUMAN) > scores(model, LLM)).mean() == 1
    logs = [entry for entry in trainer.state.log_history if "debias" in entry]
    assert logs[0]["debias"] > logs[-1]["debias"]
    assert loss.statistics.steps == 60
