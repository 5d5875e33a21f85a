"""Which column a source, or style, has among those that are told apart."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.monitor.label_sets import OTHER, short_text

__all__ = ["GroupCodes"]

_MOST_REMEMBERED = 10_000  # names beyond the cap, so that ever new ones cannot fill the memory


class GroupCodes(dict[str | None, int]):
    """Column of each group; the last one is "other".

    Parameters
    ----------
    groups : sequence of str or None
        Those told apart; the column before the last is then that of untagged documents, unless
        "" is one of them. None takes groups in the order in which they come.
    most : int
        Groups told apart, at least 1.

    Attributes
    ----------
    names : list of str
        Known groups, in the order of their columns, without "other" at the end.
    width : int
        Columns.
    """

    def __init__(self, groups: Sequence[str] | None, *, most: int) -> None:
        super().__init__()
        if groups is not None:
            self.names = [g for g in dict.fromkeys([*groups, ""]) if g != OTHER]
            self.width = len(self.names) + 1
        else:
            if most < 1:
                raise DataError(f"max_groups must be at least 1, got {most}")
            self.names = []
            self.width = most + 1
        self._remember()

    def _remember(self) -> None:
        self.clear()
        self.update({name: code for code, name in enumerate(self.names)})
        if "" in self:
            self[None] = self[""]
        self[OTHER] = self.width - 1

    def restore(self, names: Sequence[str]) -> None:
        """Take the groups of a stored state."""
        if len(names) >= self.width or not all(isinstance(name, str) for name in names):
            raise DataError(f"stored groups {list(names)!r:.80} do not fit {self.width} columns")
        self.names = list(names)
        self._remember()

    def __missing__(self, name: str | None) -> int:
        if len(self) > _MOST_REMEMBERED:
            self._remember()
        text = "" if name is None else short_text(str(name))
        code = self.get(text)
        if code is None:
            code = len(self.names)
            if code < self.width - 1:
                self.names.append(text)
            else:
                code = self.width - 1
            self[text] = code
        self[name] = code
        return code
