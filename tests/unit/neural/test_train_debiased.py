"""Training on rewrites that have a word the model likes: what it does, writes and survives."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_training
from hashing_encoder import HashingEncoder
from tiny_training import MARK, paired_texts, static_folder

pytest.importorskip("sentence_transformers")

import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import PrinterCallback

from rag_sourcebias.core.errors import DataError, InsufficientDataError, TrainingDivergedError
from rag_sourcebias.core.tags import training_pairs
from rag_sourcebias.debias.audit import score_debias
from rag_sourcebias.debias.data import DebiasConfig
from rag_sourcebias.neural.loading import SentenceEncoder
from rag_sourcebias.neural.train import train_debiased
from rag_sourcebias.neural.training_data import TrainingSettings, plan_batches, read_history
from rag_sourcebias.retrieval.search import DenseSpec

pytestmark = pytest.mark.frameworks


# Without hard negatives the base loss never sees a rewrite: what changes there is the hinge's work.
PLAIN = {"max_steps": 60, "batch_size": 8, "learning_rate": 0.02, "hard_negatives": 0}
TEXTS = ["what topic3 word1", f"topic3 {MARK} word9", "topic7 word2 word2"]


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return static_folder(tmp_path_factory.mktemp("base") / "tiny-static")


@pytest.fixture(scope="module")
def debiased(base: Path, tmp_path_factory):
    return train_debiased(
        base,
        paired_texts(40),
        tmp_path_factory.mktemp("debiased") / "debiased",
        settings=TrainingSettings(debias_weight=0.1, eval_every=25, **PLAIN),
    )


@pytest.fixture(scope="module")
def plain(base: Path, tmp_path_factory):
    return train_debiased(
        base,
        paired_texts(40),
        tmp_path_factory.mktemp("plain") / "plain",
        settings=TrainingSettings(debias_weight=0, **PLAIN),
    )


def weights(folder: Path) -> bytes:
    return next(folder.rglob("model.safetensors")).read_bytes()


# -- what training does


def test_the_hinge_moves_the_skew_and_the_base_loss_alone_does_not(base, debiased, plain) -> None:
    before, after, unmoved = (skew_of(folder) for folder in (base, debiased.path, plain.path))
    assert before < -100
    assert after > before + 40
    assert abs(unmoved - before) < 10


def skew_of(folder: Path) -> float:
    """Relative Δ of NDCG@5 on data that were not trained on."""
    data = paired_texts(40, seed=1)
    (other,) = (source for source in data.corpus.tags.sources if source != "human")
    found = score_debias(DenseSpec(SentenceEncoder(folder)), data, DebiasConfig(), other=other)
    human, llm = (found.of(row, 5).mean() for row in ("baseline", "other"))
    return float(200 * (human - llm) / (human + llm))


def test_the_history_says_what_happened(debiased, plain) -> None:
    history = debiased.history
    assert [point.step for point in history.points] == [0, 25, 50, 60]
    first, *later = history.points
    assert (first.rank_loss, first.debias_loss, first.hinge_share) == (None, None, None)
    assert [point.hinge_share for point in later] == sorted(
        (point.hinge_share for point in later), reverse=True
    )
    assert all(0 < point.hinge_share < 1 and point.debias_loss > 0 for point in later)
    assert (history.n_steps, history.n_pairs, history.seed) == (60, 40, 0)
    assert history.debias_weight == 0.1
    assert history.seconds > 0
    assert [point.step for point in plain.history.points] == [0, 60]
    assert plain.history.points[-1].debias_loss is None
    assert plain.history.points[-1].hinge_share is None
    assert read_history(debiased.path) == history


def test_weight_0_equals_training_with_the_base_loss_alone(
    base: Path, plain, tmp_path: Path
) -> None:
    from datasets import Dataset

    pairs = training_pairs(paired_texts(40))
    settings = TrainingSettings(debias_weight=0, **PLAIN)
    order = plan_batches(pairs, settings).ravel()

    class InOrder(SentenceTransformerTrainer):
        def get_batch_sampler(self, dataset, *args, **kwargs):
            sampler = super().get_batch_sampler(dataset, *args, **kwargs)
            sampler.sampler = range(len(dataset))
            return sampler

    model = SentenceTransformer(str(base), device="cpu")
    trainer = InOrder(
        model,
        SentenceTransformerTrainingArguments(
            str(tmp_path),
            max_steps=60,
            per_device_train_batch_size=8,
            learning_rate=0.02,
            warmup_steps=6,
            seed=0,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        Dataset.from_dict(
            {
                "query": [pairs.queries[row] for row in order],
                "human": [pairs.twins.baseline_texts[pairs.rows[row]] for row in order],
            }
        ),
        loss=MultipleNegativesRankingLoss(model),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    expected = model.state_dict()
    found = SentenceTransformer(str(plain.path), device="cpu").state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_the_same_seed_gives_the_same_weights(base: Path, debiased, tmp_path: Path) -> None:
    torch.manual_seed(99)
    random.seed(99)
    states = random.getstate(), torch.get_rng_state()
    settings = {"debias_weight": 0.1, "eval_every": 25, **PLAIN}
    again = train_debiased(
        base, paired_texts(40), tmp_path / "again", settings=TrainingSettings(**settings)
    )
    assert weights(again.path) == weights(debiased.path)
    assert random.getstate() == states[0]  # the caller's generators are as they were
    assert torch.equal(torch.get_rng_state(), states[1])
    other = TrainingSettings(**settings, seed=1)
    seeded = train_debiased(base, paired_texts(40), tmp_path / "other", settings=other)
    assert weights(seeded.path) != weights(debiased.path)


def test_transformers_prompts_maximum_length_and_bf16(encoder_folder: Path, tmp_path: Path) -> None:
    """A model with dropout and prompts; its own maximum length stays."""
    prompted = SentenceTransformer(str(encoder_folder), device="cpu")
    prompted.prompts = {"query": "question : ", "document": "passage : "}
    prompted.save_pretrained(str(tmp_path / "prompted"), create_model_card=False)
    settings = TrainingSettings(max_steps=3, batch_size=4, max_length=6, precision="bf16")
    trained = train_debiased(
        tmp_path / "prompted", paired_texts(12), tmp_path / "out", settings=settings
    )
    assert trained.history.settings["precision"] == "bf16"
    written = SentenceTransformer(str(trained.path), device="cpu")
    assert written.max_seq_length == prompted.max_seq_length > 6
    assert written.prompts == prompted.prompts
    assert {parameter.dtype for parameter in written.parameters()} == {torch.float32}
    assert weights(trained.path) != weights(tmp_path / "prompted")


# -- what it writes


def vectors(folder: Path) -> np.ndarray:
    return SentenceTransformer(str(folder), device="cpu").encode(TEXTS)


def test_the_folder_is_an_ordinary_model(base: Path, debiased) -> None:
    assert np.abs(vectors(debiased.path) - vectors(base)).max() > 0.01
    encoder = SentenceEncoder(debiased.path)
    assert np.allclose(
        encoder.encode_documents(TEXTS),
        SentenceTransformer(str(debiased.path)).encode(TEXTS, normalize_embeddings=True),
        atol=1e-6,
    )
    assert encoder.fingerprint != SentenceEncoder(base).fingerprint
    names = {file.name for file in debiased.path.iterdir()}
    assert {"modules.json", "README.md", "training_history.json"} <= names
    assert "progress.json" not in names
    modules = json.loads((debiased.path / "modules.json").read_text())
    assert all(row["type"].startswith("sentence_transformers.") for row in modules)
    assert [path.name for path in debiased.path.parent.iterdir()] == ["debiased"]


def test_the_model_card_names_no_folder_of_this_machine(debiased) -> None:
    card = (debiased.path / "README.md").read_text(encoding="utf-8")
    assert "| debias_weight | 0.1 |" in card
    assert str(debiased.path.parent) not in card


def test_another_encoder_may_find_the_negatives(base: Path, tmp_path: Path) -> None:
    settings = TrainingSettings(max_steps=2, batch_size=8)
    finder = HashingEncoder()
    data = paired_texts(40)
    trained = train_debiased(base, data, tmp_path / "o", settings=settings, untrained=finder)
    asked = {text for call in finder.calls for text in call}
    assert set(data.corpus.texts) <= asked
    assert trained.history.settings["negatives found with"] == "hashing-64"


# -- what it refuses


def test_an_output_that_exists_or_has_no_place(base: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"folder .*missing does not exist"):
        train_debiased(base, paired_texts(40), tmp_path / "missing" / "out")
    (tmp_path / "out.training").mkdir()
    (tmp_path / "out.training" / "notes.txt").write_text("mine")
    for resume in (True, False):
        with pytest.raises(DataError, match="something else is there"):
            train_debiased(base, paired_texts(40), tmp_path / "out", resume=resume)
    assert (tmp_path / "out.training" / "notes.txt").read_text() == "mine"


def test_data_that_cannot_be_trained_on(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InsufficientDataError, match="do not fill one batch of 16"):
        train_debiased(base, paired_texts(10), out)
    # What never reached a checkpoint does not stand in the way of other settings.
    with pytest.raises(InsufficientDataError, match="do not fill one batch of 12"):
        train_debiased(base, paired_texts(10), out, settings=TrainingSettings(batch_size=12))
    with pytest.raises(DataError, match="a comparison needs a second source"):
        train_debiased(base, paired_texts(40, sources=("human",)), out)
    with pytest.raises(DataError, match="no document has the baseline source 'person'"):
        train_debiased(base, paired_texts(40), out, baseline="person")
    assert not out.exists()


def test_models_that_cannot_be_trained(base: Path, tmp_path: Path, encoder_folder: Path) -> None:
    data, out = paired_texts(40), tmp_path / "out"
    with pytest.raises(DataError, match="there is no model folder"):
        train_debiased(tmp_path / "nowhere", data, out)
    whole = SentenceTransformer(str(encoder_folder), device="cpu")
    unpooled = SentenceTransformer(modules=[whole[0]], device="cpu")
    unpooled.save_pretrained(str(tmp_path / "unpooled"), create_model_card=False)
    with pytest.raises(DataError, match="has no pooling module"):
        train_debiased(tmp_path / "unpooled", data, tmp_path / "out2")


# Training that ends early: what is kept, and that it goes on as if nothing had happened


DATA = paired_texts(40)
SETTINGS = TrainingSettings(
    debias_weight=0.1,
    max_steps=30,
    batch_size=8,
    learning_rate=0.02,
    checkpoint_every=10,
    eval_every=7,
)


KILLED = """
import os, signal, sys
from pathlib import Path
from tiny_training import paired_texts
from rag_sourcebias.neural.train import TrainingSettings, train_debiased

