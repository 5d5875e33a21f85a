"""Average rank of every document style under every query style ([W] Table 1, Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures.style import unfairness_score
from rag_sourcebias.measures.style_checks import (
    Missing,
    complete_queries,
    query_names,
    unique_names,
)
from rag_sourcebias.measures.style_ranks import StyleRanks, TieRank, rank_versions
from rag_sourcebias.types.serial import from_plain, to_plain

__all__ = ["StyleMatrix"]

_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleMatrix:
    """Ranks of d document styles for n queries, each query written in q styles.

    Parameters
    ----------
    query_ids : tuple of str, length n
        Queries that have every version.
    query_styles : tuple of str, length q
    doc_styles : tuple of str, length d
    ranks : float64 array of shape (n, q, d)
        Rank of each document style, 1 is most similar; in [1, d].
    ties : {"average", "min", "max"}
        How tied scores were ranked.
    dropped : tuple of str
        Queries left out because a version was missing.
    """

    query_ids: tuple[str, ...]
    query_styles: tuple[str, ...]
    doc_styles: tuple[str, ...]
    ranks: npt.NDArray[np.float64] = field(repr=False)
    ties: TieRank = "average"
    dropped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        unique_names(self.query_ids, "query id")
        unique_names(self.query_styles, "query style")
        d = len(unique_names(self.doc_styles, "document style", at_least=2))
        shape = (len(self.query_ids), len(self.query_styles), d)
        if self.ranks.shape != shape:
            raise DataError(
                f"ranks have shape {self.ranks.shape}, expected {shape}: queries, query styles, "
                "document styles"
            )
        if not np.all((self.ranks >= 1) & (self.ranks <= d)):
            raise DataError(f"ranks of {d} document styles must lie in [1, {d}]")
        if self.ties == "average":
            wrong = np.abs(self.ranks.sum(axis=2) - d * (d + 1) / 2) > _ROUNDING * d
            if wrong.any():
                query, form = np.argwhere(wrong)[0]
                raise DataError(
                    f"query {self.query_ids[query]!r} (query style {self.query_styles[form]!r}): "
                    f"ranks sum to {self.ranks[query, form].sum():g}, but ranks of {d} document "
                    f"styles sum to {d * (d + 1) / 2:g}"
                )
        elif self.ties not in ("min", "max"):
            raise DataError(f"unknown tie rank {self.ties!r}; there are 'average', 'min', 'max'")

    @classmethod
    def from_scores(
        cls,
        scores: npt.NDArray[np.floating[Any]],
        *,
        query_styles: Sequence[str],
        doc_styles: Sequence[str],
        query_ids: Sequence[str] | None = None,
        ties: TieRank = "average",
        missing: Missing = "refuse",
    ) -> StyleMatrix:
        """Rank the document versions under every query version.

        Parameters
        ----------
        scores : float array of shape (n, q, d)
            Similarity of query i in query style a to its document in style b; NaN marks a version
            that does not exist.
        missing : {"refuse", "balanced"}
            Raise when a version is missing, or leave out that query under every query style, so
            that all cells rest on the same queries; they are listed in :attr:`dropped`.

        Raises
        ------
        DataError
            If names repeat, shapes disagree, there are fewer than 2 document styles, a score is
            infinite, or a version is missing and ``missing="refuse"``.
        InsufficientDataError
            If no query has every version.
        """
        values = np.asarray(scores, dtype=np.float64)
        if values.ndim != 3 or values.shape[1:] != (len(query_styles), len(doc_styles)):
            raise DataError(
                f"scores have shape {values.shape}, expected (queries, {len(query_styles)}, "
                f"{len(doc_styles)}): queries, query styles, document styles"
            )
        ids = query_names(query_ids, len(values))
        forms = unique_names(query_styles, "query style", at_least=1)
        styles = unique_names(doc_styles, "document style", at_least=2)
        keep = complete_queries(values, ids, forms, styles, missing=missing)
        return cls(
            query_ids=tuple(q for q, kept in zip(ids, keep, strict=True) if kept),
            query_styles=forms,
            doc_styles=styles,
            ranks=rank_versions(values[keep], ties=ties),
            ties=ties,
            dropped=tuple(q for q, kept in zip(ids, keep, strict=True) if not kept),
        )

    @classmethod
    def from_ranks(
        cls, rows: Mapping[str, StyleRanks], *, ties: TieRank = "average"
    ) -> StyleMatrix:
        """Put together what was ranked for each query style; only queries of all rows are kept.

        Parameters
        ----------
        rows : mapping of query style to StyleRanks
            Over the same document styles; a query keeps its id in every query style.
        """
        if not rows:
            raise DataError("there is no query style; give ranks for at least one")
        first = next(iter(rows.values()))
        for form, row in rows.items():
            if row.styles != first.styles:
                raise DataError(
                    f"query style {form!r} ranks {list(row.styles)}, others rank "
                    f"{list(first.styles)}; every query style must rank the same document styles"
                )
        known = dict.fromkeys(q for row in rows.values() for q in (*row.query_ids, *row.dropped))
        place = {form: {q: i for i, q in enumerate(row.query_ids)} for form, row in rows.items()}
        common = [q for q in known if all(q in at for at in place.values())]
        if not common:
            raise InsufficientDataError(
                f"no query was ranked under all of the query styles {list(rows)}; use the same "
                "query ids in each",
                n=0,
                n_needed=1,
            )
        return cls(
            query_ids=tuple(common),
            query_styles=tuple(rows),
            doc_styles=first.styles,
            ranks=np.stack(
                [row.ranks[[place[form][q] for q in common]] for form, row in rows.items()], axis=1
            ),
            ties=ties,
            dropped=tuple(q for q in known if q not in set(common)),
        )

    @property
    def average(self) -> npt.NDArray[np.float64]:
        """Average ranks, shape (q, d); each row sums to d(d + 1)/2."""
        means: npt.NDArray[np.float64] = self.ranks.mean(axis=0)
        return means

    def unfairness(self, *, ddof: int = 0) -> npt.NDArray[np.float64]:
        """Unfairness per query style, shape (q,) ([W] Table 1)."""
        return unfairness_score(self.average, ddof=ddof)

    def row(self, query_style: str) -> StyleRanks:
        """Ranks under one query style."""
        if query_style not in self.query_styles:
            raise DataError(
                f"no query style {query_style!r} here; there are {list(self.query_styles)}"
            )
        return StyleRanks(
            query_ids=self.query_ids,
            styles=self.doc_styles,
            ranks=self.ranks[:, self.query_styles.index(query_style)],
            dropped=self.dropped,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> StyleMatrix:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing or holds something else.
        """
        try:
            return from_plain(cls, data)
        except DataError:
            raise
        except (ValueError, TypeError) as error:  # ragged lists, words among numbers
            raise DataError(f"ranks are not a table of numbers ({error})") from error
