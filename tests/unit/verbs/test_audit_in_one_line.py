"""``rsb.audit`` takes what people have, and says in one sentence what it cannot take."""

from __future__ import annotations

import asyncio
import functools
import inspect
import itertools
import re
import tempfile
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from run_files import write_run

import rag_sourcebias as rsb
from rag_sourcebias.core.data import Query
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.pairs.writing import write_beir
from rag_sourcebias.retrieval.findings import RetrievalCode

N = 40
TEXTS = {
    f"{kind}{i}": f"number {i} {'plain words by a person' if kind == 'human' else 'a rewrite'}"
    for kind in ("human", "llm:x")
    for i in range(N)
}
TAGS = {doc_id: doc_id.rstrip("0123456789") for doc_id in TEXTS}
QUERIES = {f"q{i}": f"number {i}" for i in range(N)}
QRELS = {f"q{i}": {f"human{i}": 1, f"llm:x{i}": 1} for i in range(N)}
RNG = np.random.default_rng(5)
RESULTS = {
    f"q{i}": {
        f"human{i}": 2.0 + (RNG.random() < 0.7),
        f"llm:x{i}": 2.5,
        f"human{(i + 1) % N}": 1.0,
        f"llm:x{(i + 3) % N}": 0.5,
    }
    for i in range(N)
}
JUDGED = {"qrels": QRELS, "tags": TAGS}
PAIRED = {
    doc_id: {"text": text, "source": TAGS[doc_id], "pair_id": re.sub(r"\D", "", doc_id)}
    for doc_id, text in TEXTS.items()
}
DATA = {"corpus": PAIRED, "queries": QUERIES, "qrels": QRELS}


def figure(report: rsb.SkewReport) -> tuple[str | float, ...]:
    found = report.systems[0].verdicts[0]
    assert found.interval is not None
    ends = (found.interval.estimate, found.interval.lower, found.interval.upper)
    return (found.code.value, *(round(end, 6) for end in ends))


@functools.cache
def expected() -> tuple[str | float, ...]:
    return figure(rsb.audit(RESULTS, JUDGED))


# Finished results.


def ranking() -> dict[str, list[str]]:
    return {q: sorted(row, key=lambda d: -row[d]) for q, row in RESULTS.items()}


ROWS = [
    {"query_id": q, "doc_id": d, "score": s} for q, row in RESULTS.items() for d, s in row.items()
]


@pytest.mark.parametrize(
    "results",
    [
        RESULTS,
        ranking(),
        {q: tuple(row) for q, row in ranking().items()},
        {q: [(d, RESULTS[q][d]) for d in row] for q, row in ranking().items()},
        pd.DataFrame(ROWS),
        pl.DataFrame(ROWS),
        pl.LazyFrame(ROWS),
        pa.Table.from_pylist(ROWS),
        pd.DataFrame(ROWS).rename(columns={"query_id": "qid", "doc_id": "docno"}),
        rsb.Run.from_dict(RESULTS),
        [rsb.Run.from_dict(RESULTS)],
        {"mine": RESULTS},
    ],
    ids=lambda value: type(value).__name__,
)
def test_finished_results_in_any_shape_give_the_same_figures(results: Any) -> None:
    assert figure(rsb.audit(results, JUDGED)) == expected()


def test_a_file_and_a_name(tmp_path: Path) -> None:
    write_run(rsb.Run.from_dict(RESULTS), tmp_path / "my.run")
    assert figure(rsb.audit(tmp_path / "my.run", JUDGED)) == expected()
    report = rsb.audit({"a": str(tmp_path / "my.run"), "b": RESULTS}, JUDGED)
    assert [system.name for system in report.systems] == ["a", "b"]


# Data.


