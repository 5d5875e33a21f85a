"""BEIR folders: corpus, queries and judgments, with several versions per document.

Two layouts of the corpus are understood.

*Paired*: ``corpus/<source>.jsonl``, one file per source, in which versions of a document share
its ``_id``. The document ids become ``"<_id>@<source>"``, ``_id`` becomes the pair id, and a
judgment of ``_id`` is copied to every version. See :func:`source_of_stem` for the sources.

*Plain*: ``corpus.jsonl``. Tags come from ``tags.tsv``, ``.csv`` or ``.jsonl`` in the folder
(:func:`read_tags`); documents without a row there may declare ``"human"`` or
``"llm:<model>"`` in ``metadata.source``. Judgments use the document ids.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import BeirCorpus, read_corpus
from rag_sourcebias.io.beir_rows import read_rows
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.trec import read_qrels
from rag_sourcebias.types import Dataset, Qrels, Query

__all__ = ["read_beir"]

_logger = logging.getLogger("rag_sourcebias.io")
_SPLIT_ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")
OnUnknown = Literal["drop", "error"]


def read_beir(
    folder: PathLike,
    *,
    split: str = "test",
    name: str | None = None,
    sources: Sequence[str] | None = None,
    titles: bool = True,
    on_unknown: OnUnknown = "drop",
) -> Dataset:
    """Read a BEIR folder: a corpus, ``queries.jsonl`` and ``qrels/<split>.tsv``, plain or .gz.

    The corpus is paired (``corpus/<source>.jsonl``) or plain (``corpus.jsonl``): see the module.

    Parameters
    ----------
    folder : path
    split : str
        Only queries with judgments in this split are kept.
    name : str or None
        None takes the name of the folder.
    sources : sequence of str or None
        Keep only documents of these sources.
    titles : bool
        Whether a title goes before its text, as retrievers usually index it. Dai et al. (KDD 2024)
        blanked the titles: use False to follow them.
    on_unknown : {"drop", "error"}
        What to do with judgments of documents or queries that are not in the folder. ``"drop"``
        logs a warning with their number and first ids. A query whose judged documents are all
        missing is kept: it counts in every mean.

    Returns
    -------
    Dataset
        Design ``"rewrites"`` for the paired layout, ``"unknown"`` for the plain one.

    Raises
    ------
    DataError
        If a part is missing, empty or malformed, an ``_id`` occurs twice in a file, a source asked
        for is absent, or no judgment fits the corpus or the queries.
    """
    if on_unknown not in get_args(OnUnknown):
        raise DataError(f"on_unknown {on_unknown!r} is neither 'drop' nor 'error'")
    root = _checked_folder(Path(folder))
    qrels_file = _split_file(root, split)
    queries_file = _either(root / "queries.jsonl")
    found = read_corpus(root, sources=sources, titles=titles)
    judged = read_qrels(qrels_file)
    queries = _read_queries(queries_file, judged)
    _report_unknown(judged, queries, found, str(qrels_file), on_unknown)
    return Dataset(
        name=name or root.resolve().name,
        corpus=found.corpus,
        queries=tuple(Query(query_id=q, text=text) for q, text in queries.items()),
        qrels=_copied(judged, found, list(queries)),
        design="rewrites" if found.paired else "unknown",
    )


def _checked_folder(root: Path) -> Path:
    if not root.is_dir():
        what = "is not a folder" if root.exists() else "does not exist"
        raise DataError(
            f"{root} {what}; expected a folder with corpus/<source>.jsonl or corpus.jsonl, "
            "queries.jsonl and qrels/<split>.tsv"
        )
    return root


def _either(path: Path) -> Path:
    """Return the file, or its .gz sibling where only that exists."""
    packed = path.with_name(path.name + ".gz")
    return packed if packed.is_file() and not path.is_file() else path


def _split_file(root: Path, split: str) -> Path:
    folder = root / "qrels"
    for ending in _SPLIT_ENDINGS:
        if (folder / f"{split}{ending}").is_file():
            return folder / f"{split}{ending}"
    names = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    splits = {n.removesuffix(e) for n in names for e in _SPLIT_ENDINGS if n.endswith(e)}
    raise DataError(
        f"{folder} has no split {split!r} ({split}.tsv); splits found: {sorted(splits) or 'none'}"
    )


def _read_queries(file: Path, judged: Qrels) -> dict[str, str]:
    """Texts of the judged queries, in the order of the file."""
    wanted = set(judged.query_ids)
    return {query: row["text"].strip() for query, row in read_rows(file) if query in wanted}


def _report_unknown(
    judged: Qrels,
    queries: Mapping[str, str],
    found: BeirCorpus,
    where: str,
    on_unknown: OnUnknown,
) -> None:
    for kind, ids, known in (
        ("queries that queries.jsonl does not hold", judged.query_ids, queries),
        ("documents that the corpus does not hold", judged.doc_ids, found.rows),
    ):
        unknown = [i for i in ids if i not in known]
        text = f"{where}: {kind}: {len(unknown)} of {len(ids)}, first {unknown[:3]}"
        if len(unknown) == len(ids):
            raise DataError(f"{text}; the ids must be those of the _id fields")
        if unknown and on_unknown == "error":
            raise DataError(f"{text}; use on_unknown='drop' to go on without them")
        if unknown:
            _logger.warning("%s; their judgments were dropped", text)


def _copied(judged: Qrels, found: BeirCorpus, query_ids: list[str]) -> Qrels:
    """Give every version of a document the grade of its ``_id``; vocabulary is the corpus."""
    versions: Mapping[str, Sequence[int]] = found.rows
    counts = np.array([len(versions.get(d, ())) for d in judged.doc_ids], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.array([r for d in judged.doc_ids for r in versions.get(d, ())], dtype=np.int32)
    code_of = {query_id: code for code, query_id in enumerate(query_ids)}
    query_codes = np.array([code_of.get(q, -1) for q in judged.query_ids], dtype=np.int32)
    known = query_codes[judged.query_codes] >= 0
    docs = judged.doc_codes[known]
    copies = counts[docs]
    # Position of each copy within its document's versions: 0, 1, … restarting at every judgment.
    ends = np.cumsum(copies)
    within = np.arange(int(copies.sum())) - np.repeat(ends - copies, copies)
    return Qrels(
        query_ids=tuple(query_ids),
        doc_ids=found.corpus.doc_ids,
        query_codes=np.repeat(query_codes[judged.query_codes[known]], copies),
        doc_codes=flat[np.repeat(starts[docs], copies) + within],
        grades=np.repeat(judged.grades[known], copies),
        n_negative=judged.n_negative,
    )
