"""Hard negatives: documents an encoder confuses with the relevant ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.twin_texts import TrainingPairs
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval.dense import DenseSpec
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.documents import Corpus, Query

__all__ = ["mine_negatives"]


def mine_negatives(
    dataset: Dataset,
    pairs: TrainingPairs,
    rows: IntArray,
    encoder: Encoder,
    *,
    sources: Sequence[str],
    per_source: int,
    depth: int,
    rng: np.random.Generator | int,
) -> IntArray:
    """Draw negatives of each row from what the encoder ranks highest for its query.

    A document with a grade above 0, every version of it, a blank document and a copy of the
    row's own texts are never drawn. Where the ranking has too few others, random documents of the
    source fill up.

    Parameters
    ----------
    dataset : Dataset
        The one the pairs come from.
    rows : int64 array of shape (m,)
        Rows of ``pairs``.
    encoder : Encoder
    sources : sequence of str
        Corpora to draw from.
    per_source : int
    depth : int
        Documents of each source's ranking that are drawn from.
    rng : numpy Generator or int

    Returns
    -------
    int64 array of shape (m, len(sources) · per_source)
        Rows of the corpus.

    Raises
    ------
    DataError
        If a source has fewer documents that may be drawn.
    """
    rng = np.random.default_rng(rng)
    wanted = dict.fromkeys(pairs.query_ids[row] for row in rows)
    queries = [query for query in dataset.queries if query.query_id in wanted]
    never = _relevant_rows(dataset, wanted)
    columns = []
    for source in sources:
        drawer = _Drawer(
            texts=dataset.corpus.texts,
            ranked=_ranked(dataset.corpus, source, queries, encoder, depth),
            pool=_of_source(dataset.corpus, source),
            never=never,
            rng=rng,
        )
        drawn = []
        for row in rows.tolist():
            twin = int(pairs.rows[row])
            own = (pairs.twins.baseline_texts[twin], pairs.twins.source_texts[twin])
            drawn.append(drawer.draw(pairs.query_ids[row], own, per_source))
        columns.append(np.array(drawn, dtype=np.int64).reshape(len(rows), per_source))
    return np.concatenate(columns, axis=1)


def _relevant_rows(dataset: Dataset, queries: dict[str, None]) -> dict[str, set[int]]:
    """Rows of the corpus that are relevant to each query, with all their versions."""
    tags, qrels = dataset.corpus.tags, dataset.qrels
    versions: dict[int, list[int]] = {}
    for row, code in enumerate(tags.pair_codes.tolist()):
        versions.setdefault(code, []).append(row)
    found: dict[str, set[int]] = {query_id: set() for query_id in queries}
    positions = tags.rows_for(qrels.doc_ids)[qrels.doc_codes]
    for code, row, grade in zip(
        qrels.query_codes.tolist(), positions.tolist(), qrels.grades.tolist(), strict=True
    ):
        query_id = qrels.query_ids[code]
        if row < 0 or grade < 1 or query_id not in found:
            continue
        found[query_id].add(row)
        pair = int(tags.pair_codes[row])
        found[query_id].update(versions[pair] if pair >= 0 else ())
    return found


def _of_source(corpus: Corpus, source: str) -> list[int]:
    code = corpus.tags.sources.index(source)
    return np.flatnonzero(corpus.tags.source_codes == code).tolist()


def _ranked(
    corpus: Corpus, source: str, queries: Sequence[Query], encoder: Encoder, depth: int
) -> dict[str, list[int]]:
    """Rows of the best documents of one source for each query."""
    part = corpus.of_source(source)
    run = DenseSpec(encoder).build(part).retrieve(queries, min(depth, len(part)))
    rows = corpus.tags.rows_for(run.doc_ids)[run.doc_codes].tolist()
    return {
        query_id: rows[run.offsets[i] : run.offsets[i + 1]]
        for i, query_id in enumerate(run.query_ids)
    }


@dataclass(frozen=True, kw_only=True)
class _Drawer:
    """Draws from the ranking of one source, and from all of it where that is not enough."""

    texts: Sequence[str]
    ranked: Mapping[str, Sequence[int]]
    pool: Sequence[int]
    never: Mapping[str, Collection[int]]
    rng: np.random.Generator

    def draw(self, query_id: str, own: Collection[str], count: int) -> IntArray:
        best = self._accepted(query_id, own, self.ranked[query_id])
        if len(best) >= count:
            return self.rng.choice(best, count, replace=False)
        known = set(best)
        rest = [row for row in self._accepted(query_id, own, self.pool) if row not in known]
        if len(best) + len(rest) < count:
            raise DataError(
                f"query {query_id!r} has {len(best) + len(rest)} documents of one source that are "
                f"not relevant to it, but hard_negatives asks for {count}; lower it (0 takes the "
                "other documents of a batch), or give a larger corpus"
            )
        filled = self.rng.choice(rest, count - len(best), replace=False)
        return np.concatenate([np.array(best, dtype=np.int64), filled])

    def _accepted(
        self, query_id: str, own: Collection[str], candidates: Sequence[int]
    ) -> list[int]:
        never = self.never[query_id]
        return [
            row
            for row in candidates
            if row not in never and self.texts[row] not in own and not _blank(self.texts[row])
        ]


def _blank(text: str) -> bool:
    return not text or text.isspace()
