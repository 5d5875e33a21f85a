"""What sways real judges: order of a pair, length, their own family of models.

    python benchmarks/coverage/swayed.py

CrowdRAG-25 (a language model judged 377 pairs of answers in both orders, twice; crowd votes) and
PandaLM (pairs of answers by five models; three annotators) of the folder named by
RAG_SOURCEBIAS_DATA. Writes benchmarks/results/swayed.json, of which docs/coverage.md shows a table.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.values import environment
from rag_sourcebias.judged.judge_bias import BiasColumns, judge_biases

RESULTS = Path(__file__).parents[1] / "results" / "swayed.json"
POINTS = {"a": 1.0, "n": 0.5, "b": 0.0}
RESULT = {"1": 1.0, "2": 0.0, "0": 0.5}


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        text = file.read()
    return json.loads(text) if text.lstrip()[0] == "[" else list(map(json.loads, text.splitlines()))


def items(rows: list[dict[str, Any]]) -> JudgedItems:
    return JudgedItems(
        ids=tuple(map(str, range(len(rows)))),
        human=np.array([row["human"] for row in rows]),
        judge=np.array([row["judge"] for row in rows]),
        groups=tuple(row["group"] for row in rows),
        clusters=tuple(row["cluster"] for row in rows),
    )


def crowd(root: Path) -> Iterator[tuple[str, JudgedItems, BiasColumns]]:
    """Pairs judged in both orders; the length is the ratio of the two texts."""
    folder = root / "crowdrag25"
    texts = {row["response"]: row for row in lines(folder / "responses.jsonl.gz")}
    judged, voted = (lines(folder / f"{n}ratings.jsonl.gz") for n in ("llm_", ""))
    for mode in ("combined", "individual"):
        found = {(r["response_a"], r["response_b"]): r for r in judged if r["inference"] == mode}
        for dimension in ("quality_overall", "coverage_broad", "coherence_logical"):
            rows, seen = [], set()
            for row in voted:
                pair = row["response_a"], row["response_b"]
                one, other = found.get(pair), found.get(pair[::-1])
                if not one or not other or pair[::-1] in seen:
                    continue
                seen.add(pair)
                first, again = POINTS.get(one[dimension]), POINTS.get(other[dimension])
                if first is None or again is None:
                    continue
                words = [
                    len((texts[x].get("cleaned_text") or texts[x]["text"]).split()) for x in pair
                ]
                rows.append(
                    {
                        "human": np.mean([POINTS[v.lower()] for v in row[f"{dimension}_vote"]]),
                        "judge": first,
                        "swapped": 1 - again,
                        "length": words[0] / words[1],
                        "group": "pair",
                        "cluster": row["query_id"],
                    }
                )
            columns = BiasColumns(
                swapped=np.array([r["swapped"] for r in rows]),
                length=np.array([r["length"] for r in rows]),
            )
            yield f"CrowdRAG-25, {dimension}, asked {mode}", items(rows), columns


def pandalm(root: Path) -> Iterator[tuple[str, JudgedItems, BiasColumns]]:
    """Each answer of a pair is an item; the instruction is its cluster."""
    folder = root / "pandalm"
    people = lines(folder / "testset-v1.json.gz")
    for judge, field, name in (
        ("pandalm-7b", "pandalm_result", "llama-7b"),  # PandaLM was tuned from LLaMA
        ("gpt-3.5-turbo", "gpt_result", None),  # no answer is by its family
    ):
        said = {r["idx"]: str(r[field]) for r in lines(folder / f"{judge}-testset-v1.json.gz")}
        rows = []
        for pair in people:
            if said.get(pair["idx"]) not in RESULT:
                continue
            human = float(np.mean([RESULT[str(pair[f"annotator{k}"])] for k in (1, 2, 3)]))
            value = RESULT[said[pair["idx"]]]
            for k, (maker, h, j) in enumerate(
                zip(
                    pair["cmp_key"].split("_"), (human, 1 - human), (value, 1 - value), strict=True
                ),
                start=1,
            ):
                rows.append(
                    {
                        "human": h,
                        "judge": j,
                        "length": len(str(pair[f"response{k}"]).split()),
                        "group": maker,
                        "cluster": pair["instruction"] + str(pair["input"]),
                    }
                )
        columns = BiasColumns(length=np.array([float(r["length"]) for r in rows]), judge_name=name)
        yield f"PandaLM test set, {judge}", items(rows), columns


def main() -> None:
    root = Path(os.environ["RAG_SOURCEBIAS_DATA"])
    found = [
        {
            "judge": name,
            "what": bias.kind,
            "n": bias.n,
            "estimate": round(bias.effect.estimate, 4),
            "lower": round(bias.effect.lower, 4),
            "upper": round(bias.effect.upper, 4),
            "p": None if bias.p_adjusted is None else float(f"{bias.p_adjusted:.2g}"),
        }
        for reader in (crowd, pandalm)
        for name, judged, columns in reader(root)
        for bias in judge_biases(judged, columns)
    ]
    record = {"environment": environment(), "rows": found}
    RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in found:
        print(row)


if __name__ == "__main__":
    main()
