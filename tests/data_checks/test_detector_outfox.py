"""A source detector on real essays: loose floors, on prompts it has not seen."""

from __future__ import annotations

import gzip
import json
import zlib

import numpy as np
import pytest

from rag_sourcebias.tagging.detector.fit import fit_detector
from rag_sourcebias.tagging.detector.model import evaluate
from support.real_data import data_folder

pytestmark = pytest.mark.data

SOURCES = {"human": "human", "chatgpt": "llm:any", "flan_t5_xxl": "llm:any"}
N_PROMPTS = 200
LONGEST = 800


def essays() -> list[tuple[str, str, str, str]]:
    with gzip.open(data_folder() / "outfox" / "test.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file][:N_PROMPTS]
    return [
        (f"{row['id']}/{key}", row[key][:LONGEST], source, row["query"])
        for row in rows
        for key, source in SOURCES.items()
    ]


def test_essays_on_unseen_prompts_are_told_apart() -> None:
    rows = essays()
    test = [zlib.crc32(prompt.encode()) % 2 == 1 for *_, prompt in rows]
    train = [row for row, held in zip(rows, test, strict=True) if not held]
    held = [row for row, held in zip(rows, test, strict=True) if held]
    detector = fit_detector(
        [row[:3] for row in train], groups=[prompt for *_, prompt in train], rng=0
    )
    report = evaluate(
        detector.predict([text for _, text, _, _ in held]),
        np.array([detector.labels.index(label) for _, _, label, _ in held]),
        labels=detector.labels,
        sources=True,
    )
    assert report.auroc["human"] > 0.9
    assert report.error.value < 0.12
    assert report.unknown.value < 0.6
    assert report.calibration_error < 0.12
    assert abs(detector.report.auroc["human"] - report.auroc["human"]) < 0.06
