"""Tags and ids of what was retrieved, read all at once, against reading each alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.tags import METADATA_KEYS, TAG_FIELDS, UNKNOWN, from_metadata
from rag_sourcebias.observe.events import MetadataTags, named, text_id

VALUES = {
    "rsb_source": ["human", "llm:x", None, "", " ", 5, []],
    "rsb_style": ["plain", None, "", {}],
    "rsb_pair_id": ["p1", "p2", None, 7],
    "rsb_origin": ["declared", "detected", "guessed", None],
    "rsb_confidence": [0.5, 1, 2.0, None, "high"],
    "url": ["https://example.org"],
}
ROWS = st.lists(
    st.none()
    | st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in VALUES.items()}),
    max_size=6,
)


def alone(row: dict[str, Any] | None) -> tuple[DocTags, int]:
    """The tags of one document, field by field, and how many of its values are bad."""
    tags, n_bad = UNKNOWN, 0
    if not row or (row.get("rsb_source") is None and row.get("rsb_style") is None):
        return tags, n_bad
    for key, field in zip(METADATA_KEYS, TAG_FIELDS, strict=True):
        try:
            value = getattr(from_metadata({key: row.get(key)}), field)
        except DataError:
            n_bad += 1
        else:
            tags = replace(tags, **{field: value})
    return tags, n_bad


FULL = dict(
    zip(METADATA_KEYS, ("human", "plain", "p1", "declared", 0.5), strict=True)
)  # and without each: read as itself, though all the others were seen
WITHOUT = [{k: v for k, v in FULL.items() if k != key} for key in FULL]


@example(batches=[[FULL], WITHOUT, [FULL, *WITHOUT]])
@example(batches=[[row] for row in WITHOUT] + [[FULL]])
@given(batches=st.lists(ROWS, max_size=4))
def test_tags_of_many_documents_are_those_of_each(batches) -> None:
    reader = MetadataTags()
    for rows in batches * 2:  # seen for the first time, and again
        expected = [alone(row) for row in rows]
        assert reader.read(iter(rows)) == (
            tuple(tags for tags, _ in expected),
            sum(n for _, n in expected),
        )


def test_more_sources_orders_and_documents_than_are_kept() -> None:
    reader = MetadataTags()
    rng = np.random.default_rng(5)
    names = [f"llm:{n}" for n in range(300)]
    for n in (3, 150):
        for _ in range(1_200):  # rows of 3: more orders than are kept; of 150: none is
            chosen = rng.choice(names, n) if rng.random() < 0.5 else rng.choice(names[:20], n)
            rows = [{"rsb_source": str(name)} for name in chosen] + [{}]
            expected = (*(DocTags(source=str(name)) for name in chosen), UNKNOWN)
            assert reader.read(rows) == (expected, 0)
    assert len(reader._orders) <= 1_000
    assert max(map(len, reader._orders)) <= 100


def test_tags_of_equal_orders_are_one_object() -> None:
    reader = MetadataTags()
    rows = [{"rsb_source": "human"}, {"rsb_source": "llm:x", "rsb_origin": "declared"}, {}]
    reader.read(rows)
    first, again = reader.read(rows)[0], reader.read([dict(row) for row in rows])[0]
    assert first is again
    assert reader.read(rows[::-1])[0] == first[::-1]


@given(
    given_ids=st.lists(
        st.none() | st.sampled_from(["a", "b", ""]) | st.integers(0, 3) | st.uuids(), max_size=6
    )
)
def test_ids_of_many_documents_are_those_of_each(given_ids) -> None:
    texts = [f"text {n}" for n in range(len(given_ids))]
    expected = [
        text_id(text) if found is None or found == "" else str(found)
        for found, text in zip(given_ids, texts, strict=True)
    ]
    for _ in range(2):
        assert named(iter(given_ids), iter(texts)) == tuple(expected)
