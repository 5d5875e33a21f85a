"""The queries of a style audit that have every version, and what to warn about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rag_sourcebias.errors import DataError, InsufficientDataError
from rag_sourcebias.measures.style_checks import unique_names
from rag_sourcebias.measures.text import word_counts
from rag_sourcebias.types.arrays import BoolArray
from rag_sourcebias.types.style_data import StyledTexts
from rag_sourcebias.types.style_report import StyleConfig

__all__ = ["columns_of", "style_settings", "style_warnings", "take_queries", "with_every_version"]

_FEW = 100
_VERY_FEW = 20
_SHOWN = 5
_LENGTH_DIFFERS = 0.1


def with_every_version(texts: StyledTexts, config: StyleConfig) -> BoolArray:
    """Tell which queries have a text in every style; shape (n,). A blank text is none.

    Raises
    ------
    DataError
        If there are fewer than 2 document styles, or a version is missing and
        ``config.missing`` is ``"refuse"``.
    InsufficientDataError
        If no query has every version.
    """
    unique_names(tuple(texts.documents), "document style", at_least=2)
    columns = [("query", style, column) for style, column in texts.queries.items()]
    columns += [("document", style, column) for style, column in texts.documents.items()]
    has = np.array([[bool(text and text.strip()) for text in column] for *_, column in columns])
    keep = np.asarray(has.all(axis=0), dtype=np.bool_)
    absent = np.argwhere(~has.T)
    if len(absent) and config.missing == "refuse":
        query, at = absent[0]
        raise DataError(
            f"{len(absent)} version(s) have no text, first {columns[at][0]} style "
            f"{columns[at][1]!r} of query {texts.query_ids[query]!r}; add it, or use only the "
            f"{np.count_nonzero(keep)} of {len(keep)} queries that have every version "
            "(missing='balanced')"
        )
    if not keep.any():
        lacking = np.count_nonzero(~has, axis=1)
        side, style, _ = columns[int(lacking.argmax())]
        raise InsufficientDataError(
            f"none of {len(keep)} queries has a text in every style; {side} style {style!r} lacks "
            f"{lacking.max()} of them: leave that style out, or add versions",
            n=0,
            n_needed=1,
        )
    return keep


def take_queries(texts: StyledTexts, keep: BoolArray) -> StyledTexts:
    """Return the queries asked for, with everything that belongs to them."""
    rows = np.flatnonzero(keep).tolist()

    def part(column: Sequence[str | None]) -> tuple[str | None, ...]:
        return tuple(column[row] for row in rows)

    return replace(
        texts,
        query_ids=tuple(texts.query_ids[row] for row in rows),
        doc_ids=tuple(texts.doc_ids[row] for row in rows),
        queries={style: part(column) for style, column in texts.queries.items()},
        documents={style: part(column) for style, column in texts.documents.items()},
    )


def columns_of(versions: Mapping[str, tuple[str | None, ...]]) -> dict[str, list[str]]:
    """Texts per style of queries that have every version."""
    return {style: [text or "" for text in column] for style, column in versions.items()}


def style_settings(
    texts: StyledTexts, config: StyleConfig | None
) -> tuple[StyleConfig, tuple[str, ...]]:
    """Settings with the names of the originals that the data has, and warnings.

    A name left at its default that the data does not have means the first style.

    Raises
    ------
    DataError
        If an original was named that the data does not have.
    """
    config, default = config or StyleConfig(), StyleConfig()
    original, note = _original(config.original, default.original, texts.documents, "document")
    query, query_note = _original(
        config.original_query, default.original_query, texts.queries, "query"
    )
    warnings = tuple(text for text in (note, query_note) if text)
    return replace(config, original=original, original_query=query), warnings


def _original(
    asked: str, default: str, styles: Mapping[str, object], side: str
) -> tuple[str, str | None]:
    if asked in styles:
        return asked, None
    if asked != default:
        raise DataError(f"original {asked!r} is no {side} style; there are {list(styles)}")
    first = next(iter(styles))
    return first, f"there is no {side} style {asked!r}: {first!r}, the first, is the original"


def style_warnings(
    texts: StyledTexts, dropped: Sequence[str], config: StyleConfig
) -> tuple[str, ...]:
    """List what a reader must know about the data before trusting a number.

    Parameters
    ----------
    texts : StyledTexts
        With every version.
    dropped : sequence of str
        Queries that were left out.
    """
    found = []
    if dropped:
        more = ", …" if len(dropped) > _SHOWN else ""
        found.append(
            f"{len(dropped)} of {len(texts) + len(dropped)} queries lack a version and are left "
            f"out ({', '.join(dropped[:_SHOWN])}{more}), so that all styles are compared on the "
            "same queries"
        )
    if len(texts) < _VERY_FEW:
        found.append(
            f"{len(texts)} queries are too few to rank styles: intervals are rough, and only "
            f"very large differences can be told from chance; use {_FEW} or more"
        )
    elif len(texts) < _FEW:
        found.append(f"{len(texts)} queries are few: read the intervals, not the averages alone")
    shared = sum(count for count in Counter(texts.doc_ids).values() if count > 1)
    if shared:
        found.append(
            f"{shared} queries share their document with another query; intervals treat queries "
            "as independent, so they are too narrow"
        )
    found += _lengths(texts, config)
    for side, versions in (("document", texts.documents), ("query", texts.queries)):
        found += _same_text(texts, side, columns_of(versions))
    return tuple(found)


def _lengths(texts: StyledTexts, config: StyleConfig) -> list[str]:
    means = {s: float(word_counts(c).mean()) for s, c in columns_of(texts.documents).items()}
    base = means.pop(config.original)
    if not base:
        return []
    ratio = {style: mean / base for style, mean in means.items()}
    differing = {s: r for s, r in ratio.items() if abs(r - 1) > _LENGTH_DIFFERS}
    if not differing:
        return []
    by_ratio = sorted(differing, key=ratio.__getitem__)
    extremes = dict.fromkeys((by_ratio[0], by_ratio[-1]))
    named = " and ".join(f"{style!r} {ratio[style]:.2f} times" for style in extremes)
    return [
        f"{len(differing)} of {len(ratio)} document styles differ by more than "
        f"{_LENGTH_DIFFERS:.0%} in length from {config.original!r} ({named} its words): length "
        "alone can move ranks, compare the ranks at equal length"
    ]


def _same_text(texts: StyledTexts, side: str, columns: Mapping[str, list[str]]) -> list[str]:
    rows = [
        i for i, row in enumerate(zip(*columns.values(), strict=True)) if len({*row}) < len(row)
    ]
    if not rows:
        return []
    first: dict[str, str] = {}
    alike = next(
        (earlier, style)
        for style, column in columns.items()
        if (earlier := first.setdefault(column[rows[0]], style)) != style
    )
    effect = "they tie" if side == "document" else "they rank alike"
    return [
        f"{len(rows)} of {len(texts)} queries have the same {side} text in two or more styles "
        f"(first {texts.query_ids[rows[0]]!r}: {alike[0]!r} and {alike[1]!r}); {effect}"
    ]
