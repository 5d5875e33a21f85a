"""Every error the library raises on purpose, and the checks of settings and names that raise them.

::

    SourceBiasError
    ├── DataError (also ValueError)      the input cannot be used as it is
    │   ├── MissingTagsError             documents whose source is unknown
    │   └── SettingError                 a setting has a value that it cannot have
    ├── InsufficientDataError            too little data for an honest interval
    ├── CalibrationError                 a calibration set cannot support the request
    ├── MissingExtraError (also ImportError)
    ├── TrainingDivergedError            a loss is not a finite number any more
    └── UnsupportedVersionError

A message says what was wrong, names the offending value (file, line, id) and says what would be
accepted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

_LONGEST = 1_500  # characters of a message


class SourceBiasError(Exception):
    """Base of every error raised on purpose.

    Parameters
    ----------
    message : str or Finding
        Cut in the middle where it is long: the value it names may be a damaged cell of megabytes.
        What a report keeps is a finding, of which the message is the sentence.
    """

    def __init__(self, message: object = "") -> None:
        half = _LONGEST // 2
        self.finding: Any = None if isinstance(message, str) else message
        text = str(message)
        if len(text) > _LONGEST:
            text = f"{text[:half]} … {text[-half:]}"
        super().__init__(text)


class DataError(SourceBiasError, ValueError):
    """Input data cannot be used as it is."""


class MissingTagsError(DataError):
    """Documents have no source tag where one is required."""


class SettingError(DataError):
    """A setting has a value that it cannot have.

    Parameters
    ----------
    setting : str
        Its name in Python; a command says the option in its place.
    problem : str
        The value, what is wrong with it, and what would be accepted.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting} {problem}")
        self.setting = setting
        self.problem = problem


class InsufficientDataError(SourceBiasError):
    """Too little data for an honest answer.

    Parameters
    ----------
    message : str or Finding
        What was asked for and why it cannot be had.
    n : int or None
        Number of queries (or labels) available; that of the finding, if it has one.
    n_needed : int or None
        Estimated number that would be enough; None when it cannot be estimated.
    """

    def __init__(
        self, message: object, *, n: int | None = None, n_needed: int | None = None
    ) -> None:
        super().__init__(message)
        numbers = {} if self.finding is None else self.finding.numbers
        self.n: int | None = numbers.get("n", n)
        self.n_needed: int | None = numbers.get("n_needed", n_needed)


class CalibrationError(SourceBiasError):
    """A calibration set cannot support the requested guarantee."""


