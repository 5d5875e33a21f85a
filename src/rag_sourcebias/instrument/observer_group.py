"""Several observers as one: a log and a monitor see the same retrievals."""

from __future__ import annotations

from rag_sourcebias.errors import DataError
from rag_sourcebias.instrument.dropped import DroppedEvents
from rag_sourcebias.instrument.events import RetrievalEvent
from rag_sourcebias.protocols import Observer

__all__ = ["ObserverGroup"]


class ObserverGroup:
    """Tell several observers of every retrieval, in the given order.

    What one of them raises keeps nothing from the others.

    Parameters
    ----------
    *observers : Observer of RetrievalEvent
        At least one, none of them twice. They are neither flushed nor closed here.

    Attributes
    ----------
    observers : tuple of Observer
    dropped : DroppedEvents
        Events that an observer raised on, once for each that did. What observers lose without
        raising they count themselves.

    Raises
    ------
    DataError
        If there is no observer, one has no ``observe``, or one is given twice.

    Examples
    --------
    >>> from rag_sourcebias.instrument import CountingObserver, ExposureObserver
    >>> from rag_sourcebias.types import RankedList
    >>> count, exposure = CountingObserver(), ExposureObserver()
    >>> group = ObserverGroup(count, exposure)
    >>> group.observe(RetrievalEvent(ranked=RankedList(query_id="", doc_ids=("a",))))
    >>> count.n_events, exposure.counts().n_retrievals, group.inline
    (1, 1, True)
    """

    def __init__(self, *observers: Observer[RetrievalEvent]) -> None:
        if not observers:
            raise DataError("a group of observers needs at least one, such as ExposureObserver()")
        for observer in observers:
            if isinstance(observer, type) or not callable(getattr(observer, "observe", None)):
                raise DataError(
                    f"{observer!r} is not an observer; expected an object with observe(event)"
                )
        if len({id(observer) for observer in observers}) < len(observers):
            raise DataError("an observer is given twice; it would count every retrieval twice")
        self.observers = observers
        self.dropped = DroppedEvents()
        self._told = tuple(observer.observe for observer in observers)

    @property
    def inline(self) -> bool:
        """Whether all promise to be quick, see :class:`~.delivery.Delivery`.

        A single one that does not brings all of them on the thread of a queue: give it an
        instrumentation of its own where another needs the application's thread.
        """
        return all(getattr(observer, "inline", False) is True for observer in self.observers)

    def observe(self, event: RetrievalEvent) -> None:
        """Tell every observer of one retrieval."""
        for observe in self._told:
            try:
                observe(event)
            except Exception as error:  # noqa: BLE001 - as guarded, which costs more here
                self.dropped.add("observer raised", error=error)
