"""The queries that a verdict on styles rests on, with both versions of a document."""

from collections.abc import Iterator

import numpy as np

from rag_sourcebias.core.data import FloatArray
from rag_sourcebias.core.evidence import Evidence, EvidenceText, telling
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report.evidence import evidence, section
from rag_sourcebias.style.data import (
    StyleCode,
    StyledTexts,
    StyleFinding,
    StyleReport,
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


def evidence_section(report: StyleReport) -> b.Section | None:
    """Return the queries behind each verdict."""
    systems = [verdict.system for verdict in verdicts(report)]
    return section(
        ((system.name, _cases(system)) for system in systems if system.evidence),
        title="The queries behind it",
        lead="The two styles of the verdict in the queries in which they lie furthest apart, and "
        "in some that point the other way. Words that the other version lacks are marked.",
    )


def _cases(system: StyleSystem) -> Iterator[b.Block]:
    first, second = system.evidence[0].first, system.evidence[0].second
    high, low = style_name(first.label), style_name(second.label)
    return evidence(
        system.evidence,
        of="places apart",
        noun="query",
        columns=(high, low, "place"),
        write=b.number,
        added=lambda value: b.number(value, signed=True),
        caption=f"Queries in which {system.name} ranks {high} and {low} furthest apart",
    )
