"""A long audit from Python says how far it is; a short one says nothing."""

from __future__ import annotations

import re
import time

import pytest

import rag_sourcebias as rsb
from rag_sourcebias.core import progress

SAMPLE = rsb.load_sample()


def ask(seconds: float):
    ids = list(SAMPLE.corpus.doc_ids)

    def search(text: str) -> list[str]:
        time.sleep(seconds)
        at = len(text) * 7 % len(ids)
        return ids[at : at + 10]

    return search


def test_a_long_audit_says_how_long_the_rest_takes(monkeypatch, capfd) -> None:
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.2)
    rsb.audit(ask(0.01), SAMPLE, depth=10)
    lines = capfd.readouterr().err.splitlines()
    found = [re.fullmatch(r"  search: retrieving .* queries: (\d+) of (\d+), .* so far, about "
                          r"(.*) left", line) for line in lines]  # fmt: skip
    assert any(found), lines
    done = [int(one[1]) for one in found if one]
    assert done == sorted(done)


@pytest.mark.parametrize("told", [False, True])
def test_a_short_audit_says_nothing_and_whoever_listens_is_told(told: bool, monkeypatch, capfd):
    stages: list[str] = []
    rsb.audit(ask(0), SAMPLE, depth=10, on_stage=stages.append if told else None)
    assert capfd.readouterr().err == ""
    assert any("retrieving" in stage for stage in stages) == told
