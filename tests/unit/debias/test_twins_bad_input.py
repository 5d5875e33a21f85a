"""What twin smoothing refuses or counts, through the verbs that people call."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import Corpus, DocTags, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.debias.twins import TwinRescorer, fit_twins


class Vectors:
    """An encoder whose vectors are given."""

    name = fingerprint = "given"

    def __init__(self, vectors: np.ndarray) -> None:
        self.vectors = vectors.astype(np.float32)

    def encode_documents(self, texts):
        return self.vectors[: len(texts)]

    encode_queries = encode_documents


def corpus(texts: list[str]) -> Corpus:
    return Corpus(
        texts=tuple(texts),
        tags=TagTable.from_tags((f"d{i}", DocTags()) for i in range(len(texts))),
    )


@pytest.mark.parametrize("by_vector", [True, False])
def test_equal_documents_are_refused_with_the_remedy(by_vector: bool) -> None:
    equal = corpus(["the very same words again"] * 300)
    encoder = Vectors(np.ones((300, 8))) if by_vector else None
    with pytest.raises(DataError, match="all 2 documents have one text"):
        fit_twins(corpus(["the same"] * 2), encoder)
    with pytest.raises(DataError, match="leave repeated documents out"):
        fit_twins(equal, encoder)


def test_a_few_equal_documents_are_one_group_and_the_template_is_counted() -> None:
    rng = np.random.default_rng(0)
    words = [" ".join(f"w{i}" for i in rng.integers(0, 5000, 40)) for _ in range(300)]
    found = fit_twins(corpus([*words, words[0], *["one template"] * 150]))
    assert ("d0", "d300") in found.groups
    assert found.settings.n_crowded in (0, 150)


def test_groups_of_another_collection_with_the_same_ids_are_refused() -> None:
    rng = np.random.default_rng(0)

    def copies(prefix: str, n: int = 60) -> Corpus:
        words = [[f"{prefix}{i}" for i in rng.integers(0, 5000, 40)] for _ in range(n)]
        return corpus([" ".join(w[:m]) for w in words for m in (40, 36)])

    first = copies("a")
    second = corpus(list(first.texts[1:] + first.texts[:1]))  # the same ids for other texts
    rescorer = TwinRescorer.fit(first)
    assert rescorer.within(first).groups.groups == rescorer.groups.groups  # the control
    half = Corpus(
        texts=first.texts[:60], tags=TagTable.from_tags((f"d{i}", DocTags()) for i in range(60))
    )
    assert rescorer.within(half).groups.groups
    with pytest.raises(DataError, match="0 % of those joined share their words; fit the groups"):
        rescorer.within(second)
    unknown = Corpus(texts=("x", "y"), tags=TagTable.from_tags((i, DocTags()) for i in "xy"))
    with pytest.raises(DataError, match="they know 0 of the 2 documents here"):
        rescorer.within(unknown)
