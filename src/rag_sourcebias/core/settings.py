"""Settings: how a field declares its option, and the refusal of values that cannot be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.errors import DataError, SettingError


def require(*rules: tuple[object, str]) -> None:
    """Refuse what breaks one of several rules, by the first: what must hold, and what to say."""
    for holds, why in rules:
        if not holds:
            raise DataError(why)


def check_settings(*rules: tuple[object, str, str]) -> None:
    """Refuse the first setting that breaks its rule: what must hold, its name, what is wrong."""
    for holds, name, problem in rules:
        if not holds:
            raise SettingError(name, problem)


def require_at_least(least: int, **settings: float | None) -> None:
    """Refuse settings below a bound; None is one that was not given."""
    for name, value in settings.items():
        if value is not None and value < least:
            raise SettingError(name, f"must be at least {least}, got {value}")


def require_one_of(name: str, value: object, accepted: Collection[str]) -> None:
    """Refuse a setting that is none of the accepted words."""
    if value not in accepted:
        raise SettingError(name, f"{value!r} is not one of {', '.join(accepted)}")


def setting(
    default: Any,  # noqa: ANN401 - of any setting
    help: str,
    *,
    option: str = "",
    panel: str = "Statistics",
    least: int | None = None,
    metavar: str | None = None,
) -> Any:  # noqa: ANN401
    """Return a field that the commands which take its class have as an option.

    Parameters
    ----------
    default : object
    help : str
        What the option is for, as the help page says it.
    option : str
        Its name there; by default that of the field.
    panel : str
        Heading of the help page under which it stands.
    least : int, optional
    metavar : str, optional
        What stands for the value there.
    """
    told = {"help": help, "option": option, "panel": panel, "least": least, "metavar": metavar}
    return field(default=default, metadata=told)


def require_finite(values: npt.NDArray[np.floating[Any]], what: str, *, remedy: str) -> None:
    """Raise where a value is NaN or infinite, naming its place.

    Parameters
    ----------
    what : str
        The values in the plural, such as ``"ranks"``.
    remedy : str
        What to do about it, such as ``"leave out queries that lack a version"``.

    Raises
    ------
    DataError
    """
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        names = ("row", "column") if values.ndim <= 2 else ("row", *("index",) * values.ndim)
        place = ", ".join(f"{name} {at}" for name, at in zip(names, bad[0].tolist(), strict=False))
        more = f" ({len(bad)} such values)" if len(bad) > 1 else ""
        raise DataError(
            f"{what} hold NaN or infinity: {values[tuple(bad[0])]} in {place}{more}; {remedy}"
        )


def check_level(confidence_level: float) -> None:
    """Raise unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise SettingError(
            "confidence_level", f"{confidence_level!r} is outside (0, 1); 0.95 is usual"
        )


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return a generator; an integer is a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
