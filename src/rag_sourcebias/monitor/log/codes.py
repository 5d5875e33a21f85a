"""Small integers for (source, style) and for label sets, with a cap on how many there are."""

from __future__ import annotations

import json
from collections.abc import Iterable

from rag_sourcebias.errors import DataError

__all__ = ["MOST_TAGS", "OTHER", "LabelCodes", "TagCodes"]

OTHER = "other"
MOST_TAGS = 256  # a code is one byte
_MOST_TEXT = 200  # characters of a name
_MOST_REMEMBERED = 20_000  # keys, so that ever new names cannot fill the memory

Tag = tuple[str | None, str | None]
Items = tuple[tuple[str, str], ...]


class TagCodes(dict[Tag, int]):
    """Code of each (source, style); code 0 is ("other", "other").

    Parameters
    ----------
    names : iterable of (source, style)
        In the order of their codes; empty for a new log.
    most : int
        Pairs told apart, 1 to 200. Documents of further ones keep their source and get the style
        "other" while there is room for that (256 codes), then they are code 0.

    Attributes
    ----------
    names : list of (source, style)
    """

    def __init__(self, names: Iterable[Tag] = (), *, most: int = 200) -> None:
        if not 1 <= most <= 200:
            raise DataError(f"max_tags must be 1 to 200, got {most}")
        super().__init__()
        self.names: list[Tag] = list(names) or [(OTHER, OTHER)]
        self._most = most
        self._remember()

    def _remember(self) -> None:
        self.clear()
        self.update((name, code) for code, name in enumerate(self.names))

    def __missing__(self, key: Tag) -> int:
        if len(self) > _MOST_REMEMBERED:
            self._remember()
        source, style = (None if not part else _storable(str(part)) for part in key)
        code = self._coded((source, style), self._most)
        if code is None:
            code = self._coded((source, OTHER), MOST_TAGS - 1)
        self[key] = code = code or 0
        return code

    def _coded(self, name: Tag, most: int) -> int | None:
        found = self.get(name)  # does not ask __missing__
        if found is None and len(self.names) <= most:
            found = self[name] = len(self.names)
            self.names.append(name)
        return found


class LabelCodes(dict[Items, int]):
    """Code of each set of labels; code 0 is the set of those beyond the cap.

    Parameters
    ----------
    names : iterable of str
        JSON objects, in the order of their codes.
    most : int
        Sets told apart, 1 to 60,000.

    Attributes
    ----------
    names : list of str
    """

    def __init__(self, names: Iterable[str] = (), *, most: int = 1_000) -> None:
        if not 1 <= most <= 60_000:
            raise DataError(f"max_label_sets must be 1 to 60000, got {most}")
        super().__init__()
        self.names = list(names) or [json.dumps({OTHER: OTHER})]
        self._most = most
        self._code_of = {name: code for code, name in enumerate(self.names)}

    def __missing__(self, items: Items) -> int:
        if len(self) > _MOST_REMEMBERED:
            self.clear()
        short = sorted((_storable(key), _storable(value)) for key, value in items)
        name = json.dumps(dict(short))
        code = self._code_of.get(name)
        if code is None and len(self.names) <= self._most:
            code = self._code_of[name] = len(self.names)
            self.names.append(name)
        self[items] = code = code or 0
        return code


def _storable(text: str) -> str:
    """Return a name of limited length without half characters, which no file can hold."""
    return text[:_MOST_TEXT].encode("utf-8", "replace").decode()
