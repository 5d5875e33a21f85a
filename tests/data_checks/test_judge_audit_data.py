"""Audits of real judges: figures measured on the data, with what they should be."""

from __future__ import annotations

import csv
import gzip
import json
import re

import numpy as np
import pytest
from scipy.stats import binomtest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.intake.judged import read_judged_items
from rag_sourcebias.judged.judge_audit import BiasColumns, audit_judge, judge_biases
from support.judged_items import judged_items
from support.real_data import data_folder

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def root():
    return data_folder()


def dl_rows(root):
    rows = []
    for year in ("dl19", "dl20"):
        with gzip.open(root / "dl_human_llm" / f"{year}.tsv.gz", "rt", encoding="utf-8") as lines:
            rows += [{**row, "year": year} for row in csv.DictReader(lines, delimiter="\t")]
    return [row for row in rows if row["human"] and row["umbrela_gpt4"]]


def normal(text):
    text = re.sub(r"[^a-z0-9 ]", " ", text.lower())
    return f" {' '.join(w for w in text.split() if w not in ('a', 'an', 'the'))} "


def evouna(root, name):
    """Rows (question number, system, human verdict, golden answer contained in the answer)."""
    with gzip.open(root / "evouna" / f"{name}.json.gz", "rt", encoding="utf-8") as lines:
        questions = json.load(lines)
    return [
        (
            str(i),
            system,
            float(q[f"judge_{system}"]),
            float(
                any(
                    normal(g) in normal(q[f"answer_{system}"] or "")
                    for g in q["golden_answer"].split("/")
                    if g.strip()
                )
            ),
        )
        for i, q in enumerate(questions)
        for system in ("fid", "gpt35", "chatgpt", "gpt4", "newbing")
        if not q["improper"] and q[f"judge_{system}"] is not None
    ]


def test_a_graded_judge_over_rates_and_not_every_system_alike(root):
    """UMBRELA with GPT-4 on DL19/DL20: +0.244 [0.160, 0.329] grades over 97 queries."""
    rows = dl_rows(root)

    def top(row, names):
        return any(row[f"{n}_rank"] and int(row[f"{n}_rank"]) <= 10 for n in names)

    neural = ("SPLADE_P_P_ENSEMBLE_DISTIL", "D_BERT_KD_TASB", "OPEN_AI_ADA2")
    groups = [
        {(0, 0): "neither", (1, 0): "BM25", (0, 1): "neural", (1, 1): "both"}[
            top(row, ("BM25",)), top(row, neural)
        ]
        for row in rows
    ]
    audit = audit_judge(
        judged_items(
            np.array([float(r["human"]) for r in rows]),
            np.array([float(r["umbrela_gpt4"]) for r in rows]),
            groups=groups,
            clusters=[r["year"] + r["qid"] for r in rows],
        ),
    )
    assert (audit.n, audit.n_clusters) == (20_646, 97)
    assert audit.pearson.estimate == pytest.approx(0.586, abs=1e-3)
    assert audit.bias.estimate == pytest.approx(0.2442, abs=1e-4)
    assert audit.agreement.kappa.estimate == pytest.approx(0.5673, abs=1e-4)
    bias = {g.group: g.bias.estimate for g in audit.groups}
    assert bias == pytest.approx(
        {"BM25": 0.487, "both": 0.424, "neither": 0.224, "neural": 0.401}, abs=1e-3
    )
    assert audit.differences[0].p_adjusted < 1e-3  # pooling would hide this
    # items of a query are not independent: ignoring that gives an interval four times too narrow
    alone = audit_judge(
        judged_items([float(r["human"]) for r in rows], [float(r["umbrela_gpt4"]) for r in rows]),
    )
    assert audit.bias.half_width > 4 * alone.bias.half_width


def test_readers_of_the_same_file(root):
    items = read_judged_items(root / "dl_human_llm" / "dl19.tsv.gz", judge="umbrela_gpt4")
    assert (len(items), items.n_labeled, items.n_judge_missing) == (11_303, 9_260, 2_043)
    assert items.ids[0] == "1037798\t1057605"


@pytest.mark.parametrize(
    ("name", "n", "bias", "fid", "newbing", "differ"),
    [
        ("NQ", 15_099, -0.1625, -0.0997, -0.2299, True),
        ("TQ", 9_690, -0.0820, -0.0826, -0.0862, False),
    ],
)
def test_a_lexical_judge_under_rates_long_answers(root, name, n, bias, fid, newbing, differ):
    """EVOUNA: the judge asks whether a golden answer stands in the answer."""
    rows = evouna(root, name)
    audit = audit_judge(
        judged_items(
            np.array([r[2] for r in rows]),
            np.array([r[3] for r in rows]),
            groups=[r[1] for r in rows],
            clusters=[r[0] for r in rows],
        ),
    )
    assert audit.n == n
    assert audit.bias.estimate == pytest.approx(bias, abs=1e-3)
    found = {g.group: g.bias.estimate for g in audit.groups}
    assert found["fid"] == pytest.approx(fid, abs=1e-3)
    assert found["newbing"] == pytest.approx(newbing, abs=1e-3)
    worst = audit.differences[0]
    assert (worst.p_adjusted < 0.001) == differ
    if differ:
        assert (worst.group, worst.other) == ("fid", "newbing")
        assert worst.difference.estimate == pytest.approx(0.130, abs=1e-3)


