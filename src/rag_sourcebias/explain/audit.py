"""The verb: what distinguishes the sources of a corpus, as texts and for an encoder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rag_sourcebias.core.codec import environment, timestamp
from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.data import Dataset, Float32Array, FloatArray, Histogram, IntArray
from rag_sourcebias.core.errors import DataError, InsufficientDataError, require_distinct
from rag_sourcebias.core.protocols import ConditionalPerplexity, Encoder, TextPerplexity
from rag_sourcebias.core.tags import chosen_sources, complete_pairs, relevant_pairs
from rag_sourcebias.explain.causes import (
    Vocabulary,
    WordSets,
    compare_perplexities,
    compare_texts,
    corpus_idf,
    decompose_gap,
    judged_words,
    log_length_ratios,
    unit_edges,
    word_sets,
)
from rag_sourcebias.explain.data import (
    ExplainConfig,
    GapDecomposition,
    ModelPerplexity,
    SourceExplanation,
)
from rag_sourcebias.explain.report import ExplainReport
from rag_sourcebias.explain.vectors import (
    map_sources,
    positions_along_source,
    require_map,
    spectrum,
)
from rag_sourcebias.measure.texts import summarise_dataset
from rag_sourcebias.retrieval.cache import Similarity, encode_corpus, normalized, query_vectors

# Which pairs of a data set an explanation looks at.


_WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPairs:
    """Pairs of the baseline and one other source, in the order of the draw.

    Parameters
    ----------
    source : str
    human, other : int64 arrays of shape (n,)
        Rows of both versions in the corpus.
    n_available : int
        Pairs to draw from.
    judged : int64 arrays of shape (m,)
        Query row and position in the draw of every relevant (query, pair).
    notes : tuple of str
    """

    source: str
    human: IntArray
    other: IntArray
    n_available: int
    judged: tuple[IntArray, IntArray]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.human)


def judged_pairs_of(dataset: Dataset) -> IntArray:
    """Collect relevant (row of the query, code of the pair), each once; shape (m, 2).

    Only queries that have a text count.
    """
    row_of = {query.query_id: row for row, query in enumerate(dataset.queries)}
    queries, codes = relevant_pairs(dataset.qrels, dataset.corpus.tags, min_grade=1)
    known = np.array([row_of.get(name, -1) for name in dataset.qrels.query_ids], dtype=np.int64)
    both = np.column_stack((known[queries], codes))
    return np.unique(both[both[:, 0] >= 0], axis=0)


def draw_pairs(
    dataset: Dataset, source: str, judged: IntArray, config: ExplainConfig
) -> DrawnPairs:
    """Draw up to ``config.limit`` pairs at random, those relevant to a query before all others.

    Of a large corpus hardly any pair is relevant to a judged query; drawn from all alike, a few
    hundred would hold too few to say anything about scores.
    """
    corpus = dataset.corpus
    found = complete_pairs(corpus, config.baseline_source, source)
    worded = np.array(
        [
            all(_WORD.search(corpus.texts[row]) for row in pair)
            for pair in zip(found.baseline.tolist(), found.source.tolist(), strict=True)
        ],
        dtype=bool,
    )
    codes, human, other = (part[worded] for part in (found.codes, found.baseline, found.source))
    order = np.random.default_rng(config.seed).permutation(len(codes))
    relevant = np.isin(codes, judged[:, 1])
    order = order[np.argsort(~relevant[order], kind="stable")][: config.limit]
    place = np.full(len(corpus.tags.pair_ids), -1)
    place[codes[order]] = np.arange(len(order))
    at = place[judged[:, 1]]
    notes = []
    if len(order) < len(codes):
        notes.append(
            f"{len(order):,} of {len(codes):,} pairs were drawn at random, "
            f"{relevant[order].sum():,} of them relevant to a judged query (of "
            f"{relevant.sum():,}): those are drawn first"
        )
    left_out = {
        "pair(s) with one version only, or a blank one": found.n_incomplete,
        "further document(s) with the source and the pair id of another one": found.n_repeated,
        "pair(s) with a version without any word": np.count_nonzero(~worded),
    }
    notes += [f"{n:,} {what}: left out" for what, n in left_out.items() if n]
    return DrawnPairs(
        source=source,
        human=human[order],
        other=other[order],
        n_available=len(codes),
        judged=(judged[at >= 0, 0], at[at >= 0]),
        notes=tuple(notes),
    )


# Perplexities of drawn pairs, each text read once.


class KnownPerplexities:
    """A language model that reads each text once, however many sources it is compared with.

    Parameters
    ----------
    model : TextPerplexity
    progress : callable, optional
        Told ``(done, total)`` of what the model counts.
    """

    def __init__(
        self, model: TextPerplexity, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self.model = model
        self._progress = progress
        self._known: dict[str, tuple[float, int]] = {}  # with the parts it was read in

    def of(self, texts: Sequence[str]) -> FloatArray:
        """Log-perplexity of each text; shape (n,)."""
        missing = sorted(set(texts) - self._known.keys())
        if missing:
            found = _checked(
                self.model, self.model.log_perplexities(missing, progress=self._progress), missing
            )
            values = zip(found.values.tolist(), found.parts.tolist(), strict=True)
            self._known.update(zip(missing, values, strict=True))
        return np.array([self._known[text][0] for text in texts], dtype=np.float64)

    def after(self, prefixes: Sequence[str], texts: Sequence[str]) -> LogPerplexities | None:
        """Log-perplexity of each text after its prefix; None if the model cannot tell."""
        if not isinstance(self.model, ConditionalPerplexity):
            return None
        return _checked(
            self.model, self.model.conditional(prefixes, texts, progress=self._progress), texts
        )

    def notes(self, texts: Sequence[str], after: LogPerplexities | None) -> list[str]:
        """Say what was not read in one piece."""
        notes = []
        if n := sum(self._known[text][1] > 1 for text in texts):
            how = self.model.settings.get("longer texts", "pieces")
            notes.append(f"{self.model.name}: {n} of {len(texts)} texts were read in {how}")
        if after is not None and after.n_prefix_cut:
            notes.append(
                f"{self.model.name}: {after.n_prefix_cut} of {len(after.values)} human texts were "
                "too long to be read to their end before the rewrite"
            )
        return notes


def _checked(
    model: TextPerplexity, found: LogPerplexities, texts: Sequence[str]
) -> LogPerplexities:
    if found.values.shape != (len(texts),):
        raise DataError(
            f"{model.name!r} returned values of shape {found.values.shape} for {len(texts)} texts; "
            "expected one each"
        )
    return found


# What the vectors of drawn pairs show: distances, spectra, geometry, a map.


_ROWS = 8192  # rows whose vectors are gathered at once


class EncodedPairs(NamedTuple):
    """Vectors of every document that some source's draw holds, and of the judged queries.

    Parameters
    ----------
    vectors : float32 array of shape (n, dimension)
        As the encoder returned them.
    row_of : int64 array of shape (documents of the corpus,)
        Row of ``vectors``; -1 for documents that were not encoded.
    queries : float32 array of shape (queries, dimension)
        Rows of queries without a drawn pair are 0.
    similarity : {"cosine", "dot"}
        How the encoder compares: cosine, unless its settings say ``similarity: dot``.
    """

    vectors: Float32Array
    row_of: IntArray
    queries: Float32Array
    similarity: Similarity

    def sides(self, pairs: DrawnPairs) -> tuple[Float32Array, Float32Array]:
        """Vectors of both versions, shape (n, dimension) each."""
        return self.vectors[self.row_of[pairs.human]], self.vectors[self.row_of[pairs.other]]

    def compared(self, pairs: DrawnPairs) -> tuple[Float32Array, Float32Array]:
        """Vectors as the similarity takes them: of length 1 for the cosine."""
        human, other = self.sides(pairs)
        if self.similarity == "dot":
            return human, other
        return normalized(human), normalized(other)

    def score_gaps(self, pairs: DrawnPairs) -> FloatArray:
        """Score of the other version minus that of the human one, per relevant (query, pair)."""
        queries, at = pairs.judged
        human, other = self.compared(pairs)
        found = np.empty(len(at))
        for start in range(0, len(at), _ROWS):
            part = slice(start, start + _ROWS)
            found[part] = np.einsum(
                "ij,ij->i",
                self.queries[queries[part]],
                other[at[part]].astype(np.float64) - human[at[part]],
            )
        return found


def encode_pairs(
    dataset: Dataset,
    encoder: Encoder,
    draws: Sequence[DrawnPairs],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> EncodedPairs:
    """Encode the documents of all draws, each text once, and their judged queries.

    Raises
    ------
    DataError
        If the encoder returns an array of another shape, or a number that is not finite.
    """
    rows = np.unique(np.concatenate([part for draw in draws for part in (draw.human, draw.other)]))
    documents = encode_corpus(
        encoder, dataset.corpus.take(rows), similarity="dot", progress=on_progress
    )
    row_of = np.full(len(dataset.corpus), -1)
    row_of[rows] = documents.row_of_doc
    similarity: Similarity = "dot" if encoder.settings.get("similarity") == "dot" else "cosine"
    asked = np.unique(np.concatenate([draw.judged[0] for draw in draws]))
    queries = np.zeros((len(dataset.queries), documents.distinct.shape[1]), np.float32)
    if len(asked):
        queries[asked] = query_vectors(
            encoder, [dataset.queries[row] for row in asked.tolist()], similarity=similarity
        )
    return EncodedPairs(
        vectors=documents.distinct, row_of=row_of, queries=queries, similarity=similarity
    )


# What the score gap of relevant pairs goes with.


#: Perplexities entered together: of two models they say nearly the same.
MAX_PERPLEXITIES = 2
_CONSTANT = 1e-9


def explain_gap(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    perplexities: Mapping[str, FloatArray],
    *,
    queries: IntArray,
    config: ExplainConfig,
    notes: list[str],
) -> GapDecomposition | None:
    """Decompose the score gap by all factors for which there is enough data.

    A factor that does not vary is left out, then perplexities, which not every pair has; ``notes``
    are told.

    Parameters
    ----------
    gaps : float64 array of shape (m,)
        One entry per relevant (query, pair).
    factors, perplexities : mapping of name to float64 array of shape (m,)
        No difference is 0. Rows where one is NaN are left out.
    queries : integer array of shape (m,)

    Returns
    -------
    GapDecomposition or None
        None if there is too little data even without perplexities.
    """
    chosen = dict(list(perplexities.items())[:MAX_PERPLEXITIES])
    while True:
        try:
            return _decompose(gaps, {**factors, **chosen}, queries, config, notes)
        except InsufficientDataError as error:
            if not chosen:
                notes.append(f"the score gap is not decomposed: {error}")
                return None
            name, _ = chosen.popitem()
            notes.append(f"{name} is not part of the decomposition: {error}")


def _decompose(
    gaps: FloatArray,
    factors: Mapping[str, FloatArray],
    queries: IntArray,
    config: ExplainConfig,
    notes: list[str],
) -> GapDecomposition:
    kept = np.logical_and.reduce([np.isfinite(column) for column in factors.values()])
    varying = {
        name: column[kept]
        for name, column in factors.items()
        if column[kept].max(initial=-np.inf) - column[kept].min(initial=np.inf) > _CONSTANT
    }
    found = decompose_gap(
        gaps[kept],
        varying,
        queries=queries[kept],
        confidence_level=config.confidence_level,
    )
    notes.extend(
        f"{name} is the same for every relevant pair: not part of the decomposition"
        for name in factors
        if name not in varying
    )
    if n := int(np.count_nonzero(~kept)):
        notes.append(
            f"the decomposition is of {len(gaps) - n:,} of {len(gaps):,} relevant pairs: the "
            "others lack a perplexity"
        )
    return found


# Everything that is measured for one source, part by part.


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Measures one source after the other.

    Parameters
    ----------
    dataset : Dataset
    encoded : EncodedPairs or None
    models : tuple of KnownPerplexities
    config : ExplainConfig
    on_stage : callable
    """

    dataset: Dataset
    encoded: EncodedPairs | None
    models: tuple[KnownPerplexities, ...]
    config: ExplainConfig
    on_stage: Callable[[str], None]
    _vocabulary: Vocabulary = field(default_factory=dict, repr=False)

    def of(self, pairs: DrawnPairs) -> SourceExplanation:
        """Measure everything that the data allow."""
        told = _Told(notes=list(pairs.notes))
        self.on_stage(f"{pairs.source}: words")
        sides = self._words.take(pairs.human), self._words.take(pairs.other)
        ratios = log_length_ratios(*sides)
        vectors = self._vectors(pairs, told)
        perplexities, gaps = self._perplexities(pairs, ratios, told)
        return SourceExplanation(
            source=pairs.source,
            n_pairs=len(pairs),
            n_available=pairs.n_available,
            texts=compare_texts(*sides, confidence_level=self.config.confidence_level),
            **vectors,
            perplexity=perplexities,
            decomposition=self._decomposition(pairs, ratios, gaps, told),
            notes=tuple(told.notes),
            missing=told.missing,
        )

    @cached_property
    def _words(self) -> WordSets:
        return word_sets(self.dataset.corpus.texts, self._vocabulary)

    @cached_property
    def _queries(self) -> WordSets:
        return word_sets([query.text for query in self.dataset.queries], self._vocabulary)

    def _vectors(self, pairs: DrawnPairs, told: _Told) -> dict[str, Any]:
        """Parts that need vectors, by name of the field."""
        if self.encoded is None:
            told.missing |= dict.fromkeys(("cosine", "spectrum", "map"), "no encoder was given")
            return {}
        config = self.config
        human, other = self.encoded.sides(pairs)
        self.on_stage(f"{pairs.source}: spectrum, map")
        cosines = np.einsum("ij,ij->i", normalized(human), normalized(other)).astype(np.float64)
        some = slice(config.map_limit)
        return {
            "cosine": Histogram.of(cosines, unit_edges(cosines)),
            "spectrum": told.attempt(
                "spectrum",
                lambda: spectrum(
                    human,
                    other,
                    resamples=config.resamples,
                    centre=config.centre,
                    normalise=config.normalise,
                    confidence_level=config.confidence_level,
                    rng=config.seed,
                ),
                part="spectrum",
            ),
            "map": told.attempt(
                "map",
                lambda: map_sources(
                    human[some], other[some], method=config.map_method, seed=config.seed
                ),
                part="map",
            ),
        }

    def _perplexities(
        self, pairs: DrawnPairs, ratios: FloatArray, told: _Told
    ) -> tuple[tuple[ModelPerplexity, ...], dict[str, FloatArray]]:
        """Comparisons by model, and the gap of every pair (NaN where it was not computed)."""
        n = min(len(pairs), self.config.perplexity_limit or len(pairs))
        texts = self.dataset.corpus.texts
        human, other = (
            [texts[row] for row in rows[:n].tolist()] for rows in (pairs.human, pairs.other)
        )
        found, gaps = [], {}
        if self.models and n < len(pairs):
            told.notes.append(f"perplexities are of the first {n:,} of {len(pairs):,} pairs")
        for known in self.models:
            name = known.model.name
            self.on_stage(f"{pairs.source}: {name}")
            before, after = known.of(human), known.of(other)
            conditional = known.after(human, other)
            told.notes.extend(known.notes([*human, *other], conditional))
            gaps[name] = np.full(len(pairs), np.nan)
            gaps[name][:n] = after - before
            compared = told.attempt(
                name,
                partial(
                    compare_perplexities,
                    before,
                    after,
                    log_length_ratio=ratios[:n],
                    model=name,
                    kind=known.model.kind,
                    conditional=None if conditional is None else conditional.values,
                    confidence_level=self.config.confidence_level,
                ),
                part="perplexity",
            )
            if compared is not None:
                found.append(compared)
        if found:
            told.missing.pop("perplexity", None)
        elif not self.models:
            told.missing["perplexity"] = "no language model was given"
        return tuple(found), gaps

    def _decomposition(
        self,
        pairs: DrawnPairs,
        ratios: FloatArray,
        perplexities: Mapping[str, FloatArray],
        told: _Told,
    ) -> GapDecomposition | None:
        if self.encoded is None:
            told.missing["decomposition"] = "no encoder was given"
            return None
        queries, at = pairs.judged
        if not len(at):
            why = (
                "the score gap needs judged queries with text whose relevant documents are "
                "paired; there are none"
            )
            told.notes.append(why)
            told.missing["decomposition"] = why
            return None
        self.on_stage(f"{pairs.source}: score gap")
        asked, tags = self._queries.take(queries), self.dataset.corpus.tags
        sources = [tags.sources.index(name) for name in (self.config.baseline_source, pairs.source)]
        searched = self._words.take(np.flatnonzero(np.isin(tags.source_codes, sources)))
        held = judged_words(
            asked,
            self._words.take(pairs.human[at]),
            self._words.take(pairs.other[at]),
            idf=corpus_idf(searched, n_codes=len(self._vocabulary)),
        )
        at = at[held.rows]
        factors = {"log length ratio": ratios[at], "query words": held.other - held.human}
        human, other = self.encoded.compared(pairs)
        positions = told.attempt("source direction", lambda: positions_along_source(human, other))
        if positions is not None:
            factors["source direction"] = positions[at]
        found = explain_gap(
            self.encoded.score_gaps(pairs)[held.rows],
            factors,
            {f"perplexity, {name}": values[at] for name, values in perplexities.items()},
            queries=queries[held.rows],
            config=self.config,
            notes=told.notes,
        )
        if found is None:
            told.missing["decomposition"] = told.notes[-1]
        return found


