"""Write one small instance of every file that version 0.1 stored, and what it reads off them.

Run with the source tree of version 0.1, which is kept as data once and for all::

    git archive d769881 | tar x -C TREE
    python tests/data/version_0_1/make.py TREE [NAME …]

Each function below is one format; its files go to ``<name>.zip`` and what ``readings.py`` reads off
them to ``expected.json``.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from imports import use

HERE = Path(__file__).parent
ASKED = ("relevance", "quality")


def event_log(folder: Path) -> None:
    from inputs import START, timed

    from rag_sourcebias.monitor import EventLog

    for documents in ("none", "hashed", "plain"):
        with EventLog(folder / f"{documents}.db", documents=documents, sample=1.0) as log:
            for event, at in timed():
                log.record(event, at=at)
    place = folder / "old.db"
    with EventLog(place, documents="plain", batch=40) as log:
        for number, (event, at) in enumerate(timed(), start=1):
            log.record(event, at=at)
            if number % 40 == 0:
                log.flush()
    later = START + 3 * 86_400
    kept = {"max_age": 86_400.0, "archive": folder / "archive"}
    with EventLog(place, documents="plain", clock=lambda: later, **kept) as log:
        log.record(timed(1)[0][0], at=later)
        log.flush()
        while not [*(folder / "archive").rglob("*.parquet")]:
            time.sleep(0.05)


def monitor_state(folder: Path) -> None:
    from inputs import monitors, timed

    from rag_sourcebias.monitor import EventLog, LogFollower

    for name, monitor in monitors().items():
        monitor.record_many(timed())
        (folder / f"{name}.json").write_text(json.dumps(monitor.to_dict()), "utf-8")
    with EventLog(folder / "log.db") as log:
        for event, at in timed():
            log.record(event, at=at)
    follower = LogFollower(
        folder / "log.db", monitors()["corpus"], state=folder / "state.json", save_seconds=0
    )
    follower.step()
    follower.close()


def canary(folder: Path) -> None:
    from inputs import probe

    with probe(folder) as running:
        for _ in range(3):
            running.run_round()


def monitoring_rules(folder: Path) -> None:
    from rag_sourcebias.monitor import write_rules

    write_rules(folder / "rules")


def tags(folder: Path) -> None:
    from command_line import succeed
    from inputs import documents

    from rag_sourcebias.io import write_tags
    from rag_sourcebias.tagging import open_tag_store
    from rag_sourcebias.types import DocTags

    rows = [
        ("a", DocTags(source="human", style="formal", pair_id="p1", origin="declared")),
        ("b", DocTags(source="llm:ü", pair_id="p1", origin="detected", confidence=0.875)),
        ("c", DocTags()),
    ]
    for ending in ("jsonl", "sqlite"):
        store = open_tag_store(folder / f"store.{ending}")
        store.put(rows, texts={"a": "text of a", "b": "text of b"})
        store.put([("a", DocTags(source="human", style="news", origin="pipeline"))])
    table = store.table()
    for ending in ("tsv", "csv", "jsonl"):
        write_tags(table, folder / f"table.{ending}")
    lines = "".join(json.dumps(row) + "\n" for row in documents())
    (folder / "docs.jsonl").write_text(lines, "utf-8")
    (folder / "rules.yaml").write_text(
        "rules:\n  - when: {id: {regex: '@human$'}}\n    set: {source: human}\n"
        "  - name: rest\n    when: {url_host: news.example.org}\n    set: {source: 'llm:x'}\n",
        "utf-8",
    )
    for ending in ("jsonl", "sqlite"):
        given = ("--rules", "rules.yaml", "--sidecar", f"side.{ending}")
        succeed("tag", "apply", "--store", "corpus:docs.jsonl", *given, cwd=folder)


def detector(folder: Path) -> None:
    from command_line import succeed
    from simulated_texts import simulated

    for name, n, seed in (("labelled", 40, 1), ("docs", 8, 5)):
        lines = [
            json.dumps({"_id": doc_id, "text": text} | ({"label": label} if name != "docs" else {}))
            for doc_id, text, label in simulated(n, seed=seed)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    succeed("tag", "fit", "labelled.jsonl", "--out", "detector", cwd=folder)
    (folder / "labelled.jsonl").unlink()


def models(folder: Path) -> None:
    from inputs import WORDS, paired
    from static_model import static_model

    from rag_sourcebias.mitigate import fit_source_projection, twin_texts, write_projection
    from rag_sourcebias.neural import SentenceEncoder
    from rag_sourcebias.neural.projected import write_projected_model

    plain = static_model(folder / "plain", [*WORDS, "what"], dimension=12)
    for name, sides in (("projected", "both"), ("sided", "documents")):
        projection = fit_source_projection(
            twin_texts(paired().corpus),
            SentenceEncoder(plain),
            n_directions=2,
            sides=sides,
            strength=0.9,
        )
        write_projection(projection, folder / f"{name}.npz")
        write_projected_model(plain, projection, folder / name)


def training(folder: Path) -> None:
    from command_line import inside, succeed
    from inputs import TRAIN, WORDS, paired
    from static_model import static_model

    from rag_sourcebias.io import write_beir
    from rag_sourcebias.neural import train_progress

    write_beir(paired(), folder / "data", split="train")
    static_model(folder / "plain", [*WORDS, "what"], dimension=8)
    succeed(*TRAIN, "--output", "trained", cwd=folder)
    stepped = train_progress.Progress.stepped

    def killed(self: Any, step: int, model: Any) -> None:
        stepped(self, step, model)
        if step == 7:
            raise KeyboardInterrupt

    train_progress.Progress.stepped = killed  # type: ignore[method-assign]
    try:
        inside(*TRAIN, "--output", "interrupted", cwd=folder)
    finally:
        train_progress.Progress.stepped = stepped  # type: ignore[method-assign]


def fitted(folder: Path) -> None:
    from inputs import answers, twins

    from rag_sourcebias.measures import fit_adjustment, write_adjustment
    from rag_sourcebias.mitigate import fit_parity, write_parity

    for form in ("offset", "quantiles"):
        write_parity(fit_parity([twins()], encoder="e1", form=form), folder / f"{form}.json")
    write_adjustment(fit_adjustment(answers(), encoder="e1"), folder / "adjustment.json")


def labels(folder: Path) -> None:
    from command_line import read_csv, succeed, write_csv

    rng = np.random.default_rng(2)
    run, judged, docs = [], ["query_id\tdoc_id\tp0\tp1\tp2"], []
    for q in range(30):
        for d in range(8):
            chosen = np.full(3, 0.1)
            chosen[int(rng.binomial(2, 0.2 + 0.02 * q))] = 0.8
            run.append(f"q{q} Q0 q{q}d{d} {d + 1} {100 - d} a")
            judged.append(f"q{q}\tq{q}d{d}\t" + "\t".join(f"{p:.1f}" for p in chosen))
            docs.append(json.dumps({"_id": f"q{q}d{d}", "text": f"text {d} of {q}"}))
    queries = [json.dumps({"_id": f"q{q}", "text": f"query {q}"}) for q in range(30)]
    for name, lines in (
        ("a.run", run),
        ("judge.tsv", judged),
        ("docs.jsonl", docs),
        ("queries.jsonl", queries),
    ):
        (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    for sheet in ("sheet.csv", "sheet.jsonl"):
        succeed(
            *("labels", "sheet", "--run", "a.run", "--labels", "judge.tsv", "-n", "100"),
            *("-o", sheet, "--queries", "queries.jsonl", "--documents", "docs.jsonl"),
            cwd=folder,
        )
    rows = read_csv(folder / "sheet.csv")
    for number, row in enumerate(rows):
        row["grade"] = str(number % 3)
    write_csv(folder / "sheet.csv", list(rows[0]), [list(row.values()) for row in rows])
    lines = (folder / "sheet.jsonl").read_text("utf-8").splitlines()
    filled = [json.dumps(json.loads(line) | {"grade": n % 3}) for n, line in enumerate(lines)]
    (folder / "sheet.jsonl").write_text("\n".join(filled) + "\n", "utf-8")


def annotations(folder: Path) -> None:
    from command_line import read_csv, succeed, write_csv
    from inputs import paired

    from rag_sourcebias.io import write_beir

    write_beir(paired(), folder / "data")
    drawn = ("--annotators", "ann,bob,cy", "-n", "12", "-o", "sheets")
    succeed("annotate", "sheet", "data", *drawn, cwd=folder)
    shutil.rmtree(folder / "data")
    for file in sorted((folder / "sheets").glob("*.csv")):
        rows = read_csv(file)
        for number, row in enumerate(rows):
            for column in row:
                if column.partition(":")[0] in ASKED:
                    row[column] = ("A", "B", "equal", "B")[number % 4]
        write_csv(file, list(rows[0]), [list(row.values()) for row in rows])
    for page in (folder / "sheets").glob("*.html"):
        page.unlink()
    last = folder / "sheets" / "cy.csv"  # that one answered on the page
    key = json.loads((folder / "sheets.key.json").read_text("utf-8"))
    answered = [
        {"row_id": row["row_id"]}
        | {c.partition(":")[0]: v for c, v in row.items() if c.partition(":")[0] in ASKED}
        for row in read_csv(last)
    ]
    head = {"format": "rag-sourcebias answers", "sheet": key["sheet_id"], "annotator": "cy"}
    last.with_suffix(".json").write_text(json.dumps(head | {"answers": answered}), "utf-8")
    last.unlink()


def rewritten(folder: Path) -> None:
    from datetime import date

    from inputs import Writer, paired

    from rag_sourcebias.corpora import build_paired_corpus

    built = build_paired_corpus(paired(6), Writer(), folder / "pairs", today=date(2026, 11, 22))
    assert built.complete


def judging(folder: Path) -> None:
    from command_line import succeed, write_csv

    rows = [(f"i{k}", int(k % 3 > 0), (k % 3 > 0) * 0.8 + k % 7 * 0.02) for k in range(60)]
    moved = [(name, y, value + (0.1 if y else 0.3)) for name, y, value in rows]
    for name, content in (("audited.csv", rows), ("moved.csv", moved)):
        write_csv(folder / name, ("id", "human", "judge"), content)
    succeed("judge", "audit", "audited.csv", "--anchors", "anchors.json", cwd=folder)


def caches(folder: Path) -> None:
    from inputs import Bins, Writer, requests

    from rag_sourcebias.llm import CompletionCache, ask_all
    from rag_sourcebias.retrieval import CachedEncoder, VectorCache

    encoder = CachedEncoder(Bins(), VectorCache(folder / "vectors.sqlite"))
    encoder.encode_documents(["one two", "three"])
    encoder.encode_queries(["one"])
    list(ask_all(Writer(), requests(), cache=CompletionCache(folder / "answers.sqlite")))


def sharded(folder: Path) -> None:
    from inputs import paired
    from readings import audit_sharded

    from rag_sourcebias.io import write_beir

    write_beir(paired(), folder / "data")
    audit_sharded(folder)


def chroma(folder: Path) -> None:
    from contextlib import chdir

    import chromadb
    from inputs import LLM, WORDS, documents
    from static_model import static_model

    from rag_sourcebias.tagging import IdTagger
    from rag_sourcebias_integrations.chroma import (
        EncoderEmbeddingFunction,
        migrate_encoder,
        tag_collection,
    )

    static_model(folder / "model", WORDS, dimension=12)
    static_model(folder / "other", [*WORDS, LLM], dimension=8)
    with chdir(folder):
        client = chromadb.PersistentClient(path=str(folder / "db"))
        rows = documents()
        for name in ("shop", "kept", "half"):
            collection = client.create_collection(
                name,
                embedding_function=EncoderEmbeddingFunction("model", batch_size=4),
                configuration={"hnsw": {"space": "cosine", "ef_search": 33}},
            )
            collection.add(
                ids=[row["_id"] for row in rows],
                documents=[row["text"] for row in rows],
                metadatas=[{"url": row["url"]} for row in rows],
            )
        tag_collection(client.get_collection("shop"), [IdTagger()])
        migration = migrate_encoder(client.get_collection("kept"), "other", client=client)
        migration.switch()
        left = migrate_encoder(client.get_collection("half"), "other", client=client)
        left.new.delete(ids=[rows[0]["_id"]])  # as a run leaves it that was killed


def fingerprints(folder: Path) -> None:
    (folder / "README").write_text("Identities under which caches and tags are stored.\n", "utf-8")


def completers(folder: Path) -> None:
    (folder / "README").write_text("Identities under which answers are cached.\n", "utf-8")


FORMATS = (
    *(event_log, monitor_state, canary, monitoring_rules, tags, detector, models, training, fitted),
    *(labels, annotations, rewritten, judging, caches, sharded, chroma, fingerprints),
    completers,
)


def pack(folder: Path, target: Path) -> None:
    """Write a folder as an archive that is the same whenever it is written."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                info = zipfile.ZipInfo(str(file.relative_to(folder)), (2026, 11, 22, 0, 0, 0))
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, file.read_bytes(), compresslevel=9)


def main(tree: Path, *names: str) -> None:
    """Write files and expectations of some formats, or of all."""
    use(tree)
    import readings

    file = HERE / "expected.json"
    expected = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for make in FORMATS:
        name = make.__name__
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as written, tempfile.TemporaryDirectory() as read:
            make(Path(written))
            pack(Path(written), HERE / f"{name}.zip")
            shutil.unpack_archive(HERE / f"{name}.zip", read)
            expected[name] = json.loads(json.dumps(readings.READINGS[name](Path(read))))
        print(f"{name}: {(HERE / f'{name}.zip').stat().st_size:,} bytes")  # noqa: T201
        text = json.dumps(expected, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        file.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *sys.argv[2:])
