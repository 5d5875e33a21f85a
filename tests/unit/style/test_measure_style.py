"""The verb that measures style bias from similarities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.infer.means import adjust_p_values
from rag_sourcebias.style.audit import measure_style_bias
from rag_sourcebias.style.data import StyleConfig
from rag_sourcebias.style.measure import adjusted_from_means, length_columns, length_slope

DOCS = ("human", "a", "b", "c")
FORMS = ("original", "a", "c")
CONFIG = StyleConfig(resamples=400)


def styled(n, *, docs=DOCS, forms=FORMS, seed=0, **changes):
    rng = np.random.default_rng(seed)

    def column(side, style, least):
        return tuple(
            f"{side} {style} {i} " + "word " * int(rng.integers(least, 40)) for i in range(n)
        )

    values = {
        "query_ids": tuple(f"q{i}" for i in range(n)),
        "queries": {style: column("query", style, 1) for style in forms},
        "documents": {style: column("text", style, 10) for style in docs},
        "license": "CC0",
        "attribution": "me",
    }
    return StyledTexts(**{**values, **changes})


def similarities(n, *, seed=1, match=0.0):
    rng = np.random.default_rng(seed)
    found = rng.normal(-0.6 * np.arange(4), 1, (n, 3, 4))
    found[:, 1, 1] += match
    found[:, 2, 3] += match
    return found


def test_every_figure_against_its_definition():
    n, scores, texts = 60, similarities(60, match=1.0), styled(60)
    report = measure_style_bias({"x": scores}, texts, config=CONFIG, settings={"x": {"k": "v"}})
    system = report.system("x")
    ranks = stats.rankdata(-scores, axis=2)
    assert np.array_equal(system.ranks, ranks)
    assert system.settings == {"k": "v"}
    lengths = np.array([[len(texts.documents[s][i].split()) for s in DOCS] for i in range(n)])
    for at, row in enumerate(system.rows):
        own, means = ranks[:, at], ranks[:, at].mean(axis=0)
        assert row.query_style == FORMS[at]
        assert [i.estimate for i in row.average_ranks] == pytest.approx(means)
        assert row.unfairness.score == pytest.approx(np.ptp(means) * means.std())
        assert row.unfairness_interval.estimate == pytest.approx(row.unfairness.score)
        expected = stats.friedmanchisquare(*own.T)
        assert row.friedman.statistic == pytest.approx(expected.statistic)
        columns = length_columns(own, lengths).mean(axis=0)
        assert row.length_slope == pytest.approx(length_slope(columns))
        assert [i.estimate for i in row.adjusted_ranks] == pytest.approx(
            adjusted_from_means(columns)
        )
        assert [(p.first, p.second) for p in row.against_original] == [
            (style, "human") for style in DOCS[1:]
        ]
        for j, pair in enumerate(row.against_original, start=1):
            difference = own[:, j] - own[:, 0]
            low, high = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
            assert pair.difference == pair.interval.estimate == pytest.approx(difference.mean())
            assert (pair.interval.lower, pair.interval.upper) == pytest.approx((low, high))
        assert [p.p_adjusted for p in row.against_original] == pytest.approx(
            adjust_p_values([p.p_value for p in row.against_original])
        )
    scores_of_rows = [row.unfairness.score for row in system.rows]
    assert system.mean_unfairness.estimate == pytest.approx(np.mean(scores_of_rows))


def test_matching_compares_a_column_with_its_diagonal():
    scores = similarities(80, match=1.5)
    system = measure_style_bias({"x": scores}, styled(80), config=CONFIG).system("x")
    ranks = stats.rankdata(-scores, axis=2)
    gain_a = (ranks[:, 0, 1] + ranks[:, 2, 1]) / 2 - ranks[:, 1, 1]
    gain_c = (ranks[:, 0, 3] + ranks[:, 1, 3]) / 2 - ranks[:, 2, 3]
    found = {gain.style: gain for gain in system.matching}
    assert list(found) == ["a", "c", ""]
    assert found["a"].mean == found["a"].gain.estimate == pytest.approx(gain_a.mean())
    low, high = stats.ttest_1samp((gain_a + gain_c) / 2, 0).confidence_interval(0.95)
    assert (found[""].gain.lower, found[""].gain.upper) == pytest.approx((low, high))
    assert found[""].gain.lower > 0


def test_no_matching_without_a_common_style_or_a_second_query_style():
    scores = similarities(30)
    other = styled(30, forms=("original", "x", "y"))
    assert measure_style_bias({"s": scores}, other, config=CONFIG).systems[0].matching == ()
    one = styled(30, forms=("original",))
    report = measure_style_bias({"s": scores[:, :1]}, one, config=CONFIG)
    assert report.systems[0].matching == ()
    # An original wording is no style: a document style of its name does not match it.
    named = styled(30, docs=("original", "a", "b", "c"))
    report = measure_style_bias({"s": scores}, named)
    assert [gain.style for gain in report.systems[0].matching] == ["a", "c", ""]


def test_a_missing_version_takes_its_query_from_all_systems():
    n = 40
    texts = styled(n)
    blank = {**texts.documents, "b": (None, "  ", *texts.documents["b"][2:])}
    holes = styled(n, documents=blank)
    first, second = similarities(n, seed=1), similarities(n, seed=2)
    first[5, 1, 2] = np.nan
    report = measure_style_bias({"x": first, "y": second}, holes, config=CONFIG)
    assert report.data.dropped == ("q0", "q1", "q5")
    assert report.data.n_queries == 37
    keep = np.r_[2:5, 6:n]
    for name, array in (("x", first), ("y", second)):
        assert np.array_equal(report.system(name).ranks, stats.rankdata(-array[keep], axis=2))
        assert report.system(name).query_ids == tuple(f"q{i}" for i in keep)
    assert any("3 of 40 queries lack a version" in w and "q0, q1, q5" in w for w in report.warnings)


def test_missing_versions_can_be_refused():
    config = StyleConfig(missing="refuse", resamples=100)
    texts = styled(5)
    holes = styled(5, queries={**texts.queries, "a": (*texts.queries["a"][:4], None)})
    with pytest.raises(DataError, match=r"1 version.*query style 'a' of query 'q4'.* 4 of 5"):
        measure_style_bias({"x": similarities(5)}, holes, config=config)
    scores = similarities(5)
    scores[3, 2, 1] = np.nan
    with pytest.raises(DataError, match=r"1 version.*no similarity of 'x'.*'c'.*style 'a'.*'q3'"):
        measure_style_bias({"x": scores}, texts, config=config)


def test_a_style_without_texts_and_systems_without_common_queries():
    texts = styled(4)
    empty = styled(4, documents={**texts.documents, "c": ("",) * 4})
    with pytest.raises(InsufficientDataError, match="document style 'c' lacks 4"):
        measure_style_bias({"x": similarities(4)}, empty)
    first, second = similarities(4), similarities(4)
    first[:2], second[2:] = np.nan, np.nan
    with pytest.raises(InsufficientDataError, match=r"none of the 2 queries left has .*'y'"):
        measure_style_bias({"x": first, "y": second}, texts)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no similarities"),
        ({"x": np.zeros((5, 4, 3))}, r"'x' have shape \(5, 4, 3\), expected \(5, 3, 4\)"),
        (
            {"x": np.full((5, 3, 4), np.inf)},
            "similarities of 'x' are infinite, first for query style",
        ),
        ({"x": [["a"]]}, "'x' are not an array of numbers"),
    ],
)
def test_bad_similarities_are_named(given, message):
    with pytest.raises(DataError, match=message):
        measure_style_bias(given, styled(5))


def test_bad_names_are_named():
    config = StyleConfig(original="humna")
    with pytest.raises(DataError, match="original 'humna' is no document style; there are"):
        measure_style_bias({"x": similarities(5)}, styled(5), config=config)
    with pytest.raises(DataError, match="settings name 'y'"):
        measure_style_bias({"x": similarities(5)}, styled(5), settings={"y": {}})


def test_one_query_has_no_intervals():
    system = measure_style_bias({"x": similarities(1)}, styled(1), config=CONFIG).system("x")
    row = system.rows[0]
    assert row.average_ranks == (None,) * 4
    assert (row.unfairness_interval, row.adjusted_ranks, row.length_slope) == (None, (), None)
    assert [gain.gain for gain in system.matching] == [None] * 3
    assert any("at least 2 queries" in note for note in system.notes)


def test_ties_are_counted_and_share_their_ranks():
    scores = similarities(30)
    scores[0, 0] = 1.0
    scores[1, 0, :2] = 9.0
    system = measure_style_bias({"x": scores}, styled(30), config=CONFIG).system("x")
    assert system.notes == (
        "2 of 90 rankings (queries × query styles) hold ties, 1 of them tie every version",
    )
    assert np.array_equal(system.ranks, stats.rankdata(-scores, axis=2))
    expected = stats.friedmanchisquare(*stats.rankdata(-scores[:, 0], axis=1).T)
    assert system.rows[0].friedman.statistic == pytest.approx(expected.statistic)


@pytest.mark.parametrize(
    ("n", "told"),
    [(19, ["are too few to rank styles"]), (20, ["are few"]), (99, ["are few"]), (100, [])],
)
def test_few_queries_are_told(n, told):
    warnings = measure_style_bias({"x": similarities(n)}, styled(n), config=CONFIG).warnings
    found = [w for w in warnings if w.startswith(f"{n} queries are")]
    assert len(found) == len(told)
    assert all(text in warning for text, warning in zip(told, found, strict=True))


def test_two_document_styles_are_enough():
    documents = dict(list(styled(30).documents.items())[:2])
    matrices = similarities(30)[..., :2]
    report = measure_style_bias({"x": matrices}, styled(30, documents=documents), config=CONFIG)
    assert len(report.systems[0].rows[0].average_ranks) == 2


@pytest.mark.parametrize(("times", "most"), [((1.5, 0.4), "b"), ((1.7, 0.4), "a")])
def test_the_style_that_differs_most_in_length_is_named(times, most):
    texts = styled(8)
    documents = {
        name: (" ".join(["word"] * round(20 * size)),) * 8
        for name, size in zip(texts.documents, (1, *times, 1), strict=False)
    }
    assert tuple(documents)[:3] == ("human", "a", "b")
    found = measure_style_bias(
        {"x": similarities(8)}, styled(8, documents=documents), config=CONFIG
    ).warnings
    (told,) = [w for w in found if "differ by more than" in w]
    assert f"({most!r} has" in told


def test_warnings_say_what_limits_the_data():
    texts = styled(8)
    same = {**texts.documents, "b": ("same text", *texts.documents["b"][1:])}
    same["c"] = ("same text", *texts.documents["c"][1:])
    same["a"] = tuple(f"{text} {text}" for text in texts.documents["a"])
    odd = styled(8, documents=same, doc_ids=("d0", "d0", *(f"d{i}" for i in range(2, 8))))
    text = "\n".join(measure_style_bias({"x": similarities(8)}, odd, config=CONFIG).warnings)
    assert "8 queries are too few" in text
    assert "2 queries share their document" in text
    assert "1 of 8 queries have the same document text in two or more styles (first 'q0')" in text
    assert "document styles differ by more than 10% in length from 'human'" in text
    fine = measure_style_bias({"x": similarities(60)}, styled(60), config=CONFIG).warnings
    assert [w for w in fine if "length" not in w] == [
        "60 queries are few: read the intervals, not the averages alone"
    ]
