"""A data set of rewrites as a BEIR folder in the paired layout."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rag_sourcebias.core.codec import PathLike, jsonl_text, write_atomic
from rag_sourcebias.core.data import Dataset, DocTags, Query
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.rewrites import stem_of


def write_beir(dataset: Dataset, folder: PathLike, *, split: str = "test") -> None:
    """Write ``corpus/<source>.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv``.

    Source, pair id and style of each document are kept; origin and confidence are not (whatever a
    corpus file holds is declared).

    Parameters
    ----------
    dataset : Dataset
        Each document has a source, and ``"<pair_id>@<source>"`` as its id; versions of a document
        have the same grades.
    folder : path
        Made if missing; files of the same names are replaced.
    split : str

    Raises
    ------
    DataError
        If the data set is not of that form; the message names the first document that is not.
    """
    root = Path(folder)
    tags = {doc_id: dataset.corpus.tags.get(doc_id) for doc_id in dataset.corpus.doc_ids}
    for doc_id, tag in tags.items():
        if tag.source is None or doc_id != f"{tag.pair_id}@{tag.source}":
            raise DataError(
                f"document {doc_id!r} (source {tag.source!r}, pair id {tag.pair_id!r}) does not "
                "fit the paired layout, whose ids are '<pair_id>@<source>'"
            )
    stems = {source: stem_of(source) for source in dataset.corpus.tags.sources}
    judgments = list(_judgments(dataset, tags))
    make_folders(root, "corpus", "qrels")
    write_judged(root, dataset.queries, judgments, split=split)
    for source, stem in stems.items():
        rows: Iterator[dict[str, Any]] = (
            {"_id": tags[doc_id].pair_id, "title": "", "text": text}
            | ({"metadata": {"style": style}} if (style := tags[doc_id].style) else {})
            for doc_id, text in dataset.corpus
            if tags[doc_id].source == source
        )
        write_atomic(root / "corpus" / f"{stem}.jsonl", jsonl_text(rows))


def make_folders(root: Path, *parts: str) -> None:
    """Make parts of a folder."""
    try:
        for part in parts:
            (root / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{root} cannot be written: {error.strerror or error}") from error


def write_judged(
    root: Path, queries: Iterable[Query], judgments: Iterable[tuple[str, str, int]], *, split: str
) -> None:
    """Write ``queries.jsonl`` and ``qrels/<split>.tsv``; judgments are (query, document, grade)."""
    lines = ["query-id\tcorpus-id\tscore\n"]
    for query_id, doc_id, grade in judgments:
        if any(mark in text for mark in "\t\r\n" for text in (query_id, doc_id)):
            raise DataError(f"id {query_id!r} or {doc_id!r} holds a tab or a line break")
        lines.append(f"{query_id}\t{doc_id}\t{grade}\n")
    rows = ({"_id": query.query_id, "text": query.text} for query in queries)
    write_atomic(root / "queries.jsonl", jsonl_text(rows))
    write_atomic(root / "qrels" / f"{split}.tsv", lines)


def _judgments(dataset: Dataset, tags: dict[str, DocTags]) -> Iterator[tuple[str, str, int]]:
    """Judgments of pair ids; all versions of a document must agree."""
    qrels = dataset.qrels
    versions = Counter(tag.pair_id for tag in tags.values())
    grades: dict[tuple[str, str], list[int]] = {}
    for query, doc, grade in zip(qrels.query_codes, qrels.doc_codes, qrels.grades, strict=True):
        doc_id = qrels.doc_ids[doc]
        pair_id = tags[doc_id].pair_id if doc_id in tags else None
        if pair_id is None:
            raise DataError(f"document {doc_id!r} is judged but not in the corpus")
        grades.setdefault((qrels.query_ids[query], pair_id), []).append(int(grade))
    for (query_id, pair_id), found in grades.items():
        if len(found) != versions[pair_id] or len(set(found)) > 1:
            raise DataError(
                f"query {query_id!r}: the {versions[pair_id]} versions of {pair_id!r} have grades "
                f"{found}; the paired layout needs the same grade for each of them"
            )
        yield query_id, pair_id, found[0]
