"""Write the pages of the API reference: one for each public package, from its docstrings."""

from __future__ import annotations

import ast
from pathlib import Path
from shutil import copyfileobj

import mkdocs_gen_files

ROOT = Path(__file__).parents[2]
CORE = (
    "audit", "types", "measures", "inference", "intervals", "io", "report", "retrieval",
    "tagging", "instrument", "adapters", "monitor", "judges", "llm", "mitigate", "corpora",
    "explain", "neural", "testing.contract", "protocols", "errors",
)  # fmt: skip
INTEGRATIONS = (
    "langchain", "llama_index", "chroma", "ragas", "ray", "opentelemetry", "prometheus",
    "python.attach",
)  # fmt: skip
PACKAGES = (
    *(f"rag_sourcebias.{name}" for name in CORE),
    *(f"rag_sourcebias_integrations.{name}" for name in INTEGRATIONS),
)


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


def top_level() -> dict[str, list[str]]:
    """Return the names of ``rag_sourcebias`` and the package that each lives in."""
    tree = ast.parse(source("rag_sourcebias").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOMES":
            return {key: list(names) for key, names in ast.literal_eval(node.value).items()}
    raise LookupError("rag_sourcebias/__init__.py has no _HOMES")


def write(path: str, text: str) -> None:
    """Write a page of the site."""
    with mkdocs_gen_files.open(path, "w") as file:
        file.write(text)


def parts(package: str) -> str:
    """Return sections for the modules of a package that exports nothing itself."""
    file = source(package)
    if file.name != "__init__.py" or "import" in file.read_text(encoding="utf-8"):
        return ""
    modules = sorted(path.stem for path in file.parent.glob("[!_]*.py"))
    options = "    options: {heading_level: 3}\n"
    return "".join(f"\n## {m}\n\n::: {package}.{m}\n{options}" for m in modules)


rows = []
for home, names in top_level().items():
    links = ", ".join(f"[`{n}`](rag_sourcebias.{home}.md#rag_sourcebias.{home}.{n})" for n in names)
    rows.append(f"| `rag_sourcebias.{home}` | {links} |\n")
packages = [f"| [`{name}`]({name}.md) | {summary(name)} |\n" for name in PACKAGES]
write(
    "reference/index.md",
    "# API reference\n\nGenerated from the docstrings. Every public function states shapes, "
    "units, ranges, errors and, for a formula, its source: [K] is Dai et al., KDD 2024; [W] Cao, "
    "WSDM 2025; [R] Oosterhuis et al., KDD 2024.\n\n## Packages\n\n| package | holds |\n|---|---|\n"
    + "".join(packages)
    + "\n## Names that `rag_sourcebias` itself exports\n\n| from | names |\n|---|---|\n"
    + "".join(rows),
)
for name in PACKAGES:
    write(f"reference/{name}.md", f"# {name}\n\n::: {name}\n" + parts(name))
short = [name.removeprefix("rag_sourcebias").lstrip("._") for name in PACKAGES]
links = [f"* [{said}]({name}.md)\n" for said, name in zip(short, PACKAGES, strict=True)]
nav = ["* [Overview](index.md)\n", *links]
write("reference/SUMMARY.md", "".join(nav))

for plot in sorted((ROOT / "benchmarks" / "results").glob("coverage-*.svg")):
    with plot.open("rb") as read, mkdocs_gen_files.open(f"plots/{plot.name}", "wb") as copy:
        copyfileobj(read, copy)
