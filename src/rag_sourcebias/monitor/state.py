"""Set numbers of a test to stored ones, so that a restart goes on from them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rag_sourcebias.core.errors import DataError


def restore(target: object, members: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Set members to stored values of the same shapes.

    Raises
    ------
    DataError
        If one is missing, has another shape or is not finite.
    """
    for name, now in members.items():
        shape = np.shape(now)
        try:
            found = np.asarray(state.get(name), np.asarray(now).dtype)
            if not found.size:  # a list without rows has no second dimension
                found = found.reshape(shape)
        except (TypeError, ValueError, OverflowError):
            raise DataError(
                f"stored {name!r}: expected numbers, found {state.get(name)!r:.80}"
            ) from None
        if found.shape != shape or not np.isfinite(found).all():
            raise DataError(
                f"stored {name!r}: expected finite numbers of shape {shape}, "
                f"found {state.get(name)!r:.80}"
            )
        setattr(target, name, found if isinstance(now, np.ndarray) else found.item())
