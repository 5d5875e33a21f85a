from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from rag_sourcebias.core.data import Shard
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.retrieval.shards import VectorFile, open_vectors
from rag_sourcebias.source.shards.work import GivenVectors


def saved(path, array):
    np.save(path, array)
    return path


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_those_of_the_array(tmp_path, dtype, order):
    array = np.random.default_rng(0).normal(size=(9, 4)).astype(dtype, order=order)
    file = pickle.loads(pickle.dumps(VectorFile(saved(tmp_path / "v.npy", array))))
    assert (len(file), file.shape) == (9, (9, 4))
    for found, expected in (
        (file.take(range(9)), array),
        (file.take(range(2, 5)), array[2:5]),
        (file.take(range(9, 9)), array[:0]),
        (file.take(np.array([7, 0, 7])), array[[7, 0, 7]]),
        (file.take(np.array([], np.int64)), array[:0]),
    ):
        assert found.dtype == np.float32
        assert type(found) is np.ndarray
        assert found.flags.c_contiguous
        assert found.flags.writeable
        assert np.array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_value_that_is_not_finite_is_named(tmp_path, value, dtype):
    array = np.ones((10, 3), dtype)
    array[7, 1] = value
    given = GivenVectors(VectorFile(saved(tmp_path / "v.npy", array)), "dot")
    before = given.read(Shard(index=0, first_row=0, n_documents=7))
    assert before.sum() == 21  # only what is read is checked
    with pytest.raises(DataError, match=r"v\.npy: 1 vector.* NaN or infinity, first for 'row 7'"):
        given.read(Shard(index=1, first_row=5, n_documents=5))


def test_a_changed_file_is_not_read(tmp_path):
    path = saved(tmp_path / "v.npy", np.zeros((3, 2), np.float32))
    os.utime(path, ns=(1, 1))
    file = VectorFile(path)
    first = file.fingerprint
    assert VectorFile(path).fingerprint == first
    os.utime(path, ns=(1, 2))
    with pytest.raises(DataError, match=r"v\.npy changed since it was opened"):
        file.take(range(1))
    with pytest.raises(DataError, match=r"v\.npy changed since it was opened"):
        file.take(np.array([0]))
    assert VectorFile(path).fingerprint != first


def test_open_vectors(tmp_path):
    documents = saved(tmp_path / "d.npy", np.ones((5, 3), np.float16))
    queries = saved(tmp_path / "q.npy", np.ones((2, 3), np.float32))
    found = open_vectors(documents, queries, n_documents=5, n_queries=2)
    assert found.documents.shape == (5, 3)
    assert found.queries.path == queries
    with pytest.raises(
        DataError,
        match=r"d\.npy holds 5 vectors, but there are 6 documents; row i belongs to the i-th",
    ):
        open_vectors(documents, queries, n_documents=6, n_queries=2)
    with pytest.raises(
        DataError,
        match=r"q\.npy holds 2 vectors, but there are 3 queries in queries\.jsonl, judged or not",
    ):
        open_vectors(documents, queries, n_documents=5, n_queries=3)
    saved(queries, np.ones((2, 4), np.float32))
    with pytest.raises(DataError, match=r"d\.npy holds .* dimension 3, but .*q\.npy of 4; both"):
        open_vectors(documents, queries, n_documents=5, n_queries=2)
