"""Judgments of documents that the corpus lacks: kept whichever way they come, as trec_eval does."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rag_sourcebias.core.data import Run
from rag_sourcebias.intake.given import Given, data_of
from rag_sourcebias.measure.relevance import score_run
from rag_sourcebias.measure.texts import DataCode
from rag_sourcebias.source.audit import measure_source_bias

QUERIES = {f"q{i}": f"question {i}" for i in range(12)}
CORPUS = {
    f"{kind}{i}": {"text": f"answer {i} of {kind}", "source": source}
    for i in range(12)
    for kind, source in (("h", "human"), ("l", "llm:x"))
}
JUDGED = [(f"q{i}", f"{kind}{i}", 1) for i in range(12) for kind in "hl"]
LOST = [("q0", "gone", 2), ("q1", "gone", 1), ("q1", "lost", 1)]
RUN = {f"q{i}": {f"h{i}": 2.0, f"l{i}": 1.0} for i in range(12)}


def rows(judged: list) -> pd.DataFrame:
    return pd.DataFrame(judged, columns=["query-id", "corpus-id", "score"])


def documents() -> list[dict]:
    return [
        {"_id": name, "text": held["text"], "metadata": {"source": held["source"]}}
        for name, held in CORPUS.items()
    ]


def lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")


def beir(folder: Path, judged: list) -> Any:
    lines(folder / "corpus.jsonl", documents())
    lines(folder / "queries.jsonl", [{"_id": q, "text": text} for q, text in QUERIES.items()])
    (folder / "qrels").mkdir()
    rows(judged).to_csv(folder / "qrels" / "test.tsv", sep="\t", index=False)
    return folder


def paired(folder: Path, judged: list) -> Any:
    """Versions of a document share its id; judgments of it count for each."""
    for kind, name in (("h", "human"), ("l", "llm:x")):
        (folder / "corpus").mkdir(exist_ok=True)
        parts = [{"_id": d[1:], "text": held["text"]} for d, held in CORPUS.items() if d[0] == kind]
        lines(folder / "corpus" / f"{name}.jsonl", parts)
    lines(folder / "queries.jsonl", [{"_id": q, "text": text} for q, text in QUERIES.items()])
    ids = {(query, doc if doc in ("gone", "lost") else doc[1:]): g for query, doc, g in judged}
    once = [(*pair, grade) for pair, grade in ids.items()]
    (folder / "qrels").mkdir()
    rows(once).to_csv(folder / "qrels" / "test.tsv", sep="\t", index=False)
    return folder


def parquet(folder: Path, judged: list) -> Any:
    pd.DataFrame(documents()).to_parquet(folder / "corpus.parquet")
    texts = pd.DataFrame({"_id": list(QUERIES), "text": list(QUERIES.values())})
    texts.to_parquet(folder / "queries.parquet")
    (folder / "qrels").mkdir()
    rows(judged).to_parquet(folder / "qrels" / "test.parquet")
    return folder


def dictionaries(folder: Path, judged: list) -> Any:
    by_query: dict[str, dict[str, int]] = {}
    for query, doc, grade in judged:
        by_query.setdefault(query, {})[doc] = grade
    return {"corpus": CORPUS, "queries": QUERIES, "qrels": by_query}


def frames(folder: Path, judged: list) -> Any:
    corpus = pd.DataFrame({"doc_id": list(CORPUS), **pd.DataFrame(CORPUS.values())})
    return {"corpus": corpus, "queries": QUERIES, "qrels": rows(judged)}


def files(folder: Path, judged: list) -> Any:
    parts = dictionaries(folder, judged)
    rows(judged).to_csv(folder / "judged.tsv", sep="\t", index=False)
    return {**parts, "qrels": folder / "judged.tsv"}


def datasets(folder: Path, judged: list) -> Any:
    library = pytest.importorskip("datasets", reason="needs datasets")
    corpus = library.Dataset.from_list([{"_id": d, **held} for d, held in CORPUS.items()])
    qrels = {"test": library.Dataset.from_pandas(rows(judged))}
    return {"corpus": corpus, "queries": QUERIES, "qrels": qrels}


WAYS = (beir, paired, parquet, dictionaries, frames, files, datasets)


def run_of(data: Given) -> Run:
    """The run, in ids of versions where the documents have such."""
    name_of = dict(zip(CORPUS, CORPUS, strict=True))
    if data.tags.doc_ids[0] not in CORPUS:
        name_of = {name: f"{name[1:]}@{held['source']}" for name, held in CORPUS.items()}
    return Run.from_dict(
        {q: {name_of[d]: score for d, score in found.items()} for q, found in RUN.items()}
    )


@pytest.mark.parametrize("way", WAYS)
def test_documents_outside_the_corpus_stay_judged(
    way: Callable[[Path, list], Any], tmp_path: Path
) -> None:
    data = data_of(way(tmp_path, [*JUDGED, *LOST]))
    run = run_of(data)
    assert len(data.qrels) == len(JUDGED) + len(LOST)
    scores = score_run(run, data.qrels, measures=("NDCG",), cutoffs=(5,)).of("NDCG@5", "all")
    at = dict(zip(data.qrels.query_ids, scores, strict=True))
    found = 1 + 1 / math.log2(3)
    assert at["q0"] == pytest.approx(found / (2 + 1 / math.log2(3) + 1 / 2))
    assert at["q1"] == pytest.approx(found / (found + 1 / 2 + 1 / math.log2(5)))
    assert at["q2"] == pytest.approx(1)
    report = measure_source_bias(run, data.qrels, data.tags)
    told = {finding.code: finding.numbers for finding in report.findings}
    n_all = len(CORPUS) + 2
    assert told[DataCode.NOT_LISTED] == {"n": 2, "n_all": n_all, "first": "gone"}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_said_where_all_are_in_the_corpus(
    way: Callable[[Path, list], Any], tmp_path: Path
) -> None:
    data = data_of(way(tmp_path, JUDGED))
    run = run_of(data)
    scores = score_run(run, data.qrels, measures=("NDCG",), cutoffs=(5,)).of("NDCG@5", "all")
    assert np.all(scores == pytest.approx(1))
    report = measure_source_bias(run, data.qrels, data.tags)
    assert DataCode.NOT_LISTED not in {finding.code for finding in report.findings}
