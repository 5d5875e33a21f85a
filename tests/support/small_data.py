"""Small data of every kind that a command reads, in a folder with a hostile name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from answer_tables import HEAD, answer_rows
from command_line import write_csv, write_lines
from paired_texts import human_text, paired_dataset, rewritten
from static_model import static_model

from rag_sourcebias.core.data import DocTags, RankedList
from rag_sourcebias.observe.events import RetrievalEvent
from rag_sourcebias.observe.log.event_log import EventLog
from rag_sourcebias.pairs.writing import write_beir

PLACE = 'my "data" & it\'s $HOME (1)'  # whatever a shell would take for its own
N = 24


def write_place(root: Path) -> None:
    """Write all of it to the folder ``PLACE`` in ``root``, and a model beside it."""
    place = root / PLACE
    place.mkdir()
    for write in (_rankings, _tables, _folders, _log):
        write(place)
    words = sorted({word.strip(",.") for i in range(N) for word in human_text(i).split()})
    static_model(root / "model", words)


def _run(rng: np.random.Generator, name: str, better: float) -> Iterator[str]:
    for i in range(40):
        pair = "hl" if rng.random() < better else "lh"
        for rank, kind in enumerate(pair, start=1):
            yield f"q{i} Q0 {kind}{i} {rank} {10 - rank} {name}"


def _rankings(place: Path) -> None:
    rng = np.random.default_rng(0)
    for name, better in (("one", 0.9), ("two", 0.5)):
        write_lines(place / f"{name}.run", list(_run(rng, name, better)))
    write_lines(place / "even.run", [line for i in range(400) for line in _alike(i)])
    qrels = [f"q{i} 0 {kind}{i} 1" for i in range(400) for kind in "hl"]
    tags = [f"{kind}{i}\t{source}\tp{i}" for i in range(400)
            for kind, source in (("h", "human"), ("l", "llm:x"))]  # fmt: skip
    write_lines(place / "qrels.txt", qrels)
    write_lines(place / "tags.tsv", ["doc_id\tsource\tpair_id", *tags])
    runs: dict[str, list[str]] = {"a": [], "b": []}
    graded, labels = [], ["query_id\tdoc_id\tp0\tp1\tp2"]
    for q in range(30):
        for d in range(12):
            grade = int(rng.integers(3))
            probs = np.full(3, 0.1)
            probs[grade] = 0.8
            for name, lines in runs.items():
                lines.append(f"q{q} Q0 d{q}-{d} {d + 1} {99 - d - rng.random() / 2:.4f} {name}")
            labels.append(f"q{q}\td{q}-{d}\t" + "\t".join(map(str, probs)))
            if q < 12:
                graded.append(f"q{q} 0 d{q}-{d} {grade}")
    for name, lines in runs.items():
        write_lines(place / f"{name}.run", lines)
    write_lines(place / "judge.tsv", labels)
    write_lines(place / "graded.txt", graded)
    write_lines(place / "texts.jsonl", [json.dumps({"_id": f"d{q}-{d}", "text": f"text {d} of {q}"})
                                   for q in range(30) for d in range(12)])  # fmt: skip
    asked = [json.dumps({"_id": f"q{q}", "text": f"query {q}"}) for q in range(30)]
    write_lines(place / "asked.jsonl", asked)


def _alike(i: int) -> list[str]:
    first, second = ("h", "l") if i % 2 else ("l", "h")
    return [f"q{i} Q0 {first}{i} 1 9 even", f"q{i} Q0 {second}{i} 2 8 even"]


def _tables(place: Path) -> None:
    rng = np.random.default_rng(1)
    answers = answer_rows(60, rng)
    write_csv(place / "answers.csv", HEAD, answers)
    write_csv(place / "odd.csv", ["Q no.", "who", "said", "right", "ok", "$im", "x"], answers)
    items = []
    for k in range(300):
        for group, base in (("a", 0.5), ("b", 0.6), ("c", 0.9)):
            y = int(rng.random() < base)
            judge = round(0.6 * y + 0.3 * rng.random(), 4)
            items.append([f"i{k}", group, y if k < 60 else "", judge])
    write_csv(place / "grouped.csv", ["question", "system", "human", "judge"], items)
    write_csv(
        place / "-n.csv",
        ["id", "human", "judge"],
        [(item, human, judge) for item, group, human, judge in items if group == "a"],
    )
    own = ["my id", "ann's mark", "the judge"]
    write_csv(
        place / "named.csv",
        own,
        [(item, human, judge) for item, group, human, judge in items if group == "b"],
    )
    write_csv(
        place / "humans.csv",
        ["id", "human"],
        [(item, human) for item, group, human, _ in items if group == "a" and human != ""],
    )
    write_csv(
        place / "judged.csv",
        ["id", "judge"],
        [(item, judge) for item, group, _, judge in items if group == "a"],
    )
    write_csv(
        place / "ragas.csv",
        ["user_input", "response", "reference", "answer_correctness", "human"],
        [(item, "x", "y", judge, human) for item, g, human, judge in items if g == "a"],
    )
    styled = [
        {"query_id": f"q{i}", "query": f"what about topic {i}?", "human": f"topic {i} in calm",
         "doc_styles": {"loud": f"wow topic {i}!", "long": f"topic {i} and much more of it"}}
        for i in range(N)
    ]  # fmt: skip
    write_lines(place / "styles.jsonl", [json.dumps(record) for record in styled])


def _folders(place: Path) -> None:
    """Paired folders: one favours people, one cannot be searched, one has broken rewrites."""
    favoured = paired_dataset(n=N, rewrite=lambda i, human, text: text.replace("crowns", "coins"))
    write_beir(favoured, place / "pairs")
    write_beir(favoured, place / "pairs", split="dev")
    apart = paired_dataset(n=N, rewrite=lambda i, _, text: text.replace(f"number{i}", "one"))
    write_beir(apart, place / "apart")
    broken = paired_dataset(
        n=N, rewrite=lambda i, _, text: "I am sorry, I cannot do that." if i < 4 else text
    )
    write_beir(broken, place / "broken")
    corpus = place / "unjudged" / "corpus"
    corpus.mkdir(parents=True)
    for source in (place / "pairs" / "corpus").iterdir():
        (corpus / source.name).write_bytes(source.read_bytes())
    plain = place / "plain"
    (plain / "qrels").mkdir(parents=True)
    documents, judged = [], ["query-id\tcorpus-id\tscore"]
    for i in range(N):
        texts = {"human": human_text(i), "llm:x": rewritten(i).replace(f"number{i}", "one")}
        for source, text in texts.items():
            name = f"{source[0]}{i}"
            documents.append({"_id": name, "text": text, "metadata": {"source": source}})
            judged.append(f"q{i}\t{name}\t1")
    write_lines(plain / "corpus.jsonl", [json.dumps(row) for row in documents])
    write_lines(
        plain / "queries.jsonl",
        [json.dumps({"_id": f"q{i}", "text": f"number{i}"}) for i in range(N)],
    )
    write_lines(plain / "qrels" / "test.tsv", judged)


def _log(place: Path) -> None:
    ranked = RankedList(query_id="", doc_ids=tuple(f"d{i}" for i in range(10)))
    with EventLog(place / "log.db") as log:
        for i in range(80):
            tags = tuple(DocTags(source="human" if (i + k) % 3 else "llm:x") for k in range(10))
            log.record(RetrievalEvent(ranked=ranked, tags=tags))
