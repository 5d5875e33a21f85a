"""The verb: score answers with encoders, then measure what the scores reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_sourcebias.audit.answers import measure_answer_bias
from rag_sourcebias.audit.answers_summary import check_answers
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import reference_similarity
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.answer_report import AnswerBiasReport, AnswerConfig
from rag_sourcebias.types.answer_texts import AnswerTexts

__all__ = ["audit_answers"]


def audit_answers(
    answers: AnswerTexts,
    encoders: Sequence[Encoder],
    *,
    fit_on: AnswerTexts | None = None,
    config: AnswerConfig | None = None,
    text_statistics: bool = True,
    on_stage: Callable[[str], None] | None = None,
) -> AnswerBiasReport:
    """Score answers as embedding-based correctness does, and measure what the scores reward.

    The score is the cosine of the answer and the reference, the nearest where a question has
    several references ([W] §5; the answer similarity of ragas, LlamaIndex and LangChain).

    Parameters
    ----------
    answers : AnswerTexts
        Of at least 2 systems to the same questions, with human verdicts.
    encoders : sequence of Encoder
        Names must differ.
    fit_on : AnswerTexts, optional
        Other judged answers from which each encoder's adjustment is learned. Without them it is
        cross-fitted on ``answers``.
    config : AnswerConfig, optional
    text_statistics : bool
        Compare the correct answers' texts with their references too.
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    AnswerBiasReport
        With one scorer per encoder.

    Raises
    ------
    DataError
        As for :func:`measure_answer_bias`; if encoders are missing or share a name; if an encoder
        returns a vector that is zero or not finite.
    """
    config = config or AnswerConfig()
    stage = on_stage or (lambda _: None)
    names = [encoder.name for encoder in encoders]
    if not names or len(set(names)) != len(names):
        raise DataError(f"give one or more encoders with different names, got {names}")
    if fit_on is not None and not config.adjust:
        raise DataError("fit_on serves the adjustment, which adjust=False switches off")
    check_answers(answers)  # before minutes of encoding
    scores, fit_scores = {}, {}
    for encoder in encoders:
        stage(f"{encoder.name}: comparing {len(answers):,} answers with their references")
        scores[encoder.name] = reference_similarity(answers.references, answers.answers, encoder)
        if fit_on is not None:
            stage(f"{encoder.name}: comparing {len(fit_on):,} answers to fit on")
            fit_scores[encoder.name] = reference_similarity(
                fit_on.references, fit_on.answers, encoder
            )
    stage("measuring scores and texts" if text_statistics else "measuring")
    return measure_answer_bias(
        scores,
        answers,
        config=config,
        fit_scores=None if fit_on is None else fit_scores,
        fit_on=fit_on,
        settings={encoder.name: dict(encoder.settings) for encoder in encoders},
        text_statistics=text_statistics,
    )
