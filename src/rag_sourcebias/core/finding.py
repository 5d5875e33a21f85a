"""Findings, the intervals they state, and frames: what a report holds instead of sentences."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from string import Formatter
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored, from_plain
from rag_sourcebias.core.errors import DataError, check_level, import_extra, visible

MINUS = "\u2212"  # what print uses for negative numbers; a hyphen would start a new word
MISSING = "–"
SHORT = 40  # characters of a name that leave room for a sentence beside it
Values = Sequence[Any]


# One confidence interval with everything needed to defend it.


@dataclass(frozen=True, kw_only=True)
class Interval(Stored):
    """An estimate with a two-sided confidence interval.

    Parameters
    ----------
    estimate, lower, upper : float
        In the unit of the estimated quantity; ``lower <= estimate <= upper``.
    confidence_level : float
        In (0, 1).
    method : Finding
        Its name as a sentence is made, with the parameters that the data decided.
    target : str
        What is estimated: ``"population"``, ``"pool"`` or ``"unlabeled"``.
    n_labeled : int
        Number of independent units (queries, labelled items) behind it.
    n_unlabeled : int
    assumptions : tuple of Finding
        What must hold for the stated confidence.
    correlation : float or None
        Between human and judge values on the labelled items, where a judge was used.
    notes : tuple of Finding
        What a reader should know before quoting the interval, such as that labels alone are
        better than this judge.
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    method: Finding
    target: str = "population"
    n_labeled: int
    n_unlabeled: int = 0
    assumptions: tuple[Finding, ...] = ()
    correlation: float | None = None
    notes: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
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
        facts = [f"{100 * self.confidence_level:.4g}%", str(self.method)]
        if self.target != "population":
            facts.append(f"of the {self.target} items")
        facts.append(f"n = {self.n_labeled}")
        if self.n_unlabeled:
            facts[-1] += f" + {self.n_unlabeled} unlabelled"
        if self.correlation is not None:
            facts.append(f"judge r = {self.correlation:.2f}")
        facts += map(str, self.notes)
        return f"{self.estimate:.4g} [{self.lower:.4g}, {self.upper:.4g}] ({', '.join(facts)})"


# How numbers are written in every output.


def number(value: float | None, *, digits: int = 1, signed: bool = False) -> str:
    """Return a number with ``digits`` decimals; what rounds to 0 carries no sign."""
    if value is None:
        return MISSING
    text = f"{abs(value):,.{digits}f}"
    if not text.strip("0.naif"):  # neither 0 nor what is no number has a sign
        return text
    if value < 0:
        return f"{MINUS}{text}"
    return f"+{text}" if signed else text


def shorten(text: str, width: int) -> str:
    """Return a text cut in the middle to ``width`` characters: the end of a name tells most."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals, ``< 0.001`` below that.

    A value that three decimals would round onto 0.050 keeps a fourth, so that nobody has to guess
    on which side of the usual threshold it lies.
    """
    if value is None:
        return MISSING
    if value < 0.001:
        return "< 0.001"
    text = f"{value:.3f}"
    if text == "0.050" and value != 0.05:
        return f"{value:.4f}"
    return text


class _Style(NamedTuple):
    """How a specification writes a number."""

    scale: float = 1.0
    digits: int = 1
    signed: bool = False
    unit: str = ""


_STYLES = {
    "": _Style(),
    "signed": _Style(signed=True),
    "whole": _Style(digits=0),
    "2": _Style(digits=2),
    "3": _Style(digits=3),
    "4": _Style(digits=4),
    "signed2": _Style(digits=2, signed=True),
    "signed3": _Style(digits=3, signed=True),
    "score": _Style(scale=100),
    "points": _Style(scale=100, signed=True),
    "percent": _Style(scale=100, unit="%"),
    "percent0": _Style(scale=100, digits=0, unit="%"),
}


def _level(value: float) -> str:
    return f"{100 * value:.6g}%".replace("-", MINUS)


def _p_behind_a_name(value: float) -> str:
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"


def _roughly(value: int) -> str:
    unit = 10 ** max(len(str(value)) - 2, 0)
    return f"{-(-value // unit) * unit:,}"


def _short(value: str) -> str:
    return shorten(value, SHORT)


def _general(value: float) -> str:
    return f"{value:.4g}".replace("-", MINUS)


def _star(value: bool) -> str:
    return "*" if value else ""


_WRITERS: dict[str, Callable[[Any], str]] = {
    "g": _general,
    "level": _level,
    "p": p_value,
    "p=": _p_behind_a_name,
    "roughly": _roughly,
    "short": _short,
    "star": _star,
}


