"""Training that ends early: what is kept, and that it goes on as if nothing had happened."""

import os
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
from tiny_training import paired_texts, static_folder

pytest.importorskip("sentence_transformers")

from sentence_transformers import SentenceTransformer

from rag_sourcebias.core.errors import DataError, TrainingDivergedError
from rag_sourcebias.neural.train import train_debiased
from rag_sourcebias.neural.training_data import TrainingSettings

pytestmark = pytest.mark.frameworks

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
def base(tmp_path_factory) -> Path:
    return static_folder(tmp_path_factory.mktemp("base") / "tiny-static")


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
