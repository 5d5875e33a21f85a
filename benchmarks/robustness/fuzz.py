"""Damage valid files of every reader, and count what is neither read nor refused in a sentence.

    python benchmarks/robustness/fuzz.py [--n 500] [--seed 0 …] [--only NAME …] [--work FOLDER]

With ``--work`` an interrupted run goes on from the reader it was at.

Each reader gets, for each seed, ``n`` damaged copies of its own valid file, in a process of its
own: a crash of a native library is then seen, and memory can be measured. An input fails unless the
reader returns, or raises an error of this library that names the file in one line. Line coverage of
the modules that read, under the first 100 inputs of each reader, is measured with
``pip install coverage``, and left out without it. ``CONTROLS`` are readers as one would write them
without this library: each has to fail, or the run does.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from damage import damaged
from readers import CONTROLS, READERS, Reader

__all__ = ["Tally", "attempts"]

RESULTS = Path(__file__).resolve().parents[1] / "results" / "fuzz.json"
TRACED = 100  # inputs for each reader under which lines are counted, which takes ten times as long
SECONDS = 60  # for one small file, on a machine that does other things too
LONGEST = 2_000  # characters of a message
# What reads files; the rest of a package is not the subject.
MODULES = (
    "io", "tagging.rule_file", "tagging.yaml_file", "tagging.yaml_nodes", "tagging.append_log",
    "tagging.jsonl_records", "tagging.jsonl_store", "tagging.sqlite_store",
    "tagging.sqlite_tag_file", "tagging.detector.files", "mitigate.projection",
    "mitigate.parity_file", "measures.adjustment_file", "judges.anchors", "corpora.manifest",
    "corpora.annotate_read", "corpora.annotate_answers", "corpora.humans", "retrieval.cache",
    "llm.cache", "audit.sharded.folder", "monitor.log.reading", "monitor.log.segments",
    "monitor.log.tables", "monitor.log.tail", "monitor.log.read_rollups", "monitor.log.schema",
    "monitor.parquet_events", "monitor.follow_state", "monitor.sequential.state", "types.serial",
)  # fmt: skip


class Hangs(BaseException):
    """A reader took longer than any small file may."""


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    read: int = 0
    refused: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, number: int, kind: str, message: str) -> None:
        """Count a failure; the first of each kind are kept with the number that makes it again."""
        self.kinds[kind] += 1
        if self.kinds[kind] <= 3:
            self.failures.append({"input": number, "kind": kind, "message": message[:300]})


def _too_long(*_: object) -> None:
    raise Hangs


def attempts(reader: Reader, folder: Path, *, n: int, seed: int, first: int = 0) -> Tally:
    """Let a reader read ``n`` damaged copies of its file."""
    from rag_sourcebias.core.errors import SourceBiasError

    reader.write(folder)
    file = folder / reader.file
    content = file.read_bytes()
    reader.read(folder)  # what is valid has to be readable, or nothing is shown
    own = {path for path in folder.rglob("*") if path.is_file()} - _working_files(folder)
    tally = Tally()
    before = signal.signal(signal.SIGALRM, _too_long)
    try:
        for number in range(first, first + n):
            rng = Random(f"{reader.name}/{seed}/{number}")
            for path in {p for p in folder.rglob("*") if p.is_file()} - own:
                path.unlink()
            file.write_bytes(damaged(content, file.name, rng))
            _attempt(reader, folder, number, tally, SourceBiasError)
    finally:
        signal.signal(signal.SIGALRM, before)
    return tally


def _working_files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.name.endswith(("-wal", "-shm"))}


def _attempt(
    reader: Reader, folder: Path, number: int, tally: Tally, refusal: type[Exception]
) -> None:
    signal.alarm(SECONDS)
    try:
        reader.read(folder)
    except refusal as error:
        text = str(error)
        if str(folder) not in text:
            tally.add(number, "names no file", f"{type(error).__name__}: {text}")
        elif "\n" in text or len(text) > LONGEST:
            tally.add(number, "is not one sentence", f"{type(error).__name__}: {text!r}")
        else:
            tally.refused += 1
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - whatever comes is what is looked for
        tally.add(number, type(error).__name__, f"{error!r}")
    else:
        tally.read += 1
    finally:
        signal.alarm(0)


def _peak() -> int:
    """Return the most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


@contextlib.contextmanager
def _covering(file: Path | None) -> Iterator[None]:
    if file is None:
        yield
        return
    import coverage
    import rag_sourcebias

    root = Path(rag_sourcebias.__file__).parent
    watch = coverage.Coverage(data_file=str(file), source=[str(root)], config_file=False)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        watch.save()


