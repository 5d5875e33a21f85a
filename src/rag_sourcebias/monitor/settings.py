"""What a monitor of skew was asked to watch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import to_plain
from rag_sourcebias.core.data import FloatArray, TagTable
from rag_sourcebias.core.errors import DataError, check_level, require_at_least, require_one_of
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.infer.verified import MIN_YOUDEN, DetectorQuality
from rag_sourcebias.measure.relevance import attention_weights
from rag_sourcebias.monitor.data import OTHER, Measure, label_names, short_text

# Which column a source, or style, has among those that are told apart.


_MOST_REMEMBERED = 10_000  # names beyond the cap, so that ever new ones cannot fill the memory


class GroupCodes(dict[str | None, int]):
    """Column of each group; the last one is "other".

    Parameters
    ----------
    groups : sequence of str or None
        Those told apart; the column before the last is then that of untagged documents, unless
        "" is one of them. None takes groups in the order in which they come.
    most : int
        Groups told apart, at least 1.

    Attributes
    ----------
    names : list of str
        Known groups, in the order of their columns, without "other" at the end.
    width : int
        Columns.
    """

    def __init__(self, groups: Sequence[str] | None, *, most: int) -> None:
        super().__init__()
        if groups is not None:
            self.names = [g for g in dict.fromkeys([*groups, ""]) if g != OTHER]
            self.width = len(self.names) + 1
        else:
            require_at_least(1, max_groups=most)
            self.names = []
            self.width = most + 1
        self._remember()

    def _remember(self) -> None:
        self.clear()
        self.update({name: code for code, name in enumerate(self.names)})
        if "" in self:
            self[None] = self[""]
        self[OTHER] = self.width - 1

    def restore(self, names: Sequence[str]) -> None:
        """Take the groups of a stored state."""
        if len(names) >= self.width or not all(isinstance(name, str) for name in names):
            raise DataError(f"stored groups {list(names)!r:.80} do not fit {self.width} columns")
        self.names = list(names)
        self._remember()

    def __missing__(self, name: str | None) -> int:
        if len(self) > _MOST_REMEMBERED:
            self._remember()
        text = "" if name is None else short_text(str(name))
        code = self.get(text)
        if code is None:
            code = self[text] = min(len(self.names), self.width - 1)
            if code < self.width - 1:
                self.names.append(text)
        self[name] = code
        return code


# What shares are held against: the corpus, the pool of candidates, or a frozen past.


_SHARE_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CorpusShare:
    """Known shares, such as those of the documents of each source in the corpus.

    Parameters
    ----------
    shares : mapping of str to float
        In [0, 1], with sum at most 1; ``""`` names documents without a tag. Only these groups are
        tested; others are counted.

    Raises
    ------
    DataError
        If there is none, one is outside [0, 1], or they sum to more than 1.
    """

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        found = dict(self.shares)
        if not found:
            raise DataError("a corpus share needs at least one group")
        for group, share in found.items():
            if not isinstance(group, str) or not (math.isfinite(share) and 0 <= share <= 1):
                raise DataError(f"share {share!r} of group {group!r} must be a number in [0, 1]")
        if sum(found.values()) > 1 + _SHARE_ROUNDING:
            raise DataError(f"shares sum to {sum(found.values()):.9g}, which is more than 1")
        object.__setattr__(self, "shares", {g: float(share) for g, share in found.items()})

    @property
    def words(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{group or 'untagged'} {s:.4g}" for group, s in self.shares.items())
        return f"known shares: {parts}"


@dataclass(frozen=True, slots=True)
class PoolShare:
    """Share among all candidates of the same query.

    The application retrieves more than it shows and reports all of it: the first ``shown``
    documents are watched, and all documents of the event are their pool. Given the pool, each
    rank has this share of a group on average as long as the order knows nothing of it.

    Parameters
    ----------
    shown : int
        At least 1. Events of no more documents than that are their own pool.

    Raises
    ------
    DataError
        If ``shown`` is below 1.
    """

    shown: int = 10

    def __post_init__(self) -> None:
        require_at_least(1, shown=self.shown)

    @property
    def words(self) -> str:
        """One line for people."""
        return f"share among all candidates of the same query (first {self.shown} shown)"


@dataclass(frozen=True, slots=True)
class ReferenceWindow:
    """Share in the past, at most four weeks: no alarm comes before the first observations.

    Parameters
    ----------
    n : int
        Observations of each set of labels, 2 to 100,000.

    Raises
    ------
    DataError
        If ``n`` is out of its range.
    """

    n: int = 1_000

    def __post_init__(self) -> None:
        if not 2 <= self.n <= 100_000:
            raise DataError(f"a reference window has 2 to 100000 observations, got {self.n}")


Baseline = CorpusShare | PoolShare | ReferenceWindow
_BASELINES: Mapping[str, type[Baseline]] = {
    "corpus": CorpusShare,
    "pool": PoolShare,
    "reference": ReferenceWindow,
}


def _stored_baseline(data: Mapping[str, Any]) -> Baseline:
    try:
        return _BASELINES[data["kind"]](**{k: v for k, v in data.items() if k != "kind"})
    except (KeyError, TypeError):
        kinds = list(_BASELINES)
        raise DataError(f"stored baseline {dict(data)!r:.80} is none of {kinds}") from None


# Shares of the corpus, from what a store of tags holds.


def corpus_share(
    store: TagStore | TagTable, *, by: Literal["source", "style"] = "source"
) -> CorpusShare:
    """Return the shares of the documents of a tag store (or table), untagged ones included.

    Parameters
    ----------
    store : TagStore or TagTable
        Every document of it counts once.
    by : {"source", "style"}

    Returns
    -------
    CorpusShare
        In [0, 1], with sum 1; ``""`` stands for documents without a tag.

    Raises
    ------
    DataError
        If it holds no documents.
    """
    table = store if isinstance(store, TagTable) else store.table()
    require_one_of("by", by, ("source", "style"))
    if not len(table):
        raise DataError("the tag store holds no documents: there is no share of the corpus")
    names, codes = (
        (table.sources, table.source_codes) if by == "source" else (table.styles, table.style_codes)
    )
    counts = {name: int((codes == code).sum()) for code, name in enumerate(names)}
    counts[""] = int((codes < 0).sum())
    return CorpusShare({name: n / len(table) for name, n in sorted(counts.items()) if n})


# Shares corrected for the errors of a tagger.


_ROUNDING = 1e-6
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class TagErrors:
    """What a tagger makes of documents of each group.

    Observed shares are o = Cᵀ t, so that t = C⁻ᵀ o are the true ones. Assumed: the tagger errs
    independently of the rank, and as often as in the sample that C was measured on. Documents
    without a tag, and those of groups that are not named, are left as they are; a tagger that
    leaves documents untagged is taken to do so as often for every group.

    Parameters
    ----------
    groups : tuple of str
        At least 2 names of sources, or styles.
    confusion : tuple of tuple of float, shape (groups, groups)
        C: row i says how documents of ``groups[i]`` that get a tag are tagged; it sums to 1.

    Raises
    ------
    DataError
        If the shape does not fit, a row is no distribution, or the tagger is useless:
        ``separation`` below 0.3.

    Examples
    --------
    >>> errors = TagErrors.of_rates(sensitivity=0.9, specificity=0.8, baseline="human", other="llm")
    >>> {group: round(s, 3) for group, s in errors.correct({"human": 0.45, "llm": 0.55}).items()}
    {'human': 0.5, 'llm': 0.5}
    """

    groups: tuple[str, ...]
    confusion: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "confusion", tuple(tuple(row) for row in self.confusion))
        k = len(self.groups)
        if k < 2 or len(set(self.groups)) < k or not all(isinstance(g, str) for g in self.groups):
            raise DataError(f"tag errors need two or more different groups, got {self.groups!r}")
        if "" in self.groups or "other" in self.groups:
            raise DataError("tag errors are those of named groups, not of '' or 'other'")
        if len(self.confusion) != k or any(len(row) != k for row in self.confusion):
            raise DataError(f"the confusion of {k} groups needs {k} rows of {k} numbers")
        for group, row in zip(self.groups, self.confusion, strict=True):
            if not all(0 <= p <= 1 for p in row) or abs(sum(row) - 1) > _ROUNDING:
                raise DataError(
                    f"documents of {group!r} are tagged {list(row)}, which is no distribution: "
                    "numbers in [0, 1] with sum 1 are expected"
                )
        if not self.separation >= MIN_YOUDEN:
            raise DataError(
                f"the tagger separates the groups by {self.separation:.2f} only (sensitivity + "
                f"specificity - 1 for two groups); correcting its errors needs {MIN_YOUDEN} or more"
            )

    @classmethod
    def of_rates(
        cls, *, sensitivity: float, specificity: float, baseline: str, other: str
    ) -> TagErrors:
        """Return those of a detector of ``other``.

        Parameters
        ----------
        sensitivity : float
            Part of ``other`` that is tagged so.
        specificity : float
            Part of ``baseline`` that is tagged so.
        baseline, other : str
        """
        return cls(
            (baseline, other), ((specificity, 1 - specificity), (1 - sensitivity, sensitivity))
        )

    @classmethod
    def of_detector(cls, quality: DetectorQuality, *, baseline: str, other: str) -> TagErrors:
        """Return those of a detector that was tried on a labelled sample.

        Raises
        ------
        DataError
            As of the class; also if the 95 % interval of sensitivity + specificity − 1 reaches
            below 0.3.
        """
        reach = normal_quantile(0.5 + _LEVEL / 2) * float(np.sqrt(sum(quality.variances)))
        if quality.youden - reach < MIN_YOUDEN:
            raise DataError(
                f"the detector's sensitivity + specificity - 1 is {quality.youden:.2f} ± "
                f"{reach:.2f}, which reaches below {MIN_YOUDEN}: too weak to correct for; verify "
                "more documents by hand or use a better detector"
            )
        return cls.of_rates(
            sensitivity=quality.sensitivity,
            specificity=quality.specificity,
            baseline=baseline,
            other=other,
        )

    @property
    def separation(self) -> float:
        """Smallest part of a difference of shares that is left after tagging, in [0, 1].

        Sensitivity + specificity − 1 for two groups. An error of observed shares grows to at most
        that error over this, in total variation distance.
        """
        matrix = np.array(self.confusion)
        if np.linalg.matrix_rank(matrix) < len(matrix):
            return 0.0
        pairs = combinations(np.linalg.inv(matrix), 2)
        return float(1 / max(np.abs(one - two).sum() / 2 for one, two in pairs))

    def correct(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Return shares with those of the groups corrected.

        Their sum stays as it is. Where observed shares are such as no true ones could give on
        average, as with few retrievals, groups below 0 get 0 and the others are scaled to the sum.

        Parameters
        ----------
        shares : mapping of str to float
            Observed, by group; those of groups that are not there are 0.
        """
        observed = np.array([shares.get(group, 0.0) for group in self.groups])
        found: FloatArray = np.maximum(np.linalg.solve(np.array(self.confusion).T, observed), 0.0)
        total = float(found.sum())
        if total > 0:
            found = found * (float(observed.sum()) / total)
        return dict(shares) | dict(zip(self.groups, found.tolist(), strict=True))


