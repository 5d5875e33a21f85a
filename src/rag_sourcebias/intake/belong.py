"""Whether queries, documents, judgments and tags belong together: what their ids share."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice
from typing import Literal, NamedTuple
from urllib.parse import unquote

import numpy as np

from rag_sourcebias.core.data import LabelDistributions, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Code, Finding

Kind = Literal["query", "document"]


class BelongCode(Code, home="belong"):
    """What ids do not share, and why."""

    # Why two names of the same thing differ.
    SPACE = "white space or quotes around them"
    FORM = "their Unicode form (NFC)"
    CASE = "upper and lower case"
    ZEROS = "leading zeros"
    DECIMAL = "the “.0” of whole numbers that were read as fractions"
    ESCAPES = "escapes such as %20"
    MARKS = "hyphens, underlines or spaces"
    PATH = "a folder or the ending of a file"
    SEVERAL = "case, zeros, spaces or signs, several at once"
    PREFIX = "what stands before the number"
    AFFIX = "a prefix or suffix"
    CHUNK = "the number of a chunk at their end"

    # Nothing in common.
    APART = (
        "{ours} and {theirs} have no {kind} in common: ids differ in {difference}; write {new!r} "
        "for {old!r} in {place}, and {n} of {n_all} meet"
    )
    STRANGE = (
        "{ours} and {theirs} have no {kind} in common: the first have ids like {our_id!r}, the "
        "others like {their_id!r}; no zeros, case, Unicode form, prefix, suffix or chunk number "
        "explains it, so they are of different data"
    )
    SWAPPED = (
        "{ours} and {theirs} have no {kind} in common: the queries of the one are the documents of "
        "the other; exchange the two columns"
    )

    # Little in common.
    LACKING = (
        "{system} returned nothing for {n} of {n_all} judged queries, such as “{first:short}”; "
        "each scores 0 and counts."
    )
    LEFT_OUT = (
        "{n} of {n_all} queries of {system} have no judgments, such as “{first:short}”; they are "
        "left out."
    )
    UNTAGGED = (
        "{n} of {n_all} results of {system} are documents without a source tag, such as "
        "“{first:short}”."
    )
    REPEATED = "{system} repeats a document of the same query {n} times; the first one counts."
    SAME_QUERY = (
        "{n:query|queries} of {system} would have judgments but for {difference}: is "
        "“{ours:short}” the same as “{theirs:short}”?"
    )
    SAME_DOCUMENT = (
        "{n:document|documents} of {system} would have a tag but for {difference}: is "
        "“{ours:short}” the same as “{theirs:short}”?"
    )


# Why two lists of ids do not meet, found by trying.


class Cause(NamedTuple):
    """In what names of the same things differ: one of either list, and how many are the same.

    ``ours_differ`` says in which of the lists names are to be changed.
    """

    difference: BelongCode
    ours: str
    theirs: str
    n: int
    ours_differ: bool


_LEAST = 0.1  # of the shorter list: if fewer meet, it may be chance
_SOME = 20_000  # ids of a part that did not meet: looking at them takes a fraction of a second
_TRIED = 200  # ids of one list that are looked for in others, which takes their product
_NUMBERED = re.compile(r"[#/:_|.-]+(?:chunk|part|passage|split|node|[cps])?[-_:]?\d+$", re.I)


def _several(name: str) -> str:
    plain = unicodedata.normalize("NFKC", unquote(name)).strip(" \t'\"").casefold()
    plain = re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"\.0+$", "", plain))
    return re.sub(r"[\W_]+", "-", plain)


_FORMS: Mapping[BelongCode, Callable[[str], str]] = {
    BelongCode.SPACE: lambda name: name.strip().strip("'\"").strip(),
    BelongCode.FORM: lambda name: unicodedata.normalize("NFC", name),
    BelongCode.CASE: str.casefold,
    BelongCode.ZEROS: lambda name: re.sub(r"(?<!\d)0+(?=\d)", "", name),
    BelongCode.DECIMAL: lambda name: re.sub(r"\.0+$", "", name),
    BelongCode.ESCAPES: unquote,
    BelongCode.MARKS: lambda name: re.sub(r"[\s_-]+", "-", name),
    BelongCode.PATH: lambda name: re.sub(r"^.*[/\\]|\.\w{2,5}$", "", name),
    BelongCode.SEVERAL: _several,
    BelongCode.PREFIX: lambda name: re.sub(r"^\D+(?=\d+$)", "", name),
}


def cause(ours: Sequence[str], theirs: Sequence[str]) -> Cause | None:
    """Return in what two lists of ids differ, if but for that they would meet.

    Examples
    --------
    >>> found = cause(["1", "2"], ["01", "02"])
    >>> str(found.difference()), found.n
    ('leading zeros', 2)
    """
    best, fewer = None, min(len(ours), len(theirs))
    for code, mine, other in _tries(ours, theirs):
        shared = mine.keys() & other.keys()
        if len(shared) > (best.n if best else 0):
            at = min(shared)
            best = Cause(code, mine[at], other[at], len(shared), mine[at] != at)
        if best and best.n == fewer:
            break
    return best if best and best.n >= _LEAST * fewer else None


def _tries(
    ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[BelongCode, Mapping[str, str], Mapping[str, str]]]:
    """Give both lists in each form in which they may meet."""
    mine, other = ({name: name for name in names} for names in (ours, theirs))
    for code, form in _FORMS.items():
        first, second = ({form(name): name for name in names} for names in (mine, other))
        # a form in which different ids are the same explains too much
        if len(first) == len(mine) and len(second) == len(other):
            yield code, first, second
    yield BelongCode.CHUNK, _documents(ours), other
    yield BelongCode.CHUNK, mine, _documents(theirs)
    yield BelongCode.AFFIX, _bare(ours, theirs), other
    yield BelongCode.AFFIX, mine, _bare(theirs, ours)


def _bare(whole: Sequence[str], parts: Sequence[str]) -> dict[str, str]:
    """Return ids without the prefix and suffix that they have most often around ids of others."""
    around = Counter(
        (before, after)
        for name in whole[: _TRIED * _TRIED]
        for part in parts[:_TRIED]
        if part and part in name
        for before, _, after in [name.partition(part)]
    )
    ((before, after), _), *_ = around.most_common(1) or [(("", ""), 0)]
    return {
        name[len(before) : len(name) - len(after)]: name
        for name in whole
        if name.startswith(before) and name.endswith(after)
    }


def _documents(names: Sequence[str]) -> dict[str, str]:
    """Return ids without the numbers at their end, one by one: of what they may be chunks."""
    found: dict[str, str] = {}
    for name in names:
        rest = name
        while (cut := _NUMBERED.sub("", rest)) not in ("", rest):
            found.setdefault(cut, name)
            rest = cut
    return found


# What a run, judgments and tags have in common.


class Ids(NamedTuple):
    """Ids, and whose they are."""

    of: str
    ids: Sequence[str]


def require_common(kind: Kind, ours: Ids, theirs: Ids) -> None:
    """Refuse ids that have nothing in common, with the reason as far as it can be found.

    Raises
    ------
    DataError
        Unless they share one, or either has none.
    """
    few, many = sorted((ours.ids, theirs.ids), key=len)
    if not few or not set(few).isdisjoint(many):
        return
    found = cause(ours.ids, theirs.ids)
    if found is None:
        finding = BelongCode.STRANGE(
            ours=ours.of,
            theirs=theirs.of,
            kind=kind,
            our_id=ours.ids[0],
            their_id=theirs.ids[0],
        )
    else:
        ids = [found.ours, found.theirs]
        new, old = reversed(ids) if found.ours_differ else ids
        finding = BelongCode.APART(
            ours=ours.of,
            theirs=theirs.of,
            kind=kind,
            difference=found.difference(),
            old=old,
            new=new,
            place=(ours if found.ours_differ else theirs).of,
            n=found.n,
            n_all=len(few),
        )
    raise DataError(str(finding))


def require_meeting(
    of: str,
    ours: Run | Qrels | LabelDistributions,
    whose: str,
    theirs: Run | Qrels | LabelDistributions,
) -> None:
    """Refuse two that have no query or no document in common; each is named before it."""
    require_common("query", Ids(of, ours.query_ids), Ids(whose, theirs.query_ids))
    require_common("document", Ids(of, ours.doc_ids), Ids(whose, theirs.doc_ids))


def require_tags(of: str, doc_ids: Sequence[str], tags: TagTable) -> None:
    """Refuse documents none of which has a row in the tags."""
    if tags.row_of.keys().isdisjoint(doc_ids):  # which ends at the first that has one
        require_common("document", Ids(of, doc_ids), Ids("the tags", tags.doc_ids))


def check_run(run: Run, qrels: Qrels, tags: TagTable | None = None) -> tuple[Finding, ...]:
    """Refuse a run that shares nothing with judgments or tags; say what it lacks of them.

    Raises
    ------
    DataError
        If the run and the judgments have no query in common, or documents of a run or judgments
        have no tags at all. Without tags, if run and judgments share no document.
    """
    ours, judgments = f"run {run.name!r}", "the judgments"
    queries, judged = set(run.query_ids), set(qrels.query_ids)
    crossed = queries.isdisjoint(judged) and not queries.isdisjoint(qrels.doc_ids)
    if crossed and not judged.isdisjoint(run.doc_ids):
        raise DataError(str(BelongCode.SWAPPED(ours=ours, theirs=judgments, kind="query")))
    if tags is None:
        require_meeting(ours, run, judgments, qrels)
        return tuple(_queries(run, qrels))
    require_common("query", Ids(ours, run.query_ids), Ids(judgments, qrels.query_ids))
    require_tags(ours, run.doc_ids, tags)
    require_tags(judgments, qrels.doc_ids, tags)
    return (*_queries(run, qrels), *_documents_of(run, tags))


def what_lacks(notes: Iterable[Iterable[Finding]]) -> tuple[Finding, ...]:
    """Return what runs lack, each thing once: of the run that lacks most of it."""
    worst: dict[Code, Finding] = {}
    for note in chain.from_iterable(notes):
        if isinstance(note.code, BelongCode):
            before = worst.get(note.code, note)
            worst[note.code] = max(before, note, key=lambda one: one.numbers["n"])
    return tuple(worst.values())


def _queries(run: Run, qrels: Qrels) -> Iterator[Finding]:
    judged = set(qrels.query_ids)
    answered = set(compress(run.query_ids, np.diff(run.offsets)))
    lacking = [query for query in qrels.query_ids if query not in answered]
    others = [query for query in run.query_ids if query not in judged]
    for code, names, every in (
        (BelongCode.LACKING, lacking, qrels.query_ids),
        (BelongCode.LEFT_OUT, others, run.query_ids),
    ):
        if names:
            yield code(system=run.name, n=len(names), n_all=len(every), first=names[0])
    yield from _same(BelongCode.SAME_QUERY, run, others, lacking)
    if run.n_duplicates:
        yield BelongCode.REPEATED(system=run.name, n=run.n_duplicates)


def _documents_of(run: Run, tags: TagTable) -> Iterator[Finding]:
    sources = np.append(tags.source_codes, -1)[tags.rows_for(run.doc_ids)]
    entries = run.doc_codes[sources[run.doc_codes] < 0]
    if len(entries):
        names = [run.doc_ids[code] for code in dict.fromkeys(entries.tolist())]
        yield BelongCode.UNTAGGED(system=run.name, n=len(entries), n_all=len(run), first=names[0])
        seen = set(run.doc_ids)
        others = islice((name for name in tags.doc_ids if name not in seen), _SOME)
        yield from _same(BelongCode.SAME_DOCUMENT, run, names, list(others))


def _same(
    code: BelongCode, run: Run, ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[Finding]:
    found = cause(ours[:_SOME], theirs[:_SOME]) if ours and theirs else None
    if found is not None:
        yield code(
            system=run.name,
            n=found.n,
            difference=found.difference(),
            ours=found.ours,
            theirs=found.theirs,
        )
