"""What judges are asked.

The relevance prompts are listings 1 and 2 of Appendix A of [R] (Oosterhuis et al., KDD 2024,
"Reliable Confidence Intervals for Information Retrieval Evaluation Using Generative A.I."), word
for word, with the label suffixes whose log-probability is read there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from rag_sourcebias.errors import DataError

__all__ = [
    "CORRECTNESS",
    "PLACEHOLDERS",
    "RELEVANCE_DOCUMENT",
    "RELEVANCE_PASSAGE",
    "VERBALISED",
    "GradedPrompt",
]

_PLACEHOLDER = re.compile(r"\{([a-z]+)\}")

PLACEHOLDERS = ("query", "passage", "document", "question", "reference", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedPrompt:
    """A question whose answer is a grade.

    Parameters
    ----------
    name : str
        Name in reports.
    template : str
        Text with placeholders ``{query}``, ``{passage}`` or ``{document}`` (relevance), or
        ``{question}``, ``{reference}``, ``{answer}`` (correctness). Other braces stay as they are.
    labels : tuple of str
        How each grade is written, the lowest first, exactly as it follows the template (a model
        that expects a space before its answer needs labels that begin with one).

    Raises
    ------
    DataError
        If there is no placeholder, or labels are not at least two distinct ones.

    Examples
    --------
    >>> prompt = GradedPrompt(name="yes-no", template="Is {passage} wet?", labels=(" no", " yes"))
    >>> prompt.fill({"passage": "water {sic}"})
    'Is water {sic} wet?'
    """

    name: str
    template: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.placeholders:
            raise DataError(
                f"prompt {self.name!r} has no placeholder; write for example {{query}} and "
                f"{{passage}} (known are {', '.join(PLACEHOLDERS)})"
            )
        plain = [label.strip().casefold() for label in self.labels]
        if len(plain) < 2 or len(set(plain)) < len(plain) or "" in plain:
            raise DataError(
                f"prompt {self.name!r} has labels {self.labels}; at least two are needed, distinct "
                "and not empty"
            )

    @property
    def placeholders(self) -> tuple[str, ...]:
        """Names of the placeholders, in the order of their first use."""
        found = _PLACEHOLDER.findall(self.template)
        return tuple(dict.fromkeys(name for name in found if name in PLACEHOLDERS))

    @property
    def digest(self) -> str:
        """A short hash of template and labels, for reports."""
        text = "\0".join((self.template, *self.labels))
        return blake2b(text.encode(), digest_size=6).hexdigest()

    def check(self, texts: Mapping[str, str]) -> None:
        """Raise a DataError if a text is missing."""
        missing = [name for name in self.placeholders if name not in texts]
        if missing:
            raise DataError(
                f"prompt {self.name!r} needs {{{missing[0]}}}, the item has {sorted(texts)}"
            )

    def fill(self, texts: Mapping[str, str]) -> str:
        """Put texts at the placeholders; braces within them mean nothing.

        Raises
        ------
        DataError
            If a text is missing.
        """
        self.check(texts)
        return _PLACEHOLDER.sub(
            lambda m: texts[m[1]] if m[1] in PLACEHOLDERS else m[0], self.template
        )


RELEVANCE_PASSAGE = GradedPrompt(
    name="[R] listing 1 (passage, 4 grades)",
    template="""\
Assess the relevance of the passage to the query on a four-point scale:
[0] Irrelevant: The passage has nothing to do with the query.
[1] Related: The passage seems related to the query but does not answer it.
[2] Highly relevant: The passage has some answer for the query, but the answer may be a bit \
unclear, or hidden amongst extraneous information.
[3] Perfectly relevant: The passage is dedicated to the query and contains the exact answer.
Query: {query}
Passage: {passage}
Relevance:""",
    labels=("0", "1", "2", "3"),
)
"""Four grades, as used for TREC DL."""

RELEVANCE_DOCUMENT = GradedPrompt(
    name="[R] listing 2 (document, 3 grades)",
    template="""\
Assess the relevance of the document to the query on a three-point scale:
[0] Not relevant: The document is not relevant to the query.
[1] Relevant: Parts of the document may be relevant to the query.
[2] Highly Relevant: The document is highly relevant to the query.
Query: {query}
Document: {document}
Relevance:""",
    labels=("[0]", "[1]", "[2]"),
)
"""Three grades, as used for TREC Robust04."""

CORRECTNESS = GradedPrompt(
    name="correctness (2 grades)",
    template="""\
Assess whether the answer to the question is correct, given the reference answer. Several \
references are separated by " / "; agreeing with one of them is enough. The wording, style and \
length of the answer do not matter, only whether what it states agrees with the reference.
[0] Incorrect: The answer contradicts the reference, does not contain it, or does not answer.
[1] Correct: The answer contains the reference or means the same.
Question: {question}
Reference: {reference}
Answer: {answer}
Correctness:""",
    labels=("0", "1"),
)
"""Whether an answer agrees with a reference answer."""

VERBALISED = """

Answer with a JSON object and nothing else. Its keys are {labels}; its values are the \
probabilities, which sum to 1, that each of them is the right assessment."""
"""What follows the prompt in mode verbalised."""