@pytest.mark.parametrize(
    "data",
    [
        {"qrels": QRELS, "tags": {d: {"source": s} for d, s in TAGS.items()}},
        {"qrels": {q: list(row) for q, row in QRELS.items()}, "tags": TAGS},
        {"qrels": [(q, d, g) for q, row in QRELS.items() for d, g in row.items()], "tags": TAGS},
        {
            "qrels": rsb.Qrels.from_dict(QRELS),
            "tags": pl.DataFrame({"doc_id": list(TAGS), "source": list(TAGS.values())}),
        },
        (PAIRED, QUERIES, QRELS),
        pd.DataFrame(
            {"query_id": q, "doc_id": d, "relevance": QRELS[q].get(d, 0), "source": TAGS[d]}
            for q in QRELS
            for d in TEXTS
        ),
    ],
    ids=["rows", "lists", "triples", "objects", "tuple", "frame"],
)
def test_data_in_any_shape_gives_the_same_figures(data: Any) -> None:
    assert figure(rsb.audit(RESULTS, data)) == expected()


def test_a_frame_alone_is_data() -> None:
    rows = [
        {"query": QUERIES[q], "doc_id": d, "text": TEXTS[d], "source": TAGS[d], "relevance": 1}
        for q, row in QRELS.items()
        for d in row
    ]
    for frame in (pd.DataFrame(rows), pl.LazyFrame(rows)):
        report = rsb.audit(frame)
        assert report.systems[0].name == "bm25"
        assert figure(report) == figure(rsb.audit("bm25", frame))


def test_a_folder_and_its_texts_give_the_same_figures(tmp_path: Path) -> None:
    data = rsb.load_sample()
    write_beir(data, tmp_path / "mine")
    assert figure(rsb.audit("bm25", tmp_path / "mine")) == figure(rsb.audit("bm25", data))
    named = rsb.audit("bm25", "sample")
    assert figure(named) == figure(rsb.audit("bm25", "crowdrag-rewrites"))
    assert figure(named) != figure(rsb.audit("bm25:k1=0.1", data))


def test_settings_are_those_of_the_audit() -> None:
    report = rsb.audit(RESULTS, JUDGED, cutoffs=3, measures="NDCG", margin=2, rng=7)
    assert report.config == rsb.AuditConfig(cutoffs=(3,), measures=("NDCG",), margin=2, seed=7)
    assert rsb.audit(RESULTS, JUDGED, config=report.config).config == report.config
    with pytest.raises(DataError, match="did you mean cutoffs"):
        rsb.audit(RESULTS, JUDGED, cutof=3)
    shown = inspect.signature(rsb.audit).parameters
    assert {"retriever", "data", "cutoffs", "primary", "seed"} <= set(shown)


# An application's own retriever.


COUNT = itertools.count()


def searcher(document: Any) -> Any:
    data = rsb.load_sample()
    texts = dict(data.corpus)
    retriever = rsb.retrieval.BM25Spec().build(data.corpus)

    def search(text: str) -> list[Any]:
        found = retriever.retrieve([Query(query_id="q", text=text)], 10).ranked_list(0)
        return [document(doc_id, texts[doc_id]) for doc_id in found.doc_ids]

    return search


@pytest.mark.parametrize(
    ("document", "way"),
    [
        (lambda doc_id, _: doc_id, "n_id"),
        (lambda doc_id, _: {"id": doc_id}, "n_id"),
        (lambda _, text: text, "n_text"),
        (lambda doc_id, _: {"id": hash(doc_id), "metadata": {"ref": doc_id}}, "n_key"),
        (lambda doc_id, text: {"id": str(len(doc_id)), "text": f" {text}\n"}, "n_text"),
        (lambda doc_id, _: ({"doc_id": doc_id}, -next(COUNT)), "n_id"),
        (lambda doc_id, _: (doc_id, -float(next(COUNT))), "n_id"),
    ],
)
def test_documents_are_matched_to_the_data(document: Any, way: str) -> None:
    data = rsb.load_sample()
    report = rsb.audit(searcher(document), data, depth=10)
    note = report.systems[0].notes[0]
    assert (note.code, note.numbers["n_all"]) == (RetrievalCode.MATCHED, 1_600)
    assert note.numbers["n"] == note.numbers[way] == 1_600
    expected = [v.code for v in rsb.audit("bm25", data, depth=10).systems[0].verdicts]
    assert [v.code for v in report.systems[0].verdicts] == expected


def test_scores_by_document_are_a_ranking() -> None:
    def search(text: str) -> dict[str, float]:
        i = text.split()[1]
        return {f"human{i}": 0.5, f"llm:x{i}": 0.9}

    assert rsb.audit(search, DATA, depth=5).verdict == "favours_other"
    assert rsb.audit([RESULTS, ranking()], JUDGED).systems[1].name == "results 2"
    assert figure(rsb.audit("BM25", DATA)) == figure(rsb.audit("bm25", DATA))


