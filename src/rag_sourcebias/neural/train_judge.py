"""How much a model prefers a source, asked while it is in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag_sourcebias.audit.debias_scores import score_debias
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.source import relative_delta
from rag_sourcebias.retrieval.dense import DenseSpec
from rag_sourcebias.types.arrays import Float32Array
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.debias_report import DebiasConfig

__all__ = ["LiveEncoder", "Skew", "SkewJudge"]


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
        self.normalize = normalize
        self._model = model
        self._fingerprint = fingerprint
        self._known: dict[str, Float32Array] = {}

    @property
    def fingerprint(self) -> str:
        """What the caller gave it."""
        return self._fingerprint

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {"model": self.name}

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Skew:
    """Mean NDCG of both sources on a mixed corpus and their Relative Δ in percent."""

    relative_delta: float | None
    baseline: float
    other: float


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

    def __call__(self, model: Any) -> Skew:  # noqa: ANN401 - torch is not typed here
        """Retrieve with the model as it is now."""
        cosine = self.similarity == "cosine"
        encoder = LiveEncoder(model, name="model in training", fingerprint="", normalize=cosine)
        spec = DenseSpec(encoder, similarity="cosine" if cosine else "dot")
        scores = score_debias(spec, self.dataset, self.config, other=self.other)
        cutoff = self.config.skew_cutoff
        baseline, other = (float(scores.of(r, cutoff).mean()) for r in ("baseline", "other"))
        return Skew(relative_delta=relative_delta(baseline, other), baseline=baseline, other=other)
