"""What was checked about texts and their rewrites, one row per pair."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.types.arrays import BoolArray, FloatArray

__all__ = ["BROKEN", "PAIR_FLAGS", "PairChecks", "PairSummary", "PairThresholds"]

Texts = tuple[tuple[str, ...], ...]

#: Flags after which a pair is no rewrite of a whole text, whatever else it keeps.
BROKEN = (
    "empty", "refusal", "leftover", "loop", "language", "unrelated", "truncated", "copy",
    "near_copy", "length",
)  # fmt: skip
#: Every flag, in the order of the columns of :attr:`PairChecks.flags`.
PAIR_FLAGS = (*BROKEN, "numbers", "names")
_VALUES = (
    "length_ratio", "jaccard", "overlap", "cosine", "copied", "repeated", "end_kept",
    "numbers_kept", "names_kept",
)  # fmt: skip
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairThresholds:
    """Beyond which values a pair is flagged; None switches a check off.

    Each default follows from what the value means. None was fitted to a data set, and the share
    of pairs it flags depends on the model that wrote the rewrites.

    Parameters
    ----------
    length_ratio : tuple of float or None
        Lowest and highest words of the rewrite per word of the original. A factor of 2 either way
        is a summary or an expansion, no rewrite; symmetric on the log scale.
    copied : float or None
        Largest share of the rewrite's runs of five words that stand in the original. One changed
        word breaks five runs, so above .8 fewer than one word in 25 was changed: a retriever sees
        two copies.
    repeated : float or None
        Largest share of runs of four words that repeat earlier ones, beyond that of the original.
        At .2 a fifth of the text says again what it said; ordinary prose repeats below .05.
    end_kept : float or None
        Least share of the last quarter's words that is kept, against the share kept of the rest.
        At .25 three of four words that only the end has are gone, relative to the rest.
    chance : float or None
        A pair is unrelated where it is no more alike than this share of mismatched pairs (each
        rewrite with another original of the same file): by cosine where an encoder is given,
        otherwise by word overlap. A fixed cosine would depend on the encoder. Needs 20 pairs.
    cosine : float or None
        Least cosine, in addition; off unless you know your encoder's scale.
    numbers_kept : float or None
        Least share of the original's numbers. At 1 any number missing is flagged: one wrong figure
        makes a document answer wrongly. Numbers added are flagged as well.
    names_kept : float or None
        Least share of the original's name words where two or more are missing. Names are found by
        heuristics and rewrites may turn a name into a pronoun, so that one missing is no fault;
        below .6 two in five are gone. One missing while another was added (a swap) and two added
        (an invented name) are flagged at any share.
    language : bool
        Flag a rewrite in another language, where both can be told.
    writing : bool
        Flag refusals, what the model said around the text, endings inside a sentence, and
        verbatim copies.

    Raises
    ------
    DataError
        If a threshold is outside its range.
    """

    length_ratio: tuple[float, float] | None = (0.5, 2.0)
    copied: float | None = 0.8
    repeated: float | None = 0.2
    end_kept: float | None = 0.25
    chance: float | None = 0.99
    cosine: float | None = None
    numbers_kept: float | None = 1.0
    names_kept: float | None = 0.6
    language: bool = True
    writing: bool = True

    def __post_init__(self) -> None:
        for name in ("copied", "repeated", "end_kept", "chance", "numbers_kept", "names_kept"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise DataError(f"threshold {name}={value!r} is outside [0, 1]; None switches off")
        if self.cosine is not None and not -1 <= self.cosine <= 1:
            raise DataError(f"threshold cosine={self.cosine!r} is outside [-1, 1]")
        if self.length_ratio is not None and not 0 <= self.length_ratio[0] < self.length_ratio[1]:
            raise DataError(
                f"threshold length_ratio={self.length_ratio!r} must be two numbers from 0, the "
                "lower first, such as (0.5, 2.0)"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSummary:
    """What the checks found over all pairs.

    Parameters
    ----------
    n_pairs, n_flagged, n_broken : int
        Broken pairs have a flag of :data:`BROKEN`.
    flagged : dict of str to int
        Pairs per flag, all of :data:`PAIR_FLAGS`.
    quantiles : dict of str to tuple of float
        5 %, 50 % and 95 % of each value, over the pairs that have it; values nobody has are absent.
    """

    n_pairs: int
    n_flagged: int
    n_broken: int
    flagged: dict[str, int]
    quantiles: dict[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairChecks:
    """Values, flags and reasons of every pair, in the order given.

    Parameters
    ----------
    pair_ids : tuple of str
        Unique.
    length_ratio : float64 array of shape (n,)
        Words of the rewrite per word of the original (characters in scripts without spaces); NaN
        where the original has none.
    jaccard, overlap : float64 arrays of shape (n,)
        Distinct words in common ([K] Fig. 3), in [0, 1].
    cosine : float64 array of shape (n,)
        NaN without an encoder.
    copied : float64 array of shape (n,)
        Share of the rewrite's runs of five words that stand in the original.
    repeated : float64 array of shape (n,)
        Share of runs of four words that repeat earlier ones, minus that of the original.
    end_kept : float64 array of shape (n,)
        Share of the original's last quarter kept, against that of the rest, in [0, 1].
    numbers_kept, names_kept : float64 arrays of shape (n,)
        NaN where the original has none.
    numbers_missing, numbers_added, names_missing, names_added : tuple of tuple of str
        As written.
    languages : tuple of (str, str)
        Of original and rewrite; "" where it cannot be told.
    flags : bool array of shape (n, 12)
        ``empty``, ``refusal``, ``leftover``, ``loop``, ``language``, ``unrelated``, ``truncated``,
        ``copy``, ``near_copy``, ``length`` (a pair with one of these is broken), ``numbers`` and
        ``names``, in this order.
    reasons : tuple of tuple of str
        One sentence for each flag of a pair.
    thresholds : PairThresholds
    by_chance : float or None
        What ``thresholds.chance`` came to, in cosine or in overlap; None where it was not used.
    """

    pair_ids: tuple[str, ...]
    length_ratio: FloatArray
    jaccard: FloatArray
    overlap: FloatArray
    cosine: FloatArray
    copied: FloatArray
    repeated: FloatArray
    end_kept: FloatArray
    numbers_kept: FloatArray
    names_kept: FloatArray
    numbers_missing: Texts
    numbers_added: Texts
    names_missing: Texts
    names_added: Texts
    languages: tuple[tuple[str, str], ...]
    flags: BoolArray
    reasons: Texts
    thresholds: PairThresholds
    by_chance: float | None = None

    def __post_init__(self) -> None:
        n = len(self.pair_ids)
        if len(set(self.pair_ids)) < n:
            raise DataError("pair ids must be unique")
        for field in fields(self):
            column = getattr(self, field.name)
            if isinstance(column, np.ndarray):
                column.setflags(write=False)
            if isinstance(column, np.ndarray | tuple) and len(column) != n:
                raise DataError(f"{len(column)} values of {field.name} for {n} pairs")
        if self.flags.shape != (n, len(PAIR_FLAGS)):
            raise DataError(
                f"flags have shape {self.flags.shape}, not one column for each of {PAIR_FLAGS}"
            )

    def __len__(self) -> int:
        return len(self.pair_ids)

    @property
    def flagged(self) -> BoolArray:
        """Which pairs have any flag; shape (n,)."""
        return np.asarray(np.any(self.flags, axis=1), dtype=np.bool_)

    @property
    def broken(self) -> BoolArray:
        """Which pairs have a flag of :data:`BROKEN`; shape (n,)."""
        return np.asarray(np.any(self.flags[:, : len(BROKEN)], axis=1), dtype=np.bool_)

    def flag(self, name: str) -> BoolArray:
        """Which pairs have one flag; shape (n,).

        Raises
        ------
        DataError
            If there is no such flag.
        """
        if name not in PAIR_FLAGS:
            raise DataError(f"there is no flag {name!r}; flags are {', '.join(PAIR_FLAGS)}")
        return self.flags[:, PAIR_FLAGS.index(name)]

    def worst(self, n: int) -> npt.NDArray[np.int64]:
        """Rows of up to ``n`` flagged pairs, worst first.

        Broken pairs come first, those with most flags ahead; then pairs by the share of numbers
        and names that is missing plus what was added. Ties keep their order.
        """
        if n < 0:
            raise DataError(f"worst({n}) asks for fewer than no pairs")
        lost = sum(1 - np.nan_to_num(v, nan=1.0) for v in (self.numbers_kept, self.names_kept))
        added = np.array(
            [len(a) + len(b) for a, b in zip(self.numbers_added, self.names_added, strict=True)],
            dtype=np.float64,
        )
        count = self.flags.sum(axis=1)
        order = np.lexsort((-(lost + added / (1 + added)), -count, ~self.broken))
        return order[self.flagged[order]][:n].astype(np.int64)

    def summary(self) -> PairSummary:
        """Count flags, and describe the values."""
        columns = {name: getattr(self, name) for name in _VALUES}
        known = {name: column[~np.isnan(column)] for name, column in columns.items()}
        return PairSummary(
            n_pairs=len(self),
            n_flagged=int(self.flagged.sum()),
            n_broken=int(self.broken.sum()),
            flagged=dict(zip(PAIR_FLAGS, map(int, self.flags.sum(axis=0)), strict=True)),
            quantiles={
                name: tuple(float(q) for q in np.quantile(column, _QUANTILES))
                for name, column in known.items()
                if len(column)
            },
        )
