"""How the judge grades documents beside how people do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rag_sourcebias.audit.judged.ranking_comparisons import source_of_rows
from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.judges.audit import audit_judge
from rag_sourcebias.judges.calibration import audit_labels
from rag_sourcebias.types.arrays import IntArray
from rag_sourcebias.types.documents import TagTable
from rag_sourcebias.types.judge_audit import JudgeAudit
from rag_sourcebias.types.judged import JudgedConfig
from rag_sourcebias.types.labels import LabelDistributions
from rag_sourcebias.types.relevance import Qrels

__all__ = ["grade_audits"]


def grade_audits(
    human: Qrels, judge: LabelDistributions, tags: TagTable | None, config: JudgedConfig
) -> dict[str, JudgeAudit]:
    """Compare grades pair by pair, by source where tags are given."""
    truth = LabelDistributions.from_qrels(human, n_grades=judge.n_grades)
    rows = _rows_of(truth, judge)
    shared = rows >= 0
    if np.count_nonzero(shared) < 1:
        return {}
    grades = np.arange(judge.n_grades, dtype=np.float64)
    groups = None
    if tags is not None:
        names = (*tags.sources, "untagged")
        groups = [names[code] for code in source_of_rows(truth, tags)[shared]]
    try:
        audit = audit_judge(
            (truth.probs @ grades)[shared],
            (judge.probs @ grades)[rows[shared]],
            groups=groups,
            clusters=truth.query_codes[shared].astype(np.int64),
            confidence_level=config.confidence_level,
            rng=config.seed,
        )
    except InsufficientDataError:
        return {}
    seen = LabelDistributions(
        query_ids=truth.query_ids,
        doc_ids=truth.doc_ids,
        query_codes=truth.query_codes[shared],
        doc_codes=truth.doc_codes[shared],
        probs=truth.probs[shared],
    )
    calibration = audit_labels(
        judge, seen, confidence_level=config.confidence_level, rng=config.seed
    )
    return {"grades": replace(audit, calibration=calibration)}


def _rows_of(wanted: LabelDistributions, labels: LabelDistributions) -> IntArray:
    """Row of ``labels`` holding each pair of ``wanted``, -1 where there is none."""
    query = {name: code for code, name in enumerate(labels.query_ids)}
    doc = {name: code for code, name in enumerate(labels.doc_ids)}
    queries = np.array([query.get(name, -1) for name in wanted.query_ids])[wanted.query_codes]
    docs = np.array([doc.get(name, -1) for name in wanted.doc_ids])[wanted.doc_codes]
    width = max(len(labels.doc_ids), 1)
    key = labels.query_codes.astype(np.int64) * width + labels.doc_codes
    order = np.argsort(key, kind="stable")
    sought = np.where((queries >= 0) & (docs >= 0), queries * width + docs, -1)
    place = np.searchsorted(key[order], sought)
    place[place == len(key)] = 0
    found = key[order][place] == sought
    rows: IntArray = np.where(found, order[place], -1)
    return rows
