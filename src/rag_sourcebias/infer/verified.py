"""Tags that a detector guessed, held to those that people verified: its errors, Relative Δ.

The detector is the judge and the verified sample its human labels: every relevant document counts
with what its tag predicts, verified ones also with what the tag missed, divided by their chance to
be drawn (prediction-powered inference; Robins, Rotnitzky & Zhao 1994). So tags may err where
documents are retrieved most, and no rate of a detector is carried from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from rag_sourcebias.core.codec import PathLike, from_plain, sound, to_plain
from rag_sourcebias.core.data import BoolArray, FloatArray, IntArray, Qrels, Run
from rag_sourcebias.core.errors import DataError, InsufficientDataError, is_source, require_name
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.infer.findings import InferCode
from rag_sourcebias.infer.means import (
    normal_quantile,
    require_clusters,
    t_quantile,
    two_way_variance,
)
from rag_sourcebias.infer.samples import inclusion_probabilities
from rag_sourcebias.infer.sheets import manifest_path, read_blind_sheet, write_blind_sheet
from rag_sourcebias.intake.tables import cells_as
from rag_sourcebias.measure.relevance import Cells, Gain, Ties, gains, join, matched

#: Fewest verified documents, and fewest of either kind, from which an error is stated.
MIN_VERIFIED, MIN_OF_KIND = 50, 5
_FLOOR = 0.1  # of the mean size: what other runs retrieve keeps a chance to be drawn
_ADDED = 2  # wrong tags that the variance adds to those that were found, as Agresti and Coull do


# Sheets on which people say who wrote a document, blind to what a detector said of it.


_ASKED = "source"
_SHOWN = 20_000  # characters of a text: what a detector reads, and a spreadsheet cell holds
UNCLEAR = "unclear"


def side(source: str | None) -> int:
    """Return 1 for people, −1 for a model, 0 where neither is known."""
    return 0 if source is None or source == UNCLEAR else 1 if source == "human" else -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Verification:
    """Tags of documents, and what people found of some of them, in their random order.

    Parameters
    ----------
    kind : {"store", "slots"}
        Drawn evenly from a store, or from relevant documents by what they weigh in a ranking.
    detector : str
        Fingerprint.
    tags : dict of str to str or None
        Source by document id, of all documents that could have been drawn or were declared.
    chance : mapping of str to float
        To be drawn and filled in, of documents whose tag is a guess; the others are declared.
    truth : mapping of str to str
        Source, or "unclear", of documents that people have looked at.
    score : mapping of str to float
        Probability of a model, by the detector, of drawn documents.
    decided : frozenset of str
        Drawn documents that the detector would not leave unknown.
    n_drawn : int
        Rows of the sheet.
    """

    kind: Literal["store", "slots"]
    detector: str
    tags: dict[str, str | None]
    chance: Mapping[str, float]
    truth: Mapping[str, str]
    score: Mapping[str, float]
    decided: frozenset[str]
    n_drawn: int

    def sources(self) -> dict[str, str | None]:
        """Source of the verified documents, as tags have it."""
        named = {UNCLEAR: None, "llm": "llm:any"}
        return {doc: named.get(source, source) for doc, source in self.truth.items()}


def write_verification(path: PathLike, found: Verification, texts: Mapping[str, str]) -> Path:
    """Write a sheet of the documents that have a score, in their order; return its manifest.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.infer.sheets.write_blind_sheet`.
    """
    rows = {doc_id: {"text": texts[doc_id][:_SHOWN]} for doc_id in found.score}
    numbers = range(1, len(rows) + 1)
    return write_blind_sheet(path, rows, asked=_ASKED, numbers=numbers, design=to_plain(found))


def read_verification(path: PathLike) -> Verification:
    """Read a sheet as far as it is filled in, from the first row on.

    Raises
    ------
    DataError
        If there is no manifest, a row is unknown, twice there or edited, one is blank before
        others, or a source is none.
    """
    sheet = read_blind_sheet(path)
    expected = "the manifest of a sheet that tag verify wrote"
    with sound(manifest_path(path), expected):
        drawn = from_plain(Verification, sheet.plan.design)
    said = [""] * len(sheet.plan.rows)
    for place, source in zip(sheet.places, cells_as(sheet.table, _ASKED, _source), strict=True):
        said[place] = source
    n = next((place for place, source in enumerate(said) if not source), len(said))
    if any(said[n:]):
        raise DataError(
            f"{path}: row {sheet.plan.rows[n].row_id!r} is blank and later ones are filled in; "
            f"fill in rows in order, from the first ({UNCLEAR} where nobody can tell): documents "
            "left out are rarely random"
        )
    names = (row.name for row in sheet.plan.rows)
    return replace(
        drawn,
        chance={doc: chance * max(n, 1) / len(said) for doc, chance in drawn.chance.items()},
        truth=dict(zip(names, said[:n], strict=False)),
        n_drawn=len(said),
    )


def _source(cell: str) -> str:
    if cell.lower() in ("", "human", "llm", UNCLEAR):
        return cell.lower()
    if not is_source(cell):
        raise DataError(f"{cell!r} is none of human, llm, llm:<model> and {UNCLEAR}")
    return require_name(cell, "source")


MIN_YOUDEN = 0.3  # sensitivity + specificity − 1 below which tags are too weak to correct for


class DetectorQuality(NamedTuple):
    """How well a detector finds the other (LLM) source, from a labelled sample.

    Parameters
    ----------
    n_other, n_other_detected : int
        Labelled documents of the other source, and how many of them the detector tagged so.
    n_baseline, n_baseline_kept : int
        Labelled baseline documents, and how many the detector left as baseline.
    """

    n_other: int
    n_other_detected: int
    n_baseline: int
    n_baseline_kept: int

    @property
    def sensitivity(self) -> float:
        """Share of the other source that is found."""
        return self.n_other_detected / self.n_other

    @property
    def specificity(self) -> float:
        """Share of the baseline that is left alone."""
        return self.n_baseline_kept / self.n_baseline

    @property
    def youden(self) -> float:
        """Sensitivity + specificity − 1; 0 is useless, 1 perfect."""
        return self.sensitivity + self.specificity - 1

    @property
    def variances(self) -> tuple[float, float]:
        """Variance of the sensitivity and the specificity (Agresti–Coull smoothed)."""

        def variance(hit: int, n: int) -> float:
            share = (hit + 2) / (n + 4)
            return share * (1 - share) / (n + 4)

        return (
            variance(self.n_other_detected, self.n_other),
            variance(self.n_baseline_kept, self.n_baseline),
        )


class Slots(NamedTuple):
    """What every relevant document adds to a measure that sums over documents, by query.

    Parameters
    ----------
    query, doc : int64 arrays of shape (m,)
        Indices into the qrels, one entry per relevant judgment.
    plain, centred : float64 arrays of shape (m,)
        Share of the query's score, and the same beyond the mean of its grade, which a ranker that
        is blind to sources would give; 0 in sum for every query.
    """

    query: IntArray
    doc: IntArray
    plain: FloatArray
    centred: FloatArray


def relevant_slots(
    run: Run,
    qrels: Qrels,
    measure: str,
    cutoff: int,
    *,
    ties: Ties = "expected",
    gain: Gain = "linear",
) -> Slots:
    """Split the score of each query over its relevant documents.

    NDCG divides by the ideal of every second relevant document, which is that of either source
    where there is one copy of each.

    Raises
    ------
    DataError
        If the measure does not add up over documents.
    """
    if measure not in ("NDCG", "P"):
        raise DataError(
            f"{measure} does not add up over documents, so verified ones cannot correct it; use "
            "NDCG or P"
        )
    hits = join(run, qrels, ties=ties)
    cells = Cells.build(hits, qrels, np.zeros(len(qrels.doc_ids), np.int64), n_groups=1)
    raw = cells.terms(measure, cutoff, gain=gain)
    raw = raw * cells.scale(measure, cutoff, gain=gain)[cells.cell]
    rows = np.flatnonzero(qrels.grades > 0)
    rows = rows[np.lexsort((-qrels.grades[rows], qrels.query_codes[rows]))]
    query, doc = (codes[rows].astype(np.int64) for codes in (qrels.query_codes, qrels.doc_codes))
    n_queries = len(qrels.query_ids)
    gained = np.zeros(len(rows))
    found, place = matched(hits.query[cells.hit], hits.doc[cells.hit], query, doc)
    gained[place] = raw[found]
    scale = np.full(n_queries, cutoff)
    if measure == "NDCG":
        rank = np.arange(len(rows)) - np.searchsorted(query, query)
        used = (rank % 2 == 0) & (rank // 2 < cutoff)
        value = gains(qrels.grades[rows], gain)
        scale = np.bincount(
            query[used], weights=value[used] / np.log2(rank[used] // 2 + 2), minlength=n_queries
        )
    plain = gained / scale[query]
    _, alike = np.unique(np.stack((query, qrels.grades[rows])), axis=1, return_inverse=True)
    alike = alike.ravel()
    mean = np.bincount(alike, weights=plain) / np.bincount(alike)
    return Slots(query=query, doc=doc, plain=plain, centred=plain - mean[alike])


def draw_chances(slots: Sequence[Slots], guessed: BoolArray, n: int) -> FloatArray:
    """Return the chance of each judged document to be drawn for verification.

    Parameters
    ----------
    slots : sequence of Slots
        Of the runs that will be audited, over the same qrels.
    guessed : bool array of shape (len(qrels.doc_ids),)
        Documents whose source nobody declared.
    n : int
        Documents to draw.
    """
    size = np.zeros(len(guessed))
    for one in slots:
        for weight in (one.plain, one.centred):
            size += np.bincount(one.doc, weights=weight, minlength=len(size)) ** 2
    size = np.sqrt(size)
    judged = np.zeros(len(size), dtype=bool)
    judged[np.concatenate([one.doc for one in slots])] = True
    size[judged] += _FLOOR * size[judged].mean() + 1e-12
    size[~(guessed & judged)] = 0.0
    return inclusion_probabilities(size, min(n, int(np.count_nonzero(size))))


def draw_rows(chance: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw documents with given chances, as many as these sum to: systematic, in random order."""
    order = rng.permutation(np.flatnonzero(chance > 0))
    ends = np.cumsum(chance[order])
    marks = np.arange(round(ends[-1])) + rng.random()
    return order[np.minimum(np.searchsorted(ends, marks, side="right"), len(order) - 1)]


def tag_quality(found: Verification) -> DetectorQuality:
    """Count how often tags of the verified documents were right, if every one is decided.

    Raises
    ------
    InsufficientDataError
        If too few were verified, or all are of one kind.
    """
    n, kinds = len(found.truth), [side(source) for source in found.truth.values()]
    if n < MIN_VERIFIED:
        raise InsufficientDataError(
            InferCode.FEW_VERIFIED(n=n, drawn=found.n_drawn, n_needed=MIN_VERIFIED)
        )
    people, models = kinds.count(1), kinds.count(-1)
    if min(people, models) < MIN_OF_KIND:
        raise InsufficientDataError(
            InferCode.FEW_OF_KIND(n=n, people=people, models=models, least=MIN_OF_KIND)
        )
    pairs = [(side(t), side(found.tags[d])) for d, t in found.truth.items()]
    return DetectorQuality(
        n_other=models,
        n_other_detected=pairs.count((-1, -1)),
        n_baseline=people,
        n_baseline_kept=pairs.count((1, 1)),
    )


def require_informative(found: Verification, confidence_level: float = 0.95) -> DetectorQuality:
    """Return the quality of tags that tell something.

    Raises
    ------
    InsufficientDataError
        If sensitivity + specificity − 1 may be 0, and as :func:`tag_quality`.
    """
    quality = tag_quality(found)
    reach = normal_quantile(0.5 + confidence_level / 2) * math.sqrt(sum(quality.variances))
    if quality.youden - reach <= 0:
        raise InsufficientDataError(
            InferCode.TAGS_TELL_NOTHING(n=len(found.truth), youden=quality.youden, reach=reach)
        )
    return quality


def verified_delta(
    slots: Slots,
    doc_ids: Sequence[str],
    tags: Verification,
    *,
    centred: bool,
    units: IntArray,
    what: str = "queries",
    confidence_level: float = 0.95,
) -> Interval:
    """Correct Relative Δ for wrong tags with the verified documents.

    200 · Σ c·z / Σ b over relevant documents: z is 1 for the baseline and −1 for other sources, c
    the document's part of the score (centred: beyond chance) and b its plain part. Centred, queries
    with one relevant document are left out.

    Parameters
    ----------
    doc_ids : sequence of str
        ``qrels.doc_ids``, which ``slots.doc`` indexes.
    units : int64 array of shape (nq,)
        Independent unit of each query.

    Raises
    ------
    InsufficientDataError
        If tags tell nothing or too little was verified (:func:`require_informative`),
        or nothing relevant was retrieved.
    DataError
        If a document that counts could not have been drawn.
    """
    require_informative(tags, confidence_level)
    if tags.kind != "slots":
        raise DataError(
            "these documents were verified to know the shares of a store; that says nothing of "
            "those that are retrieved: draw with tag verify --run and --qrels"
        )
    keep = np.ones(len(slots.doc), dtype=bool)
    if centred:
        keep = np.bincount(slots.query)[slots.query] > 1
    query, doc, base = slots.query[keep], slots.doc[keep], slots.plain[keep]
    weight = slots.centred[keep] if centred else base
    total = float(base.sum())
    if not total > 0:
        raise InsufficientDataError(InferCode.NOTHING_RELEVANT())
    unit = units[query]
    n_units = len(np.unique(unit[base > 0]))
    require_clusters(n_units, InferCode.FEW_HITS, units=what)
    tagged, chance, truth = (
        np.array([column.get(d, missing) for d in doc_ids], dtype=np.float64)
        for column, missing in (
            ({d: side(source) for d, source in tags.tags.items()}, 0),
            (tags.chance, math.inf),
            ({d: side(source) for d, source in tags.truth.items()}, math.nan),
        )
    )
    seen = np.array([d in tags.tags for d in doc_ids])
    if outside := [doc_ids[d] for d in np.unique(doc[weight != 0]) if not seen[d]]:
        raise DataError(
            f"{len(outside)} relevant documents, such as {outside[0]!r}, were not among those that "
            "the verified ones were drawn from; draw with these runs and qrels"
        )
    guessed, checked = np.isfinite(chance), np.isfinite(truth)
    part = np.abs(np.bincount(doc, weights=weight, minlength=len(tagged))) / chance
    predicted, missed = _predict(tagged, truth, part, guessed, checked)
    found = weight * (predicted + np.where(checked, truth - predicted, 0.0) / chance)[doc]
    value = 200 * float(found.sum()) / total
    terms = 200 * weight * (predicted + missed / chance)[doc] - value * base
    shared = len(np.unique(np.stack((doc, unit)), axis=1).T) > len(np.unique(doc))
    variance = two_way_variance(terms / total, unit, doc if shared else unit)
    variance += _ADDED * (400 * part[checked].mean() / total) ** 2
    degrees = min(n_units, int(checked.sum())) - 1
    width = t_quantile(0.5 + confidence_level / 2, degrees) * math.sqrt(variance)
    low, high = (-math.inf, math.inf) if centred else (-200.0, 200.0)
    return Interval(
        estimate=min(max(value, low), high),
        lower=min(max(value - width, low), high),
        upper=max(min(value + width, high), low),
        confidence_level=confidence_level,
        method=InferCode.VERIFIED_TAGS(units=what),
        n_labeled=n_units,
        assumptions=(
            InferCode.UNITS_SAMPLED(units=what),
            InferCode.DOCUMENTS_VERIFIED(n=len(tags.truth)),
        ),
    )


def _predict(
    tagged: FloatArray,
    truth: FloatArray,
    part: FloatArray,
    guessed: BoolArray,
    checked: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Regress the source on the tag; also return leave-one-out residuals, 0 where none is known."""
    rows = np.flatnonzero(checked)
    root = np.sqrt(np.maximum(part[rows], 1e-12))
    design = np.column_stack((np.ones(len(rows)), tagged[rows])) * root[:, None]
    fitted = np.linalg.lstsq(design, truth[rows] * root, rcond=None)[0]
    leverage = np.einsum("nk,kn->n", design, np.linalg.pinv(design))
    predicted = np.where(guessed, fitted[0] + fitted[1] * tagged, tagged)
    missed = np.zeros(len(tagged))
    missed[rows] = (truth[rows] - predicted[rows]) / np.maximum(1 - leverage, 0.5)
    return predicted, missed


def p_of(found: Interval) -> float:
    """Return the p-value of a true value of 0, by inverting a symmetric interval of this module."""
    from scipy.special import ndtr

    error = found.half_width / normal_quantile(0.5 + found.confidence_level / 2)
    return 2 * float(ndtr(-abs(found.estimate) / error)) if error > 0 else 0.0
