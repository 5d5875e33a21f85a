"""Run the notebooks again and store what they print: ``python docs/_site/run_notebooks.py``.

Needs the ``test`` group. Complaints of libraries and times are not stored, so that nothing of the
machine is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1] / "notebooks"


def run(path: Path) -> None:
    """Run one notebook in an empty folder and replace its outputs."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, kernel_name="python3", timeout=600, record_timing=False)
    with tempfile.TemporaryDirectory() as folder:
        client.execute(cwd=folder)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
            for one in cell.outputs:
                one.get("metadata", {}).clear()
    nbformat.write(notebook, path)


for notebook in [Path(name) for name in sys.argv[1:]] or sorted(ROOT.glob("*.ipynb")):
    run(notebook)
