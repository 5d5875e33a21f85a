"""What an object with a lock or a thread must do when its process forks or ends."""

from __future__ import annotations

import atexit
import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["closes_at_exit", "renews_after_fork"]


class _Renewable(Protocol):
    def _after_fork(self) -> None: ...


class _Closable(Protocol):
    def close(self, timeout: float | None) -> bool: ...


_renewable: WeakSet[_Renewable] = WeakSet()
_closable: WeakSet[_Closable] = WeakSet()


def renews_after_fork(item: _Renewable) -> None:
    """Have ``item._after_fork()`` called in every child forked from this process.

    A lock that another thread held at the fork would stay locked in the child for ever, and
    threads do not exist there.
    """
    _renewable.add(item)


def closes_at_exit(item: _Closable) -> None:
    """Have ``item.close(1.0)`` called when the interpreter ends, while daemon threads still run."""
    _closable.add(item)


def _renew_all() -> None:
    for item in list(_renewable):
        item._after_fork()


def _close_all() -> None:
    for item in list(_closable):
        item.close(1.0)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_all)
atexit.register(_close_all)
