"""Twin smoothing: copies of one document share their score, whoever wrote which."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from math import fsum, inf, nextafter
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rag_sourcebias.core.caches import SqliteFile
from rag_sourcebias.core.codec import check_file
from rag_sourcebias.core.data import Corpus, DocTags
from rag_sourcebias.core.errors import DataError, as_generator
from rag_sourcebias.core.protocols import Encoder
from rag_sourcebias.debias.copies import (
    EXACT,
    Pairs,
    TextOverlap,
    alike_pairs,
    copy_threshold,
    sample_neighbours,
)
from rag_sourcebias.measure.texts import paired_overlap
from rag_sourcebias.retrieval.cache import checked_vectors, encode_corpus

# Groups of copies. Two groups become one while the least alike of their members still reach the
# threshold, the most alike groups first: so mutual nearest neighbours come first, and no chain of
# neighbours makes a group of documents that are not alike.


Alike = Iterable[tuple[str, str, float]]


@dataclass(frozen=True, kw_only=True)
class TwinSettings:
    """How copies were told from other documents.

    Parameters
    ----------
    space : str
        Fingerprint of the encoder, or ``"text overlap"``.
    threshold : float
        Cosine from which on documents are alike.
    overlap : float
        Overlap in words that alike documents must reach too; 0 where it is the similarity itself.
    confirmed : float
        Share of the documents with another above the threshold whose nearest one reaches it.
    chosen : {"neighbours", "given", "exact"}
        Whether the threshold comes from the neighbours' distances, was given, or stands for equal
        texts alone because the distances told no copies apart.
    n_crowded : int
        Documents left alone because more than 100 others are as alike.
    collection : str
        Which collection of a store they belong to; empty where that is not known.
    """

    space: str
    threshold: float
    overlap: float = 0.0
    confirmed: float = 1.0
    chosen: Literal["neighbours", "given", "exact"] = "neighbours"
    n_crowded: int = 0
    collection: str = ""


TEXT_SPACE = "text overlap"


class TwinGroups:
    """Which documents are copies of one another; kept up to date as documents come and go.

    Read by several threads while one changes it.

    Parameters
    ----------
    settings : TwinSettings
    doc_ids : collection of str
        All documents that were looked at.
    alike : iterable of (str, str, float)
        Pairs of documents that reach the threshold, with their similarity.
    weights : TextOverlap, optional
        What texts are compared with; needed to add documents.
    """

    def __init__(
        self,
        settings: TwinSettings,
        doc_ids: Collection[str],
        alike: Alike,
        *,
        weights: TextOverlap | None = None,
    ) -> None:
        self.settings = settings
        self.weights = weights
        self._known = set(doc_ids)
        self._alike: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._group_of: dict[str, tuple[str, ...]] = {}
        self._unsaved: set[str] | None = None  # None: all of it
        self._connect(alike)
        self._regroup(list(self._alike))

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, doc_id: object) -> bool:
        return doc_id in self._known

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of at least two documents, each in the order of the ids."""
        return tuple(sorted(set(self._group_of.values())))

    def of(self, doc_id: str) -> tuple[str, ...]:
        """Return the group of a document; empty where it is alone or not known."""
        return self._group_of.get(doc_id, ())

    def present(self, doc_ids: Sequence[str]) -> list[list[int]]:
        """Return the places of those that have a copy among the given documents, by group."""
        places: dict[int, list[int]] = {}
        for place, group in enumerate(map(self._group_of.get, doc_ids)):
            if group is not None:  # by identity: a hash of a group is one of all its ids
                places.setdefault(id(group), []).append(place)
        return [found for found in places.values() if len(found) > 1]

    def within(self, doc_ids: Collection[str]) -> TwinGroups:
        """Return the groups that a collection of only these documents has."""
        kept = self._known.intersection(doc_ids)
        alike = [(a, b, s) for a, b, s in self.pairs() if a in kept and b in kept]
        return TwinGroups(self.settings, kept, alike, weights=self.weights)

    def pairs(self) -> list[tuple[str, str, float]]:
        """Return the pairs that are alike, each once."""
        return [(a, b, s) for a, near in self._alike.items() for b, s in near.items() if a < b]

    def add(self, doc_ids: Collection[str], alike: Alike) -> None:
        """Add documents with what they are alike to, or replace them; others stay as they are."""
        new = set(doc_ids)
        touched = self._disconnect(new & self._known)
        self._known |= new
        touched |= self._connect(alike)
        self._regroup(touched)
        self._note(new | touched)

    def remove(self, doc_ids: Collection[str]) -> None:
        """Take documents away; ids that are not known are passed over."""
        gone = self._known.intersection(doc_ids)
        touched = self._disconnect(gone)
        self._known -= gone
        self._regroup(touched)
        self._note(gone | touched)

    def _note(self, changed: set[str]) -> None:
        if self._unsaved is not None:
            self._unsaved |= changed

    def _connect(self, alike: Alike) -> set[str]:
        touched: set[str] = set()
        for first, second, similarity in alike:
            if first == second or not self._known.issuperset((first, second)):
                raise DataError(
                    f"{first!r} and {second!r} are called alike; expected two documents of the "
                    f"{len(self._known):,} known ones"
                )
            self._alike[first][second] = self._alike[second][first] = float(similarity)
            touched |= {first, second}
        return touched

    def _disconnect(self, doc_ids: set[str]) -> set[str]:
        touched = set(doc_ids)
        for doc_id in doc_ids:
            for other in self._alike.pop(doc_id, {}):
                if other in self._alike:
                    self._alike[other].pop(doc_id, None)
                touched.add(other)
        return touched

    def _regroup(self, touched: Iterable[str]) -> None:
        """Group anew what is connected with the documents; nothing else can have changed."""
        seen: set[str] = set()
        for start in touched:
            if start in seen:
                continue
            part, waiting = {start}, [start]
            while waiting:
                for other in self._alike.get(waiting.pop(), ()):
                    if other not in part:
                        part.add(other)
                        waiting.append(other)
            seen |= part
            group_of = {i: group for group in self._linked(part) for i in group}
            for doc_id in part:
                if doc_id in group_of:
                    self._group_of[doc_id] = group_of[doc_id]
                else:
                    self._group_of.pop(doc_id, None)

    def _linked(self, part: set[str]) -> list[tuple[str, ...]]:
        """Join groups by complete linkage: an edge joins two when it is their last one."""
        edges = sorted((-s, a, b) for a in part for b, s in self._alike.get(a, {}).items() if a < b)
        home = {doc_id: doc_id for doc_id in part}
        members = {doc_id: [doc_id] for doc_id in part}
        between: dict[str, dict[str, int]] = {doc_id: {} for doc_id in part}
        for _, a, b in edges:
            one, two = home[a], home[b]
            n = between[one].get(two, 0) + 1
            if n < len(members[one]) * len(members[two]):
                between[one][two] = between[two][one] = n
                continue
            if len(members[one]) < len(members[two]):
                one, two = two, one
            for doc_id in members[two]:
                home[doc_id] = one
            members[one] += members.pop(two)
            for other, count in between.pop(two).items():
                del between[other][two]
                if other != one:
                    total = between[one].get(other, 0) + count
                    between[one][other] = between[other][one] = total
        return [tuple(sorted(found)) for found in members.values() if len(found) > 1]


