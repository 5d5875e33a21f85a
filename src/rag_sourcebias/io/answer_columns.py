"""Which columns of a table of answers hold what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.names import require_name

__all__ = ["AnswerColumns", "find_answer_columns"]

_NAMES = {
    "question": (
        "question_id", "query_id", "qid", "question", "user_input", "query", "prompt", "input",
    ),
    "system": ("system", "system_name", "model", "generator"),
    "answer": ("answer", "response", "output", "prediction", "generated_answer"),
    "reference": (
        "reference", "references", "reference_answer", "golden_answer", "gold_answer",
        "ground_truth", "expected_answer", "expected",
    ),
    "correct": (
        "correct", "is_correct", "human_correct", "human_verdict", "human", "human_label", "label",
    ),
}  # fmt: skip
_WIDE = "answer_"
_VERDICTS = ("judge_", "correct_")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumns:
    """The columns found.

    Parameters
    ----------
    question, reference : str
    system : str or None
    answers : tuple of (answer column, system or "", verdict column)
        One where each row is an answer, several where it is a question (``wide``).
    improper : bool
        Whether there is a column ``improper``.
    """

    question: str
    system: str | None
    reference: str
    answers: tuple[tuple[str, str, str], ...]
    wide: bool
    improper: bool

    @property
    def names(self) -> list[str]:
        """All of them, each once."""
        pairs = [c for answer, _, correct in self.answers for c in (answer, correct)]
        rest = [self.system] * bool(self.system) + ["improper"] * self.improper
        return list(dict.fromkeys([self.question, self.reference, *pairs, *map(str, rest)]))


def find_answer_columns(names: Sequence[str], path: str) -> AnswerColumns:
    """Find the columns of a table of answers.

    Raises
    ------
    DataError
        If one is not found, or several could be meant.
    """
    found = {role: _find(names, role, path) for role in _NAMES}
    wide = [n for n in names if n.startswith(_WIDE) and n != _WIDE]
    answers: tuple[tuple[str, str, str], ...] = ()
    if found["answer"] is None and wide:
        systems = [require_name(column.removeprefix(_WIDE), "system", path) for column in wide]
        verdicts = [next((v + s for v in _VERDICTS if v + s in names), None) for s in systems]
        lacking = [s for s, v in zip(systems, verdicts, strict=True) if v is None]
        if lacking:
            raise DataError(
                f"{path} has answer_{lacking[0]} but neither judge_{lacking[0]} nor "
                f"correct_{lacking[0]}: people's verdicts are needed, empty where nobody judged"
            )
        answers = tuple(zip(wide, systems, map(str, verdicts), strict=True))
        found["correct"] = found["answer"] = ""  # not needed
    missing = [role for role in ("question", "answer", "reference", "correct")
               if found[role] is None]  # fmt: skip
    if missing:
        accepted = "; ".join(f"{role}: {', '.join(_NAMES[role])}" for role in missing)
        raise DataError(
            f"{path}: no column holds {', '.join(missing)}; its columns are {', '.join(names)}. "
            f"Accepted names are: {accepted}"
        )
    return AnswerColumns(
        question=str(found["question"]),
        system=None if answers else found["system"],
        reference=str(found["reference"]),
        answers=answers or ((str(found["answer"]), "", str(found["correct"])),),
        wide=bool(answers),
        improper=bool(answers) and "improper" in names,
    )


def _find(names: Sequence[str], role: str, path: str) -> str | None:
    known = _NAMES[role]
    lower = {name.lower(): name for name in names}
    found = [lower[alias] for alias in known if alias in lower]
    # an id and the text of a question often stand side by side
    if len(found) > 1 and role != "question" and found[0].lower() != known[0]:
        raise DataError(
            f"{path}: columns {' and '.join(map(repr, found))} could all be the {role} column; "
            f"call the right one {known[0]!r}"
        )
    return found[0] if found else None
