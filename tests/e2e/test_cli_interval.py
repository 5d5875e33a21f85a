"""From a table of human and judge values to an interval, as a newcomer would."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from command_line import read_csv, refused, succeed, write_csv

N, LABELED = 400, 60
HEADER = ("id", "human", "judge")


def table(
    folder: Path,
    *,
    judge: str = "good",
    name: str = "items.csv",
    seed: int = 0,
    **columns: list[str],
) -> Path:
    """Write items of which people labelled the first 60; the judge is 0.2 too low."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(N) < 0.6).astype(int)
    values = {
        "good": 0.6 * truth + 0.3 * rng.random(N) - 0.05,
        "constant": np.full(N, 0.5),
        "noise": rng.random(N),
    }[judge]
    human = [truth[k] if k < LABELED else "" for k in range(N)]
    judged = [f"{value:.4f}" for value in values]
    rows = zip((f"i{k}" for k in range(N)), human, judged, *columns.values(), strict=True)
    return write_csv(folder / name, (*HEADER, *columns), rows)


def labeled_mean(path: Path) -> float:
    return float(np.mean([float(row["human"]) for row in read_csv(path) if row["human"]]))


def mean_of(folder: Path, *args: str) -> dict:
    """Return the only mean of the JSON report."""
    report = json.loads(succeed("interval", *args, "--json", "-", cwd=folder))
    assert len(report["means"]) == 1
    return report["means"][0]


def test_the_sample_gives_intervals_that_hold_what_all_labels_say(tmp_path: Path) -> None:
    report = json.loads(succeed("interval", "--sample", "--json", "-", cwd=tmp_path))
    # the verdicts of the 240 questions that the sample leaves out are known: ATTRIBUTION.md
    truth = {"fid": 0.727, "gpt-3.5": 0.610, "chatgpt": 0.743, "gpt-4": 0.797, "new-bing": 0.767}
    assert {m["system"] for m in report["means"]} == set(truth)
    for mean in report["means"]:
        interval = mean["interval"]
        assert interval["lower"] < truth[mean["system"]] < interval["upper"]
        assert mean["judge_alone"] < interval["lower"]  # the judge alone is far off
        assert interval["n_labeled"] == 60
        assert interval["n_unlabeled"] == 240
    assert len(report["comparisons"]) == 10


def test_method_target_level_and_bounds_are_passed_on(tmp_path: Path) -> None:
    table(tmp_path)
    default = mean_of(tmp_path, "items.csv")["interval"]
    pool = mean_of(tmp_path, "items.csv", "--target", "pool")["interval"]
    wide = mean_of(tmp_path, "items.csv", "--confidence-level", ".99")["interval"]
    alone = mean_of(tmp_path, "items.csv", "--method", "labels")["interval"]
    assert pool["target"] == "pool"
    assert wide["upper"] - wide["lower"] > default["upper"] - default["lower"]
    assert alone["upper"] - alone["lower"] > default["upper"] - default["lower"]
    assert alone["estimate"] == pytest.approx(labeled_mean(tmp_path / "items.csv"))
    assert mean_of(tmp_path, "items.csv", "--bounds", "0,1")["interval"]["upper"] <= 1


def test_groups_are_compared_and_names_may_be_any_text(tmp_path: Path) -> None:
    groups = ["système-ü" if k % 2 else "模型 α" for k in range(N)]
    table(tmp_path, group=groups)
    text = succeed("interval", "items.csv", cwd=tmp_path)
    assert "score, 模型 α: 0." in text
    assert "score, système-ü: 0." in text
    assert "cannot tell" in text or "scores higher than" in text


