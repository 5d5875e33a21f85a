"""``audit source`` on a corpus that is worked on shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rag_sourcebias.audit import ShardedRetriever, audit_source_sharded
from rag_sourcebias.cli.audit_settings import Retrieval
from rag_sourcebias.cli.console import stages
from rag_sourcebias.cli.encoders import ENCODER_OPTIONS, EncoderRecipe
from rag_sourcebias.cli.engine_options import Scale
from rag_sourcebias.cli.specs import SpecBuilder, parse_spec
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import ShardedDataset, cache_dir, open_sharded, open_vectors
from rag_sourcebias.retrieval.vectors import Similarity
from rag_sourcebias.types import AuditConfig, SkewReport

__all__ = ["audit_shards"]

_DEFAULT = "dense:all-MiniLM-L6-v2"


def audit_shards(
    folder: Path | None, asked: Retrieval, scale: Scale, *, split: str, config: AuditConfig
) -> SkewReport:
    """Audit the corpus of a folder without holding it."""
    _check(folder, asked, scale)
    data = open_sharded(folder or "", split=split, shard_documents=scale.shard_documents)
    specs = [_retriever(text, data) for text in asked.retriever or [_DEFAULT]]
    with stages() as progress, closing(scale.started()) as engine:
        builder = SpecBuilder(asked.cache or cache_dir(), progress.advance)
        return audit_source_sharded(
            data,
            specs,
            work_folder=scale.work_folder or cache_dir() / "shards",
            engine=engine,
            config=config,
            depth=asked.depth,
            shard_documents=scale.shard_documents,
            sole_corpus=asked.sole_corpus,
            length_matched=asked.length_matched,
            rerankers=[builder.reranker(model) for model in asked.rerank or []],
            rerank_depth=asked.rerank_depth,
            on_stage=progress.begin,
            on_done=progress.advance,
        )


def _check(folder: Path | None, asked: Retrieval, scale: Scale) -> None:
    if folder is None:
        raise DataError(
            f"--engine {scale.name} reads a corpus from its folder shard by shard; give a BEIR "
            "folder (samples and named data sets are small: use --engine memory)"
        )
    for option, given in (
        ("--text-statistics", asked.text_statistics),
        ("--rerank-controls", asked.rerank_controls),
    ):
        if given:
            raise DataError(
                f"{option} needs the whole corpus in memory: use --engine memory, or leave it out"
            )


def _retriever(text: str, data: ShardedDataset) -> ShardedRetriever:
    spec = parse_spec(text)
    options = dict(spec.options)
    similarity = _similarity(options.pop("similarity", "cosine"))
    index = options.pop("index", "exact").replace("+", ",")
    if spec.kind == "dense" and spec.model:
        known = (*ENCODER_OPTIONS, "similarity", "index")
        _refuse_others(text, options, known)
        recipe = EncoderRecipe(spec.model, tuple(sorted(options.items())))
        recipe()  # a model that is not there is refused before the corpus is read
        return ShardedRetriever(
            name=f"dense:{spec.model}",
            make_encoder=recipe,
            similarity=similarity,
            index=index,
        )
    if spec.kind == "given":
        files = {key: options.pop(key, "") for key in ("documents", "queries")}
        _refuse_others(text, options, ("documents", "queries", "similarity", "index"))
        missing = [key for key, value in files.items() if not value]
        if missing:
            raise DataError(
                f"retriever {text!r} names no {' and no '.join(missing)}; write "
                "given:<name>,documents=<file.npy>,queries=<file.npy>"
            )
        n_documents = data.corpus.shards[-1].rows.stop
        return ShardedRetriever(
            name=f"given:{spec.model}" if spec.model else "given",
            vectors=open_vectors(
                Path(files["documents"]),
                Path(files["queries"]),
                n_documents=n_documents,
                n_queries=data.n_query_rows,
            ),
            similarity=similarity,
            index=index,
        )
    raise DataError(
        f"retriever {text!r} cannot work shard by shard; there are dense:<model> and "
        "given:<name>,documents=<file.npy>,queries=<file.npy>, others need --engine memory"
    )


def _similarity(value: str) -> Similarity:
    if value not in ("cosine", "dot"):
        raise DataError(f"similarity {value!r} is not one of cosine, dot")
    return "dot" if value == "dot" else "cosine"


def _refuse_others(text: str, options: dict[str, str], known: Sequence[str]) -> None:
    unknown = sorted(options.keys() - set(known))
    if unknown:
        raise DataError(
            f"retriever {text!r} has no option {', '.join(unknown)}; there are {', '.join(known)}"
        )
