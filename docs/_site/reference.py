"""Write the pages of the API reference: one for each public package, from its docstrings."""

from __future__ import annotations

import ast
from pathlib import Path
from shutil import copyfileobj

import mkdocs_gen_files

ROOT = Path(__file__).parents[2]
CORE = (
    "core", "intake", "measure", "infer", "retrieval", "llm", "report", "observe",
    "source", "style", "answers", "judged", "pairs", "explain", "debias", "tagging", "monitor",
    "neural", "testing.contract",
)  # fmt: skip
INTEGRATIONS = (
    "langchain", "llama_index", "chroma", "ragas", "ray", "opentelemetry", "prometheus",
    "python",
)  # fmt: skip
PACKAGES = (
    "rag_sourcebias",
    *(f"rag_sourcebias.{name}" for name in CORE),
    *(f"rag_sourcebias_integrations.{name}" for name in INTEGRATIONS),
)
PAPERS = {
    "K": "Dai et al., *Neural Retrievers are Biased Towards LLM-Generated Content*, KDD 2024",
    "W": "Cao, *Writing Style Matters*, WSDM 2025",
    "R": "Oosterhuis et al., *Reliable Confidence Intervals for Information Retrieval Evaluation "
    "Using Generative A.I.*, KDD 2024",
}


def source(package: str) -> Path:
    """Return the file of a module or package."""
    root = ROOT / ("integrations" if package.startswith("rag_sourcebias_int") else "src")
    base = root.joinpath(*package.split("."))
    return base / "__init__.py" if base.is_dir() else base.with_suffix(".py")


def summary(package: str) -> str:
    """Return the first sentence of a module's docstring."""
    tree = ast.parse(source(package).read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").split("\n\n")[0]
    return " ".join(text.split())


def write(path: str, text: str) -> None:
    """Write a page of the site."""
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)


def names(package: str) -> str:
    """Return a section for each name that a package loads when it is first used."""
    stub = source(package).with_suffix(".pyi")
    if not stub.is_file():
        return ""
    tree = ast.parse(stub.read_text(encoding="utf-8"))
    listed = sorted(
        (alias.name, f"{package}.{node.module}.{alias.name}")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if not alias.name.startswith("_")
    )
    options = (
        "    options: {show_root_heading: true, show_root_full_path: false, "
        "show_root_toc_entry: true}\n"
    )
    return "".join(f"\n::: {path}\n{options}" for _, path in listed)


packages = [f"| [`{name}`]({name}.md) | {summary(name)} |\n" for name in PACKAGES]
write(
    "reference/index.md",
    "# API reference\n\nGenerated from the docstrings: shapes, units, ranges, errors and, for a "
    "formula, its source.\n\n## Packages\n\n| package | holds |\n|---|---|\n"
    + "".join(packages)
    + "\n## Papers\n\n| mark | paper |\n|---|---|\n"
    + "".join(f"| [{mark}] | {said} |\n" for mark, said in PAPERS.items()),
)
for name in PACKAGES:
    rest = names(name)
    write(f"reference/{name}.md", f"# {name}\n\n::: {name}\n{rest}")
short = [name.removeprefix("rag_sourcebias").lstrip("._") for name in PACKAGES]
links = [f"* [{said}]({name}.md)\n" for said, name in zip(short, PACKAGES, strict=True)]
nav = ["* [Overview](index.md)\n", *links]
write("reference/SUMMARY.md", "".join(nav))

for plot in sorted((ROOT / "benchmarks" / "results").glob("coverage-*.svg")):
    with plot.open("rb") as read, mkdocs_gen_files.open(f"plots/{plot.name}", "wb") as copy:
        copyfileobj(read, copy)
