"""Retrievers from their names on the command line.

``kind[:model][,option=value…]``, for example ``bm25``, ``bm25:k1=0.9,b=0.4``, ``bm25:paper``,
``dense:all-MiniLM-L6-v2``, ``chroma:all-MiniLM-L6-v2,path=store,ef_search=200``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rag_sourcebias.adapters import retriever_factory
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Encoder, Reranker, RetrieverSpec
from rag_sourcebias.retrieval import (
    BM25Spec,
    CachedEncoder,
    CachedReranker,
    DenseSpec,
    RerankedSpec,
    VectorCache,
)

__all__ = ["SpecBuilder", "parse_spec"]

_ENCODER_OPTIONS = ("dtype", "max_length", "batch_size", "device")
_BM25_OPTIONS = ("k1", "b", "method", "stemmer", "stopwords")
_Key = tuple[str, str | None, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A specification taken apart."""

    kind: str
    model: str
    options: dict[str, str]


def parse_spec(text: str) -> ParsedSpec:
    """Take ``kind[:model][,option=value…]`` apart.

    Examples
    --------
    >>> parse_spec("dense:all-MiniLM-L6-v2,dtype=bfloat16")
    ParsedSpec(kind='dense', model='all-MiniLM-L6-v2', options={'dtype': 'bfloat16'})
    """
    kind, _, rest = text.strip().partition(":")
    model, options = "", {}
    for i, part in enumerate(p.strip() for p in rest.split(",") if p.strip()):
        key, equals, value = part.partition("=")
        if equals and key.isidentifier():
            options[key] = value
        elif i == 0:
            model = part
        else:
            raise DataError(
                f"retriever {text!r}: cannot read {part!r}; write options as name=value, "
                "separated by commas"
            )
    if not kind:
        raise DataError(f"retriever {text!r} has no kind; write for example bm25 or dense:<model>")
    return ParsedSpec(kind, model, options)


@dataclass(slots=True)
class SpecBuilder:
    """Build retrievers that share encoders and one cache on disk.

    Parameters
    ----------
    cache : Path
        Folder of the embedding and score caches.
    progress : callable
        Told ``(done, total)`` while texts are encoded or scored.
    """

    cache: Path
    progress: Callable[[int, int], None]
    _encoders: dict[_Key, Encoder] = field(default_factory=dict)

    def retriever(self, text: str) -> RetrieverSpec:
        """Build the retriever that ``text`` names."""
        spec = parse_spec(text)
        if spec.kind == "bm25":
            return self._bm25(spec)
        # Before loading a model, so that an unknown kind fails at once.
        factory = None if spec.kind == "dense" else retriever_factory(spec.kind)
        if not spec.model:
            raise DataError(
                f"retriever {text!r} names no model; write {spec.kind}:<model>, for example "
                f"{spec.kind}:all-MiniLM-L6-v2"
            )
        rest = {k: v for k, v in spec.options.items() if k not in _ENCODER_OPTIONS}
        if factory is None:
            similarity = rest.pop("similarity", "cosine")
            if rest:
                raise _unknown(spec, rest, (*_ENCODER_OPTIONS, "similarity"))
            if similarity not in ("cosine", "dot"):
                raise DataError(f"similarity {similarity!r} is not one of cosine, dot")
            return DenseSpec(
                self._encoder(spec),
                name=f"dense:{spec.model}",
                similarity="dot" if similarity == "dot" else "cosine",
            )
        return factory(self._encoder(spec), **rest)

    def encoder(self, text: str) -> Encoder:
        """Build the encoder that ``text`` names: ``model[,option=value…]``."""
        # no kind goes before it, so that a path may hold a colon
        spec = parse_spec(f"dense:{text}")
        unknown = {k: v for k, v in spec.options.items() if k not in _ENCODER_OPTIONS}
        if unknown or not spec.model:
            raise DataError(
                f"encoder {text!r} names no model; write for example all-MiniLM-L6-v2"
                if not spec.model
                else f"an encoder has no option {', '.join(sorted(unknown))}; there are "
                f"{', '.join(_ENCODER_OPTIONS)}"
            )
        # one model may be audited several times, with other settings
        told = [f"{k}={spec.options[k]}" for k in ("dtype", "max_length") if k in spec.options]
        encoder = self._encoder(spec)
        return self._encoder(spec, name=",".join([encoder.name, *told])) if told else encoder

    def reranked(self, first: RetrieverSpec, model: str, *, depth: int) -> RetrieverSpec:
        """Put a reranker on a first stage; ``ql:<model>`` is query likelihood."""
        return RerankedSpec(first, self._reranker(model), depth=depth)

    def _bm25(self, spec: ParsedSpec) -> RetrieverSpec:
        unknown = {k: v for k, v in spec.options.items() if k not in _BM25_OPTIONS}
        if unknown:
            raise _unknown(spec, unknown, _BM25_OPTIONS)
        if spec.model == "paper":
            return BM25Spec.paper()
        if spec.model:
            raise DataError(f"bm25:{spec.model} is unknown; there are bm25 and bm25:paper")
        text = {k: v for k, v in spec.options.items() if k in ("method", "stemmer", "stopwords")}
        numbers = {k: _number(spec, k) for k in ("k1", "b") if k in spec.options}
        none = {k: None if v in ("none", "") else v for k, v in text.items()}
        return BM25Spec(**numbers, **none)  # type: ignore[arg-type]

    def _encoder(self, spec: ParsedSpec, *, name: str | None = None) -> Encoder:
        from rag_sourcebias.neural import SentenceEncoder

        options = {k: v for k, v in spec.options.items() if k in _ENCODER_OPTIONS}
        key = (spec.model, name, tuple(sorted(options.items())))
        if key not in self._encoders:
            dtype = options.get("dtype", "float32")
            if dtype not in ("float32", "bfloat16"):
                raise DataError(f"dtype {dtype!r} is not one of float32, bfloat16")
            encoder = SentenceEncoder(
                spec.model,
                batch_size=_integer(spec, "batch_size") or 32,
                max_length=_integer(spec, "max_length"),
                dtype="bfloat16" if dtype == "bfloat16" else "float32",
                device=options.get("device"),
                name=name,
            )
            self._encoders[key] = CachedEncoder(
                encoder, VectorCache(self.cache / "vectors.sqlite"), progress=self.progress
            )
        return self._encoders[key]

    def _reranker(self, model: str) -> Reranker:
        from rag_sourcebias.neural import CrossEncoderReranker, QueryLikelihoodReranker

        inner: Reranker = (
            QueryLikelihoodReranker(model.removeprefix("ql:"), cache=self.cache / "models")
            if model.startswith("ql:")
            else CrossEncoderReranker(model.removeprefix("ce:"))
        )
        return CachedReranker(
            inner, VectorCache(self.cache / "vectors.sqlite"), progress=self.progress
        )


def _unknown(spec: ParsedSpec, options: dict[str, str], known: tuple[str, ...]) -> DataError:
    return DataError(
        f"retriever kind {spec.kind!r} has no option {', '.join(sorted(options))}; there are "
        f"{', '.join(known)}"
    )


def _number(spec: ParsedSpec, key: str) -> float:
    try:
        return float(spec.options[key])
    except ValueError:
        raise DataError(f"option {key}={spec.options[key]!r} is not a number") from None


def _integer(spec: ParsedSpec, key: str) -> int | None:
    if key not in spec.options:
        return None
    value = _number(spec, key)
    if value != int(value) or value < 1:
        raise DataError(f"option {key}={spec.options[key]!r} must be a whole number of at least 1")
    return int(value)