# Groups of a corpus: fitted without a label, on the neighbours' distances and the words.


_ERROR = 0.02
"""Share of wrong pairs that a threshold may admit."""
_CONFIRMED = 0.75
"""Of documents near another, the share whose words must say so too.

Measured: .97 and more where copies are, .1 where there are none.
"""


def fit_twins(
    corpus: Corpus,
    encoder: Encoder | None = None,
    *,
    threshold: float | None = None,
    rng: np.random.Generator | int = 0,
) -> TwinGroups:
    """Find the copies in a corpus, without tags and without judgments.

    Parameters
    ----------
    corpus : Corpus
    encoder : Encoder, optional
        The one that searches. Without one the overlap in words is taken: for lexical retrieval.
    threshold : float, optional
        Cosine from which on documents are alike; read off the neighbours' distances by default.
    rng : Generator or int
        For the documents whose neighbours are looked at to choose the threshold.

    Raises
    ------
    DataError
        If the corpus has one document, or neighbours by the encoder do not say the same.
    """
    vectors = None
    if encoder is not None:
        vectors = encode_corpus(encoder, corpus, similarity="cosine").per_document
    return group_documents(
        corpus.doc_ids,
        corpus.texts,
        vectors,
        space=TEXT_SPACE if encoder is None else encoder.fingerprint,
        threshold=threshold,
        rng=rng,
    )


