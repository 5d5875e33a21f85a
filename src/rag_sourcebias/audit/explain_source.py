"""Everything that is measured for one source, part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from rag_sourcebias.audit.explain_gap import explain_gap
from rag_sourcebias.audit.explain_pairs import DrawnPairs, JudgedPairs
from rag_sourcebias.audit.explain_perplexity import KnownPerplexities
from rag_sourcebias.audit.explain_vectors import EncodedPairs, unit
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.explain.geometry import positions_along_source, source_geometry
from rag_sourcebias.explain.histogram import histogram, unit_edges
from rag_sourcebias.explain.lexical import JudgedWords, QueryWords, judged_words, lexical_shift
from rag_sourcebias.explain.maps import map_sources
from rag_sourcebias.explain.model_perplexity import compare_perplexities
from rag_sourcebias.explain.spectrum import spectrum
from rag_sourcebias.explain.text_comparison import compare_texts, log_length_ratios
from rag_sourcebias.explain.word_sets import Vocabulary, WordSets, word_sets
from rag_sourcebias.types.arrays import FloatArray, IntArray
from rag_sourcebias.types.dataset import Dataset
from rag_sourcebias.types.explain import GapDecomposition
from rag_sourcebias.types.explain_report import (
    ExplainConfig,
    LexicalShift,
    ModelPerplexity,
    SourceExplanation,
)

__all__ = ["Explanation"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Measures one source after the other.

    Parameters
    ----------
    dataset : Dataset
    judged : JudgedPairs
    encoded : EncodedPairs or None
    models : tuple of KnownPerplexities
    config : ExplainConfig
    on_stage : callable
    """

    dataset: Dataset
    judged: JudgedPairs
    encoded: EncodedPairs | None
    models: tuple[KnownPerplexities, ...]
    config: ExplainConfig
    on_stage: Callable[[str], None]
    _vocabulary: Vocabulary = field(default_factory=dict, repr=False)

    def of(self, pairs: DrawnPairs) -> SourceExplanation:
        """Measure everything that the data allow."""
        told = _Told(notes=list(pairs.notes))
        self.on_stage(f"{pairs.source}: words")
        words = self._words(pairs.source)
        sides = (
            self._baseline[1].take(self._baseline[0][pairs.human]),
            words[1].take(words[0][pairs.other]),
        )
        texts = compare_texts(*sides, confidence_level=self.config.confidence_level)
        ratios = log_length_ratios(*sides)
        lexical, query_words = self._lexical(pairs, words, told)
        vectors = self._vectors(pairs, told)
        perplexities, gaps = self._perplexities(pairs, ratios, told)
        return SourceExplanation(
            source=pairs.source,
            n_pairs=len(pairs),
            n_available=pairs.n_available,
            texts=texts,
            lexical=lexical,
            **vectors,
            perplexity=perplexities,
            decomposition=self._decomposition(pairs, ratios, query_words, gaps, told),
            notes=tuple(told.notes),
            missing=told.missing,
        )

    @cached_property
    def _baseline(self) -> tuple[IntArray, WordSets]:
        return self._words(self.config.baseline_source)

    @cached_property
    def _queries(self) -> WordSets:
        return word_sets(self.judged.texts, self._vocabulary)

    def _words(self, source: str) -> tuple[IntArray, WordSets]:
        """Place of each row of the corpus among the documents of a source, and their words."""
        corpus = self.dataset.corpus
        rows = np.flatnonzero(corpus.tags.source_codes == corpus.tags.sources.index(source))
        place = np.full(len(corpus), -1)
        place[rows] = np.arange(len(rows))
        return place, word_sets([corpus.texts[row] for row in rows.tolist()], self._vocabulary)

    def _lexical(
        self, pairs: DrawnPairs, words: tuple[IntArray, WordSets], told: _Told
    ) -> tuple[LexicalShift | None, QueryWords | None]:
        queries, at = pairs.judged
        if not len(at):
            why = (
                "query words and the score gap need judged queries with text whose relevant "
                "documents are paired; there are none"
            )
            told.notes.append(why)
            told.missing |= {"lexical": why, "decomposition": why}
            return None, None
        self.on_stage(f"{pairs.source}: query words")
        judged = JudgedWords(
            queries=self._queries,
            query_rows=queries,
            human=self._baseline[1],
            other=words[1],
            human_rows=self._baseline[0][pairs.human[at]],
            other_rows=words[0][pairs.other[at]],
        )
        found = judged_words(judged, n_codes=len(self._vocabulary))
        shift = told.attempt(
            "query words",
            lambda: lexical_shift(
                judged,
                found,
                vocabulary=self._vocabulary,
                terms=self.config.terms,
                confidence_level=self.config.confidence_level,
            ),
            part="lexical",
        )
        return shift, found

    def _vectors(self, pairs: DrawnPairs, told: _Told) -> dict[str, Any]:
        """Parts that need vectors, by name of the field."""
        if self.encoded is None:
            why = "no encoder was given"
            told.missing |= dict.fromkeys(("cosine", "spectrum", "geometry", "map"), why)
            return {}
        config = self.config
        human, other = self.encoded.sides(pairs)
        ours, theirs = self.encoded.compared(pairs)
        self.on_stage(f"{pairs.source}: spectrum, geometry, map")
        cosines = np.einsum("ij,ij->i", unit(human), unit(other)).astype(np.float64)
        some = slice(config.map_limit)
        return {
            "cosine": histogram(cosines, unit_edges(cosines)),
            "spectrum": told.attempt(
                "spectrum",
                lambda: spectrum(
                    human,
                    other,
                    n_values=config.n_values,
                    resamples=config.resamples,
                    centre=config.centre,
                    normalise=config.normalise,
                    confidence_level=config.confidence_level,
                    rng=config.seed,
                ),
                part="spectrum",
            ),
            "geometry": told.attempt(
                "geometry",
                lambda: source_geometry(
                    ours, theirs, confidence_level=config.confidence_level, rng=config.seed
                ),
                part="geometry",
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
            self.on_stage(f"{pairs.source}: {known.model.name}")
            before, after = known.of(human), known.of(other)
            conditional = known.after(human, other)
            told.notes.extend(known.notes([*human, *other], conditional))
            gaps[known.model.name] = np.concatenate(
                (after - before, np.full(len(pairs) - n, np.nan))
            )
            compare = partial(
                compare_perplexities,
                before,
                after,
                log_length_ratio=ratios[:n],
                model=known.model.name,
                kind=known.model.kind,
                conditional=None if conditional is None else conditional.values,
                confidence_level=self.config.confidence_level,
            )
            compared = told.attempt(known.model.name, compare, part="perplexity")
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
        words: QueryWords | None,
        perplexities: Mapping[str, FloatArray],
        told: _Told,
    ) -> GapDecomposition | None:
        if self.encoded is None:
            told.missing.setdefault("decomposition", "no encoder was given")
        if self.encoded is None or words is None:
            return None
        self.on_stage(f"{pairs.source}: score gap")
        at = pairs.judged[1][words.rows]
        factors = {"log length ratio": ratios[at], "query words": words.other - words.human}
        human, other = self.encoded.compared(pairs)
        positions = told.attempt("source direction", lambda: positions_along_source(human, other))
        if positions is not None:
            factors["source direction"] = positions[at]
        found = explain_gap(
            self.encoded.score_gaps(pairs)[words.rows],
            factors,
            {f"perplexity, {name}": values[at] for name, values in perplexities.items()},
            queries=pairs.judged[0][words.rows],
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
                before = self.missing.get(part)
                self.missing[part] = f"{before}; {why}" if before else why
            return None
