"""Judged items from columns, numbered in their order."""

import numpy as np

from rag_sourcebias.core.completions import JudgedItems


def judged_items(human, judge, *, groups=None, clusters=None):
    return JudgedItems(
        ids=tuple(map(str, range(len(human)))),
        human=np.asarray(human, dtype=float),
        judge=np.asarray(judge, dtype=float),
        groups=None if groups is None else tuple(map(str, groups)),
        clusters=None if clusters is None else tuple(map(str, clusters)),
    )
