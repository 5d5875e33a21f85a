"""Centred Relative Δ and its verdict through the public verb, and what is refused there."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import SkewCode, queries_for_verdict
from rag_sourcebias.source.audit import corrected_config, measure_source_bias
from rag_sourcebias.source.findings import AuditConfig, SourceCode
from rag_sourcebias.source.page import SkewReport

LLM = "llm:a"


def world(
    n=60, *, human=1, llm=1, lead=0.0, graded=False, noise=30, shared=False, rivals=0, seed=0
):
    """Queries with relevant documents of two sources and of none; ``lead`` raises human text.

    Without ``shared`` every query has documents of its own. ``rivals`` are further LLMs with a
    copy of each document.
    """
    rng = np.random.default_rng(seed)
    names = {"human": human, LLM: llm, **{f"llm:{i}": llm for i in range(rivals)}}
    run, qrels, tags = {}, {}, {}
    for q in range(n):
        where = q % 6 if shared else q
        grades, scores = {}, {f"noise-{i}": float(rng.normal()) for i in range(noise)}
        for source, count in names.items():
            for i in range(count):
                doc = f"{source}-{where}-{i}"
                tags[doc] = DocTags(source=source, pair_id=f"p{where}-{i}" if i < llm else None)
                grades[doc] = 1 + (where + i) % 3 if graded else 1
                scores[doc] = float(rng.normal(1.5 + lead * (source == "human")))
        run[f"q{q}"], qrels[f"q{q}"] = scores, grades
    tags |= {f"noise-{i}": DocTags(source="human") for i in range(noise)}
    return Run.from_dict(run), Qrels.from_dict(qrels), TagTable.from_tags(sorted(tags.items()))


def measure(found, *, clusters=None, **config):
    return measure_source_bias(*found, config=AuditConfig(**config), clusters=clusters)


def verdict(report):
    (found,) = report.systems[0].verdicts
    return found


class TestCentred:
    @pytest.mark.parametrize("gain", ["linear", "exponential"])
    @pytest.mark.parametrize("graded", [False, True])
    @pytest.mark.parametrize("pairs", [1, 2, 4])
    def test_equals_the_published_figure_on_paired_data(self, pairs, graded, gain):
        found = world(human=pairs, llm=pairs, graded=graded, lead=0.4, rivals=1)
        report = measure(found, gain=gain, cutoffs=(1, 3, 5, 10), measures=("NDCG",))
        for cell in report.systems[0].cells:
            assert abs(cell.centred.value - cell.relative_delta) < 1e-12 * 200
            assert cell.relative_delta != 0

    def test_differs_where_one_source_has_more_relevant_documents(self):
        """8 human and 2 LLM documents, ranked at random: the published figure is prevalence."""
        report = measure(world(300, human=8, llm=2), measures=("NDCG",))
        for cell in report.systems[0].cells:
            assert cell.relative_delta - cell.centred.value > 20
        assert verdict(report).code in (SkewCode.CANNOT_TELL, SkewCode.ALIKE)

    def test_may_lie_beyond_200(self):
        """1 human and 9 LLM documents, the human one first, k = 1: +360."""
        run = {f"q{q}": {f"h{q}": 10.0, **{f"l{q}-{i}": 1.0 for i in range(9)}} for q in range(9)}
        tags = {
            d: DocTags(source="human" if d[0] == "h" else LLM) for row in run.values() for d in row
        }
        qrels = Qrels.from_dict({q: dict.fromkeys(row, 1) for q, row in run.items()})
        report = measure(
            (Run.from_dict(run), qrels, TagTable.from_tags(tags.items())), cutoffs=(1,)
        )
        cell = report.systems[0].cell("NDCG@1", LLM)
        assert cell.relative_delta == 200
        assert cell.centred.value == pytest.approx(360)
        assert cell.centred.interval.upper >= 360

    def test_what_it_is_derived_from_is_in_the_report(self):
        system = measure(world(human=3, llm=1)).systems[0]
        (chance,) = system.chance
        for row, cell in enumerate(system.cells):
            value = 100 * chance.skew[row].sum() / chance.base[row].sum()
            assert cell.centred.value == pytest.approx(value, abs=1e-9)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("lead", "code"), [(2.0, SkewCode.FAVOURS_BASELINE), (-2.0, SkewCode.FAVOURS_OTHER)]
    )
    def test_a_planted_skew_is_found(self, lead, code):
        found = verdict(measure(world(200, lead=lead)))
        assert found.code is code
        assert found.interval.excludes(0.0)
        assert found.n_needed is None

    def test_a_cell_says_how_many_queries_are_needed_where_it_says_nothing_else(self):
        cells = [
            c for lead in (0, 2) for c in measure(world(80, lead=lead, seed=1)).systems[0].cells
        ]
        for cell in cells:
            needed = queries_for_verdict(cell.centred.interval, margin=5.0)
            assert cell.n_needed == (None if cell.centred.interval.excludes(0.0) else needed)
        assert {cell.n_needed is None for cell in cells} == {True, False}

    def test_what_only_the_correction_leaves_open_has_a_number_of_queries(self):
        run, qrels, tags = world(lead=0.5, seed=1)
        runs = [dataclasses.replace(run, name=name) for name in "abc"]
        found = measure((runs, qrels, tags)).systems[0].verdicts[0]
        assert found.interval.excludes(0.0)
        assert found.p_value < 0.05 < found.p_adjusted == pytest.approx(3 * found.p_value)
        assert found.code is SkewCode.CANNOT_TELL
        assert found.n_needed == queries_for_verdict(found.interval, margin=5.0) > 60

    def test_few_queries_cannot_tell_and_say_how_many_are_needed(self):
        found = verdict(measure(world(20, seed=1)))
        assert found.code is SkewCode.CANNOT_TELL
        assert found.n_needed > 20

    def test_a_wide_margin_makes_them_alike(self):
        assert verdict(measure(world(200), margin=60)).code is SkewCode.ALIKE
        assert verdict(measure(world(200), margin=0)).code is SkewCode.CANNOT_TELL

    def test_the_primary_measure_is_chosen_by_the_user(self):
        report = measure(world(), primary="MAP@3")
        assert verdict(report).measure == "MAP@3"
        primary = [c.measure for c in report.systems[0].cells if c.p_adjusted is not None]
        assert primary == ["MAP@3"]
        assert verdict(measure(world())).measure == "NDCG@5"
        assert verdict(measure(world(), measures=("MRR", "P"))).measure == "MRR@5"

    def test_verdicts_survive_the_file(self):
        report = measure(world(rivals=1))
        again = SkewReport.from_dict(report.to_dict())
        assert again.systems[0].verdicts == report.systems[0].verdicts
        assert again.systems[0].cells == report.systems[0].cells
        assert again.systems[0].across == report.systems[0].across


class TestDependence:
    def test_clusters_widen_where_queries_repeat_one_another(self):
        run, qrels, tags = world(20)
        lists = dict(zip(run.query_ids, run.top(100), strict=True))
        grades = {
            q: {qrels.doc_ids[c]: 1 for c in qrels.doc_codes[qrels.query_codes == i]}
            for i, q in enumerate(qrels.query_ids)
        }
        fivefold = Run.from_dict(
            {
                f"{q}-{i}": dict(zip(r.doc_ids, r.scores, strict=True))
                for q, r in lists.items()
                for i in range(5)
            }
        )
        judged = Qrels.from_dict({f"{q}-{i}": row for q, row in grades.items() for i in range(5)})
        groups = {q: q.split("-")[0] for q in judged.query_ids}
        once = verdict(measure((run, qrels, tags))).interval
        clustered = verdict(measure((fivefold, judged, tags), clusters=groups)).interval
        assert clustered.n_labeled == 20
        assert clustered.half_width > 0.95 * once.half_width
        assert clustered.method.code is InferCode.CLUSTER_FLIPS

    def test_shared_documents_cost_information(self):
        own = measure(world(120)).systems[0].cells[0].centred
        shared = measure(world(120, shared=True)).systems[0].cells[0].centred
        assert own.information == 1.0
        assert shared.information < 1.0

    def test_one_random_effects_row_for_several_rewriters(self):
        across = measure(world(rivals=5)).systems[-1].across
        assert (across.n_sources, across.refusal) == (6, None)
        assert across.interval.excludes(across.value) is False
        few = measure(world(rivals=1)).systems[-1].across
        assert few.interval is None
        assert "6" in str(few.refusal)
        assert measure(world()).systems[0].across is None

    def test_the_average_over_rewriters_varies_with_rewriters_and_with_queries(self):
        system = measure(world(rivals=5), measures=("NDCG",), cutoffs=(5,)).systems[-1]
        values, influence = [], []
        for chance in system.chance:
            skew, base = chance.skew[0], chance.base[0]
            values.append(100 * skew.sum() / base.sum())
            influence.append((100 * skew - values[-1] * base) / base.sum())
        by_query = np.mean(influence, axis=0)
        n = np.count_nonzero(by_query)
        variance = np.var(values, ddof=1) / 6 + np.sum(by_query**2) * n / (n - 1)
        mean, half = np.mean(values), stats.t.ppf(0.975, 5) * np.sqrt(variance)
        interval = system.across.interval
        assert system.across.value == interval.estimate == pytest.approx(mean)
        assert (interval.lower, interval.upper) == pytest.approx((mean - half, mean + half))

    @pytest.mark.parametrize(("rivals", "sampled"), [(4, False), (5, True)])
    def test_merged_models_are_a_sample_from_six_on(self, rivals, sampled):
        """Six of them say little of others; five are taken as they are."""
        found = verdict(measure(world(rivals=rivals), merge_llms=True)).interval
        code = InferCode.REWRITERS_SAMPLED if sampled else InferCode.REWRITERS_FIXED
        assert code(n=rivals + 1) in found.assumptions
        alone = verdict(measure(world(rivals=0))).interval
        assert (found.half_width > 1.5 * alone.half_width) == sampled

    @pytest.mark.parametrize("rivals", [1, 2])
    def test_merged_models_are_one_source(self, rivals):
        report = measure(world(rivals=rivals), merge_llms=True)
        assert report.data.documents.keys() == {"human", "llm"}
        assert verdict(report).other == "llm"


@pytest.mark.parametrize("llm", [1, 2])
def test_evidence_is_the_pair_of_versions_of_which_one_ranks_highest(llm):
    """Of two relevant human documents and one LLM version or two; one judged text has no tags."""
    run, qrels, tags = world(8, human=2, llm=llm, noise=5)
    rows = zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True)
    judged = [(qrels.query_ids[q], qrels.doc_ids[d], int(g)) for q, d, g in rows]
    qrels = Qrels.from_rows([*judged, *((q, "gone", 1) for q in qrels.query_ids)])
    cases = measure((run, qrels, tags)).systems[0].evidence
    rank = {
        q: {doc_id: place for place, doc_id in enumerate(ranking.doc_ids, start=1)}
        for q, ranking in zip(run.query_ids, run.top(100), strict=True)
    }
    for case in cases:
        pairs = [(f"human-{case.item[1:]}-{i}", f"{LLM}-{case.item[1:]}-{i}") for i in range(llm)]
        best = min(pairs, key=lambda pair: min(rank[case.item][doc_id] for doc_id in pair))
        assert (case.first.doc_id, case.second.doc_id) == best
        assert [case.first.value, case.second.value] == [rank[case.item][d] for d in best]
    assert "q0" in {case.item for case in cases}


class TestRefusedVerdicts:
    """Too little of something is a verdict of its own, with the remedy, not an exception."""

    @pytest.mark.parametrize(("n_clusters", "refused"), [(5, True), (6, False)])
    def test_fewer_than_six_clusters(self, n_clusters, refused):
        found = world()
        clusters = {q: f"topic {i % n_clusters}" for i, q in enumerate(found[1].query_ids)}
        report = measure(found, clusters=clusters)
        assert (verdict(report).code is SkewCode.REFUSED) is refused
        if refused:
            assert verdict(report).interval is None
            assert verdict(report).p_value is None
            refusal = str(verdict(report).refusal)
            assert "5 clusters of queries" in refusal
            assert "at least 6 are needed" in refusal

    def test_clusters_of_which_one_holds_nearly_all_queries(self):
        found = world()
        clusters = {q: f"topic {max(0, i - 50)}" for i, q in enumerate(found[1].query_ids)}
        report = measure(found, clusters=clusters)
        refusal = verdict(report).refusal
        assert refusal.code is InferCode.UNEVEN
        assert refusal.numbers["n"] == 10
        assert refusal.numbers["effective"] == pytest.approx(60**2 / (51**2 + 9))
        notes = [note for note in report.systems[0].notes if note.code is InferCode.CLUSTERED]
        assert notes[0].numbers["effective"] == refusal.numbers["effective"]

    @pytest.mark.parametrize(("n", "refused"), [(5, True), (6, False)])
    def test_fewer_than_six_queries(self, n, refused):
        found = verdict(measure(world(n, noise=2)))
        assert (found.code is SkewCode.REFUSED) is refused
        assert found.centred_delta is not None

    def test_sources_without_a_common_query(self):
        run, qrels, tags = world(40)
        keep = np.array(
            [
                (qrels.doc_ids[d][:5] == "human") == (q % 2 == 0)
                for q, d in zip(qrels.query_codes.tolist(), qrels.doc_codes.tolist(), strict=True)
            ]
        )
        found = verdict(measure((run, qrels.take(keep), tags)))
        assert (found.code, found.n_queries, found.centred_delta) == (SkewCode.REFUSED, 0, None)
        assert found.refusal.code is SourceCode.NEVER_TOGETHER

    @pytest.mark.parametrize("same", [True, False])
    def test_one_pair_judged_for_all_queries(self, same):
        """However many queries there are, one pair of documents was seen."""
        rng = np.random.default_rng(0)
        run = {f"q{i}": {"h": 1.0, "l": float(rng.normal(1)) * (not same)} for i in range(50)}
        qrels = Qrels.from_dict({q: {"h": 1, "l": 1} for q in run})
        tags = TagTable.from_tags(
            (d, DocTags(source=s, pair_id="p")) for d, s in (("h", "human"), ("l", LLM))
        )
        system = measure((Run.from_dict(run), qrels, tags), primary="NDCG@1").systems[0]
        assert system.verdicts[0].code is SkewCode.REFUSED
        refusal = system.verdicts[0].refusal
        assert refusal.code is SourceCode.UNINFORMATIVE
        independent = refusal.numbers["independent"]
        assert 0 < independent < 3
        assert refusal.numbers["n_needed"] == math.ceil(50 * 3 / independent)
        assert system.twins[0].win_rate is None
        assert any("judge more documents" in str(note) for note in system.twins[0].notes)

    def test_nothing_retrieved(self):
        _, qrels, tags = world(40)
        run = Run.from_dict({q: {"noise-0": 1.0} for q in qrels.query_ids})
        found = verdict(measure((run, qrels, tags)))
        assert (found.code, found.centred_delta) == (SkewCode.REFUSED, None)


class TestBadInput:
    @pytest.mark.parametrize(
        ("settings", "wanted"),
        [
            ({"measures": ("MAP", "MRR")}, "MAP, MRR with baseline 'human'"),
            ({"primary": "MAP@3"}, "MAP@3 with baseline 'human'"),
            ({"baseline_source": LLM}, "NDCG, MAP with baseline 'llm:a'"),
        ],
    )
    def test_measures_that_verified_documents_cannot_correct(self, settings, wanted):
        with pytest.raises(DataError, match=f"asked for {wanted}"):
            corrected_config(AuditConfig(**settings))

    def test_clusters(self):
        found = world(12)
        with pytest.raises(DataError, match="12 queries have a cluster or judgments, not both"):
            measure(found, clusters={})
        measure(found, clusters={q: str(i // 2) for i, q in enumerate(found[1].query_ids)})


def strings(value: object):
    """Yield every text of a stored report."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        (world(4, noise=2), {}),
        (world(30, rivals=2), {}),
        (world(30, rivals=3), {"merge_llms": True}),
        (world(30, human=3, llm=1, shared=True), {"correction": "bh"}),
    ],
)
def test_no_sentence_is_stored(data, settings):
    report = measure(data, **settings)
    assert [text for text in strings(report.to_dict()) if len(text.split()) > 3] == []
    for system in report.systems:
        for note in (*system.notes, *(v.refusal for v in system.verdicts if v.refusal)):
            assert len(str(note).split()) > 3
