"""A whole retriever, asked what an encoder is asked: similarity of versions, and search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.style_corpora import StyleCorpora
from rag_sourcebias.errors import DataError
from rag_sourcebias.measures import run_style_ranks
from rag_sourcebias.protocols import Retriever, RetrieverSpec
from rag_sourcebias.types.rankings import Run

__all__ = ["StackSearch"]

_DEPTH = (1_000, 10_000)  # fewest and most documents asked for per query
_ENTRIES = 1_000_000  # of one run


class StackSearch:
    """A whole retriever: versions are ranked as it ranks them among everything else."""

    def __init__(
        self, spec: RetrieverSpec, corpora: StyleCorpora, on_stage: Callable[[str], None]
    ) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings, self.on_stage = dict(spec.settings), on_stage
        self.notes: list[str] = []
        depth = int(np.clip(_ENTRIES // len(corpora.rows), *_DEPTH))
        self.depth = min(len(corpora.versions), depth)
        on_stage(f"{self.name}: indexing {len(corpora.versions):,} documents")
        self.retriever = spec.build(corpora.versions)
        self.runs: dict[str, Run] = {}

    def similarity(self) -> npt.NDArray[np.float64]:
        """Minus the rank among the versions; what was not retrieved ties below the rest."""
        tags, found = self.corpora.versions.tags, []
        for form in self.corpora.queries:
            ranks = run_style_ranks(
                self.versions_run(form, self.depth), tags, pair_of=self.corpora.pair_of
            )
            found.append(
                -ranks.ranks[:, [ranks.styles.index(style) for style in self.corpora.styles]]
            )
        unseen = sum(self._unseen(run) for run in self.runs.values())
        total = self.corpora.rows.size * len(self.runs)
        self.notes.append(
            f"ranked among the versions that the retriever returned, at most {self.depth} "
            "documents per query"
            + (
                f"; {unseen / total:.1%} of the versions were not returned and rank below the "
                "others, tied"
                if unseen
                else "; every version was returned"
            )
        )
        return np.stack(found, axis=1)

    def versions_run(self, form: str, depth: int) -> Run:
        """Search all versions, once per query style."""
        if form not in self.runs:
            self.on_stage(f"{self.name}: retrieving for query style {form!r}")
            queries = self.corpora.queries[form]
            run = self.retriever.retrieve(queries, max(depth, self.depth))
            if run.query_ids != tuple(query.query_id for query in queries):
                raise DataError(
                    f"{self.name}: retrieved for {len(run.query_ids)} queries, not for the "
                    f"{len(queries)} asked for in their order; a retriever returns one list per "
                    "query, empty where nothing was found"
                )
            self.runs[form] = run
        return self.runs[form]

    def originals(self) -> Retriever:
        """Index the original documents."""
        return self.spec.build(self.corpora.originals)

    def _unseen(self, run: Run) -> int:
        """Versions of the queries' own documents that are not in the run."""
        pair = self.corpora.versions.tags.pair_codes
        rows = self.corpora.versions.tags.rows_for(run.doc_ids)[run.doc_codes]
        own = np.where(rows >= 0, pair[rows], -1) == pair[self.corpora.rows[run.query_codes, 0]]
        return self.corpora.rows.size - int(np.count_nonzero(own))
