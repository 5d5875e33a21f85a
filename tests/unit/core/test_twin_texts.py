from __future__ import annotations

import pytest
from tagged_texts import corpus_of

from rag_sourcebias.core.data import Corpus, Dataset, Qrels, Query
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import paired_sources, training_pairs, twin_texts

HUMAN, LLM, SECOND = "human", "llm:a", "llm:b"


PAIRED = corpus_of(
    ("l2", LLM, "p2", "two, rewritten"),
    ("h1", HUMAN, "p1", "one"),
    ("h2", HUMAN, "p2", "two"),
    ("l1", LLM, "p1", "one, rewritten"),
    ("h3", HUMAN, "p3", "three"),
    ("l4", LLM, "p4", "four, rewritten"),
    ("x", None, "p1", "unknown"),
    ("u", HUMAN, None, "unpaired"),
)
QRELS = Qrels.from_dict({"q1": {"l2": 2, "h2": 1, "h3": 1}, "q2": {"h1": 1, "l2": 0}})


def dataset_of(corpus: Corpus, qrels: Qrels, *query_ids: str) -> Dataset:
    queries = tuple(Query(query_id=q, text=f"text of {q}") for q in query_ids)
    return Dataset(name="tiny", corpus=corpus, queries=queries, qrels=qrels)


def test_both_versions_of_a_pair_share_a_row() -> None:
    found = twin_texts(PAIRED)
    assert (found.baseline, found.source, len(found)) == (HUMAN, LLM, 2)
    assert found.pair_ids == ("p1", "p2")
    assert found.baseline_ids == ("h1", "h2")
    assert found.source_ids == ("l1", "l2")
    assert found.baseline_texts == ("one", "two")
    assert found.source_texts == ("one, rewritten", "two, rewritten")


def test_pairs_with_one_version_are_left_out_and_counted() -> None:
    assert twin_texts(PAIRED).n_incomplete == 2  # p3 and p4
    assert twin_texts(PAIRED).n_repeated == 0


def test_a_blank_text_is_a_missing_version() -> None:
    corpus = corpus_of(
        ("h1", HUMAN, "p1", "one"),
        ("l1", LLM, "p1", " \n"),
        ("h2", HUMAN, "p2", "two"),
        ("l2", LLM, "p2", "2"),
    )
    found = twin_texts(corpus)
    assert found.pair_ids == ("p2",)
    assert found.n_incomplete == 1


def test_the_first_of_several_versions_counts() -> None:
    corpus = corpus_of(
        ("h1", HUMAN, "p1", "one"),
        ("l1b", LLM, "p1", "first"),
        ("l1a", LLM, "p1", "second"),
        ("h1b", HUMAN, "p1", "again"),
    )
    found = twin_texts(corpus)
    assert (found.baseline_texts, found.source_texts) == (("one",), ("first",))
    assert found.n_repeated == 2


def test_qrels_keep_pairs_of_which_any_version_is_relevant() -> None:
    assert twin_texts(PAIRED, qrels=QRELS).pair_ids == ("p1", "p2")
    only_rewrite = Qrels.from_dict({"q": {"l2": 1, "h1": 0}})
    assert twin_texts(PAIRED, qrels=only_rewrite).pair_ids == ("p2",)


def test_excluded_pairs_are_left_out() -> None:
    assert twin_texts(PAIRED, exclude={"p1", "of another data set"}).pair_ids == ("p2",)
    with pytest.raises(DataError, match="'human' and 'llm:a' is left: all 2 pairs are excluded"):
        twin_texts(PAIRED, exclude=["p1", "p2"])


def test_another_baseline_and_source() -> None:
    corpus = corpus_of(
        ("a", LLM, "p", "1"),
        ("b", SECOND, "p", "2"),
        ("c", HUMAN, "p", "3"),
        ("d", HUMAN, "r", "4"),
    )
    found = twin_texts(corpus, baseline=SECOND, source=LLM)
    assert (found.baseline_texts, found.source_texts, found.n_incomplete) == (("2",), ("1",), 0)
    assert paired_sources(corpus.tags) == (LLM, SECOND)
    with pytest.raises(DataError, match=r"several sources .* \['llm:a', 'llm:b'\]; name one"):
        twin_texts(corpus)


@pytest.mark.parametrize("source", ["llm:none", HUMAN])
def test_a_source_that_cannot_be_paired_is_refused(source: str) -> None:
    with pytest.raises(DataError, match=rf"source '{source}' cannot be paired .*\['llm:a'\]"):
        twin_texts(PAIRED, source=source)


@pytest.mark.parametrize("only", [HUMAN, LLM])
def test_one_sided_data_is_refused(only: str) -> None:
    with pytest.raises(
        DataError,
        match=r"no document has the baseline source 'human'|a comparison needs a second source",
    ):
        twin_texts(corpus_of(("a", only, "p", "1"), ("b", only, "r", "2")))


def test_data_without_pairs_is_refused() -> None:
    with pytest.raises(DataError, match="0 of 2 documents have a pair_id; give a document and its"):
        twin_texts(corpus_of(("a", HUMAN, None, "1"), ("b", LLM, None, "2")))


def test_judgments_of_other_documents_are_refused() -> None:
    with pytest.raises(DataError, match=r"2 pairs .*\['p1', 'p2'\].*\['MED-1'\]"):
        twin_texts(PAIRED, qrels=Qrels.from_dict({"q": {"MED-1": 1}}))


def test_one_training_row_for_each_query_and_relevant_pair() -> None:
    qrels = Qrels.from_dict(
        {"q2": {"h2": 1, "l2": 2, "l1": 1}, "q1": {"h1": 1, "h3": 2}, "other": {"h2": 1}}
    )
    found = training_pairs(dataset_of(PAIRED, qrels, "q1", "q2", "unjudged"))
    assert found.query_ids == ("q1", "q2", "q2")
    assert found.queries == ("text of q1", "text of q2", "text of q2")
    assert [found.twins.pair_ids[row] for row in found.rows] == ["p1", "p1", "p2"]
    assert len(found) == 3


def test_the_lowest_grade_decides_what_is_relevant() -> None:
    data = dataset_of(PAIRED, QRELS, "q1", "q2")
    assert len(training_pairs(data)) == 2
    strict = training_pairs(data, min_grade=2)
    assert (strict.query_ids, strict.twins.pair_ids) == (("q1",), ("p2",))
    with pytest.raises(DataError, match="a document of grade 3 or more"):
        training_pairs(data, min_grade=3)
