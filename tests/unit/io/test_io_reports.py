from __future__ import annotations

import dataclasses
import gzip
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_sourcebias.core.errors import DataError, UnsupportedVersionError
from rag_sourcebias.core.skew import (
    SCHEMA_VERSION,
    AuditConfig,
    DataSummary,
    ExposureShare,
    SkewCell,
    SkewReport,
    SoleCorpusCheck,
    SourceScores,
    SystemSkew,
    TwinSkew,
)
from rag_sourcebias.core.values import Interval
from rag_sourcebias.reports import read_report_json, write_report_json

FINITE = st.floats(-1e6, 1e6, allow_nan=False)


def interval(estimate=0.25):
    return Interval(
        estimate=estimate,
        lower=estimate - 1,
        upper=estimate + 1,
        confidence_level=0.95,
        method="delta",
        n_labeled=2,
        assumptions=("queries are independent",),
    )


def report(*, name="größe 日本", value=0.25, rank=math.nan, p_value=0.5):
    scores = SourceScores(
        query_ids=("q1", "q2"),
        sources=("human", "llm:x"),
        measures=("NDCG@1",),
        values=np.array([[[value, 0.0], [0.1, 1.0]]]),
        n_relevant=np.array([[1, 2], [1, 0]], dtype=np.int32),
    )
    cell = SkewCell(
        measure="NDCG@1",
        baseline="human",
        other="llm:x",
        mean_baseline=value,
        mean_other=0.55,
        relative_delta=None,
        interval=interval(value),
        refusal=None,
        p_value=p_value,
        p_adjusted=p_value,
        n_queries=2,
        n_needed=None,
    )
    twins = TwinSkew(
        baseline="human",
        other="llm:x",
        n_pairs=2,
        n_unseen=0,
        win_rate=interval(),
        margin=None,
        win_rate_equal_length=None,
        query_index=np.array([0, 1]),
        other_above=np.array([0.5, 1.0]),
        baseline_rank=np.array([1.0, rank]),
        other_rank=np.array([1.0, 1.0]),
        log_length_ratio=np.array([]),
        overlap=np.array([]),
        notes=("no margin: no scores",),
    )
    system = SystemSkew(
        name=name,
        settings={"k1": "0.9"},
        variant="mixed",
        scores=scores,
        cells=(cell,),
        twins=(twins,),
        exposure=(
            ExposureShare(
                source="", browsing="dcg", share=0.5, corpus_share=0.4, difference=interval()
            ),
        ),
        sole_corpus=(
            SoleCorpusCheck(
                measure="NDCG@5",
                baseline="human",
                other="llm:x",
                mean_baseline=0.7,
                mean_other=0.7,
                difference=None,
                p_value=None,
            ),
        ),
    )
    return SkewReport(
        schema_version=SCHEMA_VERSION,
        data=DataSummary(
            name="d",
            design="rewrites",
            n_queries=2,
            n_judgments=4,
            documents={"human": 2, "": 1},
            n_pairs=1,
            mean_words={},
        ),
        config=AuditConfig(cutoffs=(1,)),
        systems=(system,),
        family="1 test",
        n_tests=1,
        environment={"numpy": "2"},
        created="2025-01-01T00:00:00Z",
        warnings=("few queries",),
    )


@given(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    FINITE,
    FINITE | st.just(math.nan),
)
def test_a_report_survives_the_round_trip(tmp_path_factory, name, value, rank):
    original = report(name=name, value=value, rank=rank)
    file = tmp_path_factory.mktemp("report") / "report.json"
    write_report_json(original, file)
    again = read_report_json(file)
    assert again.to_dict() == original.to_dict()
    np.testing.assert_array_equal(
        again.systems[0].twins[0].baseline_rank, original.systems[0].twins[0].baseline_rank
    )
    assert again.systems[0].scores.n_relevant.dtype == np.int32
    assert again.config == original.config


def test_gzip_and_strict_json(tmp_path):
    write_report_json(report(), tmp_path / "r.json.gz")
    text = gzip.decompress((tmp_path / "r.json.gz").read_bytes()).decode()
    assert "größe 日本" in text
    assert json.loads(text, parse_constant=pytest.fail)["n_tests"] == 1
    assert read_report_json(tmp_path / "r.json.gz").to_dict() == report().to_dict()


def test_infinity_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(DataError, match=r"cannot be written as JSON to .*r\.json"):
        write_report_json(report(rank=math.inf), tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"r\.json:1 is not the JSON of a report"),
        ('{"a": 1', r"r\.json:1 is not the JSON of a report"),
        ("[1]", r"r\.json is not a report: it is JSON without a schema_version"),
        ('{"a": 1}', r"r\.json is not a report"),
        (
            '{"schema_version": 1}',
            r"r\.json is not a complete skew report: field 'data' is missing",
        ),
    ],
)
def test_what_is_no_report_is_named(tmp_path, text, message):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DataError, match=message):
        read_report_json(tmp_path / "r.json")


def test_another_schema_and_a_damaged_report(tmp_path):
    file = tmp_path / "r.json"
    write_report_json(dataclasses.replace(report(), schema_version=99), file)
    with pytest.raises(UnsupportedVersionError, match=r"r\.json: report schema version 99"):
        read_report_json(file)
    data = report().to_dict()
    data["systems"][0]["scores"]["values"] = [[["x"]]]
    file.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"r\.json is not a complete skew report"):
        read_report_json(file)
    data["systems"][0]["scores"]["values"] = [[[0.5]]]
    file.write_text(json.dumps(data))
    with pytest.raises(DataError, match=r"r\.json .*scores have shape \(1, 1, 1\)"):
        read_report_json(file)


def test_a_missing_report_is_named(tmp_path):
    with pytest.raises(DataError, match=r"r\.json does not exist"):
        read_report_json(tmp_path / "r.json")
