"""Where tags of documents are kept, and which documents are versions of one another."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from operator import attrgetter
from sys import intern
from typing import NamedTuple, Protocol, cast, get_args, runtime_checkable

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, IntArray, Origin, Qrels, TagTable
from rag_sourcebias.core.errors import DataError

# The metadata keys under which a store holds the tags of a document, spelled only here.
# None of them is ``source`` (LangChain keeps a path or URL there) or starts with ``chroma:``
# (Chroma drops such keys). Values are scalars, the only ones every store accepts.


_PREFIX = "rsb_"
_ORIGINS = get_args(Origin)
TAG_FIELDS = ("source", "style", "pair_id", "origin", "confidence")
#: Keys of the metadata that hold tags: ``rsb_source``, ``rsb_style``, ``rsb_pair_id``,
#: ``rsb_origin`` and ``rsb_confidence``.
METADATA_KEYS = tuple(intern(_PREFIX + name) for name in TAG_FIELDS)  # found by identity
#: Which taggers wrote the tags, so that a pass can go on and stale tags are seen.
FINGERPRINT_KEY = _PREFIX + "tagger"
_VALUES = attrgetter(*TAG_FIELDS)


def to_metadata(tags: DocTags) -> dict[str, str | float]:
    """Return the metadata that says what is known; what is unknown has no key.

    Examples
    --------
    >>> to_metadata(DocTags(source="human", confidence=0.9))
    {'rsb_source': 'human', 'rsb_confidence': 0.9}
    """
    return {
        key: value if isinstance(value, str) else float(value)
        for key, value in zip(METADATA_KEYS, _VALUES(tags), strict=True)
        if value is not None and value != ""
    }


def from_metadata(metadata: Mapping[str, object]) -> DocTags:
    """Read tags from the metadata of a document.

    Parameters
    ----------
    metadata : mapping
        Other keys are ignored. An absent key means unknown, and so do None and an empty string,
        which is what some stores make of None.

    Raises
    ------
    DataError
        If a value has another type or lies outside its range.

    Examples
    --------
    >>> from_metadata({"source": "https://example.org", "rsb_source": "llm:gpt-x"}).source
    'llm:gpt-x'
    """
    return read_fields(metadata, prefix=_PREFIX)


def read_fields(values: Mapping[str, object], *, prefix: str = "") -> DocTags:
    """Build tags from a mapping whose keys are the names of tag fields after a prefix.

    Raises
    ------
    DataError
        Naming key and value, if a value has another type or lies outside its range.
    """
    return make_tags(*(values.get(prefix + name) for name in TAG_FIELDS), prefix=prefix)


def make_tags(*values: object, prefix: str = "") -> DocTags:
    """Build tags from one value per tag field, in the order of ``TAG_FIELDS``.

    Raises
    ------
    DataError
        As :func:`read_fields`.
    """
    source, style, pair_id, origin, confidence = values
    if origin == "":
        origin = None
    elif origin is not None and (not isinstance(origin, str) or origin not in _ORIGINS):
        raise DataError(f"{prefix}origin {origin!r} is not one of {', '.join(_ORIGINS)}")
    return DocTags(
        source=_text(source, prefix, "source"),
        style=_text(style, prefix, "style"),
        pair_id=_text(pair_id, prefix, "pair_id"),
        origin=cast("Origin | None", origin),
        confidence=_confidence(confidence, prefix),
    )


def _text(value: object, prefix: str, name: str) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str) or value.isspace():
        raise DataError(
            f"{prefix}{name} {value!r} is not a tag; expected a string that is not blank, or no "
            "such key"
        )
    return value


def _confidence(value: object, prefix: str) -> float | None:
    if value is None or value == "":
        return None
    # Before it is a float, which a whole number of 400 digits cannot be.
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= cast("float", value) <= 1:
        raise DataError(f"{prefix}confidence {value!r:.200} is not a number in [0, 1]")
    return float(value)


# Where tags are kept beside the documents: one protocol, and the checks all stores share.


UNKNOWN = DocTags()


class DamagedRowError(DataError):
    """The tags of one document cannot be read; those of others can."""


@runtime_checkable
class TagStore(Protocol):
    """Tags by document id or by content; the documents themselves are never touched.

    Safe to share between threads. Texts are kept as hashes only.
    """

    def get(self, doc_ids: Sequence[str]) -> list[DocTags]:
        """Tags of each document in order; all unknown where the id is not in the store."""

    def get_by_text(self, texts: Sequence[str]) -> list[DocTags]:
        """Tags of the document put last with exactly this text; all unknown where none was."""

    def get_by_hash(self, hashes: Sequence[bytes]) -> list[DocTags]:
        """As :meth:`get_by_text`, for texts known by their :func:`content_hash` only."""

    def put(
        self, rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None = None
    ) -> None:
        """Store tags, replacing those a document had; of an id given twice the last row counts.

        Parameters
        ----------
        rows : iterable of (str, DocTags)
            Checked as a whole first: nothing is stored when one of them is bad.
        texts : mapping of str to str, optional
            Text by document id, looked up for the ids in ``rows`` only. A document that is tagged
            again without a text keeps the one it had.

        Raises
        ------
        DataError
            If a row cannot be stored, or the file of the store cannot be written.
        """

    def remove(self, doc_ids: Sequence[str]) -> int:
        """Forget documents; return how many of them were in the store."""

    def __len__(self) -> int:
        """Number of documents in the store."""

    def counts(self) -> dict[str, int]:
        """Documents per source; the key ``""`` counts those stored as unknown, if any."""

    def table(self) -> TagTable:
        """All tags as columns, the document put last at the end."""


def content_hash(text: str) -> bytes:
    """Return the 128-bit BLAKE2b hash of a text, taken as it is; lone surrogates are accepted."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def check_strings(values: Sequence[str], what: str) -> list[str]:
    """Return the values as a list.

    Raises
    ------
    DataError
        If they are one string instead of several, or one of them is no string.
    """
    if isinstance(values, str):
        raise DataError(f"expected a list of {what}s, found one string {values[:80]!r}")
    result = list(values)
    for value in result:
        if not isinstance(value, str):
            raise DataError(f"{what} {value!r} is not a string")
    return result


