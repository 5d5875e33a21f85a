"""Options of ``audit style``, named once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_DATA, _SYSTEMS, _STATISTICS = "Data", "What is audited", "Statistics"

StylesFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="JSON lines with query_id, query, query_styles, human and doc_styles, or a table "
        "(CSV, TSV, JSON lines, Parquet) with query_id, side, style and text. Also .gz.",
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Use the bundled sample: 56 queries and passages in ten styles each.",
        rich_help_panel=_DATA,
    ),
]
Distractors = Annotated[
    Path | None,
    typer.Option(
        help="Further documents for the index: a table or JSON lines with id and text, or a BEIR "
        "folder. Copies of the documents themselves are left out.",
        rich_help_panel=_DATA,
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        help="Where some version of a query is missing: balanced (use the queries that have all, "
        "and say how many were dropped) or refuse.",
        rich_help_panel=_DATA,
    ),
]
Encoders = Annotated[
    list[str] | None,
    typer.Option(
        "--encoder",
        help="A sentence-transformers name or path[,dtype=…,max_length=…,batch_size=…,device=…]; "
        "repeatable, to compare several.",
        rich_help_panel=_SYSTEMS,
    ),
]
Bm25 = Annotated[
    bool,
    typer.Option(
        help="Also score by words (BM25): what a preference for style looks like without a model.",
        rich_help_panel=_SYSTEMS,
    ),
]
Retrievers = Annotated[
    list[str] | None,
    typer.Option(
        "--retriever",
        help="A whole retrieval stack over an index of all versions, such as "
        "chroma:<model>,path=store; named as in audit source; repeatable.",
        rich_help_panel=_SYSTEMS,
    ),
]
Index = Annotated[
    bool,
    typer.Option(
        help="Also retrieve from an index of all documents: quality per query style and document "
        "style.",
        rich_help_panel=_STATISTICS,
    ),
]
TextStatistics = Annotated[
    bool,
    typer.Option(
        help="Also describe the texts: words, BLEU, METEOR, ROUGE-L, overlap.",
        rich_help_panel=_STATISTICS,
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        help="Average ranks that differ by less than this share of the k - 1 places are alike.",
        rich_help_panel=_STATISTICS,
    ),
]
Cutoffs = Annotated[
    str,
    typer.Option(
        help="Cutoffs k of NDCG and recall in the index, separated by commas.",
        rich_help_panel=_STATISTICS,
    ),
]
