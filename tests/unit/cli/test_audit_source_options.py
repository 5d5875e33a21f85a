"""Margin, primary measure, clusters and merged models on the command line."""

from __future__ import annotations

import json

import pytest
from command_line import refused, succeed, write_csv

ARGS = ("audit", "source", "--run", "demo.run", "--qrels", "qrels.txt", "--tags", "tags.tsv")
N = 40


@pytest.fixture
def trec(tmp_path):
    """Write 40 queries whose human document ranks first on 30 of them; topics of four queries."""
    runs, qrels, tags = [], [], ["doc_id\tsource\tpair_id"]
    for i in range(N):
        for rank, kind in enumerate("hl" if i < 30 else "lh", start=1):
            runs.append(f"q{i} Q0 {kind}{i} {rank} {10 - rank} demo")
        for kind, source in (("h", "human"), ("l", "llm:x")):
            qrels.append(f"q{i} 0 {kind}{i} 1")
            tags.append(f"{kind}{i}\t{source}\tp{i}")
    for name, lines in (("demo.run", runs), ("qrels.txt", qrels), ("tags.tsv", tags)):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    clusters(tmp_path, [(f"q{i}", f"topic {i % 10}") for i in range(N)])
    return tmp_path


def clusters(folder, rows):
    write_csv(folder / "clusters.csv", ("query_id", "cluster"), rows)


def verdict(folder, *options):
    succeed(*ARGS, *options, "--report", "out", cwd=folder)
    report = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))
    return report["systems"][0]["verdicts"][0]


def test_options_reach_the_verdict(trec):
    plain = verdict(trec)
    assert (plain["code"], plain["margin"], plain["measure"]) == ("favours_baseline", 5.0, "NDCG@5")
    wide = verdict(trec, "--margin", "150", "--primary", "MAP@1")
    assert (wide["code"], wide["margin"], wide["measure"]) == ("alike", 150.0, "MAP@1")
    grouped = verdict(trec, "--cluster-file", "clusters.csv")
    assert grouped["interval"]["n_labeled"] == 10
    assert grouped["interval"]["assumptions"][0].startswith("clusters of queries")


def test_few_clusters_are_a_refused_verdict_not_a_failure(trec):
    clusters(trec, [(f"q{i}", f"topic {i % 5}") for i in range(N)])
    found = verdict(trec, "--cluster-file", "clusters.csv")
    assert found["code"] == "refused"
    assert "at least 6 are needed" in found["refusal"]


def test_an_empty_cluster_file_is_refused(trec):
    (trec / "clusters.csv").write_text("", encoding="utf-8")
    assert "clusters.csv" in refused(*ARGS, "--cluster-file", "clusters.csv", cwd=trec)
