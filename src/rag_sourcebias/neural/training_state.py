"""State of a debiased training: the judge of its skew, progress, checkpoints and losses."""

import json
import math
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.neural.loading import require_torch

# ruff: noqa: E402 - the message on a missing extra must come before torch is imported
require_torch("debiased training")

from sentence_transformers.base.losses.merged_forward import embed_columns
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    CosineSimilarityLoss,
    MarginMSELoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.util import cos_sim, dot_score, pairwise_cos_sim, pairwise_dot_score
from torch import Tensor, nn

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.core.values import Float32Array, from_plain, to_plain
from rag_sourcebias.debias.audit import score_debias
from rag_sourcebias.debias.data import DebiasConfig, TrainingPoint
from rag_sourcebias.io.files import read_json, sound, write_atomic
from rag_sourcebias.neural.losses import DebiasedRankingLoss, HingeStatistics
from rag_sourcebias.neural.training_data import TrainingSettings
from rag_sourcebias.retrieval.cache import BatchedEncoder
from rag_sourcebias.retrieval.search import DenseSpec
from rag_sourcebias.stats.ranking import relative_delta

# How much a model prefers a source, asked while it is in training.


class LiveEncoder:
    """A model of sentence-transformers as it is now, as an encoder.

    Vectors of documents are kept, so that an evaluation encodes each text once: make a new one
    whenever the weights have changed.

    Parameters
    ----------
    model : SentenceTransformer
    name, fingerprint : str
    normalize : bool
    """

    def __init__(
        self,
        model: Any,  # noqa: ANN401 - torch is not typed here
        *,
        name: str,
        fingerprint: str,
        normalize: bool = True,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.settings: Mapping[str, str] = {"model": name}
        self.normalize = normalize
        self._model = model
        self._known: dict[str, Float32Array] = {}

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode queries, with the model's query prompt if it has one."""
        return self._encode(self._model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode documents, with the model's document prompt if it has one."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self._known]:
            vectors = self._encode(self._model.encode_document, missing)
            self._known.update(zip(missing, vectors, strict=True))
        dimension = self._model.get_embedding_dimension() or 0
        return np.array([self._known[text] for text in texts], np.float32).reshape(-1, dimension)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> Float32Array:
        training = self._model.training
        vectors = encode(
            list(texts),
            show_progress_bar=False,
            convert_to_tensor=True,
            normalize_embeddings=self.normalize,
        )
        self._model.train(training)
        return np.asarray(vectors.float().cpu().numpy(), dtype=np.float32)


class SkewJudge:
    """Scores a model on a data set, at the skew cutoff.

    Parameters
    ----------
    dataset : Dataset
        Other than the one trained on.
    config : DebiasConfig
    source : str, optional
        LLM source; the only one of the data where it is not among them or not given.
    similarity : {"cosine", "dot"}

    Raises
    ------
    DataError
        If the data has not one other source that could be meant.
    """

    def __init__(
        self, dataset: Dataset, config: DebiasConfig, *, source: str | None, similarity: str
    ) -> None:
        others = [s for s in dataset.corpus.tags.sources if s != config.baseline_source]
        if source not in others and len(others) != 1:
            raise DataError(
                f"data set {dataset.name!r} to judge on has sources {others} beside "
                f"{config.baseline_source!r}; name one of them as source"
            )
        self.dataset = dataset
        self.config = config
        self.other = source if source in others else others[0]
        self.similarity = similarity

    def __call__(
        self,
        model: Any,  # noqa: ANN401 - torch is not typed here
        on_progress: Callable[[int, int], None] | None = None,
        untrained: Encoder | None = None,
    ) -> dict[str, float | None]:
        """Retrieve with the model as it is now; mean NDCG of both sources, and their Relative Δ.

        ``untrained`` stands for a model that is not trained yet: its vectors may be there.
        """
        cosine = self.similarity == "cosine"
        live = LiveEncoder(model, name="model in training", fingerprint="", normalize=cosine)
        encoder = untrained or BatchedEncoder(live, progress=on_progress)
        spec = DenseSpec(encoder, similarity="cosine" if cosine else "dot", progress=on_progress)
        scores = score_debias(spec, self.dataset, self.config, other=self.other)
        baseline, other = (
            float(scores.of(role, self.config.skew_cutoff).mean()) for role in ("baseline", "other")
        )
        return {
            "relative_delta": relative_delta(baseline, other),
            "baseline": baseline,
            "other": other,
        }


# What a training run has seen so far; part of its checkpoints.


PROGRESS_FILE = "progress.json"
"""Written last: a checkpoint without it is not complete."""


class Progress:
    """Collects the points of a history.

    Parameters
    ----------
    loss : DebiasedRankingLoss
    judge : SkewJudge, optional
    eval_every : int, optional
    on_stage, on_judging : callable, optional
        Told what is going on where it takes long, and how far it is.
    """

    def __init__(
        self,
        loss: DebiasedRankingLoss,
        judge: SkewJudge | None,
        *,
        eval_every: int | None,
        on_stage: Callable[[str], None] = lambda _: None,
        on_judging: Callable[[int, int], None] | None = None,
    ) -> None:
        self.loss = loss
        self.judge = judge
        self.eval_every = eval_every
        self.on_stage = on_stage
        self.on_judging = on_judging
        self.step = 0
        self.points: list[TrainingPoint] = []
        self._seconds = 0.0
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Training time, evaluations left out."""
        running = 0.0 if self._since is None else time.perf_counter() - self._since
        return self._seconds + running

    def run(self) -> None:
        """Start the clock."""
        self._since = time.perf_counter()

    def pause(self) -> None:
        """Stop the clock."""
        self._seconds, self._since = self.seconds, None

    def stepped(self, step: int, model: Any) -> None:  # noqa: ANN401 - torch is not typed here
        """Note a step, and what the model prefers if it is time."""
        self.step = step
        if self.eval_every is not None and step % self.eval_every == 0:
            self.pause()
            self.add_point(model)
            if self.judge is not None:
                self.on_stage(f"training goes on after step {step}")
            self.run()

    def add_point(self, model: Any, untrained: Encoder | None = None) -> None:  # noqa: ANN401
        """Add a point for the step reached, unless it has one."""
        if self.points and self.points[-1].step == self.step:
            return
        skew: dict[str, float | None] = {}
        if self.judge is not None:
            self.on_stage(f"judging on {self.judge.dataset.name} after step {self.step}")
            skew = self.judge(model, self.on_judging, untrained)
        seen = self.loss.reset_statistics()
        self.points.append(
            TrainingPoint(
                step=self.step,
                rank_loss=_number(seen.mean_rank_loss),
                debias_loss=_number(seen.mean_debias_loss),
                hinge_share=_number(seen.hinge_share),
                **skew,
            )
        )

    def write(self, checkpoint: Path) -> None:
        """Complete a checkpoint."""
        content = {
            "step": self.step,
            "seconds": self.seconds,
            "forward": self.loss.step,
            "statistics": asdict(self.loss.statistics),
            "points": to_plain(tuple(self.points)),
        }
        write_atomic(checkpoint / PROGRESS_FILE, json.dumps(content, allow_nan=False))

    def read(self, checkpoint: Path) -> None:
        """Go back to where a checkpoint was.

        Raises
        ------
        DataError
            If it cannot be read.
        """
        file = checkpoint / PROGRESS_FILE
        remedy = f"delete the folder {checkpoint} to go on from the checkpoint before it"
        content = read_json(file, "the progress of a training", remedy=remedy)
        with sound(file, "the progress of a training", remedy=remedy, names_file=False):
            self.step = int(content["step"])
            self._seconds = float(content["seconds"])
            self.loss.step = int(content["forward"])
            self.loss.statistics = from_plain(HingeStatistics, content["statistics"])
            self.points = [from_plain(TrainingPoint, point) for point in content["points"]]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


# The folder of a training run: what it was asked for, and where it can be taken up again.


_RUN_FILE = "run.json"
_PREFIX = "checkpoint-"
_MAY_DIFFER = frozenset({"checkpoint_every"})


def open_run(folder: Path, settings: Mapping[str, str], *, resume: bool) -> Path | None:
    """Make the folder of a run, or open the one that is there.

    Parameters
    ----------
    settings : mapping of str to str
        All that the result depends on.
    resume : bool
        Go on from what is there; without it, what is there is deleted.

    Returns
    -------
    Path or None
        Checkpoint to go on from.

    Raises
    ------
    DataError
        If what is there belongs to a run with other settings, or to something else, or the folder
        cannot be written.
    """
    try:
        if folder.exists():
            ours = (folder / _RUN_FILE).is_file()
            if not folder.is_dir() or (any(folder.iterdir()) and not ours):
                raise DataError(
                    f"{folder} is where checkpoints of the training would go, but something else "
                    "is there; move it away, or name another output"
                )
            difference = _difference(folder, settings)
            if resume and difference is None and ours:
                for path in _checkpoints(folder):
                    if not (path / PROGRESS_FILE).is_file():  # a kill left it half-written
                        shutil.rmtree(path)
                return last_checkpoint(folder)
            if resume and last_checkpoint(folder) is not None:
                raise DataError(
                    f"{folder} holds a training with {difference}: it cannot go on under other "
                    "settings. Give the same ones, name another output, or start over with "
                    "resume=False (or by deleting the folder)"
                )
            shutil.rmtree(folder)
        folder.mkdir()
        text = json.dumps(dict(settings), ensure_ascii=False, indent=1)
        write_atomic(folder / _RUN_FILE, text + "\n")
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    return None


def last_checkpoint(folder: Path) -> Path | None:
    """Return the complete checkpoint with the most steps."""
    complete = [path for path in _checkpoints(folder) if (path / PROGRESS_FILE).is_file()]
    return max(complete, key=lambda path: int(path.name.removeprefix(_PREFIX)), default=None)


def _checkpoints(folder: Path) -> list[Path]:
    found = folder.glob(f"{_PREFIX}*")
    return [path for path in found if path.name.removeprefix(_PREFIX).isdecimal()]


def _difference(folder: Path, settings: Mapping[str, str]) -> str | None:
    """Name the first setting that differs, None where all agree."""
    file = folder / _RUN_FILE
    if not file.is_file():
        return None
    expected, remedy = "the settings of a training", f"delete {folder}"
    before = read_json(file, expected, remedy=remedy)
    if not isinstance(before, dict):
        raise DataError(f"{file} is not {expected}; {remedy}")
    for name in sorted({*before, *settings} - _MAY_DIFFER):
        if before.get(name) != settings.get(name):
            was, now = (given.get(name, "left out") for given in (before, settings))
            return f"{name} {was}, not {now}"
    return None


# The losses a debiased training is made of.

_CACHED_BATCH = 16  # rows that a gradient-caching loss embeds at a time


class CosineOfEachDocument(nn.Module):  # type: ignore[misc] # torch is not typed here
    """``CosineSimilarityLoss`` between the query and every document of a row.

    Columns are query and documents; labels have shape (rows, documents).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.loss = CosineSimilarityLoss(model)

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Return the mean over all (query, document), a scalar."""
        return self.compute_loss_from_embeddings(
            embed_columns(self.model, list(sentence_features)), labels
        )

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the same from embeddings that are there already."""
        query, *documents = embeddings
        parts = [
            self.loss.compute_loss_from_embeddings([query, document], labels[:, i])
            for i, document in enumerate(documents)
        ]
        return sum(parts[1:], parts[0]) / len(parts)


def base_loss(model: Any, settings: TrainingSettings) -> nn.Module:  # noqa: ANN401
    """Return L_rank for a model of sentence-transformers.

    Raises
    ------
    DataError
        If the model cannot be trained with it.
    """
    cosine = settings.similarity == "cosine"
    contrastive = {
        "scale": 20.0 if cosine else 1.0,
        "similarity_fct": cos_sim if cosine else dot_score,
    }
    if settings.loss == "mnrl":
        return MultipleNegativesRankingLoss(model, **contrastive)
    if settings.loss == "margin-mse":
        return MarginMSELoss(model, pairwise_cos_sim if cosine else pairwise_dot_score)
    if settings.loss == "cosine":
        return CosineOfEachDocument(model)
    try:
        return CachedMultipleNegativesRankingLoss(
            model, mini_batch_size=min(_CACHED_BATCH, settings.batch_size), **contrastive
        )
    except ValueError as error:
        raise DataError(f"loss 'cached-mnrl' does not fit this model ({error}); take 'mnrl'") from (
            error
        )


def debiased_loss(model: Any, settings: TrainingSettings) -> DebiasedRankingLoss:  # noqa: ANN401
    """Return L_rank with the hinge."""
    return DebiasedRankingLoss(
        base_loss(model, settings),
        settings.debias_weight,
        reduction=settings.reduction,
        scale=settings.scale,
        margin=settings.margin,
        target=settings.target,
        similarity=settings.similarity,
        rank_columns=settings.rank_columns,
    )
