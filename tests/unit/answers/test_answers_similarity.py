"""References with several wordings, and the similarity to the nearest."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hashing_encoder import HashingEncoder

from rag_sourcebias.answers.measure import reference_similarity
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.answers import split_references


class Vectors:
    """An encoder with given vectors."""

    name, fingerprint, settings = "given", "given", {}

    def __init__(self, vectors):
        self.vectors = vectors

    def encode_documents(self, texts):
        return np.array([self.vectors[t] for t in texts], dtype=np.float32)

    encode_queries = encode_documents


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("Paris", ["Paris"]),
        ("US/ United States /USA", ["US", "United States", "USA"]),
        ("a//b/", ["a", "b"]),
        ("a/b/a", ["a", "b"]),
        ("16 March 2018/3–4 April 2018", ["16 March 2018", "3–4 April 2018"]),
        ("1938/1933", ["1938", "1933"]),
        ("9/11", ["9/11", "9", "11"]),
        ("5/18/2018", ["5/18/2018", "5", "18", "2018"]),
        (["AC/DC", "AC DC ", "AC/DC"], ["AC/DC", "AC DC"]),
        (("one",), ["one"]),
    ],
)
def test_split_references(reference, expected):
    assert split_references(reference) == expected


def test_another_separator_or_none():
    assert split_references("AC/DC | ACDC", separator="|") == ["AC/DC", "ACDC"]
    assert split_references("AC/DC", separator=None) == ["AC/DC"]


@pytest.mark.parametrize("reference", ["", "  ", "/", [], ["", " "], None])
def test_a_reference_without_text_is_refused(reference):
    with pytest.raises(DataError, match="holds no text; at least one wording"):
        split_references(reference)


def test_the_nearest_alternative_counts():
    encoder = Vectors({"x": [2, 0], "y": [0, 3], "xy": [1, 1], "far": [-1, 0]})
    found = reference_similarity(
        [["x", "y"], ["y"], ["x"], ["x"]], ["y", "xy", "far", " "], encoder
    )
    assert found[:3] == pytest.approx([1.0, math.sqrt(0.5), -1.0])
    assert math.isnan(found[3])


def test_each_distinct_text_is_encoded_once():
    encoder = HashingEncoder()
    found = reference_similarity([["a b", " c"], ["c"], ["c", ""]], ["c", "c", "a b"], encoder)
    assert encoder.calls == [["a b", "c"]]
    assert found[:2] == pytest.approx([1, 1])


def test_bad_input_is_refused():
    encoder = Vectors({"a": [1, 0], "zero": [0, 0], "nan": [math.nan, 1]})
    with pytest.raises(DataError, match="zeros for 'zero'"):
        reference_similarity([["a"]], ["zero"], encoder)
    with pytest.raises(DataError, match="NaN or infinity, first for 'nan'"):
        reference_similarity([["a"]], ["nan"], encoder)
    encoder.encode_documents = lambda texts: np.ones((1, 2))
    with pytest.raises(DataError, match=r"returned shape \(1, 2\) for 2 texts"):
        reference_similarity([["a"]], ["zero"], encoder)
