"""Places of twins against a literal look-up."""

from __future__ import annotations

import numpy as np
import pytest

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.measure.texts import count_pairs
from rag_sourcebias.source.audit import twin_ranks


def pairs(n, *, sources=("human", "llm:x")):
    """Documents ``h0, l0, h1, l1, …``; ``hi`` and ``li`` are twins."""
    return TagTable.from_tags(
        (f"{name}{i}", DocTags(source=source, pair_id=f"p{i}"))
        for i in range(n)
        for name, source in zip("hlm", sources, strict=False)
    )


def find(run, qrels, tags, **options):
    return twin_ranks(
        Run.from_dict(run) if isinstance(run, dict) else run,
        Qrels.from_dict(qrels),
        tags,
        baseline="human",
        other="llm:x",
        **options,
    )


def literal(run, qrels, n):
    """One row per (query, pair) with both versions relevant: expected ranks and who is above."""
    rows = []
    for q, (query, grades) in enumerate(qrels.items()):
        scored = run.get(query, {})

        def span(doc, scored=scored):
            if doc not in scored:
                return None
            above = sum(s > scored[doc] for s in scored.values())
            return above, above + sum(s == scored[doc] for s in scored.values())

        for i in range(n):
            if grades.get(f"h{i}", 0) > 0 and grades.get(f"l{i}", 0) > 0:
                spans = span(f"h{i}"), span(f"l{i}")
                if spans == (None, None):
                    continue
                rank = [np.nan if s is None else (s[0] + 1 + s[1]) / 2 for s in spans]
                first = [np.inf if s is None else s[0] for s in spans]
                above = 1.0 if first[1] < first[0] else 0.0 if first[1] > first[0] else 0.5
                rows.append((q, i, *rank, above))
    return sorted(rows)


@pytest.mark.parametrize("seed", range(20))
def test_against_the_literal_definition(seed):
    rng, n = np.random.default_rng(seed), 6
    tags = pairs(n)
    docs = [*tags.doc_ids, "x", "y"]
    run = {
        f"q{q}": {d: float(rng.integers(0, 5)) for d in docs if rng.random() < 0.6}
        for q in rng.permutation(5)
    }
    qrels = {
        f"q{q}": {d: int(rng.integers(-1, 3)) for d in docs if rng.random() < 0.8} for q in range(6)
    }
    found = find(run, qrels, tags)
    pair_of = [int(tags.doc_ids[row][1:]) for row in found.baseline_row]
    ours = sorted(
        zip(
            found.query.tolist(),
            pair_of,
            found.baseline_rank,
            found.other_rank,
            found.above,
            strict=True,
        )
    )
    np.testing.assert_allclose(np.array(ours), np.array(literal(run, qrels, n)))
    both = sum(
        grades.get(f"h{i}", 0) > 0 and grades.get(f"l{i}", 0) > 0
        for grades in qrels.values()
        for i in range(n)
    )
    assert found.n_unseen == both - len(ours)
    for row, other in zip(found.baseline_row, found.other_row, strict=True):
        assert tags.doc_ids[row][1:] == tags.doc_ids[other][1:]


def test_ties_and_trec_order():
    run, qrels = {"q": {"h0": 1.0, "l0": 1.0}}, {"q": {"h0": 1, "l0": 1}}
    tied = find(run, qrels, pairs(1))
    assert tied.above.tolist() == [0.5]
    assert (tied.baseline_rank.item(), tied.other_rank.item()) == (1.5, 1.5)
    by_id = find(run, qrels, pairs(1), ties="trec")  # id descending: l0 before h0
    assert by_id.above.tolist() == [1.0]
    assert (by_id.baseline_rank.item(), by_id.other_rank.item()) == (2.0, 1.0)


def test_errors():
    tags = TagTable.from_tags(
        (d, DocTags(source=s, pair_id="p7"))
        for d, s in (("a", "human"), ("b", "human"), ("c", "llm:x"))
    )
    with pytest.raises(DataError, match="'human' holds more than one document with pair_id 'p7'"):
        find({"q": {"a": 1.0}}, {"q": {"a": 1, "b": 1, "c": 1}}, tags)


def test_count_pairs():
    loose = TagTable.from_tags([("a", DocTags(source="human")), ("b", DocTags(pair_id="p"))])
    tables = (pairs(3), pairs(3, sources=("human",)), TagTable.from_tags([]), loose)
    counted = [count_pairs(table.pair_codes, table.source_codes) for table in tables]
    assert counted == [3, 0, 0, 0]
