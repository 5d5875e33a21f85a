"""The pairs in which two sources differ most, with both texts."""

from collections.abc import Iterator

import numpy as np

from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.evidence import Evidence, EvidenceText, telling
from rag_sourcebias.core.values import FloatArray, IntArray
from rag_sourcebias.explain.words import Compared
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.evidence import evidence, section


def evidence_of(
    dataset: Dataset,
    sources: tuple[str, str],
    rows: tuple[IntArray, IntArray],
    ratios: FloatArray,
    gaps: tuple[tuple[IntArray, IntArray], FloatArray] | None,
) -> tuple[Evidence, ...]:
    """Return the pairs whose scores differ most; without scores, those whose lengths do.

    Parameters
    ----------
    sources : (str, str)
        The baseline and the other.
    rows : two int64 arrays of shape (n,)
        Rows of both versions in the corpus.
    ratios : float64 array of shape (n,)
        ln(words of the other / words of the baseline).
    gaps : optional
        Query row and pair of every relevant (query, pair), and the other's score minus the
        baseline's.
    """
    corpus, ids = dataset.corpus, dataset.corpus.doc_ids
    scored = gaps is not None and len(gaps[1]) > 0
    asked: list[tuple[str, str]] = [("", "")] * len(ratios)
    at, values = np.arange(len(ratios)), np.asarray(ratios, dtype=np.float64)
    if gaps is not None and scored:
        (queries, at), values = gaps
        asked = [(dataset.queries[q].query_id, dataset.queries[q].text) for q in queries.tolist()]
    names = [f"{query} {ids[rows[0][pair]]}" for (query, _), pair in zip(asked, at, strict=True)]

    def side(of: int, place: int) -> EvidenceText:
        row = int(rows[of][at[place]])
        return EvidenceText.of(sources[of], corpus.texts[row], doc_id=ids[row])

    return tuple(
        Evidence(
            item=asked[place][0] or ids[rows[0][at[place]]],
            asked=asked[place][1],
            value=float(values[place]),
            first=side(0, place),
            second=side(1, place),
        )
        for place in telling(values, names).tolist()
    )


def evidence_section(sources: tuple[Compared, ...]) -> b.Section | None:
    """Return the pairs in which each source differs most from the baseline."""
    return section(
        ((s.name, _cases(s)) for s in sources),
        title="The pairs behind it",
        lead="Above 0 the other version scores higher for the query, or is longer where no scores "
        "were computed. Words that the other version lacks are marked.",
    )


def _cases(s: Compared) -> Iterator[b.Block]:
    scored = s.found.decomposition is not None
    return evidence(
        s.found.evidence,
        of="score difference" if scored else "ln of the ratio of lengths",
        noun="query" if scored else "pair",
        columns=(s.short_base, s.short_other, ""),
        write=b.number,
        added=lambda value: b.number(value, digits=4, signed=True),
        caption=f"Pairs with {s.short_other} versions that differ most, and some that differ the "
        "other way",
    )