def check_rows(
    rows: Iterable[tuple[str, DocTags]], texts: Mapping[str, str] | None
) -> list[tuple[str, DocTags, bytes | None]]:
    """Return rows that every store can hold, with the hashes of their texts.

    Raises
    ------
    DataError
        If an id is empty or no string, or a tag or a text has the wrong type or range.
    """
    checked: list[tuple[str, DocTags, bytes | None]] = []
    for doc_id, tags in rows:
        if not isinstance(doc_id, str) or not doc_id:
            raise DataError(f"document id {doc_id!r} must be a non-empty string")
        if not isinstance(tags, DocTags):
            raise DataError(f"document {doc_id!r}: expected DocTags, found {tags!r}")
        try:
            plain = make_tags(tags.source, tags.style, tags.pair_id, tags.origin, tags.confidence)
        except DataError as error:
            raise DataError(f"document {doc_id!r}: {error}") from error
        text = None if texts is None else texts.get(doc_id)
        if text is not None and not isinstance(text, str):
            raise DataError(f"document {doc_id!r}: its text is {text!r}, not a string")
        checked.append((doc_id, plain, None if text is None else content_hash(text)))
    return checked


# Which rows of a corpus are two versions of one document.


def paired_sources(tags: TagTable, *, baseline: str = "human") -> tuple[str, ...]:
    """Sources that have a document with the pair id of a document of the baseline.

    Raises
    ------
    MissingTagsError, DataError
        As :meth:`TagTable.require_sources`.
    """
    tags.require_sources(baseline)
    paired = tags.pair_codes >= 0
    ours = np.zeros(len(tags.pair_ids) + 1, dtype=bool)
    ours[tags.pair_codes[paired & (tags.source_codes == tags.sources.index(baseline))]] = True
    return tuple(
        tags.sources[code]
        for code in np.unique(tags.source_codes[paired & ours[tags.pair_codes]])
        if code >= 0 and tags.sources[code] != baseline
    )


class PairRows(NamedTuple):
    """Pairs with a text in both versions.

    Parameters
    ----------
    codes : int64 array of shape (n,)
        Code of each pair in the tag table, rising.
    baseline, source : int64 arrays of shape (n,)
        Row of both versions in the corpus.
    n_incomplete : int
        Pairs with one version, or a blank one.
    n_repeated : int
        Further documents of one source with the same pair id.
    """

    codes: IntArray
    baseline: IntArray
    source: IntArray
    n_incomplete: int
    n_repeated: int


def source_of(tags: TagTable, source: str | None, baseline: str) -> str:
    """Return the source, or the only one with pairs where it is None.

    Raises
    ------
    MissingTagsError, DataError
        As :func:`paired_sources`; also if the source is unknown, has no pairs, or several could
        be meant.
    """
    paired = paired_sources(tags, baseline=baseline)
    if source is None and len(paired) > 1:
        raise DataError(
            f"several sources have versions of {baseline!r} documents: {list(paired)}; name "
            "one of them as source"
        )
    if source is not None and (source == baseline or source not in tags.sources):
        raise DataError(
            f"source {source!r} cannot be paired with baseline {baseline!r}; sources that have "
            f"pairs with it are {list(paired)}"
        )
    if not paired or source not in (None, *paired):
        raise DataError(
            f"no document of {baseline!r} shares its pair_id with one of "
            f"{'another source' if source is None else repr(source)}: "
            f"{np.count_nonzero(tags.pair_codes >= 0)} of {len(tags)} documents have a "
            "pair_id; give a document and its rewrites the same one"
        )
    return source or paired[0]


