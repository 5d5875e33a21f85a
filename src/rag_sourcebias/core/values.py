"""Small values everyone shares: arrays, intervals, names of sources, the codec of reports."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt

from rag_sourcebias._version import __version__
from rag_sourcebias.core.errors import DataError, UnsupportedVersionError

# Types of arrays, by what they hold.


BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


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


# One refusal of numbers that are none.


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


# Small values of every report: intervals, names of sources, the environment, their codec.


# Text that may be shown, and names that may be read.
# A name comes from a file or a request and ends in a terminal, a page and a picture. Control
# characters drive a terminal, line breaks forge a line of a log, direction overrides let a name
# read as another, lone surrogates cannot be encoded, and U+FFFE and U+FFFF (as most control
# characters) break the XML of a picture. Marks that right-to-left and joined scripts need are left
# alone.


_LONGEST = 80
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
    cut = f"{shown[:_LONGEST]}…" if len(shown) > _LONGEST else shown
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


# Names of sources.


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


# Dataclasses to plain JSON values and back, arrays included.
# One codec for every report type: a dataclass becomes a mapping of its fields, an array a list
# (NaN as null), a tuple a list. Reading follows the declared field types.


T = TypeVar("T")


class Stored:
    """A dataclass that can be stored as plain JSON values and read again.

    One that says what it is called and its schema version is read in this version only.
    """

    __slots__ = ()
    _versioned: ClassVar[tuple[str, int] | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(to_plain(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        DataError
            If a field is missing or has the wrong shape.
        UnsupportedVersionError
            If it was written by a release with another schema.
        """
        if cls._versioned is None:
            return from_plain(cls, data)
        what, version = cls._versioned
        return from_versioned(cls, data, version=version, what=what)


