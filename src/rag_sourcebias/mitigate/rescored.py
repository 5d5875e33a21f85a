"""A retriever whose results are given new scores before anyone sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.exposure_rerank import ExposureReranker
from rag_sourcebias.mitigate.parity import ParityCalibration
from rag_sourcebias.mitigate.perplexity_correction import PerplexityRescorer
from rag_sourcebias.protocols import Encoder, Reranker, Rescorer, Retriever, RetrieverSpec
from rag_sourcebias.types.documents import Corpus, DocTags, Query, TagTable
from rag_sourcebias.types.rankings import RankedList, Run

__all__ = ["RescoredSpec", "rescore_run"]

_KINDS = {
    ParityCalibration: "parity",
    ExposureReranker: "exposure",
    PerplexityRescorer: "perplexity",
}


class RescoredSpec:
    """Recipe of a first stage with a rescorer behind it.

    Documents below ``candidates`` cannot come up. 100 are ample for a top 10: with
    all-MiniLM-L6-v2, offsets of .0034 (as fitted), .017 and .034 on ``nfcorpus`` and ``nq-utd``
    (2,994 queries) gave the top 10 of all documents with 30 candidates already.

    Parameters
    ----------
    first : RetrieverSpec
    rescorer : Rescorer
        Its ``apply_to(run, tags)`` is used where it has one; otherwise it is called query by query.
    name : str, optional
        ``"<first>+<kind of rescorer>"`` by default.
    candidates : int
        Documents of the first stage that are rescored, or as many as are asked for if that is
        more; so the top k does not depend on how many are asked for below this number.

    Raises
    ------
    DataError
        If the rescorer was fitted on scores of another encoder (or reranker) than the first
        stage's, where both are known.
    """

    def __init__(
        self,
        first: RetrieverSpec,
        rescorer: Rescorer,
        *,
        name: str | None = None,
        candidates: int = 100,
    ) -> None:
        if candidates < 1:
            raise DataError(f"candidates must be at least 1, got {candidates}")
        _check_fitted(first, rescorer)
        self.first = first
        self.rescorer = rescorer
        self.candidates = candidates
        self.name = name or f"{first.name}+{_kind(rescorer)}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state, those of the rescorer prefixed with ``rescore.``."""
        second = {"kind": _kind(self.rescorer), **_described(self.rescorer)}
        return {
            **self.first.settings,
            **{f"rescore.{key}": value for key, value in second.items()},
            "rescore.candidates": str(self.candidates),
        }

    @property
    def keeps_order_within_source(self) -> bool:
        """Whether documents of one source cannot change places among themselves."""
        return isinstance(self.rescorer, ParityCalibration | ExposureReranker)

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage."""
        return _RescoredRetriever(
            name=self.name,
            first=self.first.build(corpus),
            rescorer=self.rescorer,
            corpus=corpus,
            candidates=self.candidates,
        )


@dataclass(slots=True, kw_only=True)
class _RescoredRetriever:
    name: str
    first: Retriever
    rescorer: Rescorer
    corpus: Corpus = field(repr=False)
    candidates: int

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query, in the order of the new scores."""
        if depth < 1:
            raise DataError(f"depth must be at least 1, got {depth}")
        run = self.first.retrieve(queries, max(depth, self.candidates))
        return replace(rescore_run(run, self.rescorer, self.corpus, queries), name=self.name).top(
            depth
        )


