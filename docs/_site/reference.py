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
# What functions of the reference take or return and no package exports, by module.
UNEXPORTED = {
    "audit": {"debias_groups": "DebiasVariant"},
    "types": {
        "annotations": "AnnotationKey AnnotationQuestion AnnotationUnit Annotations AnswerTable "
        "KeyRow KeyUnit MajorityShare MajorityTable RaterAgreement",
        "completions": "Completion CompletionError LabelScores Request Usage",
        "explain": "GapDecomposition GapFactor PerplexityGap SourceGeometry SpectrumComparison "
        "VectorMap",
        "explain_report": "BoundedPerplexity Histogram LexicalShift ModelPerplexity "
        "SourceExplanation TermShift TextComparison",
        "judge_audit": "Agreement",
        "judge_bias": "BiasDifference GroupBias",
        "judge_calibration": "GradeCalibration ReliabilityBin",
        "judgments": "LabelBounds",
        "pair_checks": "PairChecks PairSummary",
        "pair_report": "CheckedPair PairCriteria SourcePairs",
        "pair_tests": "SoleCorpusTest",
        "perplexity": "LogPerplexities",
        "rewrites": "HumanTexts PairedManifest RewriteEstimate RewriteReport RewriteSource",
        "shards": "Shard",
    },
    "tagging": {"conditions": "Condition", "declarations": "Declaration", "result": "TagResult"},
    "instrument": {"shadow_summary": "ShadowExposure ShadowLatency"},
    "monitor": {
        "log.columns": "EventColumns",
        "log.read_rollups": "Rollups",
        "log.reading": "LogSummary",
    },
    "mitigate": {"parity": "ScoreMap", "parity_fit": "ScoredTwins"},
    "neural": {
        "perplexity": "CausalPerplexity MaskedPerplexity",
        "projected": "write_projected_model",
    },
}
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


def hidden(package: str) -> str:
    """Return the functions that a module of the same name hides from what reads the code."""
    file = source(package)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    exported = next((n.value for n in tree.body if is_all(n)), None)
    if file.name != "__init__.py" or not isinstance(exported, (ast.List, ast.Tuple)):
        return ""
    names = [name for name in ast.literal_eval(exported) if defines(file.parent, name)]
    options = (
        "    options: {show_root_heading: true, show_root_full_path: false, "
        "show_root_toc_entry: true}\n"
    )
    return "".join(f"\n::: {package}.{name}.{name}\n{options}" for name in names)


def unexported(package: str) -> str:
    """Return sections for what else the functions of a package take or return."""
    modules = UNEXPORTED.get(package.removeprefix("rag_sourcebias."), {})
    options = (
        "    options: {show_root_heading: true, show_root_full_path: false, "
        "show_root_toc_entry: true, heading_level: 3}\n"
    )
    text = ""
    for module, names in modules.items():
        text += f"\n## {package}.{module}\n\nNot exported by `{package}`: import from the module.\n"
        text += "".join(f"\n::: {package}.{module}.{name}\n{options}" for name in names.split())
    return text


def is_all(node: ast.stmt) -> bool:
    """Whether a statement sets ``__all__``."""
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"


def defines(folder: Path, name: str) -> bool:
    """Whether a folder has a module that defines a function of its own name."""
    file = folder / f"{name}.py"
    if not file.is_file():
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


rows = []
for home, names in top_level().items():
    links = ", ".join(f"[`{n}`](rag_sourcebias.{home}.md#rag_sourcebias.{home}.{n})" for n in names)
    rows.append(f"| `rag_sourcebias.{home}` | {links} |\n")
packages = [f"| [`{name}`]({name}.md) | {summary(name)} |\n" for name in PACKAGES]
write(
    "reference/index.md",
    "# API reference\n\nGenerated from the docstrings: shapes, units, ranges, errors and, for a "
    "formula, its source.\n\n## Packages\n\n| package | holds |\n|---|---|\n"
    + "".join(packages)
    + "\n## Names that `rag_sourcebias` itself exports\n\n| from | names |\n|---|---|\n"
    + "".join(rows)
    + "\n## Papers\n\n| mark | paper |\n|---|---|\n"
    + "".join(f"| [{mark}] | {said} |\n" for mark, said in PAPERS.items()),
)
for name in PACKAGES:
    rest = parts(name) + hidden(name) + unexported(name)
    write(f"reference/{name}.md", f"# {name}\n\n::: {name}\n{rest}")
short = [name.removeprefix("rag_sourcebias").lstrip("._") for name in PACKAGES]
links = [f"* [{said}]({name}.md)\n" for said, name in zip(short, PACKAGES, strict=True)]
nav = ["* [Overview](index.md)\n", *links]
write("reference/SUMMARY.md", "".join(nav))

for plot in sorted((ROOT / "benchmarks" / "results").glob("coverage-*.svg")):
    with plot.open("rb") as read, mkdocs_gen_files.open(f"plots/{plot.name}", "wb") as copy:
        copyfileobj(read, copy)