class Wording(Formatter):
    """Write the numbers of a template.

    A specification is one of ``signed``, ``whole``, ``2``, ``3``, ``4``, ``signed2``, ``signed3``
    (decimals of a number), ``g`` (four digits that count), ``score`` and ``points`` (×100, the
    second signed), ``percent``, ``percent0`` (of a share), ``level`` (a confidence level), ``p`` (a
    p-value), ``p=`` (the same behind a name), ``star`` (of what is significant), ``roughly`` (two
    digits that count), ``short`` (a name that may be long) or ``singular|plural``. An interval is
    written with its estimate, or after ``ends:`` without, as in ``{delta:ends:signed}``.
    """

    def format_field(self, value: Any, spec: str) -> str:  # noqa: ANN401 - any number of a finding
        """Return one number as it is read."""
        if isinstance(value, Interval):
            return self._interval(value, spec)
        if value is None:
            return MISSING
        if "|" in spec:
            singular, plural = spec.split("|")
            count = f"{value:,}".replace("-", MINUS)
            return f"{count} {singular if value == 1 else plural}"
        if spec in _WRITERS:
            return _WRITERS[spec](value)
        if isinstance(value, str | Finding):
            return str(value)
        if isinstance(value, int) and not spec:
            return f"{value:,}".replace("-", MINUS)
        style = _STYLES[spec]
        text = number(style.scale * value, digits=style.digits, signed=style.signed)
        return f"{text}{style.unit}"

    def _interval(self, value: Interval, spec: str) -> str:
        prefix, _, spec = spec.rpartition(":")
        plain = _STYLES[spec]._replace(signed=False, unit="")
        lower, upper = (
            number(plain.scale * end, digits=plain.digits) for end in (value.lower, value.upper)
        )
        unit = _STYLES[spec].unit
        ends = f"[{lower}{unit}, {upper}{unit}]"
        if prefix == "ends":
            return ends
        return f"{self.format_field(value.estimate, spec)} {ends}"


_WORDING = Wording()


# Findings.


class Code(Enum):
    """What can be found: a member is declared by its sentence as a template.

    A class of codes names its home, under which reports store its members:
    ``class SourceCode(Code, home="source")``. The value of a member is what they store, such as
    ``"source.favours"``. A command to type stands between backticks of the template.
    """

    template: str

    def __init_subclass__(cls, *, home: str, **options: Any) -> None:  # noqa: ANN401
        super().__init_subclass__(**options)
        _HOMES[home] = cls
        for code in cls:
            code.template, code._value_ = code.value, f"{home}.{code.name.lower()}"

    @classmethod
    def _missing_(cls, value: object) -> Code | None:
        return next((code for code in cls if code.value == value), None)

    def __call__(
        self,
        *,
        severity: Literal["note", "warning", "verdict"] = "note",
        cases: Sequence[str] = (),
        **numbers: Any,  # noqa: ANN401 - what the template names
    ) -> Finding:
        """Return the finding; a number that the template names and is missing raises KeyError."""
        finding = Finding(code=self, numbers=numbers, severity=severity, cases=tuple(cases))
        str(finding)
        return finding


_HOMES: dict[str, type[Code]] = {}


def code_of(key: str) -> Code:
    """Return the code that a report stores under a name.

    Raises
    ------
    DataError
        If no capability that is loaded has it.
    """
    home, _, name = key.partition(".")
    try:
        return _HOMES[home][name.upper()]
    except KeyError:
        raise DataError(
            f"there is no finding {key!r}; was it written by another release?"
        ) from None