def group_documents(
    doc_ids: Sequence[str],
    texts: Sequence[str],
    vectors: Any = None,  # noqa: ANN401 - an array of shape (n, dimension), or None
    *,
    space: str = TEXT_SPACE,
    threshold: float | None = None,
    collection: str = "",
    rng: np.random.Generator | int = 0,
) -> TwinGroups:
    """Find copies among documents whose vectors are there; see :func:`fit_twins`."""
    if len(doc_ids) < 2 or len(set(doc_ids)) != len(doc_ids) or len(texts) != len(doc_ids):
        raise DataError(
            f"{len(doc_ids)} documents ({len(set(doc_ids))} ids) with {len(texts)} texts: copies "
            "are looked for among at least 2 documents, each with an id of its own and a text"
        )
    if len(set(texts)) == 1:
        raise DataError(f"all {len(texts):,} documents have one text: leave repeated documents out")
    if threshold is not None and not 0 < threshold <= 1:
        raise DataError(f"threshold {threshold!r} is outside (0, 1], the range of a cosine")
    weights, rng = TextOverlap.of(texts), as_generator(rng)
    words = weights.vectors(texts)
    by_words = copy_threshold(sample_neighbours(words, rng), error=_ERROR, by_words=True)
    points = words
    if vectors is not None:
        points = checked_vectors(vectors, what="copies", names=doc_ids, similarity="cosine")
    chosen: Literal["neighbours", "given", "exact"] = "given"
    at = threshold
    if at is None:
        at = by_words
        if vectors is not None and by_words is not None:
            at = copy_threshold(sample_neighbours(points, rng), error=_ERROR, by_words=False)
        chosen, at = ("exact", EXACT) if at is None else ("neighbours", min(at, EXACT))
    found, n_crowded = alike_pairs(points, at)
    overlap, share = 0.0, 1.0
    if vectors is not None and chosen != "exact":
        overlap = EXACT if by_words is None else min(by_words, EXACT)
        found, share = _confirmed(found, words, overlap, threshold=at, given=chosen == "given")
    if n_crowded > len(doc_ids) / 2:
        raise DataError(
            f"{n_crowded:,} of {len(doc_ids):,} documents have more than 100 others within a "
            f"similarity of {at:.3g}: equal documents, or one template. Leave repeated documents "
            "out, or give a larger threshold"
        )
    return TwinGroups(
        TwinSettings(
            space=space, threshold=at, overlap=overlap, confirmed=share, chosen=chosen,
            n_crowded=n_crowded, collection=collection,
        ),
        doc_ids,
        [
            (doc_ids[first], doc_ids[second], float(similarity))
            for first, second, similarity in zip(*found, strict=True)
        ],
        weights=weights,
    )  # fmt: skip


def _confirmed(
    found: Pairs,
    words: Any,  # noqa: ANN401 - sparse
    overlap: float,
    *,
    threshold: float,
    given: bool,
) -> tuple[Pairs, float]:
    """Keep the pairs whose words agree, refusing a space where too few do."""
    agree = paired_overlap(words, found.first, found.second) >= overlap
    # Of each document its nearest one: pairs of pairs would count four times
    order = np.argsort(-found.similarity, kind="stable")
    ends = np.concatenate((found.first[order], found.second[order]))
    _, nearest = np.unique(ends, return_index=True)
    n = len(nearest)
    share = float(np.tile(agree[order], 2)[nearest].mean()) if n else 1.0
    if share < _CONFIRMED:
        remedy = "a larger threshold" if given else "a threshold of your own"
        raise DataError(
            f"of {n:,} documents with another within a similarity of {threshold:.3g} only "
            f"{100 * share:.0f} % share their words with it as copies do: they are on the same "
            "subject. Leave their ranking as it is; fit_twins in Python takes "
            f"{remedy}, or text overlap alone where it is given no encoder"
        )
    return found.take(agree), share


# Copies at query time.


