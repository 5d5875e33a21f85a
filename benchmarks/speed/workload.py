"""A synthetic run at the size of a large audit, in our form and in pytrec_eval's."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable


def source_name(i: int) -> str:
    return "human" if i == 0 else f"llm:{i}"


class Workload:
    """``n_queries`` lists of ``depth`` documents; every query has relevant copies in each source.

    Parameters
    ----------
    n_docs : int
        Documents in all, split evenly over the sources; copies of a document share its relevance.
    relevant : int
        Relevant documents per query and source. One copy of each is among the retrieved ones.
    """

    def __init__(
        self,
        *,
        n_queries: int,
        depth: int,
        n_sources: int,
        n_docs: int = 100_000,
        relevant: int = 2,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.sources = tuple(source_name(i) for i in range(n_sources))
        originals = n_docs // n_sources
        self.doc_ids = [f"{s}-{i}" for i in range(originals) for s in self.sources]
        self.query_ids = [f"q{i}" for i in range(n_queries)]
        self.lists = np.array(
            [rng.choice(len(self.doc_ids), depth, replace=False) for _ in range(n_queries)]
        )
        # The first retrieved documents are relevant, and so are all their copies.
        self.judged = self.lists[:, :relevant] // n_sources
        self.grades = rng.integers(1, 4, self.judged.shape)
        self.scores = rng.random((n_queries, depth)).astype(np.float32)
        self.scores[:, :relevant] += 0.8

    def tags(self) -> TagTable:
        return TagTable.from_tags(
            (d, DocTags(source=d.rsplit("-", 1)[0], pair_id=d.rsplit("-", 1)[1]))
            for d in self.doc_ids
        )

    def run(self) -> Run:
        n, depth = self.lists.shape
        return Run.from_arrays(
            query_ids=self.query_ids,
            query_codes=np.repeat(np.arange(n), depth),
            doc_codes=self.lists.ravel(),
            doc_ids=self.doc_ids,
            scores=self.scores.ravel(),
            sort_by_score=True,
        )

    def qrels_of(self, *sources: str) -> dict[str, dict[str, int]]:
        return {
            query: {
                f"{s}-{doc}": int(grade)
                for doc, grade in zip(docs.tolist(), grades.tolist(), strict=True)
                for s in sources
            }
            for query, docs, grades in zip(self.query_ids, self.judged, self.grades, strict=True)
        }

    def qrels(self) -> Qrels:
        return Qrels.from_dict(self.qrels_of(*self.sources))

    def run_dict(self) -> dict[str, dict[str, float]]:
        return {
            query: {self.doc_ids[d]: s for d, s in zip(docs.tolist(), scores.tolist(), strict=True)}
            for query, docs, scores in zip(self.query_ids, self.lists, self.scores, strict=True)
        }
