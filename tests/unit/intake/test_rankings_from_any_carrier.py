"""One ranking, written in every way people have it: one verdict or a refusal, from both sides."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import inside, read_csv

import rag_sourcebias as rsb
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.rankings import runs_of

QUERIES = [f"q{i}" for i in range(60)]
# the LLM's text comes first in every query
BEST_FIRST = {q: [f"llm{q}", f"human{q}", f"other{q}"] for q in QUERIES}
QRELS = {q: {f"llm{q}": 1, f"human{q}": 1} for q in QUERIES}
TAGS = {doc: "llm:x" if doc.startswith("llm") else "human" for q in QUERIES for doc in QRELS[q]}
JUDGED = {"qrels": QRELS, "tags": TAGS}


class Entry(NamedTuple):
    query: str
    doc: str
    rank: int
    score: float


World = Mapping[str, list[Entry]]  # rows of each system, in the order in which they are written


def scored(score: Callable[[int], float]) -> World:
    return {
        "mine": [
            Entry(q, doc, rank, score(rank))
            for q, docs in BEST_FIRST.items()
            for rank, doc in enumerate(docs, 1)
        ]
    }


def turned(world: World) -> list[Entry]:
    """Return the rows of a system that exchanges the first two documents."""
    (rows,) = world.values()
    docs = {entry: BEST_FIRST[entry.query][(1, 0, 2)[entry.rank - 1]] for entry in rows}
    return [entry._replace(doc=doc) for entry, doc in docs.items()]


SIMILARITY = scored(lambda rank: 3.0 - rank)
DOUBLED = {"mine": [entry for entry in SIMILARITY["mine"] for _ in (0, 1)]}
WORLDS: dict[str, World] = {
    "similarity": SIMILARITY,
    "distance": scored(lambda rank: rank / 10),
    "constant": scored(lambda _: 1.0),
    "1e8 - rank": scored(lambda rank: 1e8 - rank),
    "epoch milliseconds": scored(lambda rank: 1_700_000_000_000 - rank),
    ".9 - 1e-9 rank": scored(lambda rank: 0.9 - 1e-9 * rank),
    "doubled": DOUBLED,
    "two systems": {**SIMILARITY, "theirs": turned(SIMILARITY)},
    "shuffled lines": {"mine": SIMILARITY["mine"][1::2] + SIMILARITY["mine"][::2]},
    "not monotone": scored(lambda rank: (2.0, 1.0, 3.0)[rank - 1]),
}

# Carriers, by what of a ranking they hold.


def rows_of(world: World, *columns: str) -> list[dict[str, Any]]:
    every = ("system", "query_id", "doc_id", "rank", "score")
    rows = [dict(zip(every, (name, *entry), strict=True)) for name, rows in world.items()
            for entry in rows]  # fmt: skip
    return [{column: row[column] for column in columns} for row in rows]


ALL = ("system", "query_id", "doc_id", "rank", "score")


def trec(world: World) -> bytes:
    return "".join(
        f"{r['query_id']} Q0 {r['doc_id']} {r['rank']} {r['score']!r} {r['system']}\n"
        for r in rows_of(world, *ALL)
    ).encode()


def table(world: World, separator: str) -> bytes:
    lines = [
        separator.join(ALL),
        *(separator.join(map(str, r.values())) for r in rows_of(world, *ALL)),
    ]
    return "\r\n".join(lines).encode("utf-8-sig")


def lists(world: World, one: Callable[[Entry], Any]) -> Any:
    """Return the list of each query, by system where there are several."""
    by_system: dict[str, dict[str, list[Any]]] = {}
    for name, rows in world.items():
        for entry in rows:
            by_system.setdefault(name, {}).setdefault(entry.query, []).append(one(entry))
    return by_system if len(by_system) > 1 else next(iter(by_system.values()))


def pairs(world: World) -> Any:
    return lists(world, lambda entry: (entry.doc, entry.score))


def ids(world: World) -> Any:
    return lists(world, lambda entry: entry.doc)


def by_document(world: World) -> Any:
    def joined(value: Any) -> Any:
        if isinstance(value, list):
            return dict(value)
        return {key: joined(one) for key, one in value.items()}

    return joined(pairs(world))


FILES: dict[str, tuple[str, Callable[[World], bytes]]] = {
    "mine.run": ("ranks and scores", trec),
    "mine.run.gz": ("ranks and scores", lambda world: gzip.compress(trec(world))),
    "mine.run.bz2": ("ranks and scores", lambda world: bz2.compress(trec(world))),
    "mine.run.xz": ("ranks and scores", lambda world: lzma.compress(trec(world))),
    "mine.run.zst": (
        "ranks and scores", lambda world: pa.compress(trec(world), "zstd", asbytes=True)),
    "mine.tsv": ("ranks and scores", lambda world: table(world, "\t")),
    "mine.csv": ("ranks and scores", lambda world: table(world, ",")),
    "mine.jsonl": ("ranks and scores", lambda world: "\n".join(
        map(json.dumps, rows_of(world, *ALL))).encode()),
    "rows.json": ("ranks and scores", lambda world: json.dumps(rows_of(world, *ALL)).encode()),
    "ms_marco.tsv": ("ranks", lambda world: "".join(
        f"{r['query_id']}\t{r['doc_id']}\t{r['rank']}\n" for r in rows_of(world, *ALL)).encode()),
    "pairs.json": ("list and scores", lambda world: json.dumps(pairs(world)).encode()),
    "ids.json": ("list", lambda world: json.dumps(ids(world)).encode()),
    "scores.json": ("scores", lambda world: json.dumps(by_document(world)).encode()),
}  # fmt: skip
OBJECTS: dict[str, tuple[str, Callable[[World], Any]]] = {
    "pandas": ("ranks and scores", lambda world: pd.DataFrame(rows_of(world, *ALL))),
    "polars": ("ranks and scores", lambda world: pl.DataFrame(rows_of(world, *ALL))),
    "pyarrow": ("ranks and scores", lambda world: pa.Table.from_pylist(rows_of(world, *ALL))),
    "list of dicts": ("ranks and scores", lambda world: rows_of(world, *ALL)),
    "frame of scores": ("scores", lambda world: pd.DataFrame(rows_of(world, *ALL[:3], "score"))),
    "frame of ranks": ("ranks", lambda world: pd.DataFrame(rows_of(world, *ALL[:3], "rank"))),
    "{query: [(doc, score)]}": ("list and scores", pairs),
    "{query: [docs]}": ("list", ids),
    "{query: {doc: score}}": ("scores", by_document),
}  # fmt: skip
LLM, HUMAN, REFUSED = "favours_other", "favours_baseline", "refused"


def expected(holds: str, world: str) -> dict[str, str] | str:
    """Return the verdicts on what a carrier still holds of a ranking."""
    refused = {
        ("constant", "scores"),
        ("not monotone", "ranks and scores"),
        ("not monotone", "list and scores"),
        ("shuffled lines", "list and scores"),
    }
    if (world, holds) in refused:
        return REFUSED
    if (world, holds) == ("distance", "scores"):
        return {"mine": HUMAN}  # where there is nothing but scores, higher is better
    if world == "two systems":
        return {"mine": LLM, "theirs": HUMAN}
    return {"mine": LLM}


def verdicts(results: Any) -> dict[str, str] | str:
    try:
        report = rsb.audit(results, JUDGED, cutoffs=[3])
    except DataError:
        return REFUSED
    return {system.name: system.verdicts[0].code.value for system in report.systems}


def in_terminal(path: Path) -> dict[str, str] | str:
    code, _, messages = inside(
        "audit", "source", "--run", path.name, "--qrels", "q.qrels", "--tags", "t.tsv",
        "--cutoffs", "3", "--table", "verdicts.csv", cwd=path.parent,
    )  # fmt: skip
    assert "Traceback" not in messages
    if code:
        assert code == 2
        return REFUSED
    return {row["system"]: row["verdict"] for row in read_csv(path.parent / "verdicts.csv")}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("carrier", OBJECTS)
def test_an_object_gives_one_verdict_or_a_refusal(carrier: str, world: str) -> None:
    holds, make = OBJECTS[carrier]
    if (world, holds) == ("shuffled lines", "list"):
        pytest.skip("the order of a list of ids is all that there is")
    found = verdicts(make(WORLDS[world]))
    wanted = expected(holds, world)
    if isinstance(wanted, dict) and len(wanted) == 1:  # objects may not name their one system
        wanted, found = list(wanted.values()), list(found.values())
    assert found == wanted


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("carrier", FILES)
def test_a_file_gives_the_same_from_both_sides(carrier: str, world: str, tmp_path: Path) -> None:
    holds, content = FILES[carrier]
    if (world, holds) == ("shuffled lines", "list"):
        pytest.skip("the order of a list of ids is all that there is")
    if (world, holds) == ("two systems", "ranks"):
        pytest.skip("the form has no place for the name of a system")
    path = tmp_path / carrier
    path.write_bytes(content(WORLDS[world]))
    qrels = [f"{q} 0 {doc} {grade}\n" for q, row in QRELS.items() for doc, grade in row.items()]
    (tmp_path / "q.qrels").write_text("".join(qrels))
    (tmp_path / "t.tsv").write_text(
        "doc_id\tsource\n" + "".join(f"{doc}\t{source}\n" for doc, source in TAGS.items())
    )
    wanted = expected(holds, world)
    found = verdicts(path)
    assert in_terminal(path) == found
    if isinstance(wanted, dict) and len(wanted) == 1:
        wanted = dict.fromkeys(found, *wanted.values())  # named by tag, or by the file
    assert found == wanted


def test_parquet_is_read_as_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.Table.from_pylist(rows_of(WORLDS["distance"], *ALL)), path)
    assert verdicts(path) == {"mine": LLM}
    (run,) = runs_of(path)
    assert [note.code.name for note in run.notes] == ["DISTANCES"]


def test_how_a_run_was_read_is_stored(tmp_path: Path) -> None:
    report = rsb.audit(pairs(WORLDS["distance"]), JUDGED, cutoffs=[3])
    report.save(tmp_path)
    code = "import sys, rag_sourcebias as rsb; print(*rsb.read_report(sys.argv[1]).warnings)"
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "report.json")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "they are read as distances" in told.stdout
