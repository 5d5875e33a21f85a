"""The verb: what distinguishes the sources of a corpus, as texts and for an encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rag_sourcebias.audit.data_summary import summarise_dataset
from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.explain_pairs import draw_pairs, judged_pairs_of
from rag_sourcebias.audit.explain_perplexity import KnownPerplexities
from rag_sourcebias.audit.explain_source import Explanation
from rag_sourcebias.audit.explain_vectors import encode_pairs
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.maps import require_map
from rag_sourcebias.mitigate.twin_rows import paired_sources, source_of
from rag_sourcebias.protocols import Encoder, TextPerplexity
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.explain_report import ExplainConfig, ExplainReport

__all__ = ["explain_sources"]

Progress = Callable[[int, int], None]


def explain_sources(
    dataset: Dataset,
    *,
    encoder: Encoder | None = None,
    sources: Sequence[str] | None = None,
    perplexities: Sequence[TextPerplexity] = (),
    config: ExplainConfig | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_progress: Progress | None = None,
) -> ExplainReport:
    """Show what distinguishes each source from the baseline, pair by pair ([K] §4).

    Texts (length, words), what a lexical retriever sees, vectors (cosine, spectrum, geometry,
    map), perplexities, and which of these the score gap of relevant pairs goes with. All of it is
    association: a rewrite differs in many ways at once.

    Parameters
    ----------
    dataset : Dataset
        With pairs: documents of the baseline and of another source that share a pair id. Without
        judged queries, query words and the score gap are left out.
    encoder : Encoder, optional
        None compares texts only. Scores are cosines, unless the encoder's settings say
        ``similarity: dot``.
    sources : sequence of str, optional
        By default every source that has pairs with the baseline.
    perplexities : sequence of TextPerplexity, optional
        Such as ``rag_sourcebias.neural.perplexity.CausalPerplexity``; names must differ. The
        first two enter the decomposition.
    config : ExplainConfig, optional
    on_stage : callable, optional
        Told what begins.
    on_progress : callable, optional
        Told ``(done, total)`` while texts are encoded or read by a language model.

    Returns
    -------
    ExplainReport
        What could not be computed for want of data is None, and ``notes`` of the source say how
        much is needed.

    Raises
    ------
    MissingTagsError, DataError
        If there are no pairs, a source is unknown, or names of models repeat.
    InsufficientDataError
        If no source has two pairs.
    MissingExtraError
        If the library of the map is not installed.

    Examples
    --------
    >>> from rag_sourcebias import load_sample
    >>> report = explain_sources(load_sample())
    >>> [(s.source, s.n_pairs) for s in report.sources]
    [('llm:claude', 160)]
    """
    config = config or ExplainConfig()
    tell = on_stage or (lambda _: None)
    if encoder is not None:
        require_map(config.map_method)
    names = [model.name for model in perplexities]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two language models are called {repeated[0]!r}; names must differ")
    chosen = _sources(dataset.corpus.tags, sources, config.baseline_source)
    judged = judged_pairs_of(dataset)
    draws = [draw_pairs(dataset, source, judged, config) for source in chosen]
    warnings = [
        f"{draw.source}: {len(draw)} complete pair(s), at least 2 are needed; left out"
        for draw in draws
        if len(draw) < 2
    ]
    draws = [draw for draw in draws if len(draw) >= 2]
    if not draws:
        raise InsufficientDataError("nothing can be compared: " + "; ".join(warnings), n_needed=2)
    encoded = None
    if encoder is not None:
        tell(f"encoding with {encoder.name}")
        encoded = encode_pairs(dataset, encoder, draws, on_progress=on_progress)
    work = Explanation(
        dataset=dataset,
        judged=judged,
        encoded=encoded,
        models=tuple(KnownPerplexities(model, progress=on_progress) for model in perplexities),
        config=config,
        on_stage=tell,
    )
    found = tuple(work.of(draw) for draw in draws)
    return ExplainReport(
        config=config,
        data=summarise_dataset(dataset),
        encoder="" if encoder is None else encoder.name,
        sources=found,
        environment={**environment(), **_settings(encoder, perplexities)},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=(*_warnings(dataset), *warnings),
    )


def _sources(tags: TagTable, sources: Sequence[str] | None, baseline: str) -> tuple[str, ...]:
    if sources is None:
        return paired_sources(tags, baseline=baseline) or (source_of(tags, None, baseline),)
    if not sources:
        raise DataError("there is no source to explain: name one, or None for all with pairs")
    if repeated := sorted({name for name in sources if list(sources).count(name) > 1}):
        raise DataError(f"source {repeated[0]!r} is named twice; name each once")
    paired_sources(tags, baseline=baseline)  # says what is missing if there is no baseline
    return tuple(source_of(tags, name, baseline) for name in sources)


def _settings(encoder: Encoder | None, models: Sequence[TextPerplexity]) -> dict[str, str]:
    """Settings of every model, by its name."""
    stated = [] if encoder is None else [("encoder", encoder.settings)]
    stated += [(model.name, model.settings) for model in models]
    return {f"{name}: {key}": value for name, some in stated for key, value in some.items()}


def _warnings(dataset: Dataset) -> list[str]:
    if dataset.design == "independent":
        return [
            "versions are independent texts, not rewrites: what distinguishes them may be content "
            "or quality"
        ]
    return []
