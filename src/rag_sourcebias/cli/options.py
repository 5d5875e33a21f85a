"""Options of the audit commands, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DATA, _RETRIEVAL, _STATISTICS = "Data", "Retrieval", "Statistics"

Folder = Annotated[
    Path | None,
    typer.Argument(
        help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per source "
        "(same _id = same document rewritten).",
    ),
]
Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        help="BEIR folder: queries.jsonl, qrels/<split>.tsv and corpus/<source>.jsonl per source "
        "(same _id = same document rewritten). Several are audited one by one and combined.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: 160 human passages and their LLM rewrites.",
        rich_help_panel=_DATA,
    ),
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        help="A bundled or named data set; see rag-sourcebias datasets.", rich_help_panel=_DATA
    ),
]
Runs = Annotated[
    list[Path] | None,
    typer.Option(
        help="TREC run file (.gz allowed), instead of retrieving; repeatable. Needs --qrels and "
        "--tags.",
        rich_help_panel=_DATA,
    ),
]
QrelsFile = Annotated[Path | None, typer.Option(help="TREC or BEIR qrels.", rich_help_panel=_DATA)]
TagsFile = Annotated[
    Path | None,
    typer.Option(
        help="Table (tsv, csv, jsonl) with doc_id and source, and optionally pair_id and style.",
        rich_help_panel=_DATA,
    ),
]
Split = Annotated[str, typer.Option(help="Split of the qrels.", rich_help_panel=_DATA)]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        help="bm25[:k1=…,b=…,stemmer=…] · bm25:paper · dense:<model> · "
        "chroma:<model>[,path=…|url=…,ef_search=…]; repeatable. A model is a "
        "sentence-transformers name or path. With another engine than memory: "
        "dense:<model>[,index=<FAISS index, + for each comma>] · "
        "given:<name>,documents=<.npy>,queries=<.npy>. "
        "\\[default: bm25, or dense:all-MiniLM-L6-v2]",
        rich_help_panel=_RETRIEVAL,
    ),
]
Rerankers = Annotated[
    list[str] | None,
    typer.Option(
        help="Rerank the first --retriever: a cross-encoder's name or path, or ql:<causal LM> for "
        "query likelihood; repeatable.",
        rich_help_panel=_RETRIEVAL,
    ),
]
Depth = Annotated[int, typer.Option(min=1, help="Documents per query.", rich_help_panel=_RETRIEVAL)]
RerankDepth = Annotated[
    int,
    typer.Option(min=1, help="Documents per query that are reranked.", rich_help_panel=_RETRIEVAL),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        help="Folder of cached embeddings and scores; an interrupted audit goes on from it.",
        rich_help_panel=_RETRIEVAL,
    ),
]
SoleCorpus = Annotated[
    bool, typer.Option(help="Also score each source's corpus alone.", rich_help_panel=_STATISTICS)
]
LengthMatched = Annotated[
    bool,
    typer.Option(help="Also retrieve with pairs cut to equal length.", rich_help_panel=_STATISTICS),
]
RerankControls = Annotated[
    bool,
    typer.Option(
        "--rerank-controls",
        help="Make these two controls for rerankers too (slow).",
        rich_help_panel=_STATISTICS,
    ),
]
TextStatistics = Annotated[
    bool,
    typer.Option(
        "--text-statistics",
        help="Also describe the texts: length, and what rewrites keep of their originals (BLEU, "
        "METEOR, ROUGE-L, word overlap). Needs the extra text.",
        rich_help_panel=_STATISTICS,
    ),
]
BaselineSource = Annotated[
    str,
    typer.Option(help="Source that the others are compared with.", rich_help_panel=_STATISTICS),
]
Cutoffs = Annotated[
    str, typer.Option(help="Cutoffs k, separated by commas.", rich_help_panel=_STATISTICS)
]
Measures = Annotated[
    str,
    typer.Option(
        help="Out of NDCG, MAP, MRR, P, Recall, separated by commas.", rich_help_panel=_STATISTICS
    ),
]
TiesOption = Annotated[
    str,
    typer.Option(
        help="expected (average over tied orders) or trec (as trec_eval).",
        rich_help_panel=_STATISTICS,
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        help="Points of centred Relative Δ within which sources count as treated alike.",
        rich_help_panel=_STATISTICS,
    ),
]
Primary = Annotated[
    str | None,
    typer.Option(
        help="Measure that carries the verdict, such as NDCG@5; by default NDCG at the largest "
        "cutoff. All others are exploratory.",
        rich_help_panel=_STATISTICS,
    ),
]
MergeLLMs = Annotated[
    bool,
    typer.Option(
        "--merge-llms",
        help="Compare the baseline with all sources llm:<model> together.",
        rich_help_panel=_STATISTICS,
    ),
]
Clusters = Annotated[
    Path | None,
    typer.Option(
        help="TSV, CSV or JSON lines with query_id and cluster: topic, paraphrase group or user "
        "session. Queries of one cluster may depend on one another.",
        rich_help_panel=_STATISTICS,
    ),
]
SettingsStrip = Annotated[
    bool,
    typer.Option(
        help="Also retrieve with other usual k1 and b of BM25.", rich_help_panel=_STATISTICS
    ),
]
ConfidenceLevel = Annotated[float, typer.Option(rich_help_panel=_STATISTICS)]
IntervalOption = Annotated[
    str,
    typer.Option(help="auto, delta, bootstrap, fieller or exact.", rich_help_panel=_STATISTICS),
]
CorrectionOption = Annotated[
    str, typer.Option(help="holm, bh or none.", rich_help_panel=_STATISTICS)
]
Seed = Annotated[int, typer.Option(rich_help_panel=_STATISTICS)]
ReportFolder = Annotated[
    Path | None, typer.Option(help="Folder for report.html, report.md and report.json.")
]
