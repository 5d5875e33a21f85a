"""Write a data set of rewrites as a BEIR folder in the paired layout."""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import numpy as np

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, IntArray, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError, require_name
from rag_sourcebias.intake.belong import Ids, Kind, require_common
from rag_sourcebias.intake.files import PathLike, jsonl_text, read_jsonl, read_lines, write_atomic
from rag_sourcebias.intake.judgments import read_qrels, read_tags
from rag_sourcebias.intake.tables import (
    ids_of,
    open_parquet,
    parquet_columns,
    pyarrow_modules,
    read_table,
)

# Rows of BEIR corpus and query files, checked one by one.


_NEEDED = ("_id", "text")
_TAGS = ("source", "style", "pair_id")
_OPTIONAL = ("title", *_TAGS)


def parquet_rows(
    path: Path, *, groups: Sequence[int] | None = None, first: int = 1
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Give the rows of some row groups as JSON lines would hold them, numbered from ``first``.

    Raises
    ------
    DataError
        If the file cannot be read, lacks a column, or a column is of another type.
    MissingExtraError
        If pyarrow is not installed.
    """
    pa, _ = pyarrow_modules(f"reading {path.name}")
    with open_parquet(path) as file:
        check_columns(pa, file.schema_arrow, path)
        every = file.schema_arrow.names
        names = [name for name in (*_NEEDED, *_OPTIONAL, "metadata") if name in every]
        columns = parquet_columns(file, path, names, groups=groups)
        chosen = range(file.num_row_groups) if groups is None else groups
        n_rows = sum(file.metadata.row_group(group).num_rows for group in chosen)
    if any(len(values) != n_rows for values in columns.values()):
        raise DataError(
            f"{path} does not hold the {n_rows} rows it is said to hold; write the file again"
        )
    for number, cells in enumerate(zip(*columns.values(), strict=True), start=first):
        row = dict(zip(columns, cells, strict=True))
        tags = {name: row.pop(name) for name in _TAGS if name in row}
        yield number, row | {"metadata": {**metadata_of(row), **tags}}


def check_columns(pa: Any, schema: Any, path: Path) -> None:  # noqa: ANN401 - pyarrow is untyped
    """Refuse Parquet that lacks a column of a corpus, or has one of another type."""

    def fits(name: str) -> bool:
        found = schema.field(name).type
        kind = found.value_type if pa.types.is_dictionary(found) else found
        return bool(
            pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or (name == "_id" and pa.types.is_integer(kind))
            or (name in _OPTIONAL and kind == pa.null())
        )

    names = schema.names
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        raise DataError(
            f"{path} lacks column {' and '.join(missing)}; found {names}, expected _id and text, "
            f"optionally {', '.join(_OPTIONAL)}"
        )
    for name in (*_NEEDED, *_OPTIONAL):
        if names.count(name) > 1:
            raise DataError(f"{path} has {names.count(name)} columns {name!r}; keep one")
        if name in names and not fits(name):
            raise DataError(
                f"{path}: column {name!r} is of type {schema.field(name).type}; expected text"
                + (" or whole numbers" if name == "_id" else "")
            )


def read_rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Stream the ids and rows of a BEIR corpus or query file.

    Returns
    -------
    iterator of (str, mapping)
        ``_id``, a whole number as text, and the row, whose ``text`` is a string and whose
        ``title`` is a string, None or absent.

    Raises
    ------
    DataError
        If the file is empty or malformed, or an ``_id`` occurs twice.
    """
    if file.suffix == ".parquet":
        return check_rows(file, parquet_rows(file), unit="row")
    return check_rows(file, read_jsonl(file))


def check_rows(
    file: Path,
    rows: Iterable[tuple[int, Mapping[str, Any]]],
    *,
    unit: Literal["line", "row"] = "line",
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Check numbered rows of a BEIR file one by one: all of it, or a part.

    Parameters
    ----------
    file : Path
        Named by errors.
    rows : iterable of (int, mapping)
    unit : {"line", "row"}
        What the numbers count.

    Yields
    ------
    tuple of (str, mapping)
        As :func:`read_rows`, which says what is checked.
    """
    colon = ":" if unit == "line" else ": row "
    line_of: dict[str, int] = {}
    for number, row in rows:
        row_id = row.get("_id")
        title = row.get("title")
        if isinstance(row_id, int) and not isinstance(row_id, bool):
            row_id = str(row_id)
        fault = None
        if not isinstance(row_id, str) or not row_id:
            fault = f"_id {row_id!r} must be a non-empty string; keys are {list(row)}"
        elif row_id in line_of:
            fault = (
                f"_id {row_id!r} was used already in {unit} {line_of[row_id]}; "
                "each row needs its own _id"
            )
        elif not isinstance(row.get("text"), str):
            fault = f"text of _id {row_id!r} must be a string; keys are {list(row)}"
        elif not isinstance(title, str | None):
            fault = f"title of _id {row_id!r} must be a string"
        if fault is not None:
            raise DataError(f"{file}{colon}{number}: {fault}")
        row_id = str(row_id)
        line_of[row_id] = number
        if "metadata" in row:
            _check_names(row, f"{file}{colon}{number}")
        yield row_id, row
    if not line_of:
        raise DataError(f"{file} is empty; expected one JSON object with _id and text per line")


def _check_names(row: Mapping[str, Any], where: str) -> None:
    metadata = metadata_of(row)
    style = metadata.get("style")
    source = metadata.get("source")
    if isinstance(style, str) and not style.isprintable() and style.strip():
        require_name(style, "style", where)
    # elsewhere the key often holds what is no tag, and is not read as one
    if isinstance(source, str) and not source.isprintable() and source.startswith("llm:"):
        require_name(source, "source", where)


def document_text(row: Mapping[str, Any], *, titles: bool) -> str:
    """Return the text to index: the title, if wanted, a space, and the text, stripped."""
    return f"{(titles and row.get('title')) or ''} {row['text']}".strip()


def metadata_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a row, empty if there is none."""
    metadata = row.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def metadata_text(row: Mapping[str, Any], key: str) -> str | None:
    """Return a metadata value that is a non-empty string, else None."""
    value = metadata_of(row).get(key)
    return value if isinstance(value, str) and value.strip() else None


# From judgments as a file gives them to judgments of the rows of a corpus.


_logger = logging.getLogger("rag_sourcebias.intake")


def report_unknown(
    kind: Kind,
    ids: Sequence[str],
    known: Collection[str],
    *,
    where: str,
) -> None:
    """Warn about judged ids that a data set does not hold.

    Parameters
    ----------
    kind : {"query", "document"}
    ids : sequence of str
        As judged.
    known : collection of str
    where : str
        Names the file of judgments.

    Raises
    ------
    DataError
        If no id is known.
    """
    held = set(known)
    unknown = [i for i in ids if i not in held]
    of = "queries.jsonl" if kind == "query" else "the corpus"
    require_common(kind, Ids(where, ids), Ids(of, list(known)))
    if unknown:
        _logger.warning(
            "%s: judged %s ids that %s does not hold: %d of %d, first %s; their judgments were "
            "dropped",
            where,
            kind,
            of,
            len(unknown),
            len(ids),
            unknown[:3],
        )


def rows_as_judged(doc_ids: Sequence[str], judged_as: Callable[[str], str]) -> dict[str, list[int]]:
    """Return the positions of the versions of each document, by the id that judgments use."""
    rows: dict[str, list[int]] = {}
    for row, doc_id in enumerate(doc_ids):
        rows.setdefault(judged_as(doc_id), []).append(row)
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
    holds every judged document has the same judgments in the same order, with other codes.

    Parameters
    ----------
    judged : Qrels
        As :func:`read_qrels` gives them.
    query_ids : sequence of str
        The queries to keep, in this order.
    doc_ids : sequence of str
        The documents, in row order: the vocabulary of the result.
    rows : mapping of str to sequence of int
        Positions in ``doc_ids`` of the versions of each document, by the id that judgments use;
        empty for one that exists and is left out.
    where : str
        Names the file of judgments, for messages.

    Raises
    ------
    DataError
        If no judged document is in ``rows``.
    """
    report_unknown("document", judged.doc_ids, rows, where=where)
    counts = np.array([len(rows.get(d, ())) for d in judged.doc_ids], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)])
    flat = np.array([r for d in judged.doc_ids for r in rows.get(d, ())], dtype=np.int32)
    code_of = {query_id: code for code, query_id in enumerate(query_ids)}
    query_codes = np.array([code_of.get(q, -1) for q in judged.query_ids], dtype=np.int32)
    known = query_codes[judged.query_codes] >= 0
    docs = judged.doc_codes[known]
    copies = counts[docs]
    # Position of each copy within its document's versions: 0, 1, … restarting at every judgment.
    within = np.arange(int(copies.sum())) - np.repeat(np.cumsum(copies) - copies, copies)
    return Qrels(
        query_ids=tuple(query_ids),
        doc_ids=tuple(doc_ids),
        query_codes=np.repeat(query_codes[judged.query_codes[known]], copies),
        doc_codes=flat[np.repeat(starts[docs], copies) + within],
        grades=np.repeat(judged.grades[known], copies),
        n_negative=judged.n_negative,
    )


# Tags of a plain BEIR corpus: from a tag file, or declared by its rows.


def tag_file(folder: Path) -> Path | None:
    """Return the tag file beside a plain corpus, None if there is none.

    Raises
    ------
    DataError
        If there are several.
    """
    files = [
        file
        for ending in ("tsv", "csv", "jsonl")
        for gz in ("", ".gz")
        if os.path.lexists(file := folder / f"tags.{ending}{gz}")
    ]
    if len(files) > 1:
        raise DataError(f"{folder} holds {', '.join(f.name for f in files)}; keep one tag file")
    return files[0] if files else None


def read_documents(
    rows: Iterable[tuple[str | None, str, Mapping[str, Any]]],
    *,
    titles: bool,
    table: TagTable | None,
) -> tuple[list[str], list[tuple[str, DocTags]], list[str]]:
    """Return texts, ids with tags, and source values that are no tag.

    Parameters
    ----------
    rows : iterable of (str or None, str, mapping)
        Source of the file in the paired layout, ``_id`` and row. Without a source the row of the
        tag table goes before what the document's own row declares.
    """
    texts: list[str] = []
    items: list[tuple[str, DocTags]] = []
    strange: list[str] = []
    for source, doc_id, row in rows:
        texts.append(document_text(row, titles=titles))
        style = metadata_text(row, "style")
        if source is not None:
            tags = DocTags(source=source, pair_id=doc_id, style=style, origin="declared")
            items.append((f"{doc_id}@{source}", tags))
        else:
            # Elsewhere the key often holds a path, an address or a publisher: that is no tag.
            value = metadata_of(row).get("source")
            known = isinstance(value, str) and (value == "human" or value.startswith("llm:"))
            if value and not known:
                strange.append(str(value))
            tags = DocTags(
                source=value if known else None,
                style=style,
                pair_id=metadata_text(row, "pair_id"),
                origin="declared" if known else None,
            )
            items.append((doc_id, table.get(doc_id) if table and doc_id in table.row_of else tags))
    return texts, items, strange


def report_strange(where: object, strange: Sequence[str]) -> None:
    """Warn about source values that were not read as tags, if there are any."""
    if strange:
        _logger.warning(
            "%s: %d metadata.source value(s) such as %r were not read as tags: only 'human' and "
            "'llm:<model>' are; use a tags.tsv for other names",
            where,
            len(strange),
            strange[0],
        )


# The corpus part of a BEIR folder, in its paired and its plain layout.


class BeirCorpus(NamedTuple):
    """A corpus and how the ids of its judgments map to it.

    ``rows`` gives, for each id that judgments may use, the corpus rows of its versions.
    """

    corpus: Corpus
    rows: Mapping[str, Sequence[int]]
    paired: bool


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


def read_corpus(folder: Path, *, titles: bool) -> BeirCorpus:
    """Read ``corpus/<source>.jsonl`` files or ``corpus.jsonl``, whichever the folder has."""
    files = corpus_files(folder)
    paired = files[0][0] is not None
    tags_file = None if paired else tag_file(folder)
    table = read_tags(tags_file) if tags_file else None
    texts, items, strange = read_documents(
        ((source, *row) for source, file in files for row in read_rows(file)),
        titles=titles,
        table=table,
    )
    corpus = Corpus(texts=tuple(texts), tags=TagTable.from_tags(items))
    if paired:
        return BeirCorpus(
            corpus=corpus,
            rows=rows_as_judged([str(tags.pair_id) for _, tags in items], str),
            paired=True,
        )
    report_strange(files[0][1], strange)
    tagged = table.doc_ids if table else ()
    require_common("document", Ids(str(tags_file), tagged), Ids("the corpus", corpus.doc_ids))
    extra = [d for d in tagged if d not in corpus.tags.row_of]
    if extra:
        _logger.warning(
            "%s: tags of %d document(s) that are not in the corpus were dropped, first %s",
            folder,
            len(extra),
            extra[:3],
        )
    rows = {doc_id: (row,) for row, doc_id in enumerate(corpus.doc_ids)}
    return BeirCorpus(corpus=corpus, rows=rows, paired=False)


def corpus_files(folder: Path) -> list[tuple[str | None, Path]]:
    """Find the files of a corpus, in row order, each with the source it holds.

    The source is None for a plain corpus, whose documents have sources of their own:
    ``corpus.jsonl``, ``corpus.parquet``, or the Parquet files of a folder ``corpus``.

    Raises
    ------
    DataError
        If there are none, files of several layouts, or two files of one source.
    """
    inside = sorted((folder / "corpus").glob("*"))
    paired = [path for path in inside if path.name.endswith(_JSON_LINES)]
    parquet = [path for path in inside if path.suffix == ".parquet"]
    plain = [folder / f"corpus{ending}" for ending in (".parquet", *_JSON_LINES)]
    plain = [path for path in plain if path.is_file()]
    layouts = [layout for layout in (plain, parquet, paired) if layout]
    if len(layouts) != 1 or len(plain) > 1:
        found = ", ".join(str(p.relative_to(folder)) for layout in layouts for p in layout)
        raise DataError(
            f"{folder} holds {found or 'no corpus'}; expected one corpus: corpus/<source>.jsonl "
            "(versions of a document share its _id), corpus.jsonl, both plain or .gz, "
            "corpus.parquet or corpus/*.parquet"
        )
    if not paired:
        return [(None, path) for path in layouts[0]]
    by_source: dict[str | None, Path] = {}
    for file in paired:
        stem = file.name.removesuffix(".gz").removesuffix(".jsonl")
        source = require_name(source_of_stem(stem), "source", str(file))
        if source in by_source:
            raise DataError(f"{by_source[source]} and {file} both hold source {source!r}; keep one")
        by_source[source] = file
    return list(by_source.items())


# Queries and judgments of a BEIR folder.


_SHOWN = 5  # names of what is in a folder
_JSON_LINES = (".jsonl", ".jsonl.gz")
_SPLIT = re.compile(r"(.+?)(?:-00000-of-00001)?\.(?:tsv|txt|csv|jsonl|parquet)(?:\.gz)?")


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
    inside = sorted(path.name for path in root.iterdir()) if root.is_dir() else []
    if not any(name.startswith(("corpus", "queries", "qrels")) for name in inside):
        what = "is not a folder" if root.exists() else "does not exist"
        if root.is_dir():
            what = f"holds {', '.join(inside[:_SHOWN]) or 'nothing'}"
        raise DataError(
            f"{root} {what}; expected a folder with corpus/<source>.jsonl or corpus.jsonl, "
            "queries.jsonl and qrels/<split>.tsv"
        )
    return root


def query_files(root: Path) -> list[Path]:
    """Return the file of queries, or the Parquet files in the folder of that name, if any."""
    names = [root / f"queries{ending}" for ending in (*_JSON_LINES, ".parquet")]
    found = [path for path in names if path.is_file()][:1]
    return found or sorted((root / "queries").glob("*.parquet"))


def splits_of(root: Path) -> dict[str, Path]:
    """Return the file of judgments of each split: ``qrels/<split>.tsv``, or as hubs name it."""
    files = [*(root / "data").glob("*.parquet"), *sorted((root / "qrels").glob("*"), reverse=True)]
    # of several files of a split the last one stands: the plain one, not that in .gz
    found = {name[1]: path for path in files if (name := _SPLIT.fullmatch(path.name))}
    return dict(sorted(found.items()))


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
    wanted = set(judged.query_ids)
    texts: dict[str, str] = {}
    rows: list[int] = []
    every: list[str] = []
    for file in query_files(root) or [root / "queries.jsonl"]:
        for query_id, row in read_rows(file):
            if query_id in wanted:
                texts[query_id] = row["text"].strip()
                rows.append(len(every))
            every.append(query_id)
    where = str(qrels_file)
    report_unknown("query", judged.query_ids, every, where=where)
    return JudgedQueries(
        queries=tuple(Query(query_id=q, text=text) for q, text in texts.items()),
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
        documents or queries that are not in the folder are left out, with a warning; a query whose
        judged documents are all missing is kept: it counts in every mean.

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


# Write a data set of rewrites as a BEIR folder in the paired layout.


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
    stems = {source: _file_stem(source) for source in dataset.corpus.tags.sources}
    judgments = [f"{query}\t{pair}\t{grade}\n" for query, pair, grade in _judgments(dataset, tags)]
    try:
        (root / "corpus").mkdir(parents=True, exist_ok=True)
        (root / "qrels").mkdir(exist_ok=True)
    except OSError as error:
        raise DataError(f"{root} cannot be written: {error.strerror or error}") from error
    for source, stem in stems.items():
        rows: Iterator[dict[str, Any]] = (
            {"_id": tags[doc_id].pair_id, "title": "", "text": text}
            | ({"metadata": {"style": style}} if (style := tags[doc_id].style) else {})
            for doc_id, text in dataset.corpus
            if tags[doc_id].source == source
        )
        write_atomic(root / "corpus" / f"{stem}.jsonl", jsonl_text(rows))
    queries = ({"_id": q.query_id, "text": q.text} for q in dataset.queries)
    write_atomic(root / "queries.jsonl", jsonl_text(queries))
    write_atomic(root / "qrels" / f"{split}.tsv", ["query-id\tcorpus-id\tscore\n", *judgments])


def _file_stem(source: str) -> str:

    plain = source.replace("%", "%25").replace("/", "%2F")
    for stem in (plain.removeprefix("llm:"), plain):
        if stem and not stem.startswith(".") and source_of_stem(stem) == source:
            return stem
    raise DataError(
        f"source {source!r} cannot be a file of the paired layout; use 'human' or 'llm:<model>'"
    )


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
        if any("\t" in i or "\n" in i or "\r" in i for i in (query_id, pair_id)):
            raise DataError(f"id {query_id!r} or {pair_id!r} holds a tab or a line break")
        yield query_id, pair_id, found[0]


# Texts by id, from tables and BEIR files.


TextKind = Literal["query", "document"]
_ID_COLUMNS = {
    "query": ("query_id", "query-id", "qid", "_id", "id", "topic"),
    "document": ("doc_id", "docid", "docno", "corpus-id", "passage_id", "pid", "_id", "id"),
}
_TEXT_COLUMNS = {
    "query": ("text", "query", "question", "title"),
    "document": ("text", "contents", "passage", "body", "document"),
}


def read_texts(path: PathLike, kind: TextKind) -> Mapping[str, str]:
    """Read queries or documents as a mapping from id to text.

    Parameters
    ----------
    path : path
        CSV, TSV, JSON lines (also .gz) or Parquet with an id (``_id``, ``query_id``, ``doc_id``,
        …) and a text (``text``, ``query``, ``contents``, …); a ``title`` of a document goes before
        its text. Two tab-separated columns without a header are id and text, as TREC and MS MARCO
        write queries. For documents also a BEIR folder: a document of ``corpus/<source>.jsonl`` is
        then called ``<_id>@<source>``, as in an audit.

    Raises
    ------
    DataError
        If no column is recognised as id or text, or an id is empty or occurs twice.
    """
    file = Path(path)
    if kind == "document" and file.is_dir():
        corpus = read_corpus(file, titles=True).corpus
        return dict(zip(corpus.doc_ids, corpus.texts, strict=True))
    if (plain := _without_header(path, kind)) is not None:
        return plain
    chosen: list[str] = []

    def choose(names: tuple[str, ...]) -> list[str]:
        for what, known in (("id", _ID_COLUMNS[kind]), ("text", _TEXT_COLUMNS[kind])):
            found = next((n for k in known for n in names if n.lower() == k), None)
            if found is None:
                raise DataError(
                    f"{os.fspath(path)}: no column is recognised as {kind} {what}; its columns are "
                    f"{', '.join(names)}; call it {known[0]}"
                )
            chosen.append(found)
        if kind == "document":
            chosen.extend(n for n in names if n.lower() == "title" and n not in chosen)
        return chosen

    table = read_table(path, choose)
    ids = ids_of(table, (chosen[0],))
    rows = zip(*(table.columns[c] for c in (*chosen[2:], chosen[1])), strict=True)
    texts = (" ".join(str(cell) for cell in row if cell).strip() for row in rows)
    return dict(zip(ids, texts, strict=True))


def _without_header(path: PathLike, kind: TextKind) -> dict[str, str] | None:
    """Read id and text of two columns whose first line names neither; None for other files."""
    if not os.fspath(path).removesuffix(".gz").endswith((".tsv", ".txt")):
        return None
    first = next(read_lines(path), (0, ""))[1].split("\t")
    known = {*_ID_COLUMNS[kind], *_TEXT_COLUMNS[kind]}
    if len(first) != 2 or any(cell.strip().lower() in known for cell in first):
        return None
    texts: dict[str, str] = {}
    for number, line in read_lines(path):
        name, tab, text = line.partition("\t")
        if not tab or not name.strip() or name.strip() in texts:
            raise DataError(
                f"{os.fspath(path)}:{number}: expected an id that occurs once, a tab and a text, "
                f"found {line[:80]!r}"
            )
        texts[name.strip()] = text.strip()
    return texts
