"""``tag``: say of which source and style the documents of a store are."""

from __future__ import annotations

from pathlib import Path

import typer

from rag_sourcebias.cli import tag_fit
from rag_sourcebias.cli import tag_options as opt
from rag_sourcebias.cli.checks import require_writable_file
from rag_sourcebias.cli.console import err, json_text, stages
from rag_sourcebias.cli.tag_inputs import backup_file, open_store, read_taggers
from rag_sourcebias.cli.tag_result import show_examples, show_result
from rag_sourcebias.cli.tag_summary import show_summary, summarise
from rag_sourcebias.errors import DataError
from rag_sourcebias.io import write_atomic
from rag_sourcebias.tagging.sidecar import SidecarStore

__all__ = ["app"]

_INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    help="Say of which source and style the documents of a store are, and report it.",
)


@app.command()
def apply(
    *,
    store: opt.Store,
    collection: opt.Collection = None,
    sidecar: opt.Sidecar = None,
    provenance: opt.Provenance = False,
    rules: opt.Rules = None,
    id_pattern: opt.IdPattern = None,
    detector: opt.Detectors = None,
    dry_run: opt.DryRun = False,
    overwrite: opt.Overwrite = False,
    backup: opt.Backup = None,
) -> None:
    """Tag every document of a store; the first tagger that knows a source decides.

    Tags are written into the metadata of the store, under keys that start with rsb_; texts,
    vectors and other metadata stay as they are. With --sidecar the store is only read. The same
    command goes on where an interrupted one stopped.

    [bold]Examples[/]

        rag-sourcebias tag apply --store chroma:./db --rules rules.yaml --dry-run

        rag-sourcebias tag apply --store chroma:./db --collection wiki --rules rules.yaml \
--provenance

        rag-sourcebias tag apply --store chroma:http://localhost:8000 --detector detector \
--sidecar tags.sqlite

    Then: rag-sourcebias tag report --store chroma:./db
    """
    taggers = read_taggers(
        provenance=provenance, rules=rules, id_pattern=id_pattern, detectors=detector or ()
    )
    if backup is not None and not overwrite:
        raise DataError(f"--backup {backup}: no tags are replaced without --overwrite")
    place = store if sidecar is None else f"sidecar:{sidecar}"
    kept: Path | None = None
    if overwrite:
        kept = backup_file(backup, place, collection=collection, taggers=taggers)
    opened = open_store(store, collection=collection, sidecar=sidecar)
    try:
        with stages() as progress:
            total = len(opened)
            progress.begin(f"{'counting' if dry_run else 'tagging'} {opened.name}")
            result = opened.tag(
                taggers,
                dry_run=dry_run,
                overwrite=overwrite,
                backup=kept,
                on_progress=lambda done: progress.advance(done, total),
            )
    except KeyboardInterrupt:
        _say_interrupted(kept, dry_run=dry_run)
        raise SystemExit(_INTERRUPTED) from None
    show_result(opened, result, taggers)
    if dry_run:
        show_examples(opened, taggers)


@app.command()
def report(
    *,
    store: opt.Store,
    collection: opt.Collection = None,
    sidecar: opt.ReportSidecar = None,
    json: opt.Json = None,
) -> None:
    """Share of each source and style, how the sources are known, and how surely.

    [bold]Examples[/]

        rag-sourcebias tag report --store chroma:./db --json tags.json

        rag-sourcebias tag report --store chroma:./db --sidecar tags.sqlite

        rag-sourcebias tag report --store corpus:./nq-utd
    """
    require_writable_file("json", json)
    if sidecar is not None and not sidecar.is_file():
        raise DataError(
            f"--sidecar {sidecar} does not exist; write it with: rag-sourcebias tag apply --store "
            f"{store} --sidecar {sidecar} …"
        )
    opened = open_store(store, collection=collection, sidecar=sidecar)
    with stages() as progress:
        total = len(opened)
        progress.begin(f"reading the tags of {opened.name}")
        found = summarise(opened.tags(), lambda done: progress.advance(done, total))
    if json is not None:
        write_atomic(json, json_text({"store": opened.name, **found.to_dict()}))
        err.print(f"json: {json}", highlight=False, soft_wrap=True)
    show_summary(opened.name, found)
    if isinstance(opened, SidecarStore) and (left := opened.left_over()):
        err.print(
            f"{sidecar} also holds tags of {len(left):,} documents that the store lacks, first "
            f"{', '.join(left[:3])}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


app.command("fit")(tag_fit.fit)


def _say_interrupted(backup: Path | None, *, dry_run: bool) -> None:
    text = "nothing was written, as in any dry run"
    if not dry_run:
        text = (
            "the tags written so far are kept; run the same command again, and it goes on where "
            "it stopped"
        )
    err.print(f"\ninterrupted: {text}", markup=False, highlight=False, soft_wrap=True)
    if backup is not None and backup.exists():
        text = f"the tags replaced so far are kept in {backup}"
        err.print(text, markup=False, highlight=False, soft_wrap=True)
