"""Paired corpora: documents and their rewrites by a language model, validated."""

from rag_sourcebias.corpora.annotate import AnnotationPlan, annotation_sheet
from rag_sourcebias.corpora.annotate_agreement import annotator_agreement
from rag_sourcebias.corpora.annotate_questions import QUESTIONS
from rag_sourcebias.corpora.annotate_read import read_annotation_key, read_annotations
from rag_sourcebias.corpora.annotate_table import majority_tables
from rag_sourcebias.corpora.annotate_write import (
    AnnotationFiles,
    annotation_csv,
    annotation_page,
    write_annotation_sheets,
)
from rag_sourcebias.corpora.checks import check_pairs
from rag_sourcebias.corpora.cleaning import Cleaned, clean_rewrite
from rag_sourcebias.corpora.estimate import estimate_paired_corpus
from rag_sourcebias.corpora.manifest import read_manifest
from rag_sourcebias.corpora.paired import build_paired_corpus
from rag_sourcebias.corpora.prompts import REPHRASE, REWRITE, STYLES, RewritePrompt
from rag_sourcebias.corpora.sound import sound_pairs

__all__ = [
    "QUESTIONS",
    "REPHRASE",
    "REWRITE",
    "STYLES",
    "AnnotationFiles",
    "AnnotationPlan",
    "Cleaned",
    "RewritePrompt",
    "annotation_csv",
    "annotation_page",
    "annotation_sheet",
    "annotator_agreement",
    "build_paired_corpus",
    "check_pairs",
    "clean_rewrite",
    "estimate_paired_corpus",
    "majority_tables",
    "read_annotation_key",
    "read_annotations",
    "read_manifest",
    "sound_pairs",
    "write_annotation_sheets",
]