def chosen_sources(tags: TagTable, sources: Sequence[str] | None, baseline: str) -> tuple[str, ...]:
    """Return the sources if all can be paired with the baseline; by default all that have pairs.

    Raises
    ------
    MissingTagsError, DataError
        As :func:`source_of`.
    """
    named = paired_sources(tags, baseline=baseline) if sources is None else sources
    return tuple(source_of(tags, source, baseline) for source in named or (None,))


def complete_pairs(corpus: Corpus, baseline: str, source: str) -> PairRows:
    """Find pairs of two sources; of several versions by one source the first one counts."""
    (ours, row, n), (theirs, other_row, m) = (
        _first_versions(corpus.tags, name) for name in (baseline, source)
    )
    codes, i, j = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    row, other_row = row[i], other_row[j]
    blank = np.fromiter((not t or t.isspace() for t in corpus.texts), bool, len(corpus))
    whole = ~(blank[row] | blank[other_row])
    return PairRows(
        codes=codes[whole],
        baseline=row[whole],
        source=other_row[whole],
        n_incomplete=len(ours) + len(theirs) - len(codes) - int(np.count_nonzero(whole)),
        n_repeated=n + m,
    )


def _first_versions(tags: TagTable, source: str) -> tuple[IntArray, IntArray, int]:
    """Pairs of a source by code, the first row of each, and how many further rows there are."""
    rows = np.flatnonzero(
        (tags.source_codes == tags.sources.index(source)) & (tags.pair_codes >= 0)
    )
    codes, first = np.unique(tags.pair_codes[rows], return_index=True)
    return codes.astype(np.int64), rows[first], len(rows) - len(codes)


def pair_codes(tags: TagTable, pair_ids: Collection[str]) -> IntArray:
    """Codes of the pair ids that the table has."""
    index = {pair_id: code for code, pair_id in enumerate(tags.pair_ids)}
    return np.array([index[p] for p in pair_ids if p in index], dtype=np.int64)


def relevant_pairs(qrels: Qrels, tags: TagTable, *, min_grade: int) -> tuple[IntArray, IntArray]:
    """Query code and pair code of every relevant judgment of a paired document."""
    pair_of_doc = np.append(tags.pair_codes, -1)[tags.rows_for(qrels.doc_ids)].astype(np.int64)
    pairs = pair_of_doc[qrels.doc_codes]
    wanted = (qrels.grades >= min_grade) & (pairs >= 0)
    return qrels.query_codes[wanted].astype(np.int64), pairs[wanted]


# Pairs of a text and its rewrite out of a corpus, for what is fitted or trained on twins.


@dataclass(frozen=True, kw_only=True, eq=False)
class TwinTexts:
    """Both versions of documents as columns, ordered by pair id.

    Parameters
    ----------
    baseline, source : str
        The two sources, such as ``"human"`` and ``"llm:llama-2"``.
    pair_ids, baseline_ids, source_ids, baseline_texts, source_texts : tuple of str, length n
    n_incomplete : int
        Pairs of which the corpus has only one of the two versions, or a blank one; left out.
    n_repeated : int
        Further documents of one source with a pair id that it already had; the first one counts.
    """

    baseline: str
    source: str
    pair_ids: tuple[str, ...]
    baseline_ids: tuple[str, ...]
    source_ids: tuple[str, ...]
    baseline_texts: tuple[str, ...]
    source_texts: tuple[str, ...]
    n_incomplete: int = 0
    n_repeated: int = 0

    def __len__(self) -> int:
        return len(self.pair_ids)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingPairs:
    """Queries with the twins that are relevant to them, one row per (query, pair).

    Parameters
    ----------
    query_ids, queries : tuple of str, length m
        Query of each row and its text; rows of one query are neighbours.
    rows : int64 array of shape (m,)
        Row of ``twins`` of each row.
    twins : TwinTexts
        Only pairs that are relevant to a query.
    """

    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    rows: IntArray
    twins: TwinTexts

    def __len__(self) -> int:
        return len(self.rows)


