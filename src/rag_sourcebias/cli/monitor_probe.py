"""``monitor probe``: canary queries with known twins, asked of a live retriever."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from rag_sourcebias.cli import monitor_probe_options as opt
from rag_sourcebias.cli import options as common
from rag_sourcebias.cli.checks import require_writable_file
from rag_sourcebias.cli.console import err, json_text, out
from rag_sourcebias.cli.monitor_asked import what_is_asked
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import load_sample, read_beir
from rag_sourcebias.monitor.canary.probe import CanaryProbe
from rag_sourcebias.monitor.canary.queries import CanaryQueries
from rag_sourcebias.types import Dataset
from rag_sourcebias.types.canary import CanaryPoint

__all__ = ["probe"]

_EVERY = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def probe(
    folder: opt.Folder = None,
    *,
    sample: opt.Sample = False,
    split: opt.Split = "test",
    other_source: opt.OtherSource = None,
    ask: opt.Ask = None,
    retriever: opt.Retriever = None,
    id_key: opt.IdKey = None,
    measure: opt.Measure = "NDCG@5",
    points: opt.Points = None,
    per_round: opt.PerRound = 20,
    every: opt.Every = None,
    rounds: opt.Rounds = None,
    reference: opt.Reference = 0.0,
    confidence_level: common.ConfidenceLevel = 0.95,
    collection: opt.Collection = "canary",
    seed: common.Seed = 0,
    cache: common.Cache = None,
    json: opt.Json = False,
) -> None:
    """Ask canary queries on a schedule: Relative Δ of the live retriever over time.

    The confidence sequence holds at all rounds at once. The documents of both sources must be in
    the index that is asked.

    [bold]Examples[/]

        rag-sourcebias monitor probe my-data --ask my_app.search:retriever --points canary.jsonl

        rag-sourcebias monitor probe --sample --retriever bm25 --rounds 3 --every 1s
    """
    require_writable_file("points", points)
    pause = _pause(every)
    n_rounds = rounds if rounds is not None else (1 if every is None else None)
    if n_rounds is not None and n_rounds < 1:
        raise DataError(f"--rounds must be at least 1, got {n_rounds}")
    dataset = _dataset(folder, sample=sample, split=split)
    queries = CanaryQueries.from_dataset(dataset, llm=other_source)
    asked, doc_id = what_is_asked(ask, retriever, dataset, id_key=id_key, cache=cache)
    found = CanaryProbe(
        asked,
        queries,
        doc_id=doc_id,
        measure=measure,
        per_round=per_round,
        log=points,
        labels={"collection": collection},
        reference=reference,
        confidence_level=confidence_level,
        rng=seed,
    )
    stop, done = threading.Event(), 0
    while not stop.is_set():
        _show(found.run_round(), json=json)
        done += 1
        if n_rounds is not None and done >= n_rounds:
            break
        stop.wait(pause)
    if found.dropped.total:
        err.print(f"failed: {dict(found.dropped.by_reason)}", highlight=False, markup=False)


def _show(point: CanaryPoint, *, json: bool) -> None:
    if json:
        out.file.write(json_text(point.to_dict()))
        out.file.flush()
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


def _pause(every: str | None) -> float:
    if every is None:
        return 0.0
    found = _EVERY.fullmatch(every.strip())
    if found is None or float(found[1]) <= 0:
        raise DataError(f"--every {every!r}: write a time such as 30s, 5m or 1h")
    return float(found[1]) * _SECONDS[found[2]]


def _dataset(folder: Path | None, *, sample: bool, split: str) -> Dataset:
    if sample == (folder is not None):
        raise DataError("give one data set: a BEIR folder, or --sample")
    return load_sample() if folder is None else read_beir(folder, split=split)
