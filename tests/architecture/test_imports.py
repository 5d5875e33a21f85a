"""The core stays light: what an import must not pull in."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "scipy",
    "torch",
    "transformers",
    "sentence_transformers",
    "chromadb",
    "langchain_core",
    "llama_index",
    "sklearn",
    "bm25s",
    "matplotlib",
    "jinja2",
    "yaml",
    "typer",
    "rich",
    "pandas",
    "openai",
    "pyarrow",
    "ragas",
    "nltk",
    "sacrebleu",
    "rouge_score",
    "numba",
    "ray",
)


def imported_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "rag_sourcebias",
        "rag_sourcebias.core",
        "rag_sourcebias.intake",
        "rag_sourcebias.measure",
        "rag_sourcebias.infer",
        "rag_sourcebias.retrieval",
        "rag_sourcebias.llm",
        "rag_sourcebias.report",
        "rag_sourcebias.observe",
        "rag_sourcebias.source",
        "rag_sourcebias.style",
        "rag_sourcebias.answers",
        "rag_sourcebias.judged",
        "rag_sourcebias.pairs",
        "rag_sourcebias.explain",
        "rag_sourcebias.debias",
        "rag_sourcebias.tagging",
        "rag_sourcebias.monitor",
        "rag_sourcebias.neural",
        "rag_sourcebias.infer.means",
        "rag_sourcebias.judged.crc",
        "rag_sourcebias.source.page",
        "rag_sourcebias.judged.page",
        "rag_sourcebias.source.audit",
        "rag_sourcebias.explain.audit",
        "rag_sourcebias.debias.audit",
        "rag_sourcebias.judged.audit",
        "rag_sourcebias_integrations",
    ],
)
def test_import_pulls_in_numpy_only(module: str) -> None:
    assert imported_by(f"import {module}") & set(HEAVY) == set()


def test_every_public_name_of_the_package_resolves_without_heavy_imports() -> None:
    statement = (
        "import rag_sourcebias\nfor name in rag_sourcebias.__all__: getattr(rag_sourcebias, name)"
    )
    assert imported_by(statement) & set(HEAVY) == set()
