"""Labels of retrievals: given for a request, and which of their values are told apart."""

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from uuid import UUID

from rag_sourcebias.core.errors import DataError

# Labels of the request that is being answered.


_of_request: ContextVar[Mapping[str, object]] = ContextVar(
    "rag_sourcebias_labels", default=MappingProxyType({})
)


@contextlib.contextmanager
def labels(**values: object) -> Iterator[None]:
    """Give every retrieval inside this block labels, such as the session or the user.

    They follow the context: calls, awaits, tasks that start inside, and threads into which the
    context is copied. Blocks nest, and the inner one wins. Nothing here raises into the
    application: a value that is no text, number or UUID is left out, and that is noted.

    Parameters
    ----------
    **values : str, int or UUID
        At most 16 labels reach an event; None stands for no label.

    Examples
    --------
    >>> with labels(session="s1", user=4711):
    ...     labels_of_request()
    {'session': 's1', 'user': 4711}
    """
    token = _of_request.set({**_of_request.get(), **values})
    try:
        yield
    finally:
        # a server may close a dependency in another context than the one that opened it
        with contextlib.suppress(ValueError):
            _of_request.reset(token)


def labels_of_request() -> Mapping[str, object]:
    """Return the labels of the blocks around, as they were given."""
    return _of_request.get()


def baggage_now() -> Mapping[str, object]:
    """Return OpenTelemetry's baggage, where the application has loaded it."""
    baggage = sys.modules.get("opentelemetry.baggage")
    found: Mapping[str, object] = {} if baggage is None else baggage.get_all()
    return found


def label_text(value: object) -> str | None:
    """Return a label's value as text; None for one that is none.

    Raises
    ------
    DataError
        If it is neither a text nor a number nor a UUID.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | UUID):
        return str(value)
    raise DataError(f"got a value of type {type(value).__name__}; expected a text")


# Which values of labels are told apart, with a cap for each label.


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
