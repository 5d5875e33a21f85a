"""What a user reads off each stored format, by names that version 0.1 documented.

The same functions run with the code of version 0.1, which writes ``expected.json``, and with
today's, which must read the same.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np

_WORDED = ("message", "assumptions", "words")
PROBES = ["word1 word2 word3", "word7 what word9", "word20"]


def plain(value: Any) -> Any:
    """Return plain JSON values without sentences, which may be worded anew; NaN becomes None."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items() if key not in _WORDED}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def fields(value: Any, *names: str) -> dict[str, Any]:
    """Return attributes by name."""
    return {name: plain(getattr(value, name)) for name in names}


def command(*args: str, cwd: Path) -> str:
    """Return what a command prints; white space as one blank."""
    from command_line import succeed

    return succeed(*args, cwd=cwd)


def _columns(columns: Any) -> dict[str, Any]:
    names = ("numbers", "times", "weights", "label_codes", "labels", "offsets", "tag_codes")
    return fields(columns, *names, "tags", "query_ids", "doc_ids")


def event_log(folder: Path) -> Any:
    from inputs import START, events

    from rag_sourcebias.monitor import (
        EventLog,
        SkewMonitor,
        log_summary,
        read_events,
        read_rollups,
    )

    found: dict[str, Any] = {}
    for name in ("none", "hashed", "plain", "old"):
        path = folder / f"{name}.db"
        known = ("n_written", "n_kept", "since", "until", "dropped", "labels", "tags")
        found[name] = {"summary": fields(log_summary(path), *known)}
        found[name]["events"] = _columns(read_events(path))
        for by in ("source", "style"):
            rollups = read_rollups(path, by=by, step=600, labels={"collection": "docs"})
            found[name][f"rollups by {by}"] = fields(
                rollups, "starts", "groups", "documents", "first", "exposure", "retrievals", "empty"
            )
        # goes on in the same file, with the same codes and hashes
        kept, now = "plain" if name == "old" else name, START + 4 * 86_400
        with EventLog(path, documents=kept, clock=lambda now=now: now) as log:
            log.record(events(2)[1], at=now)
        more = _columns(read_events(path, since=now - 1))
        found[name]["gone on"] = {k: v for k, v in more.items() if "label" not in k}
        found[name]["labels"] = [more["labels"][code]["collection"] for code in more["label_codes"]]
    given = ["monitor", "replay", "archive", "--baseline", "reference:10", "--json"]
    if "test" in inspect.signature(SkewMonitor).parameters:  # today's default tests blocks
        given += ["--test", "independent"]
    text = command(*given, cwd=folder)
    found["archive"] = plain(json.loads(text))
    return found


def monitor_state(folder: Path) -> Any:
    from inputs import monitors, timed

    from rag_sourcebias.monitor import LogFollower, SkewMonitor

    found: dict[str, Any] = {}
    for name in monitors():
        monitor = SkewMonitor.from_dict(json.loads((folder / f"{name}.json").read_text("utf-8")))
        found[name] = {"stored": plain(monitor.snapshot()), "alarms": plain(monitor.alarms)}
        monitor.record_many([(event, at + 4_000) for event, at in timed(60)])
        found[name]["gone on"] = plain(monitor.snapshot())
    follower = LogFollower(folder / "log.db", monitors()["corpus"], state=folder / "state.json")
    found["follower"] = {"read before": follower.n_read, "new": follower.step()}
    found["follower"]["snapshots"] = plain(follower.monitor.snapshot())
    follower.close()
    return found


def canary(folder: Path) -> Any:
    from inputs import probe

    from rag_sourcebias.monitor import read_points

    before = [_point(point) for point in read_points(folder / "canary.jsonl")]
    with probe(folder) as running:
        return {"points": before, "next": _point(running.run_round())}


def _point(point: Any) -> Any:
    return {name: value for name, value in plain(point).items() if name != "seconds"}


