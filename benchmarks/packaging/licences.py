"""Write docs/licences.md and its table: what ``rag-sourcebias[all]`` brings, and its licences.

    python benchmarks/packaging/licences.py [--output FILE]

From the metadata of what is installed here: run it where everything is installed under
``constraints.txt``. What a distribution declares is copied, not judged; only copyleft is marked.
"""

from __future__ import annotations

import argparse
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))
from evidence import write

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = "rag-sourcebias"
COPYLEFT = re.compile(
    r"\b(A?GPL|LGPL|MPL|EPL|EUPL|CDDL|OSL|SSPL)|General Public|Mozilla Public|Eclipse Public", re.I
)
# Of the files in the wheel that others wrote.
BUNDLED = (
    ("uPlot (dashboard)", "MIT", "monitor/dashboard/static/vendor/uPlot-LICENSE.txt"),
    ("sample crowdrag-rewrites", "CC BY 4.0", "intake/samples/crowdrag-rewrites/ATTRIBUTION.md"),
    ("sample crowdrag25", "CC BY 4.0", "intake/samples/crowdrag25/ATTRIBUTION.md"),
    ("sample evouna", "Apache-2.0", "intake/samples/evouna/ATTRIBUTION.md"),
)


def licence_of(found: Distribution) -> str:
    """What a distribution declares: expression, else classifiers, else its licence field."""
    about = found.metadata
    expression = (about.get("License-Expression") or "").strip()
    if expression:
        return expression
    classifiers = [
        entry.rpartition(" :: ")[2]
        for entry in about.get_all("Classifier") or ()
        if entry.startswith("License :: ") and entry != "License :: OSI Approved"
    ]
    field = (about.get("License") or "").strip()
    first = field.partition("\n")[0].strip()
    if classifiers:
        return "; ".join(classifiers)
    if first and len(first) <= 80:
        return first
    return "not declared" if not field else "text in its metadata"


def below(name: str, extras: set[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """Names of everything installed that a distribution with these extras needs."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return set()  # for another platform or Python
    key = (canonicalize_name(name), frozenset(extras))
    if key in seen:
        return set()
    seen.add(key)
    names = {canonicalize_name(name)}
    for entry in found.requires or ():
        wanted = Requirement(entry)
        marker = wanted.marker
        if marker is None or any(marker.evaluate({"extra": e}) for e in (extras or {""})):
            names |= below(wanted.name, set(wanted.extras), seen)
    return names


def rows() -> list[dict[str, str]]:
    """Every distribution below ``[all]``, with its licence and the extras that bring it."""
    core = below(OURS, set(), set()) - {OURS}
    brought: dict[str, list[str]] = {name: ["the core"] for name in core}
    for extra in sorted(distribution(OURS).metadata.get_all("Provides-Extra") or []):
        if extra == "all":
            continue
        for name in below(OURS, {extra}, set()) - core - {OURS}:
            brought.setdefault(name, []).append(extra)
    return [
        {
            "distribution": name,
            "version": distribution(name).version,
            "licence": licence_of(distribution(name)),
            "comes with": ", ".join(extras),
        }
        for name, extras in sorted(brought.items())
    ]


def page(found: list[dict[str, str]]) -> str:
    """The page, as Markdown."""
    marked = [row for row in found if COPYLEFT.search(row["licence"])]
    lines = [
        "# Licences of what is installed",
        "",
        "Written by `python benchmarks/packaging/licences.py` from the metadata of the installed",
        f"distributions: {len(found)} of them with `rag-sourcebias[all]` under `constraints.txt`,",
        "on Linux and Python 3.11. Licences are as each distribution declares them. This list is",
        "no legal advice, and other platforms may need other distributions.",
        "",
        "rag-sourcebias itself is under Apache-2.0. Inside its wheel, by others:",
        "",
        "| what | licence | where |",
        "|---|---|---|",
        *(f"| {what} | {terms} | `{where}` |" for what, terms, where in BUNDLED),
        "",
        "## Copyleft",
        "",
        f"{len(marked)} of the {len(found)} declare a copyleft licence:",
        "",
        *(f"- **{row['distribution']}** ({row['licence']}), {named(row)}" for row in marked),
        "",
        "The Mozilla Public License is file-based: changed files of such a distribution stay under",
        "it, code that uses it does not come under it.",
        "",
        "All of them, with versions and the extras that bring them: "
        "[licences.csv](evidence/licences.csv).",
        "",
    ]
    return "\n".join(lines)


def named(row: dict[str, str]) -> str:
    """What brings a distribution, extras as code."""
    what = row["comes with"]
    return what if what == "the core" else ", ".join(f"`{extra}`" for extra in what.split(", "))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "licences.md")
    options = parser.parse_args()
    found = rows()
    write(options.output, page(found), {"licences": found})
    print(f"{len(found)} distributions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
