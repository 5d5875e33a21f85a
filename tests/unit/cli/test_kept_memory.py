"""Commands keep memory that tensors free; an application that imports the library is left alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytest.importorskip("sentence_transformers")

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator of glibc"),
]

MEASURED = """
import resource
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def touch():
    b"x" * (48 << 20)
touch()
before = faults()
for _ in range(10):
    touch()
print(faults() - before)
"""
COMMAND = "from rag_sourcebias.neural.named import sentence_encoder as e; e('all-MiniLM-L6-v2', {})"
LIBRARY = "from rag_sourcebias.neural import SentenceEncoder as e; e('all-MiniLM-L6-v2')"
INSTRUMENTED = """
from rag_sourcebias import ExposureObserver, instrument
seen = ExposureObserver()
with instrument("langchain", seen), instrument(lambda query: [query], seen) as handle:
    handle.target("q")
"""


def faults_of_ten(first: str, **environment: str) -> int:
    """Pages that ten allocations of 48 MiB fault in, after one that went before."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run(
        [sys.executable, "-c", first + MEASURED],
        env=clean | environment, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return int(done.stdout)


def test_a_command_keeps_what_it_freed() -> None:
    assert faults_of_ten(COMMAND) < faults_of_ten(LIBRARY) / 5


def test_an_instrumented_application_is_left_alone() -> None:
    own = faults_of_ten("")
    assert own > 5 * faults_of_ten(COMMAND)  # there is something that could be changed
    assert faults_of_ten(INSTRUMENTED) > own / 2
