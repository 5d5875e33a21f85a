"""A corpus with its queries and judgments, and what it allows one to conclude."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rag_sourcebias.types.documents import Corpus, Query
from rag_sourcebias.types.relevance import Qrels

__all__ = ["Dataset"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Everything an audit of a retriever needs.

    Parameters
    ----------
    name : str
    corpus : Corpus
        The mixed corpus: documents of every source.
    queries : tuple of Query
    qrels : Qrels
    design : {"rewrites", "independent", "unknown"}
        ``"rewrites"``: documents of different sources with one ``pair_id`` say the same thing, so
        a skew is source bias proper. ``"independent"``: they answer the same query but differ in
        content and quality, so a skew is not bias by itself.
    license, attribution : str
        Shown in every report made from the data.
    """

    name: str
    corpus: Corpus = field(repr=False)
    queries: tuple[Query, ...] = field(repr=False)
    qrels: Qrels = field(repr=False)
    design: Literal["rewrites", "independent", "unknown"] = "unknown"
    license: str = ""
    attribution: str = ""
