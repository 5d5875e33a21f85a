"""Words that one source uses more than the other."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.explain.word_sets import Vocabulary, WordSets
from rag_sourcebias.types.explain_report import TermShift

__all__ = ["shifted_terms"]


def shifted_terms(
    human: WordSets, other: WordSets, *, vocabulary: Vocabulary, terms: int = 15
) -> tuple[tuple[TermShift, ...], tuple[TermShift, ...]]:
    """Find the words whose log odds differ most, in standard errors.

    For each word, the odds of a document to hold it, other over human, with Jeffreys' ½ added to
    all four counts; its standard error is √Σ 1/count (Woolf 1955; Haldane 1956). Ranked by their
    ratio, so that a word of two documents does not lead the list. Documents of a source are taken
    to be independent, though not those of a pair: the order is what counts, no test is made.

    Returns
    -------
    more_human, more_other : tuple of TermShift
        Strongest first, at most ``terms`` each; ties by word.
    """
    n = [len(side) for side in (human, other)]
    held = [side.frequencies(len(vocabulary)) for side in (human, other)]
    cells = [
        column + 0.5
        for count, size in zip(held, n, strict=True)
        for column in (count, size - count)
    ]
    log_odds = np.log(cells[2] / cells[3]) - np.log(cells[0] / cells[1])
    z = log_odds / np.sqrt(sum(1 / cell for cell in cells))
    names = np.array(list(vocabulary), dtype=object)

    def strongest(sign: int) -> tuple[TermShift, ...]:
        rows = np.flatnonzero(sign * z > 0)
        best = sorted(rows.tolist(), key=lambda row: (-sign * z[row], names[row]))[:terms]
        return tuple(
            TermShift(
                term=str(names[row]),
                n_human=int(held[0][row]),
                n_other=int(held[1][row]),
                log_odds=float(log_odds[row]),
            )
            for row in best
        )

    return strongest(-1), strongest(1)
