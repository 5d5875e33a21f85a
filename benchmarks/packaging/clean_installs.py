"""Install the wheel in clean environments, one extra at a time, and do something with each.

    python benchmarks/packaging/clean_installs.py [--extra NAME ...] [--folder FOLDER]

Builds wheel and sdist from a copy of the sources, has twine read their metadata, and runs the
command of the wheel without installing it (``uv tool run``, or uvx). Then makes one environment per
extra with uv, installs the wheel with that extra alone under ``constraints.txt``, and runs
``smoke.py`` there. Prints one line per extra; exit status 1 when one fails. The first run downloads
what is not in uv's cache; the environments hold hard links to it and are removed one by one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPIED = ("pyproject.toml", "LICENSE", "Makefile", "*.md", "constraints*.txt")
FOLDERS = ("src", "integrations", "tests", "benchmarks", "docs")


def run(*arguments: str | Path, cwd: Path | None = None) -> str:
    """Return the last line that a command printed; its error output where it fails."""
    given = [str(argument) for argument in arguments]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": "", "NO_COLOR": "1"}
    environment.setdefault("UV_FIND_LINKS", os.environ.get("PIP_FIND_LINKS", ""))
    done = subprocess.run(
        given, cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(given)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return (done.stdout.strip().splitlines() or [""])[-1]


def build(folder: Path) -> Path:
    """Build both archives from a copy, so that nothing is left in the checkout; give the wheel."""
    sources = folder / "sources"
    for name in FOLDERS:
        no_caches = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / name, sources / name, ignore=no_caches)
    for path in (path for pattern in COPIED for path in ROOT.glob(pattern)):
        shutil.copy(path, sources)
    run("uv", "build", "--out-dir", folder / "dist", sources)
    (wheel,) = (folder / "dist").glob("*.whl")
    files = sorted((folder / "dist").glob("rag_sourcebias-*"))
    print("twine check:", run("uv", "tool", "run", "twine", "check", "--strict", *files))
    return wheel


def attempt(wheel: Path, extra: str, folder: Path) -> str:
    """Install the wheel with one extra into a new environment, and use it there."""
    python = folder / "env" / "bin" / "python"
    wanted = str(wheel) if extra == "none" else f"{wheel}[{extra}]"
    try:
        run("uv", "venv", "--quiet", "--python", sys.executable, folder / "env")
        pins = ROOT / "constraints.txt"
        run("uv", "pip", "install", "--quiet", "--python", python, wanted, "-c", pins)
        return run(python, "-W", "ignore", HERE / "smoke.py", extra, cwd=folder)
    finally:
        shutil.rmtree(folder / "env", ignore_errors=True)


def tool_run(wheel: Path, folder: Path) -> str:
    """Run the command without installing it, as ``uvx rag-sourcebias`` does."""
    pins = ROOT / "constraints.txt"
    return run(
        *("uv", "tool", "run", "--isolated", "--constraints", pins),
        *("--from", wheel, "rag-sourcebias", "--version"),
        cwd=folder,
    )


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ["none", *(e for e in project["optional-dependencies"] if e != "all")]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--extra", action="append", choices=extras, help="these only")
    parser.add_argument("--folder", type=Path, help="where to build; default: a temporary one")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(dir=options.folder, ignore_cleanup_errors=True) as place:
        folder = Path(place)
        wheel = build(folder)
        print("uvx:", tool_run(wheel, folder))
        for extra in options.extra or extras:
            started = time.perf_counter()
            try:
                found = f"ok    {attempt(wheel, extra, folder)}"
            except RuntimeError as error:
                failed += 1
                found = f"FAIL  {error}"
            print(f"{extra:<18}{time.perf_counter() - started:6.1f} s  {found}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
