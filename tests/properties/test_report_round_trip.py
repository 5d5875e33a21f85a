"""A report survives being written and read."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_sourcebias.core.data import Corpus, DocTags, Qrels, Run, TagTable
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig
from rag_sourcebias.source.page import SkewReport


def equal(a, b):
    """Compare two report objects field by field, arrays and their types included."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif hasattr(a, "__dataclass_fields__"):
        for name in a.__dataclass_fields__:
            equal(getattr(a, name), getattr(b, name))
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 12),
    st.integers(2, 3),
    st.sampled_from(["expected", "trec"]),
    st.booleans(),
)
def test_report_round_trip(seed, n_queries, n_sources, ties, with_texts):
    rng = np.random.default_rng(seed)
    names = ["human", "llm:x", "llm:y"][:n_sources]
    tags = TagTable.from_tags(
        (f"{s}-{i}", DocTags(source=s, pair_id=f"p{i}")) for i in range(4) for s in names
    )
    run = Run.from_dict(
        {
            f"q{i}": {d: float(rng.integers(0, 9)) for d in tags.doc_ids if rng.random() < 0.5}
            for i in range(n_queries)
        }
    )
    qrels = Qrels.from_dict({f"q{i}": {f"{s}-{i % 4}": 1 for s in names} for i in range(n_queries)})
    words = ["alpha", "beta", "gamma"]
    texts = tuple(" ".join(rng.choice(words, rng.integers(1, 6))) for _ in tags.doc_ids)
    report = measure_source_bias(
        run,
        qrels,
        tags,
        corpus=Corpus(texts=texts, tags=tags) if with_texts else None,
        config=AuditConfig(ties=ties, resamples=100, cutoffs=(1, 3)),
        settings={"run": {"k1": "0.9"}},
    )
    read = SkewReport.from_dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))
    equal(report, read)
