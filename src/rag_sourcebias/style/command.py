"""``audit style``: which writing styles a retriever favours and which it silences."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.core.errors import DataError, setting
from rag_sourcebias.core.texts import StyledTexts
from rag_sourcebias.intake.beir import read_texts
from rag_sourcebias.intake.styled import load_styled_sample, read_styled_texts
from rag_sourcebias.neural.named import SpecBuilder
from rag_sourcebias.retrieval.search import BM25Spec, named_retriever
from rag_sourcebias.style.audit import audit_style
from rag_sourcebias.style.data import StyleConfig
from rag_sourcebias.terminal import options as common
from rag_sourcebias.terminal.console import deliver, err, stages
from rag_sourcebias.terminal.options import TableFile, Texts, require_writable, spread

# Options of ``audit style``, named once.


_DATA, _SYSTEMS, _STATISTICS = "Data", "What is audited", "Statistics"
_COLUMNS = "Columns of a table"


# ``audit style``: which writing styles a retriever favours and which it silences.


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns of a table with one row per version of a text."""

    panel = _COLUMNS

    id: str | None = setting(None, "Query id.")
    side: str | None = setting(None, "query or document.")
    group: str | None = setting(None, "Style.")
    text: str | None = setting(None, "Text.")

    def named(self) -> dict[str, str | None]:
        """Return the column of each role."""
        return {"query_id": self.id, "side": self.side, "style": self.group, "text": self.text}


@spread
def style(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="JSON lines with query_id, query, query_styles, human and doc_styles, or a table "
            "(CSV, TSV, JSON lines, Parquet) with query_id, side, style and text. Also .gz.",
        ),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            help="Use the bundled sample: 56 queries and passages in ten styles each.",
            rich_help_panel=_DATA,
        ),
    ] = False,
    columns: Columns,
    distractors: Annotated[
        Path | None,
        typer.Option(
            help="Further documents for the index: a table or JSON lines with id and text, or a "
            "BEIR folder. Copies of the documents themselves are left out.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(
            "--encoder",
            help="A sentence-transformers name or "
            "path[,dtype=…,max_length=…,batch_size=…,device=…]; repeatable, to compare several.",
            rich_help_panel=_SYSTEMS,
        ),
    ] = None,
    bm25: Annotated[
        bool,
        typer.Option(
            help="Also score by words (BM25): what a preference for style looks like without a "
            "model.",
            rich_help_panel=_SYSTEMS,
        ),
    ] = True,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            "--retriever",
            help="A whole retrieval stack over an index of all versions, such as "
            "chroma:<model>,path=store; named as in audit source; repeatable.",
            rich_help_panel=_SYSTEMS,
        ),
    ] = None,
    cache: common.Cache = None,
    index: Annotated[
        bool,
        typer.Option(
            help="Also retrieve from an index of all documents: quality per query style and "
            "document style.",
            rich_help_panel=_STATISTICS,
        ),
    ] = True,
    text_statistics: Annotated[
        bool,
        typer.Option(
            help="Also describe the texts: words, BLEU, METEOR, ROUGE-L, overlap.",
            rich_help_panel=_STATISTICS,
        ),
    ] = True,
    config: StyleConfig,
    clusters: common.ClusterFile,
    report: common.ReportFolder = None,
    texts: Texts = None,
    table: TableFile = None,
) -> None:
    """Measure which writing styles rankings favour, in documents and in queries.

    Each query has one document, both written in several styles. The versions of the document are
    ranked by similarity to the query: average ranks and unfairness with intervals, for every style
    of query; what a query style costs in a real index; what length explains.

    For example:

        rag-sourcebias audit style --sample --encoder all-MiniLM-L6-v2 --report report

        rag-sourcebias audit style styles.jsonl --encoder all-MiniLM-L6-v2 --encoder path/to/model

        rag-sourcebias audit style styles.csv --no-bm25 --retriever chroma:all-MiniLM-L6-v2
    """
    if not (encoder or bm25 or retriever):
        raise DataError("nothing to audit: give --encoder <model>, --retriever <spec> or --bm25")
    require_writable(report)
    if sample == (file is not None):
        raise DataError("give one data set: a file of styled texts, or --sample")
    styled = load_styled_sample()
    if file is not None:
        styled = read_styled_texts(file, columns=columns.named())
    if distractors is not None:
        styled = _with_distractors(styled, distractors)
    with stages() as progress:
        builder = SpecBuilder(cache, progress.advance)
        found = audit_style(
            styled,
            encoders=[builder.encoder(text) for text in encoder or []],
            bm25=BM25Spec() if bm25 else None,
            retrievers=[named_retriever(text, builder) for text in retriever or []],
            config=config,
            clusters=clusters.read(),
            index=index,
            text_statistics=text_statistics,
            on_stage=progress.begin,
        )
    deliver(found, report, texts=texts, table=table)


def _with_distractors(texts: StyledTexts, path: Path) -> StyledTexts:
    """Add documents to the index that do not go by the id of one that is audited."""
    found = read_texts(path)
    ids = set(texts.doc_ids)
    # in a BEIR folder d1@human and d1@llm are both the document d1
    kept = tuple(text for name, text in found.items() if name.partition("@")[0] not in ids)
    if not kept:
        raise DataError(
            f"{path}: all {len(found)} documents have ids of those audited, such as "
            f"{next(iter(found))!r}; give others as distractors"
        )
    if len(kept) < len(found):
        err.print(
            f"{len(found) - len(kept)} of {len(found)} distractors left out: by their ids they are "
            "the documents audited",
            soft_wrap=True,
        )
    return replace(texts, distractors=(*texts.distractors, *kept))
