"""The check of a paired corpus: criteria, pairs, corpora searched alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from paired_texts import LLM, WordSpec, human_text, paired_dataset

from rag_sourcebias.core.data import Corpus, DocTags, Qrels, TagTable
from rag_sourcebias.core.errors import DataError, MissingTagsError
from rag_sourcebias.infer.equivalence import equivalence_test
from rag_sourcebias.pairs.audit import check_paired_corpus
from rag_sourcebias.pairs.data import PairCheckConfig, PairChecks

FAST = PairCheckConfig()


def retagged(dataset, change):
    """Return the data set with the tags that ``change(doc_id, tags)`` gives."""
    tags = dataset.corpus.tags
    table = TagTable.from_tags((d, change(d, tags.get(d))) for d in tags.doc_ids)
    return dataclasses.replace(dataset, corpus=Corpus(texts=dataset.corpus.texts, tags=table))


def judged(dataset, change):
    q = dataset.qrels
    rows = [
        (q.query_ids[a], q.doc_ids[b], int(g))
        for a, b, g in zip(q.query_codes, q.doc_codes, q.grades, strict=True)
    ]
    return dataclasses.replace(dataset, qrels=Qrels.from_rows(change(rows)))


def test_a_good_corpus_meets_all_criteria() -> None:
    report = check_paired_corpus(paired_dataset(), config=FAST)
    (part,) = report.sources
    c = part.criteria
    assert (c.sources_known, c.labels_copied, c.one_to_one) == (True, True, True)
    assert (c.n_documents, c.n_pairs, c.n_labels) == (80, 40, 40)
    assert part.summary.n_broken == 0
    assert part.summary.flagged["numbers"] == part.summary.flagged["names"] == 0
    assert report.warnings == ()
    assert report.sole_corpus == ()
    assert (report.data.n_pairs, report.encoder) == (40, "")


def test_faults_are_found_counted_and_shown_worst_first() -> None:
    def faulty(i: int, human: str, other: str) -> str:
        if i == 3:
            return "I'm sorry, but I can't assist with that request."
        if i == 5:
            return human
        return other.replace(f"{1200 + 7 * i} crowns", "many crowns") if i == 9 else other

    kept: dict[str, PairChecks] = {}
    report = check_paired_corpus(
        paired_dataset(rewrite=faulty), config=FAST, on_checks=kept.__setitem__
    )
    (part,) = report.sources
    assert part.source == LLM
    assert part.flagged_ids["refusal"] == ("d3",)
    assert part.flagged_ids["copy"] == ("d5",)
    assert "d9" in part.flagged_ids["numbers"]
    assert {p.pair_id for p in part.worst[:2]} == {"d3", "d5"}
    assert part.broken_share == 2 / 40
    (lost,) = [p for p in part.worst if p.pair_id == "d9"]
    assert lost.numbers_missing == ("1263",)
    assert (lost.baseline_text, lost.broken) == (human_text(9), False)
    assert lost.values["numbers_kept"] == pytest.approx(2 / 3, abs=0.2)
    assert "cosine" not in lost.values
    # The callback has what the report leaves out.
    assert kept[LLM].pair_ids == tuple(f"d{i}" for i in range(40))
    assert kept[LLM].summary() == part.summary


def test_texts_are_cut_and_say_how_long_they_are() -> None:
    report = check_paired_corpus(
        paired_dataset(rewrite=lambda _i, human, _o: human),
        config=PairCheckConfig(worst=3, text_limit=25),
    )
    assert len(report.sources[0].worst) == 3
    for pair in report.sources[0].worst:
        assert len(pair.baseline_text) == 25
        assert pair.baseline_length == pair.other_length > 200
    assert len(report.sources[0].flagged_ids["copy"]) == 40


def test_documents_without_source_or_counterpart_are_named() -> None:
    data = paired_dataset(rewrite=lambda i, _h, other: None if i >= 30 else other)
    data = retagged(
        data, lambda d, tags: DocTags() if d == "d0@human" else dataclasses.replace(tags)
    )
    report = check_paired_corpus(data, config=FAST)
    c = report.sources[0].criteria
    assert (c.untagged.n, c.untagged.first) == (1, ("d0@human",))
    assert c.n_pairs == 29
    assert (c.baseline_alone.n, c.baseline_alone.first[0]) == (10, "d30@human")
    assert (c.other_alone.n, c.other_alone.first) == (1, (f"d0@{LLM}",))
    assert (c.sources_known, c.one_to_one) == (False, False)


def test_labels_that_were_not_copied_are_named() -> None:
    def spoil(rows):
        kept = [r for r in rows if r[1] != f"d4@{LLM}" and r[1] != "d6@human"]
        return [(q, d, 2 if d == f"d7@{LLM}" else g) for q, d, g in kept]

    report = check_paired_corpus(judged(paired_dataset(), spoil), config=FAST)
    c = report.sources[0].criteria
    assert c.labels_copied is False
    assert (c.labels_missing.n, c.labels_missing.first) == (1, (f"q4: d4@{LLM}",))
    assert (c.labels_differ.n, c.labels_differ.first) == (1, (f"q7: d7@{LLM}",))
    assert (c.labels_added.n, c.labels_added.first) == (1, (f"q6: d6@{LLM}",))


def test_a_corpus_without_judgments_is_checked_but_for_labels() -> None:
    report = check_paired_corpus(paired_dataset().corpus, config=FAST)
    assert report.sources[0].criteria.labels_copied is None
    assert report.sources[0].summary.n_pairs == 40
    with pytest.raises(DataError, match=r"retrievers \['words'\] need queries and judgments"):
        check_paired_corpus(paired_dataset().corpus, retrievers=[WordSpec()])


def test_corpora_that_are_equally_hard_are_equivalent() -> None:
    spec = WordSpec()
    report = check_paired_corpus(paired_dataset(n=300), retrievers=[spec], config=FAST)
    assert len(report.sole_corpus) == report.n_tests == 8
    assert [len(ids) for ids in spec.built] == [300, 300]
    assert {d.split("@")[1] for d in spec.built[0]} == {"human"}
    for test in report.sole_corpus:
        assert test.verdict == "equivalent"
        assert (test.mean_baseline, test.mean_other, test.n_queries) == (1, 1, 300)
        assert test.p_equivalent_adjusted >= test.p_equivalent


def test_a_corpus_that_is_harder_is_different() -> None:
    """Every second rewrite lost the word that its query asks for."""
    data = paired_dataset(
        n=80, rewrite=lambda i, _h, other: other.replace(f"number{i}", "one") if i % 2 else other
    )
    report = check_paired_corpus(data, retrievers=[WordSpec()], config=FAST)
    for test in report.sole_corpus:
        assert (test.verdict, test.mean_baseline, test.mean_other) == ("different", 1, 0.5)
        assert test.difference.lower > 0.3
        assert test.p_equivalent > 0.5


def test_only_pairs_and_shared_queries_are_compared_alone() -> None:
    """Missing rewrites make neither corpus smaller than the other, nor a query unanswerable."""
    data = paired_dataset(n=60, rewrite=lambda i, _h, other: None if i >= 40 else other)
    spec = WordSpec()
    report = check_paired_corpus(data, retrievers=[spec], config=FAST)
    assert [len(ids) for ids in spec.built] == [40, 40]
    assert report.sole_corpus[0].n_queries == 40
    assert report.sole_corpus[0].mean_other == 1
    assert any("20 of 60 judged queries" in w for w in report.warnings)


def test_p_values_are_adjusted_over_retrievers_and_sources() -> None:
    sources = ("llm:a", "llm:b")
    report = check_paired_corpus(
        paired_dataset(n=30, sources=sources),
        retrievers=[WordSpec("one"), WordSpec("two")],
        config=FAST,
    )
    assert report.n_tests == 2 * 2 * 8
    assert {(t.system, t.other) for t in report.sole_corpus} == {
        (name, source) for name in ("one", "two") for source in sources
    }
    first = report.sole_corpus[0]
    assert first.p_equivalent_adjusted == pytest.approx(min(1, 32 * first.p_equivalent))
    alone = equivalence_test(np.ones(30), np.ones(30), margin=FAST.margin, level=FAST.level / 32)
    assert first.n_needed == alone.n_needed
    only = check_paired_corpus(paired_dataset(sources=sources), sources=["llm:b"], config=FAST)
    assert [p.source for p in only.sources] == ["llm:b"]


def test_rewrites_of_other_documents_in_a_corpus_of_alike_texts_are_warned_of() -> None:
    def template(i: int, side: str) -> str:
        return f"The {side} of item {i} is the same as that of all others, as it must be here."

    data = paired_dataset(
        n=0, texts=[(f"t{i}", template(i, "price"), template(i + 1, "cost")) for i in range(30)]
    )
    report = check_paired_corpus(data.corpus, config=FAST)
    assert any("resemble one another" in w for w in report.warnings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"baseline_source": "llm:none"}, "no document has the baseline source 'llm:none'"),
        ({"retrievers": [WordSpec(), WordSpec()]}, "retriever names must differ"),
    ],
)
def test_what_is_not_there_is_refused(arguments, message) -> None:
    with pytest.raises(DataError, match=message):
        check_paired_corpus(paired_dataset(), **arguments)


def test_ids_of_versions_that_do_not_meet_are_refused_with_the_cause() -> None:
    def zeros(_: str, tags: DocTags) -> DocTags:
        number = int("".join(filter(str.isdigit, str(tags.pair_id))))
        return dataclasses.replace(tags, pair_id=f"{number:0{2 + (tags.source == 'human')}d}")

    with pytest.raises(DataError, match=r"ids differ in leading zeros, as '\d{3}' and '\d{2}' do"):
        check_paired_corpus(retagged(paired_dataset(), zeros))


def test_a_corpus_without_tags_is_refused() -> None:
    with pytest.raises(MissingTagsError):
        check_paired_corpus(retagged(paired_dataset(), lambda *_: DocTags()))
