"""``monitor probe``: canary queries with known twins, asked of a live retriever."""

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer

from rag_sourcebias.cli import options as common
from rag_sourcebias.cli.console import err, json_text, out, require_writable_file, stages
from rag_sourcebias.cli.models import SpecBuilder
from rag_sourcebias.core.data import Dataset
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.beir import read_beir
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.io.samples import cache_dir, load_sample
from rag_sourcebias.monitor.canary import Ask, CanaryQueries, ask_retriever
from rag_sourcebias.monitor.command import SPAN, UNITS
from rag_sourcebias.monitor.data import CanaryPoint, check_range
from rag_sourcebias.monitor.probe import CanaryProbe
from rag_sourcebias.retrieval.rerank import as_search, document_id

_ASKED, _ROUNDS = "What is asked", "Rounds"


# What ``monitor probe`` asks: a part of the application, or a retriever that is built here.


def what_is_asked(
    retriever: str, dataset: Dataset, *, id_key: str | None, cache: Path | None
) -> tuple[Ask, Callable[[Any], str] | None]:
    """Return what is asked, and how the id is read off what comes back."""
    if retriever.startswith("app:"):
        from rag_sourcebias.retrieval.application import load_object  # takes asyncio

        found = load_object(retriever, "--retriever")
        try:
            return as_search(found), partial(document_id, key=id_key)
        except DataError as error:
            raise DataError(f"--retriever {retriever!r}: {error}") from None
    if id_key is not None:
        raise DataError("--id goes with --retriever app:<module>:<name>")
    with stages() as progress:
        progress.begin("indexing")
        builder = SpecBuilder(cache or cache_dir(), progress.advance)
        built = builder.retriever(retriever).build(dataset.corpus)
    return ask_retriever(built, depth=100), None


# ``monitor probe``: canary queries with known twins, asked of a live retriever.


def probe(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="BEIR folder of a paired corpus: queries whose relevant documents exist twice.",
            show_default=False,
        ),
    ] = None,
    *,
    sample: Annotated[
        bool, typer.Option("--sample", help="The bundled sample.", rich_help_panel=_ASKED)
    ] = False,
    split: Annotated[str, typer.Option(help="Of the folder.", rich_help_panel=_ASKED)] = "test",
    source: Annotated[
        str | None,
        typer.Option(help="Source held against human, where there are several."),
    ] = None,
    retriever: Annotated[
        str,
        typer.Option(
            help="app:<module>:<name> asks your application: a LangChain or LlamaIndex retriever, "
            "or a function from a query to document ids, best first. bm25, dense:<model> or "
            "chroma:<model> index the folder's documents.",
            rich_help_panel=_ASKED,
        ),
    ] = "bm25",
    id_key: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Where the id stands in the metadata of what the application returns.",
            rich_help_panel=_ASKED,
        ),
    ] = None,
    measure: Annotated[str, typer.Option(help="Such as NDCG@5.")] = "NDCG@5",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Append to this file, and go on from it; monitor serve --canary shows it.",
            rich_help_panel=_ROUNDS,
        ),
    ] = None,
    per_round: Annotated[
        int, typer.Option(help="Queries in a round.", rich_help_panel=_ROUNDS)
    ] = 20,
    every: Annotated[
        str | None,
        typer.Option(
            help="Time between rounds: 30s, 5m, 1h. Without it one round is run.",
            rich_help_panel=_ROUNDS,
        ),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Stop after so many rounds; or run until Ctrl-C.", rich_help_panel=_ROUNDS
        ),
    ] = None,
    reference: Annotated[
        float, typer.Option(help="Relative Δ, in percent, that no alarm is raised for.")
    ] = 0.0,
    confidence_level: common.ConfidenceLevel = 0.95,
    collection: Annotated[str, typer.Option(help="Value of the label collection.")] = "canary",
    seed: common.Seed = 0,
    cache: common.Cache = None,
    json: common.JsonFile = None,
) -> None:
    """Ask canary queries on a schedule: Relative Δ of the live retriever over time.

    The confidence sequence holds at all rounds at once. The documents of both sources must be in
    the index that is asked.

    For example:

        rag-sourcebias monitor probe my-data --retriever app:my_app.search:retriever \
--output canary.jsonl

        rag-sourcebias monitor probe --sample --retriever bm25 --rounds 3 --every 1s
    """
    require_writable_file("output", output)
    require_writable_file("json", json)
    told: list[str] = []
    span = SPAN.fullmatch((every or "0").strip())
    if span is None or (every is not None and float(span[1]) <= 0):
        raise DataError(f"--every {every!r}: write a time such as 30s, 5m or 1h")
    n_rounds = rounds if rounds is not None else (1 if every is None else None)
    if n_rounds is not None:
        check_range("--rounds", n_rounds, 1)
    if sample == (folder is not None):
        raise DataError("give one data set: a BEIR folder, or --sample")
    dataset = load_sample() if folder is None else read_beir(folder, split=split)
    queries = CanaryQueries.from_dataset(dataset, llm=source)
    asked, doc_id = what_is_asked(retriever, dataset, id_key=id_key, cache=cache)
    found = CanaryProbe(
        asked,
        queries,
        doc_id=doc_id,
        measure=measure,
        per_round=per_round,
        log=output,
        labels={"collection": collection},
        reference=reference,
        confidence_level=confidence_level,
        rng=seed,
    )
    for done in itertools.count(1):
        point = found.run_round()
        told.append(json_text(point.to_dict()))
        if json not in (None, "-"):
            write_atomic(json, told)
        _show(point, told[-1] if json == "-" else "")
        if done == n_rounds:
            break
        sleep(float(span[1]) * UNITS[span[2]])
    if found.dropped.total:
        err.print(f"failed: {dict(found.dropped.by_reason)}", highlight=False, markup=False)


def _show(point: CanaryPoint, json: str) -> None:
    if json:
        print(json, end="", file=out.file, flush=True)
        return
    if point.relative_delta is None:
        out.print(f"no answer to {point.round_n + point.failed} queries", highlight=False)
        return
    now = "–" if point.round_relative_delta is None else f"{point.round_relative_delta:+.1f}"
    alarm = "  [bold red]ALARM[/]" if point.alarm else ""
    out.print(
        f"Relative Δ {point.measure} {now} in this round, {point.relative_delta:+.1f} "
        f"\\[{point.lower:+.1f}, {point.upper:+.1f}] over {point.n} answers{alarm}",
        highlight=False,
        soft_wrap=True,
    )
