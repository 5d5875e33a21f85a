"""Retrievers from their names on the command line.

``kind[:model][,option=value…]``, for example ``bm25``, ``bm25:k1=0.9,b=0.4``, ``bm25:paper``,
``dense:all-MiniLM-L6-v2``, ``chroma:all-MiniLM-L6-v2,path=store,ef_search=200``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rag_sourcebias.adapters import retriever_factory
from rag_sourcebias.cli.encoders import ENCODER_OPTIONS, number, sentence_encoder
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
    _part: tuple[int, int] | None = None

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
        rest = {k: v for k, v in spec.options.items() if k not in ENCODER_OPTIONS}
        if factory is None:
            similarity = rest.pop("similarity", "cosine")
            if rest:
                raise _unknown(spec, rest, (*ENCODER_OPTIONS, "similarity"))
            if similarity not in ("cosine", "dot"):
                raise DataError(f"similarity {similarity!r} is not one of cosine, dot")
            return DenseSpec(
                self._encoder(spec),
                name=f"dense:{spec.model}",
                similarity="dot" if similarity == "dot" else "cosine",
                progress=self._documents,
            )
        return factory(self._encoder(spec), **rest)

    def encoder(self, text: str) -> Encoder:
        """Build the encoder that ``text`` names: ``model[,option=value…]``."""
        # no kind goes before it, so that a path may hold a colon
        spec = parse_spec(f"dense:{text}")
        unknown = {k: v for k, v in spec.options.items() if k not in ENCODER_OPTIONS}
        if unknown or not spec.model:
            raise DataError(
                f"encoder {text!r} names no model; write for example all-MiniLM-L6-v2"
                if not spec.model
                else f"an encoder has no option {', '.join(sorted(unknown))}; there are "
                f"{', '.join(ENCODER_OPTIONS)}"
            )
        # one model may be audited several times, with other settings
        told = [f"{k}={spec.options[k]}" for k in ("dtype", "max_length") if k in spec.options]
        encoder = self._encoder(spec)
        return self._encoder(spec, name=",".join([encoder.name, *told])) if told else encoder

    def reranked(self, first: RetrieverSpec, model: str, *, depth: int) -> RetrieverSpec:
        """Put a reranker on a first stage; ``ql:<model>`` is query likelihood."""
        return RerankedSpec(first, self.reranker(model), depth=depth)

    def _bm25(self, spec: ParsedSpec) -> RetrieverSpec:
        unknown = {k: v for k, v in spec.options.items() if k not in _BM25_OPTIONS}
        if unknown:
            raise _unknown(spec, unknown, _BM25_OPTIONS)
        if spec.model == "paper":
            return BM25Spec.paper()
        if spec.model:
            raise DataError(f"bm25:{spec.model} is unknown; there are bm25 and bm25:paper")
        text = {k: v for k, v in spec.options.items() if k in ("method", "stemmer", "stopwords")}
        numbers = {k: number(spec.options, k) for k in ("k1", "b") if k in spec.options}
        none = {k: None if v in ("none", "") else v for k, v in text.items()}
        return BM25Spec(**numbers, **none)  # type: ignore[arg-type]

    def _encoder(self, spec: ParsedSpec, *, name: str | None = None) -> Encoder:
        options = {k: v for k, v in spec.options.items() if k in ENCODER_OPTIONS}
        key = (spec.model, name, tuple(sorted(options.items())))
        if key not in self._encoders:
            encoder = sentence_encoder(spec.model, options, name=name)
            self._encoders[key] = CachedEncoder(
                encoder, VectorCache(self.cache / "vectors.sqlite"), progress=self._texts
            )
        return self._encoders[key]

    def _documents(self, done: int, total: int) -> None:
        """Show how much of a corpus is encoded; it reaches the encoder in parts."""
        self._part = (done, total) if done < total else None
        self.progress(done, total)

    def _texts(self, done: int, total: int) -> None:
        """Show how many texts an encoder has done, of a part of a corpus or on their own."""
        if self._part is None:
            self.progress(done, total)
        else:
            before, documents = self._part
            self.progress(min(before + done, documents), documents)

    def reranker(self, model: str) -> Reranker:
        """Build the reranker that ``model`` names; ``ql:<model>`` is query likelihood."""
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
