"""Every reader of files, with a valid file for each and a call that reads all of it.

A reader that the library gains belongs here: ``Reader(name, file, write, read)``.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from rag_sourcebias.answers.measure import StyleAdjustment, read_adjustment, write_adjustment
from rag_sourcebias.core.completions import Completion, LabelScores
from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.core.training import TrainingHistory, TrainingPoint
from rag_sourcebias.debias.parity import ScoredTwins, fit_parity, read_parity, write_parity
from rag_sourcebias.debias.projection import fit_projection
from rag_sourcebias.intake.answers import read_answer_scores, read_answer_texts
from rag_sourcebias.intake.beir import read_beir, read_texts
from rag_sourcebias.intake.documents import read_groups, read_queries, read_tags
from rag_sourcebias.intake.judged import (
    join_judged,
    read_judged_items,
    read_label_distributions,
    read_ragas_result,
)
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.rankings import read_run
from rag_sourcebias.intake.styled import read_styled_texts
from rag_sourcebias.intake.tables import read_clusters
from rag_sourcebias.judged.sheets import read_sheet, write_sheet
from rag_sourcebias.kinds import read_report
from rag_sourcebias.llm.ask import CompletionCache
from rag_sourcebias.monitor.follow import LogFollower, Position, parquet_events, write_position
from rag_sourcebias.monitor.monitor import SkewMonitor
from rag_sourcebias.monitor.settings import CorpusShare
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.observe.log.reading import (
    iter_newest,
    log_summary,
    read_events,
    read_rollups,
    read_tail,
    rollup_extent,
)
from rag_sourcebias.observe.log.writing import write_parquet
from rag_sourcebias.observe.tags import open_tag_store
from rag_sourcebias.pairs.annotate import AnnotationUnit, annotation_sheet, write_annotation_sheets
from rag_sourcebias.pairs.annotated import read_annotations
from rag_sourcebias.pairs.rewrites import (
    HumanTexts,
    PairedManifest,
    RewriteSource,
    human_rows,
    read_manifest,
    write_manifest,
)
from rag_sourcebias.retrieval.cache import VectorCache
from rag_sourcebias.retrieval.projection import read_projection, write_projection
from rag_sourcebias.retrieval.shards import open_sharded, open_vectors
from rag_sourcebias.source.shards.facts import WorkFolder
from rag_sourcebias.tagging.detector.fit import fit_detector, load_detector, save_detector
from rag_sourcebias.tagging.rules import read_rules

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

START = 1_780_012_800.0  # midnight


@dataclass(frozen=True)
class Reader:
    """One reader and one of its files; what is read is written to a folder before."""

    name: str
    file: str  # which is damaged, within the folder
    write: Callable[[Path], object]
    read: Callable[[Path], object]
    slow: bool = False  # left out where seconds count


def _text(name: str, content: str | Iterable[str]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, str) else "".join(content)
        raw = data.encode()
        place.write_bytes(gzip.compress(raw, 1, mtime=0) if name.endswith(".gz") else raw)

    return write


def _several(*writers: Callable[[Path], object]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for one in writers:
            one(folder)

    return write


def _rows(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _parquet(name: str, columns: dict[str, Any]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), folder / name, row_group_size=10)

    return write


N = range(24)
RUN = "".join(f"q{i // 4} Q0 d{i} {i % 4 + 1} {9 - i / 4:.3f} bm25\n" for i in N)
QRELS = "".join(f"q{i // 4} 0 d{i} {i % 3}\n" for i in N)
BEIR_QRELS = "query-id\tcorpus-id\tscore\n" + "".join(f"q{i // 4}\td{i}\t{i % 3}\n" for i in N)
QUERIES = _rows({"_id": f"q{i}", "text": f"what is {i}?"} for i in range(6))
TAGS = "doc_id\tsource\tstyle\tpair_id\torigin\tconfidence\n" + "".join(
    f"d{i}\t{('human', 'llm:x')[i % 2]}\ts{i % 3}\tp{i // 2}\tdetected\t0.{i:02}\n" for i in N
)
CORPUS = _rows(
    {"_id": f"d{i}", "title": f"T{i}", "text": f"text of {i} ü", "metadata": {"source": "human"}}
    for i in N
)
CLUSTERS = [{"query_id": f"q{i}", "cluster": f"c{i // 5}"} for i in N]
TEXTS = [{"doc_id": i, "text": f"t {i}"} for i in N]
JUDGED = [
    {"id": f"i{i}", "human": i % 2 if i < 12 else None, "judge": i / 24, "group": f"g{i % 2}"}
    for i in N
]
ANSWERS = [
    {"question": f"what is {i}?", "reference": f"r{i}/s{i}", "answer-a": f"r{i}",
     "answer-b": "no idea", "judge-a": True, "judge-b": False, "id": f"q{i}",
     "score": 0.5, "system": "a", "answer": f"r{i}", "correct": 1}
    for i in N
]  # fmt: skip
RULES = """rules:
  - name: generators
    when:
      metadata: {generator: {regex: '^gpt-(?P<model>.+)$'}}
    set: {source: "llm:gpt-{model}", style: news}
  - when:
      url_host: [example.org, example.com]
      text: {regex: 'as an AI'}
    set: {source: human}
