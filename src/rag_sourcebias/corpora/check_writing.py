"""What a language model leaves in place of, or around, a rewrite."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rag_sourcebias.corpora.cleaning import clean_rewrite

__all__ = ["is_refusal", "kept_to_the_end", "leftover", "stops_open"]

_CLOSING = re.compile(
    r"(?:\bI hope this (?:helps|meets|rewrite|version)|\blet me know if (?:you|there|this)"
    r"|\bfeel free to (?:ask|let me)|\bnote: (?:I|this rewrite|the rewritten)\b"
    r"|\bI(?:'ve|’ve| have) (?:rewritten|rephrased|paraphrased|tried to|kept|maintained|made)\b"
    r"[^\n]{0,60}\b(?:text|passage|version|original|meaning|tone))[^\n]{0,200}\s*\Z",
    re.IGNORECASE,
)
_MARKS = re.compile(
    r"<\|[a-z_]{2,20}\|>|\[/?INST\]|</?s>|</?think>|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|\A\s*(?:assistant|output)\s*:|\{\{[\w -]+\}\}",
    re.IGNORECASE,
)
# Models that degenerate write thousands of empty lines, on which patterns take hours.
_SPACE = re.compile(r"\s{3,}")
_LETTER = re.compile(r"[^\W_]{4,}")
_CLOSING_KINDS = frozenset(["So", "Sk", "Pe", "Pf", "Po", "Mn", "Cf"])
_EMOJI = re.compile("[\u2600-\u27bf\U0001f300-\U0001faff]")
_LAST = 4
_MIN_LAST = 6


def is_refusal(original: str, rewrite: str) -> bool:
    """Whether the rewrite declines the request, where the original does not read like that."""
    return clean_rewrite(_SPACE.sub("\n\n", rewrite), original=original).problem == "refusal"


def leftover(original: str, rewrite: str) -> str:
    """Return what a model said around the text, or a mark of its chat template; "" if nothing.

    What :func:`clean_rewrite` would strip (but quotes), and remarks that it leaves because to
    strip them could be wrong.
    """
    rewrite = _SPACE.sub("\n\n", rewrite)
    cleaned = clean_rewrite(rewrite, original=original)
    if set(cleaned.steps) - {"quotes"}:
        before, _, after = rewrite.partition(cleaned.text)
        return " ".join(f"{before} {after}".split()) or ", ".join(cleaned.steps)
    for pattern in (_CLOSING, _MARKS):
        found = pattern.search(rewrite)
        if found and found.group().strip().lower() not in original.lower():
            return " ".join(found.group().split())
    return ""


def stops_open(original: str, rewrite: str) -> bool:
    """Whether the rewrite ends in the middle of a sentence though the original does not.

    A rewrite with emoji, or that nowhere ends a sentence with a full stop, may end without one.
    """
    last, last_original = rewrite.rstrip()[-1:], original.rstrip()[-1:]
    if not last or not last_original or _closes(last) or not _closes(last_original):
        return False
    # A list's last item and a heading end without a full stop, as other lines of the text do.
    lines = [line.rstrip() for line in rewrite.splitlines() if line.strip()]
    if any(not _closes(line[-1]) and line[-1] not in ",:;-–—" for line in lines[:-1]):
        return last in ",;-–—("
    if _EMOJI.search(rewrite):
        return False
    return bool(re.search(r"[.!?。！？]\s", rewrite)) or last in ",;:-–—("


def _closes(character: str) -> bool:
    """Whether a text may end with the character: closing punctuation, or a symbol as emoji are."""
    return character not in ",:;、，" and unicodedata.category(character) in _CLOSING_KINDS


def kept_to_the_end(original: Sequence[str], rewrite: Sequence[str]) -> float:
    """How much of the original's last quarter is kept, against its first three quarters.

    Words of at least four letters are compared by their first five. 1 where both parts are kept
    alike, near 0 where the rewrite stops before the original ends; 1 also where the last quarter
    has fewer than six such words of its own.
    """
    stems = [word[:5] for word in original if _LETTER.fullmatch(word)]
    cut = len(stems) - len(stems) // _LAST
    first = set(stems[:cut])
    last = set(stems[cut:]) - first
    if len(last) < _MIN_LAST:
        return 1.0
    there = {word[:5] for word in rewrite}
    kept_first, kept_last = len(first & there) / len(first), len(last & there) / len(last)
    return min(kept_last / kept_first, 1.0) if kept_first else 1.0
