"""What people are to compare: twins of a data set, with the queries they are relevant to."""

from __future__ import annotations

from rag_sourcebias.mitigate.twin_texts import TwinTexts, training_pairs, twin_texts
from rag_sourcebias.types.annotations import AnnotationUnit
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus

__all__ = ["annotation_units"]


def annotation_units(
    data: Dataset | Corpus,
    *,
    source: str | None = None,
    baseline: str = "human",
    min_grade: int = 1,
) -> tuple[AnnotationUnit, ...]:
    """Collect the triples <query, human text, rewrite> of [K] Table 3, or pairs without queries.

    Parameters
    ----------
    data : Dataset or Corpus
        Of a data set every pair with every query it is relevant to; of a corpus, which has no
        queries, every pair once. Read it without titles, as [K] did: those of one source only
        would tell who wrote a text.
    source : str, optional
        May be left out where only one other source has pairs.
    baseline : str
    min_grade : int
        Lowest grade that counts as relevant, at least 1.

    Returns
    -------
    tuple of AnnotationUnit
        For :func:`rag_sourcebias.corpora.annotation_sheet`; ids are ``"<query> <pair>"`` or the
        pair's.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, several sources could be meant, or no pair is relevant.

    Examples
    --------
    >>> from rag_sourcebias import load_sample
    >>> unit = annotation_units(load_sample())[0]
    >>> unit.sources, unit.query.split()[0]
    (('human', 'llm:claude'), 'is')
    """
    if isinstance(data, Corpus):
        twins = twin_texts(data, source=source, baseline=baseline)
        return tuple(_unit(twins, row, pair_id, "") for row, pair_id in enumerate(twins.pair_ids))
    found = training_pairs(data, source=source, baseline=baseline, min_grade=min_grade)
    twins = found.twins
    return tuple(
        _unit(twins, row, f"{query_id} {twins.pair_ids[row]}", query)
        for query_id, query, row in zip(
            found.query_ids, found.queries, found.rows.tolist(), strict=True
        )
    )


def _unit(twins: TwinTexts, row: int, unit_id: str, query: str) -> AnnotationUnit:
    return AnnotationUnit(
        unit_id=unit_id,
        texts=(twins.baseline_texts[row], twins.source_texts[row]),
        sources=(twins.baseline, twins.source),
        query=query,
    )
