"""Questions that annotators are asked about pairs and about single documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.annotations import AnnotationQuestion

__all__ = ["QUESTIONS", "chosen_questions"]

_ASKED = (
    # relevance and quality are the two questions of [K] Table 3
    AnnotationQuestion(
        name="relevance",
        text="Which text is more relevant to the query?",
        answers=("A", "B", "equal"),
        labels=("Text A", "Text B", "Equally relevant"),
        n_texts=2,
        needs_query=True,
    ),
    AnnotationQuestion(
        name="quality",
        text="Which text is of better quality (fluency, coherence, information density)?",
        answers=("A", "B", "equal"),
        labels=("Text A", "Text B", "Equally good"),
        n_texts=2,
    ),
    AnnotationQuestion(
        name="content",
        text="Do the two texts say the same?",
        answers=("same", "partly", "different"),
        labels=("The same", "Partly", "Something different"),
        n_texts=2,
    ),
    AnnotationQuestion(
        name="author",
        text="Which text was written by a person?",
        answers=("A", "B", "unsure"),
        labels=("Text A", "Text B", "Cannot tell"),
        n_texts=2,
    ),
    AnnotationQuestion(
        name="grade",
        text="How relevant is the text to the query?",
        answers=("0", "1", "2", "3"),
        labels=("0 · not at all", "1 · related", "2 · highly", "3 · perfectly"),
        n_texts=1,
        needs_query=True,
    ),
)
QUESTIONS: Mapping[str, AnnotationQuestion] = MappingProxyType({q.name: q for q in _ASKED})
"""What annotators can be asked: ``"relevance"`` and ``"quality"`` ([K] Table 3), ``"content"`` and
``"author"`` of pairs of texts, ``"grade"`` of single ones."""


def chosen_questions(
    task: str | AnnotationQuestion | Sequence[str | AnnotationQuestion],
) -> tuple[AnnotationQuestion, ...]:
    """Questions by name, or your own.

    Raises
    ------
    DataError
        If a name is unknown or stands there twice, none is given, or one asks about pairs and
        another about single texts.
    """
    wanted = [task] if isinstance(task, str | AnnotationQuestion) else list(task)
    if not wanted:
        raise DataError(f"task is empty; choose from {', '.join(map(repr, QUESTIONS))}")
    found: list[AnnotationQuestion] = []
    for one in wanted:
        if isinstance(one, str) and one not in QUESTIONS:
            raise DataError(
                f"task {one!r} is unknown; choose from {', '.join(map(repr, QUESTIONS))}, or give "
                "an AnnotationQuestion of your own"
            )
        found.append(QUESTIONS[one] if isinstance(one, str) else one)
    names = [q.name.casefold() for q in found]
    if len(set(names)) != len(names):
        raise DataError(f"task names a question twice: {', '.join(q.name for q in found)}")
    if len({q.n_texts for q in found}) > 1:
        told = ", ".join(f"{q.name!r} ({q.n_texts})" for q in found)
        raise DataError(f"questions about one text and about two cannot share a sheet: {told}")
    return tuple(found)
