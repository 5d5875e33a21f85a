"""What distinguishes the texts of each source before any retriever sees them ([K] Fig. 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rag_sourcebias.audit.text_summaries import text_statistics
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import TEXT_STATISTICS
from rag_sourcebias.types.documents import Corpus
from rag_sourcebias.types.text_stats import TextStatistic

__all__ = ["source_text_statistics"]


def source_text_statistics(
    corpus: Corpus,
    baseline: str,
    *,
    statistics: Sequence[str] = TEXT_STATISTICS,
    confidence_level: float = 0.95,
    sample: int = 2_000,
    rng: np.random.Generator | int = 0,
) -> tuple[TextStatistic, ...]:
    """Summarise the texts of each source, and what rewrites keep of the baseline's texts.

    Parameters
    ----------
    corpus : Corpus
        Untagged documents are left out.
    baseline : str
        The source whose documents are the originals. A document of another source is compared
        with its twins there (the most similar counts); without one it counts for words only.
    statistics, confidence_level, sample, rng
        As for :func:`~rag_sourcebias.audit.text_statistics`.

    Returns
    -------
    tuple of TextStatistic
        The baseline first, then by name of the source.

    Raises
    ------
    DataError
        If no document has the baseline source.
    MissingExtraError
        If documents are paired and the library of a statistic is not installed.
    """
    tags = corpus.tags
    if baseline not in tags.sources:
        raise DataError(
            f"no document has source {baseline!r}; sources are {', '.join(tags.sources) or 'none'}"
        )
    base = tags.sources.index(baseline)
    originals: dict[int, list[str]] = defaultdict(list)
    for row in np.flatnonzero((tags.source_codes == base) & (tags.pair_codes >= 0)):
        originals[int(tags.pair_codes[row])].append(corpus.texts[row])
    texts: dict[str, list[str]] = {}
    references: dict[str, list[list[str]]] = {}
    for code in sorted(range(len(tags.sources)), key=lambda code: code != base):
        rows = np.flatnonzero(tags.source_codes == code)
        if not len(rows):  # a sub-corpus keeps the names of sources it no longer holds
            continue
        source = tags.sources[code]
        texts[source] = [corpus.texts[row] for row in rows]
        references[source] = [originals.get(int(tags.pair_codes[row]), []) for row in rows]
    if baseline not in texts:
        raise DataError(f"no document has source {baseline!r} any more in this part of the corpus")
    return text_statistics(
        texts,
        references,
        original=baseline,
        statistics=statistics,
        confidence_level=confidence_level,
        sample=sample,
        rng=rng,
    )
