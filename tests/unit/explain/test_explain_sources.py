"""Explaining whole data sets: planted differences, and what is said where data lack."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from explained_pairs import (
    LLM,
    CountingPerplexity,
    LikingEncoder,
    MaskedCounting,
    explained_dataset,
)

from rag_sourcebias.core.data import Corpus, Dataset, Qrels
from rag_sourcebias.core.errors import DataError, InsufficientDataError, MissingExtraError
from rag_sourcebias.explain import vectors as maps
from rag_sourcebias.explain.audit import explain_sources
from rag_sourcebias.explain.data import (
    ExplainConfig,
)
from rag_sourcebias.explain.report import ExplainReport
from rag_sourcebias.infer.findings import InferCode

CONFIG = ExplainConfig(resamples=60)


@pytest.fixture(scope="module")
def report() -> ExplainReport:
    return explain_sources(
        explained_dataset(),
        encoder=LikingEncoder(),
        perplexities=[CountingPerplexity()],
        config=CONFIG,
    )


def changed(dataset: Dataset, keep) -> Dataset:
    """Keep the documents for which ``keep(doc_id, source)`` holds."""
    rows = [
        row
        for row, doc_id in enumerate(dataset.corpus.doc_ids)
        if keep(*doc_id.split("@", maxsplit=1))
    ]
    return replace(dataset, corpus=dataset.corpus.take(np.array(rows)))


def test_the_planted_differences_are_found(report) -> None:
    (found,) = report.sources
    assert (found.source, found.n_pairs, found.n_available) == (LLM, 120, 120)
    assert not found.notes
    (perplexity,) = found.perplexity
    assert perplexity.gap.gap.estimate == pytest.approx(-0.4, abs=0.04)  # twice on average
    assert perplexity.bounded.n == 120
    assert perplexity.bounded.upper > perplexity.bounded.mean.estimate > 0.3
    assert report.encoder == "liking"
    assert report.environment["encoder: model"] == "liking"
    assert report.environment["counting: longer texts"] == "windows"


def test_the_score_gap_goes_with_what_was_planted(report) -> None:
    """Scores rise with "moreover", that is along the source direction, and with topic words."""
    found = report.sources[0].decomposition
    assert [factor.name for factor in found.factors] == [
        "log length ratio",
        "query words",
        "source direction",
        "perplexity, counting",
    ]
    assert found.n_queries == 60
    assert found.n == 120
    by_name = {factor.name: factor for factor in found.factors}
    assert by_name["query words"].slope.lower > 0
    assert by_name["query words"].component.upper < 0
    total = sum(factor.component.estimate for factor in found.factors)
    assert total + found.remainder.estimate == pytest.approx(found.gap.estimate)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_gaps_are_those_of_the_encoders_similarity(similarity) -> None:
    dataset, encoder = explained_dataset(), LikingEncoder(similarity=similarity)
    found = explain_sources(dataset, encoder=encoder, config=CONFIG).sources[0].decomposition
    text_of = dict(dataset.corpus)
    gaps = []
    for pair in range(120):
        query = encoder.encode_queries([dataset.queries[pair // 2].text])[0]
        sides = encoder.encode_documents([text_of[f"{pair}@{s}"] for s in ("human", LLM)])
        scores = sides @ query
        if similarity == "cosine":
            scores = scores / np.linalg.norm(sides, axis=1) / np.linalg.norm(query)
        gaps.append(float(scores[1] - scores[0]))
    assert found.gap.estimate == pytest.approx(np.mean(gaps), rel=1e-5)
    error = np.reshape(gaps, (60, 2)).mean(axis=1).std(ddof=1) / math.sqrt(60)
    assert found.gap.half_width == pytest.approx(2.0010 * error, rel=1e-3)
    # Queries point to "moreover", as the source direction does.
    direction = next(f for f in found.factors if f.name == "source direction")
    assert direction.slope.lower > 0
    assert direction.component.lower > 0


def test_without_judged_queries_the_reason_is_noted() -> None:
    found = explain_sources(
        explained_dataset(judged=False), encoder=LikingEncoder(), config=CONFIG
    ).sources[0]
    assert found.decomposition is None
    assert found.spectrum is not None
    assert any("needs judged queries with text" in note for note in found.notes)
    assert set(found.missing) == {"decomposition", "perplexity"}
    assert found.missing["decomposition"] == found.notes[-1]
    assert found.missing["perplexity"] == "no language model was given"


def test_every_source_in_turn_and_human_texts_are_read_once() -> None:
    model, encoder = CountingPerplexity(), LikingEncoder()
    dataset = explained_dataset(sources=("llm:b", "llm:a"))
    stages: list[str] = []
    progress: list[tuple[int, int]] = []
    report = explain_sources(
        dataset,
        encoder=encoder,
        perplexities=[model],
        config=CONFIG,
        on_stage=stages.append,
        on_progress=lambda done, of: progress.append((done, of)),
    )
    assert [found.source for found in report.sources] == ["llm:a", "llm:b"]
    human = [text for doc_id, text in dataset.corpus if doc_id.endswith("@human")]
    plain = [text for text in model.read if text in set(human)]
    assert len(plain) == len(set(human))
    assert len(encoder.encoded) == len(set(encoder.encoded))
    assert stages[0] == "encoding with liking"
    assert "llm:b: score gap" in stages
    assert progress[-1][0] == progress[-1][1]
    only = explain_sources(dataset, sources=["llm:b"], config=CONFIG)
    assert [found.source for found in only.sources] == ["llm:b"]
    of_vectors = ("cosine", "spectrum", "map", "decomposition")
    assert only.sources[0].missing == {
        **dict.fromkeys(of_vectors, "no encoder was given"),
        "perplexity": "no language model was given",
    }
    assert report.sources[0].missing == {}


def test_a_draw_takes_relevant_pairs_first_and_repeats() -> None:
    dataset = explained_dataset()
    judged = {"q3": {f"{pair}@human": 1 for pair in (6, 7)}, "q9": {f"18@{LLM}": 2}}
    dataset = replace(dataset, qrels=Qrels.from_dict(judged))
    config = replace(CONFIG, limit=50, perplexity_limit=3)
    model = CountingPerplexity()
    found = explain_sources(dataset, perplexities=[model], config=config).sources[0]
    assert (found.n_pairs, found.n_available) == (50, 120)
    assert found.notes[0] == (
        "50 of 120 pairs were drawn at random, 3 of them relevant to a judged query (of 3): those "
        "are drawn first"
    )
    assert "perplexities are of the first 3 of 50 pairs" in found.notes
    text_of = dict(dataset.corpus)
    assert set(model.read) == {text_of[f"{p}@{s}"] for p in (6, 7, 18) for s in ("human", LLM)}
    again = explain_sources(dataset, config=config).sources[0]
    assert again.texts == replace(
        found.texts, jaccard=again.texts.jaccard, overlap=again.texts.overlap
    )
    other = explain_sources(dataset, config=replace(config, seed=1)).sources[0]
    assert other.texts.mean_words_human != found.texts.mean_words_human


def test_incomplete_pairs_are_left_out_and_counted() -> None:
    dataset = explained_dataset(n=40)
    part = changed(dataset, lambda pair, source: not (source == LLM and int(pair) < 4))
    texts = list(part.corpus.texts)
    texts[part.corpus.doc_ids.index(f"9@{LLM}")] = "..."
    part = replace(part, corpus=Corpus(texts=tuple(texts), tags=part.corpus.tags))
    found = explain_sources(part).sources[0]
    assert found.n_available == 35
    assert found.notes[:2] == (
        "4 pair(s) with one version only, or a blank one: left out",
        "1 pair(s) with a version without any word: left out",
    )


def test_too_little_perplexity_leaves_the_rest_of_the_decomposition() -> None:
    config = replace(CONFIG, perplexity_limit=20)
    found = explain_sources(
        explained_dataset(),
        encoder=LikingEncoder(),
        perplexities=[CountingPerplexity(longest=20), MaskedCounting("masked")],
        config=config,
    ).sources[0]
    assert [f.name for f in found.decomposition.factors][-1] == "source direction"
    assert any(note.startswith("perplexity, counting is not part") for note in found.notes)
    assert any(
        note.startswith("counting: ") and "were read in windows" in note for note in found.notes
    )
    assert [(p.kind, p.bounded is None) for p in found.perplexity] == [
        ("causal", False),
        ("masked", True),
    ]


def test_factors_that_do_not_vary_are_left_out() -> None:
    dataset = explained_dataset()
    texts = [
        text.replace("moreover", "thus") if doc_id.endswith(LLM) else text
        for doc_id, text in dataset.corpus
    ]
    # Both versions hold the same topic words and as many words.
    swapped = [
        texts[row - 1].replace(" w1", " v1", 1) if doc_id.endswith(LLM) else text
        for row, (doc_id, text) in enumerate(zip(dataset.corpus.doc_ids, texts, strict=True))
    ]
    dataset = replace(dataset, corpus=Corpus(texts=tuple(swapped), tags=dataset.corpus.tags))
    found = explain_sources(dataset, encoder=LikingEncoder(), config=CONFIG).sources[0]
    assert [factor.name for factor in found.decomposition.factors] == ["source direction"]
    assert (
        "query words is the same for every relevant pair: not part of the decomposition"
        in found.notes
    )
    assert found.texts.log_length_ratio.method.code is InferCode.ALIKE


def test_identical_copies_have_nothing_to_explain() -> None:
    dataset = explained_dataset()
    texts = dataset.corpus.texts
    same = tuple(
        texts[row - 1] if doc_id.endswith(LLM) else texts[row]
        for row, doc_id in enumerate(dataset.corpus.doc_ids)
    )
    dataset = replace(dataset, corpus=Corpus(texts=same, tags=dataset.corpus.tags))
    report = explain_sources(dataset, encoder=LikingEncoder(), config=CONFIG)
    assert report.sources[0].decomposition is None
    (why,) = [note for note in report.sources[0].notes if "score gap" in note]
    assert why == (
        "the score gap is not decomposed: the versions of every relevant pair are the same in all "
        "that was measured, so there is no difference to explain a gap"
    )
    assert "beyond doubt" in str(report.page().first.answer)


def test_what_cannot_be_explained(monkeypatch) -> None:
    dataset = explained_dataset(n=10)
    with pytest.raises(DataError, match="source 'llm:y' cannot be paired"):
        explain_sources(dataset, sources=["llm:y"])
    with pytest.raises(DataError, match="source names must differ, 'llm:x' occurs 2 times"):
        explain_sources(dataset, sources=[LLM, LLM])
    with pytest.raises(DataError, match="there is no source to explain"):
        explain_sources(dataset, sources=[])
    with pytest.raises(
        DataError, match="language model names must differ, 'counting' occurs 2 times"
    ):
        explain_sources(dataset, perplexities=[CountingPerplexity()] * 2)
    one = changed(dataset, lambda pair, source: source == "human" or pair == "3")
    with pytest.raises(InsufficientDataError, match=r"llm:x: 1 complete pair\(s\), at least 2"):
        explain_sources(one)
    unpaired = changed(dataset, lambda pair, source: (source == LLM) == (int(pair) < 5))
    with pytest.raises(DataError, match="no document of 'human' shares its pair_id"):
        explain_sources(unpaired)
    monkeypatch.setattr(maps, "find_spec", lambda _: None)
    encoder = LikingEncoder()
    with pytest.raises(MissingExtraError, match="a map by tsne needs scikit-learn"):
        explain_sources(dataset, encoder=encoder, config=replace(CONFIG, map_method="tsne"))
    assert not encoder.encoded  # said before anything was encoded


def test_a_model_of_the_wrong_shape_is_named() -> None:
    class Broken(CountingPerplexity):
        def log_perplexities(self, texts, *, progress=None):
            return super().log_perplexities(texts[1:], progress=progress)

    with pytest.raises(DataError, match=r"'counting' returned values of shape \(\d+,\) for"):
        explain_sources(explained_dataset(n=10), perplexities=[Broken()])
