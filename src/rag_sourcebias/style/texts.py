"""The verb: encode or retrieve texts in several styles, then measure style bias."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import Corpus, DocTags, FloatArray, Qrels, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError, if_enough
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.core.protocols import Encoder, Retriever, RetrieverSpec
from rag_sourcebias.infer.decide import adjust_p_values
from rag_sourcebias.infer.means import clustered_difference, clustered_mean, difference_test
from rag_sourcebias.infer.ratios import published_delta
from rag_sourcebias.infer.texts import text_statistics
from rag_sourcebias.measure.relevance import SourceScores, group_scores, rank_span, score_run
from rag_sourcebias.measure.texts import TEXT_STATISTICS, installed_statistics
from rag_sourcebias.retrieval.cache import (
    DocumentVectors,
    RememberedEncoder,
    encode_corpus,
    query_vectors,
)
from rag_sourcebias.retrieval.search import BM25Spec, DenseRetriever, version_scores
from rag_sourcebias.style.audit import (
    assemble_styles,
    columns_of,
    style_settings,
    style_system,
    with_every_version,
)
from rag_sourcebias.style.data import (
    StyleConfig,
    StyledTexts,
    StyleIndexScore,
    StyleQuality,
    StyleSystem,
)
from rag_sourcebias.style.page import StyleReport

# The documents of a style audit as corpora to index.


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleCorpora:
    """What is indexed and asked.

    Parameters
    ----------
    queries : mapping of query style to tuple of Query, each of length n
    versions : Corpus
        Every version of every document, each document once, and the distractors; tagged with
        style and document.
    originals : Corpus
        The documents in their original style, and the distractors.
    rows : int64 array of shape (n, d)
        Row in ``versions`` of each version of each query's document.
    styles : tuple of str, length d
        Document styles in the order of the columns.
    original : str
    pair_of : mapping of query id to document id
    n_distractors : int
    """

    queries: Mapping[str, tuple[Query, ...]] = field(repr=False)
    versions: Corpus = field(repr=False)
    originals: Corpus = field(repr=False)
    rows: npt.NDArray[np.int64] = field(repr=False)
    styles: tuple[str, ...]
    original: str
    pair_of: Mapping[str, str] = field(repr=False)
    n_distractors: int
    warnings: tuple[str, ...] = ()

    def qrels(self, styles: Sequence[str]) -> Qrels:
        """Versions of its document in these styles are relevant to a query."""
        columns = [self.styles.index(style) for style in styles]
        return Qrels.from_rows(
            (query, self.versions.doc_ids[row], 1)
            for query, rows in zip(self.pair_of, self.rows, strict=True)
            for row in rows[columns].tolist()
        )


def build_corpora(complete: StyledTexts, original: str) -> StyleCorpora:
    """Put documents and distractors together; equal distractors and known texts come once.

    Parameters
    ----------
    complete : StyledTexts
        With every version.
    original : str
        Document style whose versions make an index of their own.

    Raises
    ------
    DataError
        If two queries name the same document but give different texts.
    """
    columns = columns_of(complete.documents)
    texts = list(zip(*columns.values(), strict=True))
    first: dict[str, int] = {}
    for at, doc_id in enumerate(complete.doc_ids):
        before = first.setdefault(doc_id, at)
        if texts[before] != texts[at]:
            same = [a == b for a, b in zip(texts[before], texts[at], strict=True)]
            raise DataError(
                f"document {doc_id!r} has different texts in style "
                f"{list(complete.documents)[same.index(False)]!r} for queries "
                f"{complete.query_ids[before]!r} and {complete.query_ids[at]!r}; give such "
                "documents different ids"
            )
    place = {doc_id: i for i, doc_id in enumerate(first)}
    d, at_original = len(columns), list(columns).index(original)
    documents = [texts[at] for at in first.values()]
    known = {text for versions in documents for text in versions}
    others = [t for t in dict.fromkeys(complete.distractors) if t.strip() and t not in known]
    tags = [
        (f"d{i}.{style}", DocTags(style=style, pair_id=doc_id))
        for i, doc_id in enumerate(first)
        for style in columns
    ]
    tags += [(f"x{i}", DocTags()) for i in range(len(others))]
    versions = Corpus(
        texts=(*(t for row in documents for t in row), *others), tags=TagTable.from_tags(tags)
    )
    start = np.array([place[doc_id] * d for doc_id in complete.doc_ids], dtype=np.int64)
    return StyleCorpora(
        queries={
            form: tuple(
                Query(query_id=q, text=t) for q, t in zip(complete.query_ids, column, strict=True)
            )
            for form, column in columns_of(complete.queries).items()
        },
        versions=versions,
        originals=versions.take(
            np.r_[at_original : len(first) * d : d, len(first) * d : len(versions)]
        ),
        rows=start[:, None] + np.arange(d),
        styles=tuple(columns),
        original=original,
        pair_of=dict(zip(complete.query_ids, complete.doc_ids, strict=True)),
        n_distractors=len(others),
        warnings=_warnings(complete, [row[at_original] for row in documents], len(others)),
    )


def _warnings(complete: StyledTexts, originals: Sequence[str], n_others: int) -> tuple[str, ...]:
    found = []
    left_out = len(complete.distractors) - n_others
    if left_out:
        found.append(
            f"{left_out} of {len(complete.distractors)} distractors are blank, occur twice or are "
            "a version of a query's document: they are left out"
        )
    copies = len(originals) - len(set(originals))
    if copies:
        found.append(
            f"{copies} documents have the text of another document: in an index they tie with it, "
            "and only the query's own counts as found"
        )
    return tuple(found)


# Quality in a real index: per query style, and per document style among all styles.


_NO_CHANGE = 1e-12


def index_depth(config: StyleConfig) -> int:
    """Documents to retrieve, so that ties across the largest cutoff are seen whole."""
    return max(100, 2 * max(config.cutoffs))


def style_quality(
    retriever: Retriever, corpora: StyleCorpora, config: StyleConfig
) -> tuple[StyleQuality, ...]:
    """NDCG and recall of every query style over an index of the original documents.

    A query's own document is the one that is relevant. Recall@1 is left out: with one relevant
    document it is NDCG@1, and would be tested twice.

    Parameters
    ----------
    retriever : Retriever
        Over ``corpora.originals``.
    """
    qrels = corpora.qrels([corpora.original])
    scores = {
        form: score_run(
            retriever.retrieve(queries, index_depth(config)),
            qrels,
            measures=("NDCG", "Recall"),
            cutoffs=config.cutoffs,
        )
        for form, queries in corpora.queries.items()
    }
    rows = list(_quality_rows(scores, config))
    adjusted = adjust_p_values([row.p_value for row in rows], correction=config.correction)
    return tuple(replace(row, p_adjusted=p) for row, p in zip(rows, adjusted, strict=True))


def _quality_rows(
    scores: Mapping[str, SourceScores], config: StyleConfig
) -> Iterator[StyleQuality]:
    level = config.confidence_level
    for form, found in scores.items():
        for measure in found.measures:
            if measure == "Recall@1":
                continue
            column = found.of(measure, "all")
            change = column - scores[config.original_query].of(measure, "all")
            each = np.arange(len(change))
            yield StyleQuality(
                query_style=form,
                measure=measure,
                mean=float(column.mean()),
                score=_share(column, level),
                change=if_enough(clustered_difference, change, each, confidence_level=level)
                if np.any(np.abs(change) > _NO_CHANGE)
                else None,
                p_value=None if form == config.original_query else difference_test(change, each),
            )


def index_scores(
    run: Run, corpora: StyleCorpora, config: StyleConfig
) -> tuple[StyleIndexScore, ...]:
    """NDCG of each document style alone, and Relative Δ of the original against it ([K] §3.1).

    Parameters
    ----------
    run : Run
        Of the original queries, over ``corpora.versions``.
    """
    styles, tags = corpora.styles, corpora.versions.tags
    qrels = corpora.qrels(styles)
    column = np.array([styles.index(name) for name in tags.styles], dtype=np.int64)
    scores = group_scores(
        run,
        qrels,
        column[tags.style_codes[tags.rows_for(qrels.doc_ids)]],
        styles,
        measures=("NDCG",),
        cutoffs=config.cutoffs,
    )
    found = []
    for style in styles:
        for measure in scores.measures:
            values = scores.of(measure, style)
            delta, interval = None, None
            if style != corpora.original:
                delta, interval, _ = published_delta(
                    scores.of(measure, corpora.original),
                    values,
                    confidence_level=config.confidence_level,
                )
            found.append(
                StyleIndexScore(
                    doc_style=style,
                    measure=measure,
                    mean=float(values.mean()),
                    score=_share(values, config.confidence_level),
                    relative_delta=delta,
                    interval=interval,
                )
            )
    return tuple(found)


def _share(values: FloatArray, level: float) -> Interval | None:
    return if_enough(
        clustered_mean,
        np.clip(values, 0.0, 1.0),
        np.arange(len(values)),
        confidence_level=level,
        bounds=(0.0, 1.0),
    )


# Encoders and BM25, asked the same things: similarity of versions, and search.


Stage = Callable[[str], None]
_QUERIES = 1_000  # whose vectors are copied together


class _EncoderSearch:
    """Cosine similarity of vectors; every distinct text is encoded once.

    As all searches: ``similarity`` is that of every query form to every version of its document,
    shape (n, q, d); ``versions_run`` searches all versions and distractors with one query style,
    ``originals`` indexes the original documents and distractors.
    """

    def __init__(self, encoder: Encoder, corpora: StyleCorpora, on_stage: Stage) -> None:
        self.name, self.corpora = encoder.name, corpora
        self.notes: list[str] = []
        on_stage(f"{self.name}: encoding {len(set(corpora.versions.texts)):,} documents")
        self.settings = {**encoder.settings, "similarity": "cosine"}  # may load the model
        self.vectors = encode_corpus(encoder, corpora.versions, similarity="cosine")
        asked = [query.text for form in corpora.queries.values() for query in form]
        on_stage(f"{self.name}: encoding {len(set(asked)):,} queries")
        self.encoder = RememberedEncoder(encoder)
        self.encoder.encode_queries(asked)

    def similarity(self) -> FloatArray:
        rows = self.vectors.row_of_doc[self.corpora.rows]
        encoded = np.stack(
            [
                query_vectors(self.encoder, form, similarity="cosine")
                for form in self.corpora.queries.values()
            ],
            axis=1,
        )
        size = self.vectors.distinct.shape[1]
        if encoded.shape[2] != size:
            raise DataError(
                f"encoder {self.name!r}: query vectors have {encoded.shape[2]} dimensions, "
                f"document vectors {size}; both sides must come from one model"
            )
        found = np.empty((len(rows), encoded.shape[1], rows.shape[1]))
        for start in range(0, len(rows), _QUERIES):
            part = slice(start, start + _QUERIES)
            found[part] = np.matmul(
                encoded[part], self.vectors.distinct[rows[part]].transpose(0, 2, 1)
            )
        # Equal texts must tie exactly, and a product may round differently in each column.
        same = np.argmax(rows[:, :, None] == rows[:, None, :], axis=2)
        return np.take_along_axis(found, same[:, None, :], axis=2)

    def versions_run(self, form: str, depth: int) -> Run:
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=self.vectors).retrieve(
            self.corpora.queries[form], depth
        )

    def originals(self) -> Retriever:
        """Index the vectors at hand: nothing is encoded again."""
        kept = self.corpora.originals.doc_ids
        rows = self.vectors.row_of_doc[self.corpora.versions.tags.rows_for(kept)]
        distinct, row_of_doc = np.unique(rows, return_inverse=True)
        vectors = DocumentVectors(
            doc_ids=kept,
            distinct=self.vectors.distinct[distinct],
            row_of_doc=row_of_doc.reshape(-1),
            similarity="cosine",
        )
        return DenseRetriever(name=self.name, encoder=self.encoder, vectors=vectors)


class _BM25Search:
    """BM25 scores as a similarity ([W] W2)."""

    def __init__(self, spec: BM25Spec, corpora: StyleCorpora) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings = {**spec.settings, "similarity": "score, idf over all versions"}
        self.notes: list[str] = []

    def similarity(self) -> FloatArray:
        texts, forms = self.corpora.versions.texts, self.corpora.queries.values()
        found = version_scores(
            self.spec,
            [[query.text for query in queries] for queries in zip(*forms, strict=True)],
            [[texts[row] for row in rows] for rows in self.corpora.rows.tolist()],
        )
        heard = found.any(axis=2)
        silent = int(np.count_nonzero(~heard))
        if silent:
            self.notes.append(
                f"{silent} of {heard.size} query versions share no word with any version of "
                "their document, which all tie"
            )
        return found

    def versions_run(self, form: str, depth: int) -> Run:
        return self.spec.build(self.corpora.versions).retrieve(self.corpora.queries[form], depth)

    def originals(self) -> Retriever:
        return self.spec.build(self.corpora.originals)


# A whole retriever, asked what an encoder is asked: similarity of versions, and search.


_DEPTH = (1_000, 10_000)  # fewest and most documents asked for per query
_ENTRIES = 1_000_000  # of one run


class _StackSearch:
    """A whole retriever: versions are ranked as it ranks them among everything else."""

    def __init__(
        self, spec: RetrieverSpec, corpora: StyleCorpora, on_stage: Callable[[str], None]
    ) -> None:
        self.name, self.spec, self.corpora = spec.name, spec, corpora
        self.settings, self.on_stage = dict(spec.settings), on_stage
        self.notes: list[str] = []
        self.depth = min(
            len(corpora.versions), int(np.clip(_ENTRIES // len(corpora.rows), *_DEPTH))
        )
        on_stage(f"{self.name}: indexing {len(corpora.versions):,} documents")
        self.retriever = spec.build(corpora.versions)
        self.runs: dict[str, Run] = {}

    def similarity(self) -> npt.NDArray[np.float64]:
        """Minus the place in the run; what was not retrieved ties below the rest."""
        found = [self._places(self.versions_run(form, self.depth)) for form in self.corpora.queries]
        unseen = sum(np.count_nonzero(np.isinf(places)) for places in found)
        last = 1.0 + max(len(run) for run in self.runs.values())
        rest = (
            f"{unseen / (self.corpora.rows.size * len(self.runs)):.1%} of the versions were not "
            "returned and rank below the others, tied"
        )
        self.notes.append(
            f"ranked among the versions that the retriever returned, at most {self.depth} "
            f"documents per query; {rest if unseen else 'every version was returned'}"
        )
        return -np.minimum(np.stack(found, axis=1), last)

    def _places(self, run: Run) -> FloatArray:
        """Place of every version of a query's document in a run, infinite where it is not there.

        Equal neighbouring scores share the middle of their places; shape (n, d).
        """
        start, stop = rank_span(run, np.arange(len(run)), ties="expected")
        row = self.corpora.versions.tags.rows_for(run.doc_ids)[run.doc_codes]
        column = row - self.corpora.rows[run.query_codes, 0]
        own = np.flatnonzero((row >= 0) & (column >= 0) & (column < len(self.corpora.styles)))
        places = np.full(self.corpora.rows.shape, np.inf)
        places[run.query_codes[own], column[own]] = (start[own] + 1 + stop[own]) / 2
        return places

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
        return self.spec.build(self.corpora.originals)


# The verb: encode or retrieve texts in several styles, then measure style bias.


_SMALL_INDEX = 1000


def audit_style(
    texts: StyledTexts,
    *,
    encoders: Sequence[Encoder] = (),
    bm25: BM25Spec | None = None,
    retrievers: Sequence[RetrieverSpec] = (),
    config: StyleConfig | None = None,
    index: bool = True,
    text_statistics: bool = True,
    on_stage: Callable[[str], None] | None = None,
) -> StyleReport:
    """Measure which writing styles encoders, BM25 and whole retrievers favour ([W] §3–4).

    Parameters
    ----------
    texts : StyledTexts
    encoders : sequence of Encoder
        Versions are ranked by cosine similarity. Every distinct text is encoded once; a
        :class:`~rag_sourcebias.retrieval.CachedEncoder` keeps vectors and reports progress.
    bm25 : BM25Spec, optional
        Versions are ranked by their BM25 score, with idf over all versions.
    retrievers : sequence of RetrieverSpec
        Versions are ranked as each retriever ranks them in an index of all versions and
        distractors; a version that it does not return ranks below the others. At
        least 1,000 documents are asked for.
    config : StyleConfig, optional
        As in :func:`measure_style_bias`.
    index : bool
        Also measure quality in an index: NDCG and recall of every query style over the original
        documents and distractors (a query's own document is the one that is relevant), and NDCG
        of each document style where all are indexed together. Without it, distractors are not
        used.
    text_statistics : bool
        Also describe the texts (extra ``text``).
    on_stage : callable, optional
        Told what begins, for progress display.

    Returns
    -------
    StyleReport

    Raises
    ------
    DataError
        If no system was given, two have the same name, there are fewer than 2 document styles,
        or a version is missing and must not be.
    InsufficientDataError
        If no query has every version.
    """
    stage = on_stage or (lambda _: None)
    names = [encoder.name for encoder in encoders]
    names += [spec.name for spec in (*([bm25] if bm25 else []), *retrievers)]
    if not names or len(set(names)) != len(names):
        raise DataError(
            f"give one or more encoders, retrievers or BM25 with different names, got {names}"
        )
    config, warnings = style_settings(texts, config)
    keep = with_every_version(texts, config.missing)
    complete = texts.take(keep)
    corpora = build_corpora(
        complete if index else replace(complete, distractors=()), config.original
    )
    warnings += corpora.warnings
    if index and len(corpora.originals) < _SMALL_INDEX:
        warnings += (
            f"the index holds {len(corpora.originals)} documents ({corpora.n_distractors} of them "
            "distractors): finding the right one is easier than in a large index, so a loss of "
            "quality shows less",
        )
    report = assemble_styles(
        [
            _system(search, complete, corpora, config, index=index, stage=stage)
            for search in _searches(corpora, encoders, bm25, retrievers, stage)
        ],
        complete,
        config,
        dropped=tuple(compress(texts.query_ids, ~keep)),
        warnings=warnings,
        n_distractors=corpora.n_distractors,
    )
    return _with_statistics(report, complete, stage) if text_statistics else report


def _searches(
    corpora: StyleCorpora,
    encoders: Sequence[Encoder],
    bm25: BM25Spec | None,
    retrievers: Sequence[RetrieverSpec],
    stage: Stage,
) -> Iterator[_EncoderSearch | _BM25Search | _StackSearch]:
    """One system after the other, so that only one holds its vectors."""
    if bm25 is not None:
        yield _BM25Search(bm25, corpora)
    for encoder in encoders:
        yield _EncoderSearch(encoder, corpora, stage)
    for spec in retrievers:
        yield _StackSearch(spec, corpora, stage)


def _system(
    search: _EncoderSearch | _BM25Search | _StackSearch,
    complete: StyledTexts,
    corpora: StyleCorpora,
    config: StyleConfig,
    *,
    index: bool,
    stage: Stage,
) -> StyleSystem:
    similarity = search.similarity()
    stage(f"{search.name}: ranking {similarity.shape[2]} document styles")
    system = style_system(
        search.name, similarity, complete, config, settings=search.settings, notes=search.notes
    )
    if not index:
        return system
    stage(f"{search.name}: searching an index of {len(corpora.originals):,} documents")
    quality = style_quality(search.originals(), corpora, config)
    stage(f"{search.name}: searching an index of {len(corpora.versions):,} versions")
    run = search.versions_run(config.original_query, index_depth(config))
    return replace(system, quality=quality, index_scores=index_scores(run, corpora, config))


def _with_statistics(report: StyleReport, complete: StyledTexts, stage: Stage) -> StyleReport:
    """Describe the texts by the statistics whose library is installed; warn of the others."""
    stage("text statistics")
    config, statistics = report.config, installed_statistics()
    documents, queries = (
        text_statistics(
            columns,
            columns[original],
            original=original,
            statistics=statistics,
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
        for columns, original in (
            (columns_of(complete.documents), config.original),
            (columns_of(complete.queries), config.original_query),
        )
    )
    warnings = list(report.warnings)
    missing = [name for name in TEXT_STATISTICS if name not in statistics]
    if missing:
        warnings.append(
            f"no {', '.join(missing)}: install them with: pip install 'rag-sourcebias[text]'"
        )
    return replace(
        report,
        document_statistics=documents,
        query_statistics=queries,
        warnings=tuple(warnings),
    )
