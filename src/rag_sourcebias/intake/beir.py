"""BEIR folders: which files lie there, and what they are together."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from rag_sourcebias.core.codec import PathLike
from rag_sourcebias.core.data import Corpus, Dataset, IntArray, Qrels, Query, Vocabulary, places_of
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.intake.belong import Ids, require_common
from rag_sourcebias.intake.documents import (
    as_corpus,
    read_documents,
    read_queries,
    read_tags,
    report_strange,
    report_unknown,
    with_tags,
)
from rag_sourcebias.intake.judgments import read_qrels

# From judgments as a file gives them to judgments of the rows of a corpus.


def rows_as_judged(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the positions of the versions of each document, by the name that judgments use."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    return rows


def assemble_judged(
    judged: Qrels,
    *,
    query_ids: Sequence[str],
    doc_ids: Sequence[str],
    rows: Mapping[str, Sequence[int]],
    where: str,
) -> Qrels:
    """Give every version of a document the grade of its judged id.

    With the documents of a whole corpus this is what :func:`read_beir` returns; an excerpt that
    holds every judged document of it has the same judgments in the same order, with other codes.
    Judgments of documents that the corpus lacks are kept, as trec_eval keeps them.

    Parameters
    ----------
    judged : Qrels
        As :func:`read_qrels` gives them.
    query_ids : sequence of str
        The queries to keep, in this order.
    doc_ids : sequence of str
        The documents, in row order: the vocabulary of the result begins with them.
    rows : mapping of str to sequence of int
        Positions in ``doc_ids`` of the versions of each document, by the id that judgments use.
    where : str
        Names the file of judgments, for messages.

    Raises
    ------
    DataError
        If no judged document is in ``rows``.
    """
    require_common("document", Ids(where, judged.doc_ids), Ids("the corpus", list(rows)))
    places = places_of(judged.query_ids, query_ids).astype(np.int32)
    known = places[judged.query_codes] >= 0
    others = (name for name in judged.doc_ids if name not in rows)
    every = Vocabulary(dict.fromkeys(chain(doc_ids, others)))
    # those of the id itself, where a version is judged by its own, or no document has it
    versions = [rows.get(name) or [every.place_of[name]] for name in judged.doc_ids]
    held = [versions[code] for code in judged.doc_codes[known].tolist()]
    copies = list(map(len, held))
    return Qrels(
        query_ids=tuple(query_ids),
        doc_ids=every,
        query_codes=np.repeat(places[judged.query_codes[known]], copies),
        doc_codes=np.fromiter(chain.from_iterable(held), np.int32, sum(copies)),
        grades=np.repeat(judged.grades[known], copies),
    )


# The files of a folder.


_DOCUMENTS = (".jsonl", ".jsonl.gz", ".parquet")
_NAMED = re.compile(r"(.+?)(?:-00000-of-00001)?\.(?:tsv|txt|csv|jsonl|parquet)(?:\.gz)?", re.S)
_SHOWN = 5  # names of what is in a folder


def _tables(folder: Path, name: str = "*") -> list[tuple[str, Path]]:
    """Return the tables of a folder and their names, which hubs lengthen, in alphabetical order."""
    paths = sorted(folder.glob(f"{name}.*"))
    return [(named[1], path) for path in paths if (named := _NAMED.fullmatch(path.name))]


def tag_file(folder: Path) -> Path | None:
    """Return the tag file beside a plain corpus, None if there is none.

    Raises
    ------
    DataError
        If there are several.
    """
    files = [path for _, path in _tables(folder, "tags")]
    if len(files) > 1:
        raise DataError(f"{folder} holds {', '.join(f.name for f in files)}; keep one tag file")
    return next(iter(files), None)


# The corpus part of a BEIR folder, in its paired and its plain layout.


class BeirCorpus(NamedTuple):
    """A corpus and how the ids of its judgments map to it.

    ``rows`` gives, for each id that judgments may use, the corpus rows of its versions;
    ``metadata`` belong to the rows of the corpus.
    """

    corpus: Corpus
    rows: Mapping[str, Sequence[int]]
    paired: bool
    metadata: Sequence[Mapping[str, Any]]


def source_of_stem(stem: str) -> str:
    """Return the source that a corpus file ``<stem>.jsonl`` holds.

    ``human`` is human and ``llm:…`` is kept; anything else names a model. ``%2F`` stands for a
    slash, which no file name can hold.

    Examples
    --------
    >>> source_of_stem("human"), source_of_stem("llama-2-7b-chat"), source_of_stem("llm:x")
    ('human', 'llm:llama-2-7b-chat', 'llm:x')
    """
    name = unquote(stem)
    return name if name == "human" or name.startswith("llm:") else f"llm:{name}"


def read_corpus(folder: Path, *, titles: bool = True, whole: bool = False) -> BeirCorpus:
    """Read ``corpus/<source>.jsonl`` files or ``corpus.jsonl``, whichever the folder has.

    With ``whole``, all columns are metadata.
    """
    files = corpus_files(folder)
    parts = [read_documents(file, source=source, whole=whole) for source, file in files]
    corpus = as_corpus(parts, titles=titles)
    for part in parts:
        report_strange(part.where, part.strange)
    paired = files[0][0] is not None
    tags_file = None if paired else tag_file(folder)
    if tags_file is not None:
        corpus = with_tags(corpus, read_tags(tags_file), str(tags_file))
    metadata = list(chain.from_iterable(part.metadata for part in parts))
    rows = rows_as_judged(chain.from_iterable(part.names for part in parts))
    return BeirCorpus(corpus, rows, paired, metadata)


def corpus_files(folder: Path) -> list[tuple[str | None, Path]]:
    """Find the files of a corpus, in row order, each with the source it holds.

    The source is None for a plain corpus, whose documents have sources of their own:
    ``corpus.jsonl``, ``corpus.parquet``, or the Parquet files of a folder ``corpus``.

    Raises
    ------
    DataError
        If there are none, files of several layouts, or two files of one source.
    """
    beside, inside = (
        [(stem, path) for stem, path in tables if path.name.endswith(_DOCUMENTS)]
        for tables in (_tables(folder, "corpus"), _tables(folder / "corpus"))
    )
    files = [path for _, path in [*beside, *inside]]
    paired = [(stem, path) for stem, path in inside if path.suffix != ".parquet"]
    if not files or (len(files) > 1 and (beside or 0 < len(paired) < len(files))):
        found = ", ".join(str(path.relative_to(folder)) for path in files)
        raise DataError(
            f"{folder} holds {found or 'no corpus'}; expected one corpus: corpus/<source>.jsonl "
            "(versions of a document share its _id), corpus.jsonl, both plain or .gz, "
            "corpus.parquet or corpus/*.parquet"
        )
    if not paired:
        return [(None, path) for path in files]
    sources = [require_name(source_of_stem(stem), "source", str(path)) for stem, path in paired]
    ((source, n), *_) = Counter(sources).most_common(1)
    if n > 1:
        raise DataError(f"{folder / 'corpus'}: {n} files hold source {source!r}; keep one")
    return list(zip(sources, files, strict=True))


# Queries and judgments of a BEIR folder.


class JudgedQueries(NamedTuple):
    """The queries that a split judges, and its judgments.

    ``rows`` of shape (n_queries,) are their positions among the ``n_rows`` queries of
    ``queries.jsonl``; ``judged`` has the ids of the file of judgments, which ``where`` names.
    """

    queries: tuple[Query, ...]
    rows: IntArray
    n_rows: int
    judged: Qrels
    where: str


def checked_folder(folder: PathLike) -> Path:
    """Return the path of a BEIR folder.

    Raises
    ------
    DataError
        If there is no folder of that name, or nothing of the kind in it.
    """
    root = Path(folder)
    inside = sorted(path.name for path in root.glob("*"))
    if not any(name.startswith(("corpus", "queries", "qrels")) for name in inside):
        held = f"holds {', '.join(inside[:_SHOWN]) or 'nothing'}"
        what = held if root.exists() else "does not exist"
        raise DataError(
            f"{root} {what}; expected a folder with corpus/<source>.jsonl or corpus.jsonl, "
            "queries.jsonl and qrels/<split>.tsv"
        )
    return root


def query_files(root: Path) -> list[Path]:
    """Return the file of queries, or the Parquet files in the folder of that name, if any."""
    beside = [path for _, path in _tables(root, "queries")][:1]
    return beside or [path for _, path in _tables(root / "queries")]


def splits_of(root: Path) -> dict[str, Path]:
    """Return the file of judgments of each split: ``qrels/<split>.tsv``, or as hubs name it."""
    # of several files of a split the last one stands: the plain one, not that in .gz
    files = [*_tables(root / "data"), *reversed(_tables(root / "qrels"))]
    return dict(sorted(dict(files).items()))


def read_judged_queries(root: Path, *, split: str, grade_scale: float = 1) -> JudgedQueries:
    """Read ``qrels/<split>.tsv``, and from ``queries.jsonl`` the queries it judges, in file order.

    Raises
    ------
    DataError
        If a file is missing, empty or malformed, or no judgment fits the queries.
    """
    splits = splits_of(root)
    if split not in splits:
        raise DataError(
            f"{root / 'qrels'} has no split {split!r} ({split}.tsv); splits found: "
            f"{sorted(splits) or 'none'}"
        )
    qrels_file = splits[split]
    judged = read_qrels(qrels_file, scale=grade_scale)
    files = query_files(root) or [root / "queries.jsonl"]
    every = list(chain.from_iterable(map(read_queries, files)))
    return judged_queries(every, judged, str(qrels_file))


def judged_queries(every: Sequence[Query], judged: Qrels, where: str) -> JudgedQueries:
    """Return those of the queries that are judged; see :class:`JudgedQueries`.

    Raises
    ------
    DataError
        If no judgment fits the queries.
    """
    wanted = set(judged.query_ids)
    rows = [row for row, query in enumerate(every) if query.query_id in wanted]
    report_unknown("query", judged.query_ids, [query.query_id for query in every], where=where)
    return JudgedQueries(
        queries=tuple(every[row] for row in rows),
        rows=np.array(rows, dtype=np.int64),
        n_rows=len(every),
        judged=judged,
        where=where,
    )


# BEIR folders: corpus, queries and judgments, with several versions per document.
# Two layouts of the corpus are understood.
# *Paired*: ``corpus/<source>.jsonl``, one file per source, in which versions of a document share
# its ``_id``. The document ids become ``"<_id>@<source>"``, ``_id`` becomes the pair id, and a
# judgment of ``_id`` is copied to every version. See :func:`source_of_stem` for the sources.
# *Plain*: ``corpus.jsonl``. Tags come from ``tags.tsv``, ``.csv`` or ``.jsonl`` in the folder
# (:func:`read_tags`); documents without a row there may declare ``"human"`` or ``"llm:<model>"``
# in ``metadata.source``. Judgments use the document ids.


def read_beir(
    folder: PathLike,
    *,
    split: str = "test",
    name: str | None = None,
    titles: bool = True,
    grade_scale: float = 1,
) -> Dataset:
    """Read a BEIR folder: a corpus, ``queries.jsonl`` and ``qrels/<split>.tsv``, plain or .gz.

    A paired corpus is one file ``corpus/<source>.jsonl`` per source, in which versions of a
    document share its ``_id`` (see :func:`source_of_stem` for the sources). The document ids become
    ``"<_id>@<source>"``, ``_id`` becomes the pair id, and a judgment of ``_id`` is copied to every
    version. A plain corpus is ``corpus.jsonl``, with tags in ``tags.tsv``, ``.csv`` or ``.jsonl``
    beside it (:func:`read_tags`) or in ``metadata.source`` of its documents; judgments use the
    document ids.

    Parameters
    ----------
    folder : path
    split : str
        Only queries with judgments in this split are kept.
    name : str or None
        None takes the name of the folder.
    titles : bool
        Whether a title goes before its text, as retrievers usually index it. Dai et al. (KDD 2024)
        blanked the titles: use False to follow them.
    grade_scale : float
        Grades are multiplied by it: 2 where they are 0, .5 and 1.

    Returns
    -------
    Dataset
        Design ``"rewrites"`` for the paired layout, ``"unknown"`` for the plain one. Judgments of
        queries that are not in the folder are left out, with a warning; those of documents that
        are not in it are kept, as trec_eval keeps them, and count in every ideal ranking.

    Raises
    ------
    DataError
        If a part is missing, empty or malformed, an ``_id`` occurs twice in a file, or no
        judgment fits the corpus or the queries.
    """
    root = checked_folder(folder)
    asked = read_judged_queries(root, split=split, grade_scale=grade_scale)
    found = read_corpus(root, titles=titles)
    return Dataset(
        name=name or root.resolve().name,
        corpus=found.corpus,
        queries=asked.queries,
        qrels=assemble_judged(
            asked.judged,
            query_ids=[query.query_id for query in asked.queries],
            doc_ids=found.corpus.doc_ids,
            rows=found.rows,
            where=asked.where,
        ),
        design="rewrites" if found.paired else "unknown",
    )


# Texts by id.


def read_texts(path: PathLike) -> dict[str, str]:
    """Read documents as a mapping from id to text, a title before it.

    Parameters
    ----------
    path : path
        As :func:`~rag_sourcebias.intake.documents.read_documents` takes it, or a BEIR folder, in
        which a document of ``corpus/<source>.jsonl`` is called ``<_id>@<source>``, as in an audit.

    Raises
    ------
    DataError
        As :func:`~rag_sourcebias.intake.documents.read_documents`.
    """
    folder = Path(path).is_dir()
    corpus = read_corpus(Path(path)).corpus if folder else as_corpus([read_documents(path)])
    return dict(corpus)
