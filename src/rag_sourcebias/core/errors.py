"""Every error the library raises on purpose.

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

from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

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
        super().__init__(
            f"{feature} needs {package}; install it with: pip install 'rag-sourcebias[{extra}]'"
        )
        self.package = package
        self.extra = extra


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
