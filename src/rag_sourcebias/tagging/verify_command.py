"""``tag verify``: let people say who wrote some documents, and how wrong a detector is there."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.core.errors import DataError
from rag_sourcebias.infer.verified import (
    MIN_VERIFIED,
    read_verification,
    require_informative,
    write_verification,
)
from rag_sourcebias.intake.judgments import read_qrels
from rag_sourcebias.intake.rankings import read_systems
from rag_sourcebias.tagging.command import (
    Collection,
    TaggerOptions,
    open_store,
    pass_over_shared_dates,
)
from rag_sourcebias.tagging.tables import local_lines
from rag_sourcebias.tagging.verify import LocalError, draw_slots, draw_store
from rag_sourcebias.terminal.console import say, show, tell
from rag_sourcebias.terminal.options import require_writable_file, spread

_DRAW = "Draw"


@spread
def verify(
    sheet: Annotated[
        Path,
        typer.Argument(
            help="Sheet (.csv or .jsonl): drawn where there is none, else read as far as it is "
            "filled in."
        ),
    ],
    *,
    store: Annotated[
        str | None,
        typer.Option(help="As for tag apply; needed to draw.", rich_help_panel="Store"),
    ] = None,
    collection: Collection = None,
    taggers: TaggerOptions,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="TREC run whose skew you will audit: draw relevant documents by what they weigh "
            "in it; repeatable. Without, documents of the store are drawn evenly.",
            rich_help_panel=_DRAW,
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgments, with --run.", rich_help_panel=_DRAW)
    ] = None,
    cutoff: Annotated[
        int, typer.Option(min=1, help="Ranks that count, with --run.", rich_help_panel=_DRAW)
    ] = 5,
    budget: Annotated[
        int,
        typer.Option(
            "--budget", "-n", min=MIN_VERIFIED, help="Documents to draw.", rich_help_panel=_DRAW
        ),
    ] = 100,
    seed: Annotated[int, typer.Option(help="Of the draw.", rich_help_panel=_DRAW)] = 0,
) -> None:
    """Draw documents for people to say who wrote them, then state a detector's error on them.

    Write human, llm, llm:<model> or unclear into the column source, from the first row on; the same
    command then says how wrong the detector is, at any time. The manifest beside the sheet holds
    the draw and the tags: keep it, and keep it from whoever fills in the sheet.

    For example:

        rag-sourcebias tag verify sheet.csv --store chroma:./db --detector detector

        rag-sourcebias tag verify sheet.csv --store corpus:wiki --detector detector \
--run bm25.run --qrels qrels.txt -n 200

        rag-sourcebias tag verify sheet.csv

    Then: rag-sourcebias tag apply --store chroma:./db --detector detector --verified sheet.csv, or
    rag-sourcebias audit source --run bm25.run --qrels qrels.txt --tags detected \
--verified sheet.csv
    """
    if sheet.exists():
        found = read_verification(sheet)
        say(f"{len(found.truth):,} of {found.n_drawn:,} documents are filled in")
        require_informative(found)
        show(local_lines(LocalError.of(found)))
        return
    require_writable_file("sheet", sheet)
    detectors = [one for one in taggers.detectors() if one.target == "source"]
    if store is None or len(detectors) != 1:
        raise DataError(
            f"{sheet} does not exist, and drawing one needs --store and one --detector of sources"
        )
    if (qrels is None) != (not run):
        raise DataError("--run and --qrels go together")
    opened = open_store(store, collection=collection, sidecar=None)
    declared = taggers.declared()
    pass_over_shared_dates(declared, opened)
    if qrels is None:
        drawn, texts = draw_store(opened.documents(), declared, detectors[0], budget, rng=seed)
    else:
        drawn, texts = draw_slots(
            opened.documents(),
            declared,
            detectors[0],
            budget,
            runs=read_systems(run or ()),
            qrels=read_qrels(qrels),
            cutoff=cutoff,
            rng=seed,
        )
    if len(texts) < MIN_VERIFIED:
        raise DataError(
            f"documents of {store} that can be drawn: {len(texts)}; an error is stated from "
            f"{MIN_VERIFIED} on. Tag them by hand, in a file for --tags, or by rules"
        )
    manifest = write_verification(sheet, drawn, texts)
    tell(
        f"sheet: {sheet} ({len(texts):,} documents; fill in source: human, llm, llm:<model> or "
        f"unclear)\nmanifest: {manifest} (keep it from whoever fills in the sheet)\n"
        f"then: rag-sourcebias tag verify {shlex.quote(str(sheet))}"
    )
