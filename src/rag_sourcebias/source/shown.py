"""What an application holds and what it shows of each source, without judgments."""

from __future__ import annotations

import csv
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from rag_sourcebias.core.codec import PathLike, Stored, environment, timestamp
from rag_sourcebias.core.data import Corpus, Qrels, Query, Run, TagTable
from rag_sourcebias.core.errors import DataError, if_enough, require_at_least
from rag_sourcebias.core.finding import Code, Finding, Frame, Interval, short_names
from rag_sourcebias.core.protocols import RetrieverSpec
from rag_sourcebias.infer.means import Dependence, clustered_mean
from rag_sourcebias.measure.relevance import exposure
from rag_sourcebias.measure.texts import Copies
from rag_sourcebias.report import document as d
from rag_sourcebias.report.render import Outcome, Report
from rag_sourcebias.source.audit import twins_of
from rag_sourcebias.source.findings import AuditConfig, TwinSkew

SHOWN_SCHEMA_VERSION = 1
_MATERIAL = 0.05  # of a share: the margin within which audits call two sources alike
_FEWEST = 20  # questions: with fewer an interval of shares is as wide as what it is about


class ShownCode(Code, home="shown"):
    """Sentences of a report without judgments."""

    ASKING = "{system}: asking {n:question|questions}"
    LEVEL = (
        "{source} text is {held:percent} of {n_documents:document|documents} and gets "
        "{shown:percent} of the first {cutoff} that {system} shows, over {n_queries:question|"
        "questions}."
    )
    MORE = "It is shown more than it is held: {difference:points} points."
    LESS = "It is shown less than it is held: {difference:points} points."
    OPEN = (
        "Whether it is shown more or less than it is held cannot be told: {difference:points} "
        "points."
    )
    ALONE = "All of it is of one source: there is nothing to compare."
    FEW = "With {n:question|questions} no interval is given; ask at least {least}."
    NOT_RELEVANCE = (
        "A source may earn what it is shown by being more relevant: only judgments can tell."
    )
    TWINS = (
        "Of {n:pair|pairs} of versions of one text of which one is shown, the {other} one stands "
        "higher in {rate:percent}: that is at equal content."
    )
    PARTS = (
        "Of {n:text|texts} a source holds several documents, as where they were split: versions of "
        "these are not compared."
    )
    COPIES = (
        "{n} of {n_documents:document|documents} share most of their words with others of their "
        "source, in {groups:group|groups}."
    )
    COPIED_TWINS = (
        "{n} of these are versions of a text of another source: what is there several times has "
        "more chances to stand higher."
    )
    BY_GROUP = (
        "With such a group as one document, {source} text is {held:percent} of the store and gets "
        "{shown:percent} of the first {cutoff}."
    )
    UNTAGGED = "No source is known for {n} of {n_documents:document|documents}."
    NO_TAGS = (
        "No document of {store} has a tag of its source. How to tag them: `rag-sourcebias tag "
        "apply --help`"
    )
    EMPTY = "Nothing was returned for {n} of {n_queries:question|questions}; they are left out."
    AT_ONCE = "Intervals of {n} sources hold at once."
    NEXT_JUDGE = (
        "Judge {n:document|documents} of {n_queries:question|questions} in {folder}/sheet.csv, "
        "then `rag-sourcebias audit source --run {folder}/shown.csv --qrels {folder}/sheet.csv "
        "--tags {folder}/tags.csv`"
    )
    NEXT_SHEET = "For a sheet of what to judge add --sheet <folder> (in Python sheet=)."


@dataclass(frozen=True, kw_only=True)
class ShownShare:
    """One source in the store and among what is shown first.

    Parameters
    ----------
    source : str
        ``""`` stands for untagged documents.
    documents : int
        Of the store.
    held, shown : float
        Shares of the store, and of the first documents: the mean over questions. In [0, 1].
    difference : Interval or None
        ``shown - held``; of several sources the intervals hold at once. None with few questions,
        and of a source that is alone.
    """

    source: str
    documents: int
    held: float
    shown: float
    difference: Interval | None

    @property
    def code(self) -> ShownCode:
        """Whether more or less is shown than is held."""
        if self.difference is None or self.difference.lower <= 0 <= self.difference.upper:
            return ShownCode.OPEN
        return ShownCode.MORE if self.difference.estimate > 0 else ShownCode.LESS


