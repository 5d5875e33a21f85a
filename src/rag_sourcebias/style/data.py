"""Queries and documents in several writing styles: from files, and what an audit found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib import resources
from itertools import compress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import Stored
from rag_sourcebias.core.errors import (
    DataError,
    check_level,
    check_settings,
    require_at_least,
    require_name,
    setting,
)
from rag_sourcebias.core.finding import Evidence, Interval
from rag_sourcebias.infer.texts import TextStatistic
from rag_sourcebias.intake.samples import SAMPLE_LICENSE
from rag_sourcebias.intake.tables import Table, find_columns, names_of, read_table
from rag_sourcebias.measure.relevance import check_cutoffs

# Queries and documents in several writing styles.


Versions = Mapping[str, tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class StyledTexts:
    """n queries, each with one document; both written in several styles.

    Parameters
    ----------
    query_ids : tuple of str, length n
        Unique.
    queries, documents : mapping of style to tuple of (str or None), each of length n
        The text of query i (of its document) in that style, None where there is none. The first
        style of each is the original.
    doc_ids : tuple of str, length n
        Of the documents; queries that share a document share the id. Default: the query ids.
    distractors : tuple of str
        Further documents for an index.
    name, license, attribution : str

    Raises
    ------
    DataError
        If there is no query or style, an id occurs twice, a column has another length, or a text
        is not text.
    """

    query_ids: tuple[str, ...]
    queries: Versions = field(repr=False)
    documents: Versions = field(repr=False)
    doc_ids: tuple[str, ...] = field(default=(), repr=False)
    distractors: tuple[str, ...] = field(default=(), repr=False)
    name: str = "styles"
    license: str = ""
    attribution: str = ""

    def __post_init__(self) -> None:
        if not self.query_ids:
            raise DataError("there is no query; at least one is needed")
        if twice := [name for name, count in Counter(self.query_ids).items() if count > 1]:
            raise DataError(f"query id {twice[0]!r} occurs twice; each query may come once")
        if not self.doc_ids:
            object.__setattr__(self, "doc_ids", self.query_ids)
        if len(self.doc_ids) != len(self):
            raise DataError(
                f"{len(self.doc_ids)} document ids for {len(self)} queries; need as many"
            )
        for side, versions in (("query", self.queries), ("document", self.documents)):
            if not versions:
                raise DataError(f"there is no {side} style; give the texts of at least one")
            for style, texts in versions.items():
                self._check(f"{side} style {style!r}", texts)

    def _check(self, what: str, texts: tuple[str | None, ...]) -> None:
        if len(texts) != len(self):
            raise DataError(f"{what} has {len(texts)} texts for {len(self)} queries; need as many")
        for query_id, text in zip(self.query_ids, texts, strict=True):
            if not (text is None or isinstance(text, str)):
                raise DataError(
                    f"{what}, query {query_id!r}: {text!r:.80} is not text; use None for a "
                    "version that does not exist"
                )

    def __len__(self) -> int:
        return len(self.query_ids)

    def take(self, keep: npt.NDArray[np.bool_]) -> StyledTexts:
        """Return the queries asked for, with everything that belongs to them."""
        queries, documents = (
            {style: tuple(compress(texts, keep)) for style, texts in versions.items()}
            for versions in (self.queries, self.documents)
        )
        return replace(
            self,
            query_ids=tuple(compress(self.query_ids, keep)),
            doc_ids=tuple(compress(self.doc_ids, keep)),
            queries=queries,
            documents=documents,
        )


# Statistics of style ranks that a report holds; computed in ``measures`` and ``inference``.


class StyleCode(StrEnum):
    """What can be said of one system and its document styles.

    The first that applies: nothing was ranked, there are too few queries for any verdict, all
    average ranks lie within the margin of each other, the test of equal average ranks is
    significant, or none of these.
    """

    TIED = "tied"
    TOO_FEW = "too_few"
    ALIKE = "alike"
    FAVOURS = "favours"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleFinding:
    """The verdict on one system, under the original query style, with what it rests on.

    Parameters
    ----------
    code : StyleCode
    best, worst : str
        Styles with the smallest and the largest average rank.
    apart : float
        Distance of these two average ranks, in places.
    apart_at_most : float
        Upper confidence bound for the distance of any two true average ranks.
    margin : float
        Distance in places within which styles count as ranked alike.
    p_value : float
        Of equal average ranks (:class:`FriedmanTest`).
    n_queries : int
    n_needed : int or None
        Queries with which a verdict is reached four times in five; None where there is one.
    favoured, silenced : tuple of str
        Styles that rank above and below the original, after correction; only with ``FAVOURS``.
    """

    code: StyleCode
    best: str
    worst: str
    apart: float
    apart_at_most: float
    margin: float
    p_value: float
    n_queries: int
    n_needed: int | None = None
    favoured: tuple[str, ...] = ()
    silenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfairness:
    """The unfairness score with what is needed to read it.

    Parameters
    ----------
    score : float
        [W] Eq. 3, in [0, :func:`~rag_sourcebias.style.measure.max_unfairness`].
    null_expectation : float
        Mean score of a retriever without preferences on as many queries with the same ties.
    corrected : float
        ``score - null_expectation``: 0 on average without preferences, negative by chance. The
        more styles really differ, the smaller the true bias: then it is too low, by at most
        ``null_expectation``.
    normalised : float
        ``score`` in parts of its maximum, in [0, 1].
    ddof : int
    n_queries, n_styles : int
    """

    score: float
    null_expectation: float
    corrected: float
    normalised: float
    ddof: int
    n_queries: int
    n_styles: int


# What an audit of writing styles found, as data.


STYLE_SCHEMA_VERSION = 1


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


@dataclass(frozen=True, kw_only=True)
class StyleConfig:
    """Settings of a style audit.

    Parameters
    ----------
    original : str
        Document style that the others are compared with: the text as it was found.
    original_query : str
        Query style that the others are compared with.
    ddof : int
        Of the standard deviation in the unfairness score ([W] does not state it).
    margin : float
        Share of the k − 1 places by which average ranks may differ and still count as alike.
    missing : {"refuse", "balanced"}
        Raise when a version is missing, or use only the queries that have every version.
    cutoffs : tuple of int
        Of NDCG and recall in an index.
    confidence_level : float
    correction : {"holm", "bh", "none"}
    resamples : int
        Of the bootstrap over queries and of permutation tests.
    seed : int
    """

    original: str = setting(
        "human", "Document style that the others are compared with.", panel="Data"
    )
    original_query: str = setting(
        "original", "Query style that the others are compared with.", panel="Data"
    )
    ddof: int = 0
    missing: Literal["balanced", "refuse"] = setting(
        "balanced",
        "Where some version of a query is missing: balanced (use the queries that have all, and "
        "say how many were dropped) or refuse.",
        panel="Data",
    )
    cutoffs: tuple[int, ...] = setting(
        (1, 5, 10), "Cutoffs k of NDCG and recall in the index, separated by commas."
    )
    confidence_level: float = setting(0.95, "")
    correction: Literal["holm", "bh", "none"] = setting("holm", "holm, bh or none.")
    resamples: int = setting(10_000, "Of bootstrap and permutation tests.")
    seed: int = setting(0, "")
    margin: float = setting(
        0.1, "Average ranks that differ by less than this share of the k - 1 places are alike."
    )

    def __post_init__(self) -> None:
        check_level(self.confidence_level)
        check_cutoffs(self.cutoffs)
        require_at_least(100, resamples=self.resamples)
        check_settings(
            (
                0 < self.margin < 1,
                "margin",
                f"{self.margin!r} is outside (0, 1); 0.1 lets average ranks of 11 styles "
                "differ by 1 place",
            ),
            (self.ddof in (0, 1), "ddof", f"{self.ddof} must be 0 or 1"),
        )


@dataclass(frozen=True, kw_only=True)
class StyleData:
    """The data behind a report.

    Parameters
    ----------
    n_queries : int
        Queries that have every version: all figures rest on these.
    dropped : tuple of str
        Queries left out because a version was missing.
    doc_styles, query_styles : tuple of str
        In the order of all arrays.
    n_distractors : int
        Documents of the index that are no version of any query's document.
    """

    name: str
    n_queries: int
    doc_styles: tuple[str, ...]
    query_styles: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    n_distractors: int = 0
    license: str = ""
    attribution: str = ""


@dataclass(frozen=True, kw_only=True)
class StyleRow:
    """One query style of one system: how it ranks the document styles.

    Parameters
    ----------
    average_ranks : tuple of Interval or None, length d
        None where all queries agree exactly (the mean is in :attr:`StyleSystem.ranks`).
    unfairness : Unfairness
    unfairness_interval : Interval or None
    friedman : FriedmanTest
    against_original : tuple of RankPair, length d − 1
        Each document style (``first``) with the original (``second``), adjusted over the styles
        of this row; empty where the original is not among the document styles.
    adjusted_ranks : tuple of Interval or None
        Average ranks at equal length; empty where lengths cannot be told apart from styles.
    length_slope : float or None
        Ranks per unit of ln(words); negative when longer versions rank higher.
    """

    query_style: str
    average_ranks: tuple[Interval | None, ...]
    unfairness: Unfairness
    unfairness_interval: Interval | None
    friedman: FriedmanTest
    against_original: tuple[RankPair, ...] = ()
    adjusted_ranks: tuple[Interval | None, ...] = ()
    length_slope: float | None = None


def telling_styles(found: StyleFinding, row: StyleRow, original: str) -> tuple[str, str]:
    """Return the two styles that show a finding best: that which ranks higher first.

    The original and the style named that lies furthest from it; where none is named, the best and
    the worst.
    """
    named = {*found.favoured, *found.silenced}
    pairs = [pair for pair in row.against_original if pair.first in named]
    if not pairs:
        return found.best, found.worst
    most = max(pairs, key=lambda pair: abs(pair.difference)).first
    return (most, original) if most in found.favoured else (original, most)


@dataclass(frozen=True, kw_only=True)
class StyleGain:
    """Ranks that a document style gains when the query is in the same style.

    Parameters
    ----------
    style : str
        "" for all styles together.
    mean : float
        Average rank under all other query styles minus that under its own; positive: it ranks
        higher under queries of its own style.
    gain : Interval or None
    """

    style: str
    mean: float
    gain: Interval | None


@dataclass(frozen=True, kw_only=True)
class StyleQuality:
    """What it costs to ask in a style: quality over an index of the original documents.

    Parameters
    ----------
    query_style : str
        Style in which the queries are asked.
    measure : str
        ``"NDCG@5"``, ``"Recall@5"`` or the like.
    mean : float
        In [0, 1].
    score : Interval or None
    change : Interval or None
        Minus the score of the original query style, paired by query; None for that style itself
        and where no query differs.
    p_value, p_adjusted : float or None
        Two-sided paired permutation test, adjusted over query styles × measures.
    """

    query_style: str
    measure: str
    mean: float
    score: Interval | None
    change: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None


@dataclass(frozen=True, kw_only=True)
class StyleIndexScore:
    """One document style in an index that holds all styles: what source bias is for sources.

    Parameters
    ----------
    doc_style : str
        The style whose versions count as relevant.
    measure : str
        NDCG of the version in that style alone; other versions and documents are irrelevant.
    mean : float
        In [0, 1].
    score : Interval or None
    relative_delta : float or None
        Of the original style against this one, percent: positive when the original ranks higher.
    interval : Interval or None
        For Relative Δ.
    """

    doc_style: str
    measure: str
    mean: float
    score: Interval | None
    relative_delta: float | None = None
    interval: Interval | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class StyleSystem:
    """One encoder, lexical scorer or whole retrieval stack.

    Parameters
    ----------
    name : str
    settings : mapping of str to str
    query_ids : tuple of str, length n
    ranks : float64 array of shape (n, q, d)
        Rank of each document style among the versions of the query's document; 1 is most similar.
    rows : tuple of StyleRow, length q
    mean_unfairness : Interval or None
        Over query styles ([W] Table 1, Avg).
    finding : StyleFinding
        The verdict.
    evidence : tuple of Evidence
        Queries in which the two styles of the verdict lie furthest apart.
    matching : tuple of StyleGain
        The last one, with style "", is all styles together.
    quality : tuple of StyleQuality
    index_scores : tuple of StyleIndexScore
        Under the original query style.
    notes : tuple of str
    """

    name: str
    settings: Mapping[str, str]
    query_ids: tuple[str, ...]
    ranks: npt.NDArray[np.float64] = field(repr=False)
    rows: tuple[StyleRow, ...]
    finding: StyleFinding
    mean_unfairness: Interval | None = None
    evidence: tuple[Evidence, ...] = ()
    matching: tuple[StyleGain, ...] = ()
    quality: tuple[StyleQuality, ...] = ()
    index_scores: tuple[StyleIndexScore, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def average_ranks(self) -> npt.NDArray[np.float64]:
        """Average ranks, shape (q, d) ([W] Eq. 2)."""
        return np.asarray(self.ranks.mean(axis=0), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StyleResults(Stored):
    """The result of a style audit.

    Parameters
    ----------
    kind : {"style"}
        Tells report files apart.
    systems : tuple of StyleSystem
    document_statistics, query_statistics : tuple of TextStatistic
        Empty where texts were not given.
    environment : mapping of str to str
    created : str
        ISO 8601 time.
    warnings : tuple of str
        What the reader must know before trusting a number.
    """

    _versioned = ("style report", STYLE_SCHEMA_VERSION)

    schema_version: int
    data: StyleData
    config: StyleConfig
    systems: tuple[StyleSystem, ...]
    environment: Mapping[str, str]
    created: str
    document_statistics: tuple[TextStatistic, ...] = ()
    query_statistics: tuple[TextStatistic, ...] = ()
    warnings: tuple[str, ...] = ()
    kind: Literal["style"] = "style"

    def system(self, name: str) -> StyleSystem:
        """Return one system by name."""
        for system in self.systems:
            if system.name == name:
                return system
        raise DataError(f"no system {name!r}; there are {[s.name for s in self.systems]}")


# Versions of texts, one at a time, put together as styled texts.


_ORIGINAL = {"query": "original", "document": "human"}


class Version(NamedTuple):
    """A text, or None where there is none, and where it stands; a document of None is not told."""

    query_id: str
    doc_id: str | None
    side: str
    style: str
    text: str | None
    place: str


Placed = dict[str, tuple[str, str]]  # something and its place, by query


def _collected(versions: Iterable[Version]) -> tuple[dict[str, str], dict[tuple[str, str], Placed]]:
    """Return the document of each query, and the texts by side and style."""
    queries: dict[str, None] = {}
    documents: Placed = {}
    texts: dict[tuple[str, str], Placed] = {}
    for query_id, doc_id, side, style, text, place in versions:
        queries[query_id] = None
        if doc_id is not None:
            known, first = documents.setdefault(query_id, (doc_id, place))
            if known != doc_id:
                raise DataError(
                    f"{place}: query {query_id!r} has document {doc_id!r} here and {known!r} at "
                    f"{first}; each query has one document"
                )
        found = texts.setdefault((side, style), {})
        if text is not None:
            if query_id in found:
                raise DataError(
                    f"{place}: the {side} of query {query_id!r} in style {style!r} stands at "
                    f"{found[query_id][1]} already; keep one"
                )
            found[query_id] = (text, place)
    return {q: documents.get(q, (q, ""))[0] for q in queries}, texts


def _side(
    side: str, queries: Iterable[str], texts: Mapping[tuple[str, str], Placed]
) -> dict[str, tuple[str | None, ...]]:
    """Return the texts of all queries by style, the original first."""
    found = {style: placed for (s, style), placed in texts.items() if s == side and placed}
    if not found:
        raise DataError(f"no {side} has a text; give at least one version of each {side}")
    return {
        style: tuple(found[style][q][0] if q in found[style] else None for q in queries)
        for style in sorted(found, key=lambda style: style != _ORIGINAL[side])  # stable
    }


# Queries and documents in several writing styles, from a file.


_COLUMNS = ("query_id", "side", "style", "text")
_SIDES = {"query": "query", "document": "document", "doc": "document"}
_LAYOUTS = (
    "JSON lines with query_id, query, query_styles, human and doc_styles, or a table with the "
    "columns query_id, side (query or document), style and text"
)


def read_styled_texts(
    source: Any,  # noqa: ANN401 - whatever a user has
    *,
    name: str | None = None,
    columns: Mapping[str, str | None] | None = None,
) -> StyledTexts:
    """Read queries and their documents, both in several styles.

    Parameters
    ----------
    source : path, frame, list of dicts or dict of lists
        Either records, as JSON lines or a JSON array, one per query::

            {"query_id": "q1", "doc_id": "d1", "query": "…", "query_styles": {"formal": "…"},
             "human": "…", "doc_styles": {"formal": "…"}}

        ``doc_id`` and ``query_styles`` may lack. ``query`` becomes the query style ``original``
        and ``human`` the document style ``human``. Or a table (CSV, TSV, JSON lines, Parquet)
        with ``query_id``, ``side`` (``query`` or ``document``), ``style``, ``text`` and optionally
        ``doc_id``, one row per version. Text files may be ``.gz``.
    name : str or None
        Of the data; the file name by default.
    columns : mapping of str to str, optional
        Columns of a table for ``query_id``, ``side``, ``style`` and ``text`` that have other names.

    Returns
    -------
    StyledTexts
        Queries and styles in the order of the file, but ``original`` and ``human`` first. A
        version that is null, empty or not there is None.

    Raises
    ------
    DataError
        With file and line: neither layout, an id or a version twice, a value that is not text, a
        column or the text of every version missing.
    """
    table = read_table(source, lambda names: names)
    given = {role: (columns or {}).get(role) for role in _COLUMNS}
    found = find_columns(table.names, given, path=table.path)
    records = "query" in table.names and not any(given.values()) and None in found.values()
    documents, texts = _collected(_records(table) if records else _rows(table, found))
    try:
        return StyledTexts(
            query_ids=tuple(documents),
            queries=_side("query", documents, texts),
            documents=_side("document", documents, texts),
            doc_ids=tuple(documents.values()),
            name=name or Path(table.path).name,
        )
    except DataError as error:
        raise DataError(f"{table.path}: {error}") from error


def _records(table: Table) -> Iterable[Version]:
    places: dict[str, str] = {}
    for i in range(len(table)):
        record = {name: cells[i] for name, cells in table.columns.items()}
        place = table.where(i)
        lacking = [key for key in ("query_id", "query") if record.get(key) is None]
        if lacking or (record.get("human") is None and record.get("doc_styles") is None):
            keys = [name for name, cell in record.items() if cell is not None]
            raise DataError(
                f"{place}: the record has no {', '.join(lacking) or 'human and doc_styles'}, its "
                f"keys are {', '.join(keys)}; expected {_LAYOUTS}"
            )
        query_id = _identifier(record["query_id"], "query_id", place)
        if (first := places.setdefault(query_id, place)) != place:
            raise DataError(
                f"{place}: query {query_id!r} stands at {first} already; keep one record per query"
            )
        told = record.get("doc_id")
        doc_id = None if told is None else _identifier(told, "doc_id", place)
        for side, original, key, styles in (
            ("query", "original", "query", "query_styles"),
            ("document", "human", "human", "doc_styles"),
        ):
            text = _text(record.get(key), key, place)
            yield Version(query_id, doc_id, side, original, text, place)
            for name, value in _mapping(record.get(styles), styles, place).items():
                what = f"style of {styles}"
                style = require_name(_identifier(name, what, place), what, place)
                text = _text(value, f"{styles}[{name!r}]", place)
                yield Version(query_id, doc_id, side, style, text, place)


def _mapping(value: object, key: str, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(f"{place}: {key} is {value!r:.80}; expected an object of style and text")
    return value


def _identifier(value: object, key: str, place: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{place}: {key} {value!r:.80} must be a non-empty text or whole number")
    return str(value).strip()


def _text(value: object, what: str, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise DataError(
            f"{place}: {what} is {value!r:.80}, which is not text; leave a version that does not "
            "exist out, or write null"
        )
    return value if value.strip() else None


def _rows(table: Table, found: Mapping[str, str | None]) -> Iterable[Version]:
    if lacking := [role for role in _COLUMNS if found[role] is None]:
        raise DataError(
            f"{table.path} has no column {', '.join(lacking)}; its columns are "
            f"{', '.join(table.names)}; expected {_LAYOUTS}"
        )
    columns = [str(found[role]) for role in _COLUMNS]
    queries, sides, styles = (
        names_of(table, column, role=role, shown=role == "style")
        for role, column in zip(_COLUMNS[:3], columns, strict=False)
    )
    documents = table.columns.get("doc_id", [None] * len(table))
    for i, value in enumerate(table.columns[columns[3]]):
        place = table.where(i)
        side = _SIDES.get(sides[i].lower())
        if side is None:
            raise DataError(f"{place}: side {sides[i]!r} is neither query nor document")
        # often only told where the text is the document's
        doc_id = None if documents[i] in (None, "") else _identifier(documents[i], "doc_id", place)
        yield Version(queries[i], doc_id, side, styles[i], _text(value, "text", place), place)


# The bundled sample of writing styles.


def load_styled_sample() -> StyledTexts:
    """Load 56 queries and their passages in ten styles each; it needs no connection.

    A passage by a person (``human``) and its rewrites by an LLM: plain (``0``) and in the eight
    styles of Cao (WSDM 2025): formal and concise (``1``), simple (``2``), informal (``3``), polite
    (``4``), detailed and technical (``5``), energetic (``6``), friendly (``7``), expressive
    (``8``); the queries likewise. Distractors are 104 passages by people on other queries.

    Examples
    --------
    >>> sample = load_styled_sample()
    >>> len(sample), list(sample.documents)[:3], len(sample.distractors)
    (56, ['human', '0', '1'], 104)
    """
    folder = resources.files("rag_sourcebias.intake").joinpath("samples", "crowdrag-rewrites")
    with resources.as_file(folder.joinpath("pairs.jsonl.gz")) as file:
        texts = read_styled_texts(file)
    versions = zip(*texts.queries.values(), *texts.documents.values(), strict=True)
    styled = np.array([None not in of_query for of_query in versions])
    return replace(
        texts.take(styled),
        distractors=tuple(filter(None, compress(texts.documents["human"], ~styled))),
        name="crowdrag-rewrites",
        license=SAMPLE_LICENSE,
        attribution=(
            "Passages and queries from Webis CrowdRAG-25 "
            "(https://github.com/webis-de/sigir25-rag-crowdsourcing), shortened, citation marks "
            "removed; rewritten by a large language model (Claude)"
        ),
    )