def test_judge_failures_are_counted(tmp_path: Path) -> None:
    path = table(tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[70] = lines[70].rpartition(",")[0] + ",NaN"
    lines[5] = lines[5].rpartition(",")[0] + ","
    path.write_text("\n".join(lines), encoding="utf-8")
    text = succeed("interval", "items.csv", cwd=tmp_path)
    assert "no value for 2 of 400 items, first 'i4'" in text


def ragas_files(folder: Path, *, twice: bool = False) -> None:
    """Write what to_pandas().to_csv() of a ragas 0.4 result looks like, and human labels."""
    rng = np.random.default_rng(3)
    header = ("", "user_input", "retrieved_contexts", "response", "reference", "answer_correctness")
    rows, labels = [], []
    for k in range(200):
        right = bool(rng.random() < 0.7)
        score = "" if k in (3, 17) else f"{0.5 * right + 0.4 * rng.random():.4f}"
        question = f'What, in "land {k}",\nis the capital?'
        contexts = f"['a\\n', '{'b' * (200_000 if k == 9 else 5)}']"
        rows.append((k, question, contexts, "x", "y", score))
        if k % 4 == 3:
            labels.append((question, int(right)))
    if twice:
        header = (*header, "faithfulness")
        rows = [(*row, 0.5) for row in rows]
    write_csv(folder / "ragas.csv", header, rows)
    write_csv(folder / "labels.csv", ("user_input", "label"), labels)


def test_a_ragas_result_is_joined_by_input_and_its_nan_is_counted(tmp_path: Path) -> None:
    ragas_files(tmp_path)
    args = ("--ragas", "ragas.csv", "--human-file", "labels.csv")
    found = mean_of(tmp_path, *args)
    assert found["measure"] == "answer_correctness"
    assert (found["interval"]["n_labeled"], found["interval"]["n_unlabeled"]) == (50, 150)
    assert "no value for 2 of 200 items" in succeed("interval", *args, cwd=tmp_path)


def test_a_ragas_result_says_what_it_lacks(tmp_path: Path) -> None:
    ragas_files(tmp_path, twice=True)
    args = ("interval", "--ragas", "ragas.csv")
    message = refused(*args, "--human-file", "labels.csv", cwd=tmp_path)
    assert "--metric <name> out of answer_correctness, faithfulness" in message
    chosen = (*args, "--metric", "answer_correctness")
    assert "no column is recognised as human" in refused(*chosen, cwd=tmp_path)
    write_csv(tmp_path / "other.csv", ("nr", "label"), [(1, 1)])
    lacks = refused(*chosen, "--human-file", "other.csv", cwd=tmp_path)
    assert "other.csv: no column is recognised as id; its columns are nr, label" in lacks


def ranking(folder: Path) -> None:
    """Write two runs of 60 queries × 10 documents, human grades of 30 queries, judge grades."""
    rng = np.random.default_rng(5)
    runs: dict[str, list[str]] = {"a": [], "b": []}
    qrels, labels = [], ["query_id\tdoc_id\tp0\tp1\tp2"]
    tags = ["doc_id\tsource"]
    for q in range(60):
        grades = np.sort(rng.integers(0, 3, 10))[::-1]
        nearly = np.argsort(np.arange(10) + rng.normal(0, 1.5, 10))
        for name, order in (("a", nearly), ("b", rng.permutation(10))):
            for rank, d in enumerate(order, start=1):
                runs[name].append(f"q{q} Q0 q{q}d{d} {rank} {100 - rank} {name}")
        for d, grade in enumerate(grades):
            if q < 30:
                qrels.append(f"q{q} 0 q{q}d{d} {grade}")
            probs = np.full(3, 0.15)
            probs[min(2, grade + (rng.random() < 0.2))] = 0.7
            labels.append(f"q{q}\tq{q}d{d}\t" + "\t".join(f"{p:.2f}" for p in probs))
            tags.append(f"q{q}d{d}\t{'human' if d % 2 else 'llm:x'}")
    for name, lines in runs.items():
        (folder / f"{name}.run").write_text("\n".join(lines), encoding="utf-8")
    (folder / "human.qrels").write_text("\n".join(qrels), encoding="utf-8")
    (folder / "judge.tsv").write_text("\n".join(labels), encoding="utf-8")
    (folder / "tags.tsv").write_text("\n".join(tags), encoding="utf-8")


def test_rankings_give_a_line_per_run_and_measure(tmp_path: Path) -> None:
    ranking(tmp_path)
    args = ("--run", "a.run", "--run", "b.run", "--qrels", "human.qrels", "--labels", "judge.tsv")
    asked = ("--measure", "NDCG@10", "--measure", "P@5", "--tags", "tags.tsv")
    text = succeed("interval", *args, *asked, cwd=tmp_path)
    for start in ("NDCG@10, a: 0.", "NDCG@10, b: 0.", "P@5, a: 0.", "P@5, b: 0."):
        assert start in text
    report = json.loads(succeed("interval", *args, *asked, "--json", "-", cwd=tmp_path))
    ndcg = {m["system"]: m["interval"] for m in report["means"] if m["measure"] == "NDCG@10"}
    assert ndcg["a"]["lower"] > ndcg["b"]["upper"]  # b is shuffled
    assert {c["kind"] for c in report["comparisons"]} == {"difference", "relative_delta"}
    assert [q["measure"] for q in report["per_query"]] == ["P@5", "P@5"]
    none = succeed("interval", *args, *asked, "--no-per-query", "--json", "-", cwd=tmp_path)
    assert json.loads(none)["per_query"] == []
    own = (tmp_path / "tags.tsv").read_text().replace("doc_id\tsource", "docno\twriter", 1)
    (tmp_path / "own.tsv").write_text(own, encoding="utf-8")
    named = (*asked[:-1], "own.tsv", "--id", "docno", "--group", "writer", "--json", "-")
    found = json.loads(succeed("interval", *args, *named, cwd=tmp_path))
    assert found["comparisons"] == report["comparisons"]
    message = refused("interval", *args, *named[:-4], cwd=tmp_path)
    assert "no column is recognised as source; its columns are docno, writer" in " ".join(
        message.split()
    )
    assert "--human: no use" in refused("interval", *args, *named, "--human", "x", cwd=tmp_path)


def next_command(text: str, folder: Path) -> str:
    """Return the command that the first screen ends with, and run it."""
    command = text.partition(" rag-sourcebias ")[2]
    told = shlex.split(command)
    typed = told[: max(told.index(end) for end in ("--half-width", "--output") if end in told) + 2]
    succeed(*typed, cwd=folder)
    return shlex.join(typed)


def test_the_next_command_reads_the_files_that_were_given(tmp_path: Path) -> None:
    ranking(tmp_path)
    (tmp_path / "a.run").rename(tmp_path / "my a.run")
    files = ("--run", "my a.run", "--labels", "judge.tsv", "--qrels", "human.qrels")
    given = shlex.join(files)
    text = succeed("interval", *files, "--run", "b.run", cwd=tmp_path)
    assert next_command(text, tmp_path) == f"labels {given} --half-width 0.5"
    succeed("interval", *files, "--json", "out.json", cwd=tmp_path)
    assert f"labels {given} --half-width" in succeed("start", "out.json", cwd=tmp_path)
    table(tmp_path)
    renamed = (tmp_path / "items.csv").read_text().replace("human", "by people", 1)
    (tmp_path / "own.csv").write_text(renamed, encoding="utf-8")
    text = succeed("interval", "own.csv", "--human", "by people", cwd=tmp_path)
    assert next_command(text, tmp_path).startswith("labels own.csv --human 'by people' --")
    assert next_command(succeed("interval", "--sample", cwd=tmp_path), tmp_path).startswith(
        "labels --sample -n "
    )


@pytest.mark.parametrize(
    ("people", "judge"),
    [
        ((0, 1), (1, 2, 3, 4, 5)),
        ((0, 1), (1, 1, 1, 2, 3)),
        ((1, 2, 3, 4, 5), (0, 1)),
        ((0, 1, 2, 3), (0.1, 0.4, 0.9)),
    ],
    ids=("verdicts and stars", "low stars", "stars and verdicts", "grades and probabilities"),
)
def test_a_judge_on_another_scale_is_never_compared(
    tmp_path: Path, people: tuple[float, ...], judge: tuple[float, ...]
) -> None:
    shares = [k * 7 % 60 / 60 for k in range(200)]
    rows = [
        (
            f"i{k}",
            "ab"[k % 2],
            people[int(share * len(people))] if k < 60 else "",
            judge[min(int((share + k % 3 * 0.1) * len(judge)), len(judge) - 1)],
        )
        for k, share in enumerate(shares)
    ]
    write_csv(tmp_path / "items.csv", ("id", "system", "human", "judge"), rows)
    for command in (("interval", "items.csv", "--report", "out"), ("judge", "audit", "items.csv")):
        text = succeed(*command, cwd=tmp_path)
        assert "another scale" in text
        page = tmp_path / "out" / "report.md"
        for said in (text, page.read_text(encoding="utf-8")):
            for words in ("too high", "too low", "too kind", "wrong about", "judge − human in"):
                assert words not in said
    found = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert found["audits"]["score"].get("bias") is None
