"""A retriever whose results are given new scores before anyone sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, Query, RankedList, Run
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import Encoder, Reranker, Rescorer, Retriever, RetrieverSpec
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.debias.twins import TwinGroups, TwinRescorer, described, fit_twins
from rag_sourcebias.retrieval.rerank import searched_texts

_KINDS = {ParityCalibration: "parity", TwinRescorer: "twins"}


class RescoredSpec:
    """Recipe of a first stage with a rescorer behind it.

    Documents below ``candidates`` cannot come up. 100 are ample for a top 10: with
    all-MiniLM-L6-v2, offsets of .0034 (as fitted), .017 and .034 on ``nfcorpus`` and ``nq-utd``
    (2,994 queries) gave the top 10 of all documents with 30 candidates already.

    Parameters
    ----------
    first : RetrieverSpec
    rescorer : Rescorer
        Called query by query.
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
        require_at_least(1, candidates=candidates)
        _check_fitted(first, rescorer)
        self.first = first
        self.rescorer = rescorer
        self.candidates = candidates
        self.name = name or f"{first.name}+{_kind(rescorer)}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state, those of the rescorer prefixed with ``rescore.``."""
        return {
            **self.first.settings,
            "rescore.kind": _kind(self.rescorer),
            **{f"rescore.{key}": value for key, value in _described(self.rescorer).items()},
            "rescore.candidates": str(self.candidates),
        }

    @property
    def keeps_order_within_source(self) -> bool:
        """Whether documents of one source cannot change places among themselves."""
        return isinstance(self.rescorer, ParityCalibration)

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage."""
        rescorer = self.rescorer
        if isinstance(rescorer, TwinRescorer):
            rescorer = rescorer.within(corpus)
        return _RescoredRetriever(
            name=self.name,
            first=self.first.build(corpus),
            rescorer=rescorer,
            corpus=corpus,
            candidates=self.candidates,
        )


class TwinSpec:
    """Recipe of a first stage with twin smoothing, whose groups are those of what is indexed.

    A corpus that is part of the one indexed before it, such as the documents of one source, has
    the groups that its documents have there.

    Parameters
    ----------
    first : RetrieverSpec
    encoder : Encoder, optional
        The one that searches; without one copies are told by their words.
    name : str, optional
        ``"<first>+twins"`` by default.

    Attributes
    ----------
    groups : TwinGroups or None
        Of the corpus indexed first; None before.
    """

    def __init__(
        self,
        first: RetrieverSpec,
        encoder: Encoder | None = None,
        *,
        name: str | None = None,
    ) -> None:
        self.first = first
        self.encoder = encoder
        self.name = name or f"{first.name}+twins"
        self._texts: dict[str, str] = {}
        self.groups: TwinGroups | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings a report must state."""
        return {**self.first.settings, "rescore.kind": "twins", "rescore.seed": "0"}

    def build(self, corpus: Corpus) -> Retriever:
        """Index a corpus with the first stage, and find its copies."""
        texts = dict(zip(corpus.doc_ids, corpus.texts, strict=True))
        if self.groups is None or not texts.items() <= self._texts.items():
            self.groups, self._texts = fit_twins(corpus, self.encoder), texts
        return RescoredSpec(self.first, TwinRescorer(self.groups), name=self.name).build(corpus)


@dataclass(kw_only=True)
class _RescoredRetriever:
    name: str
    first: Retriever
    rescorer: Rescorer
    corpus: Corpus
    candidates: int

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        """Return up to ``depth`` documents for each query, in the order of the new scores."""
        require_at_least(1, depth=depth)
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
    asked, rows = searched_texts(run, corpus, queries)
    scores = np.empty(len(run), dtype=np.float64)
    for index, (text, found) in enumerate(zip(asked, run, strict=True)):
        part = slice(int(run.offsets[index]), int(run.offsets[index + 1]))
        scores[part] = _new_scores(rescorer, text, found, corpus, rows[part].tolist())
    # As numbers of full length: what serves copies in a drawn order differs in the last digit
    order = np.lexsort((-scores, run.query_codes))
    served = replace(run, doc_codes=run.doc_codes[order], scores=scores[order].astype(np.float32))
    if not isinstance(rescorer, TwinRescorer):
        return served
    # Copies tie in the order in which they are served, for expectations over their orders.
    tied = [
        score
        for found in served
        if found.scores is not None
        for score in rescorer.tied(found.doc_ids, found.scores.tolist())
    ]
    return replace(served, scores=np.array(tied, dtype=np.float32))


def _new_scores(
    rescorer: Rescorer, query: str, found: RankedList, corpus: Corpus, rows: list[int]
) -> npt.NDArray[np.float64]:
    n = len(found)
    given = None if found.scores is None else found.scores.tolist()
    scores = rescorer(
        query,
        doc_ids=found.doc_ids,
        texts=[corpus.texts[row] for row in rows],
        tags=[corpus.tags.get(doc_id) for doc_id in found.doc_ids],
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
    if isinstance(rescorer, TwinRescorer):
        return {**described(rescorer.groups), "show": rescorer.show, "seed": str(rescorer.seed)}
    if isinstance(rescorer, ParityCalibration):
        found = zip(rescorer.sources, rescorer.gaps, rescorer.n_pairs, strict=True)
        gaps = {f"gap {source}": f"{gap.estimate:+.4g} ({n} pairs)" for source, gap, n in found}
        return {"baseline": rescorer.baseline, **gaps}
    return {}


def _check_fitted(first: RetrieverSpec, rescorer: Rescorer) -> None:
    if not isinstance(rescorer, ParityCalibration | TwinRescorer):
        return
    fitted = rescorer.encoder
    # Recipes need not say what scores their documents; the package's own do.
    scorer = getattr(first, "reranker", None) or getattr(first, "encoder", None)
    if fitted and isinstance(scorer, Encoder | Reranker) and scorer.fingerprint != fitted:
        raise DataError(
            f"the {_kind(rescorer)} rescorer was fitted on scores of {fitted!r}, but "
            f"{first.name!r} scores with {scorer.fingerprint!r}; fit it on scores of that model"
        )