@dataclass(frozen=True, kw_only=True)
class ShownSheet:
    """A sheet of what to judge: where it lies, and how much it is."""

    folder: str
    n_queries: int
    n_documents: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ShownResults(Stored):
    """Everything that a report without judgments stores.

    Parameters
    ----------
    system : str
        Name of the retriever.
    store : str
        Name of what it searches.
    cutoff : int
        Documents that a reader sees.
    n_queries, n_answered : int
        Questions asked, and those for which something came back.
    twins : tuple of TwinSkew
        For each other source, both versions of the pairs that were found.
    copies : tuple of Finding
        Near-duplicates that the store holds, and what they change.
    """

    _versioned = ("report of what is shown", SHOWN_SCHEMA_VERSION)

    schema_version: int = SHOWN_SCHEMA_VERSION
    kind: Literal["shown"] = "shown"
    system: str
    store: str
    cutoff: int
    confidence_level: float
    n_documents: int
    n_queries: int
    n_answered: int
    shares: tuple[ShownShare, ...]
    twins: tuple[TwinSkew, ...] = ()
    copies: tuple[Finding, ...] = ()
    sheet: ShownSheet | None = None
    findings: tuple[Finding, ...] = ()
    environment: Mapping[str, str]
    created: str


class ShownReport(ShownResults, Report):
    """What an application holds and shows; its parameters are those of what it stores."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before a number is trusted."""
        return tuple(str(finding) for finding in self.findings if finding.severity == "warning")

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Tables by name: ``shares``, and ``twins`` where there are copies."""
        shares = {
            "source": [share.source or "untagged" for share in self.shares],
            **{
                name: [getattr(share, name) for share in self.shares]
                for name in ("documents", "held", "shown", "difference")
            },
        }
        formats = {"held": "percent", "shown": "percent", "difference": "points"}
        heads = {"difference": "difference (points)"}
        found = {"shares": Frame(columns=shares, formats=formats, heads=heads)}
        if self.twins:
            twins = {
                name: [getattr(twin, name) for twin in self.twins]
                for name in ("baseline", "other", "n_pairs", "win_rate")
            }
            found["twins"] = Frame(columns=twins, formats={"win_rate": "percent"}, n_heads=2)
        return found

    def page(self) -> d.Document:
        """Return what there is to read, in its order."""
        levels = tuple(_level(self, share) for share in self._leading())
        blocks: list[d.Block] = [d.Table(caption="Held and shown", frame=self.frames["shares"])]
        if self.twins:
            blocks.append(d.Table(caption="Versions of one text", frame=self.frames["twins"]))
        return d.Document(
            kind="What is held and what is shown",
            name=self.system,
            first=self._first(),
            headline=levels if len(levels) > 1 else (),  # one is the answer already
            facts=(d.Name(self.store),),
            created=self.created,
            warnings=tuple(one for one in self.findings if one.severity == "warning"),
            sections=(
                d.Section(
                    id="shares", title="Held and shown", brief=True, lead=ShownCode.NOT_RELEVANCE(),
                    blocks=(*blocks, d.Listing(rows=self._notes())),
                ),
                d.Section(
                    id="data", nav="Versions", title="Versions and machine",
                    blocks=(d.Facts(frames=(("", d.facts(self.environment)),)),),
                ),
            ),
        )  # fmt: skip

    def _notes(self) -> tuple[Finding, ...]:
        """Return what is no warning: those stand above."""
        return tuple(finding for finding in self.findings if finding.severity == "note")

    def _leading(self) -> tuple[ShownShare, ...]:
        """Return the first source that is named, and with several others them too."""
        tagged = tuple(share for share in self.shares if share.source)
        return tagged[:1] if len(self.shares) == 2 else tagged

    def _first(self) -> d.First:
        leading = self._leading()
        if not leading:
            return d.First(answer=ShownCode.NO_TAGS(store=self.store))
        share = max(leading, key=lambda one: abs(one.shown - one.held))
        verdict: d.Words = ShownCode.FEW(n=self.n_answered, least=_FEWEST)
        if len(self.shares) == 1:
            verdict = ShownCode.ALONE()
        elif share.difference is not None:
            verdict = share.code(difference=share.difference)
        twins = (
            ShownCode.TWINS(n=twin.n_pairs, other=twin.other, rate=twin.win_rate)
            for twin in self.twins
            if twin.win_rate is not None
        )
        return d.First(
            answer=_level(self, share),
            verdict=verdict,
            doubts=(*twins, *self.copies, ShownCode.NOT_RELEVANCE()),
            rows=tuple(_row(one) for one in self.shares),
            next=_next(self.sheet),
        )

    def _outcomes(self) -> Iterator[Outcome]:
        for share in self.shares:
            code = "cannot_tell" if share.code is ShownCode.OPEN else share.code.name.lower()
            yield Outcome(share.source or "untagged", code, "shown − held", share.difference,
                          share.shown - share.held, digits=3)  # fmt: skip


def _level(report: ShownResults, share: ShownShare) -> Finding:
    names = short_names(one.source for one in report.shares)
    name = names[share.source]
    return ShownCode.LEVEL(
        source=name[:1].upper() + name[1:],
        held=share.held,
        shown=share.shown,
        n_documents=report.n_documents,
        cutoff=report.cutoff,
        system=report.system,
        n_queries=report.n_answered,
    )


def _row(share: ShownShare) -> d.FirstRow:
    bar = None
    if share.difference is not None:
        ends = share.difference
        shown = tuple(share.held + end for end in (ends.lower, ends.estimate, ends.upper))
        side = {ShownCode.MORE: "baseline", ShownCode.LESS: "other"}.get(share.code, "even")
        bar = d.Bar.over((shown[0], shown[1], shown[2]), (0, 1), side=side,
                         solid=share.code is not ShownCode.OPEN, was=share.held)  # fmt: skip
    text = f"{share.held:.1%} → {share.shown:.1%}"
    return d.FirstRow(name=d.Name(share.source or "untagged"), bar=bar, text=text)


def _next(sheet: ShownSheet | None) -> Finding:
    if sheet is None:
        return ShownCode.NEXT_SHEET()
    return ShownCode.NEXT_JUDGE(
        n=sheet.n_documents, n_queries=sheet.n_queries, folder=shlex.quote(sheet.folder)
    )


# Ask and measure.


def audit_shown(
    spec: RetrieverSpec,
    corpus: Corpus,
    queries: Sequence[Query],
    *,
    store: str = "store",
    cutoff: int = 5,
    depth: int = 100,
    confidence_level: float = 0.95,
    baseline_source: str = "human",
    sheet: PathLike | None = None,
    n_sheet: int = 30,
    rng: np.random.Generator | int = 0,
) -> ShownReport:
    """Measure which share of a store each source has, and which of what is shown.

    Parameters
    ----------
    spec : RetrieverSpec
        What is asked, such as an application's own retriever.
    corpus : Corpus
        All documents of the store, with their tags.
    queries : sequence of Query
        Questions as users ask them; the intervals are about questions like these.
    cutoff : int
        Documents that a reader sees.
    depth : int
        Documents that are asked for; versions of one text are compared among them.
    sheet : path, optional
        Folder for a sheet of questions and documents to judge, with the run and the tags that an
        audit takes beside it.
    n_sheet : int
        Questions of the sheet.
    rng : Generator or int
        Draws them.

    Raises
    ------
    DataError
        If there is no question, or nothing that was returned is in the store.
    """
    require_at_least(1, cutoff=cutoff, depth=depth, n_sheet=n_sheet)
    if not queries:
        raise DataError("no question to ask; give a list of questions, or a file with one a line")
    retriever = spec.build(corpus)
    run = retriever.retrieve(queries, max(depth, cutoff))
    cutoff = min(cutoff, int(np.diff(run.offsets).max(initial=1)))  # it may never show as many
    tags = corpus.tags
    shares = tuple(_shares(run, tags, cutoff, confidence_level))
    copies = Copies.by_words(corpus.texts, tags, Qrels.from_rows(()))
    left = tags.take(np.flatnonzero([doc not in copies.stands_for for doc in tags.doc_ids]))
    by_group = tuple(_shares(copies.ranked(run), left, cutoff, confidence_level))
    answered = int(np.count_nonzero(np.diff(run.offsets)))
    findings = [*getattr(retriever, "notes", ())]
    if answered < len(queries):
        findings.append(
            ShownCode.EMPTY(severity="warning", n=len(queries) - answered, n_queries=len(queries))
        )
    untagged = tags.counts().get("", 0)
    if untagged:
        findings.append(
            ShownCode.UNTAGGED(severity="warning", n=untagged, n_documents=tags.n_documents)
        )
    if len(shares) > 2:
        findings.append(ShownCode.AT_ONCE(n=len(shares)))
    if split := _split(tags):
        findings.append(ShownCode.PARTS(n=len(split)))
    drawn = None
    if sheet is not None:
        drawn = _write_sheet(
            Path(sheet), run, corpus, queries, cutoff=cutoff, n=n_sheet,
            rng=np.random.default_rng(rng),
        )  # fmt: skip
    return ShownReport(
        system=spec.name,
        store=store,
        cutoff=cutoff,
        confidence_level=confidence_level,
        n_documents=tags.n_documents,
        n_queries=len(queries),
        n_answered=answered,
        shares=shares,
        twins=tuple(
            _twins(run, corpus, split, baseline_source, cutoff=cutoff, level=confidence_level)
        ),
        copies=tuple(_of_copies(copies, tags, shares, by_group, cutoff)),
        sheet=drawn,
        findings=tuple(findings),
        environment=environment(),
        created=timestamp(),
    )


def _shares(run: Run, tags: TagTable, cutoff: int, level: float) -> Iterator[ShownShare]:
    counts = tags.counts()
    found = exposure(run, tags, browsing=f"top-{cutoff}")
    present = {
        source: shares
        for source, shares in zip(found.sources, found.shares, strict=True)
        if counts.get(source, 0) or shares.any()
    }
    # two shares are one number; of more, as many intervals as there are have to hold at once
    at_once = len(present) if len(present) > 2 else 1
    for source, shares in present.items():
        held = counts.get(source, 0) / tags.n_documents
        difference = None
        if len(shares) >= _FEWEST and len(present) > 1:
            difference = if_enough(
                clustered_mean,
                shares - held,
                confidence_level=1 - (1 - level) / at_once,
                bounds=(-held, 1 - held),
            )
        yield ShownShare(
            source=source,
            documents=counts.get(source, 0),
            held=held,
            shown=float(shares.mean()) if len(shares) else 0.0,
            difference=difference,
        )


def _of_copies(
    copies: Copies,
    tags: TagTable,
    shares: Sequence[ShownShare],
    by_group: Sequence[ShownShare],
    cutoff: int,
) -> Iterator[Finding]:
    """Say how many near-duplicates there are, and which shares differ with a group as one."""
    groups = set(copies.stands_for.values())
    several = groups | set(copies.stands_for)
    if not several:
        return
    yield ShownCode.COPIES(n=len(several), n_documents=tags.n_documents, groups=len(groups))
    paired = int(np.count_nonzero(tags.pair_codes[tags.rows_for(list(several))] >= 0))
    if paired:
        yield ShownCode.COPIED_TWINS(n=paired)
    n_said = 1 if len(shares) == 2 else len(shares)  # of two shares one tells the other
    for one, grouped in list(zip(shares, by_group, strict=True))[:n_said]:
        moved = max(abs(one.held - grouped.held), abs(one.shown - grouped.shown))
        if one.source and (moved > _MATERIAL or one.code is not grouped.code):
            yield ShownCode.BY_GROUP(
                source=one.source, held=grouped.held, shown=grouped.shown, cutoff=cutoff
            )


def _split(tags: TagTable) -> set[int]:
    """Return the codes of pairs of which a source holds several documents."""
    held = Counter(zip(tags.pair_codes.tolist(), tags.source_codes.tolist(), strict=True))
    return {pair for (pair, _), n in held.items() if n > 1 and pair >= 0}


def _twins(
    run: Run, corpus: Corpus, split: set[int], baseline: str, *, cutoff: int, level: float
) -> Iterator[TwinSkew]:
    """Compare a source's versions of texts with the baseline's where one of the two is shown."""
    tags = corpus.tags
    if baseline not in tags.sources:
        return
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
    shown = rank < cutoff
    rows = tags.rows_for(run.doc_ids)[run.doc_codes[shown]]
    queries, rows = run.query_codes[shown][rows >= 0], rows[rows >= 0]
    config = AuditConfig(baseline_source=baseline, confidence_level=level)
    for other in tags.sources:
        if other == baseline:
            continue
        sides = [tags.sources.index(name) for name in (baseline, other)]
        versions: dict[int, list[str]] = {}
        for row in np.flatnonzero(np.isin(tags.source_codes, sides) & (tags.pair_codes >= 0)):
            if (pair := int(tags.pair_codes[row])) not in split:
                versions.setdefault(pair, []).append(tags.doc_ids[row])
        seen = np.isin(tags.source_codes[rows], sides) & (tags.pair_codes[rows] >= 0)
        asked = set(zip(queries[seen].tolist(), tags.pair_codes[rows[seen]].tolist(), strict=True))
        if versions.keys().isdisjoint(pair for _, pair in asked):
            continue
        qrels = Qrels.from_rows(
            (run.query_ids[query], doc, 1)
            for query, pair in sorted(asked)
            for doc in versions.get(pair, ())
        )
        dependence = Dependence.of(qrels, tags, None)
        found = twins_of(run, qrels, tags, config, dependence=dependence, corpus=None, other=other)
        if found is not None and found.n_pairs:
            yield found


# A sheet of what to judge.


def _write_sheet(
    folder: Path,
    run: Run,
    corpus: Corpus,
    queries: Sequence[Query],
    *,
    cutoff: int,
    n: int,
    rng: np.random.Generator,
) -> ShownSheet:
    """Write what is shown for questions at random, and what an audit needs beside the grades."""
    answered = np.flatnonzero(np.diff(run.offsets) > 0)
    drawn = np.sort(rng.permutation(answered)[:n])
    text_of = dict(corpus)
    question_of = {query.query_id: query.text for query in queries}
    names: dict[str, str] = {}  # an id may tell the source
    rows: list[tuple[str, ...]] = []
    ranked: list[tuple[object, ...]] = []
    for code in drawn:
        query_id = run.query_ids[code]
        place = slice(run.offsets[code], run.offsets[code + 1])
        shown = [run.doc_ids[doc] for doc in run.doc_codes[place]]
        for doc in rng.permutation(np.array(shown, dtype=object)):
            names.setdefault(doc, f"d{len(names) + 1}")
        ranked += [(query_id, names[doc], rank) for rank, doc in enumerate(shown, start=1)]
        seen = sorted(shown[:cutoff], key=lambda doc: int(names[doc][1:]))
        rows += [
            (query_id, question_of[query_id], names[doc], text_of[doc], "")
            for doc in seen
            if doc in text_of
        ]
    tagged = [
        (name, tags.source or "", tags.pair_id or "", doc)
        for doc, name in names.items()
        for tags in [corpus.tags.get(doc)]
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        head = ("query_id", "question", "doc_id", "text", "grade")
        _write_rows(folder / "sheet.csv", head, rows)
        _write_rows(folder / "shown.csv", ("query_id", "doc_id", "rank"), ranked)
        _write_rows(folder / "tags.csv", ("doc_id", "source", "pair_id", "stored_as"), tagged)
    except OSError as error:
        raise DataError(f"sheet {str(folder)!r} cannot be written: {error.strerror}") from error
    return ShownSheet(folder=str(folder), n_queries=len(drawn), n_documents=len(rows))


def _write_rows(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])