def test_ids_that_fit_by_accident_lose_against_the_text() -> None:
    corpus = {str(i): text for i, text in enumerate(TEXTS.values())}
    by_text = {text: str(i) for i, text in enumerate(TEXTS.values())}
    tags = {str(i): TAGS[doc_id] for i, doc_id in enumerate(TEXTS)}
    qrels = {q: {by_text[TEXTS[d]]: 1 for d in row} for q, row in QRELS.items()}
    data = {"corpus": corpus, "queries": QUERIES, "qrels": qrels, "tags": tags}

    def search(text: str) -> list[dict[str, str]]:
        i = int(text.split()[1])
        return [
            {"id": str(at), "text": TEXTS[doc_id]}
            for at, doc_id in enumerate((f"llm:x{i}", f"human{i}"))
        ]

    report = rsb.audit(search, data, depth=5)
    assert report.verdict == "favours_other"
    assert report.systems[0].notes[0].numbers["n_text"] > 0


def test_an_asynchronous_function_is_awaited() -> None:
    search = searcher(lambda doc_id, _: doc_id)

    async def asearch(text: str) -> list[str]:
        await asyncio.sleep(0)
        return list(search(text))

    data = rsb.load_sample()
    assert figure(rsb.audit(asearch, data)) == figure(rsb.audit(search, data))

    async def inside() -> Any:
        with pytest.raises(DataError, match=r"event loop is running.*asyncio\.to_thread") as error:
            rsb.audit(asearch, data)
        assert_one_sentence(error)
        return await asyncio.to_thread(rsb.audit, asearch, data)

    assert figure(asyncio.run(inside())) == figure(rsb.audit(search, data))


# What people pass by mistake.


def assert_one_sentence(error: pytest.ExceptionInfo[BaseException]) -> None:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 700
    assert not re.search(r"0x[0-9a-f]{6}", text)


def generator(_: str) -> Any:
    yield "human0"


async def coroutine(_: str) -> list[str]:
    return ["human0"]


class Broken:
    def __call__(self, text: str) -> list[str]:
        raise TimeoutError("the server did not answer")


def call(*args: Any, **options: Any) -> Any:
    return lambda: rsb.audit(*args, **options)


