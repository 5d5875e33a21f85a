"""``tag``: tag documents by source and style."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rag_sourcebias.cli.console import (
    choice,
    err,
    out,
    require_writable_file,
    say,
    stages,
    tell,
)
from rag_sourcebias.cli.tags import show_examples, show_result
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.values import require_name
from rag_sourcebias.io.beir import read_corpus
from rag_sourcebias.io.tables import ids_of, read_table
from rag_sourcebias.tagging.detector.fit import (
    DetectorTagger,
    check_detector_folder,
    fit_detector,
    load_detector,
    save_detector,
)
from rag_sourcebias.tagging.detector.model import Detector, Rate
from rag_sourcebias.tagging.documents import (
    DocumentStore,
    SidecarStore,
    Tagger,
    open_document_store,
    taggers_fingerprint,
)
from rag_sourcebias.tagging.rules import IdTagger, ProvenanceTagger, RuleTagger, read_rules

# Options of the tag commands, named once.


_STORE, _TAGGERS, _WRITING = "Store", "Taggers, in order of trust", "Writing"

Store = Annotated[
    str,
    typer.Option(
        help="chroma:FOLDER · chroma:http://host:8000 · corpus:FOLDER or corpus:FILE.jsonl (a BEIR "
        "corpus, only read).",
        rich_help_panel=_STORE,
    ),
]
Collection = Annotated[
    str | None,
    typer.Option(help="Collection, where the store holds several.", rich_help_panel=_STORE),
]


# What the tag commands read: the store, the taggers, the name of the backup.


def open_store(spec: str, *, collection: str | None, sidecar: Path | None) -> DocumentStore:
    """Open a store that holds documents, with a file beside it where one is named."""
    require_writable_file("sidecar", sidecar)
    store = open_document_store(spec, collection=collection)
    if len(store) == 0:
        raise DataError(f"{store.name} holds no documents; there is nothing to tag")
    return store if sidecar is None else SidecarStore(store, sidecar)


def read_taggers(
    *, provenance: bool, rules: Path | None, id_pattern: str | None, detectors: Sequence[Path]
) -> list[Tagger]:
    """Taggers in order of trust: what a document declares comes before what is guessed of it."""
    taggers: list[Tagger] = []
    if provenance:
        taggers.append(ProvenanceTagger())
    if rules is not None:
        taggers.append(RuleTagger(read_rules(rules)))
    if id_pattern is not None:
        taggers.append(IdTagger() if id_pattern == "auto" else IdTagger(id_pattern))
    taggers += [DetectorTagger(load_detector(folder)) for folder in detectors]
    if not taggers:
        raise DataError(
            "nothing to tag with: give at least one of --rules FILE, --provenance, "
            "--id-pattern REGEX and --detector FOLDER"
        )
    return taggers


def backup_file(
    backup: Path | None,
    spec: str,
    *,
    collection: str | None,
    taggers: Sequence[Tagger],
) -> Path:
    """Return the file for the tags that are replaced, the same one each time a command is run.

    By default it is beside a store on disk, and in the working folder for one on a server.
    """
    if backup is None:
        place = spec.partition(":")[2]
        server = place.startswith(("http://", "https://"))
        path = Path(re.sub(r"\W+", "-", place.partition("://")[2]).strip("-") if server else place)
        parts = (path.name, *([collection] if collection else []))
        backup = path.parent / ".".join(
            (*parts, f"before-{taggers_fingerprint(taggers)[:8]}", "jsonl")
        )
    require_writable_file("backup", backup)
    if backup.suffix != ".jsonl":
        raise DataError(f"--backup {backup}: tags are kept as JSON lines; name a .jsonl file")
    return backup


# Options of ``tag fit``.


_COLUMNS = "Columns"


# Labelled documents of ``tag fit``: a table, or a BEIR folder with a corpus per source.


_USUAL = {
    "id": ("doc_id", "id", "_id", "docid", "docno", "document_id", "passage_id"),
    "text": ("text", "contents", "content", "passage", "body", "document"),
    "group": ("pair_id", "group", "topic", "topic_id", "prompt", "query_id", "qid"),
}


def read_labelled(
    path: Path,
    *,
    target: str,
    text: str | None = None,
    label: str | None = None,
    group: str | None = None,
    id: str | None = None,
) -> tuple[list[tuple[str, str, str | None]], list[str | None] | None, str]:
    """Read labelled documents of a table or a folder.

    Returns
    -------
    tuple
        Documents (id, text and label), the group of each (None where nothing says what belongs
        together), and where the groups come from, in words.

    Raises
    ------
    DataError
        If a column is missing, an id is empty or occurs twice, or options do not fit a folder.
    """
    if path.is_dir():
        if text or label or group or id:
            raise DataError(
                f"{path} is a folder, which has no columns; leave out --text, "
                "--label, --group and --id"
            )
        inner = path.name == "corpus" and not (path / "corpus").exists()
        corpus = read_corpus(path.parent if inner else path, sources=None, titles=False).corpus
        tags = [corpus.tags.get(doc_id) for doc_id in corpus.doc_ids]
        documents = [
            (doc_id, body, tag.source if target == "source" else tag.style)
            for (doc_id, body), tag in zip(corpus, tags, strict=True)
        ]
        pairs = [tag.pair_id for tag in tags]
        if any(pairs):
            return documents, pairs, "pairs of the folder"
        return documents, None, "nothing: each document alone"
    chosen: dict[str, str | None] = {}

    def choose(names: tuple[str, ...]) -> list[str]:
        chosen.update(
            id=_column(path, names, "id", id, _USUAL["id"], needed=False),
            text=_column(path, names, "text", text, _USUAL["text"]),
            label=_column(path, names, "label", label, (target, "label")),
            group=_column(path, names, "group", group, _USUAL["group"], needed=False),
        )
        return list(dict.fromkeys(name for name in chosen.values() if name is not None))

    table = read_table(path, choose)
    columns = {role: table.columns[name] for role, name in chosen.items() if name is not None}
    # ids of rows when there are none: messages then name the row
    ids = ids_of(table, () if chosen["id"] is None else (chosen["id"],))
    groups = [_cell(cell) for cell in columns["group"]] if "group" in columns else None
    texts, labels = columns["text"], map(_cell, columns["label"])
    documents = [
        (doc_id, _cell(body) or "", name and require_name(name, target, table.where(row)))
        for row, (doc_id, body, name) in enumerate(zip(ids, texts, labels, strict=True))
    ]
    if groups is None:
        return documents, None, "pair ids in the document ids, if there are any"
    return documents, groups, f"column {chosen['group']!r}"


def _column(
    path: Path,
    names: Sequence[str],
    role: str,
    given: str | None,
    usual: Sequence[str],
    *,
    needed: bool = True,
) -> str | None:
    if given is not None:
        if given not in names:
            raise DataError(f"{path} has no column {given!r}; its columns are {', '.join(names)}")
        return given
    found = next((name for known in usual for name in names if name.lower() == known), None)
    if found is None and needed:
        raise DataError(
            f"{path}: no column is recognised as {role}; its columns are {', '.join(names)}; call "
            f"it {usual[0]} or name it with --{role}"
        )
    return found


def _cell(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


# What ``tag fit`` prints.


_LEFT_OUT = {
    "unlabelled": "without a label",
    "empty": "without text",
    "repeated": "repeating another",
    "contradictory": "whose text has two labels",
}


def show_detector(detector: Detector, *, grouped_by: str) -> None:
    """Print what a detector does to documents it has not seen."""
    report = detector.report
    table = Table(title=f"{detector.target} detector, held out", title_justify="left")
    table.add_column(detector.target, overflow="fold")
    table.add_column("documents", justify="right")
    table.add_column("AUROC", justify="right")
    for label in report.labels:
        table.add_column(f"tagged {label}", justify="right", overflow="fold")
    table.add_column("unknown", justify="right")
    for label, row in zip(report.labels, report.confusion, strict=True):
        cells = (f"{sum(row):,}", f"{report.auroc[label]:.3f}", *(f"{n:,}" for n in row))
        table.add_row(label, *cells)
    out.print(table)
    left = [f"{n:,} {_LEFT_OUT[why]}" for why, n in report.left_out.items() if n]
    say(
        f"{report.n_documents:,} documents in {report.n_groups:,} groups ({grouped_by}), each "
        f"judged by a model of {report.n_folds - 1} of {report.n_folds} folds that saw neither it "
        "nor its group" + (f"; left out: {', '.join(left)}" if left else "")
    )
    say(f"wrong, if all were decided   {_rate(report.error_of_all)}")
    say(
        f"left unknown                 {_rate(report.unknown)}; {report.unlike.hits:,} of them "
        "unlike the other labelled documents"
    )
    if report.error.n:
        say(
            f"wrong among the decided      {_rate(report.error)}, wanted at most "
            f"{detector.max_error:.1%}"
        )
    say(
        f"calibration                  Brier score {report.brier:.3f} (0 is perfect), mean "
        f"|accuracy − confidence| {report.calibration_error:.3f}"
    )
    llm, human = report.sensitivity, report.specificity
    if llm is not None and human is not None:
        say(f"LLM texts tagged as LLM      {_rate(llm)} of the decided")
        say(f"human texts tagged as human  {_rate(human)} of the decided")
        # below this, skew cannot be corrected for tag errors
        if llm.n and human.n and llm.lower + human.lower - 1 < 0.3:
            say(
                "Warning: too weak or too little tested to correct a measured skew for its "
                "errors; label more documents"
            )
    _warn(detector)


def _warn(detector: Detector) -> None:
    if detector.threshold is None:
        say(
            f"Warning: no threshold keeps an error of {detector.max_error:.1%}, so this detector "
            "leaves every document unknown; label more documents or raise --max-error"
        )
    if not detector.linear.converged:
        say("Warning: the fit stopped before it converged; the figures above are of that fit")
    say(
        "• the figures hold for documents like the labelled ones, with labels about as frequent; "
        "on other topics, genres or models a detector does worse: check some by hand"
    )


def _rate(rate: Rate) -> str:
    return (
        f"{rate.value:.1%} [{rate.lower:.1%}, {rate.upper:.1%}] ({rate.hits:,} of {rate.n:,})"
        if rate.n
        else "no document"
    )


# ``tag fit``: learn to tell sources or styles from labelled documents.


_INTERRUPTED = 130


def fit(
    labelled: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, JSON lines or Parquet with text and label, or a folder with "
            "corpus/<source>.jsonl per source (same _id = same document rewritten)."
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write the detector to.")
    ],
    target: Annotated[str, typer.Option(help="source or style.")] = "source",
    text: Annotated[
        str | None, typer.Option(rich_help_panel=_COLUMNS, help="Default: text, contents, …")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_COLUMNS,
            help="Default: source (human or llm:<model>), style, or label. Rows without a label "
            "are left out.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_COLUMNS,
            help="What documents are about: pair, topic, prompt. Those of one group are never "
            "split between learning and testing. Default: pair_id, group, topic, …, if there.",
        ),
    ] = None,
    id: Annotated[
        str | None, typer.Option(rich_help_panel=_COLUMNS, help="Default: doc_id, id, … or rows.")
    ] = None,
    one_llm: Annotated[
        bool,
        typer.Option(
            "--one-llm", help="Only tell human from LLM: every llm:<model> becomes llm:any."
        ),
    ] = False,
    max_error: Annotated[
        float,
        typer.Option(
            help="Wrong tags wanted at most, as a share; what is less sure is left unknown."
        ),
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the folds.")] = 0,
) -> None:
    r"""Learn to tell sources or styles from documents that you labelled.

    Label at least 20 documents of every source, better several hundred, out of your own corpus.
    The table it prints is of documents that the model had not seen; it is stored beside the model,
    with what is needed to correct a measured skew for wrong tags.

    Needs scikit-learn: pip install 'rag-sourcebias\[detector]'

    For example:

        rag-sourcebias tag fit labelled.csv --output detector

        rag-sourcebias tag fit essays.jsonl --group prompt --one-llm --output detector

        rag-sourcebias tag fit labelled.parquet --target style --label tone --output styles

    Then: rag-sourcebias tag apply --store chroma:./db --detector detector
    """
    kind = choice("target", target, ("source", "style"))
    if one_llm and kind != "source":
        raise DataError("--one-llm goes with --target source")
    check_detector_folder(output)
    documents, groups, grouped_by = read_labelled(
        labelled,
        target=kind,
        text=text,
        label=label,
        group=group,
        id=id,
    )
    if one_llm:
        documents = [
            (doc_id, text, "llm:any" if label and label.startswith("llm:") else label)
            for doc_id, text, label in documents
        ]
    try:
        with stages() as progress:
            progress.begin(f"learning {kind}s from {len(documents):,} documents")
            detector = fit_detector(
                documents,
                target=kind,
                groups=groups,
                rng=seed,
                max_error=max_error,
                on_progress=progress.advance,
            )
    except KeyboardInterrupt:
        err.print("\ninterrupted: no detector was written", soft_wrap=True)
        raise SystemExit(_INTERRUPTED) from None
    save_detector(detector, output)
    show_detector(detector, grouped_by=grouped_by)
    err.print(f"detector: {output}", highlight=False, soft_wrap=True)


# ``tag apply``: tag every document of a store.


def apply(
    *,
    store: Store,
    collection: Collection = None,
    sidecar: Annotated[
        Path | None,
        typer.Option(
            help="Keep the tags in this file (.sqlite, .jsonl) and leave the store as it is.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    provenance: Annotated[
        bool,
        typer.Option(
            "--provenance",
            help="Read what documents declare: IPTC digitalSourceType, AI-Disclosure, C2PA.",
            rich_help_panel=_TAGGERS,
        ),
    ] = False,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of rules on metadata, URL host, id and text.", rich_help_panel=_TAGGERS
        ),
    ] = None,
    id_pattern: Annotated[
        str | None,
        typer.Option(
            help="Regex on ids with some of the named groups pair_id, source or model, style; auto "
            "reads d17#human and d17@llm:gpt-4o.",
            rich_help_panel=_TAGGERS,
        ),
    ] = None,
    detector: Annotated[
        list[Path] | None,
        typer.Option(
            "--detector",
            help="Folder that rag-sourcebias tag fit wrote, for what the others do not know; "
            "repeatable (one for sources, one for styles).",
            rich_help_panel=_TAGGERS,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Count and show examples only.", rich_help_panel=_WRITING),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace the tags that other taggers wrote; they are kept in a backup.",
            rich_help_panel=_WRITING,
        ),
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(
            help="JSONL file for the tags that --overwrite replaces (default: beside the store).",
            rich_help_panel=_WRITING,
        ),
    ] = None,
) -> None:
    """Tag every document of a store; the first tagger that knows a source decides.

    Tags are written into the metadata of the store, under keys that start with rsb_; texts,
    vectors and other metadata stay as they are. With --sidecar the store is only read. The same
    command goes on where an interrupted one stopped.

    For example:

        rag-sourcebias tag apply --store chroma:./db --rules rules.yaml --dry-run

        rag-sourcebias tag apply --store chroma:./db --collection wiki --rules rules.yaml \
--provenance

        rag-sourcebias tag apply --store chroma:http://localhost:8000 --detector detector \
--sidecar tags.sqlite

    Then: rag-sourcebias start chroma:./db
    """
    taggers = read_taggers(
        provenance=provenance, rules=rules, id_pattern=id_pattern, detectors=detector or ()
    )
    if backup is not None and not overwrite:
        raise DataError(f"--backup {backup}: no tags are replaced without --overwrite")
    place = store if sidecar is None else f"sidecar:{sidecar}"
    kept = backup_file(backup, place, collection=collection, taggers=taggers) if overwrite else None
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
        tell(
            "\ninterrupted: nothing was written, as in any dry run"
            if dry_run
            else "\ninterrupted: the tags written so far are kept; run the same command again, and "
            "it goes on where it stopped"
        )
        if kept is not None and kept.exists():
            tell(f"the tags replaced so far are kept in {kept}")
        raise SystemExit(_INTERRUPTED) from None
    show_result(opened, result, taggers)
    if dry_run:
        show_examples(opened, taggers)
