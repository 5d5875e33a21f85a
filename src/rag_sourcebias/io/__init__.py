"""Readers and writers: runs, judgments, tags, styles, answers, BEIR folders, reports.

Names are loaded when first used: one reader needs nothing of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_sourcebias._lazy import lazy_names

if TYPE_CHECKING:
    from rag_sourcebias.io.answer_tables import read_answer_scores, read_answer_texts
    from rag_sourcebias.io.archive import extract_zip
    from rag_sourcebias.io.beir import read_beir
    from rag_sourcebias.io.beir_corpus import source_of_stem
    from rag_sourcebias.io.beir_judgments import assemble_judged, rows_as_judged
    from rag_sourcebias.io.beir_write import write_beir
    from rag_sourcebias.io.bundled import load_sample
    from rag_sourcebias.io.cache import cache_dir
    from rag_sourcebias.io.clusters import read_clusters
    from rag_sourcebias.io.datasets import DatasetInfo, list_datasets, load_dataset
    from rag_sourcebias.io.downloads import download
    from rag_sourcebias.io.files import write_atomic
    from rag_sourcebias.io.judged import join_judged, read_judged_items
    from rag_sourcebias.io.judged_sample import load_judged_sample
    from rag_sourcebias.io.label_files import read_label_distributions
    from rag_sourcebias.io.reports import (
        read_document_json,
        read_report_json,
        write_report_json,
    )
    from rag_sourcebias.io.shard_folder import open_sharded
    from rag_sourcebias.io.sharded_dataset import ShardedDataset
    from rag_sourcebias.io.styled_sample import load_styled_sample
    from rag_sourcebias.io.styled_texts import read_styled_texts
    from rag_sourcebias.io.tags import read_tags
    from rag_sourcebias.io.tags_write import write_tags
    from rag_sourcebias.io.trec import read_qrels, read_run, write_run
    from rag_sourcebias.io.vector_files import VectorFile, Vectors, open_vectors

_HOMES = {
    "answer_tables": (
        "read_answer_scores",
        "read_answer_texts",
    ),
    "archive": ("extract_zip",),
    "beir": ("read_beir",),
    "clusters": ("read_clusters",),
    "beir_corpus": ("source_of_stem",),
    "beir_judgments": (
        "assemble_judged",
        "rows_as_judged",
    ),
    "beir_write": ("write_beir",),
    "bundled": ("load_sample",),
    "cache": ("cache_dir",),
    "datasets": (
        "DatasetInfo",
        "list_datasets",
        "load_dataset",
    ),
    "downloads": ("download",),
    "files": ("write_atomic",),
    "judged": (
        "join_judged",
        "read_judged_items",
    ),
    "judged_sample": ("load_judged_sample",),
    "label_files": ("read_label_distributions",),
    "reports": (
        "read_document_json",
        "read_report_json",
        "write_report_json",
    ),
    "shard_folder": ("open_sharded",),
    "sharded_dataset": ("ShardedDataset",),
    "styled_sample": ("load_styled_sample",),
    "styled_texts": ("read_styled_texts",),
    "tags": ("read_tags",),
    "tags_write": ("write_tags",),
    "trec": (
        "read_qrels",
        "read_run",
        "write_run",
    ),
    "vector_files": (
        "VectorFile",
        "Vectors",
        "open_vectors",
    ),
}

__all__ = [
    "DatasetInfo",
    "ShardedDataset",
    "VectorFile",
    "Vectors",
    "assemble_judged",
    "cache_dir",
    "download",
    "extract_zip",
    "join_judged",
    "list_datasets",
    "load_dataset",
    "load_judged_sample",
    "load_sample",
    "load_styled_sample",
    "open_sharded",
    "open_vectors",
    "read_answer_scores",
    "read_answer_texts",
    "read_beir",
    "read_clusters",
    "read_document_json",
    "read_judged_items",
    "read_label_distributions",
    "read_qrels",
    "read_report_json",
    "read_run",
    "read_styled_texts",
    "read_tags",
    "rows_as_judged",
    "source_of_stem",
    "write_atomic",
    "write_beir",
    "write_report_json",
    "write_run",
    "write_tags",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)