class TwinRescorer:
    """Give copies their mean score; a :class:`~rag_sourcebias.core.Rescorer`.

    The order of copies is drawn for each query from the seed, the query's text and the documents'
    ids, so that every adapter serves the same. It needs no tags; without scores it takes ranks.

    Parameters
    ----------
    groups : TwinGroups
    seed : int
    show : {"all", "one"}
        ``"all"`` places copies beside each other. ``"one"`` leaves one of them, drawn for each
        query, in that place and the others behind everything else: k copies are shown as often as
        one document, a kth of the time each.
    """

    def __init__(
        self, groups: TwinGroups, *, seed: int = 0, show: Literal["all", "one"] = "all"
    ) -> None:
        if show not in ("all", "one"):
            raise DataError(f"show {show!r} is not one of all, one")
        self.groups = groups
        self.seed = seed
        self.show = show

    @classmethod
    def fit(
        cls, corpus: Corpus, encoder: Encoder | None = None, *, threshold: float | None = None
    ) -> TwinRescorer:
        """Find the copies of a corpus; see :func:`fit_twins`."""
        return cls(fit_twins(corpus, encoder, threshold=threshold))

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        encoder: str | None = None,
        seed: int = 0,
        show: Literal["all", "one"] = "all",
    ) -> TwinRescorer:
        """Read groups from a file; see :func:`read_twins`."""
        return cls(read_twins(path, encoder=encoder), seed=seed, show=show)

    def write(self, path: str | Path) -> None:
        """Keep the groups in a file; of groups that came from it only what changed."""
        write_twins(self.groups, path)

    @property
    def encoder(self) -> str | None:
        """Fingerprint of the encoder whose neighbours were joined; None for text overlap."""
        space = self.groups.settings.space
        return None if space == TEXT_SPACE else space

    def __call__(
        self,
        query: str,
        *,
        doc_ids: Sequence[str],
        texts: Sequence[str],  # noqa: ARG002 - of the protocol
        tags: Sequence[DocTags],  # noqa: ARG002
        scores: Sequence[float] | None,
    ) -> list[float] | None:
        """Return scores that fall with the order to serve; None where there are no copies."""
        present = self.groups.present(doc_ids)
        return self.shared(query, doc_ids, scores, present) if present else None

    def shared(
        self,
        query: str,
        doc_ids: Sequence[str],
        scores: Sequence[float] | None,
        copies: Sequence[Sequence[int]],
    ) -> list[float]:
        """Return the scores where copies are known.

        Parameters
        ----------
        copies : sequence of sequence of int
            What :meth:`TwinGroups.present` says of the documents.
        """
        new = [*map(float, range(len(doc_ids), 0, -1) if scores is None else scores)]
        lowest = 0.0 if self.show == "all" else min(0.0, *new)
        drawn_from = f"{self.seed}\0{query}\0"
        for places in copies:
            score = fsum([new[place] for place in places]) / len(places)
            draws = sorted(
                (
                    blake2b(
                        f"{drawn_from}{doc_ids[place]}".encode("utf-8", "surrogatepass"),
                        digest_size=8,
                    ).digest(),
                    place,
                )
                for place in places
            )
            new[draws[0][1]] = score
            for _, place in draws[1:]:
                if self.show == "one":
                    score = lowest = nextafter(lowest - 1, -inf)
                else:  # the next smaller number: equal to all but a sort
                    score = nextafter(score, -inf)
                new[place] = score
        return new

    def tied(self, doc_ids: Sequence[str], scores: Sequence[float]) -> list[float]:
        """Return scores in which copies tie, for expectations over their orders."""
        new = [*map(float, scores)]
        for places in self.groups.present(doc_ids) if self.show == "all" else ():
            top = max(new[place] for place in places)
            for place in places:
                new[place] = top
        return new

    def within(self, corpus: Corpus) -> TwinRescorer:
        """Return the rescorer for an index of only these documents.

        Raises
        ------
        DataError
            If the groups are of another collection: they know no document of it, or what they join
            does not share its words there.
        """
        _require_of(self.groups, corpus)
        return TwinRescorer(self.groups.within(corpus.doc_ids), seed=self.seed, show=self.show)


# Groups in a file beside an index; of later changes only what changed is written.


_SCHEMA = """
CREATE TABLE IF NOT EXISTS twins (
    document TEXT NOT NULL,
    other TEXT NOT NULL,
    value BLOB,
    PRIMARY KEY (document, other)
) WITHOUT ROWID
"""
_VERSION = 1
_META = ""  # no document has an empty id
_LOOKED_AT, _SHARED = 1_000, 0.5  # joined pairs whose words are compared again; least share


class _TwinFile(SqliteFile):
    kind, whole_kind = "file of twins", "file of twins of this library"
    remedy = "fit the groups again"


