from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rag_sourcebias.core.completions import LogPerplexities
from rag_sourcebias.core.protocols import ConditionalPerplexity, TextPerplexity
from rag_sourcebias.explain.command import CachedConditional, CachedPerplexity
from rag_sourcebias.retrieval.cache import VectorCache


class Counting:
    """The log-perplexity of a text is its number of words over 3; an empty one has none."""

    name, kind, fingerprint = "causal:counting", "causal", "counting-1"
    settings = {"model": "counting"}  # noqa: RUF012

    def __init__(self, stop_after: int | None = None) -> None:
        self.read: list[str] = []
        self.stop_after = stop_after

    def log_perplexities(self, texts: Sequence[str], *, progress=None) -> LogPerplexities:
        if self.stop_after is not None and len(self.read) >= self.stop_after:
            raise KeyboardInterrupt
        self.read += texts
        words = np.array([len(text.split()) for text in texts])
        return LogPerplexities(
            values=np.where(words > 0, words / 3, np.nan), tokens=words, parts=1 + words // 10
        )

    def conditional(self, prefixes: Sequence[str], texts: Sequence[str], *, progress=None):
        found = self.log_perplexities([f"{p}|{t}" for p, t in zip(prefixes, texts, strict=True)])
        return LogPerplexities(
            values=found.values,
            tokens=found.tokens,
            parts=found.parts,
            prefix_cut=np.array([len(p) > 4 for p in prefixes], dtype=np.int64),
        )


TEXTS = [" ".join(["word"] * n) + f" {n}" for n in range(1, 60)] + [""]


@pytest.fixture
def cache(tmp_path):
    return VectorCache(tmp_path / "perplexities.sqlite")


def test_values_are_those_of_the_model(cache):
    expected = Counting().log_perplexities(TEXTS)
    for _ in range(2):  # computed, then read from the file
        found = CachedPerplexity(Counting(), cache).log_perplexities(TEXTS)
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
        np.testing.assert_array_equal(found.parts, expected.parts)
        assert found.prefix_cut is None
        assert np.isnan(found.values).sum() == 1


def test_an_interrupted_run_goes_on(cache, tmp_path):
    stopped, rest = Counting(stop_after=32), Counting()
    with pytest.raises(KeyboardInterrupt):
        CachedPerplexity(stopped, cache).log_perplexities(TEXTS)
    assert len(stopped.read) == 32
    found = CachedPerplexity(rest, cache).log_perplexities(TEXTS)
    assert sorted(stopped.read + rest.read) == sorted(TEXTS)
    whole = CachedPerplexity(Counting(), VectorCache(tmp_path / "other.sqlite"))
    np.testing.assert_array_equal(found.values, whole.log_perplexities(TEXTS).values)


def test_conditional_values_are_kept_apart(cache):
    model = CachedConditional(Counting(), cache)
    assert isinstance(model, ConditionalPerplexity)
    assert not isinstance(CachedPerplexity(Counting(), cache), ConditionalPerplexity)
    assert isinstance(CachedPerplexity(Counting(), cache), TextPerplexity)
    alone = model.log_perplexities(["ab c"])
    after = model.conditional(["a", "longer"], ["b c", "ab c"])
    np.testing.assert_array_equal(after.prefix_cut, [0, 1])
    assert after.n_prefix_cut == 1
    # "ab" + "c" and "a" + "bc" are not the same.
    other = model.conditional(["ab"], [" c"])
    assert len(model.inner.read) == 4
    assert other.values.shape == alone.values.shape == (1,)
