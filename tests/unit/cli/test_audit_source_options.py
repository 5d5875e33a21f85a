"""Margin, primary measure, clusters and merged models on the command line."""

from __future__ import annotations

import json

import pytest
from command_line import succeed, write_csv
from ranked_pairs import FILES, write_ranked_pairs

ARGS = ("audit", "source", *FILES)
N = 40


@pytest.fixture
def trec(tmp_path):
    """Write 40 queries whose human document ranks first on 30 of them; topics of four queries."""
    write_ranked_pairs(tmp_path, ["hl"] * 30 + ["lh"] * 10)
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
    assert grouped["interval"]["assumptions"][0]["numbers"] == {"units": "clusters of queries"}


def renamed(folder):
    """Write the tags and the clusters under names of the user's own, beside our names."""
    lines = (folder / "tags.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [[*line.split("\t"), "x"] for line in lines]
    write_csv(folder / "own.csv", ("docno", "author", "pair_id", "source"), rows)
    write_csv(folder / "topics.csv", ("q", "topic"), [(f"q{i}", f"t {i % 10}") for i in range(N)])


def test_columns_of_tags_and_clusters_may_have_names_of_their_own(trec):
    renamed(trec)
    own = (*ARGS[:-1], "own.csv", "--id", "docno", "--group", "author")
    usual = verdict(trec, "--cluster-file", "clusters.csv")
    succeed(*own, "--cluster-file", "topics.csv", "--cluster", "topic", "--report", "own", cwd=trec)
    report = json.loads((trec / "own" / "report.json").read_text(encoding="utf-8"))
    assert report["systems"][0]["verdicts"][0] == usual
    rows = [(i, f"q{i}", f"t {i % 10}") for i in range(N)]
    write_csv(trec / "wide.csv", ("query_id", "q", "topic"), rows)
    columns = ("--cluster-file", "wide.csv", "--cluster", "topic", "--query", "q")
    assert verdict(trec, *columns) == usual
