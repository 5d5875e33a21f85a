"""A handle that goes with a collection's name when a migration gives the name to another one."""

from __future__ import annotations

import logging
import time
from typing import Any

from chromadb.errors import NotFoundError

from rag_sourcebias_integrations.chroma.carry import MOVING, Ledger, Phase

_log = logging.getLogger(__name__)
_WRITES = ("add", "update", "upsert", "delete")
_STEP = 0.02


def follow_collection(
    client: Any,  # noqa: ANN401 - a chromadb client
    name: str,
    *,
    embedding_function: Any = None,  # noqa: ANN401 - a chromadb embedding function
    every: float = 1.0,
    patience: float = 10.0,
) -> FollowedCollection:
    """Open a collection by its name, and stay with the name.

    A handle of Chroma stays with the collection that it was opened for, also when
    :meth:`Migration.switch` gives the name to another one. This one needs no restart: it reads from
    the collection that has the name, and a write counts as done only once it is in the collection
    that has the name afterwards; while two collections are exchanged, it waits. A write costs
    up to four further, small requests.

    Parameters
    ----------
    client : chromadb client
        Synchronous.
    name : str
    embedding_function : chromadb.EmbeddingFunction, optional
        The one that the collection in use was made with by default; one given here is used before
        and after a switch.
    every : float
        Seconds for which reads keep to a collection before they look at the name again.
    patience : float
        Seconds to wait for an exchange. After them a write goes to the collection that has the
        name, from which :meth:`Migration.carry` fetches it.

    Raises
    ------
    chromadb.errors.NotFoundError
        If no collection has the name.
    """
    options = {} if embedding_function is None else {"embedding_function": embedding_function}
    return FollowedCollection(client, name, options, every=every, patience=patience)


class FollowedCollection:
    """See :func:`follow_collection`. ``isinstance(x, chromadb.Collection)`` is False."""

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        name: str,
        options: dict[str, Any],
        *,
        every: float,
        patience: float,
    ) -> None:
        self._client, self._name, self._options = client, name, options
        self._every = every
        self._patience = patience
        self._vain: Phase | None = None  # of a killed migration, waited for once
        self._look(time.monotonic() + patience)

    def _write(self, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        deadline = time.monotonic() + self._patience
        while True:
            self._look(deadline)
            collection = self._current
            late = time.monotonic() > deadline
            try:
                result = getattr(collection, method)(*args, **kwargs)
            except NotFoundError:  # it was retired and deleted in between
                if late:
                    raise
                continue
            # In this order: what was written before an exchange began is seen by it.
            if late or not (self._wait(deadline) or self._named(deadline).id != collection.id):
                return result

    def _wait(self, deadline: float) -> bool:
        """Wait while collections are exchanged; whether they were."""
        waited = False
        while self._moving():
            waited = True
            if time.monotonic() > deadline:
                _log.warning(
                    "collection %r has been between two for %g s: if its migration was killed, run "
                    "restore_collection",
                    self._name,
                    self._patience,
                )
                self._vain = self._phase()
                break
            time.sleep(_STEP)
        return waited

    def _look(self, deadline: float) -> None:
        self._current = self._named(deadline)
        self._seen = time.monotonic()

    def _moving(self) -> bool:
        phase = self._phase()
        if phase != self._vain:
            self._vain = None
        return phase in MOVING and phase != self._vain

    def _phase(self) -> Phase | None:
        progress = Ledger(self._client, self._name).read()
        return None if progress is None else progress.phase

    def _named(self, deadline: float) -> Any:  # noqa: ANN401
        """Return the collection that has the name now; waits a moment where none has it."""
        still = False
        while True:
            try:
                return self._client.get_collection(self._name, **self._options)
            except NotFoundError:
                moving = self._moving()
                # An exchange may have ended between the two looks: then one has the name again.
                if time.monotonic() > deadline or (still and not moving):
                    raise
                still = not moving
                if moving:
                    time.sleep(_STEP)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _WRITES:
            return lambda *args, **kwargs: self._write(name, *args, **kwargs)
        if time.monotonic() - self._seen > self._every:
            self._look(time.monotonic() + self._patience)
        return getattr(self._current, name)

    def __repr__(self) -> str:
        return f"FollowedCollection({self._name!r})"
