"""Run the frameworks' own tests with and without observation, and compare them test by test.

    python benchmarks/upstream/run.py              # tested, lowest and newest versions: two hours
    python benchmarks/upstream/run.py --only langchain-core --versions tested
    python benchmarks/upstream/run.py --source OTHER/CHECKOUT --output other.json
    python benchmarks/upstream/run.py --page       # docs/upstream.md from the results

Makes a virtual environment for each set of versions (``--work``, kept for the next run), fetches
the source distributions with pip and runs the tests in them with ``upstream_plugin.py``: twice
without observation, so that tests that change by themselves are known, then with everything
observed, with every object observed in place, and with adapters broken on purpose, which must be
noticed. Files in which a test ended otherwise are run again, both ways, up to three times. Exit
status 1 where observation changed an outcome each time, or nobody noticed the broken adapters.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from upstream_page import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "upstream.json"
PAGE = ROOT / "docs" / "upstream.md"
EXTRAS = "chroma,langchain,langchain-classic,llama-index"
# What the tests of all suites import, as far as their files of requirements say, without what needs
# a service. langchain-tests and its plugins come with the first.
TOOLS = (
    *(
        "langchain-tests",
        "langchain-chroma>=1.0,<2",
        "langchain-openai",
        "pytest",
        "pytest-asyncio",
    ),
    *("pytest-mock", "pytest-socket", "pytest-timeout", "syrupy", "freezegun", "blockbuster"),
    *("responses", "requests-mock", "lark", "toml", "pandas", "grandalf", "hypothesis", "httpx"),
    *("fastapi", "uvicorn", "python-multipart", "opentelemetry-instrumentation-fastapi", "psutil"),
)
OLD_PYTEST = ("pytest>=8,<9", "pytest-asyncio<1.3")  # Chroma's tests write to private attributes
OFFLINE = ("--disable-socket", "--allow-unix-socket")  # as LangChain runs its unit tests
SECONDS = 1_500  # for one run of one suite
RERUNS = 3
MODES = ("off", "again", "everything", "in-place", "broken")


@dataclass(frozen=True, kw_only=True)
class Suite:
    package: str
    paths: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    modes: tuple[str, ...] = MODES
    of: str = "sdist"  # where the tests are: sdist, wheel or here
    old_pytest: bool = False
    note: str = ""


SUITES = {
    "langchain-core": Suite(package="langchain-core", paths=("tests/unit_tests",), options=OFFLINE),
    "langchain-classic": Suite(
        package="langchain-classic", paths=("tests/unit_tests",), options=OFFLINE
    ),
    "langchain-chroma": Suite(package="langchain-chroma", paths=("tests",)),
    "langchain-tests": Suite(package="langchain-tests", paths=("tests",)),
    "standard suites": Suite(
        package="langchain-tests",
        paths=("standard_suites.py",),
        modes=(*MODES, "wrapped"),
        of="here",
        note="langchain-tests' suites for retrievers and vector stores, on retrievers and stores"
        " of langchain-core and langchain-chroma",
    ),
    "llama-index-instrumentation": Suite(
        package="llama-index-instrumentation",
        paths=("tests",),
        modes=("off", "again", "everything"),
        note="the dispatcher's own tests: they retrieve nothing",
    ),
    "chromadb": Suite(
        package="chromadb",
        paths=(
            *("test_client.py", "test_api.py", "test_chroma.py", "api", "configurations"),
            "property/test_filtering.py",
        ),
        options=("-k", "not ssl", "--hypothesis-seed=0", "--timeout=120"),
        environment={"PROPERTY_TESTING_PRESET": "fast", "CHROMA_RUST_BINDINGS_TEST_ONLY": "1"},
        of="wheel",
        old_pytest=True,
        note="embedded; the tests are those in the wheel (pip cannot read the source distribution"
        " without a Rust compiler); without those of encoders and TLS, which need a network",
    ),
}
WITHOUT = {"llama-index-core": "its source distribution holds no tests"}


# What is installed: the file of constraints in the root; none is whatever our bounds allow.
VERSIONS = {"tested": "constraints.txt", "lowest": "constraints-lowest.txt", "newest": ""}


class Place:
    """A folder with an environment, source distributions and results of runs."""

    def __init__(self, folder: Path, source: Path, *, constraints: str) -> None:
        self.folder, self.source = folder, source
        self.python = folder / "env" / "bin" / "python"
        self.constraints = ("-c", str(ROOT / constraints)) if constraints else ()

    def make(self) -> None:
        """Make the environment and install the package under test, unless they are there.

        What is newest changes from day to day: a kept environment of it is brought up to date.
        """
        stamp, wanted = self.folder / "installed", f"{self.source} {self.constraints} {TOOLS}"
        kept = stamp.exists() and stamp.read_text(encoding="utf-8") == wanted
        if kept and self.constraints:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.python.exists():
            call(sys.executable, "-m", "venv", self.folder / "env")
        pip = (self.python, "-m", "pip", "install", "--quiet", *self.constraints)
        upgrade = ("--upgrade", "--upgrade-strategy", "eager")
        call(*pip, *upgrade, *TOOLS, "-e", f"{self.source}[{EXTRAS}]")
        old = self.folder / "old_pytest"
        if not old.exists():
            call(*pip[:5], "--target", old, *OLD_PYTEST)
        stamp.write_text(wanted, encoding="utf-8")

    def version(self, package: str) -> str:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return call(self.python, "-c", code).strip()

    def tests_of(self, suite: Suite) -> Path:
        """Return the folder that holds a suite's tests, fetched where it is not there."""
        if suite.of == "here":
            return HERE
        if suite.of == "wheel":
            (found,) = self.folder.glob(f"env/lib/python*/site-packages/{suite.package}/test")
            return found
        name = f"{suite.package.replace('-', '_')}-{self.version(suite.package)}"
        if not (self.folder / name).exists():
            wanted = f"{suite.package}=={self.version(suite.package)}"
            get = (self.python, "-m", "pip", "download", "--quiet", "--no-deps")
            call(*get, "--no-binary", suite.package, "--dest", self.folder, wanted)
            with tarfile.open(self.folder / f"{name}.tar.gz") as archive:
                archive.extractall(self.folder, filter="data")
        return self.folder / name

    def run(self, suite: Suite, mode: str, paths: Sequence[str] = ()) -> dict[str, Any]:
        """Run a suite, or some files of it; return what the plugin wrote."""
        tests = self.tests_of(suite)
        result = self.folder / f"result-{os.getpid()}.json"
        result.unlink(missing_ok=True)
        # a settings file of ours keeps pytest from writing into, or reading, what lies above
        settings = self.folder / "pytest.ini"
        settings.write_text("[pytest]\nasyncio_mode = auto\n", encoding="utf-8")
        apart = ("-c", settings, "--rootdir", tests) if suite.of != "sdist" else ()
        search = [self.source / "src", self.source / "integrations", HERE]
        if suite.old_pytest:
            search.insert(0, self.folder / "old_pytest")
        done = subprocess.run(
            [
                *(self.python, "-m", "pytest", "-q", "--tb=short", "-p", "upstream_plugin"),
                *("-p", "no:cacheprovider", "-p", "no:codspeed", "--benchmark-disable", *apart),
                *suite.options,
                *[str(tests / path) for path in paths or suite.paths],
            ],
            cwd=self.folder if apart else tests,
            env=os.environ
            | {"LANGSMITH_TRACING": "false", "ANONYMIZED_TELEMETRY": "False", "PYTHONHASHSEED": "0"}
            | {"PYTHONPATH": os.pathsep.join(map(str, search))}
            | {"UPSTREAM_OBSERVED": "off" if mode == "again" else mode}
            | {"UPSTREAM_RESULT": str(result)}
            | suite.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        if not result.exists():
            raise RuntimeError(
                f"{suite.package}, {mode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
            )
        return json.loads(result.read_text(encoding="utf-8"))


def call(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}")
    return done.stdout


def changed(off: Mapping[str, str], on: Mapping[str, str], apart: set[str]) -> list[str]:
    """Return the tests that ended otherwise, or are missing on one side."""
    return sorted(t for t in {*off, *on} - apart if off.get(t) != on.get(t))


def compared(place: Place, suite: Suite, modes: Sequence[str]) -> dict[str, Any]:
    """Run a suite in every mode and compare each with the first."""
    runs = {}
    for mode in modes:
        started = time.perf_counter()
        runs[mode] = place.run(suite, mode)
        counts = Counter(runs[mode]["outcomes"].values())
        print(f"  {mode:<11}{time.perf_counter() - started:6.0f} s  {dict(counts)}", flush=True)
    off = runs["off"]["outcomes"]
    unstable = changed(off, runs["again"]["outcomes"], set())
    row: dict[str, Any] = {
        "package": suite.package,
        "version": place.version(suite.package),
        "note": suite.note,
        "tests": len(off),
        "outcomes": Counter(off.values()),
        "unstable": unstable,
        "modes": {},
    }
    for mode in modes[2:]:
        on = runs[mode]
        tests = changed(off, on["outcomes"], set(unstable))
        row["modes"][mode] = {
            "retrievals": on["retrievals"],
            "documents": on["documents"],
            "dropped": on["dropped"],
            "n_different": len(tests),
        }
        if mode != "broken":
            row["modes"][mode]["different"] = differences(place, suite, mode, tests, off, on)
    return row


def differences(
    place: Place,
    suite: Suite,
    mode: str,
    tests: Sequence[str],
    off: Mapping[str, str],
    on: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Describe tests that ended otherwise; say whether they do each time their files run again.

    Some allow 10 ms, which a busy machine does not keep.
    """
    files = sorted({test.partition("::")[0] for test in tests})
    still = set(tests)
    for _ in range(RERUNS):
        if still:
            second = [place.run(suite, m, files)["outcomes"] for m in ("off", mode)]
            still.intersection_update(changed(*second, set()))
    found = []
    for test in tests:
        again = test in still
        row = {"test": test, "off": off.get(test), "on": on["outcomes"].get(test), "again": again}
        print(f"    {mode}: {row}", flush=True)
        last = on["tracebacks"].get(test, "").splitlines()
        errors = [line for line in last if line.startswith("E ")]
        found.append(row | {"error": (errors or last or [""])[0][:200]})
    return found


def unnoticed(row: Mapping[str, Any]) -> bool:
    """Whether adapters that lose documents changed no outcome, though something was retrieved."""
    broken = row["modes"].get("broken")
    return broken is not None and any(broken["documents"].values()) and not broken["n_different"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", action="append", choices=SUITES, help="these suites")
    parser.add_argument("--versions", action="append", choices=VERSIONS)
    parser.add_argument("--modes", nargs="+", choices=(*MODES[2:], "wrapped"), help="these only")
    parser.add_argument("--source", type=Path, default=ROOT, help="checkout that is tested")
    parser.add_argument("--work", type=Path, help="folder for environments; kept")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        work = options.work or Path(tempfile.gettempdir()) / "rag-sourcebias-upstream"
        found = json.loads(options.output.read_text("utf-8")) if options.output.exists() else {}
        for versions in options.versions or VERSIONS:
            folder, constraints = (work / versions).resolve(), VERSIONS[versions]
            place = Place(folder, options.source.resolve(), constraints=constraints)
            place.make()
            rows = found.setdefault(versions, {"python": sys.version.split()[0], "suites": {}})
            rows["without"] = {f"{p} {place.version(p)}": why for p, why in WITHOUT.items()}
            for name in options.only or SUITES:
                print(f"{name}, {versions}", flush=True)
                suite = SUITES[name]
                modes = [m for m in suite.modes if m in (options.modes or suite.modes)]
                modes = ["off", "again", *(m for m in modes if m not in ("off", "again"))]
                rows["suites"][name] = compared(place, suite, modes)
                text = json.dumps(found, indent=1, ensure_ascii=False)  # after each: hours are long
                options.output.write_text(text + "\n", encoding="utf-8")
    found = json.loads(options.output.read_text(encoding="utf-8"))
    if options.output == RESULTS:
        PAGE.write_text(page(found), encoding="utf-8")
    rows = [row for part in found.values() for row in part["suites"].values()]
    bad = sum(d["again"] for r in rows for m in r["modes"].values() for d in m.get("different", ()))
    print(f"{bad} differences; broken adapters unnoticed in {sum(map(unnoticed, rows))} suites")
    return int(bad > 0 or any(map(unnoticed, rows)))


if __name__ == "__main__":
    sys.exit(main())
