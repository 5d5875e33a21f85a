"""The report codec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rag_sourcebias.core.codec import from_plain, to_plain
from rag_sourcebias.core.errors import DataError


class Kind(Enum):
    FIRST = "a"
    SECOND = "b"


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaf:
    name: str
    value: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree:
    leaves: tuple[Leaf, ...]
    table: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    counts: Mapping[str, int]
    flag: bool
    first: Leaf | None
    kind: Kind = Kind.FIRST
    ends: tuple[float, float] = (0.0, 1.0)
    words: tuple[str, ...] = field(default=())
    anything: Any = None


def tree(**changes):
    fields = {
        "leaves": (Leaf(name="a", value=1.0), Leaf(name="b")),
        "table": np.array([[1.0, np.nan], [0.1, 3.0]]),
        "codes": np.array([1, -1], dtype=np.int32),
        "counts": {"x": 2},
        "flag": True,
        "first": None,
    }
    return Tree(**{**fields, **changes})


def through_json(value):
    return json.loads(json.dumps(to_plain(value), allow_nan=False))


def test_round_trip_through_json():
    given = tree()
    read = from_plain(Tree, through_json(given))
    np.testing.assert_array_equal(read.table, given.table)
    np.testing.assert_array_equal(read.codes, given.codes)
    assert (read.table.dtype, read.codes.dtype) == (np.float64, np.int32)
    assert [(leaf.name, leaf.value) for leaf in read.leaves] == [("a", 1.0), ("b", None)]
    assert (read.counts, read.flag, read.first, read.words) == ({"x": 2}, True, None, ())
    assert through_json(read) == through_json(given)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("flag", "yes", r"^Expected 'bool', got 'str' - at 'flag'$"),
        ("counts", {"x": "many"}, r"Expected 'int', got 'str' - at 'counts\[...\]'"),
        ("counts", {"x": True}, r"Expected 'int', got 'bool' - at 'counts\[...\]'"),
        ("leaves", [{"name": 3}], r"Expected 'str', got 'int' - at 'leaves\[0\]\.name'"),
        ("leaves", {"name": "a"}, r"Expected 'array', got 'object' - at 'leaves'"),
        ("table", 3, r"Expected 'array', got 'int' - at 'table'"),
        ("table", [[1], [1, 2]], r"inhomogeneous.* - at 'table'"),
        ("codes", [None], r"- at 'codes'"),
        ("first", [], r"got 'array' - at 'first'"),
        ("kind", "c", r"Invalid enum value 'c' - at 'kind'"),
        ("ends", [1, 2, 3], r"length 2, got 3 - at 'ends'"),
    ],
)
def test_errors_name_the_path(path, value, message):
    with pytest.raises(DataError, match=message):
        from_plain(Tree, {**through_json(tree()), path: value})


def test_missing_field_is_named_and_defaults_fill_in():
    data = through_json(tree())
    del data["words"]
    assert from_plain(Tree, data).words == ()
    del data["flag"]
    with pytest.raises(DataError, match=r"^manifest: Object missing required field 'flag'$"):
        from_plain(Tree, data, where="manifest")


def test_values_of_numpy_and_nothing_are_plain():
    found = to_plain(tree(anything={1: np.int64(3), "b": (np.float32(0.5), np.nan, Kind.SECOND)}))
    assert found["anything"] == {"1": 3, "b": [0.5, None, "b"]}