def twin_texts(
    corpus: Corpus,
    *,
    source: str | None = None,
    baseline: str = "human",
    qrels: Qrels | None = None,
    exclude: Collection[str] = (),
) -> TwinTexts:
    """Collect documents of the baseline and their versions by one other source.

    Parameters
    ----------
    source : str, optional
        May be left out where only one other source has pairs.
    qrels : Qrels, optional
        Only pairs of which a version (of any source) is judged relevant to some query.
    exclude : collection of str
        Pair ids to leave out, such as those that results are reported on.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, a source is unknown, several could be meant, or no pair is left.
    """
    tags = corpus.tags
    source = source_of(tags, source, baseline)
    found = complete_pairs(corpus, baseline, source)
    kept = ~np.isin(found.codes, pair_codes(tags, exclude))
    n_excluded = int(np.count_nonzero(~kept))
    if qrels is not None:
        judged = np.zeros(len(tags.pair_ids), dtype=bool)
        judged[relevant_pairs(qrels, tags, min_grade=1)[1]] = True
        kept &= judged[found.codes]
    if not kept.any():
        raise DataError(
            f"no pair of {baseline!r} and {source!r} is left: "
            + _nothing_left(found, n_excluded, tags, qrels)
        )
    pairs, ours, theirs = (
        part[kept].tolist() for part in (found.codes, found.baseline, found.source)
    )
    return TwinTexts(
        baseline=baseline,
        source=source,
        pair_ids=tuple(tags.pair_ids[code] for code in pairs),
        baseline_ids=tuple(tags.doc_ids[row] for row in ours),
        source_ids=tuple(tags.doc_ids[row] for row in theirs),
        baseline_texts=tuple(corpus.texts[row] for row in ours),
        source_texts=tuple(corpus.texts[row] for row in theirs),
        n_incomplete=found.n_incomplete,
        n_repeated=found.n_repeated,
    )


def training_pairs(
    dataset: Dataset,
    *,
    source: str | None = None,
    baseline: str = "human",
    min_grade: int = 1,
    exclude: Collection[str] = (),
) -> TrainingPairs:
    """Collect (query, relevant pair) rows; a pair is relevant where a version of it is.

    Judgments of queries that ``dataset.queries`` does not hold are not used.

    Parameters
    ----------
    source : str, optional
        May be left out where only one other source has pairs.
    baseline : str
        Source of the originals.
    min_grade : int
        Lowest grade that counts as relevant, at least 1.
    exclude : collection of str
        Pair ids to leave out, such as those that results are reported on.

    Raises
    ------
    MissingTagsError
        If no document has a source.
    DataError
        If the data is one-sided, a source is unknown, several could be meant, or no pair is left.
    """
    tags, qrels = dataset.corpus.tags, dataset.qrels
    position = {query.query_id: i for i, query in enumerate(dataset.queries)}
    known = np.fromiter(map(position.get, qrels.query_ids, repeat(-1)), np.int64)
    used = qrels.take((known[qrels.query_codes] >= 0) & (qrels.grades >= min_grade))
    if not len(used):
        raise DataError(
            f"data set {dataset.name!r}: none of {len(qrels)} judgments gives one of its "
            f"{len(dataset.queries)} queries a document of grade {min_grade} or more"
        )
    twins = twin_texts(
        dataset.corpus, source=source, baseline=baseline, qrels=used, exclude=exclude
    )
    row_of_pair = np.full(len(tags.pair_ids), -1, dtype=np.int64)
    row_of_pair[pair_codes(tags, twins.pair_ids)] = np.arange(len(twins))
    queries, pairs = relevant_pairs(used, tags, min_grade=min_grade)
    rows = row_of_pair[pairs]
    keys = np.unique(known[queries][rows >= 0] * len(twins) + rows[rows >= 0])
    of_query = [dataset.queries[i] for i in (keys // len(twins)).tolist()]
    return TrainingPairs(
        query_ids=tuple(query.query_id for query in of_query),
        queries=tuple(query.text for query in of_query),
        rows=keys % len(twins),
        twins=twins,
    )


def _nothing_left(found: PairRows, n_excluded: int, tags: TagTable, qrels: Qrels | None) -> str:
    n = len(found.codes)
    if not n:
        return f"{found.n_incomplete} pairs are incomplete or blank; add the missing versions"
    if n_excluded == n:
        return f"all {n} pairs are excluded; leave some to fit on"
    return (
        f"the judgments call no version of {n - n_excluded} pairs relevant; pairs are such as "
        f"{[tags.pair_ids[code] for code in found.codes[:5]]}, judged documents such as "
        f"{[] if qrels is None else list(qrels.doc_ids[:5])}: "
        "give judgments with the document ids of this corpus"
    )
