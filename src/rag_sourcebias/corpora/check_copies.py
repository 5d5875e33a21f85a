"""How much of a rewrite was copied, and how much of it repeats itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["RUN", "copied_share", "repeated_share", "units"]

#: Words in a row that are compared.
RUN = 5
_REPEAT = 4
# Chinese, Japanese, Korean and Thai put no spaces between words: each character counts.
_NO_SPACES = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_UNIT = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")


def units(text: str) -> list[str]:
    """Lower-cased words, and single characters in scripts without spaces."""
    return _UNIT.findall(text.lower())


def copied_share(original: Sequence[str], rewrite: Sequence[str]) -> float:
    """Share of the rewrite's runs of five units that stand in the original.

    Shorter rewrites are compared as a whole.
    """
    if len(rewrite) < RUN:
        return float(len(rewrite) > 0 and list(rewrite) == list(original))
    known = set(_runs(original, RUN))
    runs = _runs(rewrite, RUN)
    return sum(run in known for run in runs) / len(runs)


def repeated_share(text: Sequence[str]) -> float:
    """Share of the text's runs of four units that stood in it before, in [0, 1)."""
    runs = _runs(text, _REPEAT)
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def _runs(text: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return list(zip(*(text[i:] for i in range(length)), strict=False))
