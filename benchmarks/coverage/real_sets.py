"""Real data with a human value for every item, to be resampled as populations.

Read from the folder named by RAG_SOURCEBIAS_DATA; nothing of it is stored in the repository.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rag_sourcebias.judged.crc import RankedLabels, dcg_weights

GAINS = np.array([0.0, 1.0, 3.0, 7.0])


@dataclass(frozen=True, eq=False)
class RealSet:
    """Human and judge value of every item."""

    name: str
    y: np.ndarray
    yhat: np.ndarray
    bounds: tuple[float, float] | None = None
    clusters: np.ndarray | None = None
    labels: RankedLabels | None = None
    human_labels: RankedLabels | None = None

    @property
    def binary(self) -> bool:
        return bool(np.isin(self.y, (0.0, 1.0)).all())


def real_sets(root: Path, *, only: str = "") -> list[RealSet]:
    """All sets whose name contains ``only``."""
    readers = (interval_labels, deep_learning, antique, judge_logits, evouna, openqa, pandalm)
    return [s for reader in readers for s in reader(root) if only in s.name]


def interval_labels(root: Path) -> Iterator[RealSet]:
    """DCG@10 of BM25 under label distributions (votes of judges, votes of prompts)."""
    for stem in ("dl19_dl20_bm25_umbrela3votes", "dl20_bm25_promptdist"):
        arrays = np.load(root / "interval_labels" / f"{stem}.npz")
        query = arrays["query_segments"]
        starts = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
        sizes = np.diff(np.r_[starts, len(query)])
        rank = np.arange(len(query)) - np.repeat(starts, sizes) + 1
        probs = arrays["pred_label_dist"].astype(np.float64)
        labels = RankedLabels(
            probs=probs / probs.sum(axis=1, keepdims=True),
            weights=dcg_weights(rank, 10),
            query=np.repeat(np.arange(len(starts)), sizes),
            n_queries=len(starts),
            gains=GAINS,
        )
        human = replace(labels, probs=arrays["true_label_dist"].astype(np.float64))
        yield RealSet(
            f"interval_labels/{stem}",
            human.utilities(),
            labels.utilities(),
            labels=labels,
            human_labels=human,
        )


def deep_learning(root: Path) -> Iterator[RealSet]:
    """DCG@10 and NDCG@10 of BM25 by TREC assessors and by UMBRELA with three models."""
    for year in ("dl19", "dl20"):
        rows = list(_table(root / "dl_human_llm" / f"{year}.tsv.gz"))
        for judge in ("umbrela_gpt4", "umbrela_gpt4o", "umbrela_llama32"):
            for measure in ("DCG", "NDCG"):
                y, yhat = (_per_query(rows, column, measure) for column in ("human", judge))
                bounds = (0.0, 1.0) if measure == "NDCG" else None
                yield RealSet(f"dl_human_llm/{year} {judge} {measure}@10", y, yhat, bounds)


def _per_query(rows: list[dict[str, str]], column: str, measure: str) -> np.ndarray:
    """Measure of BM25 for each query; documents without a label count as grade 0."""
    found: dict[str, float] = {}
    judged: dict[str, list[float]] = {}
    for row in rows:
        gain = 2.0 ** float(row[column] or 0) - 1
        judged.setdefault(row["qid"], []).append(gain)
        rank = float(row["BM25_rank"] or "inf")
        found.setdefault(row["qid"], 0.0)
        if rank <= 10:
            found[row["qid"]] += gain / np.log2(rank + 1)
    if measure == "DCG":
        return np.array(list(found.values()))
    discount = 1 / np.log2(np.arange(2, 12))
    values = []
    for query, value in found.items():
        best = np.sort(judged[query])[::-1][:10]
        ideal = float(best @ discount[: len(best)])
        values.append(value / ideal if ideal > 0 else 0.0)
    return np.array(values)


def antique(root: Path) -> Iterator[RealSet]:
    """Grades of answers to 200 questions, questions drawn as a whole."""
    rows = list(_table(root / "dl_human_llm" / "antique.tsv.gz"))
    for judge in ("umbrela_gpt4o", "umbrela_llama32"):
        kept = [row for row in rows if row["human"] and row[judge]]
        y, yhat = (np.array([float(row[c]) for row in kept]) for c in ("human", judge))
        query = np.array([row["qid"] for row in kept])
        yield RealSet(f"dl_human_llm/antique {judge}", y, yhat, clusters=query)


def judge_logits(root: Path) -> Iterator[RealSet]:
    """Mean human grade 1 … 5 against the mean of the judge's grade distribution."""
    folder = root / "judge_logits"
    for path in sorted(folder.glob("model_logits__*_logits.csv.gz")):
        table = _numbers(path)
        _, model, task = path.name.removesuffix("_logits.csv.gz").split("__")
        yield RealSet(
            f"judge_logits/{task} {model}", table[:, 5], _mean_grade(table[:, :5]), (1.0, 5.0)
        )
    for path in sorted(folder.glob("prompt_sensitivity__*.csv.gz")):
        # Five rows per item: with gpt-4o-mini the third of each five repeats its own file.
        model, dimension = path.name.removesuffix(".csv.gz").split("__")[2].split("_")
        human = _numbers(folder / f"model_logits__4omini__Summeval_{dimension}_logits.csv.gz")
        yhat = _mean_grade(_numbers(path)).reshape(-1, 5).mean(axis=1)
        yield RealSet(
            f"judge_logits/Summeval_{dimension} {model} 5 prompts", human[:, 5], yhat, (1.0, 5.0)
        )


