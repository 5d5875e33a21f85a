"""What `instrument()` takes after the first call, and whether it blocks an event loop.

    python benchmarks/speed/instrumenting.py [--quick] [--output FILE]

Each target is instrumented and released 1,000 times with one observer; the first call, which reads
entry points and imports the framework's adapter, is not counted. Given are median and maximum of
the time on the clock, the maximum of the processor time of the thread (other programs of the
machine are in the first two), and how many calls of the interpreter's own opened, looked at or
waited for something (audit events of files, folders, sockets, processes and sleep). Exit status 1
when the median on the clock, or the most processor time, reaches 1 ms, or anything was opened.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from pathlib import Path

import chromadb
import llama_index.core  # noqa: F401 - its retrievers are what a name stands for
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from rounds import finish, row

from rag_sourcebias.observe.observers import ExposureObserver
from rag_sourcebias.observe.recorder import instrument

MOST_MS = 1.0
WAITS = ("open", "os.", "glob.", "shutil.", "socket.", "sqlite3.", "subprocess.", "time.sleep")
waited: list[str] = []


def targets() -> dict[str, object]:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(id="a", page_content="x")])
    collection = chromadb.EphemeralClient().create_collection("one", embedding_function=None)
    return {
        '"langchain"': "langchain",
        '"llama-index"': "llama-index",
        '"chroma"': "chroma",
        "a LangChain retriever": store.as_retriever(),
        "a LangChain vector store": store,
        "a Chroma collection": collection,
        "a function": lambda _: ["a"],
    }


def timed(target: object, n: int) -> dict[str, float]:
    """Milliseconds of each call after the first, and what was waited for."""
    observer = ExposureObserver()
    instrument(target, observer).close()
    wall, own = [], []
    waited.clear()
    n_waited = 0
    gc.collect()
    for _ in range(n):
        before = len(waited)
        start, begun = time.perf_counter(), time.thread_time()
        handle = instrument(target, observer)
        own.append(1e3 * (time.thread_time() - begun))
        wall.append(1e3 * (time.perf_counter() - start))
        n_waited += len(waited) - before
        handle.close()
    return {
        "median": statistics.median(wall),
        "longest": max(wall),
        "most_cpu": max(own),
        "waited": n_waited,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="20 calls, no verdict")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    n = 20 if options.quick else 1_000
    given = targets()
    sys.addaudithook(lambda event, _: waited.append(event) if event.startswith(WAITS) else None)
    with Path(__file__).open("rb"):
        pass
    if "open" not in waited:
        raise SystemExit("the audit hook sees no file that is opened")
    found = {what: timed(target, n) for what, target in given.items()}
    rows = [
        row(
            f"instrument({what})",
            f"median {t['median']:.3f} ms, longest {t['longest']:.2f} ms",
            f"most processor time {t['most_cpu']:.2f} ms; {t['waited']} times waited",
            t["median"],
            f"< {MOST_MS:g} ms, and nothing is waited for",
            t["median"] < MOST_MS and t["most_cpu"] < MOST_MS and not t["waited"],
        )
        for what, t in found.items()
    ]
    return finish(
        "instrumenting",
        rows,
        quick=options.quick,
        output=options.output,
        n_calls=n,
        longest_ms=round(max(t["longest"] for t in found.values()), 3),
        most_cpu_ms=round(max(t["most_cpu"] for t in found.values()), 3),
        slowest_median_ms=round(max(t["median"] for t in found.values()), 4),
    )


if __name__ == "__main__":
    sys.exit(main())