class Finding:
    """One thing that a report says.

    No dataclass: the codec asks it how it is stored.

    Parameters
    ----------
    code : Code
    numbers : mapping
        Every number, name and interval that the sentence shows; another finding where a sentence
        holds one.
    severity : {"note", "warning", "verdict"}
    cases : tuple of str
        Ids of the items that show it best.
    """

    __slots__ = ("cases", "code", "numbers", "severity")

    def __init__(
        self,
        *,
        code: Code,
        numbers: Mapping[str, Any],
        severity: Literal["note", "warning", "verdict"] = "note",
        cases: tuple[str, ...] = (),
    ) -> None:
        self.code, self.numbers, self.severity, self.cases = code, numbers, severity, cases

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Finding) and self.stored() == other.stored()

    def __hash__(self) -> int:
        return hash((self.code, self.severity, self.cases))

    def __repr__(self) -> str:
        return f"<{self.code.value}: {self}>"

    def __str__(self) -> str:
        return "".join(text for text, _ in self.pieces())

    def stored(self) -> dict[str, Any]:
        """Return what a report stores: the key of the code, and what is not as usual."""
        plain: dict[str, Any] = {"code": self.code.value}
        if self.numbers:
            plain["numbers"] = self.numbers
        if self.severity != "note":
            plain["severity"] = self.severity
        if self.cases:
            plain["cases"] = self.cases
        return plain

    @classmethod
    def from_stored(cls, plain: Any) -> Finding:  # noqa: ANN401 - of a file
        """Read what a report stores.

        Raises
        ------
        DataError
            If it is no finding, or lacks a number that its sentence shows.
        """
        try:
            numbers = {name: _number(value) for name, value in plain.get("numbers", {}).items()}
            severity, cases = plain.get("severity", "note"), plain.get("cases", ())
            return code_of(plain["code"])(severity=severity, cases=cases, **numbers)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DataError(f"{plain!r:.80} is no finding ({error})") from error

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """Yield the sentence in pieces, each with whether it is a command to type.

        Backticks of the template divide it, never those of a name that users gave.
        """
        for place, part in enumerate(self.code.template.split("`")):
            if part:
                yield _WORDING.vformat(part, (), self.numbers), bool(place % 2)

    @property
    def command(self) -> str:
        """The command that it names; "" where there is none."""
        return next((text for text, is_command in self.pieces() if is_command), "")


def _number(plain: Any) -> Any:  # noqa: ANN401 - any number of a finding
    """Read a number of a finding, which may be an interval or a finding of its own."""
    if not isinstance(plain, dict):
        return plain
    return Finding.from_stored(plain) if "code" in plain else from_plain(Interval, plain)


# Frames, and texts of users in the files that hold them.

# Names come from users' data: none may start a link, a tag or a cell.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|#~&])")
_BLANKS = re.compile(r"\s+")
_LATEX = str.maketrans({
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    MINUS: "$-$",
})  # fmt: skip
_OPTION = re.compile(r"^(?=[\[*])")  # what LaTeX would take for an option of the row before


def for_markdown(text: str) -> str:
    """Return a text on one line, with nothing that Markdown or a terminal would interpret."""
    return _MARKDOWN.sub(r"\\\1", _BLANKS.sub(" ", visible(text, lines=True)))


def for_latex(text: str) -> str:
    """Return a text on one line, with nothing that LaTeX would interpret."""
    return _BLANKS.sub(" ", visible(text, lines=True)).translate(_LATEX)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A table as data.

    Parameters
    ----------
    columns : mapping of str to sequence
        Of one length.
    heads : mapping of str to str
        Head of a column where it is not its name.
    formats : mapping of str to str
        How a column is written, as in a template (:class:`Wording`).
    n_heads : int
        The first columns that name a row.
    """

    columns: Mapping[str, Values]
    heads: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    n_heads: int = 1
    writes: ClassVar[tuple[str, ...]] = ("csv", "md", "tex")

    def __post_init__(self) -> None:
        lengths = {name: len(values) for name, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns of a frame have one length, not {lengths}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def titles(self) -> tuple[str, ...]:
        """Return the head of each column."""
        return tuple(self.heads.get(name, name) for name in self.columns)

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Return the cells as they are read."""
        written = [
            [_WORDING.format_field(cell, self.formats.get(name, "")) for cell in values]
            for name, values in self.columns.items()
        ]
        return tuple(zip(*written, strict=True))

    def values(self) -> dict[str, list[Any]]:
        """Return plain values: a finding as its code, an interval in three columns.

        A number among intervals, of which the interval was refused, has no ends.
        """
        plain: dict[str, list[Any]] = {}
        for name, cells in self.columns.items():
            if any(isinstance(cell, Interval) for cell in cells):
                plain[name] = [getattr(cell, "estimate", cell) for cell in cells]
                plain[f"{name}_lower"] = [getattr(cell, "lower", None) for cell in cells]
                plain[f"{name}_upper"] = [getattr(cell, "upper", None) for cell in cells]
            else:
                plain[name] = [
                    cell.code.value if isinstance(cell, Finding) else cell for cell in cells
                ]
        return plain

    def to_pandas(self) -> Any:  # noqa: ANN401 - a DataFrame
        """Return the values as a pandas frame.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        pandas = import_extra("pandas", "pandas", "pandas", "a pandas frame")
        return pandas.DataFrame(self.values())

    def to_polars(self) -> Any:  # noqa: ANN401 - a DataFrame
        """Return the values as a polars frame.

        Raises
        ------
        MissingExtraError
            If polars is not installed.
        """
        polars = import_extra("polars", "polars", "polars", "a polars frame")
        return polars.DataFrame(self.values(), strict=False)

    def to_csv(self) -> str:
        """Return the values, not their wording, as CSV."""
        values = self.values()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(values)
        writer.writerows(zip(*values.values(), strict=True))
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the cells as they are read, as a GitHub-flavoured table; "" without rows."""
        if not len(self):
            return ""
        n = len(self.columns)
        n_left = n if n == 2 else self.n_heads
        head = [for_markdown(title) or " " for title in self.titles()]
        rule = "|-" * n_left + "|-:" * (n - n_left)
        rows = [[for_markdown(cell) or MISSING for cell in row] for row in self.rows()]
        lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
        lines.insert(1, f"{rule}|")
        return "\n".join(lines)

    def to_latex(self) -> str:
        """Return the cells as they are read, as a ``tabular`` with the rules of booktabs."""
        n_others = len(self.columns) - self.n_heads
        lines = [" & ".join(map(for_latex, cells)) for cells in (self.titles(), *self.rows())]
        head, *rows = [_OPTION.sub("{}", line) + r" \\" for line in lines]
        return "\n".join((
            rf"\begin{{tabular}}{{{'l' * self.n_heads}{'r' * n_others}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
        )) + "\n"  # fmt: skip