def json_lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def tsv(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def answer(row):
    """Two systems give a list with one answer."""
    return row["prediction"] if isinstance(row["prediction"], str) else row["prediction"][0]


def test_gpt4_verdicts_by_system(root):
    """NQ301: GPT-4 is a little stricter than people, to no system clearly more than another."""
    folder = root / "openqa_eval"
    human = {(r[1], r[2]): float(r[3] == "Yes") for r in tsv(folder / "NQ301_human.tsv.gz")}
    judge = {(r[1], r[2]): float(r[3] == "Yes") for r in tsv(folder / "NQ301_gpt-4.tsv.gz")}
    rows = [
        (key, path.name.removesuffix(".jsonl.gz"))
        for path in sorted(folder.glob("*.jsonl.gz"))
        for row in json_lines(path)
        if (key := (row["question"], answer(row))) in human and key in judge
    ]
    audit = audit_judge(
        judged_items(
            np.array([human[key] for key, _ in rows]),
            np.array([judge[key] for key, _ in rows]),
            groups=[system for _, system in rows],
            clusters=[key[0] for key, _ in rows],
        ),
    )
    assert len(audit.groups) == 12
    assert audit.n_clusters == 301
    assert audit.bias.estimate == pytest.approx(-0.0411, abs=1e-3)
    assert audit.bias.upper < 0
    assert audit.agreement.kappa.estimate == pytest.approx(0.671, abs=2e-3)
    assert audit.differences[0].other == "rest"
    assert audit.differences[0].p_adjusted > 0.01


def test_an_llm_judge_prefers_llm_texts(root):
    """CrowdRAG-25: the crowd prefers the LLM text in 66.6 % of pairs, the LLM judge in 91.5 %."""
    folder = root / "crowdrag25"
    kind = {r["response"]: r["kind"] for r in json_lines(folder / "responses.jsonl.gz")}
    value = {"a": 1.0, "n": 0.5, "b": 0.0}

    def mixed(rows):
        return [r for r in rows if kind[r["response_a"]] != kind[r["response_b"]]]

    def for_llm(row, vote):
        return value[vote] if kind[row["response_a"]] == "llm" else 1 - value[vote]

    crowd = mixed(json_lines(folder / "ratings.jsonl.gz"))
    verdicts: dict[frozenset[str], list[float]] = {}
    for row in mixed(json_lines(folder / "llm_ratings.jsonl.gz")):
        if row["quality_overall"]:
            pair = frozenset((row["response_a"], row["response_b"]))
            verdicts.setdefault(pair, []).append(for_llm(row, row["quality_overall"]))
    gold = np.array([for_llm(r, r["quality_overall_gold"]) for r in crowd])
    judge = np.array(
        [
            np.mean(verdicts.get(frozenset((r["response_a"], r["response_b"])), [np.nan]))
            for r in crowd
        ]
    )
    assert gold.mean() == pytest.approx(0.666, abs=5e-4)
    assert np.mean(sum(verdicts.values(), [])) == pytest.approx(0.915, abs=5e-4)  # noqa: RUF017
    # on the 442 pairs both judged: .638 against .895, and hardly any relation between the two
    audit = audit_judge(judged_items(gold, judge, clusters=[r["query_id"] for r in crowd]))
    assert (audit.n, audit.n_judge_missing) == (442, 364)
    assert audit.bias.estimate == pytest.approx(0.257, abs=1e-3)
    assert audit.bias.lower > 0.15
    assert audit.useless
    assert audit.notes[0].startswith("the judge is useless: |r| = 0.044")


def test_what_sways_real_judges(root):
    """UMBRELA grades longer passages higher at equal human grade; shuffled lengths sway nothing.

    Half the grade is noise of single assessors, so part of this slope may be relevance that they
    missed.
    """
    rows = [row for row in dl_rows(root) if row["year"] == "dl19"]
    length = {}
    with gzip.open(
        root / "dl_human_llm" / "passages.dl19.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        for line in file:
            passage = json.loads(line)
            length[passage["docid"]] = len(passage["text"])
    items = JudgedItems(
        ids=tuple(f"{row['qid']} {row['docid']}" for row in rows),
        human=np.array([float(row["human"]) for row in rows]),
        judge=np.array([float(row["umbrela_gpt4"]) for row in rows]),
        clusters=tuple(row["qid"] for row in rows),
    )
    lengths = np.array([float(length[row["docid"]]) for row in rows])
    by_kind = {b.kind: b for b in judge_biases(items, BiasColumns(length=lengths))}
    assert by_kind["verbosity"].effect.estimate == pytest.approx(0.136, abs=0.001)
    assert by_kind["verbosity"].effect.lower > 0.05
    assert not by_kind["length"].effect.excludes(0)
    rng = np.random.default_rng(0)
    p = [
        b.p_value
        for _ in range(200)
        for b in judge_biases(items, BiasColumns(length=rng.permutation(lengths)))
        if b.kind == "verbosity"
    ]
    assert (
        binomtest(int(np.sum(np.array(p) <= 0.05)), 200, 0.05, alternative="greater").pvalue > 0.001
    )
