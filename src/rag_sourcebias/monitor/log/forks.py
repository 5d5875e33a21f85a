"""Close a log's connection before the process forks, in the parent too.

SQLite may not be carried through a fork: its locks belong to the process that took them, but the
child would believe that it holds them, and could damage the file.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

__all__ = ["stands_aside_at_fork"]


class _Forkable(Protocol):
    def _before_fork(self) -> None: ...
    def _after_fork_in_parent(self) -> None: ...
    def _after_fork_in_child(self) -> None: ...


_logs: WeakSet[_Forkable] = WeakSet()
_standing: list[_Forkable] = []


def stands_aside_at_fork(log: _Forkable) -> None:
    """Have the three methods of ``log`` called around every fork."""
    _logs.add(log)


def _before() -> None:
    _standing[:] = list(_logs)
    for log in _standing:
        log._before_fork()


def _in_parent() -> None:
    while _standing:
        _standing.pop()._after_fork_in_parent()


def _in_child() -> None:
    while _standing:
        _standing.pop()._after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
