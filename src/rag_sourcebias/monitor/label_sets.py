"""Which values of labels are told apart, with a cap for each label."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_sourcebias.errors import DataError

__all__ = ["OTHER", "Key", "LabelCaps", "LabelSets", "short_text"]

OTHER = "other"
_MOST_TEXT = 200  # characters of a name or value that are kept
Key = tuple[tuple[str, str], ...]


def short_text(text: str) -> str:
    """Return at most 200 characters, without half characters, which JSON files cannot hold."""
    short = text[:_MOST_TEXT]
    return short if short.isascii() else short.encode("utf-8", "replace").decode()


class LabelCaps:
    """Cap the values of each label, so that one with ever new values costs no other its own.

    A value that comes when its label has ``values`` already is replaced by ``"other"``; the rest
    of the set stays. A value is therefore told apart everywhere or nowhere. Only when there are
    ``sets`` different sets, too, further ones are merged: the label with the most values gives way
    first. Merged sets may be as many again.

    Parameters
    ----------
    values, sets : int
    last : Key
        The set of retrievals for which even that is too much; it takes no room.
    """

    def __init__(self, *, values: int, sets: int, last: Key) -> None:
        self._most_values, self._most_sets, self._last = values, sets, last
        self.values: dict[str, set[str]] = {}
        self._sets: set[Key] = set()

    def add(self, key: Key) -> None:
        """Take a set as one in use."""
        if key != self._last:
            self._sets.add(key)
            for name, value in key:
                values = self.values.setdefault(name, set())
                if value != OTHER:
                    values.add(value)

    def remove(self, key: Key) -> None:
        """Make room again."""
        left = self._sets - {key}
        self._sets, self.values = set(), {}
        for one in left:
            self.add(one)

    def __contains__(self, key: Key) -> bool:
        return key in self._sets or key == self._last

    def fit(self, key: Key) -> tuple[Key, tuple[str, ...]]:
        """Return the set under which ``key`` is counted, and the labels replaced by "other"."""
        if key in self:
            return key, ()
        values = {name: self.values.get(name, set()) for name, _ in key}
        replaced = [
            name
            for name, value in key
            if value != OTHER
            and value not in values[name]
            and len(values[name]) >= self._most_values
        ]
        giving_way = sorted(
            (name for name, value in key if value != OTHER and name not in replaced),
            key=lambda name: (-len(values[name]), name),
        )
        while (fitted := _without(key, replaced)) not in self:
            if len(self._sets) < self._most_sets * (2 if replaced else 1):
                self.add(fitted)
                break
            if not giving_way:
                return self._last, tuple(name for name, value in key if value != OTHER)
            replaced.append(giving_way.pop(0))
        return fitted, tuple(replaced)


def _without(key: Key, replaced: Sequence[str]) -> Key:
    return tuple((name, OTHER if name in replaced else value) for name, value in key)


class LabelSets:
    """Map the labels of events to keys.

    Parameters
    ----------
    names : sequence of str
        Labels that count; others, which may be different for every request, are left out.
    most : int
        Values of a label, and sets, that are told apart, at least 1; see :class:`LabelCaps`.

    Attributes
    ----------
    overflowed : dict of str to int
        Retrievals whose value of a label was replaced by ``"other"``, by label.

    Raises
    ------
    DataError
        If a name is not text or occurs twice, or ``most`` is below 1.
    """

    def __init__(self, names: Sequence[str], *, most: int) -> None:
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise DataError(f"labels must be a sequence of names, got {names!r}")
        if len(set(names)) != len(names):
            raise DataError(f"labels {list(names)} name one twice")
        if most < 1:
            raise DataError(f"max_label_sets must be at least 1, got {most}")
        self.names = tuple(names)
        last = tuple((name, OTHER) for name in self.names)
        self._caps = LabelCaps(values=most, sets=most, last=last)
        self.overflowed: dict[str, int] = {}

    def key(self, labels: Mapping[str, str]) -> Key:
        """Return the key of these labels; one that is absent is left out of it."""
        found = tuple((k, short_text(labels[k])) for k in self.names if k in labels)
        fitted, replaced = self._caps.fit(found)
        self.count(replaced)
        return fitted

    def count(self, replaced: Iterable[str], n: int = 1) -> None:
        """Count retrievals whose values of these labels were replaced."""
        for name in replaced:
            self.overflowed[name] = self.overflowed.get(name, 0) + n

    def add(self, key: Key) -> None:
        """Take a key of a stored state as known."""
        self._caps.add(key)

    def forget(self, key: Key) -> None:
        """Make room again."""
        self._caps.remove(key)
