"""Write a page of the site for each notebook: its text, code and stored outputs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import mkdocs_gen_files

ROOT = Path(__file__).parents[1] / "notebooks"


def fenced(text: str, language: str = "") -> str:
    """Return a code block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def shown(output: dict[str, Any], image: str) -> str:
    """Return an output as Markdown; a plot becomes a file of the site."""
    if output["output_type"] == "stream":
        return fenced("".join(output["text"]))
    data = output["data"]
    if "image/png" not in data:
        return fenced("".join(data["text/plain"]))
    with mkdocs_gen_files.open(f"notebooks/{image}", "wb") as file:
        file.write(base64.b64decode(data["image/png"]))
    return f"![Output of the code above]({image})\n"


def page(path: Path) -> str:
    """Return the notebook as Markdown."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source + "\n")
            continue
        parts.append(fenced(source, "python"))
        parts += [
            shown(output, f"{path.stem}-{number}-{nth}.png")
            for nth, output in enumerate(cell["outputs"])
        ]
    title, _, rest = "\n".join(parts).partition("\n")
    return f"{title}\n\n*This page is a notebook: [download it]({path.name}).*\n{rest}"


for notebook in sorted(ROOT.glob("*.ipynb")):
    with mkdocs_gen_files.open(f"notebooks/{notebook.stem}.md", "w") as file:
        file.write(page(notebook))
