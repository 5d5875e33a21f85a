"""Debiased losses of encoders against the equations written out, and against the base losses."""

import math

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from static_model import static

from rag_sourcebias.core.errors import DataError, TrainingDivergedError
from rag_sourcebias.neural.hinge import TwinHinge
from rag_sourcebias.neural.losses import DebiasedRankingLoss

pytestmark = pytest.mark.frameworks

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
QUERIES = ["alpha beta", "gamma", "delta epsilon", "zeta eta"]
HUMAN = ["alpha gamma", "gamma delta iota", "epsilon", "eta kappa zeta"]
LLM = ["alpha beta kappa", "gamma theta", "delta epsilon iota", "zeta"]
NEGATIVES = ["theta", "kappa alpha", "iota beta", "gamma"]
NAMED = {"reduction": "sum", "scale": 1.0}


def batch(model: SentenceTransformer, *columns: list[str]) -> list[dict[str, torch.Tensor]]:
    return [model.preprocess(list(column)) for column in columns]


def gradients(model: torch.nn.Module, value: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    value.backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def total(components: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(components.values())).sum()


def number(value: torch.Tensor) -> float:
    return value.detach().item()


def cosine(left: np.ndarray, right: np.ndarray) -> float:
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


# -- the hinge


def test_equation_1_and_2_by_hand() -> None:
    """Four pairs, α = .5: gaps .3, −.2, 0 and .1 of unit vectors in the plane."""
    query = torch.tensor([[1.0, 0.0]] * 4)
    human = torch.tensor([[0.5, 0.0], [0.6, 1.0], [0.4, 2.0], [0.2, 0.0]])
    llm = torch.tensor([[0.8, 3.0], [0.4, 0.0], [0.4, 9.0], [0.3, 0.0]])
    hinge = TwinHinge(weight=0.5, reduction="sum", scale=1.0, similarity="dot")
    gaps = hinge.gaps(query, human, llm)
    assert gaps.tolist() == pytest.approx([0.3, -0.2, 0.0, 0.1])
    assert hinge.hinges(gaps).tolist() == pytest.approx([0.3, 0.0, 0.0, 0.1])
    assert number(hinge.component(hinge.hinges(gaps))) == pytest.approx(0.5 * 0.4)
    official = TwinHinge(weight=0.1, reduction="mean", scale=20.0, similarity="dot")
    assert number(official.component(official.hinges(gaps))) == pytest.approx(0.1 * 20 * 0.4 / 4)
    reference = torch.nn.MarginRankingLoss(margin=0.0)
    scores = 20 * (query * human).sum(1), 20 * (query * llm).sum(1)
    assert number(official.component(official.hinges(gaps))) == pytest.approx(
        0.1 * number(reference(*scores, torch.ones(4)))
    )


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradient_of_the_hinge(similarity: str, reduction: str) -> None:
    generator = torch.Generator().manual_seed(5)
    vectors = [
        torch.randn(6, 5, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(3)
    ]
    hinge = TwinHinge(weight=0.7, reduction=reduction, scale=3.0, similarity=similarity)

    def value(*given: torch.Tensor) -> torch.Tensor:
        return hinge.component(hinge.hinges(hinge.gaps(*given)))

    assert number(value(*vectors)) > 0
    assert torch.autograd.gradcheck(value, vectors)


def test_gaps_leave_half_precision() -> None:
    generator = torch.Generator().manual_seed(6)
    vectors = [torch.randn(9, 16, generator=generator).bfloat16() for _ in range(3)]
    hinge = TwinHinge(weight=1, reduction="sum", scale=1)
    assert hinge.gaps(*vectors).dtype == torch.float32
    assert torch.equal(hinge.gaps(*vectors), hinge.gaps(*(v.float() for v in vectors)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight": -0.1}, r"debias_weight is -0.1; accepted is a finite number at least 0"),
        ({"weight": math.nan}, "debias_weight is nan"),
        ({"scale": 0.0}, r"scale is 0.0; accepted is a finite number above 0"),
        ({"reduction": "none"}, "reduction 'none' is not one of sum, mean"),
        ({"similarity": "l2"}, "similarity 'l2' is not one of cosine, dot"),
    ],
)
def test_bad_settings_of_the_hinge(settings: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        TwinHinge(**{"weight": 1.0, "reduction": "sum", "scale": 1.0, **settings})


# -- the loss


def test_components_against_numpy() -> None:
    model = static(WORDS, 8)
    query, human, llm = (model.encode(column) for column in (QUERIES, HUMAN, LLM))
    gaps = [cosine(q, g) - cosine(q, h) for q, h, g in zip(query, human, llm, strict=True)]
    assert min(gaps) < 0 < max(gaps)
    scores = 20 * np.array([[cosine(q, h) for h in human] for q in query])
    rank = float(np.mean(np.log(np.exp(scores).sum(1)) - np.diag(scores)))
    loss = DebiasedRankingLoss(
        losses.MultipleNegativesRankingLoss(model),
        TwinHinge(weight=0.3, reduction="sum", scale=20.0),
    )
    found = loss(batch(model, QUERIES, HUMAN, LLM), None)
    assert list(found) == ["rank", "debias"]
    assert number(found["rank"]) == pytest.approx(rank, rel=1e-5)
    hinges = np.maximum(0, 20 * np.array(gaps))
    assert number(found["debias"]) == pytest.approx(0.3 * hinges.sum(), rel=1e-5)
    seen = loss.statistics
    assert (seen.steps, seen.pairs) == (1, 4)
    assert seen.hinge_share == np.mean(np.array(gaps) > 0)
    assert seen.mean_rank_loss == pytest.approx(rank, rel=1e-5)
    assert seen.mean_debias_loss == pytest.approx(0.3 * hinges.sum(), rel=1e-5)


@pytest.mark.parametrize("rank_columns", ["human", "both", "all"])
def test_what_the_base_loss_sees(rank_columns: str) -> None:
    model = static(WORDS, 8)
    base = losses.MultipleNegativesRankingLoss(model)
    loss = DebiasedRankingLoss(base, TwinHinge(weight=1.0, **NAMED), rank_columns=rank_columns)
    human = base(batch(model, QUERIES, HUMAN, NEGATIVES), None)
    llm = base(batch(model, QUERIES, LLM, NEGATIVES), None)
    wanted = {
        "human": human,
        "both": human + llm,
        "all": base(batch(model, QUERIES, HUMAN, LLM, NEGATIVES), None),
    }
    assert len({round(number(value), 4) for value in wanted.values()}) == 3
    found = loss(batch(model, QUERIES, HUMAN, LLM, NEGATIVES), None)
    assert number(found["rank"]) == pytest.approx(number(wanted[rank_columns]), rel=1e-5)


class TestOfBertSize:
    """A tiny BERT, with dropout."""

    @pytest.fixture
    def model(self, encoder_folder) -> SentenceTransformer:
        return SentenceTransformer(str(encoder_folder), device="cpu")

    def test_weight_0_is_the_base_loss_to_the_bit(self, model: SentenceTransformer) -> None:
        """With dropout: random numbers are drawn in the same order too."""
        model.train()
        base = losses.MultipleNegativesRankingLoss(model)
        loss = DebiasedRankingLoss(base, TwinHinge(weight=0.0, reduction="mean", scale=20.0))
        torch.manual_seed(3)
        value = base(batch(model, QUERIES, HUMAN, NEGATIVES), None)
        wanted = gradients(model, value)
        drawn = torch.rand(1)
        torch.manual_seed(3)
        components = loss(batch(model, QUERIES, HUMAN, LLM, NEGATIVES), None)
        assert torch.equal(total(components), value)
        found = gradients(model, total(components))
        assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))
        assert torch.equal(torch.rand(1), drawn)
        assert (loss.statistics.steps, loss.statistics.pairs) == (1, 0)
        assert loss.statistics.hinge_share is None

    def test_columns_are_embedded_once(self, model: SentenceTransformer) -> None:
        calls: list[int] = []
        model.register_forward_hook(lambda *_: calls.append(1))
        base = losses.MultipleNegativesRankingLoss(model)
        base(batch(model, QUERIES, HUMAN, LLM, NEGATIVES), None)
        wanted = len(calls)
        loss = DebiasedRankingLoss(base, TwinHinge(weight=1.0, **NAMED))
        loss(batch(model, QUERIES, HUMAN, LLM, NEGATIVES), None)
        assert len(calls) == 2 * wanted == 4  # the query, and all documents together


def test_bad_input_says_what_is_accepted() -> None:
    model = static(WORDS, 8)
    base = losses.MultipleNegativesRankingLoss(model)
    with pytest.raises(DataError, match="rank_columns 'llm' is not one of human, both, all"):
        DebiasedRankingLoss(base, TwinHinge(weight=1.0, **NAMED), rank_columns="llm")


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_loss_that_is_not_finite_names_the_step(weight: float) -> None:
    model = static(WORDS, 8)
    loss = DebiasedRankingLoss(
        losses.MultipleNegativesRankingLoss(model), TwinHinge(weight=weight, **NAMED)
    )
    features = batch(model, QUERIES, HUMAN, LLM)
    loss(features, None)
    with torch.no_grad():
        loss(features, None)
        next(model.parameters())[1] = math.nan
    with pytest.raises(TrainingDivergedError, match=r"step 2 \(rank nan") as caught:
        loss(features, None)
    assert caught.value.step == 2
    assert loss.statistics.steps == 1
    with torch.no_grad(), pytest.raises(TrainingDivergedError, match="outside of training"):
        loss(features, None)
