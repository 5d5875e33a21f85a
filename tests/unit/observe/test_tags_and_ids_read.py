"""Tags and ids of what was retrieved, read all at once, against reading each alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
