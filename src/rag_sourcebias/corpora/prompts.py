"""Prompts that ask for a rewrite of a text.

What is quoted from the papers, word for word:

- ``REWRITE``: the prompt of [K] (Dai et al., KDD 2024), "Please rewrite the following text:".
- ``REPHRASE``: the nine instructions of [K] Table 7. That the text follows after a space, as in
  ``REWRITE``, is ours.
- ``STYLES``: the sentences of the styles 1 to 8 of [W] (Cao, WSDM 2025); style 0 is the prompt of
  [K]. How [W] joined a sentence, the request to rewrite and the text is not known to us: that the
  sentence stands first, followed by ``REWRITE``, is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from rag_sourcebias.errors import DataError

__all__ = ["REPHRASE", "REWRITE", "STYLES", "RewritePrompt", "checked_prompts"]

_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_][\w .-]*)\s*\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEXT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RewritePrompt:
    """A request to rewrite a text, which knows of no query.

    Parameters
    ----------
    name : str
        Letters, digits, dots, dashes and underscores; it becomes part of the source tag.
    template : str
        Text with ``{text}`` exactly once. Another placeholder, ``{query}`` above all, is refused;
        braces around anything but a name mean nothing.
    style : str, optional
        Style label of the rewrites.

    Raises
    ------
    DataError
        If the name or the template is not of that form.

    Examples
    --------
    >>> RewritePrompt(name="short", template="Shorten: {text}").fill("{a} and {b}")
    'Shorten: {a} and {b}'
    """

    name: str
    template: str
    style: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DataError(
                f"prompt name {self.name!r} may hold letters, digits, dots, dashes and underscores "
                "only: it becomes part of a source tag"
            )
        foreign = [m for m in _PLACEHOLDER.findall(self.template) if m != "text"]
        if foreign:
            why = (
                "a rewrite must not know the query"
                if "query" in foreign[0].lower()
                else "there is only the text to fill in"
            )
            raise DataError(
                f"prompt {self.name!r} asks for {{{foreign[0]}}}; {why}: use {_TEXT} alone"
            )
        if self.template.count(_TEXT) != 1 or "{{text}}" in self.template:
            raise DataError(
                f"prompt {self.name!r} must hold {_TEXT}, in single braces, exactly once; it is "
                f"{self.template!r:.120}"
            )
        if self.style is not None and not self.style.strip():
            raise DataError(f"prompt {self.name!r} has an empty style; leave it out")

    @property
    def digest(self) -> str:
        """A short hash of the template."""
        return blake2b(self.template.encode(), digest_size=8).hexdigest()

    def fill(self, text: str) -> str:
        """Put a text at its place; braces within it mean nothing."""
        before, after = self.template.split(_TEXT)
        return before + text + after


REWRITE = RewritePrompt(name="rewrite", template="Please rewrite the following text: {text}")
"""The prompt of [K]."""

_REPHRASE = (
    "Rewrite the text below in your own words:",
    "Paraphrase the provided text while maintaining its meaning:",
    "Summarize the following passage in a concise manner:",
    "Simplify the given passage while keeping the main ideas:",
    "Rephrase the given text using alternative expressions:",
    "Condense the following passage to focus on key points:",
    "Briefly restate the provided text without losing its essence:",
    "Reword the passage below to make it more succinct:",
    "Express the following text in a different way while keeping its intent:",
)

REPHRASE: tuple[RewritePrompt, ...] = tuple(
    RewritePrompt(name=f"rephrase-{i}", template=f"{instruction} {_TEXT}")
    for i, instruction in enumerate(_REPHRASE, start=1)
)
"""The nine instructions of [K] Table 7, in its order. Some ask for less text, not for a copy."""

_STYLES = (
    "Your writing style is formal, efficient, and concise, using professional language and "
    "focusing on facts, figures, and data.",
    "Your writing style is clear and using simple language, often avoiding idioms or complex "
    "sentences.",
    "Your writing style is informal, often includes emojis, abbreviations, and internet slang.",
    "Your writing style is polite, respectful, and somewhat formal. You use more traditional "
    "language and avoid using slang or abbreviations.",
    "Your writing style is formal, detailed, and precise manner with structured texts. You use "
    "technical language and focus on evidence-based arguments.",
    "Your writing style is energetic, motivational, and positive manner.",
    "Your writing style is friendly, casual, and empathetic manner with personal anecdotes",
    "Your writing style is expressive and emotive (passionate, engaging, empathetic). You use "
    "metaphors, analogies, and storytelling to convey your points.",
)

STYLES: tuple[RewritePrompt, ...] = (
    RewritePrompt(name="style-0", template=REWRITE.template, style="0"),
    *(
        RewritePrompt(name=f"style-{i}", template=f"{words}\n\n{REWRITE.template}", style=str(i))
        for i, words in enumerate(_STYLES, start=1)
    ),
)
"""The nine styles of [W], labelled ``"0"`` to ``"8"``."""


def checked_prompts(prompts: Sequence[RewritePrompt | str]) -> tuple[RewritePrompt, ...]:
    """Return prompts, bare templates named ``prompt-1``, ``prompt-2``, …; names must differ.

    Raises
    ------
    DataError
        If there are none, a name occurs twice or a template is not valid.
    """
    if isinstance(prompts, str):
        raise DataError("prompts must be a list of prompts or templates, not one string")
    found = tuple(
        RewritePrompt(name=f"prompt-{i}", template=p) if isinstance(p, str) else p
        for i, p in enumerate(prompts, start=1)
    )
    names = [prompt.name for prompt in found]
    twice = [name for name in names if names.count(name) > 1]
    if not found or twice:
        what = f"the name {twice[0]!r} occurs twice" if twice else "there are none"
        raise DataError(f"prompts must be at least one, with different names: {what}")
    return found