def monitoring_rules(folder: Path) -> Any:
    """Names of metrics in rules that a user has deployed; today's must still have them."""
    from rag_sourcebias.monitor import write_rules

    pattern = re.compile(r"rag_sourcebias_\w+")

    def names(place: Path) -> set[str]:
        texts = [path.read_text("utf-8") for path in place.rglob("*") if path.is_file()]
        return {name for text in texts for name in pattern.findall(text)}

    write_rules(folder / "now")
    deployed = names(folder / "rules")
    return {"deployed": sorted(deployed), "gone": sorted(deployed - names(folder / "now"))}


def _tags(table: Any) -> Any:
    names = ("source", "style", "pair_id", "origin", "confidence")
    return {doc_id: fields(table.get(doc_id), *names) for doc_id in table.doc_ids}


def tags(folder: Path) -> Any:
    from rag_sourcebias.io import read_tags
    from rag_sourcebias.tagging import open_tag_store

    found: dict[str, Any] = {}
    for ending in ("jsonl", "sqlite"):
        store = open_tag_store(folder / f"store.{ending}")
        by_text = store.get_by_text(["text of b", "text of nothing"])
        found[f"store.{ending}"] = {
            "table": _tags(store.table()),
            "by text": [fields(tags, "source", "origin", "confidence") for tags in by_text],
        }
    for ending in ("tsv", "csv", "jsonl"):
        found[f"table.{ending}"] = _tags(read_tags(folder / f"table.{ending}"))
    for ending in ("jsonl", "sqlite"):
        side = f"side.{ending}"
        found[side] = {"table": _tags(open_tag_store(folder / side).table())}
        given = ("--store", "corpus:docs.jsonl", "--rules", "rules.yaml", "--sidecar", side)
        tables = command("tag", "apply", *given, cwd=folder).partition("how sources are known")[0]
        found[side]["again"] = re.findall(r"\d+", tables)
    return found


def detector(folder: Path) -> Any:
    from rag_sourcebias.tagging import open_tag_store

    given: tuple[str, ...] = ("--store", "corpus:docs.jsonl", "--detector", "detector")
    given += ("--sidecar", "t.jsonl")
    if "--unverified" in command("tag", "apply", "--help", cwd=folder):  # today's waits for people
        given += ("--unverified",)
    command("tag", "apply", *given, cwd=folder)
    note = json.loads((folder / "t.jsonl.taggers.json").read_text("utf-8"))
    return {"tags": _tags(open_tag_store(folder / "t.jsonl").table()), **note}


def models(folder: Path) -> Any:
    from rag_sourcebias.mitigate import ProjectedEncoder, read_projection
    from rag_sourcebias.neural import SentenceEncoder

    base = SentenceEncoder(folder / "plain")
    found: dict[str, Any] = {"plain": plain(base.encode_documents(PROBES))}
    for name in ("projected", "sided"):
        projection = read_projection(folder / f"{name}.npz")
        inside = read_projection(folder / name / "source_projection.npz")
        encoder = SentenceEncoder(folder / name)
        found[name] = {
            "projection": fields(
                projection, "strength", "sides", "method", "n_pairs", "reliability", "encoder"
            ),
            "same inside": inside.fingerprint == projection.fingerprint,
            "fingerprints": [projection.fingerprint, encoder.fingerprint],
            "documents": plain(encoder.encode_documents(PROBES)),
            "queries": plain(encoder.encode_queries(PROBES)),
            "projected": plain(ProjectedEncoder(base, projection).encode_documents(PROBES)),
        }
    return found


def training(folder: Path) -> Any:
    from inputs import TRAIN

    from rag_sourcebias.neural import SentenceEncoder

    history = json.loads((folder / "trained" / "training_history.json").read_text("utf-8"))
    kept = sorted(path.name for path in (folder / "interrupted.training").glob("checkpoint-*"))
    command(*TRAIN, "--output", "interrupted", cwd=folder)
    vectors = [
        plain(SentenceEncoder(folder / name).encode_documents(PROBES))
        for name in ("trained", "interrupted")
    ]
    return {"kind": history["kind"], "kept": kept, "trained": vectors[0], "resumed": vectors[1]}


