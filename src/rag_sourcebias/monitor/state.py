"""Keep the state of a test as plain JSON values, so that a restart goes on from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError

VERSION = 1


def write_state(
    kind: str, settings: Mapping[str, Any], members: Mapping[str, Any], *, version: int = VERSION
) -> dict[str, Any]:
    """Return plain values of settings and of members, which are numbers or arrays of them."""
    return {
        "kind": kind,
        "version": version,
        "settings": dict(settings),
        "state": {name: np.asarray(value).tolist() for name, value in members.items()},
    }


def read_state(
    data: Mapping[str, Any], kind: str, *, version: int = VERSION
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings and state after looking at kind and version.

    Raises
    ------
    DataError
        If it is something else.
    UnsupportedVersionError
        If another release wrote it.
    """
    if not isinstance(data, Mapping) or data.get("kind") != kind:
        found = data.get("kind") if isinstance(data, Mapping) else type(data).__name__
        raise DataError(f"expected the state of kind {kind!r}, found {found!r}")
    if data.get("version") != version:
        raise UnsupportedVersionError(
            f"state version {data.get('version')!r} cannot be read; "
            f"this release reads version {version} of {kind!r}"
        )
    settings = data.get("settings")
    state = data.get("state")
    if not isinstance(settings, Mapping) or not isinstance(state, Mapping):
        raise DataError(f"the state of kind {kind!r} needs 'settings' and 'state'")
    return dict(settings), dict(state)


def restore(target: object, members: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Set members to stored values of the same shapes.

    Raises
    ------
    DataError
        If one is missing, has another shape or is not finite.
    """
    for name, now in members.items():
        try:
            found = np.asarray(state.get(name), np.asarray(now).dtype)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"stored {name!r}: expected numbers, found {state.get(name)!r:.80}"
            ) from None
        if found.shape != np.shape(now) or not np.isfinite(found).all():
            raise DataError(
                f"stored {name!r}: expected finite numbers of shape {np.shape(now)}, "
                f"found {state.get(name)!r:.80}"
            )
        setattr(target, name, found if isinstance(now, np.ndarray) else found.item())