MOST, AGAINST = 8, 3
"""Cases that are kept with their texts: those that matter most, and those that point elsewhere."""
LONGEST = 1_500
"""Characters of a text that are kept."""


@dataclass(frozen=True, kw_only=True)
class EvidenceText:
    """One of two texts that are compared.

    Parameters
    ----------
    label : str
        Its source, style, system or role.
    doc_id : str
        "" where texts have no ids of their own.
    value : float or None
        What it got: a rank or a score; None where it was not retrieved.
    text : str
        Its beginning; "" where texts were not kept.
    length : int
        Characters of the whole text.
    """

    label: str
    doc_id: str = ""
    value: float | None = None
    text: str = ""
    length: int = 0

    @classmethod
    def of(
        cls,
        label: str,
        text: str,
        *,
        doc_id: str = "",
        value: float | None = None,
    ) -> EvidenceText:
        """Keep the beginning of a text."""
        return cls(
            label=label,
            doc_id=doc_id,
            value=value,
            text=text[:LONGEST],
            length=len(text),
        )


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One case that a figure rests on.

    Parameters
    ----------
    item : str
        Id of the query, question, item or pair.
    asked : str
        Text of the query or question; "" where there is none, or texts were not kept.
    value : float
        What it adds to the figure; its sign says in which direction.
    first, second : EvidenceText
    """

    item: str
    value: float
    first: EvidenceText
    second: EvidenceText
    asked: str = ""

    def without_texts(self) -> Evidence:
        """Return the same case with ids and numbers only."""
        first, second = replace(self.first, text=""), replace(self.second, text="")
        return replace(self, asked="", first=first, second=second)


def telling(values: npt.NDArray[np.float64], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the places of the values that matter most for their sum, and of a few against it.

    Parameters
    ----------
    values : float array of shape (n,)
        What each case adds; 0 adds nothing.
    names : sequence of str, length n
        Break ties, so that equal reports name equal cases.
    """
    sign = 1.0 if np.nansum(values) >= 0 else -1.0
    order = sorted(
        (i for i in range(len(values)) if np.isfinite(values[i]) and abs(values[i]) > 1e-12),
        key=lambda i: (-round(abs(float(values[i])), 9), names[i]),
    )
    with_it = [i for i in order if sign * values[i] > 0]
    against = [i for i in order if sign * values[i] < 0]
    return np.array([*with_it[:MOST], *against[:AGAINST]], dtype=np.int64)


# How names are written in sentences.


CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}


def source_name(source: str) -> str:
    """Return a source as prose: ``human-written``, ``LLM-written (llama-2)``, ``untagged``."""
    if source.startswith("llm:"):
        return f"LLM-written ({source[4:]})"
    return {"": "untagged", "human": "human-written", "llm": "LLM-written"}.get(source, source)


def short_names(sources: Iterable[str]) -> dict[str, str]:
    """Return the shortest unambiguous name of each source: ``human``, ``LLM``, ``LLM gpt-4``."""
    known = list(dict.fromkeys(sources))
    names = {source: source or "untagged" for source in known}
    models = [source for source in known if source == "llm" or source.startswith("llm:")]
    for source in models:
        names[source] = "LLM" if len(models) == 1 else f"LLM {source[4:]}".strip()
    return names


def split_measure(measure: str) -> tuple[str, int | None]:
    """Split ``"NDCG@5"`` into ``("NDCG", 5)``; the cutoff is None where there is none."""
    name, _, cutoff = measure.partition("@")
    return name, int(cutoff) if cutoff.isdigit() else None
