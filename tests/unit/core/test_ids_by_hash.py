"""Many ids are looked up by their hashes, and sources in the dictionary that was handed over."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.data import TagTable, Vocabulary, places_of
from rag_sourcebias.intake.documents import read_tags
from rag_sourcebias.measure.relevance import source_codes_for


class OneHash(str):
    """A text whose hash it shares with all others of its kind."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7


def literally(names: list[str], ids: list[str]) -> list[int]:
    return [ids.index(name) if name in ids else -1 for name in names]


@pytest.mark.parametrize("kind", [str, OneHash])
@pytest.mark.parametrize(("n_names", "n_ids"), [(0, 5), (5, 0), (1, 1), (40, 90), (90, 40)])
def test_places_are_those_of_a_plain_search(kind: type[str], n_names: int, n_ids: int) -> None:
    rng = random.Random(n_names)
    pool = [kind(f"d{i}") for i in range(120)]
    names, ids = rng.sample(pool, n_names), rng.sample(pool, n_ids)
    expected = literally(names, ids)
    assert places_of(Vocabulary(names), Vocabulary(ids)).tolist() == expected
    assert places_of(names, ids).tolist() == expected


@pytest.mark.parametrize("kind", [str, OneHash])
def test_ids_that_occur_twice_are_seen(kind: type[str]) -> None:
    ids = [kind(f"d{i}") for i in range(50)]
    assert Vocabulary(ids).differ()
    assert not Vocabulary([*ids, kind("d30")]).differ()


def test_hashes_do_not_leave_their_process() -> None:
    # texts have other hashes in another process
    ids = Vocabulary([f"d{i}" for i in range(100)])
    assert len(ids.hashes) == 100
    code = (
        "import pickle, sys; from rag_sourcebias.core.data import Vocabulary, places_of;"
        "ids = pickle.load(sys.stdin.buffer);"
        "print(places_of(Vocabulary(['d7', 'x', 'd99']), ids).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(ids), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == "[7, -1, 99]"


def test_a_changed_table_asks_its_codes() -> None:
    handed = {"a": "llm:x", "b": "human", "c": None}
    table = read_tags(handed)
    assert source_codes_for(["c", "b", "a", "z"], table).tolist() == [-1, 0, 1, -1]
    handed["a"] = "human"
    assert source_codes_for(["a"], table).tolist() == [1]
    changed = replace(table, source_codes=np.array([0, 1, -1], dtype=np.int32))
    assert source_codes_for(["a", "b"], changed).tolist() == [0, 1]
    merged = table.merge_sources({"llm": ["llm:x"]})
    assert [merged.sources[code] for code in source_codes_for(["a", "b"], merged)] == [
        "llm",
        "human",
    ]


def test_a_dictionary_is_read_as_its_rows_are() -> None:
    handed = {"a": "llm:x", "b": "human", "c": None}
    rows = [{"doc_id": doc_id, "source": source} for doc_id, source in handed.items()]
    short, long = read_tags(handed), read_tags(rows)
    for name in ("doc_ids", "sources", "pair_ids", "styles", "origins"):
        assert getattr(short, name) == getattr(long, name), name
    for name in ("source_codes", "pair_codes", "style_codes"):
        assert getattr(short, name).tolist() == getattr(long, name).tolist(), name
    assert isinstance(short, TagTable)


@pytest.mark.parametrize(
    "odd", [{" a": "human", "b": "llm:x"}, {"a": " human", "b": "llm:x"}, {"a": "", "b": "llm:x"}]
)
def test_what_is_to_be_cleaned_takes_the_long_way(odd: dict[str, str]) -> None:
    rows = [{"doc_id": doc_id, "source": source} for doc_id, source in odd.items()]
    assert read_tags(odd).doc_ids == read_tags(rows).doc_ids
    assert read_tags(odd).sources == read_tags(rows).sources
