"""What the reordering parts of all frameworks share."""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from rag_sourcebias.core.errors import DataError, require_at_least


def check_rescorer(rescorer: Any, *, encoder: Any, top_n: int | None) -> None:  # noqa: ANN401
    """Refuse what cannot be called, and a rescorer fitted on the scores of another encoder.

    Parameters
    ----------
    rescorer : Rescorer
        One with an attribute ``encoder`` was fitted on the scores of the encoder of this
        fingerprint.
    encoder : Encoder or str or None
        Where the scores come from: an encoder, embeddings around one, or a fingerprint.
    top_n : int, optional

    Raises
    ------
    DataError
    """
    if not callable(rescorer):
        raise DataError(f"{rescorer!r:.80} is not a rescorer; expected a function")
    require_at_least(1, top_n=top_n)
    if encoder is None:
        return
    here = encoder if isinstance(encoder, str) else _fingerprint(encoder)
    fitted = getattr(rescorer, "encoder", None)
    if isinstance(fitted, str) and fitted != here:
        raise DataError(
            f"{type(rescorer).__name__} was fitted on scores of the encoder {fitted!r}, but scores "
            f"come from {here!r}; fit it again with the encoder that searches"
        )


def scores_from(
    found: Sequence[object], score_of: Callable[[float], float] | None
) -> list[float] | None:
    """Return the retriever's scores as the rescorer takes them; None unless all are numbers."""
    numbers = [float(score) for score in found if isinstance(score, Real)]
    if len(numbers) != len(found):
        return None
    return numbers if score_of is None else [float(score_of(number)) for number in numbers]


def order_by(scores: Sequence[float], n: int) -> tuple[list[int], list[float]]:
    """Return indices by falling score, equal scores in their order, and the scores as numbers.

    Raises
    ------
    DataError
        If there is not one finite number for each of ``n`` documents.
    """
    numbers = [float(score) for score in scores]
    if len(numbers) != n or not all(map(math.isfinite, numbers)):
        raise DataError(
            f"the rescorer returned {len(numbers)} scores for {n} documents; expected one finite "
            "number for each"
        )
    return sorted(range(n), key=numbers.__getitem__, reverse=True), numbers


def _fingerprint(encoder: Any) -> str:  # noqa: ANN401
    for one in (encoder, getattr(encoder, "encoder", None)):
        found = getattr(one, "fingerprint", None)
        if isinstance(found, str):
            return found
    raise DataError(
        f"{encoder!r:.80} is not an encoder; expected one with a fingerprint, embeddings around "
        "one, or the fingerprint itself"
    )
