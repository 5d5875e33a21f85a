"""Encoders, rerankers and language models from their names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.protocols import Completer, Encoder, Reranker
from rag_sourcebias.llm.openai import OpenAICompleter
from rag_sourcebias.neural.causal import LocalCompleter, QueryLikelihoodReranker
from rag_sourcebias.neural.loading import (
    CrossEncoderReranker,
    SentenceEncoder,
    checked_dtype,
    keep_freed_memory,
)
from rag_sourcebias.retrieval.cache import (
    BatchedEncoder,
    CachedEncoder,
    CachedReranker,
    VectorCache,
)
from rag_sourcebias.retrieval.search import (
    ENCODER_OPTIONS,
    ParsedSpec,
    number,
    parse_spec,
    refuse_options,
)

# Encoders from a model's name and options.


def batched_encoder(model: str, options: Mapping[str, str]) -> Encoder:
    """Return the encoder that a name and options stand for, in the batches of every audit."""
    return BatchedEncoder(sentence_encoder(model, options))


def sentence_encoder(model: str, options: Mapping[str, str], *, name: str | None = None) -> Encoder:
    """Return the sentence-transformers model that a name and options stand for.

    Raises
    ------
    DataError
        If the model is not found, or an option is out of range.
    """
    keep_freed_memory()
    return SentenceEncoder(
        # Another process may run in another folder.
        str(Path(model).absolute()) if Path(model).is_dir() else model,
        batch_size=whole_number(options, "batch_size") or 32,
        max_length=whole_number(options, "max_length"),
        dtype=checked_dtype(options.get("dtype", "float32")),
        device=options.get("device"),
        name=name,
    )


def whole_number(options: Mapping[str, str], key: str) -> int | None:
    """Return an option that counts something, None where it is not given."""
    if key not in options:
        return None
    value = number(options, key)
    if value != int(value) or value < 1:
        raise DataError(f"option {key}={options[key]!r} must be a whole number of at least 1")
    return int(value)


# Everything that a command builds shares encoders and one cache on disk.


@dataclass
class SpecBuilder:
    """Build retrievers, encoders and rerankers from their names.

    Parameters
    ----------
    cache : Path or None
        Folder of the embedding and score caches; the usual one where None.
    progress : callable
        Told ``(done, total)`` while texts are encoded or scored.
    id_key : str or None
        Where the id stands in the metadata of what an application returns.
    """

    cache: Path | None
    progress: Callable[[int, int], None]
    id_key: str | None = None
    _encoders: dict[tuple[str, str | None, tuple[tuple[str, str], ...]], Encoder] = field(
        default_factory=dict
    )

    @property
    def folder(self) -> Path:
        """Where the caches lie."""
        return self.cache or cache_dir()

    def encoder(self, text: str) -> Encoder:
        """Build the encoder that ``text`` names: ``model[,option=value…]``."""
        # no kind goes before it, so that a path may hold a colon
        spec = parse_spec(f"dense:{text}")
        if not spec.model:
            raise DataError(f"encoder {text!r} names no model; write for example all-MiniLM-L6-v2")
        refuse_options("an encoder", spec.options, ENCODER_OPTIONS)
        # one model may be audited several times, with other settings
        told = [f"{k}={spec.options[k]}" for k in ("dtype", "max_length") if k in spec.options]
        encoder = self.encoder_of(spec)
        return self.encoder_of(spec, name=",".join([encoder.name, *told])) if told else encoder

    def encoder_of(self, spec: ParsedSpec, *, name: str | None = None) -> Encoder:
        """Build the encoder of a specification once, with vectors on disk."""
        options = {k: v for k, v in spec.options.items() if k in ENCODER_OPTIONS}
        key = (spec.model, name, tuple(sorted(options.items())))
        if key not in self._encoders:
            self._encoders[key] = CachedEncoder(
                sentence_encoder(spec.model, options, name=name),
                VectorCache(self.folder / "vectors.sqlite"),
                progress=self.progress,
            )
        return self._encoders[key]

    def reranker(self, model: str) -> Reranker:
        """Build the reranker that ``model`` names; ``ql:<model>`` is query likelihood."""
        keep_freed_memory()
        return CachedReranker(
            QueryLikelihoodReranker(model.removeprefix("ql:"), cache=self.folder / "models")
            if model.startswith("ql:")
            else CrossEncoderReranker(model.removeprefix("ce:")),
            VectorCache(self.folder / "vectors.sqlite"),
            progress=self.progress,
        )


# Language models from their names on the command line: ``openai:<name>``, ``local:<name>``.


def completer_of(
    model: str,
    *,
    base_url: str | None,
    timeout: float,
    concurrency: int,
    models: Path | None = None,
    chat: bool = False,
    ask: bool = True,
) -> Completer:
    """Build the completer that a name stands for; nothing is asked and no model is loaded.

    Parameters
    ----------
    model : str
        ``openai:<name>`` for any OpenAI-compatible server, ``local:smollm2``, ``local:<path or
        hub name>``.
    models : Path, optional
        Folder in which the packaged model is converted once.
    chat : bool
        Whether a local model gets the prompt through its chat template.
    ask : bool
        False for a completer that is only looked at: it needs no key.
    """
    kind, _, name = model.partition(":")
    if kind not in ("openai", "local") or not name:
        raise DataError(f"model {model!r}: write openai:<name>, local:smollm2 or local:<path>")
    if kind == "openai":
        return OpenAICompleter(
            name,
            base_url=base_url,
            api_key=None if ask else "not asked",
            timeout=timeout,
            max_concurrency=concurrency,
        )
    keep_freed_memory()
    return LocalCompleter(name, cache=models, chat=chat)
