"""Does a query in one style raise documents of the same style? ([W] §4, finding c)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.measures.style_matrix import StyleMatrix

__all__ = ["MatchingEffect", "matching_effect"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MatchingEffect:
    """Ranks that a document style gains when the query is in the same style.

    Parameters
    ----------
    styles : tuple of str, length m
        Document styles that have a matching query style.
    reference : str or None
        Query style compared with; None for the mean of all that do not match.
    gains : float64 array of shape (n, m)
        Per query: rank under the reference − rank under the matching query style; positive when
        the matching query raises the document. In [1 − d, d − 1].
    """

    styles: tuple[str, ...]
    reference: str | None
    gains: npt.NDArray[np.float64] = field(repr=False)

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Mean gain per style, shape (m,)."""
        means: npt.NDArray[np.float64] = self.gains.mean(axis=0)
        return means


def matching_effect(
    matrix: StyleMatrix,
    *,
    reference: str | None = None,
    matches: Mapping[str, str] | None = None,
) -> MatchingEffect:
    """Compare the diagonal of the matrix with the rest of each column.

    Parameters
    ----------
    matrix : StyleMatrix
    reference : str, optional
        Query style to compare with, such as the original wording; the mean of all other query
        styles by default.
    matches : mapping of query style to document style, optional
        What counts as the same style; equal names by default.

    Raises
    ------
    DataError
        If nothing matches, a name is unknown, or there is no other query style to compare with.
    """
    forms, styles = matrix.query_styles, matrix.doc_styles
    if reference is not None and reference not in forms:
        raise DataError(f"no query style {reference!r} here; there are {list(forms)}")
    pairs = {f: f for f in forms if f in styles} if matches is None else dict(matches)
    for form, style in pairs.items():
        if form not in forms or style not in styles:
            raise DataError(
                f"match {form!r} → {style!r} is not in the matrix; query styles are "
                f"{list(forms)}, document styles {list(styles)}"
            )
    pairs.pop(reference or "", None)
    if not pairs:
        raise DataError(
            f"no query style matches a document style; query styles are {list(forms)}, document "
            f"styles {list(styles)}; name equal ones with matches="
        )
    if len(forms) < 2:
        raise DataError(f"there is one query style ({forms[0]!r}); matching needs another")
    columns = []
    for form, style in pairs.items():
        ranks = matrix.ranks[:, :, styles.index(style)]
        own = forms.index(form)
        others = (
            np.delete(ranks, own, axis=1).mean(axis=1)
            if reference is None
            else ranks[:, forms.index(reference)]
        )
        columns.append(others - ranks[:, own])
    return MatchingEffect(
        styles=tuple(pairs.values()), reference=reference, gains=np.column_stack(columns)
    )