def to_plain(value: Any) -> Any:  # noqa: ANN401 - any field of any report type
    """Return ``value`` as JSON-ready plain values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return _floats(value) if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _floats(array: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401 - nested lists of any depth
    if array.ndim > 1:
        return [_floats(row) for row in array]
    return [None if math.isnan(v) else v for v in array.astype(np.float64).tolist()]


def from_plain(cls: type[T], data: Any, *, where: str = "") -> T:  # noqa: ANN401
    """Read a dataclass that :func:`to_plain` wrote.

    Raises
    ------
    DataError
        If a field is missing or has the wrong shape; the message names its path.
    """
    if not isinstance(data, Mapping):
        raise DataError(f"{where or cls.__name__}: expected an object, found {type(data).__name__}")
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for part in fields(cast("Any", cls)):
        path = f"{where}.{part.name}" if where else part.name
        if part.name in data:
            values[part.name] = _read(hints[part.name], data[part.name], path)
        elif part.default is MISSING and part.default_factory is MISSING:
            raise DataError(f"field {path!r} is missing")
    return cls(**values)


def from_versioned(cls: type[T], data: Mapping[str, Any], *, version: int, what: str) -> T:
    """Read a report that :func:`to_plain` wrote.

    Raises
    ------
    UnsupportedVersionError
        If its ``schema_version`` is another one.
    """
    found = data.get("schema_version")
    if found != version:
        raise UnsupportedVersionError(
            f"{what} schema version {found!r} cannot be read; this release reads version {version}"
        )
    return from_plain(cls, data)


def _read(hint: Any, value: Any, path: str) -> Any:  # noqa: ANN401
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        none = value is None and type(None) in args
        return None if none else _read(next(a for a in args if a is not type(None)), value, path)
    if origin is np.ndarray:
        return np.array(_expect(list, value, path), dtype=get_args(args[1])[0])
    if is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value, where=path)
    if origin is tuple:
        return tuple(
            _read(args[0], item, f"{path}[{i}]")
            for i, item in enumerate(_expect(list, value, path))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {k: _read(args[1], v, f"{path}.{k}") for k, v in _expect(dict, value, path).items()}
    if isinstance(hint, type) and issubclass(hint, Enum):
        if value not in [member.value for member in hint]:
            raise DataError(
                f"field {path!r}: {value!r} is none of {[member.value for member in hint]}"
            )
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(hint, value, path) if hint in (str, int, bool, float) else value


def _expect(kind: type[T], value: Any, path: str) -> T:  # noqa: ANN401
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    raise DataError(f"field {path!r}: expected {kind.__name__}, found {value!r:.80}")


# One confidence interval with everything needed to defend it.


JudgeFinding: TypeAlias = Literal["", "few", "constant", "weak"]
#: What a reader is told of a judge that was set aside, or that is of no use.
JUDGE_NOTES: Mapping[JudgeFinding, str] = {
    "few": "fewer than 10 labels: the judge was not used",
    "constant": "the judge is constant on the labelled items and was not used",
    "weak": "this judge is no better than none: labels alone are as good",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval(Stored):
    """An estimate with a two-sided confidence interval.

    Parameters
    ----------
    estimate, lower, upper : float
        In the unit of the estimated quantity; ``lower <= estimate <= upper``.
    confidence_level : float
        In (0, 1).
    method : str
        Name of the method, such as ``"delta"`` or ``"bootstrap"``.
    target : str
        What is estimated: ``"population"``, ``"pool"`` or ``"unlabeled"``.
    n_labeled : int
        Number of independent units (queries, labelled items) behind it.
    n_unlabeled : int
    assumptions : tuple of str
        What must hold for the stated confidence.
    correlation : float or None
        Between human and judge values on the labelled items, where a judge was used.
    notes : tuple of str
        What a reader should know before quoting the interval, such as that labels alone are
        better than this judge.
    judge : {"", "few", "constant", "weak"}
        What was found of the judge: set aside, as labels are few or it is constant on them; used,
        but its correlation is too weak to be of use. Else "".
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    method: str
    target: str = "population"
    n_labeled: int
    n_unlabeled: int = 0
    assumptions: tuple[str, ...] = ()
    correlation: float | None = None
    notes: tuple[str, ...] = ()
    judge: JudgeFinding = ""

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence_level < 1.0:
            raise DataError(f"confidence_level {self.confidence_level!r} is outside (0, 1)")
        if any(math.isnan(v) for v in (self.estimate, self.lower, self.upper)):
            raise DataError(f"an interval may not hold NaN: {self}")
        if not self.lower <= self.estimate <= self.upper:
            raise DataError(
                f"interval [{self.lower}, {self.upper}] does not hold its estimate {self.estimate}"
            )

    @property
    def half_width(self) -> float:
        """Half the distance between the ends."""
        return (self.upper - self.lower) / 2

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside the interval."""
        return not self.lower <= value <= self.upper

    def __str__(self) -> str:
        facts = [f"{100 * self.confidence_level:.4g}%", self.method]
        if self.target != "population":
            facts.append(f"of the {self.target} items")
        facts.append(f"n = {self.n_labeled}")
        if self.n_unlabeled:
            facts[-1] += f" + {self.n_unlabeled} unlabelled"
        if self.correlation is not None:
            facts.append(f"judge r = {self.correlation:.2f}")
        facts += self.notes
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}] ({', '.join(facts)})"


# Statistical tests as data.


@dataclass(frozen=True, slots=True, kw_only=True)
class NoninferiorityTest:
    """One-sided paired test that a mean fell by less than a relative margin.

    Parameters
    ----------
    quality : str
        What was tested, such as ``"human-only"``.
    relative_margin : float
        Largest loss accepted, as a share of the reference's mean.
    level : float
        Error probability of the test.
    change : float
        (mean / mean of the reference − 1) · 100, in percent.
    lower : float
        One-sided confidence bound for ``change`` at level 1 − ``level``; the test passes when it
        lies above −100 · ``relative_margin``. −100 where nothing can be excluded.
    p_value : float
        Of the hypothesis that the loss is the margin or more.
    n_queries, n_seeds : int
    n_needed : int or None
        Queries with which a change of 0 would pass with probability .8, or where few queries
        changed those with which the share that lost would do; None where more queries would not
        help.
    note : str or None
        Why it was not a t test.
    """

    quality: str
    relative_margin: float
    level: float
    change: float
    lower: float
    p_value: float
    n_queries: int
    n_seeds: int
    n_needed: int | None = None
    note: str | None = None

    @property
    def passed(self) -> bool:
        """Whether a loss of the margin or more is excluded."""
        return self.p_value <= self.level


@dataclass(frozen=True, slots=True, kw_only=True)
class FriedmanTest:
    """Friedman's test that no style is ranked higher than another (Friedman 1937).

    Parameters
    ----------
    statistic : float
        χ², corrected for ties; 0 when every query ties all styles.
    degrees : int
        k − 1.
    p_value : float
        By Box's F, with two styles by the sign test.
    w : float or None
        Kendall's W, in [0, 1]; None when every query ties all styles.
    n_queries, n_styles : int
    """

    statistic: float
    degrees: int
    p_value: float
    w: float | None
    n_queries: int
    n_styles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPair:
    """Two styles compared on the same queries.

    Parameters
    ----------
    first, second : str
    difference : float
        Average rank of the first minus that of the second; negative when the first is preferred.
    interval : Interval or None
        For the difference, not adjusted for the number of pairs; None when all queries agree
        exactly.
    p_value, p_adjusted : float
        Two-sided sign-flip permutation test; adjusted over all pairs compared.
    """

    first: str
    second: str
    difference: float
    interval: Interval | None
    p_value: float
    p_adjusted: float


# Counts of values between edges.


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Counts between edges.

    Parameters
    ----------
    edges : float64 array of shape (bins + 1,)
    counts : int64 array of shape (bins,)
        Values outside the outer edges are in the first and the last bin.
    mean, median : float
    """

    edges: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)
    mean: float
    median: float


# What a report must state about the software and machine behind its numbers.


# Only what was imported can have influenced the numbers.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "bm25s": "bm25s",
    "Stemmer": "PyStemmer",
    "torch": "torch",
    "transformers": "transformers",
    "sentence_transformers": "sentence-transformers",
    "chromadb": "chromadb",
    "langchain_core": "langchain-core",
    "llama_index.core": "llama-index-core",
    "sklearn": "scikit-learn",
    "openai": "openai",
    "pyarrow": "pyarrow",
}


@cache
def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version  # reads e-mail too: 15 ms

    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def environment() -> dict[str, str]:
    """Versions of the packages in use, and the machine."""
    found = {"rag-sourcebias": __version__, "python": platform.python_version()}
    for module, package in _PACKAGES.items():
        if module in sys.modules:
            found[package] = _version(package)
    found["machine"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found


def check_level(confidence_level: float) -> None:
    """Raise unless the level lies strictly between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise DataError(f"confidence_level {confidence_level!r} is outside (0, 1); 0.95 is usual")


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, degrees: float) -> float:
    """Quantile of Student's t with ``degrees`` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Quantile of the beta distribution."""
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return a generator; an integer is a seed."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
