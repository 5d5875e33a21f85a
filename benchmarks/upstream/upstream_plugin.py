"""A pytest plugin: observe the retrievals of somebody else's tests, and write down how each ended.

    UPSTREAM_OBSERVED=everything UPSTREAM_RESULT=result.json python -m pytest -p upstream_plugin ...

UPSTREAM_OBSERVED is one of

off         nothing is observed
everything  ``instrument("langchain")``, ``("llama-index")`` and ``("chroma")``
in-place    every LangChain retriever and vector store and every Chroma client is instrumented as
            soon as it is made
wrapped     only in standard_suites.py: what is tested is one of our wrappers
broken      as everything, by adapters that take the last document out of each result: the control
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rag_sourcebias import instrument
from rag_sourcebias.observe.observers import CountingObserver

OBSERVED = os.environ.get("UPSTREAM_OBSERVED", "off")
FRAMEWORKS = ("langchain", "llama-index", "chroma")
KINDS = (
    ("langchain_core.retrievers", "BaseRetriever"),
    ("langchain_core.vectorstores", "VectorStore"),
    ("chromadb.api.client", "Client"),
    ("chromadb.api.async_client", "AsyncClient"),
)
RANK = ("passed", "skipped", "xfailed", "xpassed", "failed", "error")  # the worst phase counts
SHOWN = 25  # lines of a traceback

outcomes: dict[str, str] = {}
tracebacks: dict[str, str] = {}
observers: dict[str, CountingObserver] = {}
dropped: list[Any] = []
flushes: list[Callable[[float], object]] = []


class Queued(CountingObserver):
    """Counts on the thread of a queue, as most observers do."""

    inline = False


def pytest_configure() -> None:
    if OBSERVED == "in-place":
        observers["in place"] = CountingObserver()
        # The first call reads from the disk, as an application's does at its start. Those inside of
        # tests must not: some run under a detector of what blocks an event loop.
        for name in FRAMEWORKS:
            instrument(name, observers["in place"], queue=False).close()
        for module, name in KINDS:
            when_made(getattr(import_module(module), name), observe_in_place)
    elif OBSERVED in ("everything", "broken"):
        for name in FRAMEWORKS:
            observers[name] = Queued()
            instrumentation = instrument(name, observers[name])
            dropped.append(instrumentation.dropped)
            flushes.append(instrumentation.flush)
        if OBSERVED == "broken":
            break_adapters()


def observe_in_place(obj: object) -> None:
    # without a queue: it would be a thread for each object of a test run
    dropped.append(instrument(obj, observers["in place"], queue=False).dropped)


def when_made(kind: type, act: Callable[[object], None]) -> None:
    """Call ``act`` with every object of a class, or of a subclass, at the end of its __init__."""
    making = threading.local()

    def wrap(cls: type) -> None:
        init = cls.__init__  # type: ignore[misc]

        @wraps(init)
        def wrapped(self: object, *args: Any, **kwargs: Any) -> None:
            inside = making.__dict__.setdefault("ids", set())
            if id(self) in inside:  # a subclass's __init__ calls this one
                init(self, *args, **kwargs)
                return
            inside.add(id(self))
            try:
                init(self, *args, **kwargs)
            finally:
                inside.discard(id(self))
            act(self)

        cls.__init__ = wrapped  # type: ignore[misc]

    def wrap_subclasses(cls: type) -> None:
        for sub in cls.__subclasses__():
            if "__init__" in vars(sub):
                wrap(sub)
            wrap_subclasses(sub)

    theirs = vars(kind).get("__init_subclass__")

    def init_subclass(cls: type, **kwargs: Any) -> None:
        if theirs is None:
            super(kind, cls).__init_subclass__(**kwargs)
        else:
            theirs.__func__(cls, **kwargs)
        if "__init__" in vars(cls) and not hasattr(vars(cls)["__init__"], "__wrapped__"):
            wrap(cls)

    wrap_subclasses(kind)
    wrap(kind)
    kind.__init_subclass__ = classmethod(init_subclass)  # type: ignore[assignment]


def break_adapters() -> None:
    """Have each adapter lose a document of the application's result after recording it."""

    def then_drop(module: str, owner: str | None, name: str, lists: Callable[..., Any]) -> None:
        holder = import_module(f"rag_sourcebias_integrations.{module}.observe")
        holder = getattr(holder, owner) if owner else holder
        record = getattr(holder, name)

        @wraps(record)
        def broken(*args: Any, **kwargs: Any) -> Any:
            result = record(*args, **kwargs)
            for found in lists(args[1]):
                if isinstance(found, list) and found:
                    found.pop()
            return result

        setattr(holder, name, broken)

    then_drop("langchain", None, "record_documents", lambda documents: [documents])
    then_drop("llama_index", None, "record_nodes", lambda nodes: [nodes])
    then_drop("chroma", "_Query", "finish", lambda result: result["ids"])


def note(node_id: str, outcome: str, text: str) -> None:
    if RANK.index(outcome) >= RANK.index(outcomes.get(node_id, "passed")):
        outcomes[node_id] = outcome
        if outcome in ("failed", "error"):
            tracebacks[node_id] = "\n".join(text.splitlines()[-SHOWN:])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if report.skipped else "xpassed"
    elif report.failed and report.when != "call":
        outcome = "error"
    else:
        outcome = report.outcome
    note(report.nodeid, outcome, report.longreprtext)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if not report.passed:
        note(report.nodeid, "error" if report.failed else "skipped", report.longreprtext)


def pytest_unconfigure() -> None:
    for flush in flushes:
        flush(10.0)
    lost: Counter[str] = Counter()
    for counter in dropped:
        lost.update(counter.by_reason)
    result = {
        "outcomes": outcomes,
        "tracebacks": tracebacks,
        "retrievals": {name: observer.n_events for name, observer in observers.items()},
        "documents": {name: observer.n_documents for name, observer in observers.items()},
        "dropped": lost,
    }
    Path(os.environ["UPSTREAM_RESULT"]).write_text(json.dumps(result, indent=1), encoding="utf-8")
