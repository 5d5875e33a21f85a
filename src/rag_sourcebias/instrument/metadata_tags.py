"""Tags of retrieved documents from their metadata, as every retrieval needs them: cheaply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rag_sourcebias.tagging.keys import METADATA_KEYS, make_tags
from rag_sourcebias.types.documents import DocTags

__all__ = ["MetadataTags"]

_SOURCE, _STYLE, _PAIR_ID, _ORIGIN, _CONFIDENCE = METADATA_KEYS
_UNTAGGED = DocTags()
_MOST_SEEN = 10_000


class MetadataTags:
    """Read the tag keys of metadata; equal tags are made once, as few different ones occur.

    May be used by several threads at once: one then makes tags that another has just made.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], DocTags] = {}

    def read(
        self, metadata: Iterable[Mapping[str, object] | None]
    ) -> tuple[tuple[DocTags, ...], int]:
        """Return the tags of each document, and how many values are none a tag may have.

        A document without a source and a style is "all unknown"; a bad value is unknown, and the
        document keeps its others.
        """
        seen, n_bad = self._seen, 0
        found = []
        for values in metadata:  # in one loop: calls would cost more than what they do
            tags: DocTags | None = _UNTAGGED
            try:
                if values:
                    source, style = values.get(_SOURCE), values.get(_STYLE)
                    if source is not None or style is not None:
                        raw = (
                            source,
                            style,
                            values.get(_PAIR_ID),
                            values.get(_ORIGIN),
                            values.get(_CONFIDENCE),
                        )
                        tags = seen.get(raw)
                        if tags is None:
                            tags = self._make(raw)
            except Exception:  # noqa: BLE001 - values are the application's own objects
                tags, n = _salvaged(values)
                n_bad += n
            found.append(tags)
        return tuple(found), n_bad  # type: ignore[arg-type]

    def _make(self, raw: tuple[object, ...]) -> DocTags:
        tags = make_tags(*raw)
        if len(self._seen) >= _MOST_SEEN:  # pair ids differ from document to document
            self._seen.clear()
        self._seen[raw] = tags
        return tags


def _salvaged(values: Mapping[str, object] | None) -> tuple[DocTags, int]:
    """Return tags of the values that are good, and how many are not."""
    good: list[object] = [None] * len(METADATA_KEYS)
    n_bad = 0
    for i, key in enumerate(METADATA_KEYS):
        alone: list[object] = [None] * len(METADATA_KEYS)
        try:
            alone[i] = values.get(key)  # type: ignore[union-attr]
            make_tags(*alone)
            good[i] = alone[i]
        except Exception:  # noqa: BLE001 - as above
            n_bad += 1
    return make_tags(*good), n_bad
