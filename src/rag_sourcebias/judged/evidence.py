"""The items on which a judge and people disagree most."""

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.finding import Evidence, EvidenceText, number, telling
from rag_sourcebias.judged.data import JudgedResults
from rag_sourcebias.judged.words import digits_of
from rag_sourcebias.report import document as d
from rag_sourcebias.report.document import CaseWords, case_blocks


def evidence_of(items: JudgedItems) -> tuple[Evidence, ...]:
    """Return the labelled items whose judge value lies furthest from people's."""
    apart = np.asarray(items.judge - items.human, dtype=np.float64)
    return tuple(
        Evidence(
            item=items.ids[at],
            value=float(apart[at]),
            first=EvidenceText(label="people", value=float(items.human[at])),
            second=EvidenceText(label="judge", value=float(items.judge[at])),
        )
        for at in telling(apart, items.ids).tolist()
    )


def evidence_section(report: JudgedResults) -> d.Section:
    """Return the items that people and the judge see most differently."""
    digits = digits_of(report, report.means[0].measure)
    words = CaseWords(
        noun="item",
        adds="judge − people",
        sides=("people", "judge"),
        got="value",
        write=lambda value: number(value, digits=digits),
        add=lambda value: number(value, digits=digits, signed=True),
    )
    caption = "Items that the judge and people see most differently"
    return d.Section(
        id="evidence",
        nav="Evidence",
        title="Where the judge is furthest off",
        lead="The labelled items on which the judge lies furthest from people, and some on which "
        "it errs the other way. Read them before you trust the judge.",
        blocks=tuple(case_blocks(report.evidence, words, caption=caption)),
    )