"""


def _csv(name: str, rows: list[dict[str, Any]]) -> Callable[[Path], None]:
    head = ",".join(rows[0])
    lines = (
        ",".join(
            "" if v is None else f'"{v}"' if isinstance(v, str) else str(v) for v in r.values()
        )
        for r in rows
    )
    return _text(name, "\n".join([head, *lines]) + "\n")


def _file(name: str, content: Any) -> Callable[[Path], None]:
    """Write a text, or rows as the name of the file says."""
    if isinstance(content, str):
        return _text(name, content)
    if name.endswith(".csv"):
        return _csv(name, content)
    if name.endswith(".parquet"):
        return _parquet(name, {key: [row[key] for row in content] for key in content[0]})
    return _text(name, _rows(content))


def _at(function: Callable[..., object], name: str, *rest: object) -> Callable[[Path], object]:
    """Call a function of the library with a file or folder within the folder."""
    return lambda folder: function(folder / name, *rest)


def _sharded(folder: Path) -> object:
    data = open_sharded(folder / "beir", shard_documents=10)
    return [data.corpus.read(shard) for shard in data.corpus.shards]


def _joined(folder: Path) -> object:
    return join_judged(folder / "human.csv", folder / "judge.jsonl")


def _write_npz(folder: Path) -> None:
    probs = np.full((24, 4), 0.25)
    np.savez(folder / "labels.npz", pred_label_dist=probs, true_label_dist=probs)


_STYLED = [
    {"query_id": f"q{i}", "doc_id": f"d{i}", "query": f"what {i}?",
     "query_styles": {"formal": f"Which {i}?"}, "human": f"text {i}",
     "doc_styles": {"loud": f"TEXT {i}"}}
    for i in range(8)
]  # fmt: skip


def _write_sheet(folder: Path, name: str) -> None:
    rows = {f"query q{i}, document d{i}": {"query": "why?", "text": f"text {i}"} for i in N}
    write_sheet(folder / name, rows, n_grades=4, design={"rows": list(N)}, rng=0)
    content = (folder / name).read_text("utf-8")
    if name.endswith(".jsonl"):
        found = [json.loads(line) for line in content.splitlines()]
        content = _rows({**row, "label": "2"} for row in found)
    else:
        head, *rows_of = content.splitlines()
        column = head.lstrip("\ufeff").split(",").index("label")
        lines = [head]
        for line in rows_of:
            cells = line.split(",")
            cells[column] = "2"
            lines.append(",".join(cells))
        content = "\n".join(lines)
    (folder / name).write_text(content, "utf-8")


def _write_annotation(folder: Path) -> None:
    units = [
        AnnotationUnit(
            unit_id=f"u{i}", texts=(f"a{i}", f"b{i}"), sources=("human", "llm:a"), query=f"q{i}?"
        )
        for i in range(8)
    ]
    plan = annotation_sheet(units, annotators=("ann",), rng=1)
    files = write_annotation_sheets(plan, folder / "out", key=folder / "key.json")
    sheet = next(file for file in files.sheets if file.suffix == ".csv")
    shutil.copy(sheet, folder / "ann.csv")
    key = json.loads((folder / "key.json").read_text())
    lines = "".join(f"{row['row_id']},equal,equal\n" for row in key["rows"])
    (folder / "page.csv").write_text("row_id,relevance,quality\n" + lines)


def _annotations(folder: Path, name: str) -> object:
    return read_annotations(folder / name, key=folder / "key.json")


# reports


def _write_report(folder: Path, name: str) -> None:
    """Write a report of its kind as tests store it."""
    golden = Path(__file__).resolve().parents[2] / "tests" / "golden" / "reports"
    report = gzip.decompress((golden / f"{name}.json.gz").read_bytes())
    (folder / "report.json").write_bytes(report)


# what is fitted


def _write_adjustment(folder: Path) -> None:
    found = StyleAdjustment(
        shortest=0.0, longest=10.0, knots=(1.5, 3.0),
        coefficients=np.array([-0.1, 0.2, 0.3]), center=0.0, n_answers=10, n_questions=5,
    )  # fmt: skip
    write_adjustment(found, folder / "adjustment.json")


def _write_parity(folder: Path) -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(0.5, 0.1, 600)
    twins = ScoredTwins(
        source="llm:x", baseline_scores=human,
        source_scores=human + 0.05 + rng.normal(0, 0.01, 600), queries=np.arange(600) // 3,
    )  # fmt: skip
    write_parity(fit_parity([twins], encoder="e", baseline="human"), folder / "parity.json")


def _write_projection(folder: Path) -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=(64, 8)).astype(np.float32)
    write_projection(fit_projection(human, human + 0.3, encoder="e"), folder / "projection.npz")


@cache
def _detector() -> Any:
    from simulated_texts import simulated

    return fit_detector(simulated(30, seed=1), rng=0)


def _write_detector(folder: Path) -> None:
    save_detector(_detector(), folder / "detector")


def _detector_arrays(folder: Path) -> object:
    """Read damaged arrays whose hash was made to fit, as whoever damages on purpose would."""
    import hashlib

    file = folder / "detector" / "detector.json"
    record = json.loads(file.read_text())
    data = (folder / "detector" / "model.npz").read_bytes()
    file.write_text(json.dumps(record | {"arrays_sha256": hashlib.sha256(data).hexdigest()}))
    return load_detector(folder / "detector")


def _write_history(folder: Path) -> None:
    from rag_sourcebias.neural.training_data import write_history

    points = tuple(TrainingPoint(step=i, rank_loss=0.5) for i in range(4))
    history = TrainingHistory(
        name="m", debias_weight=0.5, seed=0, n_pairs=10, n_steps=4, seconds=1.0,
        settings={"loss": "mnr"}, points=points,
    )  # fmt: skip
    write_history(history, folder)


def _history(folder: Path) -> object:
    from rag_sourcebias.neural.training_data import read_history

    return read_history(folder)


# tagging and rewriting


def _write_store(folder: Path, name: str) -> None:
    rows = [(f"d{i}", DocTags(source="human", style="s", origin="declared")) for i in N]
    open_tag_store(folder / name).put(rows, texts={f"d{i}": f"text {i}" for i in N})


def _store(folder: Path, name: str) -> object:
    store = open_tag_store(folder / name)
    ids = [f"d{i}" for i in N]
    texts = [f"text {i}" for i in N]
    return store.get(ids), store.get_by_text(texts), store.table(), store.counts(), len(store)


def _write_manifest(folder: Path) -> None:
    source = RewriteSource(
        source="llm:x", model="m", fingerprint="f", settings={"a": "1"}, prompt="rewrite",
        template="{text}", digest="d", style=None, temperature=0.7, seed=0, max_tokens=100,
        date="2026-01-01", finished=True, done=3, skipped={}, failed={"x": 1}, cleaned={},
        prompt_tokens=1, completion_tokens=1, cost=None, currency="USD",
    )  # fmt: skip
    human = HumanTexts(name="h", n_documents=3, digest="d")
    made = PairedManifest(human=human, sources=(source,), library_version="0.1")
    write_manifest(folder, made)


def _humans(folder: Path) -> object:
    return list(human_rows(folder / "beir"))


# vectors and caches


def _write_vectors(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.save(folder / "docs.npy", rng.normal(size=(24, 8)).astype(np.float32))
    np.save(folder / "queries.npy", rng.normal(size=(6, 8)).astype(np.float16))


def _vectors(folder: Path) -> object:
    found = open_vectors(folder / "docs.npy", folder / "queries.npy", n_documents=24, n_queries=6)
    return found.documents.take(range(24)), found.queries.take([0, 5])


def _write_vector_cache(folder: Path) -> None:
    texts = [f"text {i}" for i in N]
    VectorCache(folder / "v.cache").put("f", "d", texts, np.ones((24, 8), np.float32))


def _vector_cache(folder: Path) -> object:
    cache = VectorCache(folder / "v.cache")
    return cache.get("f", "d", [f"text {i}" for i in N])


def _write_answer_cache(folder: Path) -> None:
    answers: dict[bytes, Any] = {bytes([i] * 16): Completion(text=f"a{i}") for i in range(12)}
    answers |= {bytes([i] * 16): LabelScores(logprobs=(-0.1, -2.0)) for i in range(12, 24)}
    CompletionCache(folder / "a.cache").put(answers)


def _answer_cache(folder: Path) -> object:
    return CompletionCache(folder / "a.cache").get([bytes([i] * 16) for i in N])


def _write_work(folder: Path) -> None:
    work = WorkFolder.opened(folder / "work")
    work.write(0, np.ones((24, 8), np.float32))
    work.write(0, {"rows": np.arange(24), "scores": np.ones(24), "names": np.array(["a"])})


def _work_array(folder: Path) -> object:
    return np.array(WorkFolder.opened(folder / "work").map_array(0))


def _work_arrays(folder: Path) -> object:
    return WorkFolder.opened(folder / "work").read_arrays(0)


# production


def _event(i: int) -> Any:
    sources = ("human", "llm:a", None)
    tags = tuple(DocTags(source=sources[(i + j) % 3]) for j in range(i % 5))
    ids = tuple(f"d{i}-{j}" for j in range(i % 5))
    labels = {"route": f"r{i % 2}"}
    return RetrievalEvent(
        ranked=RankedList(query_id=f"q{i}", doc_ids=ids), tags=tags, labels=labels
    )


def _write_log(folder: Path) -> None:
    with EventLog(folder / "log.db", documents="plain") as log:
        for i in range(60):
            log.record(_event(i), at=START + 600.0 * i)
            if i % 10 == 9:
                log.flush(60)


def _log(folder: Path) -> object:
    path = folder / "log.db"
    monitor = SkewMonitor(labels=("route",))
    monitor.record_columns(read_events(path))
    found = monitor.snapshot()
    newest = [part for part, _ in zip(iter_newest(path), range(100), strict=False)]
    tail = read_tail(path, after=3)
    return (
        found, newest, tail, log_summary(path), read_rollups(path, step=3_600),
        read_events(path, labels={"route": "r1"}, since=START + 100.0), rollup_extent(path),
    )  # fmt: skip


def _open_log(folder: Path) -> object:
    """Open a log to write to it, as an application does that starts again."""
    log = EventLog(folder / "log.db", documents="plain")
    try:
        log.record(_event(1), at=START + 1e6)
        log.flush(0.2)
    finally:
        log.close(0.2)
    return None


def _write_archive(folder: Path) -> None:
    _write_log(folder)
    shutil.move(
        write_parquet(read_events(folder / "log.db"), folder, log="a"), folder / "e.parquet"
    )


def _archive(folder: Path) -> object:
    return list(parquet_events(folder / "e.parquet"))


def _write_position(folder: Path) -> None:
    monitor = _monitor()
    for i in range(60):
        monitor.record(_event(i))
    monitor.flush()
    write_position(folder / "follow.json", Position(log=3, number=7), monitor.to_dict())


def _monitor() -> Any:
    return SkewMonitor(baseline=CorpusShare({"human": 0.1, "llm:a": 0.5}), labels=("route",))


def _position(folder: Path) -> object:
    return LogFollower(folder / "log.db", _monitor(), state=folder / "follow.json")


# training and archives


def _progress(folder: Path, *, write: bool = False) -> None:
    from rag_sourcebias.neural.losses import HingeStatistics
    from rag_sourcebias.neural.training_state import Progress

    loss: Any = SimpleNamespace(step=3, statistics=HingeStatistics())
    progress = Progress(loss, eval_every=None)
    if write:
        progress.points = [TrainingPoint(step=i, rank_loss=0.5) for i in range(4)]
        progress.write(folder)
    else:
        progress.read(folder)


def _write_modules(folder: Path) -> None:
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
         "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    (folder / "modules.json").write_text(json.dumps(modules, indent=2))


def _modules(folder: Path) -> object:
    from rag_sourcebias.neural import loading as projected

    return projected._modules(folder)


_BEIR_REST = _several(
    _text("beir/queries.jsonl", QUERIES), _text("beir/qrels/test.tsv", BEIR_QRELS)
)


def _beir(*names: str, content: Any = CORPUS) -> Callable[[Path], None]:
    """Write a data set with these files of documents."""
    return _several(*(_file(f"beir/{name}", content) for name in names), _BEIR_REST)


_PLAIN = _several(_beir("corpus.jsonl"), _text("beir/tags.tsv", TAGS))
_PAIRED = _beir("corpus/human.jsonl.gz", "corpus/x.jsonl")
_PAIRED_PLAIN = _beir("corpus/human.jsonl", "corpus/x.jsonl")
_PARQUET_CORPUS = _beir("corpus.parquet", content=[
    {"_id": f"d{i}", "text": f"text {i}", "title": f"T{i}", "source": ("human", "llm:x")[i % 2],
     "pair_id": f"p{i // 2}"}
    for i in N
])  # fmt: skip
_DIST = [
    {"query_id": f"q{i // 4}", "doc_id": f"d{i}", "p0": 0.5, "p1": 0.25, "p2": 0.25} for i in N
]
_VOTES = [{"query_id": f"q{i // 4}", "doc_id": f"d{i}", "votes": [0, 1, 2]} for i in N]


def _p(function: Callable[..., object], *rest: object) -> Callable[[Path], object]:
    return lambda folder: function(folder, *rest)


_STYLED_ROWS = [
    {"query_id": f"q{i // 4}", "doc_id": f"d{i // 4}",
     "side": ("query", "query", "document", "document")[i % 4],
     "style": ("original", "formal", "human", "loud")[i % 4], "text": f"text {i}"}
    for i in N
]  # fmt: skip
_RAGAS = [
    {"user_input": f"q{i}", "response": "r", "faithfulness": i / 24,
     "human": i % 2 if i < 9 else None}
    for i in N
]  # fmt: skip

# Files that are read alone: their name, what is in them, and the reader.
_ALONE: dict[str, tuple[str, Any, Callable[..., object]]] = {
    "run": ("run.txt", RUN, read_run),
    "run, gzip": ("run.txt.gz", RUN, read_run),
    "qrels": ("qrels.txt", QRELS, read_qrels),
    "tags: tsv": ("tags.tsv", TAGS, read_tags),
    "tags: csv": ("tags.csv", TAGS.replace("\t", ","), read_tags),
    "tags: jsonl": ("tags.jsonl", [{"doc_id": f"d{i}", "source": "human"} for i in N], read_tags),
    "copies: csv": ("c.csv", [{"doc_id": f"d{i}", "group": "c"} for i in N], read_groups),
    "texts: csv": ("t.csv", [{"doc_id": f"d{i}", "text": f"t {i}"} for i in N], read_texts),
    "texts: no header": ("t.tsv", "".join(f"q{i}\twhat {i}\n" for i in N), read_queries),
    "texts: jsonl gzip": ("t.jsonl.gz", CORPUS, read_texts),
    "texts: parquet": ("t.parquet", TEXTS, read_texts),
    "clusters: csv": ("c.csv", CLUSTERS, read_clusters),
    "clusters: parquet": ("c.parquet", CLUSTERS, read_clusters),
    "judged items: csv": ("j.csv", JUDGED, read_judged_items),
    "judged items: jsonl": ("j.jsonl", JUDGED, read_judged_items),
    "judged items: parquet": ("j.parquet", JUDGED, read_judged_items),
    "labels: csv": ("l.csv", _DIST, read_label_distributions),
    "labels: jsonl": ("l.jsonl", _VOTES, read_label_distributions),
    "labels: parquet": ("l.parquet", _VOTES, read_label_distributions),
    "answers: jsonl": ("a.jsonl", ANSWERS, read_answer_texts),
    "answers: json array": ("a.json", json.dumps(ANSWERS, indent=1), read_answer_texts),
    "answers: csv": ("a.csv", ANSWERS, read_answer_texts),
    "ragas result": ("ragas.csv", _RAGAS, read_ragas_result),
    "styled texts: jsonl": ("s.jsonl", _STYLED, read_styled_texts),
    "styled texts: table": ("s.parquet", _STYLED_ROWS, read_styled_texts),
    "tag rules": ("rules.yaml", RULES, read_rules),
}

READERS: tuple[Reader, ...] = (
    *(
        Reader(name, file, _file(file, content), _at(read, file))
        for name, (file, content, read) in _ALONE.items()
    ),
    Reader("answer scores", "scores.json", _text("scores.json", json.dumps(ANSWERS)),
           _at(read_answer_scores, "scores.json", ["score"])),
    Reader("judged items: joined", "judge.jsonl", _several(
        _csv("human.csv", [{"id": f"i{i}", "human": i % 2} for i in range(12)]),
        _file("judge.jsonl", [{"id": f"i{i}", "judge": i / 24} for i in N]),
    ), _joined),
    Reader("beir: corpus", "beir/corpus.jsonl", _PLAIN, _at(read_beir, "beir")),
    Reader("beir: gzip corpus", "beir/corpus/human.jsonl.gz", _PAIRED, _at(read_beir, "beir")),
    Reader("beir: queries", "beir/queries.jsonl", _PLAIN, _at(read_beir, "beir")),
    Reader("beir: qrels", "beir/qrels/test.tsv", _PLAIN, _at(read_beir, "beir")),
    Reader("beir: tags", "beir/tags.tsv", _PLAIN, _at(read_beir, "beir")),
    Reader("shards: jsonl", "beir/corpus/human.jsonl", _PAIRED_PLAIN, _sharded),
    Reader("shards: parquet", "beir/corpus.parquet", _PARQUET_CORPUS, _sharded),
    Reader("sheet: csv", "sheet.csv", _p(_write_sheet, "sheet.csv"), _at(read_sheet, "sheet.csv")),
    Reader("sheet: jsonl", "sheet.jsonl", _p(_write_sheet, "sheet.jsonl"),
           _at(read_sheet, "sheet.jsonl")),
    Reader("sheet: manifest", "sheet.jsonl.manifest.json", _p(_write_sheet, "sheet.jsonl"),
           _at(read_sheet, "sheet.jsonl")),
    Reader("annotation: csv", "ann.csv", _write_annotation, _p(_annotations, "ann.csv")),
    Reader("annotation: page", "page.csv", _write_annotation, _p(_annotations, "page.csv")),
    Reader("annotation: key", "key.json", _write_annotation, _p(_annotations, "page.csv")),
    *(
        Reader(f"report: {name}", "report.json", _p(_write_report, name),
               _at(read_report, "report.json"), slow=name != "skew-full")
        for name in ("skew-full", "style-full", "answers-single", "debias-full", "explain-clear",
                     "judged-mean")
    ),
    Reader("style adjustment", "adjustment.json", _write_adjustment,
           _at(read_adjustment, "adjustment.json")),
    Reader("parity calibration", "parity.json", _write_parity, _at(read_parity, "parity.json")),
    Reader("projection", "projection.npz", _write_projection,
           _at(read_projection, "projection.npz")),
    Reader("detector: record", "detector/detector.json", _write_detector,
           _at(load_detector, "detector"), slow=True),
    Reader("detector: arrays", "detector/model.npz", _write_detector,
           _at(load_detector, "detector"), slow=True),
    Reader("detector: arrays, hash fits", "detector/model.npz", _write_detector, _detector_arrays,
           slow=True),
    Reader("training history", "training_history.json", _write_history, _history),
    Reader("tag store: sqlite", "tags.sqlite", _p(_write_store, "tags.sqlite"),
           _p(_store, "tags.sqlite")),
    Reader("manifest of rewrites", "manifest.json", _write_manifest, read_manifest),
    Reader("texts to rewrite", "beir/corpus.jsonl", _PLAIN, _humans),
    Reader("vectors of documents", "docs.npy", _write_vectors, _vectors),
    Reader("vectors of queries", "queries.npy", _write_vectors, _vectors),
    Reader("cache of vectors", "v.cache", _write_vector_cache, _vector_cache),
    Reader("cache of answers", "a.cache", _write_answer_cache, _answer_cache),
    Reader("audit in shards: array", "work/000000.npy", _write_work, _work_array),
    Reader("audit in shards: arrays", "work/000000.npz", _write_work, _work_arrays),
    Reader("event log", "log.db", _write_log, _log),
    Reader("event log: opened again", "log.db", _write_log, _open_log, slow=True),
    Reader("event log: archive", "e.parquet", _write_archive, _archive),
    Reader("state of a follower", "follow.json", _write_position, _position),
    Reader("training: progress", "progress.json", partial(_progress, write=True), _progress,
           slow=True),
    Reader("modules of a model", "modules.json", _write_modules, _modules),
)  # fmt: skip


# what the harness has to catch


def _naive_parquet(folder: Path) -> object:
    import pyarrow.parquet as pq

    return pq.read_table(folder / "t.parquet").to_pylist()


def _naive_npz(folder: Path) -> object:
    with np.load(folder / "labels.npz", allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _naive_json(folder: Path) -> object:
    return json.loads((folder / "parity.json").read_text())["gaps"][0]["estimate"]


def _naive_yaml(folder: Path) -> object:
    import yaml

    return yaml.safe_load((folder / "rules.yaml").read_text())


def _naive_gzip(folder: Path) -> object:
    with gzip.open(folder / "run.txt.gz", "rt") as stream:
        return stream.read()


CONTROLS: tuple[Reader, ...] = (
    Reader("pyarrow alone", "t.parquet", _file("t.parquet", TEXTS), _naive_parquet),
    Reader("numpy.load alone", "docs.npy", _write_vectors, _at(np.load, "docs.npy")),
    Reader("numpy.load of an archive alone", "labels.npz", _write_npz, _naive_npz),
    Reader("json.loads alone", "parity.json", _write_parity, _naive_json),
    Reader("yaml.safe_load alone", "rules.yaml", _text("rules.yaml", RULES), _naive_yaml),
    Reader("gzip.open alone", "run.txt.gz", _text("run.txt.gz", RUN), _naive_gzip),
)  # fmt: skip
