"""Labels of retrievals: which of their values are told apart, with a cap for each label."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rag_sourcebias.core.errors import DataError

OTHER = "other"
_MOST_TEXT = 200  # characters of a name or value that are kept
Key = tuple[tuple[str, str], ...]


def label_names(what: str, given: Sequence[str]) -> frozenset[str]:
    """Return names of labels.

    Raises
    ------
    DataError
        If they are one text, or one of them is none.
    """
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise DataError(f"{what} must be a sequence of names, got {given!r}")
    return frozenset(given)


def short_text(text: str) -> str:
    """Return at most 200 characters, without half characters, which JSON files cannot hold."""
    short = text[:_MOST_TEXT]
    return short if short.isascii() else short.encode("utf-8", "replace").decode()


@dataclass(kw_only=True, eq=False)
class LabelCaps:
    """Cap the values of each label, so that one with ever new values costs no other its own.

    A value that comes when its label has ``values`` already is replaced by ``"other"``; the rest
    of the set stays. A value is therefore told apart everywhere or nowhere. Only when there are
    ``sets`` different sets, too, further ones are merged: the label with the most values gives way
    first. Merged sets may be as many again.

    Parameters
    ----------
    most_values, most_sets : int
    last : Key
        The set of retrievals for which even that is too much; it takes no room.
    """

    most_values: int
    most_sets: int
    last: Key
    values: dict[str, set[str]] = field(default_factory=dict)
    _sets: set[Key] = field(default_factory=set)

    def add(self, key: Key) -> None:
        """Take a set as one in use."""
        if key != self.last:
            self._sets.add(key)
            for name, value in key:
                values = self.values.setdefault(name, set())
                if value != OTHER:
                    values.add(value)

    def remove(self, key: Key) -> None:
        """Make room again."""
        left = self._sets - {key}
        self._sets = set()
        self.values = {}
        for one in left:
            self.add(one)

    def __contains__(self, key: Key) -> bool:
        return key in self._sets or key == self.last

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
            and len(values[name]) >= self.most_values
        ]
        giving_way = sorted(
            (name for name, value in key if value != OTHER and name not in replaced),
            key=lambda name: (-len(values[name]), name),
        )
        while True:
            fitted = tuple((name, OTHER if name in replaced else value) for name, value in key)
            if fitted in self or len(self._sets) < self.most_sets * (2 if replaced else 1):
                self.add(fitted)
                return fitted, tuple(replaced)
            if not giving_way:
                return self.last, tuple(name for name, value in key if value != OTHER)
            replaced.append(giving_way.pop(0))
