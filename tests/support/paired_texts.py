"""A judged corpus of short texts and rewrites, into which tests plant faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tagged_texts import Row, dataset_of

from rag_sourcebias.core.data import Corpus, Dataset, Query, Run

LLM = "llm:rewriter"
_PLACES = ("Lisbon", "Ghent", "Oslo", "Turin", "Delft", "Porto", "Graz", "Leeds")
_PEOPLE = ("Anna Weber", "Jonas Lind", "Marta Silva", "Paul Novak", "Ines Costa")
_THINGS = ("bridge", "harbour", "museum", "library", "theatre", "garden", "station")
_SYLLABLES = ("ba", "de", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu")
Rewriter = Callable[[int, str, str], str | None]


def _own(i: int) -> str:
    """Words that no other text has, so that mismatched pairs are unlike each other."""
    digits = [f"{k}{i:03d}" for k in range(9)]
    return " ".join("".join(_SYLLABLES[int(c)] for c in word) for word in digits)


def human_text(i: int) -> str:
    place, who = _PLACES[i % 8], _PEOPLE[i % 5]
    thing, year = _THINGS[i % 7], 1800 + i
    return (
        f"In {year} the town of {place} opened a {thing}, number{i} of its kind, which {who} had "
        f"planned for years. It cost {1200 + 7 * i} crowns and stood near the old market. When "
        f"the river rose the lower rooms were flooded, but the {thing} of {place} was repaired "
        f"and people still like to visit it today for its {_own(i)} collections."
    )


def rewritten(i: int) -> str:
    place, who = _PLACES[i % 8], _PEOPLE[i % 5]
    thing, year = _THINGS[i % 7], 1800 + i
    return (
        f"A {thing}, number{i} among such places, was opened by the town of {place} in {year} "
        f"after {who} had spent years planning it. Located close to the old market, it cost "
        f"{1200 + 7 * i} crowns. The lower rooms were flooded when the river rose, yet the "
        f"{thing} of {place} was repaired, and people still like visiting it today "
        f"because of the {_own(i)} collections."
    )


def paired_dataset(
    n: int = 40,
    *,
    sources: Sequence[str] = (LLM,),
    rewrite: Rewriter | None = None,
    texts: Sequence[tuple[str, str, str]] = (),
    design: str = "rewrites",
) -> Dataset:
    """``n`` pairs with a query each.

    Parameters
    ----------
    rewrite : callable, optional
        Given number, original and usual rewrite; None leaves the rewrite out.
    texts : sequence of (pair id, original, rewrite), optional
        Further pairs of the first source, without a query.
    """
    rows: list[Row] = []
    judged: dict[str, dict[str, int]] = {}

    def add(name: str, source: str, text: str) -> str:
        doc_id = f"{name}@{source}"
        rows.append((doc_id, source, name, text))
        return doc_id

    for i in range(n):
        found = [add(f"d{i}", "human", human_text(i))]
        for source in sources:
            text = rewritten(i)
            changed = text if rewrite is None else rewrite(i, human_text(i), text)
            if changed is not None:
                found.append(add(f"d{i}", source, changed))
        judged[f"q{i}"] = dict.fromkeys(found, 1)
    for name, original, text in texts:
        add(name, "human", original)
        add(name, sources[0], text)
    queries = {f"q{i}": f"number{i}" for i in range(n)}
    return dataset_of(rows, queries, judged, name="paired", design=design)


class WordSpec:
    """Retrieves documents by shared words; no extra package."""

    settings = {"kind": "words"}  # noqa: RUF012

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.built: list[tuple[str, ...]] = []

    def build(self, corpus: Corpus) -> WordSpec:
        self.corpus = corpus
        self.built.append(corpus.doc_ids)
        return self

    def retrieve(self, queries: Sequence[Query], depth: int) -> Run:
        words = {doc: text.replace(",", "").split() for doc, text in self.corpus}
        found = {}
        for query in queries:
            wanted = query.text.split()
            scores = {doc: sum(w in text for w in wanted) for doc, text in words.items()}
            best = sorted((d for d in scores if scores[d]), key=lambda d: -scores[d])[:depth]
            found[query.query_id] = {d: float(scores[d]) for d in best}
        return Run.from_dict(found, name=self.name)
