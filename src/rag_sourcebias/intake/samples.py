"""The data sets that come with the package, by name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import Any, Literal

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import DataError, meant
from rag_sourcebias.intake.files import read_jsonl

# The samples that come with the package.


SAMPLE_LICENSE = "CC BY 4.0"
_REPOSITORY = "https://github.com/webis-de/sigir25-rag-crowdsourcing"
# [5], [3,12], [4, 7.] and [11,1516,] (a slip in the data), but neither years nor words in brackets.
_CITATION = re.compile(r"[ \t]*\[\s*\d{1,2}(?:[\s,.]+\d{1,4})*[\s,.]*\]")
_Row = tuple[str, str, DocTags, str, str]  # document id, text, tags, query id, query text


def load_sample(name: str = "crowdrag-rewrites", *, split: str | None = None) -> Dataset:
    """Load a bundled sample; it needs no connection.

    Parameters
    ----------
    name : {"crowdrag-rewrites", "crowdrag25", "outfox-essays"}
        ``crowdrag-rewrites`` (design ``"rewrites"``): the openings of 160 essays by people and
        their rewrites by an LLM, both relevant to their query. ``crowdrag25`` (design
        ``"independent"``): six texts per query, by people and by GPT-4o as bullet list, essay and
        news item, all relevant; citation marks are removed. ``outfox-essays`` (design
        ``"independent"``): the openings of essays by students and by ChatGPT on 640 problem
        statements.
    split : {"train", "test"}, optional
        Half of the queries of ``outfox-essays``: to fit on, or to judge on. The corpus stays
        whole.

    Raises
    ------
    DataError
        If there is no such sample.
    """
    if name not in _SAMPLES:
        near = meant(name, _SAMPLES)
        raise DataError(f"no data set {name!r}; there are {', '.join(_SAMPLES)}{near}")
    if split is not None and (name != "outfox-essays" or split not in ("train", "test")):
        raise DataError(f"sample {name!r} has no split {split!r}; outfox-essays has train and test")
    sample = _SAMPLES[name]
    with resources.as_file(resources.files(__package__).joinpath("samples", sample.file)) as path:
        rows = [row for _, record in read_jsonl(path) for row in sample.rows_of(record)]
    queries = {query_id: text for *_, query_id, text in rows}
    if split is not None:
        part = slice(_TRAIN_ESSAYS) if split == "train" else slice(_TRAIN_ESSAYS, None)
        queries = dict(list(queries.items())[part])
    return Dataset(
        name=name if split is None else f"{name}/{split}",
        corpus=Corpus(
            texts=tuple(text for _, text, *_ in rows),
            tags=TagTable.from_tags((doc_id, tags) for doc_id, _, tags, *_ in rows),
        ),
        queries=tuple(Query(query_id=query_id, text=text) for query_id, text in queries.items()),
        # each document has grade 1 for its own query
        qrels=Qrels.from_rows((q, doc_id, 1) for doc_id, _, _, q, _ in rows if q in queries),
        design=sample.design,
        license=sample.license,
        attribution=sample.attribution,
    )


def _versions(record: Mapping[str, Any], *, name: str, texts: Mapping[str, str]) -> Iterator[_Row]:
    """Give the version of each source, whose texts stand at these places of a record."""
    pair = record[name]
    for source, place in texts.items():
        tags = DocTags(source=source, pair_id=pair, origin="declared")
        text: Any = record
        for key in place.split("."):
            text = text[key]
        yield f"{pair}@{source}", text, tags, pair, record["query"]


def _response_rows(record: Mapping[str, Any]) -> Iterator[_Row]:
    topic = record["topic"]
    style = record["style"]
    # The model is named by scripts/create_llm_responses.py of the source repository.
    source = "human" if record["kind"] == "human" else "llm:gpt-4o"
    yield (
        record["response"],
        _CITATION.sub("", record["text"]).strip(),
        DocTags(source=source, style=style, pair_id=f"{topic}/{style}", origin="declared"),
        topic,
        record["query"],
    )


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A bundled data set.

    Parameters
    ----------
    name, description : str
    n_documents : int
        Of all sources together.
    n_queries : int
    design : {"rewrites", "independent"}
    license, attribution : str
    file : str
        Below ``samples``: JSON lines.
    rows_of : callable
        Reads the documents of a record.
    """

    name: str
    description: str
    n_documents: int
    n_queries: int
    design: Literal["rewrites", "independent"]
    license: str
    attribution: str
    file: str
    rows_of: Callable[[Mapping[str, Any]], Iterator[_Row]] = field(repr=False)


_SAMPLES = {
    sample.name: sample
    for sample in (
        Sample(
            name="crowdrag-rewrites",
            description="160 passages by people and their rewrites by an LLM (Claude)",
            n_documents=320,
            n_queries=160,
            design="rewrites",
            license=SAMPLE_LICENSE,
            attribution=(
                f"Passages from Webis CrowdRAG-25 ({_REPOSITORY}), shortened, citation marks "
                "removed; rewritten by a large language model (Claude)"
            ),
            file="crowdrag-rewrites/pairs.jsonl.gz",
            rows_of=partial(
                _versions,
                name="query_id",
                texts={"human": "human", "llm:claude": "doc_styles.0"},
            ),
        ),
        Sample(
            name="crowdrag25",
            description=(
                "301 queries, each answered by people and by an LLM (GPT-4o) in three styles"
            ),
            n_documents=1_806,
            n_queries=301,
            design="independent",
            license=SAMPLE_LICENSE,
            attribution=f"Webis CrowdRAG-25 ({_REPOSITORY}), citation marks removed",
            file="crowdrag25/responses.jsonl.gz",
            rows_of=_response_rows,
        ),
        Sample(
            name="outfox-essays",
            description=("openings of essays by students and by ChatGPT on 640 problem statements"),
            n_documents=1_280,
            n_queries=640,
            design="independent",
            license="Apache-2.0",
            attribution=(
                "OUTFOX (Koike et al., AAAI 2024, https://github.com/ryuryukke/OUTFOX), openings "
                "of essays"
            ),
            file="outfox/essays.jsonl.gz",
            rows_of=partial(
                _versions, name="id", texts={"human": "human", "llm:chatgpt": "chatgpt"}
            ),
        ),
    )
}
_TRAIN_ESSAYS = 340  # the first queries of outfox-essays are there to fit on


def list_datasets() -> tuple[Sample, ...]:
    """Return the bundled data sets."""
    return tuple(_SAMPLES.values())
