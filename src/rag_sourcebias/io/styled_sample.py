"""The bundled sample of writing styles."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources

from rag_sourcebias.io.bundled import SAMPLE_LICENSE
from rag_sourcebias.io.styled_texts import read_styled_texts
from rag_sourcebias.types import StyledTexts

__all__ = ["load_styled_sample"]


def load_styled_sample() -> StyledTexts:
    """Load 56 queries and their passages in ten styles each; it needs no connection.

    A passage by a person (``human``) and its rewrites by an LLM: plain (``0``) and in the eight
    styles of Cao (WSDM 2025): formal and concise (``1``), simple (``2``), informal (``3``), polite
    (``4``), detailed and technical (``5``), energetic (``6``), friendly (``7``), expressive
    (``8``); the queries likewise. Distractors are 104 passages by people on other queries.

    Examples
    --------
    >>> sample = load_styled_sample()
    >>> len(sample), list(sample.documents)[:3], len(sample.distractors)
    (56, ['human', '0', '1'], 104)
    """
    root = resources.files("rag_sourcebias.io")
    with resources.as_file(root.joinpath("samples", "crowdrag-rewrites", "pairs.jsonl.gz")) as file:
        texts = read_styled_texts(file)
    versions = [*texts.queries.values(), *texts.documents.values()]
    styled = [i for i in range(len(texts)) if all(column[i] is not None for column in versions)]
    others = sorted(set(range(len(texts))) - set(styled))

    def keep(columns: dict[str, tuple[str | None, ...]]) -> dict[str, tuple[str | None, ...]]:
        return {style: tuple(column[i] for i in styled) for style, column in columns.items()}

    return replace(
        texts,
        query_ids=tuple(texts.query_ids[i] for i in styled),
        doc_ids=tuple(texts.doc_ids[i] for i in styled),
        queries=keep(dict(texts.queries)),
        documents=keep(dict(texts.documents)),
        distractors=tuple(text for i in others if (text := texts.documents["human"][i])),
        name="crowdrag-rewrites",
        license=SAMPLE_LICENSE,
        attribution=(
            "Passages and queries from Webis CrowdRAG-25 "
            "(https://github.com/webis-de/sigir25-rag-crowdsourcing), shortened, citation marks "
            "removed; rewritten by a large language model (Claude)"
        ),
    )
