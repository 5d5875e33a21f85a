"""Searching for a debias weight: variants are scored, paired by seed and compared with weight 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from favoured_twins import FAVOUR, LLM, N_TOPICS, FavouringEncoder, Vectors, favoured_dataset

from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.core.errors import DataError, InsufficientDataError, MissingTagsError
from rag_sourcebias.core.tags import twin_texts
from rag_sourcebias.debias.audit import score_debias
from rag_sourcebias.debias.data import DebiasConfig, DebiasPoint
from rag_sourcebias.debias.fit import fit_parity_calibration
from rag_sourcebias.debias.rescore import RescoredSpec
from rag_sourcebias.debias.search import (
    DebiasVariant,
    RememberedEncoder,
    RememberedSpec,
    calibration_variants,
    projection_variants,
    search_debias,
)
from rag_sourcebias.retrieval.search import DenseSpec

CONFIG = DebiasConfig(cutoffs=(1, 3), skew_cutoff=3, quality_cutoff=3)


DATA = favoured_dataset(grade=lambda pair: pair % 2)
# Half of the pairs are too few to calibrate with.
FITTED_ON = replace(
    DATA, qrels=replace(DATA.qrels, grades=np.ones(len(DATA.qrels), dtype=np.int32))
)


@dataclass(frozen=True)
class Trained:
    """An encoder whose training has taken part of the bias away; seeds differ a little."""

    weight: float
    seed: int

    @property
    def name(self) -> str:
        return f"trained {self.weight:g} ({self.seed})"

    @property
    def fingerprint(self) -> str:
        return self.name

    @property
    def settings(self) -> Mapping[str, str]:
        return {"weight": str(self.weight)}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return np.asarray(FavouringEncoder().encode_queries(texts))

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        rows = np.array(FavouringEncoder().encode_documents(texts))
        topics = rows[:, :-1]
        llm = np.array(["human" not in text for text in texts])
        noise = np.random.default_rng(self.seed).normal(0, 0.01, len(texts))
        shift = noise - self.weight * FAVOUR * llm
        topics += np.where(topics > 0, shift[:, None], 0)
        rows[:, -1] = np.sqrt(1 - (topics**2).sum(axis=1))
        return rows


def trained(
    weights: Sequence[float] = (0, 1, 2), seeds: Sequence[int] = (0, 1, 2)
) -> list[DebiasVariant]:
    return [
        DebiasVariant(weight=w, spec=DenseSpec(Trained(w, s)), seed=s)
        for w in weights
        for s in seeds
    ]


def calibrated() -> list[DebiasVariant]:
    encoder = FavouringEncoder()
    return calibration_variants(DenseSpec(encoder), fit_parity_calibration(FITTED_ON, encoder))


def covers_zero(point: DebiasPoint) -> bool:
    return point.relative_delta.lower < 0 < point.relative_delta.upper


def test_the_whole_offset_is_chosen_and_costs_nothing() -> None:
    config = replace(CONFIG, relative_margin=0.1)  # 60 queries cannot exclude a smaller loss
    found = search_debias(DATA, calibrated(), config=config, deterministic=True)
    assert [p.weight for p in found.points] == [0, 0.25, 0.5, 0.75, 1, 1.25]
    before = found.point(0).relative_delta
    assert before.upper < -10
    deltas = [p.relative_delta.estimate for p in found.points]
    assert deltas == sorted(deltas)
    assert found.selected == min(
        (p.weight for p in found.points if p.admitted and p.weight),
        key=lambda w: abs(found.point(w).relative_delta.estimate),
    )
    assert found.selected is not None
    assert found.selected >= 0.5
    assert found.zero_crossing is not None
    assert found.zero_crossing.estimate == pytest.approx(1, abs=0.25)
    for point in found.points[1:]:
        for test in point.tests[:2]:
            assert (test.change, test.note) == (0, "unchanged by construction")
    assert not found.split


def test_points_are_the_scores_of_each_variant() -> None:
    variants = calibrated()
    found = search_debias(DATA, variants, config=CONFIG, deterministic=True)
    for variant in variants:
        scores = score_debias(variant.spec, DATA, CONFIG, other=LLM)
        human, llm = (scores.of(row, 3).mean() for row in ("baseline", "other"))
        point = found.point(variant.weight)
        assert point.relative_delta.estimate == pytest.approx(200 * (human - llm) / (human + llm))
        assert point.human_only.estimate == pytest.approx(scores.of("human-only", 3).mean())
        assert point.llm_only.estimate == pytest.approx(scores.of("llm-only", 3).mean())
        assert point.mixed.estimate == pytest.approx(scores.of("mixed", 3).mean())


def test_shares_are_shares_of_the_calibration_over_one_index() -> None:
    calls: list[int] = []

    class Counting(FavouringEncoder):
        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            calls.append(len(texts))
            return np.asarray(super().encode_documents(texts))

    encoder = Counting()
    fitted = fit_parity_calibration(FITTED_ON, encoder)
    variants = calibration_variants(DenseSpec(encoder), fitted, shares=(0, 0.5, 1))
    calls.clear()
    search_debias(DATA, variants, config=CONFIG, deterministic=True)
    assert calls == [720, 360, 360]  # mixed, and each source alone
    half, whole = (variant.spec for variant in variants[1:])
    assert isinstance(half, RescoredSpec)
    assert isinstance(whole, RescoredSpec)
    assert half.name == "favouring+parity×0.5"
    run = DenseSpec(encoder).build(DATA.corpus).retrieve(DATA.queries, 720)
    assert run.scores is not None
    for spec, share in ((half, 0.5), (whole, 1.0)):
        moved = spec.build(DATA.corpus).retrieve(DATA.queries, 720)
        assert moved.scores is not None
        codes = DATA.corpus.tags.source_codes
        old = dict(zip(zip(run.query_codes, run.doc_codes, strict=True), run.scores, strict=True))
        for q, d, score in list(zip(moved.query_codes, moved.doc_codes, moved.scores, strict=True))[
            ::97
        ]:
            llm = DATA.corpus.tags.sources[codes[d]] == LLM
            shift = share * fitted.gaps[0].estimate if llm else 0
            assert score - old[q, d] == pytest.approx(shift, abs=1e-6)


def test_a_quality_wrongly_declared_unchanged_is_refused() -> None:
    with pytest.raises(DataError, match="mixed is declared unchanged"):
        search_debias(DATA, calibrated(), config=CONFIG, deterministic=True, unchanged=("mixed",))


def test_trainings_are_paired_by_seed() -> None:
    stages: list[str] = []
    found = search_debias(
        DATA, trained()[::-1], config=CONFIG, deterministic=False, on_stage=stages.append
    )
    assert found.n_seeds == 3
    assert [p.weight for p in found.points] == [0, 1, 2]
    assert found.point(0).relative_delta.estimate < -20
    assert covers_zero(found.point(1))
    assert found.point(2).relative_delta.estimate > 20
    assert all(test.n_seeds == 3 for p in found.points[1:] for test in p.tests)
    assert stages[0] == "weight 0, seed 0: trained 0 (0)"
    assert len(stages) == 9
    human = np.mean(
        [
            score_debias(DenseSpec(Trained(1, seed)), DATA, CONFIG, other=LLM).of("human-only", 3)
            for seed in (0, 1, 2)
        ]
    )
    assert found.point(1).human_only.estimate == pytest.approx(human)


def test_the_untrained_system_stands_for_every_seed() -> None:
    stages: list[str] = []
    variants = [DebiasVariant(weight=0, spec=DenseSpec(FavouringEncoder())), *trained((1, 2))]
    found = search_debias(
        DATA, variants, config=CONFIG, deterministic=False, on_stage=stages.append
    )
    assert found.n_seeds == 3
    assert [stage.split(":")[0] for stage in stages].count("weight 0, seed 0") == 1
    assert len(stages) == 7
    alone = score_debias(DenseSpec(FavouringEncoder()), DATA, CONFIG, other=LLM)
    assert found.point(0).mixed.estimate == pytest.approx(alone.of("mixed", 3).mean())


def test_equal_vectors_are_scored_once() -> None:
    stages: list[str] = []
    variants = [
        DebiasVariant(weight=0, spec=DenseSpec(FavouringEncoder()), seed=s) for s in range(3)
    ]
    search_debias(
        DATA,
        [*variants, *trained((1,))],
        config=CONFIG,
        deterministic=False,
        on_stage=stages.append,
    )
    assert len(stages) == 4


@pytest.mark.parametrize(
    ("variants", "deterministic", "message"),
    [
        (trained((1, 2)), False, r"weights \[1, 2\] must hold 0"),
        (trained((0,)), False, "at least one more"),
        ([*trained((0, 1)), *trained((2,), (0, 2))], False, r"weight 2 lacks the seeds \[1\]"),
        ([*trained(), *trained((1,), (1,))], False, "weight 1 occurs twice with seed 1"),
        (
            [*trained((0,)), DebiasVariant(weight=1, spec=DenseSpec(FavouringEncoder()))],
            False,
            "weight 1 has a system without a seed",
        ),
        (trained(), True, r"variants have the seeds \[0, 1, 2\]"),
        (calibrated() * 2, True, "weight 0 occurs twice without a seed"),
    ],
)
def test_variants_that_cannot_be_paired_are_refused(
    variants: list[DebiasVariant], deterministic: bool, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        search_debias(DATA, variants, config=CONFIG, deterministic=deterministic)


def test_two_seeds_are_too_few() -> None:
    stages: list[str] = []
    with pytest.raises(InsufficientDataError, match=r"2 seed\(s\) .*at least 3 seeds") as raised:
        search_debias(DATA, trained(seeds=(0, 1)), deterministic=False, on_stage=stages.append)
    assert (raised.value.n, raised.value.n_needed) == (2, 3)
    assert not stages  # before anything was scored


def test_few_queries_choose_and_report_together_many_do_not() -> None:
    variants = trained((0, 1))
    together = search_debias(DATA, variants, config=CONFIG, deterministic=False)
    apart = search_debias(DATA, variants, config=CONFIG, deterministic=False, split=True, rng=1)
    assert (together.split, apart.split) == (False, True)
    assert together.points[0].mixed.n_labeled == N_TOPICS
    assert {p.mixed.n_labeled for p in (*apart.points, *apart.selection)} == {N_TOPICS // 2}


def test_the_source_must_be_clear() -> None:
    rows = [
        ("a", DocTags(source="human", pair_id="p")),
        ("b", DocTags(source=LLM, pair_id="p")),
        ("c", DocTags(source="llm:y", pair_id="p")),
    ]
    corpus = Corpus(texts=("1", "2", "3"), tags=TagTable.from_tags(rows))
    several = replace(DATA, corpus=corpus)
    with pytest.raises(DataError, match=r"several sources beside 'human': \['llm:x', 'llm:y'\]"):
        search_debias(several, trained(), deterministic=False)
    with pytest.raises(DataError, match="no document of source 'llm:z'"):
        search_debias(several, trained(), deterministic=False, other="llm:z")
    untagged = Corpus(texts=("1",), tags=TagTable.from_tags([("a", DocTags())]))
    with pytest.raises(MissingTagsError):
        search_debias(replace(DATA, corpus=untagged), trained(), deterministic=False)


def test_strengths_are_those_of_one_projection() -> None:
    calls: list[int] = []

    class Axis(FavouringEncoder):
        """The bias along an axis that only tells the source."""

        fingerprint = "axis"

        def encode_queries(self, texts: Sequence[str]) -> Vectors:
            rows = np.zeros((len(texts), N_TOPICS + 2), np.float32)
            rows[:, :-1] = super().encode_queries(texts)
            rows[:, -1] = 0.3
            return rows

        def encode_documents(self, texts: Sequence[str]) -> Vectors:
            calls.append(len(texts))
            rows = np.zeros((len(texts), N_TOPICS + 2), np.float32)
            rows[:, :-1] = super().encode_documents([t.replace(LLM, "human") for t in texts])
            rows[:, -1] = [0.3 * (LLM in text) for text in texts]
            return rows

    variants = projection_variants(
        Axis(), twin_texts(DATA.corpus), method="mean", strengths=(0, 0.5, 1)
    )
    found = search_debias(DATA, variants, config=CONFIG, deterministic=True)
    assert sum(calls) == 720  # every text once: to fit, to search, at every strength
    assert found.point(0).relative_delta.estimate < -20
    assert covers_zero(found.point(1))
    assert [v.spec.name for v in variants] == [
        "favouring",
        *(f"favouring+projection×{s}" for s in (0.5, 1)),
    ]


def test_what_is_remembered_is_what_would_be_computed() -> None:
    encoder, corpus = FavouringEncoder(), DATA.corpus
    remembered = RememberedEncoder(encoder)
    for part in (corpus.texts[:5], corpus.texts[3:9], corpus.texts[:9]):
        assert np.array_equal(remembered.encode_documents(part), encoder.encode_documents(part))
    assert remembered.encode_documents([]).shape == (0, N_TOPICS + 1)
    assert (
        remembered.encode_queries(["topic 1"]).tolist()
        == encoder.encode_queries(["topic 1"]).tolist()
    )
    spec = RememberedSpec(DenseSpec(encoder))
    human = corpus.of_source("human")
    for of in (corpus, human, corpus):
        found = spec.build(of).retrieve(DATA.queries[:3], 7)
        wanted = DenseSpec(encoder).build(of).retrieve(DATA.queries[:3], 7)
        assert found.doc_codes.tolist() == wanted.doc_codes.tolist()
    assert spec.build(human).retrieve(DATA.queries[:3], 2).offsets.tolist() == [0, 2, 4, 6]
    assert spec.build(corpus) is spec.build(corpus)
