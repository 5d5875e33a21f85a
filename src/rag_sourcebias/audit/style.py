"""The verb: measure writing-style bias from similarities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.audit.environment import environment
from rag_sourcebias.audit.style_data import (
    columns_of,
    style_settings,
    style_warnings,
    take_queries,
    with_every_version,
)
from rag_sourcebias.audit.style_system import style_system
from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures import word_counts
from rag_sourcebias.measures.style_checks import complete_queries
from rag_sourcebias.types.arrays import FloatArray
from rag_sourcebias.types.style_data import StyledTexts
from rag_sourcebias.types.style_report import (
    STYLE_SCHEMA_VERSION,
    StyleConfig,
    StyleData,
    StyleReport,
    StyleSystem,
)

__all__ = ["assemble_styles", "measure_style_bias", "measure_systems"]

Settings = Mapping[str, Mapping[str, str]]


def measure_style_bias(
    similarities: Mapping[str, npt.NDArray[np.floating[Any]]],
    texts: StyledTexts,
    *,
    config: StyleConfig | None = None,
    settings: Settings | None = None,
) -> StyleReport:
    """Measure which writing styles similarities favour, for documents and queries ([W] §3–4).

    Parameters
    ----------
    similarities : mapping of system name to float array of shape (n, q, d)
        Similarity of query i in query style a to its document in style b, in the order of
        ``texts.queries`` and ``texts.documents``; higher is more similar, NaN where there is no
        version.
    texts : StyledTexts
        Lengths are taken from it, and a blank text counts as a missing version.
    config : StyleConfig, optional
        A missing version makes the whole query drop out for all systems, or is refused
        (``config.missing``). Where ``original`` or ``original_query`` has its default and the
        data does not have it, the first style is the original.
    settings : mapping of system name to mapping, optional
        What the report is to state about each system.

    Returns
    -------
    StyleReport
        Without text statistics and quality in an index, see
        :func:`~rag_sourcebias.audit.audit_style`. A style's matching gain is its mean rank under
        all other query styles, the original one among them, minus that under its own.

    Raises
    ------
    DataError
        If nothing was given, an array has another shape or an infinite number, there are fewer
        than 2 document styles, or a version is missing and must not be.
    InsufficientDataError
        If no query has every version.

    Examples
    --------
    >>> texts = StyledTexts(
    ...     query_ids=("q",),
    ...     queries={"original": ("who?",)},
    ...     documents={"human": ("she",), "llm": ("It was she.",)},
    ... )
    >>> report = measure_style_bias({"x": np.array([[[0.9, 0.4]]])}, texts)
    >>> report.system("x").average_ranks.tolist()
    [[1.0, 2.0]]
    """
    if not similarities:
        raise DataError("no similarities were given; give an array for at least one system")
    unknown = [name for name in settings or {} if name not in similarities]
    if unknown:
        raise DataError(f"settings name {unknown[0]!r}; systems are {list(similarities)}")
    config, warnings = style_settings(texts, config)
    keep = with_every_version(texts, config)
    arrays = {name: _checked(name, array, texts) for name, array in similarities.items()}
    for name, array in arrays.items():
        keep = _scored(name, array, texts, keep, config)
    complete = take_queries(texts, keep)
    systems = measure_systems(
        {name: array[keep] for name, array in arrays.items()}, complete, config, settings
    )
    dropped = tuple(q for q, kept in zip(texts.query_ids, keep, strict=True) if not kept)
    return assemble_styles(systems, complete, config, dropped=dropped, warnings=warnings)


def measure_systems(
    similarities: Mapping[str, FloatArray],
    complete: StyledTexts,
    config: StyleConfig,
    settings: Settings | None = None,
    *,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> tuple[StyleSystem, ...]:
    """Measure systems on queries that have every version."""
    columns = columns_of(complete.documents).values()
    lengths = np.stack([np.maximum(word_counts(column), 1) for column in columns], axis=1)
    return tuple(
        style_system(
            name,
            array,
            query_ids=complete.query_ids,
            query_styles=tuple(complete.queries),
            doc_styles=tuple(complete.documents),
            lengths=lengths,
            config=config,
            settings=(settings or {}).get(name),
            notes=(notes or {}).get(name, ()),
        )
        for name, array in similarities.items()
    )


def assemble_styles(
    systems: Sequence[StyleSystem],
    complete: StyledTexts,
    config: StyleConfig,
    *,
    dropped: Sequence[str],
    warnings: Sequence[str],
    n_distractors: int = 0,
) -> StyleReport:
    """Put the report together."""
    return StyleReport(
        schema_version=STYLE_SCHEMA_VERSION,
        data=StyleData(
            name=complete.name,
            n_queries=len(complete),
            doc_styles=tuple(complete.documents),
            query_styles=tuple(complete.queries),
            dropped=tuple(dropped),
            n_distractors=n_distractors,
            license=complete.license,
            attribution=complete.attribution,
        ),
        config=config,
        systems=tuple(systems),
        environment=environment(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        warnings=(*warnings, *style_warnings(complete, dropped, config)),
    )


def _checked(name: str, array: npt.NDArray[np.floating[Any]], texts: StyledTexts) -> FloatArray:
    try:
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"similarities of {name!r} are not an array of numbers: {error}") from error
    shape = (len(texts), len(texts.queries), len(texts.documents))
    if values.shape != shape:
        raise DataError(
            f"similarities of {name!r} have shape {values.shape}, expected {shape}: queries, "
            "query styles, document styles"
        )
    return values


def _scored(
    name: str,
    values: FloatArray,
    texts: StyledTexts,
    keep: npt.NDArray[np.bool_],
    config: StyleConfig,
) -> npt.NDArray[np.bool_]:
    """Which of the queries kept so far have a similarity for every version; shape (n,)."""
    rows = np.flatnonzero(keep)
    found = np.zeros(len(keep), dtype=np.bool_)
    try:
        found[rows] = complete_queries(
            values[rows],
            [texts.query_ids[row] for row in rows],
            tuple(texts.queries),
            tuple(texts.documents),
            missing=config.missing,
        )
    except DataError as error:
        raise DataError(f"similarities of {name!r}: {error}") from error
    except InsufficientDataError as error:
        raise InsufficientDataError(
            f"similarities of {name!r}, for the queries that every text and the systems before it "
            f"have: {error}",
            n=error.n,
            n_needed=error.n_needed,
        ) from error
    return found
