"""From what a model wrote to the rewrite in it.

Chat models put a sentence before the text, quotes or a fence around it, or a remark after it; [K]
strips these. The rules are narrow on purpose: a rule that also fits the original text is not
applied, so that a text which really begins with "Here is a summary:" keeps its opening.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Cleaned", "clean_rewrite"]

_OBJECT = (
    r"(?:re-?writ\w*|re-?phras\w*|paraphras\w*|re-?word\w*|re-?stat\w*|revis\w*|simplif\w*|"
    r"condens\w*|summar\w*|version|text|passage|attempt|alternative)"
)
_COURTESY = r"(?:sure(?: thing)?|certainly|of course|absolutely|okay|ok|great|no problem|gladly)"
_LABEL = (
    r"(?:(?:re-?written|re-?phrased|paraphrased|re-?worded|revised|simplified|condensed|"
    r"summarized|summarised|restated)(?: (?:text|version|passage))?|rewrite|paraphrase|summary)"
)
_WITHIN = r"[^\n:.!?]"  # an opening is one sentence
_PREAMBLE = re.compile(
    r"[*_#>\s]*+(?:"
    rf"(?:{_COURTESY}\s*+[,!.—–-]*+\s*+)?(?:here(?:'s|’s| is| are)|below is|i(?:'|’)ve|i have)\b"
    rf"{_WITHIN}{{0,160}}?\b{_OBJECT}\b{_WITHIN}{{0,160}}:|"
    rf"{_LABEL}[*_]*:|"
    rf"{_COURTESY}[.!]|"
    rf"{_COURTESY}, i(?:(?:'|’)(?:d|ll)| would| can| will)\b{_WITHIN}{{0,80}}[.!:]"
    r")[*_]*(?:\s+|$)",
    re.IGNORECASE,
)
# A blank line, looked for once per run of white space: models in a loop write thousands of breaks.
_BLANK_LINE = r"(?<=\S)[^\S\n]*+\n[^\S\n]*+\n\s*+[*_#(]*+\s*+"
_POSTAMBLE = re.compile(
    rf"{_BLANK_LINE}(?:let me know\b|i hope (?:this|that|it)\b|hope this\b|feel free to\b|"
    r"(?:please )?note(?: that)?:? (?:i|the|this)\b[^\n]*\brewr|is there anything else\b|"
    r"would you like\b)[^\n]*+\s*+$",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    rf"{_BLANK_LINE}(?:(?:key |main |the |here are the )?(?:following )?changes(?: (?:i )?made)?\b"
    r"[^\n]{0,40}:|in this (?:rewritten|revised|rephrased|new) (?:version|text|passage)\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_MY_CHANGES = re.compile(
    rf"{_BLANK_LINE}i(?:(?:'|’)ve| have)? (?:also )?(?:made|changed|replaced|rephrased|reworded|"
    r"rewrote|rewritten|kept|removed|simplified)\b[^\n.]*?\b(?:changes?|edits?|text|passage|"
    r"original|version|words?|wording|meaning|facts|grammar|clarity|tone)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
_FIRST_PERSON = re.compile(r"\bI\b")
_FENCE = re.compile(r"(?P<before>[^`]*)```[\w-]*\n(?P<inner>.*?)\n?```(?P<after>[^`]*)", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "«": "»", "„": "“"}
_REFUSAL = re.compile(
    r"[*_\s]*+(?:(?:i(?:'|’)?m|i am|we(?:'|’)?re|we are)?\s*(?:very |so )?(?:sorry|afraid)\b"
    r"[^.\n]{0,40}?\b(?:i|we) (?:can(?:no|'|’)t|can not|am (?:not able|unable)|won(?:'|’)t)|"
    r"i (?:can(?:no|'|’)t|can not|won(?:'|’)t|will not|am (?:unable|not able) to|must decline)"
    r"[^.\n]{0,30}\b(?:help|assist|rewrite|rephrase|paraphrase|fulfil+|comply|provide|process|"
    r"generate|create|access|complete)|"
    r"(?:unfortunately,? )?i(?:'|’)m (?:unable|not able) to\b|"
    r"as an? (?:ai|artificial intelligence|language model)\b|"
    r"(?:i apologi[sz]e|sorry|my apologies),? but\b|"
    r"(?:please|could you(?: please)?) (?:provide|share|paste|give)(?: me)?(?: with)? "
    r"(?:the|a|some|your) (?:text|passage))",
    re.IGNORECASE,
)


class Cleaned(NamedTuple):
    """The rewrite in an answer.

    Parameters
    ----------
    text : str
    problem : str or None
        ``"empty"``, ``"refusal"``, ``"truncated"`` or ``"filtered"``: there is no rewrite to use.
    steps : tuple of str
        What was stripped: ``"thought"``, ``"fence"``, ``"preamble"``, ``"postamble"``,
        ``"quotes"``.
    """

    text: str
    problem: str | None
    steps: tuple[str, ...]


def clean_rewrite(raw: str, *, original: str, finish_reason: str = "stop") -> Cleaned:
    r"""Find the rewrite in what a model wrote.

    Parameters
    ----------
    raw : str
    original : str
        The text that was to be rewritten; what it has itself is not stripped and no refusal.
    finish_reason : str
        Why the model stopped; ``"length"`` means that the end is missing.

    Examples
    --------
    >>> clean_rewrite("Sure, here's a possible rewrite of the text:\n\nWater is wet.",
    ...               original="Wet is what water is.")
    Cleaned(text='Water is wet.', problem=None, steps=('preamble',))
    """
    text, steps = _stripped(raw.strip(), original.strip())
    problem = None
    if finish_reason == "content_filter":
        problem = "filtered"
    elif finish_reason == "refusal" or _refuses(raw, text, original):
        problem = "refusal"
    elif finish_reason == "length" or _OPEN_THOUGHT.match(text):
        problem = "truncated"
    elif not text:
        problem = "empty"
    return Cleaned(text, problem, tuple(steps))


def _stripped(text: str, original: str) -> tuple[str, list[str]]:
    steps: list[str] = []

    def take(step: str, found: str) -> None:
        nonlocal text
        if found != text:
            text = found
            steps.extend([step] if step not in steps else [])

    if "<think" in text.lower():
        thought = _THOUGHT.match(text)  # a model thinks first
        take("thought", text[thought.end() :].strip() if thought else text)
    fence = _FENCE.fullmatch(text) if "```" in text and "```" not in original else None
    # Prose around a fence is the model's, unless it is longer than what is inside.
    if fence and len(fence["before"] + fence["after"]) <= max(len(fence["inner"]), 200):
        take("fence", fence["inner"].strip())
    if _PREAMBLE.match(text) and not _PREAMBLE.match(original):
        take("preamble", _without_preamble(text))
    if "\n" in text:
        for remark in (_CHANGES, _MY_CHANGES, _POSTAMBLE):
            # Where the author says "I", an "I" in the answer may be the author's.
            own = _FIRST_PERSON if remark is _MY_CHANGES else remark
            if remark.search(text) and not own.search(original):
                take("postamble", remark.sub("", text).strip())
    if original[:1] not in _QUOTES:
        take("quotes", _unquoted(text))
    return text, steps


def _without_preamble(text: str) -> str:
    """Strip up to two openings: "Sure! Here is the rewritten text:" may be two sentences."""
    for _ in range(2):
        found = _PREAMBLE.match(text)
        if found is None:
            break
        text = text[found.end() :].strip()
    return text


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    if closing is None or len(text) < 3 or not text.endswith(closing):
        return text
    inner = text[1:-1]
    # "A" and "B": the first and the last mark do not belong together.
    return text if text[0] in inner or closing in inner else inner.strip()


def _refuses(raw: str, text: str, original: str) -> bool:
    refuses = any(_REFUSAL.match(found) for found in (raw.strip(), text))
    return refuses and not _REFUSAL.match(original.strip())
