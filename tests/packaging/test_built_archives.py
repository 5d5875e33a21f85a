"""Wheel and sdist hold what they should, and say what they are."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from importlib.util import find_spec
from pathlib import Path

import pytest

import rag_sourcebias

pytestmark = pytest.mark.skipif(
    find_spec("hatchling") is None, reason="hatchling, which builds the archives, is not installed"
)
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGES = {
    "rag_sourcebias": ROOT / "src" / "rag_sourcebias",
    "rag_sourcebias_integrations": ROOT / "integrations" / "rag_sourcebias_integrations",
}
# What no module imports and a build could lose without any other test noticing.
DATA = (
    "rag_sourcebias/py.typed",
    "rag_sourcebias_integrations/py.typed",
    "rag_sourcebias/report/templates/page.html.jinja",
    "rag_sourcebias/report/templates/style.css",
    "rag_sourcebias/pairs/templates/annotate.html",
    "rag_sourcebias/monitor/rules/alerts.yml",
    "rag_sourcebias/monitor/rules/grafana-dashboard.json",
    "rag_sourcebias/monitor/dashboard/static/index.html",
    "rag_sourcebias/monitor/dashboard/static/vendor/uPlot.iife.min.js",
    "rag_sourcebias/monitor/dashboard/static/vendor/uPlot-LICENSE.txt",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder, "sdist")
    build(ROOT, folder, "wheel")
    return folder


def build(root: Path, folder: Path, target: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def wheel_names(folder: Path) -> list[str]:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def sdist_names(folder: Path) -> set[str]:
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def metadata(folder: Path) -> Message:
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode("utf-8"))


def files_of(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


def test_wheel_holds_every_file_of_both_packages_and_nothing_else(built: Path) -> None:
    names = [name for name in wheel_names(built) if ".dist-info/" not in name]
    expected = [f"{name}/{file}" for name, folder in PACKAGES.items() for file in files_of(folder)]
    assert sorted(names) == sorted(expected)
    assert set(DATA) <= set(names)


def test_metadata_says_what_pyproject_says(built: Path) -> None:
    found = metadata(built)
    assert found["Name"] == PROJECT["name"]
    assert found["Version"] == rag_sourcebias.__version__
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert found["License-Expression"] == PROJECT["license"]
    assert "LICENSE" in found.get_all("License-File", [])
    assert found["Description-Content-Type"] == "text/markdown"
    assert str(found.get_payload()).startswith("# rag-sourcebias")
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])


def test_entry_points_lead_to_modules_of_the_wheel(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (file,) = (n for n in names if n.endswith(".dist-info/entry_points.txt"))
        text = archive.read(file).decode("utf-8")
    targets = re.findall(r"^[\w-]+ = ([\w.]+):\w+$", text, flags=re.MULTILINE)
    points = PROJECT["entry-points"].values()
    assert len(targets) == len(PROJECT["scripts"]) + sum(map(len, points))
    for target in targets:
        path = target.replace(".", "/")
        assert {f"{path}.py", f"{path}/__init__.py"} & names, target


def test_sdist_holds_tests_and_what_they_need(built: Path) -> None:
    names = sdist_names(built)
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "constraints.txt"}
    wanted |= {"tests/packaging/test_built_archives.py", "tests/support/command_line.py"}
    assert wanted <= names
    assert not [n for n in names if n.startswith((".git/", ".venv", "report/", "dist/"))]
    assert not [n for n in names if "__pycache__" in n]
