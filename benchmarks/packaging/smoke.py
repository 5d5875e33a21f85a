"""One real thing done with one extra, in an environment that holds nothing else.

    python benchmarks/packaging/smoke.py EXTRA

``none`` is the installation without extras. Connections to other machines are refused while it
runs, so what it does is done offline. Exit status 1 and a traceback when something fails.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from smoke_models import check

LOCAL = ("127.0.0.1", "::1", "localhost", "", None)


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: raise where another machine would be asked."""
    if event == "socket.connect" and isinstance(args[1], tuple) and args[1][0] not in LOCAL:
        raise PermissionError(f"a connection to {args[1]}")
    if event == "socket.getaddrinfo" and args[0] not in LOCAL:
        raise PermissionError(f"a look-up of {args[0]!r}")


def command(*arguments: str | Path) -> str:
    """Run the command line and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "rag_sourcebias", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    check(done.returncode == 0, f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def none(folder: Path) -> str:
    code = (
        "import rag_sourcebias as r, sys; [getattr(r, name) for name in r.__all__]; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {n for n in done.stdout.split() if n not in sys.stdlib_module_names}
    others = {n for n in others if not n.startswith("_")} - {"numpy", "rag_sourcebias"}
    check(not others, f"the import brings {sorted(others)}")
    from rag_sourcebias._version import __version__

    check(__version__ in command("--version"), "--version prints something else")
    check("[" in command("interval", "--sample"), "interval prints no interval")
    check("crowdrag" in command("start"), "start does not list the bundled sample")
    missing = subprocess.run(
        [sys.executable, "-m", "rag_sourcebias", "interval", "--sample", "--report", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    check(
        "rag-sourcebias[report]" in "".join(missing.stderr.split()),
        f"no remedy named: {missing.stderr}",
    )
    wrong = [(e, got) for e, code in MISSING if (got := named_extra(code)) != e]
    check(not wrong, f"extras that are not named: {wrong}")
    return f"imports numpy only; --version, interval, datasets; {len(MISSING)} extras are named"


# What is tried without any extra, and the extra that must be named.
MISSING = (
    ("retrieval", "from rag_sourcebias.retrieval import BM25Spec as B; B().build(CORPUS)"),
    ("neural", "from rag_sourcebias.neural import SentenceEncoder as S; S('all-MiniLM-L6-v2')"),
    ("chroma", "import rag_sourcebias_integrations.chroma"),
    ("langchain", "import rag_sourcebias_integrations.langchain"),
    ("llama-index", "import rag_sourcebias_integrations.llama_index"),
    ("ragas", "import rag_sourcebias_integrations.ragas"),
    ("otel", "import rag_sourcebias_integrations.opentelemetry"),
    ("prometheus", "import rag_sourcebias_integrations.prometheus"),
    ("ray", "from rag_sourcebias_integrations.ray import RayEngine as R; R(1)"),
    ("maps", "from rag_sourcebias.explain.vectors import require_map as r; r('tsne')"),
    ("detector", "from rag_sourcebias.tagging.detector.features import require_sklearn as r; r()"),
    ("text", "from rag_sourcebias.measure.texts import text_scores as t; t('BLEU', ['a'], ['a'])"),
    (
        "monitor",
        "from rag_sourcebias.monitor.dashboard.server import DashboardServer as D; D(None)",
    ),
)


def named_extra(code: str) -> str:
    """Return the extra that code says it needs, or what happened instead."""
    from rag_sourcebias.core.errors import MissingExtraError
    from rag_sourcebias.intake.samples import load_sample

    try:
        exec(code, {"CORPUS": load_sample().corpus})
    except MissingExtraError as error:
        return error.extra
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return repr(error)
    return "nothing"


def retrieval(folder: Path) -> str:
    found = command("audit", "source", "--sample", "--retriever", "bm25", "--cache", folder)
    check("NDCG" in found, "no NDCG in the audit")
    return "audit source --sample --retriever bm25"


def report(folder: Path) -> str:
    command("interval", "--sample", "--report", folder)
    page = (folder / "report.html").read_text(encoding="utf-8")
    check("<svg" in page, "the report holds no plot")
    return "interval --sample --report"


def detector(folder: Path) -> str:
    from rag_sourcebias.intake.samples import load_sample

    corpus = load_sample().corpus
    path = folder / "labelled.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["doc_id", "text", "source"])
        for name, content in zip(corpus.doc_ids, corpus.texts, strict=True):
            rows.writerow([name, content, name.partition("@")[2]])
    command("tag", "fit", path, "--output", folder / "detector")
    check(any((folder / "detector").iterdir()), "no detector was written")
    return "tag fit on the bundled sample"


def maps(_folder: Path) -> str:
    import numpy as np

    from rag_sourcebias.explain.vectors import map_sources

    human = np.random.default_rng(0).normal(size=(40, 8))
    found = map_sources(human, human + 0.1, method="tsne", seed=0)
    check(np.isfinite(found.human).all(), "t-SNE gives no finite places")
    return "a map by t-SNE"


def text(_folder: Path) -> str:
    from rag_sourcebias.measure.texts import TEXT_STATISTICS, text_scores

    names = list(TEXT_STATISTICS)
    for name in names:
        (found,) = text_scores(name, ["the cat sat on the mat"], ["a cat sat on the mat"])
        check(found > 0, f"{name} is {found}")
    return ", ".join(names)


def parquet(folder: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    judge = [i % 7 / 7 for i in range(200)]
    human = [float(j > 0.4) if i < 60 else None for i, j in enumerate(judge)]
    pq.write_table(pa.table({"human": human, "judge": judge}), folder / "items.parquet")
    check("[" in command("interval", folder / "items.parquet"), "no interval")
    return "interval items.parquet"


def openai(_folder: Path) -> str:
    from smoke_servers import ANSWER, chat_server

    from rag_sourcebias.llm.openai import OpenAICompleter

    with chat_server() as url:
        model = OpenAICompleter("m", base_url=url, api_key="none")
        found = model.complete("q", max_tokens=5, temperature=0.0, seed=0)
    check(found.text == ANSWER, f"the model answered {found}")
    return "a completion from a local server"


def neural(folder: Path) -> str:
    from smoke_models import static_model

    from rag_sourcebias.neural.loading import SentenceEncoder

    encoder = SentenceEncoder(static_model(folder / "model"), device="cpu")
    check(encoder.encode_documents(["a river"]).shape == (1, 16), "vectors of another shape")
    return "an encoder from a model folder"


def models(_folder: Path) -> str:
    import gguf

    from rag_sourcebias.core.errors import MissingExtraError
    from rag_sourcebias.neural.loading import ENCODERS, SentenceEncoder

    check(gguf.GGUFReader, "gguf reads nothing")
    check(ENCODERS["all-MiniLM-L6-v2"].find(), "the packaged encoder is not found")
    try:
        found = SentenceEncoder("all-MiniLM-L6-v2", device="cpu").encode_documents(["a river"])
    except MissingExtraError as error:
        check(error.extra == "neural", f"not the extra to install: {error}")
        return "files of the packaged encoder verified; encoding also needs [neural]"
    check(found.shape == (1, 384), "vectors of another shape")
    return "the packaged encoder encodes"


def actions() -> dict[str, Callable[[Path], str]]:
    import smoke_frameworks

    def of(module: ModuleType, names: str) -> dict[str, Callable[[Path], str]]:
        return {name.replace("_", "-"): getattr(module, name) for name in names.split()}

    here = "none retrieval report detector maps text parquet openai neural models"
    there = "chroma langchain langchain_classic llama_index ragas monitor prometheus otel ray"
    return of(sys.modules[__name__], here) | of(smoke_frameworks, there)


def main() -> int:
    known = actions()
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        print(f"give one of {' '.join(known)}", file=sys.stderr)
        return 2
    sys.addaudithook(refuse_network)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        print(known[sys.argv[1]](Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
