"""Fit from texts, apply to responses, keep in a file."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hashing_encoder import HashingEncoder
from judged_answers import SYSTEMS, judged_answers

from rag_sourcebias.answers.data import AnswerScores
from rag_sourcebias.answers.measure import (
    StyleAdjustment,
    cosine_similarities,
    fit_adjustment,
    fit_similarity_adjustment,
    read_adjustment,
    reference_similarity,
    write_adjustment,
)
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.measure.texts import word_counts


def flat(**changes):
    """One slope, −0.1 for each unit of ln(1 + words)."""
    found = StyleAdjustment(
        shortest=0.0,
        longest=10.0,
        knots=(),
        coefficients=np.array([-0.1]),
        center=0.0,
        n_answers=10,
        n_questions=5,
    )
    return replace(found, **changes)


def test_the_fit_is_that_of_the_scores_of_the_texts():
    answers, encoder = judged_answers(), HashingEncoder(512)
    found = fit_similarity_adjustment(answers, encoder)
    similarity = reference_similarity(answers.references, answers.answers, encoder)
    scores = AnswerScores(
        question_ids=answers.question_ids,
        systems=answers.systems,
        scores=similarity,
        correct=answers.correct,
        words=word_counts(answers.answers),
    )
    expected = fit_adjustment(scores)
    assert found.encoder == "hashing-512"
    assert expected.encoder == ""
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    adjusted = found.adjust(answers.answers, similarity)
    np.testing.assert_allclose(adjusted.score, expected.apply(scores).scores)
    np.testing.assert_array_equal(adjusted.similarity, similarity)
    means = {
        s: [part[(np.array(answers.systems) == s) & (answers.correct == 1)].mean() for part in
            (adjusted.similarity, adjusted.score)]
        for s in SYSTEMS
    }  # fmt: skip
    raw, new = np.ptp(list(means.values()), axis=0)
    assert raw > 0.4
    assert new < 0.05 * raw


def test_the_offset_is_taken_off_and_the_range_kept():
    found = flat().adjust(["", "one", "one two three"], np.array([0.5, 1.0, -0.9]))
    np.testing.assert_allclose(found.offset, -0.1 * np.log([1, 2, 4]))
    np.testing.assert_allclose(found.score, [0.5, 1.0, -0.9 + 0.1 * np.log(4)])
    low = flat(coefficients=np.array([9.0])).adjust(["one two"], np.array([0.5]))
    assert low.score.tolist() == [-1.0]
    assert flat().adjust([], np.empty(0)).score.shape == (0,)


def test_another_encoder_is_refused():
    flat().check_encoder("anything")
    flat(encoder="a").check_encoder("a")
    with pytest.raises(DataError, match="fitted on encoder 'a', not on 'b'"):
        flat(encoder="a").check_encoder("b")


def test_cosines_row_by_row():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 7))
    expected = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(cosine_similarities(a, b), expected)
    same = cosine_similarities(a, 3 * a)
    assert same.max() <= 1.0
    np.testing.assert_allclose(same, 1.0)
    a[2] = 0
    with pytest.raises(DataError, match="row 2 is zero or not finite"):
        cosine_similarities(a, b)
    with pytest.raises(DataError, match=r"shapes \(5, 7\) and \(4, 7\)"):
        cosine_similarities(b, b[:4])


def test_a_file_keeps_an_adjustment_exactly(tmp_path):
    found = fit_similarity_adjustment(judged_answers(), HashingEncoder())
    write_adjustment(found, tmp_path / "style.json")
    back = read_adjustment(tmp_path / "style.json")
    for name in ("shortest", "longest", "knots", "center", "n_answers", "encoder"):
        assert getattr(back, name) == getattr(found, name)
    assert back.coefficients.tobytes() == found.coefficients.tobytes()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (None, DataError, "is not the JSON"),
        ({"kind": "other"}, DataError, "is no style adjustment"),
        ({"schema_version": 9}, UnsupportedVersionError, "schema version 9"),
        ({"center": "much"}, DataError, "not a complete style adjustment: Expected .*center'"),
        ({"coefficients": [1.0, 2.0]}, DataError, "2 coefficients; expected 1"),
        ({"coefficients": [None]}, DataError, "not finite"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, change, error, message):
    path = tmp_path / "style.json"
    write_adjustment(flat(), path)
    if change is None:
        path.write_text("{", encoding="utf-8")
    else:
        data = json.loads(path.read_text(encoding="utf-8")) | change
        path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(error, match=message):
        read_adjustment(path)
