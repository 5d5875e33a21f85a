"""What the reordering and the style-adjusting parts of all frameworks share."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from rag_sourcebias.answers.measure import StyleAdjustment, cosine_similarities
from rag_sourcebias.core.errors import DataError, require_at_least
from rag_sourcebias.core.protocols import Encoder, Rescorer
from rag_sourcebias.core.tags import TagStore, from_metadata
from rag_sourcebias.observe.events import TagLookup
from rag_sourcebias_integrations._require import require_kind


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


def rescored(
    rescorer: Rescorer,
    query: str,
    *,
    doc_ids: Sequence[str],
    texts: Sequence[str],
    metadata: Iterable[Mapping[str, Any]],
    scores: Sequence[object],
    score_of: Callable[[float], float] | None,
    tag_store: TagStore | None,
) -> tuple[list[int], list[float]] | None:
    """Return indices by falling score, equal scores in their order, and the scores as numbers.

    None where the rescorer gives none. It is given the retriever's scores if all are numbers.

    Raises
    ------
    DataError
        If there is not one finite number for each document.
    """
    tags = tuple(from_metadata(one) for one in metadata)
    if tag_store is not None:
        tags = TagLookup(tag_store).over(doc_ids, tags)
    known = [float(score) for score in scores if isinstance(score, Real)]
    if score_of is not None:
        known = [float(score_of(score)) for score in known]
    n = len(doc_ids)
    found = rescorer(
        query, doc_ids=doc_ids, texts=texts, tags=tags, scores=known if len(known) == n else None
    )
    if found is None:
        return None
    numbers = [float(score) for score in found]
    if len(numbers) != n or not all(map(math.isfinite, numbers)):
        raise DataError(
            f"the rescorer returned {len(numbers)} scores for {n} documents; expected one finite "
            "number for each"
        )
    return sorted(range(n), key=numbers.__getitem__, reverse=True), numbers


def adjustable(
    embeddings: Any,  # noqa: ANN401
    adjustment: StyleAdjustment,
    native: type,
    ours: Callable[[Encoder], Any],
) -> Any:  # noqa: ANN401
    """Return embeddings of a framework, made of an encoder where they are one.

    Raises
    ------
    DataError
        If they are neither, or the adjustment is none or was fitted on another encoder.
    """
    require_kind(adjustment, StyleAdjustment, "StyleAdjustment")
    if not isinstance(embeddings, native):
        embeddings = ours(embeddings)  # refuses what is no encoder
    if isinstance(embeddings, ours):  # type: ignore[arg-type] # a class
        adjustment.check_encoder(_fingerprint(embeddings))
    return embeddings


def adjusted(
    adjustment: StyleAdjustment, text: str, vectors: Sequence[Sequence[float]]
) -> tuple[float, float, float]:
    """Return cosine, offset and score of a text, from its vector and that of its reference."""
    cosine, offset, score = adjustment.adjust([text], cosine_similarities(vectors[:1], vectors[1:]))
    return float(cosine[0]), float(offset[0]), float(score[0])


def _fingerprint(encoder: Any) -> str:  # noqa: ANN401
    for one in (encoder, getattr(encoder, "encoder", None)):
        found = getattr(one, "fingerprint", None)
        if isinstance(found, str):
            return found
    raise DataError(
        f"{encoder!r:.80} is not an encoder; expected one with a fingerprint, embeddings around "
        "one, or the fingerprint itself"
    )