def write_twins(groups: TwinGroups, path: str | Path) -> None:
    """Keep groups in a file; those that came from it, or went to it, write only what changed.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    file = _TwinFile(path, _SCHEMA)
    fresh = groups._unsaved is None or not file.exists
    changed = sorted(groups._known | set(groups._alike)) if fresh else sorted(groups._unsaved or ())
    with file.connection() as database:
        if fresh:
            database.execute("DELETE FROM twins")
        settings = {"version": _VERSION, **asdict(groups.settings)}
        weights = None if groups.weights is None else groups.weights.idf.tobytes()
        rows: list[tuple[str, str, object]] = [(_META, "settings", json.dumps(settings))]
        if fresh:
            rows.append((_META, "weights", weights))
        for doc_id in changed:
            database.execute("DELETE FROM twins WHERE document = ?", (doc_id,))
            if doc_id in groups:
                rows.append((doc_id, "", None))
                near = groups._alike.get(doc_id, {})
                rows += [(doc_id, other, similarity) for other, similarity in near.items()]
        database.executemany("INSERT OR REPLACE INTO twins VALUES (?, ?, ?)", rows)
    groups._unsaved = set()


def read_twins(
    path: str | Path, *, encoder: str | None = None, collection: str | None = None
) -> TwinGroups:
    """Read what :func:`write_twins` wrote.

    Parameters
    ----------
    encoder : str, optional
        Fingerprint of the encoder in use.
    collection : str, optional
        Which collection they are to be used with.

    Raises
    ------
    DataError
        If the file is missing or damaged, or the groups are of another encoder or collection.
    """
    file = _TwinFile(path, _SCHEMA)
    check_file(file.path)
    with file.connection() as database:
        rows = database.execute("SELECT document, other, value FROM twins").fetchall()
    try:
        meta = {other: value for document, other, value in rows if document == _META}
        stored = json.loads(meta["settings"])
        version = stored.pop("version")
        settings = TwinSettings(**stored)
        raw = meta.get("weights")
        weights = None if raw is None else TextOverlap(idf=np.frombuffer(raw, np.float32))
        known = [document for document, other, _ in rows if document != _META and not other]
        pairs = [(d, o, float(s)) for d, o, s in rows if d != _META and o and d < o]
        groups = TwinGroups(settings, known, pairs, weights=weights)
    except (KeyError, TypeError, ValueError) as error:
        raise file.damaged(f"{type(error).__name__}: {error}") from error
    if version != _VERSION:
        raise file.damaged(f"version {version}, expected {_VERSION}")
    if encoder is not None and settings.space not in (encoder, TEXT_SPACE):
        raise DataError(
            f"{path} joins neighbours of the encoder {settings.space!r}; the one in use is "
            f"{encoder!r}. Fit the groups again with that one"
        )
    if collection is not None and settings.collection != collection:
        raise DataError(
            f"{path} is of the collection {settings.collection or 'of no store'!r}, not of "
            f"{collection!r}: fit the groups of this collection"
        )
    groups._unsaved = set()
    return groups


def _require_of(groups: TwinGroups, corpus: Corpus) -> None:
    """Refuse groups of another collection, which may have the same ids."""
    place = {doc_id: i for i, doc_id in enumerate(corpus.doc_ids) if doc_id in groups}
    joined = [(place[a], place[b]) for a, b, _ in groups.pairs() if a in place and b in place]
    some, share = joined[:: len(joined) // _LOOKED_AT + 1], 1.0
    if some and groups.weights is not None:
        words = groups.weights.vectors([corpus.texts[i] for pair in some for i in pair])
        first = np.arange(0, 2 * len(some), 2)
        settings = groups.settings
        least = settings.threshold if settings.space == TEXT_SPACE else settings.overlap
        share = float(np.mean(paired_overlap(words, first, first + 1) >= least))
    if not place or share < _SHARED:
        raise DataError(
            f"the groups of copies are of another collection: they know {len(place):,} of the "
            f"{len(corpus):,} documents here, and {100 * share:.0f} % of those joined share their "
            "words; fit the groups of this collection"
        )


def described(groups: TwinGroups) -> Mapping[str, str]:
    """Return what a report states of groups."""
    found = groups.groups
    settings = groups.settings
    return {
        "space": settings.space,
        "threshold": f"{settings.threshold:.3f} ({settings.chosen})",
        "groups": f"{len(found):,} of {sum(map(len, found)):,} documents",
        "pairs confirmed by their words": f"{100 * settings.confirmed:.0f} %",
    }