def fitted(folder: Path) -> Any:
    from inputs import answers, twins

    from rag_sourcebias.measures import read_adjustment
    from rag_sourcebias.mitigate import read_parity

    found: dict[str, Any] = {}
    for form in ("offset", "quantiles"):
        parity = read_parity(folder / f"{form}.json", encoder="e1")
        found[form] = fields(parity, "encoder", "baseline", "form", "sources", "n_pairs", "gaps")
        scores = twins().source_scores[:20]
        found[form]["applied"] = plain(parity.apply(scores, [twins().source] * 20))
    adjustment = read_adjustment(folder / "adjustment.json")
    found["adjustment"] = plain(adjustment.apply(answers()).scores[:20])
    return found


def labels(folder: Path) -> Any:
    found = {}
    for sheet in ("sheet.csv", "sheet.jsonl"):
        given = ("--run", "a.run", "--labels", "judge.tsv", "--json", "-")
        report = json.loads(command("labels", "interval", sheet, *given, cwd=folder))
        found[sheet] = plain(report)
    return found


def annotations(folder: Path) -> Any:
    from rag_sourcebias.corpora import read_annotation_key, read_annotations

    key = read_annotation_key(folder / "sheets.key.json")
    read = read_annotations(sorted((folder / "sheets").glob("*.*")), key=key)
    found = {"key": plain(key), "annotations": plain(read)}
    agreement = command("annotate", "read", "sheets", "--json", "-", cwd=folder)
    return found | {"agreement": plain(json.loads(agreement))}


def rewritten(folder: Path) -> Any:
    from datetime import date

    from inputs import Writer, paired

    from rag_sourcebias.corpora import build_paired_corpus, read_manifest
    from rag_sourcebias.io import read_beir

    manifest = read_manifest(folder / "pairs")
    dataset = read_beir(folder / "pairs")
    writer = Writer()
    build_paired_corpus(paired(6), writer, folder / "pairs", today=date(2026, 11, 23))
    (source,) = manifest.sources
    return {
        "manifest": fields(source, "source", "model", "fingerprint", "date"),
        "schema": manifest.schema_version,
        "texts": dict(zip(dataset.corpus.tags.doc_ids, dataset.corpus.texts, strict=True)),
        "asked again": writer.n_asked,
    }


def judging(folder: Path) -> Any:
    from command_line import inside

    from rag_sourcebias.judges import read_anchor_set

    anchors = read_anchor_set(folder / "anchors.json")
    code, _, drift = inside("judge", "drift", "anchors.json", "moved.csv", cwd=folder)
    found = fields(anchors, "ids", "human", "judge", "slope", "intercept", "settings")
    return found | {"drift": [code, re.findall(r"[-−+]?\d+\.\d+", drift)]}


def caches(folder: Path) -> Any:
    from inputs import Bins, Writer, requests

    from rag_sourcebias.llm import CompletionCache, ask_all
    from rag_sourcebias.retrieval import CachedEncoder, VectorCache

    bins, writer = Bins(), Writer()
    encoder = CachedEncoder(bins, VectorCache(folder / "vectors.sqlite"))
    cache = CompletionCache(folder / "answers.sqlite")
    outcomes = sorted(ask_all(writer, requests(), cache=cache), key=lambda one: one.index)
    return {
        "documents": plain(encoder.encode_documents(["three", "one two"])),
        "queries": plain(encoder.encode_queries(["one"])),
        "encoded": bins.n_texts,
        "answers": [plain(one.answer) for one in outcomes],
        "asked": writer.n_asked,
    }