def rescore_run(run: Run, rescorer: Rescorer, corpus: Corpus, queries: Sequence[Query]) -> Run:
    """Reorder every query of a run by a rescorer; documents it scores alike keep their order.

    Parameters
    ----------
    run : Run
    rescorer : Rescorer
    corpus : Corpus
        Texts and tags of every document of the run.
    queries : sequence of Query
        Texts of every query of the run; others are ignored.

    Returns
    -------
    Run
        Without scores where the rescorer only orders.

    Raises
    ------
    DataError
        If a query or document of the run is unknown, or the rescorer does not return one finite
        number for each document.
    """
    apply_to: Callable[[Run, TagTable], Run] | None = getattr(rescorer, "apply_to", None)
    if apply_to is not None:
        return apply_to(run, corpus.tags)
    text_of = {query.query_id: query.text for query in queries}
    rows = _rows(run, corpus)
    scores = np.empty(len(run), dtype=np.float64)
    for index, found in enumerate(run):
        if found.query_id not in text_of:
            raise DataError(f"query {found.query_id!r} of run {run.name!r} has no text; give it")
        part = slice(int(run.offsets[index]), int(run.offsets[index + 1]))
        of_query = rows[run.doc_codes[part]].tolist()
        scores[part] = _new_scores(rescorer, text_of[found.query_id], found, corpus, of_query)
    return Run.from_arrays(
        query_ids=run.query_ids,
        query_codes=run.query_codes,
        doc_codes=run.doc_codes,
        doc_ids=run.doc_ids,
        scores=scores,
        name=run.name,
        sort_by_score=True,
    )


def _rows(run: Run, corpus: Corpus) -> npt.NDArray[np.int64]:
    """Row in the corpus of each document of the run's vocabulary, -1 where none was retrieved."""
    rows = corpus.tags.rows_for(run.doc_ids)
    missing = np.flatnonzero(rows[run.doc_codes] < 0)
    if len(missing):
        raise DataError(
            f"run {run.name!r} holds document {run.doc_ids[run.doc_codes[missing[0]]]!r}, which "
            "the corpus does not have; rescore with the corpus that was searched"
        )
    return rows


def _new_scores(
    rescorer: Rescorer, query: str, found: RankedList, corpus: Corpus, rows: list[int]
) -> npt.NDArray[np.float64]:
    n = len(found)
    given = None if found.scores is None else found.scores.tolist()
    tags: list[DocTags] = [corpus.tags.get(doc_id) for doc_id in found.doc_ids]
    scores = rescorer(
        query,
        doc_ids=found.doc_ids,
        texts=[corpus.texts[row] for row in rows],
        tags=tags,
        scores=given,
    )
    if scores is None:  # as it was; without scores the order alone says how it was
        scores = given if given is not None else list(range(n, 0, -1))
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise DataError(
            f"rescorer {_kind(rescorer)} returned {values.tolist()} for the {n} documents of query "
            f"{found.query_id!r}; expected one finite number for each"
        )
    return values


def _kind(rescorer: Rescorer) -> str:
    return _KINDS.get(type(rescorer), type(rescorer).__name__)


def _described(rescorer: Rescorer) -> dict[str, str]:
    """Say what was fitted, or what was asked for."""
    if isinstance(rescorer, ParityCalibration):
        gaps = {
            f"gap {source}": f"{gap.estimate:+.4g} ({n} pairs)"
            for source, gap, n in zip(
                rescorer.sources, rescorer.gaps, rescorer.n_pairs, strict=True
            )
        }
        return {"form": rescorer.form, "baseline": rescorer.baseline, **gaps}
    if isinstance(rescorer, PerplexityRescorer):
        fitted = rescorer.correction
        return {"slope": f"{fitted.slope.estimate:.4g}", "perplexity": fitted.perplexity_model}
    if isinstance(rescorer, ExposureReranker):
        shares = rescorer.minimum_shares
        return {"minimum shares": "of the candidates" if shares is None else str(shares)}
    return {}


def _check_fitted(first: RetrieverSpec, rescorer: Rescorer) -> None:
    fitted = ""
    if isinstance(rescorer, ParityCalibration):
        fitted = rescorer.encoder
    elif isinstance(rescorer, PerplexityRescorer):
        fitted = rescorer.correction.encoder
    # Recipes need not say what scores their documents; the package's own do.
    scorer = getattr(first, "reranker", None) or getattr(first, "encoder", None)
    if not fitted or not isinstance(scorer, Encoder | Reranker):
        return
    if scorer.fingerprint != fitted:
        raise DataError(
            f"the {_kind(rescorer)} rescorer was fitted on scores of {fitted!r}, but "
            f"{first.name!r} scores with {scorer.fingerprint!r}; fit it on scores of that model"
        )
