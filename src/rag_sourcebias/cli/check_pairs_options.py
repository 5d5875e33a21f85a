"""Options of ``check-pairs``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from rag_sourcebias.cli.checks import number_pair
from rag_sourcebias.errors import DataError
from rag_sourcebias.types.pair_checks import PairThresholds

__all__ = [
    "EncoderName",
    "FailAbove",
    "MarginOption",
    "OtherSources",
    "Retrievers",
    "SoleCorpus",
    "SoundFolder",
    "ThresholdOptions",
    "Worst",
    "read_thresholds",
]

_CHECKS, _RETRIEVAL = "Checks", "Retrieval"
_SWITCHES = ("language", "writing")
_OFF, _ON = ("off", "none", "false", "no"), ("on", "true", "yes")

OtherSources = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="Check only this source against the baseline; repeatable. \\[default: all others]",
        rich_help_panel=_CHECKS,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="Also compare both texts by this encoder, a sentence-transformers name or path.",
        rich_help_panel=_CHECKS,
    ),
]
ThresholdOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        help="name=value, such as length_ratio=0.5,2 · copied=0.8 · repeated=0.2 · end_kept=0.25 "
        "· chance=0.99 · cosine=0.7 · numbers_kept=1 · names_kept=0.6 · language=off · "
        "writing=off; off switches a check off; repeatable.",
        rich_help_panel=_CHECKS,
    ),
]
Worst = Annotated[
    int,
    typer.Option(
        min=0, help="Flagged pairs shown with both texts, per source.", rich_help_panel=_CHECKS
    ),
]
FailAbove = Annotated[
    float | None,
    typer.Option(
        help="End with code 1 if more than this share of any source's pairs is broken, such as "
        "0.05: for continuous integration.",
        min=0,
        max=1,
        rich_help_panel=_CHECKS,
    ),
]
SoundFolder = Annotated[
    Path | None,
    typer.Option(
        "--sound",
        help="Write the pairs that are not broken, with their queries and judgments, as a BEIR "
        "folder to audit with.",
        rich_help_panel=_CHECKS,
    ),
]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        help="Search each corpus alone with bm25[:…] · dense:<model> · chroma:<model>[,…], as in "
        "audit source; repeatable. \\[default: bm25, where there are judgments]",
        rich_help_panel=_RETRIEVAL,
    ),
]
SoleCorpus = Annotated[
    bool, typer.Option(help="Search each corpus alone.", rich_help_panel=_RETRIEVAL)
]
MarginOption = Annotated[
    float,
    typer.Option(
        help="Difference of two means in [0, 1] that counts as none; 0.05 is 5 points of NDCG.",
        rich_help_panel=_RETRIEVAL,
    ),
]


def read_thresholds(given: Sequence[str]) -> PairThresholds:
    """Read ``name=value`` pairs.

    Raises
    ------
    DataError
        If a name is unknown or given twice, or a value is not of its kind.
    """
    known = list(PairThresholds.__dataclass_fields__)
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in known:
            raise DataError(f"--threshold {text!r}: write name=value; names are {', '.join(known)}")
        if name in values:
            raise DataError(f"--threshold {name} is given twice")
        values[name] = _value(name, value.lower(), text)
    return PairThresholds(**values)


def _value(name: str, value: str, text: str) -> Any:  # noqa: ANN401 - of the threshold
    if name in _SWITCHES:
        if value not in (*_OFF, *_ON):
            raise DataError(f"--threshold {text!r}: {name} is on or off")
        return value in _ON
    if value in _OFF:
        return None
    if name == "length_ratio":
        return number_pair("threshold length_ratio", value)
    try:
        return float(value)
    except ValueError:
        raise DataError(f"--threshold {text!r}: {value!r} is not a number, nor off") from None
