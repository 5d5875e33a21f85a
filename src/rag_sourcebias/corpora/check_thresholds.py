"""Why the thresholds of the checks are what they are, in words for a report."""

from __future__ import annotations

from rag_sourcebias.types.pair_checks import PairThresholds

__all__ = ["threshold_reasons"]

_REASONS = {
    "length_ratio": "a factor of 2 either way is a summary or an expansion, no rewrite",
    "copied": "one changed word breaks five runs of five words: above .8 fewer than one word in "
    "25 was changed, and a retriever sees two copies",
    "repeated": "at .2 a fifth of the text says again what it said; ordinary prose repeats below "
    ".05",
    "end_kept": "at .25 three of four words that only the original's last quarter has are gone, "
    "relative to the rest: it stops early",
    "chance": "a rewrite that is no more like its original than 99 % of mismatched pairs of the "
    "same file is about something else; needs 20 pairs",
    "cosine": "in addition, for those who know their encoder's scale",
    "numbers_kept": "at 1 any missing number is flagged: one wrong figure makes a document answer "
    "wrongly; numbers added are flagged as well",
    "names_kept": "rewrites may turn a name into a pronoun, so one missing is no fault; below .6 "
    "two in five are gone. A swap and two invented names are flagged at any share",
    "language": "a translation is no rewrite",
    "writing": "refusals, what the model said around the text, endings inside a sentence and "
    "verbatim copies are no rewrites",
}


def threshold_reasons(thresholds: PairThresholds) -> dict[str, str]:
    """Return the reason of each threshold; one that was changed says so.

    Examples
    --------
    >>> threshold_reasons(PairThresholds(language=False))["language"]
    'switched off by you'
    """
    default = PairThresholds()
    found = {}
    for name, reason in _REASONS.items():
        value, usual = getattr(thresholds, name), getattr(default, name)
        off = value is None or value is False
        if value == usual:
            found[name] = "off by default: it depends on the encoder" if off else reason
        elif off:
            found[name] = "switched off by you"
        else:
            found[name] = f"set by you; usual: {'off' if usual is None else usual}, as {reason}"
    return found
