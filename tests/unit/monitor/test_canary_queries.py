"""Which tables make canary queries, and what the others are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.data import Query
from rag_sourcebias.core.errors import DataError, InsufficientDataError
from rag_sourcebias.io.samples import load_dataset
from rag_sourcebias.monitor.canary import CanaryQueries

TEXTS = {f"q{i}": f"query {i}" for i in range(20)}
ROWS = [(q, f"{s}/{q}", s, 1) for q in TEXTS for s in ("human", "llm:x")]


def build(texts=TEXTS, rows=ROWS, **kwargs) -> CanaryQueries:
    return CanaryQueries.from_tables(texts, rows, **{"human": "human", "llm": "llm:x"} | kwargs)


def test_tables_keep_order_grades_and_sources() -> None:
    queries = build(rows=[("q3", "another", "human", 2), *ROWS])
    assert len(queries) == 20
    assert [query.text for query in queries.queries][:2] == ["query 0", "query 1"]
    assert queries.qrels.query_ids == tuple(TEXTS)
    assert sorted(queries.qrels.grades.tolist()) == [1] * 40 + [2]
    assert queries.tags.get("another").source == "human"
    assert queries.tags.get("llm:x/q0").source == "llm:x"


@pytest.mark.parametrize(
    ("texts", "rows", "kwargs", "message"),
    [
        (TEXTS, ROWS[:-1], {}, r"without a relevant document of source 'llm:x': 'q19'$"),
        (TEXTS, ROWS[14:], {}, r"of source 'human': 'q0', 'q1', 'q2', 'q3', 'q4' and 2 more$"),
        (TEXTS, [*ROWS, ("q77", "d", "human", 1)], {}, r"an unknown query id: 'q77'$"),
        (TEXTS, [*ROWS, ROWS[0]], {}, r"judged twice, first query 'q0', document 'human/q0'"),
        (TEXTS, [*ROWS, ("q0", "d", None, 1)], {}, r"neither 'human' nor 'llm:x': 'd'$"),
        (TEXTS, [*ROWS, ("q0", "d", "human", 0)], {}, r"grade below 1: 'd'$"),
        (TEXTS, [*ROWS, ("q1", "human/q0", "llm:x", 1)], {}, r"two sources: 'human/q0'$"),
        (TEXTS | {"q4": " \n"}, ROWS, {}, r"query without text: 'q4'$"),
        (TEXTS, ROWS, {"llm": "human"}, r"neither 'human' nor 'human'"),
        (
            [Query(query_id=q, text=t) for q, t in [*TEXTS.items(), ("q5", "again")]],
            ROWS,
            {},
            r"query id given twice: 'q5'$",
        ),
    ],
)
def test_tables_that_cannot_be_used(texts, rows, kwargs, message) -> None:
    with pytest.raises(DataError, match=message):
        build(texts, rows, **kwargs)


def test_too_few_queries() -> None:
    texts = {q: TEXTS[q] for q in list(TEXTS)[:7]}
    with pytest.raises(
        InsufficientDataError, match="7 canary queries are too few: at least 20"
    ) as e:
        build(texts, [row for row in ROWS if row[0] in texts])
    assert (e.value.n, e.value.n_needed) == (7, 20)
    with pytest.raises(InsufficientDataError, match="0 canary queries are too few"):
        build({}, [])


def test_a_paired_data_set() -> None:
    data = load_dataset("crowdrag-rewrites")
    queries = CanaryQueries.from_dataset(data)
    assert (len(queries), queries.human, queries.llm) == (160, "human", "llm:claude")
    assert len(queries.qrels) == 320
    # A query that lost its human document is left out, not scored 0 for ever.
    qrels, tags = data.qrels, data.corpus.tags
    human = [tags.get(qrels.doc_ids[d]).source == "human" for d in qrels.doc_codes]
    fewer = replace(data, qrels=qrels.take(~((qrels.query_codes == 0) & np.array(human))))
    left = CanaryQueries.from_dataset(fewer)
    assert len(left) == 159
    assert qrels.query_ids[0] not in left.qrels.query_ids


def test_nothing_of_a_source() -> None:
    rows = [row for row in ROWS if row[2] == "human"]
    with pytest.raises(DataError, match=r"no document has source 'llm:x'; sources are \['human'\]"):
        build(rows=rows)


def test_data_sets_without_twins_or_with_unclear_sources() -> None:
    with pytest.raises(DataError, match="'crowdrag25' has no twins"):
        CanaryQueries.from_dataset(load_dataset("crowdrag25"))
    data = load_dataset("crowdrag-rewrites")
    with pytest.raises(DataError, match=r"has the sources \['human', 'llm:claude'\]; name the one"):
        CanaryQueries.from_dataset(data, human="people")
    with pytest.raises(DataError, match="no document has source 'llm:gpt'"):
        CanaryQueries.from_dataset(data, llm="llm:gpt")


def test_the_fingerprint_is_that_of_the_content() -> None:
    assert build().fingerprint == build(rows=ROWS[::-1]).fingerprint
    others = [
        build(texts=TEXTS | {"q0": "another text"}),
        build(rows=[*ROWS, ("q3", "another", "human", 1)]),
        build(rows=[(*ROWS[0][:3], 2), *ROWS[1:]]),
        build(texts={q: TEXTS[q] for q in reversed(TEXTS)}),
    ]
    assert len({build().fingerprint, *(other.fingerprint for other in others)}) == 5