def _mean_grade(logits: np.ndarray) -> np.ndarray:
    probs = np.exp(logits)
    return probs / probs.sum(axis=1, keepdims=True) @ np.arange(1.0, 6.0)


def evouna(root: Path) -> Iterator[RealSet]:
    """Correctness of answers against "a golden answer occurs in the answer"."""
    for name in ("NQ", "TQ"):
        items = [x for x in _json(root / f"evouna/{name}.json.gz") if not x["improper"]]
        for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing"):
            kept = [item for item in items if item[f"judge_{system}"] is not None]
            y = np.array([float(item[f"judge_{system}"]) for item in kept])
            yhat = np.array(
                [
                    float(_occurs(item["golden_answer"], item[f"answer_{system}"] or ""))
                    for item in kept
                ]
            )
            yield RealSet(f"evouna/{name} {system}", y, yhat, (0.0, 1.0))


def _occurs(golden: str, answer: str) -> bool:
    plain = _plain(answer)
    return any(_plain(gold) in plain for gold in golden.split("/") if _plain(gold).strip())


def _plain(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return f" {' '.join(word for word in words if word not in ('a', 'an', 'the'))} "


def openqa(root: Path) -> Iterator[RealSet]:
    """Correctness of the answers of all systems to 301 questions, questions drawn as a whole."""
    human, gpt4, bem = (
        list(_table(root / "openqa_eval" / f"NQ301_{name}.tsv.gz"))
        for name in ("human", "gpt-4", "BEM")
    )
    key = lambda row: (row["Question"], row["Model answer"].strip('"'))  # noqa: E731
    truth = {key(row): float(row["Acceptable?"] == "Yes") for row in human}
    judges = {
        "gpt-4": {key(row): float(row["Acceptable?"] == "Yes") for row in gpt4},
        "BEM": {
            key(row): max(
                pair[1] for pair in json.loads(row["BEM probs per gold answer"].strip('"'))
            )
            for row in bem
        },
    }
    for name, verdicts in judges.items():
        both = [item for item in truth if item in verdicts]
        yield RealSet(
            f"openqa_eval/{name}",
            np.array([truth[item] for item in both]),
            np.array([verdicts[item] for item in both]),
            (0.0, 1.0),
            clusters=np.array([question for question, _ in both]),
        )


def pandalm(root: Path) -> Iterator[RealSet]:
    """Share of pairs in which the first answer is better (ties count half)."""
    folder = root / "pandalm"
    people = _json(folder / "testset-v1.json.gz")
    points = {1: 1.0, 2: 0.0, 0: 0.5}
    voted = {
        item["idx"]: np.mean([points[int(item[f"annotator{i}"])] for i in (1, 2, 3)])
        for item in people
    }
    for name, field in (("gpt-3.5-turbo", "gpt_result"), ("pandalm-7b", "pandalm_result")):
        verdicts = {
            item["idx"]: item[field] for item in _json(folder / f"{name}-testset-v1.json.gz")
        }
        kept = [i for i in voted if str(verdicts.get(i)) in ("0", "1", "2")]
        yield RealSet(
            f"pandalm/{name}",
            np.array([voted[i] for i in kept]),
            np.array([points[int(verdicts[i])] for i in kept]),
            (0.0, 1.0),
        )


def _table(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _numbers(path: Path) -> np.ndarray:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=",", skiprows=1)


def _json(path: Path) -> list[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
