"""What is fitted on twins of which one version is favoured, and who gets the ranks in the end."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from favoured_twins import FAVOUR, FavouringEncoder, favoured_dataset

from rag_sourcebias.core.data import RankedList, Run
from rag_sourcebias.debias.fit import fit_parity_calibration
from rag_sourcebias.debias.parity import ParityCalibration
from rag_sourcebias.measure.relevance import exposure

N_ASKED = 30


class Text(NamedTuple):
    doc_id: str
    text: str
    source: str


@cache
def texts() -> list[Text]:
    """Both versions of every pair, the human one first."""
    corpus = favoured_dataset().corpus
    rows = zip(corpus.doc_ids, corpus.texts, strict=True)
    return [Text(doc_id, text, text.split()[5]) for doc_id, text in rows]


def queries() -> list[str]:
    return [f"topic {topic}" for topic in range(N_ASKED)]


def cosine_of(text: str) -> float:
    """Cosine of a text and its topic, by the encoder."""
    words = text.split()
    return float(words[3]) + FAVOUR * (words[5] != "human")


@cache
def calibration() -> ParityCalibration:
    return fit_parity_calibration(favoured_dataset(), FavouringEncoder(), depth=10_000)


def human_share(lists: Sequence[Sequence[str]]) -> float:
    """Mean share of the exposure that human texts get, computed from the run."""
    run = Run.from_lists(
        [RankedList(query_id=str(i), doc_ids=tuple(ids)) for i, ids in enumerate(lists)]
    )
    found = exposure(run, favoured_dataset().corpus.tags)
    return float(found.shares[found.sources.index("human")].mean())


def by_score(scores: Mapping[str, float], topic: int) -> list[str]:
    """Ids of a topic by falling score, the order a definition asks for."""
    mine = [t.doc_id for t in texts() if t.doc_id.startswith(f"{topic}-")]
    return sorted(mine, key=lambda doc_id: -scores[doc_id])
