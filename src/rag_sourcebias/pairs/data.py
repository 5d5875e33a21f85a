"""What was found about pairs and about a paired corpus, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.data import BoolArray, FloatArray, Histogram
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    setting,
)
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.measure.relevance import check_cutoffs
from rag_sourcebias.measure.texts import DataSummary

# What was checked about texts and their rewrites, one row per pair.


Texts = tuple[tuple[str, ...], ...]

#: Flags after which a pair is no rewrite of a whole text, whatever else it keeps.
BROKEN = (
    "empty", "refusal", "leftover", "loop", "language", "unrelated", "truncated", "copy",
    "near_copy", "length",
)  # fmt: skip
#: Every flag, in the order of the columns of :attr:`PairChecks.flags`.
PAIR_FLAGS = (*BROKEN, "numbers", "names")
#: Every value of a pair, in the order in which they are shown.
PAIR_VALUES = (
    "length_ratio", "jaccard", "overlap", "cosine", "copied", "repeated", "end_kept",
    "numbers_kept", "names_kept",
)  # fmt: skip
#: What a pair lost and gained.
PAIR_FACTS = ("numbers_missing", "numbers_added", "names_missing", "names_added")
#: Mismatched pairs whose likeness has a quantile that tells: fewer would make .99 the largest.
MIN_PAIRS = 20


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class CheckedPair:
    """One pair: what was measured of it, and its texts where they are kept.

    Parameters
    ----------
    flags : tuple of str
        Out of :data:`PAIR_FLAGS`, in that order.
    values : mapping of str to float
        Out of :data:`PAIR_VALUES`; values that the pair does not have are absent.
    numbers_missing, numbers_added, names_missing, names_added : tuple of str
        As written.
    languages : tuple of str
        Of original and rewrite; "" where it cannot be told.
    leftover : str
        What the model said around the text; "" where nothing was found.
    baseline_text, other_text : str
        Cut to ``PairCheckConfig.text_limit`` characters.
    baseline_length, other_length : int
        Characters of the whole texts.
    """

    pair_id: str
    flags: tuple[str, ...]
    values: Mapping[str, float]
    numbers_missing: tuple[str, ...] = ()
    numbers_added: tuple[str, ...] = ()
    names_missing: tuple[str, ...] = ()
    names_added: tuple[str, ...] = ()
    languages: tuple[str, ...] = ("", "")
    leftover: str = ""
    baseline_text: str = ""
    other_text: str = ""
    baseline_length: int = 0
    other_length: int = 0

    @property
    def broken(self) -> bool:
        """Whether it has a flag of :data:`BROKEN`."""
        return not set(BROKEN).isdisjoint(self.flags)

    def without_texts(self) -> CheckedPair:
        """Return the pair without its texts and what was read off them."""
        facts: dict[str, Any] = dict.fromkeys(PAIR_FACTS, ())
        return replace(self, leftover="", baseline_text="", other_text="", **facts)


@dataclass(frozen=True, kw_only=True, eq=False)
class PairChecks:
    """Values and flags of every pair, in the order given.

    Parameters
    ----------
    pair_ids : tuple of str
        Unique.
    values : mapping of str to float64 array of shape (n,)
        All of :data:`PAIR_VALUES`; NaN where a pair has no such value. ``length_ratio``: words of
        the rewrite per word of the original (characters in scripts without spaces). ``jaccard``,
        ``overlap``: distinct words in common ([K] Fig. 3). ``cosine``: with an encoder.
        ``copied``: share of the rewrite's runs of five words that stand in the original.
        ``repeated``: share of runs of four words that repeat earlier ones, minus that of the
        original. ``end_kept``: share of the original's last quarter kept, against that of the
        rest. ``numbers_kept``, ``names_kept``: shares of those of the original.
    facts : mapping of str to tuple of tuple of str
        All of :data:`PAIR_FACTS`, as written.
    languages : tuple of (str, str)
        Of original and rewrite; "" where it cannot be told.
    leftovers : tuple of str
        What the model said around each text.
    flags : bool array of shape (n, 12)
        A column for each of :data:`PAIR_FLAGS`.
    thresholds : PairThresholds
    by_chance : float or None
        What ``thresholds.chance`` came to, in cosine or in overlap; None where it was not used.
    """

    pair_ids: tuple[str, ...]
    values: Mapping[str, FloatArray]
    facts: Mapping[str, Texts]
    languages: tuple[tuple[str, str], ...]
    leftovers: tuple[str, ...]
    flags: BoolArray
    thresholds: PairThresholds
    by_chance: float | None = None

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
        """Which pairs have one flag; shape (n,)."""
        return self.flags[:, PAIR_FLAGS.index(name)]

    def pair(self, row: int) -> CheckedPair:
        """Return what was found of one pair, without its texts."""
        values = {name: float(self.values[name][row]) for name in PAIR_VALUES}
        facts: dict[str, Any] = {name: self.facts[name][row] for name in PAIR_FACTS}
        return CheckedPair(
            pair_id=self.pair_ids[row],
            flags=tuple(PAIR_FLAGS[column] for column in np.flatnonzero(self.flags[row])),
            values={name: value for name, value in values.items() if not math.isnan(value)},
            languages=self.languages[row],
            leftover=self.leftovers[row],
            **facts,
        )

    def worst(self, n: int) -> npt.NDArray[np.int64]:
        """Rows of up to ``n`` flagged pairs, worst first.

        Broken pairs come first, those with most flags ahead; then pairs by the share of numbers
        and names that is missing plus what was added. Ties keep their order.
        """
        kept = (self.values["numbers_kept"], self.values["names_kept"])
        lost = sum(1 - np.nan_to_num(share, nan=1.0) for share in kept)
        lists = zip(self.facts["numbers_added"], self.facts["names_added"], strict=True)
        added = np.array([len(numbers) + len(names) for numbers, names in lists], dtype=np.float64)
        order = np.lexsort((-(lost + added / (1 + added)), -self.flags.sum(axis=1), ~self.broken))
        return order[self.flagged[order]][:n].astype(np.int64)

    def summary(self) -> PairSummary:
        """Count flags, and describe the values."""
        known = {name: self.values[name][~np.isnan(self.values[name])] for name in PAIR_VALUES}
        return PairSummary(
            n_pairs=len(self),
            n_flagged=int(self.flagged.sum()),
            n_broken=int(self.broken.sum()),
            flagged=dict(zip(PAIR_FLAGS, map(int, self.flags.sum(axis=0)), strict=True)),
            quantiles={
                name: tuple(map(float, np.quantile(values, (0.05, 0.5, 0.95))))
                for name, values in known.items()
                if len(values)
            },
        )


# Are two corpora searched alone as easy as each other: one test as data ([K] Table 2).


@dataclass(frozen=True, kw_only=True)
class SoleCorpusTest:
    """One measure of one retriever on the baseline texts alone and on the other source's alone.

    Parameters
    ----------
    system : str
    other : str
        Source compared with the baseline.
    measure : str
        Such as ``"NDCG@5"``.
    mean_baseline, mean_other : float
        In [0, 1], over the same queries.
    difference : Interval or None
        Baseline minus other, paired by query; None where it was refused.
    p_different, p_different_adjusted : float or None
        Test of no difference, which inverts the interval.
    margin, level : float
    p_equivalent, p_equivalent_adjusted : float or None
        Two one-sided tests of a difference of the margin or more; None with too few queries.
    n_queries : int
        With a text and a relevant document in both corpora.
    n_needed : int or None
        Queries with which equal means would pass the test of equivalence with probability .8,
        corrected as the first of all tests; None where the difference seen is not within it.
    n_changed : int or None
        Queries on which the means differ, where they are too few for a t test.
    """

    system: str
    other: str
    measure: str
    mean_baseline: float
    mean_other: float
    difference: Interval | None
    p_different: float | None
    margin: float
    level: float
    p_equivalent: float | None
    n_queries: int
    n_needed: int | None
    p_different_adjusted: float | None = None
    p_equivalent_adjusted: float | None = None
    n_changed: int | None = None

    @property
    def verdict(self) -> Literal["equivalent", "different", "open"]:
        """``"equivalent"`` where a difference of the margin is excluded, even if there is one."""
        if self.p_equivalent_adjusted is not None and self.p_equivalent_adjusted <= self.level:
            return "equivalent"
        if self.p_different_adjusted is not None and self.p_different_adjusted <= self.level:
            return "different"
        return "open"

    @property
    def needs_queries(self) -> int | None:
        """Queries needed where more of them could decide; None otherwise."""
        more = self.n_needed is not None and self.n_needed > self.n_queries
        return self.n_needed if more and self.verdict == "open" else None


# Is a paired corpus fit for an audit, as data: criteria, pairs, each corpus searched alone.


PAIRS_SCHEMA_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class PairCheckConfig:
    """Settings of the checks, besides their thresholds.

    Parameters
    ----------
    cutoffs : tuple of int
        Of the measures on corpora searched alone.
    measures : tuple of str
        Out of ``"NDCG"``, ``"MAP"``, ``"MRR"``, ``"P"``, ``"Recall"``.
    margin : float
        Difference of two means in [0, 1] that counts as none. The default, 5 points of
        NDCG × 100, is below the 7 to 12 points by which neural models differ at NDCG@1 on the
        mixed SciFact of [K] Table 4: what it lets pass cannot be taken for such a bias. Some 200
        queries can show it; half of it needs four times as many.
    level : float
        Error probability of the tests, after correction over the report.
    confidence_level : float
    ties : {"expected", "trec"}
    gain : {"linear", "exponential"}
    depth : int
        Documents retrieved per query.
    worst : int
        Flagged pairs of each source whose texts the report keeps.
    text_limit : int
        Characters of each text that the report keeps.
    """

    cutoffs: tuple[int, ...] = setting((1, 3, 5, 10), "Cutoffs k, separated by commas.")
    measures: tuple[str, ...] = ("NDCG", "MAP")
    margin: float = setting(
        0.05,
        "Difference of two means in [0, 1] that counts as none; 0.05 is 5 points of NDCG.",
        panel="Retrieval",
    )
    level: float = 0.05
    confidence_level: float = 0.95
    ties: Literal["expected", "trec"] = "expected"
    gain: Literal["linear", "exponential"] = "linear"
    depth: int = setting(100, "Documents per query.", panel="Retrieval", least=1)
    worst: int = setting(
        20, "Flagged pairs shown with both texts, per source.", panel="Checks", least=0
    )
    text_limit: int = 4_000

    def __post_init__(self) -> None:
        largest = max(self.cutoffs, default=0)
        check_level(self.confidence_level)
        check_cutoffs(self.cutoffs)
        check_settings(
            (self.depth >= largest, "depth", f"{self.depth} is below the largest cutoff {largest}"),
            (
                0 < self.margin < 1,
                "margin",
                f"{self.margin!r} is outside (0, 1); 0.05 is 5 points ×100",
            ),
            (0 < self.level < 0.5, "level", f"{self.level!r} is outside (0, 0.5); 0.05 is usual"),
        )
        require_at_least(0, worst=self.worst)
        require_at_least(1, text_limit=self.text_limit)


@dataclass(frozen=True, kw_only=True)
class NamedIds:
    """How many, and the first of them.

    Parameters
    ----------
    n : int
    first : tuple of str
    """

    n: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PairCriteria:
    """The three criteria of [K] §2 for one source, counted.

    Parameters
    ----------
    n_documents : int
        Of the corpus, all sources.
    untagged : NamedIds
        Documents without a source.
    n_pairs : int
        Documents with exactly the one counterpart.
    baseline_alone, other_alone : NamedIds
        Documents of the two sources without a counterpart.
    repeated : NamedIds
        Pairs with several documents of one source, of which the first is checked.
    n_labels : int
        Judgments of baseline documents that have a counterpart; 0 without judgments.
    labels_missing : NamedIds
        Of these, (query, document) whose counterpart is not judged for that query.
    labels_differ : NamedIds
        Of these, those whose counterpart has another grade.
    labels_added : NamedIds
        Judgments of counterparts whose baseline version is not judged for that query.
    """

    n_documents: int
    untagged: NamedIds
    n_pairs: int
    baseline_alone: NamedIds
    other_alone: NamedIds
    repeated: NamedIds
    n_labels: int
    labels_missing: NamedIds
    labels_differ: NamedIds
    labels_added: NamedIds

    @property
    def sources_known(self) -> bool:
        """Whether every document has a source."""
        return not self.untagged.n

    @property
    def one_to_one(self) -> bool:
        """Whether every document of both sources has exactly one counterpart."""
        return not (self.baseline_alone.n or self.other_alone.n or self.repeated.n)

    @property
    def labels_copied(self) -> bool | None:
        """Whether every judgment holds for the counterpart; None without judgments."""
        if not self.n_labels and not self.labels_added.n:
            return None
        return not (self.labels_missing.n or self.labels_differ.n or self.labels_added.n)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SourcePairs:
    """Documents of one source and their baseline versions.

    Parameters
    ----------
    source : str
    criteria : PairCriteria
    summary : PairSummary
    histograms : mapping of str to Histogram
        Of ``length_ratio``, ``jaccard``, ``overlap`` ([K] Fig. 3) and, with an encoder, ``cosine``
        ([K] Fig. 5).
    flagged_ids : mapping of str to tuple of str
        All pairs with each flag; flags that nobody has are absent.
    worst : tuple of CheckedPair
    by_chance : float or None
        Likeness of mismatched pairs below which a pair counts as unrelated.
    n_queries, n_left_out : int
        Judged queries where each corpus was searched alone, and those of them without a text or a
        relevant document in one of the two.
    """

    source: str
    criteria: PairCriteria
    summary: PairSummary
    histograms: Mapping[str, Histogram]
    flagged_ids: Mapping[str, tuple[str, ...]]
    worst: tuple[CheckedPair, ...]
    by_chance: float | None = None
    n_queries: int = 0
    n_left_out: int = 0

    @property
    def broken_share(self) -> float:
        """Share of pairs that are broken, in [0, 1]; 0 without pairs."""
        return self.summary.n_broken / self.summary.n_pairs if self.summary.n_pairs else 0.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairResults:
    """What was found about a paired corpus, as it is stored.

    Parameters
    ----------
    kind : {"pairs"}
    data : DataSummary
    baseline_source : str
    sources : tuple of SourcePairs
    thresholds : PairThresholds
    sole_corpus : tuple of SoleCorpusTest
    n_tests : int
    encoder : str
        Name of the encoder behind the cosines; empty without one.
    settings : mapping of str to mapping
        Of the encoder and of each retriever, by name.
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    inputs, again : str
        How a command names the data, and all that this one was told; empty where none can.
    """

    schema_version: int = PAIRS_SCHEMA_VERSION
    kind: Literal["pairs"] = "pairs"
    data: DataSummary
    baseline_source: str
    config: PairCheckConfig
    sources: tuple[SourcePairs, ...]
    thresholds: PairThresholds
    environment: Mapping[str, str]
    created: str
    sole_corpus: tuple[SoleCorpusTest, ...] = ()
    n_tests: int = 0
    encoder: str = ""
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inputs: str = ""
    again: str = ""
