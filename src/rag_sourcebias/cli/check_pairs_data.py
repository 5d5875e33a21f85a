"""The data that ``check-pairs`` reads: with judgments where there are some."""

from __future__ import annotations

from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io import load_dataset, load_sample, read_beir
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.types import Corpus, Dataset

__all__ = ["has_judgments", "load_paired"]


def load_paired(
    folder: Path | None, *, sample: bool, dataset: str | None, split: str
) -> Dataset | Corpus:
    """Read a BEIR folder, which may lack ``qrels/`` or ``queries.jsonl``, or a named data set.

    Raises
    ------
    DataError
        If none or several are given, or the folder holds no corpus.
    """
    if sum([bool(folder), sample, bool(dataset)]) != 1:
        raise DataError("give one data set: a BEIR folder, --sample, or --dataset <name>")
    if folder is None:
        return load_sample() if sample else load_dataset(dataset or "")
    if not folder.is_dir() or _judged(folder):
        return read_beir(folder, split=split)
    return read_corpus(folder, sources=None, titles=True).corpus


def has_judgments(data: Dataset | Corpus) -> bool:
    """Whether each corpus can be searched alone."""
    return isinstance(data, Dataset) and len(data.qrels) > 0


def _judged(folder: Path) -> bool:
    queries = any((folder / f"queries.jsonl{gz}").is_file() for gz in ("", ".gz"))
    qrels = folder / "qrels"
    return queries and qrels.is_dir() and any(qrels.iterdir())
