"""Reports as JSON files: written strictly, and what is no report is named."""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
from pathlib import Path

import pytest

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.kinds import read_report
from rag_sourcebias.report.render import write_report_json

GOLDEN = Path(__file__).parents[2] / "golden" / "reports" / "skew-full.json.gz"


@pytest.fixture(scope="module")
def report():
    return read_report(GOLDEN)


def test_gzip_and_strict_json(report, tmp_path):
    write_report_json(report, tmp_path / "r.json.gz")
    text = gzip.decompress((tmp_path / "r.json.gz").read_bytes()).decode()
    assert json.loads(text, parse_constant=pytest.fail)["n_tests"] == report.n_tests
    assert read_report(tmp_path / "r.json.gz").to_dict() == report.to_dict()


def test_infinity_is_refused_and_nothing_is_written(report, tmp_path):
    data = dataclasses.replace(report.data, mean_words={"human": math.inf})
    with pytest.raises(DataError, match=r"cannot be written as JSON to .*r\.json"):
        write_report_json(dataclasses.replace(report, data=data), tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"r\.json:1 is not the JSON of a report"),
        ('{"a": 1', r"r\.json:1 is not the JSON of a report"),
        ("[" * 3_000 + "]" * 3_000, r"r\.json is not the JSON of a report \(.*recursion.*\)"),
        ("[1]", r"r\.json is not a report: it is JSON without a schema_version"),
        ('{"a": 1}', r"r\.json is not a report"),
        (
            '{"schema_version": 2}',
            r"r\.json is not a complete skew report: Object missing required field 'data'$",
        ),
    ],
)
def test_what_is_no_report_is_named(tmp_path, text, message):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_report(tmp_path / "r.json")


def test_another_schema_and_a_damaged_report(report, tmp_path):
    file = tmp_path / "r.json"
    write_report_json(dataclasses.replace(report, schema_version=99), file)
    with pytest.raises(UnsupportedVersionError, match=r"r\.json: report schema version 99"):
        read_report(file)
    data = report.to_dict()
    for values, message in (
        ([[["x"]]], r"r\.json is not a complete skew report"),
        ([[[0.5]]], r"r\.json .*scores have shape \(1, 1, 1\)"),
    ):
        data["systems"][0]["scores"]["values"] = values
        file.write_text(json.dumps(data))
        with pytest.raises(DataError, match=message):
            read_report(file)
