"""The handle of an instrumentation; blocks with a deadline."""

from __future__ import annotations

import pytest

from rag_sourcebias.observe.observers import CollectingObserver
from rag_sourcebias.observe.recorder import Attachment, Instrumentation, Recorder


def test_closing_detaches_once_and_waits_for_what_was_seen() -> None:
    observer, detached = CollectingObserver(), []
    rec = Recorder(observer)
    handle = Instrumentation(rec, Attachment("target", lambda: detached.append(1)))
    with handle as entered:
        assert entered is handle
        assert handle.target == "target"
        rec.record(["a"])
    assert (detached, len(observer.events)) == ([1], 1)
    handle.close()
    assert detached == [1]
    assert handle.dropped is rec.dropped


def test_an_error_inside_the_block_passes_and_still_detaches() -> None:
    detached: list[int] = []
    with (
        pytest.raises(ZeroDivisionError),
        Instrumentation(
            Recorder(CollectingObserver()), Attachment(None, lambda: detached.append(1))
        ),
    ):
        raise ZeroDivisionError
    assert detached == [1]


def test_what_cannot_be_removed_is_counted_not_raised() -> None:
    def detach() -> None:
        raise RuntimeError("somebody else patched it")

    handle = Instrumentation(Recorder(CollectingObserver()), Attachment(None, detach))
    handle.close()
    handle.close()
    assert dict(handle.dropped.by_reason) == {"instrumentation could not be removed": 1}
