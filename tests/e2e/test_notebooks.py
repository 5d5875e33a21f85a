"""The notebooks of the documentation run offline, and their stored outputs are of their code."""

from __future__ import annotations

import json
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
SMALL = 60_000


def code_cells(path: Path) -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shape(outputs: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Kind of each output, and its text without figures; plots count as such."""
    found: list[tuple[str, ...]] = []
    for output in outputs:
        if output["output_type"] == "stream":
            if output["name"] != "stderr":
                found.append(("text", figureless("".join(output["text"]))))
        elif "image/png" in output.get("data", {}):
            found.append(("plot",))
        else:
            text = output.get("data", {}).get("text/plain", output["output_type"])
            found.append((output["output_type"], figureless("".join(text))))
    return found


def figureless(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[-+]?\d+(\.\d+)?", "#", text)).strip()


def test_there_are_three_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 3
    assert [path.stem for path in NOTEBOOKS if f"notebooks/{path.stem}.md" not in nav] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_is_whole_small_and_of_no_machine(path: Path) -> None:
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"stream", "display_data", "execute_result"}
    assert "display_data" in kinds
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size < SMALL
    assert not re.search(r"(?<![\w.:/])/(?:home|root|tmp|usr|work|Users|opt)/", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_site_shows_code_and_outputs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, Any] = {}

    class Opened:
        def __init__(self, name: str, mode: str) -> None:
            self.name = name

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, data: Any) -> None:
            written[self.name] = data

    monkeypatch.setitem(sys.modules, "mkdocs_gen_files", SimpleNamespace(open=Opened))
    runpy.run_path(str(ROOT / "docs" / "_site" / "notebooks.py"))
    page = written[f"notebooks/{path.stem}.md"]
    assert page.count("```python") == len(code_cells(path))
    assert written[f"notebooks/{re.findall(r'!.*?[(](.*?png)', page)[0]}"].startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_prints_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat
    from nbclient import NotebookClient

    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    notebook = nbformat.read(path, as_version=4)
    stored = [shape(cell["outputs"]) for cell in code_cells(path)]
    client = NotebookClient(notebook, kernel_name="python3", timeout=600)
    client.execute(cwd=str(tmp_path))
    fresh = [shape(cell["outputs"]) for cell in notebook.cells if cell.cell_type == "code"]
    assert fresh == stored


@pytest.mark.frameworks
def test_progress_is_no_output_of_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    told = "from rag_sourcebias.terminal import console\nconsole.tell('1 of 2 so far')"
    shown = "from rich.console import Console\nConsole(stderr=True).print('1 of 2 so far')"
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in (told, shown)]
    )
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute(cwd=str(tmp_path))
    [[line], [other]] = [cell.outputs for cell in notebook.cells]
    assert (line.output_type, line.name, line.text) == ("stream", "stderr", "1 of 2 so far\n")
    assert other.output_type == "display_data"  # what a console does that is not told otherwise
