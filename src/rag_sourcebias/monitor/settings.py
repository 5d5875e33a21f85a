"""What a monitor of skew was asked to watch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import force_setattr

from rag_sourcebias.core.data import TagTable
from rag_sourcebias.core.errors import DataError, check_level, require_at_least, require_one_of
from rag_sourcebias.core.tags import TagStore
from rag_sourcebias.infer.means import normal_quantile
from rag_sourcebias.infer.verified import MIN_YOUDEN, DetectorQuality
from rag_sourcebias.monitor.data import MEASURES
from rag_sourcebias.observe.labels import OTHER, short_text

# Which column a source, or style, has among those that are told apart.


MOST_GROUPS = 20  # told apart where nobody names them


class GroupCodes(dict[str | None, int]):
    """Column of each group; the last one is "other".

    Parameters
    ----------
    groups : sequence of str or None
        Those told apart; the column before the last is then that of untagged documents, unless
        "" is one of them. None takes the first twenty that come.

    Attributes
    ----------
    names : list of str
        Known groups, in the order of their columns, without "other" at the end.
    width : int
        Columns.
    """

    def __init__(self, groups: Sequence[str] | None) -> None:
        super().__init__()
        if groups is not None:
            self.names = [g for g in dict.fromkeys([*groups, ""]) if g != OTHER]
            self.width = len(self.names) + 1
        else:
            self.names = []
            self.width = MOST_GROUPS + 1
        self._number()

    def _number(self) -> None:
        self.update({name: code for code, name in enumerate(self.names)})
        self[OTHER] = self.width - 1

    def restore(self, names: Sequence[str]) -> None:
        """Take the groups of a stored state."""
        if len(names) >= self.width or not all(isinstance(name, str) for name in names):
            raise DataError(f"stored groups {list(names)!r:.80} do not fit {self.width} columns")
        self.names = list(names)
        self._number()

    def __missing__(self, name: str | None) -> int:
        text = "" if name is None else short_text(str(name))
        if text not in self and len(self.names) < self.width - 1:
            self[text] = len(self.names)
            self.names.append(text)
        return self.get(text, self.width - 1)  # others are not kept: there may be ever new ones


# What shares are held against: the corpus, the pool of candidates, or a frozen past.


_SHARE_ROUNDING = 1e-9


class CorpusShare(Struct, frozen=True, tag_field="kind", tag="corpus"):
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
        force_setattr(self, "shares", {g: float(share) for g, share in found.items()})

    @property
    def words(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{group or 'untagged'} {s:.4g}" for group, s in self.shares.items())
        return f"known shares: {parts}"


class PoolShare(Struct, frozen=True, tag_field="kind", tag="pool"):
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


class ReferenceWindow(Struct, frozen=True, tag_field="kind", tag="reference"):
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
    names, codes = table.sources, table.source_codes
    if by == "style":
        names, codes = table.styles, table.style_codes
    counts = Counter(names[code] if code >= 0 else "" for code in codes.tolist())
    return shares_of(dict(sorted(counts.items())), "the tag store")


def shares_of(counts: Mapping[str, int], what: str) -> CorpusShare:
    """Return the shares of counted documents; ``what`` holds them."""
    n = sum(counts.values())
    if not n:
        raise DataError(f"{what} holds no documents: there is no share of the corpus")
    return CorpusShare({name: one / n for name, one in counts.items() if one})


# Shares corrected for the errors of a tagger.


_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TagErrors:
    """How often a detector of one source errs, beside documents by people.

    Of what it tags, t·sensitivity + (1 − t)·(1 − specificity) is tagged ``other`` where t is:
    corrected shares are that t. Assumed: the detector errs independently of the rank, and as often
    as in the sample that it was tried on. Documents without a tag and those of further sources are
    left as they are.

    Parameters
    ----------
    other : str
        The source that is detected.
    sensitivity, specificity : float
        Parts of ``other``, and of ``baseline``, that are tagged as what they are.
    baseline : str

    Raises
    ------
    DataError
        If a rate is not in [0, 1], the groups are one, or the detector is useless: sensitivity +
        specificity − 1 below 0.3.

    Examples
    --------
    >>> errors = TagErrors(other="llm", sensitivity=0.9, specificity=0.8)
    >>> {group: round(s, 3) for group, s in errors.correct({"human": 0.45, "llm": 0.55}).items()}
    {'human': 0.5, 'llm': 0.5}
    """

    other: str
    sensitivity: float
    specificity: float
    baseline: str = "human"

    def __post_init__(self) -> None:
        if {self.other, self.baseline} & {"", OTHER} or self.other == self.baseline:
            raise DataError(
                f"tag errors are those of two sources, got {self.other!r} twice or none"
            )
        if not (0 <= self.sensitivity <= 1 and 0 <= self.specificity <= 1):
            raise DataError(
                "sensitivity and specificity must be numbers in [0, 1], got "
                f"{self.sensitivity} and {self.specificity}"
            )
        if self.youden < MIN_YOUDEN:
            raise DataError(
                f"the tagger separates the groups by {self.youden:.2f} only (sensitivity + "
                f"specificity - 1); correcting its errors needs {MIN_YOUDEN} or more"
            )

    @classmethod
    def of_detector(cls, quality: DetectorQuality, *, other: str) -> TagErrors:
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
        return cls(other=other, sensitivity=quality.sensitivity, specificity=quality.specificity)

    @property
    def groups(self) -> tuple[str, str]:
        """Both sources."""
        return self.baseline, self.other

    @property
    def youden(self) -> float:
        """Part of a difference of shares that is left after tagging."""
        return self.sensitivity + self.specificity - 1

    def correct(self, shares: Mapping[str, float]) -> dict[str, float]:
        """Return shares with those of both sources corrected.

        Their sum stays as it is. Where observed shares are such as no true ones could give on
        average, as with few retrievals, one of them is 0.

        Parameters
        ----------
        shares : mapping of str to float
            Observed, by group; those of groups that are not there are 0.
        """
        total = sum(shares.get(group, 0.0) for group in self.groups)
        other = (shares.get(self.other, 0.0) - (1 - self.specificity) * total) / self.youden
        other = min(max(other, 0.0), total)
        return {**shares, self.baseline: total - other, self.other: other}


# What a monitor of skew was asked to watch.


@dataclass(frozen=True, kw_only=True)
class SkewSettings:
    """Settings of a monitor, checked; parameters as of ``SkewMonitor``."""

    by: Literal["source", "style"] = "source"
    baseline: Baseline | None = None
    confidence_level: float = 0.95
    labels: tuple[str, ...] = ("collection",)
    users: tuple[str, ...] = ("user", "session")
    topics: str | None = None
    tag_errors: TagErrors | None = None

    def __post_init__(self) -> None:
        require_one_of("by", self.by, ("source", "style"))
        check_level(self.confidence_level)
        if len(set(self.labels)) != len(self.labels):
            raise DataError(f"labels {list(self.labels)} name one twice")
        if self.tag_errors is not None and self.told_apart is not None:
            lost = sorted(set(self.tag_errors.groups) - set(self.told_apart))
            if lost:
                raise DataError(f"groups {lost} of tag_errors have no share in the baseline")

    @property
    def shown(self) -> int | None:
        """Documents of an event that were shown; None for all."""
        return self.baseline.shown if isinstance(self.baseline, PoolShare) else None

    @property
    def told_apart(self) -> tuple[str, ...] | None:
        """Groups with columns of their own; None for those that come first."""
        return tuple(self.baseline.shares) if isinstance(self.baseline, CorpusShare) else None

    def tested(self, groups: GroupCodes) -> npt.NDArray[np.int64]:
        """Return the columns that are watched, measure after measure; untagged documents, too."""
        columns = [*range(groups.width)]
        if self.told_apart is not None:
            columns = [groups[name] for name in dict.fromkeys([*self.told_apart, ""])]
        return np.array([groups.width * m + c for m in range(len(MEASURES)) for c in columns])

    def known(self, groups: GroupCodes, columns: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return of which of these columns the baseline says the level."""
        if self.told_apart is not None:
            return np.isin(columns % groups.width, [groups[name] for name in self.told_apart])
        return np.full(len(columns), isinstance(self.baseline, PoolShare))