def kill(step, steps):
    if step == 25:
        os.kill(os.getpid(), signal.SIGKILL)

train_debiased(
    sys.argv[1], paired_texts(40), sys.argv[2], on_progress=kill,
    settings=TrainingSettings(debias_weight=0.1, max_steps=30, batch_size=8, learning_rate=0.02,
                              checkpoint_every=10, eval_every=7),
)
"""


class StopError(Exception):
    pass


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory):
    """The training that nothing interrupts."""
    place = tmp_path_factory.mktemp("whole") / "whole"
    return train_debiased(base, DATA, place, settings=SETTINGS)


def stop_at(last: int):
    def told(step: int, steps: int) -> None:
        if step == last:
            raise StopError

    return told


def stopped(base: Path, out: Path, step: int, **options) -> None:
    given = {"settings": SETTINGS, **options}
    with pytest.raises(StopError):
        train_debiased(base, DATA, out, on_progress=stop_at(step), **given)
    assert not out.exists()


def kept(out: Path) -> list[str]:
    folder = out.with_name(out.name + ".training")
    return sorted(path.name for path in folder.glob("checkpoint-*"))


def same(trained, whole) -> bool:
    files = [folder / "model.safetensors" for folder in (trained.path, whole.path)]
    assert files[0].read_bytes() == files[1].read_bytes()
    return trained.history.points == whole.history.points


def test_it_goes_on_with_the_result_of_an_uninterrupted_run(base, whole, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped(base, out, 25)
    assert kept(out) == ["checkpoint-10", "checkpoint-20"]
    steps = []
    trained = train_debiased(
        base,
        DATA,
        out,
        settings=SETTINGS,
        on_progress=lambda step, total: steps.append((step, total)),
    )
    assert steps[0] == (21, 30)
    assert steps[-1] == (30, 30)
    assert same(trained, whole)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_kill_leaves_checkpoints_that_are_taken_up_again(base, whole, tmp_path: Path) -> None:
    out = tmp_path / "out"
    support = Path(tiny_training.__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(support), "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", KILLED, str(base), str(out)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert ended.stdout == ""
    assert kept(out) == ["checkpoint-10", "checkpoint-20"]
    # A kill while the next one is written leaves a part of it.
    torn = tmp_path / "out.training" / "checkpoint-30"
    torn.mkdir()
    (torn / "model.safetensors").write_bytes(b"half")
    assert same(train_debiased(base, DATA, out, settings=SETTINGS), whole)


def test_other_settings_do_not_go_on_but_start_over(base, whole, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped(base, out, 15)
    other = replace(SETTINGS, debias_weight=0.2)
    with pytest.raises(DataError, match=r"debias_weight 0.1, not 0.2: .* resume=False") as found:
        train_debiased(base, DATA, out, settings=other)
    assert str(tmp_path / "out.training") in str(found.value)
    with pytest.raises(DataError, match=r"with data synthetic-0 \(.*not synthetic-2 \("):
        train_debiased(base, paired_texts(40, seed=2), out, settings=SETTINGS)
    with pytest.raises(DataError, match="epochs left out, not 1"):
        train_debiased(base, DATA, out, settings=replace(SETTINGS, max_steps=None))
    assert kept(out) == ["checkpoint-10"]
    steps = []
    trained = train_debiased(
        base,
        DATA,
        out,
        settings=replace(SETTINGS, checkpoint_every=50),
        resume=False,
        on_progress=lambda step, _: steps.append(step),
    )
    assert steps == list(range(1, 31))
    assert same(trained, whole)


def test_ctrl_c_says_what_is_kept(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stages = []

    def interrupt(step: int, _: int) -> None:
        if step == 12:
            signal.raise_signal(signal.SIGINT)

    # a job in the background of a shell is started with SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt, match=r"was interrupted.*checkpoint-10, a model fol"):
            train_debiased(
                base, DATA, out, settings=SETTINGS, on_progress=interrupt, on_stage=stages.append
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert stages[-1].endswith("the same call goes on from there")
    assert kept(out) == ["checkpoint-10"]


# -- a loss or weights that are no numbers


def test_divergence_names_a_checkpoint_that_can_be_loaded(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # The learning rate rises step by step until the weights overflow.
    wild = replace(SETTINGS, learning_rate=1e38, warmup_ratio=0.9, checkpoint_every=1)
    with pytest.raises(TrainingDivergedError, match="not finite") as found:
        train_debiased(base, DATA, out, settings=wild)
    assert not out.exists()
    last = kept(out)[-1]
    assert found.value.step > 1
    assert f"The last good checkpoint is {tmp_path / 'out.training'}" in str(found.value)
    assert last in str(found.value)
    assert "train anew with other settings" in str(found.value)
    model = SentenceTransformer(str(tmp_path / "out.training" / last), device="cpu")
    assert all(np.isfinite(weight.detach().numpy()).all() for weight in model.parameters())


# -- a disk that takes no more


@contextmanager
def full_disk(size: int):
    """Let no file grow beyond a size: writing fails in earnest, whoever writes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 12_000])
def test_a_full_disk_keeps_the_last_good_checkpoint(
    base: Path, whole, tmp_path: Path, size: int
) -> None:
    out = tmp_path / "out"
    stopped(base, out, 15)
    with full_disk(size), pytest.raises(DataError, match="checkpoint-20 cannot be written") as e:
        train_debiased(base, DATA, out, settings=SETTINGS)
    assert "The last good checkpoint is" in str(e.value)
    assert kept(out) == ["checkpoint-10"]
    assert same(train_debiased(base, DATA, out, settings=SETTINGS), whole)