MISTAKES = {
    "nothing": (call(), "no data: write rsb.audit"),
    "data forgotten": (call("bm25"), "the text 'bm25' alone: data are missing"),
    "function alone": (call(len), "data are missing"),
    "swapped": (call(DATA, "bm25"), "the retriever comes first"),
    "a class": (call(rsb.Run, DATA), "Run is a class"),
    "generator": (call(generator, DATA), "yields documents one by one"),
    "a number": (call(3, DATA), "an object of type int cannot be asked"),
    "unknown name": (call("bm26", DATA), "retriever kind 'bm26' is unknown"),
    "no folder": (call("bm25", "data/none"), "is no folder"),
    "data a list": (call("bm25", ["a", "b"]), "a list is no data set"),
    "data None of it": (call("bm25", {"a": 1}), "lacks 'qrels'"),
    "no tags": (call(RESULTS, {"qrels": QRELS}), "say of no document where it comes from"),
    "no texts": (call("bm25", JUDGED), "hold no texts"),
    "other columns": (
        call(pd.DataFrame({"a": [1], "b": [2]}), JUDGED),
        "results has the columns a, b; expected {query: {document: score}}",
    ),
    "other data columns": (
        call(RESULTS, pd.DataFrame({"query_id": ["q0"], "text": ["t"]})),
        "lacks doc_id",
    ),
    "no source": (
        call(RESULTS, pd.DataFrame({"query_id": ["q0"], "doc_id": ["human0"]})),
        "lacks source",
    ),
    "grades": (
        call(RESULTS, {"qrels": {"q0": {"human0": 0.5}}, "tags": TAGS}),
        "row 1: relevance '0.5' is not.*grade_scale=2",
    ),
    "other queries": (
        call("bm25", {"corpus": PAIRED, "queries": {"x": "y"}, "qrels": QRELS}),
        "the judgments and the queries have no query in common",
    ),
    "ids of somebody else": (
        call(lambda _: ["x1", "x2"], DATA),
        r"none of the 80 documents .* is in the data.*'human0'.*'x1'",
    ),
    "other results": (call({"x": ["a"]}, JUDGED), "no query in common.*'x'.*'q0'"),
    "no file": (call(Path("none.run"), JUDGED), "no file 'none.run'"),
    "texts as scores": (call({"q0": {"human0": "high"}}, JUDGED), "a number for each score"),
    "an answer": (call(lambda _: "Paris.", DATA), "returned the text 'Paris.' for query"),
    "it fails": (call(Broken(), DATA), "'Broken' failed on query 'q0': TimeoutError"),
    "both configs": (
        lambda: rsb.audit(RESULTS, JUDGED, config=rsb.AuditConfig(), seed=1),
        "not both",
    ),
    "an encoder": (call(SimpleNamespace(embed_query=len), DATA), "is an embedding model"),
    "an empty folder": (lambda: rsb.audit("bm25", mkdtemp()), "holds nothing; expected a folder"),
    "a misspelt argument": (call("bm25", DATA, dept=5), "'dept'; there are .*did you mean depth"),
    "texts without sources": (
        call("bm25", {"corpus": TEXTS, "queries": QUERIES, "qrels": QRELS}),
        "tags name it for each id",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(name: str) -> None:
    run, message = MISTAKES[name]
    with pytest.raises(DataError, match=message) as error:
        run()
    assert_one_sentence(error)


# Intervals.


def judged() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    truth = rng.random(300)
    human = np.where(np.arange(300) < 60, truth, np.nan)
    return pd.DataFrame({"id": range(300), "human": human, "judge": truth + 0.1})


def test_an_interval_from_a_file_a_frame_and_arrays(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))  # nothing is written there
    frame = judged()
    frame.to_csv(tmp_path / "answers.csv", index=False)
    found = [
        rsb.interval(data).means[0].interval
        for data in (
            tmp_path / "answers.csv",
            frame,
            pl.from_pandas(frame),
            frame.to_dict("records"),
            frame.to_dict("list"),
        )
    ]
    some = frame.human.notna()
    arrays = rsb.interval(
        y=frame.human[some], yhat=frame.judge[some], yhat_unlabeled=frame.judge[~some]
    )
    assert len({(i.estimate, i.lower, i.upper) for i in found}) == 1
    assert arrays.means[0].interval.estimate == found[0].estimate
    assert repr(arrays).startswith("<JudgedReport arrays: score judge too high, score 0.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no data"),
        ({"y": [1, 2]}, r"yhat \(0,\)"),
        ({"y": [1, 2], "yhat": [1]}, r"shape \(2,\), yhat \(1,\)"),
        ({"y": ["a"], "yhat": [1]}, "no number"),
        ({"data": "none.csv"}, "none.csv does not exist"),
        ({"data": pd.DataFrame({"a": [1]})}, "data"),
        ({"data": pd.DataFrame({0: [1]})}, "data"),
        ({"data": 3}, "an int is no table"),
        ({"data": judged(), "levl": 0.9}, "no setting 'levl'"),
    ],
)
def test_what_gives_no_interval(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        rsb.interval(**options)
    assert_one_sentence(error)
    assert "/tmp" not in str(error.value)


# What is held in a session says how much of what it is, on one line.


@pytest.mark.parametrize("on_stage", [None, lambda _: None])
def test_texts_enter_a_report_on_request_alone(on_stage: Any) -> None:
    def quoted(data: Any, **options: Any) -> bool:
        report = rsb.audit("bm25", data, on_stage=on_stage, **options)
        cases = [case for system in report.systems for case in system.evidence]
        assert cases
        texts = {bool(case.asked and case.first.text and case.second.text) for case in cases}
        assert len(texts) == 1
        assert texts != {False} or not any(c.asked or c.first.text or c.second.text for c in cases)
        return texts.pop()

    assert not quoted(DATA)
    assert quoted(DATA, texts=True)
    assert quoted("sample")
    assert not quoted("sample", texts=False)
