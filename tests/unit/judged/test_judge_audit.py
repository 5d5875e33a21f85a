from __future__ import annotations

import json

import numpy as np
import pytest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.judged.data import JudgeAudit
from rag_sourcebias.judged.judge_audit import audit_judge
from support.judged_items import judged_items


def items(n=400, labeled=120, seed=0, bias_of_b=0.3):
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    groups = np.where(np.arange(n) % 2 == 0, "a", "b")
    human = quality + rng.normal(0, 0.5, n)
    judge = quality + rng.normal(0, 0.5, n) + bias_of_b * (groups == "b")
    human[labeled:] = np.nan
    judge[3] = np.nan
    return JudgedItems(
        ids=tuple(f"i{i}" for i in range(n)),
        human=human,
        judge=judge,
        groups=tuple(groups.tolist()),
        clusters=tuple(f"q{i // 2}" for i in range(n)),
    )


def test_a_whole_audit():
    audit = audit_judge(items(bias_of_b=0.6))
    assert (audit.n, audit.n_clusters, audit.n_judge_missing) == (119, 60, 1)
    assert not audit.useless
    assert 0.7 < audit.pearson.estimate < 0.9
    assert [g.group for g in audit.groups] == ["a", "b"]
    assert audit.groups[1].bias.lower > 0 > audit.groups[0].bias.lower
    (difference,) = audit.differences
    assert difference.difference.upper < 0
    assert audit.agreement is None  # not grades
    assert audit.notes[0].startswith(
        "the mean error of the judge differs between groups: a against"
    )
    assert audit.notes[1].startswith("1 of 120 labelled items have no judge value")
    text = str(audit)
    assert "labelled items: 119 in 60 independent units" in text
    assert "judge − human in b" in text
    assert JudgeAudit.from_dict(json.loads(json.dumps(audit.to_dict()))) == audit


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (np.full(60, 2.0), "the judge is useless: it gives 2 to every labelled item"),
        (np.tile([0.0, 1, 1, 0], 15), "the judge is useless: |r| = 0.000 is no more than"),
        (np.tile([1.0, 0], 30) + np.arange(60) / 100, "the judge orders items the wrong way round"),
    ],
    ids=["constant", "uncorrelated", "inverted"],
)
def test_useless_judges_are_called_useless(judge, message):
    human = np.tile([0.0, 1], 30)
    audit = audit_judge(judged_items(human, judge))
    assert audit.notes[0].startswith(message)
    assert audit.useless == message.startswith("the judge is useless")
    assert message in str(audit)


def test_an_uncertain_judge_is_called_uncertain():
    human, noise = np.random.default_rng(5).normal(size=(2, 60))
    human = (human - human.mean()) / human.std()
    noise -= noise.mean() + human * (human @ noise) / 60
    judge = 0.2 * human + np.sqrt(0.96) * noise / noise.std()
    audit = audit_judge(judged_items(human, judge))
    assert audit.pearson.estimate == pytest.approx(0.2)
    assert not audit.useless
    assert "not certain that the judge orders items" in audit.notes[0]


def test_binary_labels_have_agreement_and_calibration():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    human = (rng.random(300) < p) * 1.0
    audit = audit_judge(judged_items(human, p))
    assert audit.agreement.rounded
    assert audit.slope == pytest.approx(np.polyfit(p, human, 1)[0])
    assert "1: calibrated" in str(audit)
    verdicts = audit_judge(judged_items(human, (p > 0.5) * 1.0))
    assert verdicts.agreement.kappa.estimate == pytest.approx(audit.agreement.kappa.estimate)


def test_perfect_and_constant_human_labels():
    human = np.tile([0.0, 1, 2], 10)
    perfect = audit_judge(judged_items(human, human))
    assert perfect.pearson.lower == pytest.approx(1)
    assert perfect.bias.estimate == 0
    assert perfect.bias.upper > 0.1  # 30 items are not certainty
    assert perfect.agreement.kappa.estimate == 1
    same = audit_judge(judged_items(np.ones(20), np.arange(20.0)))
    assert same.pearson is None
    assert same.notes[0].startswith("every human label is 1")


def test_refusals():
    with pytest.raises(InsufficientDataError, match=r"9 item\(s\) in 9 cluster\(s\)") as error:
        audit_judge(judged_items(np.arange(9.0), np.arange(9.0)))
    assert (error.value.n, error.value.n_needed) == (9, 10)
    with pytest.raises(InsufficientDataError, match=r"20 item\(s\) in 2 cluster\(s\)"):
        audit_judge(judged_items(np.arange(20.0), np.arange(20.0), clusters=["a", "b"] * 10))
    with pytest.raises(InsufficientDataError, match=r"0 item\(s\)"):
        audit_judge(judged_items(np.full(20, np.nan), np.arange(20.0)))
