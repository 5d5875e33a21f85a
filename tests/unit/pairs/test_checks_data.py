"""Faults planted into real rewrites: what the checks find, and how often they cry wolf.

Precision is that of a file in which half the pairs carry the fault and the other half is the data
set as it is, real faults of the model included: a pessimistic figure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import numpy as np
import pytest

from rag_sourcebias.pairs.checks import check_pairs
from support.real_data import data_folder

Texts = list[str]
Plant = Callable[[str, str, np.random.Generator, Texts], str | None]
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)+")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,.]*\d(?:%|\b)|(?<![\w.,])\d\b")
REFUSALS = [
    "I'm sorry, but I can't assist with that request.",
    "I apologize, but I cannot fulfill your request as it contains harmful content.",
    "As an AI language model, I do not have personal opinions on this topic.",
    "I cannot provide a rewrite of this text because it promotes misinformation.",
    "Sorry, I am unable to rewrite copyrighted material. Could I help you with something else?",
    "I can’t help with that. Would you like me to summarise a different passage?",
    "Unfortunately, I'm not able to rewrite this passage since it is incomplete.",
    "I must respectfully decline to rewrite this content.",
    "I regret to inform you that this passage cannot be rewritten.",
    "It would be inappropriate for me to rephrase this.",
]
PREAMBLES = [
    "Sure, here's a possible rewrite of the text:\n\n",
    "Certainly! Here is the rewritten passage:\n",
    "Here's a rephrased version of the text: ",
    "Rewritten text:\n",
    "Of course! Below is a revised version.\n\n",
    "**Rewritten Version:**\n\n",
    "Here is my attempt at rewriting the article:\n\n",
    "Okay, I will rewrite it for you.\n\n",
]
FOREIGN = [
    "Die Firma hat am Montag ein neues Auto vorgestellt, das mit einer größeren Batterie und einem "
    "stärkeren Motor auf den Markt kommt und nach Angaben des Herstellers weiter fahren kann.",
    "La société a présenté lundi une nouvelle voiture avec une batterie plus grande et un moteur "
    "plus puissant, qui selon le constructeur pourra rouler plus longtemps dans les villes.",
    "La empresa presentó el lunes un coche nuevo con una batería más grande y un motor más potente "
    "que, según el fabricante, puede recorrer una distancia mayor por las carreteras del país.",
    "L'azienda ha presentato lunedì una nuova automobile con una batteria più grande e un motore "
    "più potente che, secondo il costruttore, può percorrere una distanza maggiore nella città.",
    "A empresa apresentou na segunda-feira um carro novo com uma bateria maior e um motor mais "
    "potente que, de acordo com o fabricante, não precisa de ser carregado todos os dias.",
    "Компания представила в понедельник новый автомобиль с большой батареей и мощным двигателем, "
    "который, по словам производителя, может проехать больше на одной зарядке.",
    "该公司周一推出了一款新车，配备更大的电池和更强劲的电动机，据制造商称，它可以行驶更远的距离。",
    "同社は月曜日に新しい自動車を発表した。より大きな電池と強力なモーターを備え、より長い距離を走れる。",
]


def dropped_number(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str | None:
    shared = sorted({m.group() for m in NUMBER.finditer(other)} & set(NUMBER.findall(human)))
    if not shared:
        return None
    gone = re.escape(shared[rng.integers(len(shared))])
    return re.sub(rf"(?<![\w.,]){gone}(?![\w%]|[.,]\d)", "some", other)


def swapped_entity(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str | None:
    shared = sorted({n for n in NAME.findall(other) if n in human})
    fitting = [name for name in pool if name not in human and name not in other]
    if not shared:
        return None
    return other.replace(
        shared[rng.integers(len(shared))], str(fitting[rng.integers(len(fitting))])
    )


def copied(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str:
    return human.replace(". ", ".  ")


def nearly_copied(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str | None:
    words = human.split()
    if len(words) < 50:
        return None
    words[rng.integers(len(words))] = "really"
    return " ".join(words)


def refused(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str:
    return REFUSALS[rng.integers(len(REFUSALS))]


def with_preamble(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str:
    return PREAMBLES[rng.integers(len(PREAMBLES))] + other


def truncated(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str:
    words = other.split(" ")
    return " ".join(words[: int(len(words) * rng.uniform(0.4, 0.8))])


def foreign(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str:
    return FOREIGN[rng.integers(len(FOREIGN))]


def looped(human: str, other: str, rng: np.random.Generator, pool: Texts) -> str | None:
    last = other.rstrip().split(". ")[-1]
    return other + (" " + last) * 6 if len(last.split()) > 5 else None


PLANTS: dict[str, tuple[str, Plant]] = {
    "dropped number": ("numbers", dropped_number),
    "swapped entity": ("names", swapped_entity),
    "verbatim copy": ("copy", copied),
    "one word changed": ("near_copy", nearly_copied),
    "refusal": ("refusal", refused),
    "preamble": ("leftover", with_preamble),
    "truncation": ("truncated", truncated),
    "other language": ("language", foreign),
    "loop": ("loop", looped),
}


def nq_utd() -> tuple[Texts, Texts]:
    sides = []
    for source in ("human", "llama-2-7b-chat-tmp0.2"):
        path = data_folder() / "nq-utd" / "corpus" / f"{source}.jsonl"
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        sides.append({line["_id"]: line["text"] for line in lines})
    ids = sorted(sides[0])
    return [sides[0][i] for i in ids], [sides[1][i] for i in ids]


def nq_utd_styles() -> tuple[Texts, Texts]:
    path = data_folder() / "nq-utd-styles" / "styles.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = [(row["human"], text) for row in rows for text in row["doc_styles"].values()]
    return [human for human, _ in pairs], [text for _, text in pairs]


def measure(humans: Texts, others: Texts) -> dict[str, tuple[float, float, float]]:
    """Recall of the flag, recall of any flag, and precision, for each planted fault.

    Every pair carries one of the faults, in turn; the same pairs without it come second.
    """
    rng, n = np.random.default_rng(0), len(humans)
    pool = sorted({name for text in humans for name in NAME.findall(text)})
    planted, faults = [], []
    for i, (human, other) in enumerate(zip(humans, others, strict=True)):
        fault = list(PLANTS)[i % len(PLANTS)]
        text = PLANTS[fault][1](human, other, rng, pool)
        planted.append(other if text is None else text)
        faults.append("" if text in (None, other) else fault)
    checks = check_pairs(
        humans * 2, planted + others, pair_ids=[f"{kind}{i}" for kind in "ab" for i in range(n)]
    )
    found = {}
    for fault, (flag, _) in PLANTS.items():
        rows = [i for i, name in enumerate(faults) if name == fault]
        assert len(rows) >= 25
        hits, false = (float(checks.flag(flag)[part].mean()) for part in (rows, slice(n, None)))
        found[fault] = (hits, float(checks.flagged[rows].mean()), hits / (hits + false))
    return found


# Well below what was measured on all pairs (in the docstring of check_pairs), because a tenth of
# the pairs carries each fault here: a floor is missed when a check breaks, not by chance.
FLOORS = {
    "dropped number": (0.75, 0.75, 0.8),
    "swapped entity": (0.7, 0.7, 0.85),
    "verbatim copy": (1.0, 1.0, 0.99),
    "one word changed": (0.95, 0.95, 0.97),
    "refusal": (0.5, 1.0, 0.99),
    "preamble": (0.95, 0.95, 0.98),
    "truncation": (0.8, 0.85, 0.95),
    "other language": (0.95, 1.0, 0.98),
    "loop": (0.9, 0.9, 0.97),
}


@pytest.mark.data
@pytest.mark.parametrize("load", [nq_utd, nq_utd_styles])
def test_planted_faults_are_found(load: Callable[[], tuple[Texts, Texts]]) -> None:
    found = measure(*load())
    short = {
        fault: (values, FLOORS[fault])
        for fault, values in found.items()
        if any(value < floor for value, floor in zip(values, FLOORS[fault], strict=True))
    }
    assert short == {}


@pytest.mark.data
def test_real_rewrites_are_flagged_as_often_as_they_deserve() -> None:
    """Of 16 flags for numbers and 16 for names on nq-utd, read by eye, 13 and 11 were losses."""
    humans, others = nq_utd()
    checks = check_pairs(humans, others, pair_ids=[str(i) for i in range(len(humans))])
    summary = checks.summary()
    assert 0.005 < summary.n_broken / len(humans) < 0.05
    assert 0.1 < summary.flagged["numbers"] / len(humans) < 0.25  # Llama-2 drops figures
    assert summary.flagged["names"] / len(humans) < 0.1
    assert summary.flagged["language"] == 2  # one German and one Italian text were translated
    assert summary.flagged["leftover"] == 2
    humans, others = nq_utd_styles()
    checks = check_pairs(humans, others, pair_ids=[str(i) for i in range(len(humans))])
    assert checks.flagged.mean() < 0.05
