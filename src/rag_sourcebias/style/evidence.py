"""The queries that a verdict on styles rests on, with both versions of a document."""

from collections.abc import Iterator

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.finding import Evidence, EvidenceText, number, telling
from rag_sourcebias.report import document as d
from rag_sourcebias.report.document import CaseWords, case_blocks, case_section
from rag_sourcebias.style.data import (
    StyleCode,
    StyledTexts,
    StyleFinding,
    StyleResults,
    StyleRow,
    StyleSystem,
    telling_styles,
)
from rag_sourcebias.style.words import style_name, verdicts


def evidence_of(
    ranks: FloatArray, texts: StyledTexts, row: StyleRow, found: StyleFinding, original: str
) -> tuple[Evidence, ...]:
    """Return the queries in which the two styles of the verdict lie furthest apart.

    Parameters
    ----------
    ranks : float64 array of shape (n, d)
        Under the query style of ``row``.
    """
    if found.code is StyleCode.TIED:
        return ()
    styles = tuple(texts.documents)
    high, low = telling_styles(found, row, original)
    sides = [(style, ranks[:, styles.index(style)]) for style in (high, low)]
    apart = sides[1][1] - sides[0][1]

    def side(at: int, style: str, places: FloatArray) -> EvidenceText:
        return EvidenceText.of(style, texts.documents[style][at] or "", value=float(places[at]))

    return tuple(
        Evidence(
            item=texts.query_ids[at],
            asked=texts.queries[row.query_style][at] or "",
            value=float(apart[at]),
            first=side(at, *sides[0]),
            second=side(at, *sides[1]),
        )
        for at in telling(np.asarray(apart, dtype=np.float64), texts.query_ids).tolist()
    )


def evidence_section(report: StyleResults) -> d.Section | None:
    """Return the queries behind each verdict."""
    systems = [verdict.system for verdict in verdicts(report)]
    return case_section(
        ((system.name, _cases(system)) for system in systems if system.evidence),
        title="The queries behind it",
        lead="The two styles of the verdict in the queries in which they lie furthest apart, and "
        "in some that point the other way. Words that the other version lacks are marked.",
    )


def _cases(system: StyleSystem) -> Iterator[d.Block]:
    first, second = system.evidence[0].first, system.evidence[0].second
    high, low = style_name(first.label), style_name(second.label)
    words = CaseWords(
        noun="query",
        adds="places apart",
        sides=(high, low),
        got="place",
        write=number,
        add=lambda value: number(value, signed=True),
    )
    caption = f"Queries in which {system.name} ranks {high} and {low} furthest apart"
    return case_blocks(system.evidence, words, caption=caption)
