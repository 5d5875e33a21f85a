import importlib.resources
from collections import Counter

import numpy as np

from rag_sourcebias.intake.judged import load_judged_sample


def test_five_systems_answer_the_same_300_questions():
    items = load_judged_sample()
    assert Counter(items.groups) == dict.fromkeys(
        ("fid", "gpt-3.5", "chatgpt", "gpt-4", "new-bing"), 300
    )
    assert Counter(Counter(items.clusters).values()) == {5: 300}
    assert items.n_judge_missing == 0
    assert set(items.judge) == {0.0, 1.0}
    labeled = {items.clusters[i] for i in np.flatnonzero(items.labeled)}
    assert len(labeled) == 60
    assert items.n_labeled == 300  # whole questions


def test_the_sample_carries_its_licence_and_is_small():
    root = importlib.resources.files("rag_sourcebias.intake") / "samples" / "evouna"
    files = {entry.name: entry for entry in root.iterdir()}
    assert "Apache License" in files["LICENSE"].read_text(encoding="utf-8")
    attribution = files["ATTRIBUTION.md"].read_text(encoding="utf-8")
    for words in ("Apache License 2.0", "EVOUNA", "Changes made", "not part of EVOUNA"):
        assert words in attribution
    assert len(files["items.csv"].read_bytes()) < 150_000