def audit_sharded(folder: Path) -> tuple[Any, int]:
    """Audit a folder with a work folder, and count the texts that had to be encoded."""
    from inputs import Bins

    from rag_sourcebias.audit import ShardedRetriever, audit_source_sharded
    from rag_sourcebias.io import open_sharded

    for file in sorted((folder / "data").rglob("*.*")):
        os.utime(file, (1_800_000_000, 1_800_000_000))  # part of what identifies the corpus
    encoders: list[Bins] = []

    def made() -> Bins:
        encoders.append(Bins())
        return encoders[-1]

    report = audit_source_sharded(
        open_sharded(folder / "data"),
        [ShardedRetriever(name="bins", make_encoder=made)],
        work_folder=folder / "work",
        depth=20,
    )
    return report, sum(encoder.n_texts for encoder in encoders)


def sharded(folder: Path) -> Any:
    report, n_texts = audit_sharded(folder)
    return {
        "encoded": n_texts,
        "systems": [
            fields(system, "name", "variant")
            | fields(system.scores, "measures", "sources", "values")
            for system in report.systems
        ],
    }


def chroma(folder: Path) -> Any:
    import chromadb

    from rag_sourcebias_integrations.chroma import (
        ChromaStore,
        EncoderEmbeddingFunction,
        migrate_encoder,
        restore_collection,
    )

    with chdir(folder):
        client = chromadb.PersistentClient(path=str(folder / "db"))
        found: dict[str, Any] = {}
        names = sorted(collection.name for collection in client.list_collections())
        found["names"] = [re.sub(r"\d{8}T\d{6}$", "TIME", name) for name in names]
        for name in sorted({"shop", "kept", "half"}):
            collection = client.get_collection(name)
            model = "other" if name == "kept" else "model"
            EncoderEmbeddingFunction(model).check(collection)
            answer = collection.query(query_texts=["word1 word2"], n_results=3)
            function = collection.configuration_json["embedding_function"]
            found[name] = {
                "ids": answer["ids"],
                "distances": plain(answer["distances"]),
                "function": plain(function),
                "tags": {
                    i: fields(t, "source", "pair_id") for i, t in ChromaStore(collection).tags()
                },
            }
        left = migrate_encoder(client.get_collection("half"), "other", client=client)
        found["finished"] = [left.n_documents, left.state]
        before = next(name for name in names if name.startswith("kept--before-"))
        client.delete_collection("kept")
        restored = restore_collection(client, "kept")
        found["restored"] = [before.partition("2")[0], restored.name, restored.count()]
        client.get_collection("kept", embedding_function=None)
        return found


def fingerprints(folder: Path) -> Any:
    from inputs import Bins

    from rag_sourcebias.instrument import hash_query
    from rag_sourcebias.llm import OpenAICompleter
    from rag_sourcebias.retrieval import CachedEncoder, VectorCache
    from rag_sourcebias.tagging import IdTagger, ProvenanceTagger, content_hash, to_metadata
    from rag_sourcebias.types import DocTags

    tags = DocTags(source="human", style="news", pair_id="p1", origin="detected", confidence=0.5)
    return {
        "completer": OpenAICompleter("m", base_url="http://localhost:1/v1").fingerprint,
        "cached": CachedEncoder(Bins(), VectorCache(folder / "v")).fingerprint,
        "taggers": [IdTagger().fingerprint, ProvenanceTagger().fingerprint],
        "content": content_hash("a text").hex(),
        "query": hash_query("a text", key=b"0123456789abcdef"),
        "metadata": plain(dict(to_metadata(tags))),
    }


def completers(_folder: Path) -> Any:
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from llama_index.core.llms import MockLLM

    from rag_sourcebias.adapters import as_completer

    left = dict.fromkeys(("max_tokens", "temperature", "seed"))  # to the model
    models = FakeListChatModel(responses=["yes"]), MockLLM(max_tokens=5)
    known = [as_completer(model, parameters=left).fingerprint.partition(":") for model in models]
    return [[kind, json.loads(identity)[1]] for kind, _, identity in known]  # without the model


READINGS: dict[str, Callable[[Path], Any]] = {
    reading.__name__: reading
    for reading in (
        *(event_log, monitor_state, canary, monitoring_rules, tags, detector, models, training),
        *(fitted, labels, annotations, rewritten, judging, caches, sharded, chroma, fingerprints),
        completers,
    )
}
