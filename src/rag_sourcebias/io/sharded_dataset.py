"""A data set whose corpus is read a shard at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.protocols import ShardedCorpus
from rag_sourcebias.types import Qrels, Query

__all__ = ["ShardedDataset"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardedDataset:
    """What :class:`~rag_sourcebias.types.Dataset` is, without texts and ids of the corpus.

    Parameters
    ----------
    name : str
    corpus : ShardedCorpus
    queries : tuple of Query
        Those with judgments, in the order of their file.
    query_rows : int64 array of shape (len(queries),)
        Their positions, from 0, among all queries of that file.
    n_query_rows : int
        Number of all queries of that file.
    judged : Qrels
        As the file of judgments gives them: its document ids are those that
        ``corpus.judged_as`` returns, and it may name queries and documents that do not exist.
        :func:`~rag_sourcebias.io.beir_judgments.assemble_judged` makes judgments of documents.
    where : str
        Path of the file of judgments, for messages.
    design : {"rewrites", "independent", "unknown"}
        As for :class:`~rag_sourcebias.types.Dataset`.
    license, attribution : str
    """

    name: str
    corpus: ShardedCorpus
    queries: tuple[Query, ...] = field(repr=False)
    query_rows: npt.NDArray[np.int64] = field(repr=False)
    n_query_rows: int
    judged: Qrels = field(repr=False)
    where: str
    design: Literal["rewrites", "independent", "unknown"] = "unknown"
    license: str = ""
    attribution: str = ""
