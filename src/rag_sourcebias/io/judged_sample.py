"""The judged sample that comes with the package."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path

from rag_sourcebias.io.judged import read_judged_items
from rag_sourcebias.types.judged_items import JudgedItems

__all__ = ["JUDGED_SAMPLE_LICENSE", "judged_sample_file", "load_judged_sample"]

JUDGED_SAMPLE_LICENSE = "Apache-2.0 (EVOUNA, Wang et al. 2023)"


def judged_sample_file() -> AbstractContextManager[Path]:
    """Give the sample's CSV file, for as long as the context lasts."""
    root = resources.files("rag_sourcebias.io")
    return resources.as_file(root.joinpath("samples", "evouna", "items.csv"))


def load_judged_sample() -> JudgedItems:
    """Load 1,500 answers: five systems on 300 questions, 60 of which people graded.

    From EVOUNA. Human values are 1 (correct) and 0; the judge is lexical match: 1 where a golden
    answer stands in the answer. Groups are systems, clusters questions. It needs no connection.

    Examples
    --------
    >>> items = load_judged_sample()
    >>> len(items), items.n_labeled, items.n_judge_missing
    (1500, 300, 0)
    """
    with judged_sample_file() as file:
        return read_judged_items(file)
