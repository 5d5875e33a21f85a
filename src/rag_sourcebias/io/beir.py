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

from collections.abc import Sequence

from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.io.beir_judgments import OnUnknown, assemble_judged
from rag_sourcebias.io.beir_queries import checked_folder, read_judged_queries
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.types import Dataset

__all__ = ["read_beir"]


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
    root = checked_folder(folder)
    asked = read_judged_queries(root, split=split, on_unknown=on_unknown)
    found = read_corpus(root, sources=sources, titles=titles)
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
            on_unknown=on_unknown,
        ),
        design="rewrites" if found.paired else "unknown",
    )
