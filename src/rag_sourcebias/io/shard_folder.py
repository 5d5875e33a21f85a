"""Folders with a corpus too large for memory: BEIR layouts, or Parquet files.

*Paired* and *plain* folders are those of :func:`read_beir`, and give the same documents, ids and
tags in the same order. Corpus files may not be compressed: a shard starts in the middle of one.

*Parquet*: ``corpus.parquet``, or any number of ``corpus/*.parquet`` in the order of their names.
Columns are ``_id`` and ``text``, and maybe ``title``, ``source``, ``style`` and ``pair_id``. They
mean what they mean in a plain folder: judgments use ``_id``, which no two rows of the corpus
share, a source is ``"human"`` or ``"llm:<model>"``, and a tag file goes before the columns.

``queries.jsonl`` and ``qrels/<split>.tsv`` are those of any BEIR folder. They are read at once,
and so are the tags of a tag file, in each process. A corpus whose tags do not fit in memory
declares them in its rows.
"""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.beir_corpus import corpus_files
from rag_sourcebias.io.beir_judgments import OnUnknown
from rag_sourcebias.io.beir_queries import checked_folder, read_judged_queries
from rag_sourcebias.io.beir_tags import tag_file
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.io.shard_corpus import CorpusFile, FolderCorpus
from rag_sourcebias.io.shard_parquet import index_parquet
from rag_sourcebias.io.shard_parts import FileState, index_jsonl, state_fingerprint
from rag_sourcebias.io.sharded_dataset import ShardedDataset

__all__ = ["open_corpus", "open_sharded"]


def open_sharded(
    folder: PathLike,
    *,
    split: str = "test",
    name: str | None = None,
    titles: bool = True,
    shard_documents: int = 50_000,
    on_unknown: OnUnknown = "drop",
) -> ShardedDataset:
    """Open a folder whose corpus is then read a shard at a time.

    JSON-lines files are read once, to find where each shard starts; their rows are checked when
    a shard is read.

    Parameters
    ----------
    folder : path
    split : str
        Only queries with judgments in this split are kept.
    name : str or None
        None takes the name of the folder.
    titles : bool
        Whether a title goes before its text.
    shard_documents : int
        Documents of a shard; the last one of a file has fewer. A shard of Parquet has whole row
        groups: fewer documents, or those of one row group that has more.
    on_unknown : {"drop", "error"}
        What to do with judgments of queries that are not in the folder. Those of unknown
        documents are found later, by :func:`~rag_sourcebias.io.beir_judgments.assemble_judged`.

    Returns
    -------
    ShardedDataset
        Design ``"rewrites"`` for the paired layout, else ``"unknown"``. No text or id of the
        corpus is in it.

    Raises
    ------
    DataError
        If a part is missing or empty, queries or judgments are malformed, a corpus file is
        compressed, or no judgment fits the queries.
    MissingExtraError
        If there are Parquet files and pyarrow is not installed.
    """
    root = checked_folder(folder)
    asked = read_judged_queries(root, split=split, on_unknown=on_unknown)
    corpus = open_corpus(root, name=name, titles=titles, shard_documents=shard_documents)
    return ShardedDataset(
        name=corpus.name,
        corpus=corpus,
        queries=asked.queries,
        query_rows=asked.rows,
        n_query_rows=asked.n_rows,
        judged=asked.judged,
        where=asked.where,
        design="rewrites" if corpus.sources else "unknown",
    )


def open_corpus(
    folder: PathLike,
    *,
    name: str | None = None,
    titles: bool = True,
    shard_documents: int = 50_000,
) -> FolderCorpus:
    """Open the corpus of a folder, without queries and judgments; see :func:`open_sharded`."""
    if shard_documents < 1:
        raise DataError(f"shard_documents is {shard_documents}; expected at least 1")
    # Absolute: other processes may run in other folders.
    root = checked_folder(folder).absolute()
    found = _corpus_files(root)
    files = [_indexed(path, source, shard_documents) for path, source in found.items()]
    # Spark and others write files without rows, which is no mistake as long as others have some.
    if not any(file.parts for file in files):
        raise DataError(f"{files[0].state.path} is empty; expected rows with _id and text")
    paired = files[0].source is not None
    _check_sources([file.source for file in files if file.source is not None])
    tags = None if paired else tag_file(root)
    tags_state = None if tags is None else FileState.of(tags)
    states = [file.state for file in files] + ([tags_state] if tags_state else [])
    return FolderCorpus(
        name=name or root.resolve().name,
        fingerprint=state_fingerprint(states, root, titles, shard_documents),
        files=tuple(files),
        titles=titles,
        tags_file=tags_state,
    )


def _corpus_files(root: Path) -> dict[Path, str | None]:
    """Return the files of the corpus, in row order, with the source each holds."""
    folder = root / "corpus"
    whole = [p for p in (root / "corpus.parquet",) if p.is_file()]
    parquet = whole or (sorted(folder.glob("*.parquet")) if folder.is_dir() else [])
    if not parquet:
        return {path: source for source, path in corpus_files(root).items()}
    others = [p for p in (*root.glob("corpus.jsonl*"), *folder.glob("*.*")) if p not in parquet]
    others = [p for p in others if p.name.endswith((".parquet", ".jsonl", ".jsonl.gz"))]
    if others:
        names = ", ".join(str(p.relative_to(root)) for p in (parquet[0], others[0]))
        raise DataError(
            f"{root} holds {names}; expected one corpus: corpus.parquet, corpus/*.parquet, "
            "corpus.jsonl or corpus/<source>.jsonl"
        )
    return dict.fromkeys(parquet)


def _indexed(path: Path, source: str | None, shard_documents: int) -> CorpusFile:
    if path.suffix == ".gz":
        raise DataError(
            f"{path} is compressed: a shard starts in the middle of its file, which only an "
            f"unpacked one allows; run gunzip on it, or use read_beir, which holds all in memory"
        )
    # Looked at before it is read: a change in between is then seen later.
    state = FileState.of(path)
    index = index_parquet if path.suffix == ".parquet" else index_jsonl
    return CorpusFile(state=state, source=source, parts=tuple(index(path, shard_documents)))


def _check_sources(sources: list[str]) -> None:
    for source in sources:
        longer = next((s for s in sources if s.endswith(f"@{source}")), None)
        if longer is not None:
            raise DataError(
                f"sources {source!r} and {longer!r} cannot be told apart at the end of a document "
                "id; rename one of their files"
            )
