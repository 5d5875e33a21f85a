"""What a probe keeps beside its log, so that a restart goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import sound
from rag_sourcebias.io.files import read_json, write_atomic
from rag_sourcebias.io.private import PRIVATE
from rag_sourcebias.monitor.canary.sequence import RelativeDeltaSequence
from rag_sourcebias.monitor.sequential.state import read_state, write_state

__all__ = ["ProbeState", "open_state", "save_state", "state_path"]

_KIND = "canary-probe"
_REMEDY = "delete it to start anew"


@dataclass(slots=True, kw_only=True)
class ProbeState:
    """Evidence so far, and where the draws stand.

    Parameters
    ----------
    settings : mapping of str to object
        What must not change between one process and the next.
    sequence : RelativeDeltaSequence
    entropy : int
        Seed; with the number of the round it seeds the draws of that round, so a restart goes on
        with draws that are independent of those before.
    rounds : int
        Rounds so far; resets do not change it.
    """

    settings: Mapping[str, Any]
    sequence: RelativeDeltaSequence
    entropy: int
    rounds: int = 0

    def draw(self, population: int, n: int) -> list[int]:
        """Draw the queries of the next round, with replacement."""
        rng = np.random.default_rng([self.entropy, self.rounds])
        return [int(row) for row in rng.integers(population, size=n)]


def state_path(log: Path) -> Path:
    """Return the file beside a log."""
    return log.with_name(f"{log.name}.state")


def open_state(
    log: Path | None,
    settings: Mapping[str, Any],
    sequence: RelativeDeltaSequence,
    rng: np.random.Generator | int | None,
) -> ProbeState:
    """Return the state beside a log, or begin one with a new sequence and a seed.

    Raises
    ------
    DataError
        If the file cannot be read or written, or was written with other settings.
    UnsupportedVersionError
        If another release wrote it.
    """
    settings = {**settings, **sequence.settings}
    found = None if log is None else _load_state(log, settings)
    if found is not None:
        return found
    entropy = int(np.random.default_rng(rng).integers(2**63))
    state = ProbeState(settings=settings, sequence=sequence, entropy=entropy)
    if log is not None:
        save_state(log, state)  # shows now whether it can be
    return state


def save_state(log: Path, state: ProbeState) -> None:
    """Write the state; a kill at any moment leaves the old one or the new one.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    members = {"entropy": str(state.entropy), "rounds": state.rounds}
    data = write_state(_KIND, state.settings, members)
    write_atomic(
        state_path(log), json.dumps(data | {"sequence": state.sequence.to_dict()}), mode=PRIVATE
    )


def _load_state(log: Path, settings: Mapping[str, Any]) -> ProbeState | None:
    path = state_path(log)
    if not path.exists():
        return None
    data = read_json(path, "the state of a canary probe", remedy=_REMEDY)
    with sound(path, "the state of a canary probe", remedy=_REMEDY, names_file=False):
        found, members = read_state(data, _KIND)
        sequence = RelativeDeltaSequence.from_dict(data.get("sequence", {}))
    for name, value in settings.items():
        if found.get(name) != value:
            raise DataError(
                f"{path} was written with {name} {found.get(name)!r}, now it is {value!r}; "
                "probe into another log, or delete the file to start anew"
            )
    with sound(path, "whole numbers under 'entropy' and 'rounds'", remedy=_REMEDY):
        entropy, rounds = int(members["entropy"]), int(members["rounds"])
    if entropy < 0 or rounds < 0:
        raise DataError(f"{path} holds an entropy or rounds below 0; {_REMEDY}")
    return ProbeState(settings=found, sequence=sequence, entropy=entropy, rounds=rounds)
