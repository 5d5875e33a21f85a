"""``explain``: its options, cached language models, and the command itself."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from rag_sourcebias.core.caches import cache_dir
from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.data import Float32Array
from rag_sourcebias.core.errors import DataError, require_distinct
from rag_sourcebias.core.protocols import ConditionalPerplexity, TextPerplexity
from rag_sourcebias.explain.audit import explain_sources
from rag_sourcebias.explain.data import ExplainConfig
from rag_sourcebias.intake.beir import read_beir
from rag_sourcebias.intake.samples import load_sample
from rag_sourcebias.neural.loading import keep_freed_memory
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.neural.perplexity import CausalPerplexity, MaskedPerplexity
from rag_sourcebias.retrieval.cache import OfModel, VectorCache, through_cache
from rag_sourcebias.terminal.console import deliver, stages
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable, spread, typed

# Options of ``explain``, named once.


_WHAT, _HOW = "What is looked at", "How"


# Language models of ``explain`` from their names, with what they read kept on disk.


_CONDITIONAL = "conditional"
_BATCH = 16  # texts between two commits: some seconds of work


class CachedPerplexity(OfModel):
    """A language model whose values are kept in a :class:`VectorCache`.

    Values are those of float32, whether they come from the cache or not.

    Parameters
    ----------
    inner : TextPerplexity
    cache : VectorCache
    """

    def __init__(self, inner: TextPerplexity, cache: VectorCache) -> None:
        super().__init__(inner)
        self.inner = inner
        self.cache = cache
        self.kind: Literal["causal", "masked"] = inner.kind

    def log_perplexities(
        self, texts: Sequence[str], *, progress: Callable[[int, int], None] | None = None
    ) -> LogPerplexities:
        """Return the log-perplexity of each text; ``progress`` is told of texts."""
        return self._through(
            "perplexity",
            texts,
            lambda rows: self.inner.log_perplexities([texts[row] for row in rows]),
            progress,
        )

    def _through(
        self,
        side: str,
        keys: Sequence[str],
        compute: Callable[[Sequence[int]], LogPerplexities],
        progress: Callable[[int, int], None] | None,
    ) -> LogPerplexities:
        def columns(rows: Sequence[int]) -> Float32Array:
            found = compute(rows)
            cut = np.zeros_like(found.tokens) if found.prefix_cut is None else found.prefix_cut
            return np.column_stack((found.values, found.tokens, found.parts, cut))

        table = through_cache(
            self.cache,
            (self.fingerprint, side),
            keys,
            columns,
            batch_size=_BATCH,
            progress=progress,
        )
        tokens, parts, cut = table[:, 1:].T.astype(np.int64)
        return LogPerplexities(
            values=table[:, 0].astype(np.float64),
            tokens=tokens,
            parts=parts,
            prefix_cut=cut if side == _CONDITIONAL else None,
        )


class CachedConditional(CachedPerplexity):
    """The same of a causal model, which can also read one text after another.

    Parameters
    ----------
    inner : ConditionalPerplexity
    cache : VectorCache
    """

    def __init__(self, inner: ConditionalPerplexity, cache: VectorCache) -> None:
        super().__init__(inner, cache)
        self._conditional = inner.conditional

    def conditional(
        self,
        prefixes: Sequence[str],
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> LogPerplexities:
        """Return the log-perplexity of each text after its prefix."""
        return self._through(
            _CONDITIONAL,
            [f"{len(p)} {p}{t}" for p, t in zip(prefixes, texts, strict=True)],
            lambda rows: self._conditional([prefixes[r] for r in rows], [texts[r] for r in rows]),
            progress,
        )


def perplexity_models(specs: Sequence[str] | None, *, cache: Path) -> tuple[CachedPerplexity, ...]:
    """Build the models that ``causal:<name>`` and ``masked:<name>`` name.

    Raises
    ------
    DataError
        If a name is not of that form, is there twice, or no such model can be found.
    """
    named = [text.strip() for text in specs or ()]
    require_distinct("--perplexity", named)
    values = VectorCache(cache / "perplexities.sqlite")
    models: list[CachedPerplexity] = []
    for text in named:
        kind, _, name = text.partition(":")
        if kind not in ("causal", "masked") or not name:
            raise DataError(
                f"--perplexity {text!r}: write causal:smollm2, causal:<path> or masked:<path>"
            )
        keep_freed_memory()
        if kind == "masked":
            models.append(CachedPerplexity(MaskedPerplexity(name), values))
        else:
            causal = CausalPerplexity(name, cache=cache / "models")
            models.append(CachedConditional(causal, values))
    return tuple(models)


# ``explain``: what distinguishes the sources, for an encoder and for its scores.


@spread
def explain(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="BEIR folder with corpus/<source>.jsonl per source (same _id = same document "
            "rewritten), queries.jsonl and qrels/<split>.tsv.",
        ),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Use the bundled sample: 160 human passages and their LLM rewrites.",
            rich_help_panel=_WHAT,
        ),
    ] = False,
    split: Annotated[
        str, typer.Option(help="Split of the judgments that are used.", rich_help_panel=_WHAT)
    ] = "test",
    encoder: Annotated[
        str,
        typer.Option(
            help="The model whose vectors are looked at: a sentence-transformers name or "
            "path[,batch_size=…,device=…], or none to compare the texts only.",
            rich_help_panel=_WHAT,
        ),
    ] = "all-MiniLM-L6-v2",
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Source to compare with the baseline, such as llm:gpt-4o; repeatable. "
            "\\[default: all that have pairs]",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    perplexity: Annotated[
        list[str] | None,
        typer.Option(
            help="Language model that reads the texts: causal:smollm2 (the packaged one), "
            "causal:<path> or masked:<path> (BERT and the like: [K]'s pseudo-perplexity); "
            "repeatable. \\[default: none; with smollm2 a pair takes about half a second]",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    config: ExplainConfig,
    report: Annotated[
        Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
    ] = None,
    texts: Texts = True,
    table: TableFile = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder of cached vectors and perplexities; an interrupted run goes on from it.",
            rich_help_panel=_HOW,
        ),
    ] = None,
) -> None:
    """Show what distinguishes LLM texts from human ones for your encoder.

    Compares both versions of documents: length, wording, words that queries need, singular values
    and places of their vectors, perplexity if you name a language model, and which of these goes
    with the difference in scores. Associations: it cannot tell what causes a preference.

    For example:

        rag-sourcebias explain --sample --report report

        rag-sourcebias explain my-data --encoder path/to/model --perplexity causal:smollm2

        rag-sourcebias explain my-data --source llm:gpt-4o --limit 2000 --map tsne --report report

        rag-sourcebias explain my-data --encoder none --perplexity masked:path/to/bert

    An interrupted run goes on where it stopped: vectors and perplexities are cached.
    """
    require_writable(report)
    kept = cache or cache_dir()
    models = perplexity_models(perplexity, cache=kept)
    if (folder is None) != sample:
        raise DataError("give one data set: a BEIR folder or --sample")
    data = load_sample() if folder is None else read_beir(folder, split=split)
    with stages() as progress:
        found = explain_sources(
            data,
            encoder=None
            if encoder == "none"
            else SpecBuilder(kept, progress.advance).encoder(encoder),
            sources=source,
            perplexities=models,
            config=config,
            on_stage=progress.begin,
            on_progress=progress.advance,
        )
    found = replace(
        found, inputs=typed(ctx, "folder", "sample", "split", "baseline_source"), model=encoder
    )
    deliver(found, report, texts=texts, table=table)