# What a monitor of skew was asked to watch.


@dataclass(frozen=True, kw_only=True)
class SkewSettings:
    """Settings of a monitor, checked; parameters as of ``SkewMonitor``."""

    by: Literal["source", "style"] = "source"
    groups: tuple[str, ...] | None = None
    baseline: Baseline | None = None
    browsing: str = "dcg"
    measures: tuple[Measure, ...] = ("exposure", "first")
    confidence_level: float = 0.95
    labels: tuple[str, ...] = ("collection",)
    max_label_sets: int = 100
    max_groups: int = 20
    max_documents: int = 1_000
    users: tuple[str, ...] = ("user", "session")
    topics: str | None = None
    tag_errors: TagErrors | None = None

    def __post_init__(self) -> None:
        require_one_of("by", self.by, ("source", "style"))
        known = get_args(Measure)
        if not self.measures or not set(self.measures) <= set(known):
            raise DataError(f"measures {list(self.measures)} must be some of {list(known)}")
        if len(set(self.measures)) != len(self.measures):
            raise DataError(f"measures {list(self.measures)} name one twice")
        check_level(self.confidence_level)
        require_at_least(1, max_documents=self.max_documents)
        if self.groups is not None and (isinstance(self.groups, str) or not self.groups):
            raise DataError(f"groups must be a sequence of names, got {self.groups!r}")
        if isinstance(self.baseline, CorpusShare):
            strange = sorted(set(self.groups or ()) - set(self.baseline.shares))
            if strange:
                raise DataError(f"groups {strange} have no share in the baseline")
        self._check_optional()
        self.new_groups()
        _ = self.attention
        self._check_labels()

    def _check_labels(self) -> None:
        label_names("users", self.users)
        if len(label_names("labels", self.labels)) != len(self.labels):
            raise DataError(f"labels {list(self.labels)} name one twice")
        require_at_least(1, max_label_sets=self.max_label_sets)

    def _check_optional(self) -> None:
        if self.tag_errors is None:
            return
        if "exposure" not in self.measures:
            raise DataError("tag_errors corrects shares of exposure: measures must have 'exposure'")
        known = self.told_apart
        lost = [] if known is None else sorted(set(self.tag_errors.groups) - set(known))
        if lost:
            raise DataError(f"groups {lost} of tag_errors are not told apart: name them in groups")

    @cached_property
    def attention(self) -> npt.NDArray[np.float64]:
        """Weight of each rank."""
        return attention_weights(self.browsing, self.max_documents)

    @property
    def shown(self) -> int | None:
        """Documents of an event that were shown; None for all."""
        return self.baseline.shown if isinstance(self.baseline, PoolShare) else None

    @property
    def told_apart(self) -> tuple[str, ...] | None:
        """Groups with columns of their own; None for those that come first."""
        if self.groups is None and isinstance(self.baseline, CorpusShare):
            return tuple(self.baseline.shares)
        return self.groups

    def new_groups(self) -> GroupCodes:
        """Return the columns of a set of labels."""
        return GroupCodes(self.told_apart, most=self.max_groups)

    def tested(self, groups: GroupCodes) -> npt.NDArray[np.int64]:
        """Return the columns that are watched, measure after measure; untagged documents, too."""
        wanted = self.told_apart
        columns = [*range(groups.width)]
        if wanted is not None:
            columns = [groups[name] for name in dict.fromkeys([*wanted, ""])]
        many = len(self.measures)
        return np.array([groups.width * m + c for m in range(many) for c in columns], np.int64)

    def known(self, groups: GroupCodes, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return of which of these columns the baseline says the level."""
        baseline = self.baseline
        if isinstance(baseline, CorpusShare):
            named = [groups[name] for name in baseline.shares]
            return np.isin(columns % groups.width, named)
        return np.full(len(columns), isinstance(baseline, PoolShare))

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        data: dict[str, Any] = to_plain(self)
        for kind, cls in _BASELINES.items():
            if isinstance(self.baseline, cls):
                data["baseline"] = {"kind": kind, **data["baseline"]}
        return data

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> SkewSettings:
        """Return the settings that :meth:`to_plain` described.

        Raises
        ------
        DataError
            If they are none.
        """
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in data.items()
        }
        if data.get("baseline") is not None:
            values["baseline"] = _stored_baseline(data["baseline"])
        errors: Any = data.get("tag_errors")
        try:
            values["tag_errors"] = None if errors is None else TagErrors(**errors)
        except TypeError:
            raise DataError(f"stored tag errors {dict(errors)!r:.80} cannot be read") from None
        try:
            return cls(**values)
        except TypeError as error:
            raise DataError(f"stored settings of a monitor: {error!s:.80}") from None
