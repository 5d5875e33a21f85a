"""Damage valid files of every reader, and count what is neither read nor refused in a sentence.

    python benchmarks/robustness/fuzz.py [--n 500] [--seed 0 …] [--only NAME …]

Each reader gets, for each seed, ``n`` damaged copies of its own valid file, in a process of its
own: a crash of a native library is then seen, and memory can be measured. An input fails unless the
reader returns, or raises an error of this library that names the file in one line. ``CONTROLS`` are
readers as one would write them without this library: each has to fail, or the run does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from damage import damaged
from readers import CONTROLS, READERS, Reader

from rag_sourcebias.core.errors import SourceBiasError

SECONDS = 60  # for one small file, on a machine that does other things too
LONGEST = 2_000  # characters of a message


class Hangs(BaseException):
    """A reader took longer than any small file may."""


@dataclass
class Tally:
    """What became of inputs: read, refused in a sentence, or failures by kind."""

    read: int = 0
    refused: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, what: Mapping[str, Any], kind: str, message: str) -> None:
        """Count a failure; the first of each kind is kept, with what makes it again."""
        self.kinds[kind] += 1
        if self.kinds[kind] == 1:
            self.failures.append({**what, "kind": kind, "message": message[:400]})

    def attempt(
        self, read: Callable[[], object], what: Mapping[str, Any], *, named: str = ""
    ) -> None:
        """Read one input; an error of this library is one sentence, and says ``named``."""
        signal.alarm(SECONDS)
        try:
            read()
        except SourceBiasError as error:
            text = str(error)
            if "\n" in text or len(text) > LONGEST:
                self.add(what, f"is not one sentence{_where(error)}", repr(text))
            elif named not in text:
                self.add(what, f"names no file{_where(error)}", text)
            else:
                self.refused += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever comes is what is looked for
            self.add(what, f"{type(error).__name__}{_where(error)}", repr(error))
        else:
            self.read += 1
        finally:
            signal.alarm(0)


def _where(error: BaseException) -> str:
    """Return the last place in this library, by which failures are told apart."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "rag_sourcebias" in f.filename]
    last = (ours or list(frames) or [None])[-1]
    return "" if last is None else f" in {Path(last.filename).name}:{last.name}"


def too_long(*_: object) -> None:
    """Handle the signal of the alarm."""
    raise Hangs


def attempts(reader: Reader, folder: Path, *, n: int, seed: int, first: int = 0) -> Tally:
    """Let a reader read ``n`` damaged copies of its file."""
    reader.write(folder)
    file = folder / reader.file
    content = file.read_bytes()
    reader.read(folder)  # what is valid has to be readable, or nothing is shown
    working = ("-wal", "-shm")  # of SQLite
    own = {p for p in folder.rglob("*") if p.is_file() and not p.name.endswith(working)}
    tally = Tally()
    before = signal.signal(signal.SIGALRM, too_long)
    try:
        for number in range(first, first + n):
            rng = Random(f"{reader.name}/{seed}/{number}")
            for path in {p for p in folder.rglob("*") if p.is_file()} - own:
                path.unlink()
            file.write_bytes(damaged(content, file.name, rng))
            tally.attempt(partial(reader.read, folder), {"input": number}, named=str(folder))
    finally:
        signal.signal(signal.SIGALRM, before)
    return tally


def _peak() -> int:
    """Return the most memory this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


def _child(name: str, n: int, seed: int) -> None:
    """Fuzz one reader and print what came of it as JSON."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    reader = next(r for r in (*READERS, *CONTROLS) if r.name == name)
    with tempfile.TemporaryDirectory() as place:
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


def _run(reader: Reader, n: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", reader.name, "--n", str(n), "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3_600)
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    kind = f"process ended with {done.returncode}"
    example = {"input": None, "kind": kind, "message": done.stderr[-500:]}
    return {"inputs": n, "read": 0, "refused": 0, "failed": {kind: 1}, "examples": [example]}


def main() -> int:
    """Run; the exit code is 1 when an input failed or a control passed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, default=500, help="damaged inputs for each reader")
    parser.add_argument("--seed", type=int, nargs="+", default=[0])
    parser.add_argument("--only", nargs="*", help="names of readers")
    parser.add_argument("--out", type=Path, help="write what came out to this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        _child(asked.child, asked.n, asked.seed[0])
        return 0
    chosen = [r for r in READERS if not asked.only or r.name in asked.only]
    results: dict[str, Any] = {}
    for reader in chosen:
        parts = []
        for seed in asked.seed:
            parts.append(_run(reader, asked.n, seed))
            print(f"{reader.name}, seed {seed}: {_line(parts[-1])}", flush=True)
        results[reader.name] = _joined(parts)
    controls = {
        control.name: _run(control, min(asked.n, 200), asked.seed[0])
        for control in (CONTROLS if not asked.only else ())
    }
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
        "by_reader": results,
    }
    if asked.out is not None:
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