@dataclass(kw_only=True)
class _Told:
    """What is said of a source besides numbers, and why parts are missing, by field."""

    notes: list[str]
    missing: dict[str, str] = field(default_factory=dict)

    def attempt(self, what: str, compute: Callable[[], T], *, part: str = "") -> T | None:
        """Compute a part, or note what it lacks."""
        try:
            return compute()
        except (InsufficientDataError, DataError) as error:
            why = f"{what}: {error}"
            self.notes.append(why)
            if part:
                self.missing[part] = why
            return None


# The verb: what distinguishes the sources of a corpus, as texts and for an encoder.


_INDEPENDENT = (
    "versions are independent texts, not rewrites: what distinguishes them may be content or "
    "quality"
)


def explain_sources(
    dataset: Dataset,
    *,
    encoder: Encoder | None = None,
    sources: Sequence[str] | None = None,
    perplexities: Sequence[TextPerplexity] = (),
    config: ExplainConfig | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> ExplainReport:
    """Show what distinguishes each source from the baseline, pair by pair ([K] §4).

    Texts (length, shared words), vectors (cosine, spectrum, map), perplexities, and which of these
    the score gap of relevant pairs goes with. All of it is association: a rewrite differs in many
    ways at once.

    Parameters
    ----------
    dataset : Dataset
        With pairs: documents of the baseline and of another source that share a pair id. Without
        judged queries, the score gap is left out.
    encoder : Encoder, optional
        None compares texts only. Scores are cosines, unless the encoder's settings say
        ``similarity: dot``.
    sources : sequence of str, optional
        By default every source that has pairs with the baseline.
    perplexities : sequence of TextPerplexity, optional
        Such as ``rag_sourcebias.neural.perplexity.CausalPerplexity``; names must differ. The
        first two enter the decomposition.
    config : ExplainConfig, optional
    on_stage : callable, optional
        Told what begins.
    on_progress : callable, optional
        Told ``(done, total)`` while texts are encoded or read by a language model.

    Returns
    -------
    ExplainReport
        What could not be computed for want of data is None, and ``notes`` of the source say how
        much is needed.

    Raises
    ------
    MissingTagsError, DataError
        If there are no pairs, a source is unknown, or names of models repeat.
    InsufficientDataError
        If no source has two pairs.
    MissingExtraError
        If the library of the map is not installed.

    Examples
    --------
    >>> from rag_sourcebias import load_sample
    >>> report = explain_sources(load_sample())
    >>> [(s.source, s.n_pairs) for s in report.sources]
    [('llm:claude', 160)]
    """
    config = config or ExplainConfig()
    tell = on_stage or (lambda _: None)
    if encoder is not None:
        require_map(config.map_method)
    require_distinct("language model", [model.name for model in perplexities])
    if sources is not None and not sources:
        raise DataError("there is no source to explain: name one, or None for all with pairs")
    require_distinct("source", sources or ())
    chosen = chosen_sources(dataset.corpus.tags, sources, config.baseline_source)
    judged = judged_pairs_of(dataset)
    draws = [draw_pairs(dataset, source, judged, config) for source in chosen]
    warnings = [
        f"{draw.source}: {len(draw)} complete pair(s), at least 2 are needed; left out"
        for draw in draws
        if len(draw) < 2
    ]
    draws = [draw for draw in draws if len(draw) >= 2]
    if not draws:
        raise InsufficientDataError("nothing can be compared: " + "; ".join(warnings), n_needed=2)
    encoded = None
    stated = {model.name: model.settings for model in perplexities}
    if encoder is not None:
        tell(f"encoding with {encoder.name}")
        encoded = encode_pairs(dataset, encoder, draws, on_progress=on_progress)
        stated = {"encoder": encoder.settings, **stated}
    work = Explanation(
        dataset=dataset,
        encoded=encoded,
        models=tuple(KnownPerplexities(model, progress=on_progress) for model in perplexities),
        config=config,
        on_stage=tell,
    )
    return ExplainReport(
        config=config,
        data=summarise_dataset(dataset),
        encoder="" if encoder is None else encoder.name,
        sources=tuple(work.of(draw) for draw in draws),
        environment=environment()
        | {f"{name}: {key}": value for name, some in stated.items() for key, value in some.items()},
        created=timestamp(),
        warnings=((_INDEPENDENT,) if dataset.design == "independent" else ()) + tuple(warnings),
    )