def _child(name: str, n: int, seed: int, coverage_file: Path | None) -> None:
    """Fuzz one reader and print what came of it as JSON."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    reader = next(r for r in (*READERS, *CONTROLS) if r.name == name)
    with tempfile.TemporaryDirectory() as place, _covering(coverage_file):
        with contextlib.redirect_stdout(io.StringIO()):
            attempts(reader, _made(Path(place) / "warm"), n=20, seed=seed + 1_000)
            peak, since = _peak(), time.process_time()
            tally = attempts(reader, _made(Path(place) / "run"), n=n, seed=seed)
        grown, seconds = _peak() - peak, time.process_time() - since
    print(
        json.dumps(
            {
                "inputs": n,
                "read": tally.read,
                "refused": tally.refused,
                "failed": dict(tally.kinds),
                "examples": tally.failures,
                "memory_grown_mb": round(grown / 2**20, 1),
                "seconds": round(seconds, 1),
            }
        )
    )


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _run(reader: Reader, n: int, seed: int, coverage_file: Path | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", reader.name, "--n", str(n), "--seed", str(seed)]
    if coverage_file is not None:
        command += ["--coverage", str(coverage_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3_600)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    kind = f"process ended with {done.returncode}"
    example = {"input": None, "kind": kind, "message": done.stderr[-500:]}
    return {"inputs": n, "read": 0, "refused": 0, "failed": {kind: 1}, "examples": [example]}


def _covered(files: list[Path]) -> dict[str, Any]:
    """Return the line coverage of the modules that read, from the data of all processes."""
    import coverage

    joined = coverage.Coverage(data_file=None, config_file=False)
    joined.combine([str(file) for file in files if file.exists()], keep=True)
    lines = missed = 0
    by_module: dict[str, float] = {}
    for module in sorted(_module_names()):
        source = importlib.import_module(f"rag_sourcebias.{module}").__file__
        _, statements, _, missing, _ = joined.analysis2(str(source))
        if statements:
            by_module[module] = round(1 - len(missing) / len(statements), 3)
        lines, missed = lines + len(statements), missed + len(missing)
    return {"lines": lines, "covered": round(1 - missed / lines, 3), "by_module": by_module}


def _module_names() -> set[str]:
    import rag_sourcebias

    root = Path(rag_sourcebias.__file__).parent
    found = set()
    for name in MODULES:
        place = root.joinpath(*name.split("."))
        found |= {f"{name}.{p.stem}" for p in place.glob("*.py")} if place.is_dir() else {name}
    # writers, downloads and bundled data read nothing that a user gives
    none = ("write", "download", "bundled", "public_sets", "datasets", "sample", "pairs_csv")
    return {n for n in found if not n.endswith("__init__") and not any(w in n for w in none)}


def main() -> int:
    """Run; the exit code is 1 when an input failed or a control passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="damaged inputs for each reader")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="*", help="names of readers")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--work", type=Path, help="keep what was measured of each reader here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--coverage", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child, asked.n, asked.seed[0], asked.coverage)
        return 0
    measured = importlib.util.find_spec("coverage") is not None
    scratch = asked.work or Path(tempfile.mkdtemp(prefix="fuzz-"))
    scratch.mkdir(parents=True, exist_ok=True)
    chosen = [r for r in READERS if not asked.only or r.name in asked.only]
    results: dict[str, Any] = {}
    files: list[Path] = []
    try:
        for i, reader in enumerate(chosen):
            files.append(scratch / f"{i}.coverage")
            parts = []
            for seed in asked.seed:
                kept = scratch / f"{i}-{asked.n}-{seed}.json"
                if not kept.exists():
                    found = _run(reader, asked.n, seed, None)
                    if measured and seed == asked.seed[0]:
                        _run(reader, min(asked.n, TRACED), seed, files[-1])
                    kept.write_text(json.dumps(found), encoding="utf-8")
                    print(f"{reader.name}, seed {seed}: {_line(found)}", flush=True)
                parts.append(json.loads(kept.read_text(encoding="utf-8")))
            results[reader.name] = _joined(parts)
        controls = {
            control.name: _run(control, min(asked.n, 200), asked.seed[0], None)
            for control in (CONTROLS if not asked.only else ())
        }
        covered = _covered(files) if measured else None
    finally:
        if asked.work is None:
            shutil.rmtree(scratch, ignore_errors=True)
    failed = sum(sum(found["failed"].values()) for found in results.values())
    caught = {name: sum(found["failed"].values()) for name, found in controls.items()}
    summary = {
        "seed": asked.seed,
        "readers": len(results),
        "inputs": sum(found["inputs"] for found in results.values()),
        "read": sum(found["read"] for found in results.values()),
        "refused": sum(found["refused"] for found in results.values()),
        "unexpected": failed,
        "most_memory_grown_mb": max(f.get("memory_grown_mb", 0.0) for f in results.values()),
        "controls_failed": caught,
        "line_coverage": covered,
        "by_reader": results,
    }
    if not asked.only:
        asked.out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({k: v for k, v in summary.items() if k != "by_reader"}, indent=1)[:2_000])
    return 1 if failed or not all(caught.values()) else 0


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what was found with all seeds."""
    return {
        **{name: sum(part[name] for part in parts) for name in ("inputs", "read", "refused")},
        "failed": dict(sum((Counter(part["failed"]) for part in parts), Counter())),
        "examples": [example for part in parts for example in part["examples"]],
        "memory_grown_mb": max(part.get("memory_grown_mb", 0.0) for part in parts),
    }


def _line(found: dict[str, Any]) -> str:
    said = f"{found['read']} read, {found['refused']} refused"
    return f"{said}, FAILED {found['failed']}" if found["failed"] else said


if __name__ == "__main__":
    sys.exit(main())
