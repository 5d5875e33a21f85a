"""The questions that a verdict on a score rests on, with two answers that are both correct."""

import math
from collections.abc import Iterator

import numpy as np

from rag_sourcebias.answers.data import AnswerBiasResults, AnswerScorer, AnswerTexts, extremes
from rag_sourcebias.core.finding import Evidence, EvidenceText, number, shorten, telling
from rag_sourcebias.report import document as d
from rag_sourcebias.report.document import CaseWords, case_blocks, case_section


def evidence_of(scorer: AnswerScorer, texts: AnswerTexts) -> tuple[Evidence, ...]:
    """Return the questions in which a score parts two correct answers most."""
    if (systems := extremes(scorer.raw)) is None:
        return ()
    rows: dict[str, dict[str, int]] = {}
    for at, (question, system) in enumerate(zip(texts.question_ids, texts.systems, strict=True)):
        usable = texts.correct[at] == 1 and math.isfinite(scorer.scores[at])
        if system in systems and usable:
            rows.setdefault(question, {})[system] = at
    both = {question: [of[s] for s in systems] for question, of in rows.items() if len(of) == 2}
    names = list(both)
    apart = np.array([scorer.scores[i] - scorer.scores[j] for i, j in both.values()])

    def side(at: int, system: str) -> EvidenceText:
        return EvidenceText.of(system, texts.answers[at], value=float(scorer.scores[at]))

    return tuple(
        Evidence(
            item=names[place],
            asked=next(iter(texts.references[both[names[place]][0]]), ""),
            value=float(apart[place]),
            first=side(both[names[place]][0], systems[0]),
            second=side(both[names[place]][1], systems[1]),
        )
        for place in telling(apart, names).tolist()
    )


def evidence_section(report: AnswerBiasResults) -> d.Section | None:
    """Return the questions behind each score's verdict."""
    return case_section(
        ((scorer.name, _cases(scorer)) for scorer in report.scorers if scorer.evidence),
        title="The questions behind it",
        lead="Both answers are correct, so a fair score would give them the same. Words that the "
        "other answer lacks are marked.",
    )


def _cases(scorer: AnswerScorer) -> Iterator[d.Block]:
    high, low = scorer.evidence[0].first.label, scorer.evidence[0].second.label
    words = CaseWords(
        noun="question",
        adds="difference",
        sides=(shorten(high, 24), shorten(low, 24)),
        got="score",
        write=lambda value: number(value, digits=3),
        add=lambda value: number(value, digits=3, signed=True),
        about="Reference",
    )
    caption = f"Questions in which {scorer.name} parts correct answers most"
    return case_blocks(scorer.evidence, words, caption=caption)