class MissingExtraError(SourceBiasError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    package : str
        Distribution that is missing, as it is named on the registry.
    extra : str
        Extra of rag-sourcebias that installs it.
    feature : str
        What the caller wanted to do.
    """

    def __init__(self, *, package: str, extra: str, feature: str) -> None:
        super().__init__(f"{feature} needs {package}; install it with: {installing(extra)}")
        self.package = package
        self.extra = extra


def installing(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where that came."""
    checkout, wanted = Path(__file__).parents[3], f"rag-sourcebias[{extra}]"
    if (checkout / "pyproject.toml").is_file():
        return f"pip install -e {shlex.quote(f'{checkout}[{extra}]')}"
    with suppress(PackageNotFoundError):
        told = distribution("rag-sourcebias").read_text("direct_url.json")
        if told:  # of a file or folder, not of an index
            wanted += f" @ {json.loads(told)['url']}"
    return f"pip install {shlex.quote(wanted)}"


P = ParamSpec("P")
T = TypeVar("T")


def if_enough(measure: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
    """Return what is measured, None where there are too few data for it."""
    try:
        return measure(*args, **options)
    except InsufficientDataError:
        return None


def attempt(compute: Callable[[], T], notes: list[str], what: str) -> T | None:
    """Compute, or note why there is too little data for it."""
    try:
        return compute()
    except InsufficientDataError as error:
        notes.append(f"{what}: {error}")
        return None


def import_extra(module: str, package: str, extra: str, feature: str) -> Any:  # noqa: ANN401
    """Import what an extra brings; a package that is there but broken raises its own error.

    Raises
    ------
    MissingExtraError
        If the package itself is missing.
    """
    try:
        return import_module(module)
    except ImportError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(package=package, extra=extra, feature=feature) from error


class UnsupportedVersionError(SourceBiasError):
    """An installed package or a stored file has a version this release cannot read."""


class TrainingDivergedError(SourceBiasError):
    """The loss is not a finite number any more; weights of the step before are still good.

    Parameters
    ----------
    message : str
    step : int
        Forward pass of training, from 1, in which it happened.
    """

    def __init__(self, message: str, *, step: int) -> None:
        super().__init__(message)
        self.step = step


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
        near = meant(value, accepted)
        raise SettingError(name, f"{value!r} is not one of {', '.join(accepted)}{near}")


def require_distinct(what: str, names: Sequence[str]) -> None:
    """Refuse names of which one stands there twice."""
    for name, n in Counter(names).items():
        if n > 1:
            raise DataError(f"{what} names must differ, {name!r} occurs {n} times in {list(names)}")


def meant(word: object, known: Collection[str]) -> str:
    """Return the known word that was probably meant, as a question, or nothing."""
    near = get_close_matches(str(word), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def setting(
    default: Any,  # noqa: ANN401 - of any setting
    help: str,
    *,
    option: str = "",
    panel: str | None = None,
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
    panel : str, optional
        Heading of the help page under which it stands, by default the ``panel`` of the class.
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


# Names and texts from elsewhere: which may be read, and how they are shown.


_SHOWN = 80  # characters of a name in a message
_CHARACTERS = (
    r"\x7f-\x9f"  # control characters beyond ASCII: terminals read 0x9b as the start of an escape
    r"\u2028-\u202e"  # line and paragraph separators, embeddings and overrides of direction
    r"\u2066-\u2069"  # isolates of direction
    r"\ud800-\udfff"
    r"\ufffe\uffff"
)
_IN_NAMES = re.compile(rf"[\x00-\x1f{_CHARACTERS}]")
_IN_TEXTS = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f{_CHARACTERS}]|\r(?!\n)")


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return text whose control characters, overrides and surrogates are written out.

    Parameters
    ----------
    text : str
    lines : bool
        Leave tabs and line ends as they are, as in an excerpt of a document.

    Returns
    -------
    str
        Each as ``\uXXXX``, as JSON writes it: JSON text stays the same value.

    Examples
    --------
    >>> print(visible("llm:\x1b[31mred"))
    llm:\u001b[31mred
    """
    pattern = _IN_TEXTS if lines else _IN_NAMES
    # most texts are printable, and none of these characters is
    return text if text.isprintable() else pattern.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def require_name(name: str, what: str, where: str = "") -> str:
    """Return a name that can be shown as it is.

    Parameters
    ----------
    name : str
    what : str
        What it names, such as "source".
    where : str
        File and line, or document; may be empty.

    Raises
    ------
    DataError
        If it holds a control character, a line break, half of a surrogate pair or a character that
        turns the direction of text.
    """
    found = None if name.isprintable() else _IN_NAMES.search(name)
    if found is None:
        return name
    shown = visible(name)
    cut = f"{shown[:_SHOWN]}…" if len(shown) > _SHOWN else shown
    raise DataError(
        f"{visible(where)}{': ' if where else ''}{what} '{cut}' holds U+{ord(found[0]):04X}, "
        f"{_kind(found[0])}; remove it from the name"
    )


def _kind(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return "half of a surrogate pair"
    if "\u202a" <= character <= "\u2069":
        return "which turns the direction of text"
    if character in "\n\r\x0b\x0c\x85\u2028\u2029":
        return "a line break"
    return "no character" if character in "\ufffe\uffff" else "a control character"


def is_source(name: str) -> bool:
    """Whether a name is "human" or "llm:<model>"."""
    return name == "human" or (name.startswith("llm:") and bool(name[4:].strip()))


def check_source(source: str) -> str:
    """Return a source name as it is, if it is one.

    Parameters
    ----------
    source : str
        ``"human"`` or ``"llm:<model>"``.

    Raises
    ------
    DataError
        If it is anything else, or holds control characters; an unknown source is None, never a
        word.

    Examples
    --------
    >>> check_source("llm:gpt-4o")
    'llm:gpt-4o'
    """
    if is_source(source):
        return require_name(source, "source")
    raise DataError(
        f"source {source!r} is not a source name; expected 'human' or 'llm:<model>' "
        "(leave it out where the source is unknown)"
    )
