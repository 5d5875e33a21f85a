"""How a source audit explains the correction for several tests."""

from __future__ import annotations

import dataclasses

import pytest
from outputs import to_markdown
from stored_reports import stored


@pytest.mark.parametrize(
    ("correction", "said"),
    [
        ("holm", "even one false alarm"),
        ("bh", "expected share of false alarms"),
        ("none", "No correction for the number of tests was asked for"),
    ],
)
def test_correction_is_explained(correction, said):
    report = stored("skew-full")
    config = dataclasses.replace(report.config, correction=correction)
    assert said in to_markdown(dataclasses.replace(report, config=config))
