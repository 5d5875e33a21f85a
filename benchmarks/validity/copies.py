"""What ``measure_source_bias`` says of blind rankers where one source has near-copies.

Every document of one source has two near-copies, which score nearly as it does. No ranker sees a
source, so that every “favours” is false: with the copies given, and counted one by one beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from counting import study
from rates import row

from rag_sourcebias.core.data import DocTags, Qrels, Run, TagTable
from rag_sourcebias.infer.means import SkewCode
from rag_sourcebias.source.audit import measure_source_bias
from rag_sourcebias.source.findings import AuditConfig

SIZES = (30, 100, 300)
SOURCES = ("human", "llm:a")
RESULT = Path(__file__).parents[1] / "results" / "validity_copies.json"
N_DOCS = 6  # of a source and query; the first of them is relevant
N_COPIES = 3  # of each document of one source, itself among them
NOISE = 0.3  # of a copy's own score, where that of a document has 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Copied:
    """Queries, documents and judgments; ``document`` numbers the original of each text."""

    n: int
    document: np.ndarray[Any, Any]
    doc_ids: tuple[str, ...]
    qrels: Qrels
    tags: TagTable
    groups: dict[str, str]

    @classmethod
    def of(cls, n: int, side: str, *, judged: bool) -> Copied:
        """Build a world in which documents of one side have copies."""
        times = [N_COPIES if source == side else 1 for source in SOURCES for _ in range(N_DOCS)]
        document = np.repeat(np.arange(2 * N_DOCS), times)
        first = np.append(True, np.diff(document) > 0)
        source = document // N_DOCS
        relevant = np.flatnonzero((document % N_DOCS == 0) & (first | judged))
        names = [[f"q{q}t{i}" for i in range(len(document))] for q in range(n)]
        tags = [DocTags(source=SOURCES[code]) for code in source]
        copied = np.flatnonzero([SOURCES[code] == side for code in source])
        return cls(
            n=n,
            document=document,
            doc_ids=tuple(name for each in names for name in each),
            qrels=Qrels.from_dict({
                f"q{q}": {each[i]: 1 for i in relevant} for q, each in enumerate(names)
            }),
            tags=TagTable.from_tags(
                pair for each in names for pair in zip(each, tags, strict=True)
            ),
            groups={each[i]: f"q{q}d{document[i]}" for q, each in enumerate(names) for i in copied},
        )  # fmt: skip

    def ranked(self, rng: np.random.Generator) -> Run:
        """Rank by relevance and chance, near-copies nearly alike."""
        size = len(self.document)
        scores = rng.normal(size=(self.n, 2 * N_DOCS))[:, self.document]
        scores += 1.0 * (self.document % N_DOCS == 0) + NOISE * rng.normal(size=(self.n, size))
        order = np.argsort(-scores, axis=1)
        return Run(
            query_ids=self.qrels.query_ids,
            offsets=np.arange(self.n + 1) * size,
            doc_codes=(order + size * np.arange(self.n)[:, None]).ravel().astype(np.int32),
            doc_ids=self.doc_ids,
            name="ranker",
        )


def counts(n: int, side: str, judged: bool, given: bool, runs: int, seed: int) -> dict[str, Any]:
    """Audit draws of one world and count the verdicts that favour a source."""
    world = Copied.of(n, side, judged=judged)
    rng = np.random.default_rng((seed, n, judged, *side.encode()))
    config = AuditConfig(measures=("NDCG",), cutoffs=(10,))
    favours = {SkewCode.FAVOURS_BASELINE, SkewCode.FAVOURS_OTHER}
    found = 0
    for _ in range(runs):
        report = measure_source_bias(
            world.ranked(rng),
            world.qrels,
            world.tags,
            config=config,
            copies=world.groups if given else "no",
        )
        found += report.systems[0].verdicts[0].code in favours
    return {"favours": found, "runs": runs}


def rows(found: dict[tuple[Any, ...], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Turn counts into figures; with copies counted one by one there is no bar."""
    figures = []
    for (n, side, judged, given), chunks in found.items():
        if not chunks:
            continue
        world = f"copies of {'human' if side == 'human' else 'LLM'} text"
        about = f"every {'human' if side == 'human' else 'LLM'} document has two near-copies"
        of = f"{'judged' if judged else 'unjudged'}, {'given' if given else 'one by one'}"
        favours, runs = (sum(chunk[key] for chunk in chunks) for key in ("favours", "runs"))
        bar = 0.05 if given else None
        figures.append(row(world, n, "favours", favours, runs, bar, of=of, about=about))
    return figures


def cells() -> list[tuple[int, str, bool, bool]]:
    """Return (queries, side, judged, given) of every cell."""
    return [
        (n, side, judged, given)
        for n in SIZES
        for side in SOURCES
        for judged in (False, True)
        for given in (False, True)
    ]


if __name__ == "__main__":
    study(counts, cells(), rows, RESULT)
