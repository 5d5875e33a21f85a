"""Small integers for (source, style) and for label sets, with caps on how many there are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.label_sets import OTHER, Key, LabelCaps, short_text

__all__ = ["MOST_TAGS", "LabelCodes", "TagCodes"]

MOST_TAGS = 256  # a code is one byte
_MOST_NAMES = 64  # labels told apart, whatever their values
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
        source, style = (None if not part else short_text(str(part)) for part in key)
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
    """Code of each set of labels.

    Code 0 is the set of those beyond every cap, see :class:`LabelCaps`.

    Parameters
    ----------
    names : iterable of str
        JSON objects, in the order of their codes.
    most_values, most_sets : int
        Values of a label, 1 to 10,000, and sets, 1 to 30,000, that are told apart.

    Attributes
    ----------
    names : list of str
    """

    def __init__(
        self, names: Iterable[str] = (), *, most_values: int = 1_000, most_sets: int = 10_000
    ) -> None:
        if not 1 <= most_values <= 10_000:
            raise DataError(f"max_label_values must be 1 to 10000, got {most_values}")
        if not 1 <= most_sets <= 30_000:  # merged ones may be as many again, and a code is 16 bits
            raise DataError(f"max_label_sets must be 1 to 30000, got {most_sets}")
        super().__init__()
        self.names: list[str] = []
        self._code_of: dict[Key, int] = {}
        self._caps = LabelCaps(values=most_values, sets=most_sets, last=((OTHER, OTHER),))
        self.extend(list(names) or [json.dumps({OTHER: OTHER})])

    def extend(self, names: Iterable[str]) -> None:
        """Take sets that follow, as another process has added them."""
        self.clear()
        for name in names:
            with suppress(ValueError, AttributeError):  # damaged: it keeps its code, unused
                key: Key = tuple(sorted(json.loads(name).items()))
                self._code_of.setdefault(key, len(self.names))
                self._caps.add(key)
            self.names.append(name)

    def fitted(self, items: Items) -> tuple[int, tuple[str, ...]]:
        """Return the code of labels, and those whose value became "other".

        Where there are none of these the code is remembered, as an item of this dictionary.
        """
        given = dict(sorted((short_text(key), short_text(value)) for key, value in items))
        known = self._caps.values
        if len(known) + len(given) > _MOST_NAMES:
            new = [name for name in given if name not in known]
            strange = new[max(_MOST_NAMES - len(known), 0) :]
            given = {name: value for name, value in given.items() if name not in strange}
        else:
            strange = []
        key, replaced = self._caps.fit(tuple(given.items()))
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.names)
            self.names.append(json.dumps(dict(key)))
        if not (replaced or strange):
            self.remember(items, code)
        # "" stands for all labels whose very names are too many
        return code, (*replaced, *([""] if strange else []))

    def remember(self, items: Items, code: int) -> None:
        """Have ``get`` give a code for labels as they came."""
        if len(self) > _MOST_REMEMBERED:
            self.clear()
        self[items] = code
