"""``tag``: tag documents by source and style."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rag_sourcebias.core.errors import DataError, require_distinct, require_name, setting
from rag_sourcebias.infer.verified import read_verification, require_informative
from rag_sourcebias.intake.beir import read_corpus
from rag_sourcebias.intake.tables import find_columns, ids_of, listed, read_table
from rag_sourcebias.observe.document_stores import DocumentStore, open_document_store
from rag_sourcebias.tagging.detector.fit import (
    DetectorTagger,
    check_detector_folder,
    fit_detector,
    load_detector,
    save_detector,
)
from rag_sourcebias.tagging.detector.model import NOWHERE, Detector
from rag_sourcebias.tagging.documents import SidecarStore, Tagger, tag_store, taggers_fingerprint
from rag_sourcebias.tagging.rules import (
    DateTagger,
    IdTagger,
    ProvenanceTagger,
    RuleTagger,
    read_rules,
    shared_date,
)
from rag_sourcebias.tagging.tables import (
    empty_table,
    example_table,
    local_lines,
    rate_text,
    result_parts,
)
from rag_sourcebias.tagging.verify import LocalError, VerifiedTagger
from rag_sourcebias.terminal.console import INTERRUPTED, err, out, say, show, stages, tell
from rag_sourcebias.terminal.options import choice, require_writable_file, spread

# Options of the tag commands, named once.


_STORE, _TAGGERS, _WRITING = "Store", "Taggers, in order of trust", "Writing"

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


@dataclass(frozen=True, kw_only=True)
class TaggerOptions:
    """Taggers in order of trust: what a document declares comes before what is guessed of it."""

    panel = _TAGGERS

    provenance: bool = setting(
        False,
        "Read what documents declare: IPTC digitalSourceType, AI-Disclosure.",
    )
    rules: Path | None = setting(None, "YAML file of rules on metadata, URL host, id and text.")
    id_pattern: str | None = setting(
        None,
        "Regex on ids with some of the named groups pair_id, source or model, style; auto "
        "reads d17#human, d17@llm:gpt-4o and their chunks.",
    )
    human_before: str | None = setting(
        None,
        "Documents all of whose dates in the metadata are older, such as 2022-11, are by people.",
    )
    detector: list[Path] | None = setting(
        None,
        "Folder that rag-sourcebias tag fit wrote, for what the others do not know; "
        "repeatable (one for sources, one for styles).",
    )

    def declared(self) -> list[Tagger]:
        """Return the taggers that guess nothing."""
        taggers: list[Tagger] = []
        if self.provenance:
            taggers.append(ProvenanceTagger())
        if self.rules is not None:
            taggers.append(RuleTagger(read_rules(self.rules)))
        if self.id_pattern is not None:
            auto = self.id_pattern == "auto"
            taggers.append(IdTagger() if auto else IdTagger(self.id_pattern))
        if self.human_before is not None:
            taggers.append(DateTagger(self.human_before))
        return taggers

    def detectors(self) -> list[Detector]:
        """Read the detectors."""
        return [load_detector(folder) for folder in self.detector or ()]


def pass_over_shared_dates(taggers: Sequence[Tagger], store: DocumentStore) -> None:
    """Let dates that most documents of a store share say nothing, and tell so."""
    for tagger in taggers:
        if isinstance(tagger, DateTagger):
            tagger.shared, n = shared_date(store.documents())
            if tagger.shared:
                told = f"{n:,} of {len(store):,} documents have the date {tagger.shared}"
                tell(f"{told}: it says nothing of when they were written")


def guessing(
    detectors: Sequence[Detector], verified: Path | None, *, unverified: bool, dry_run: bool
) -> tuple[list[Tagger], LocalError | None]:
    """Return taggers that guess, and what is known of their error on these documents.

    Raises
    ------
    DataError
        If nobody verified documents of the store and nobody insists, or the sheet is of another
        detector.
    InsufficientDataError
        If too few were verified, or the tags tell nothing.
    """
    sources = [d for d in detectors if d.target == "source"]
    styles: list[Tagger] = [DetectorTagger(d) for d in detectors if d.target == "style"]
    if not sources:
        if verified is not None or unverified:
            raise DataError("--verified and --unverified go with a detector of sources")
        return styles, None
    if verified is None:
        if not (unverified or dry_run):
            raise DataError(
                "nobody knows how often this detector is wrong on these documents, so nothing was "
                "written; let people say of some 50 who wrote them: rag-sourcebias tag verify "
                "sheet.csv --store … --detector …, then give --verified sheet.csv (--unverified "
                "writes the tags all the same, marked as such)"
            )
        return [*(DetectorTagger(d, origin="unverified") for d in sources), *styles], None
    found = read_verification(verified)
    if len(sources) > 1 or sources[0].fingerprint != found.detector:
        raise DataError(f"{verified} was drawn for another detector; give that one, or draw again")
    require_informative(found)
    local = LocalError.of(found)
    known = VerifiedTagger(found.sources())
    return [known, DetectorTagger(sources[0], abstain=local.abstains), *styles], local


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
            (*parts, f"before-{taggers_fingerprint(taggers)[:8]}", "sqlite")
        )
    require_writable_file("backup", backup)
    if backup.suffix != ".sqlite":
        raise DataError(f"--backup {backup}: tags are kept in a tag store; name a .sqlite file")
    return backup


# Options of ``tag fit``.


_COLUMNS = "Columns"


# Labelled documents of ``tag fit``: a table, or a BEIR folder with a corpus per source.


class Labels(NamedTuple):
    """Documents (id, text and label), group and domain of each, and where groups come from."""

    documents: list[tuple[str, str, str | None]]
    groups: list[str | None] | None
    domains: list[str | None] | None
    grouped_by: str

    @classmethod
    def read(cls, paths: Sequence[Path], **columns: Any) -> Labels:  # noqa: ANN401
        """Read one file or folder, or several, of which each is a domain of its own."""
        if len(paths) == 1:
            return read_labelled(paths[0], **columns)
        names = [path.name.partition(".")[0] for path in paths]
        require_distinct("file", names)
        parts = [read_labelled(path, **columns) for path in paths]
        documents: list[tuple[str, str, str | None]] = []
        groups: list[str | None] = []
        domains: list[str | None] = []
        for name, part in zip(names, parts, strict=True):
            n = len(part.documents)
            documents += [(f"{name}/{doc}", text, label) for doc, text, label in part.documents]
            groups += [group and f"{name}/{group}" for group in part.groups or [None] * n]
            domains += part.domains or [name] * n
        return cls(documents, groups, domains, parts[0].grouped_by)


def read_labelled(
    path: Path,
    *,
    target: str,
    text: str | None = None,
    label: str | None = None,
    group: str | None = None,
    domain: str | None = None,
    id: str | None = None,
) -> Labels:
    """Read labelled documents of a table or a folder.

    Raises
    ------
    DataError
        If a column is missing, an id is empty or occurs twice, or options do not fit a folder.
    """
    if path.is_dir():
        if text or label or group or domain or id:
            raise DataError(
                f"{path} is a folder, which has no columns; leave out --text, "
                "--label, --group, --domain and --id"
            )
        inner = path.name == "corpus" and not (path / "corpus").exists()
        corpus = read_corpus(path.parent if inner else path, titles=False).corpus
        tags = [corpus.tags.get(doc_id) for doc_id in corpus.doc_ids]
        documents = [
            (doc_id, body, tag.source if target == "source" else tag.style)
            for (doc_id, body), tag in zip(corpus, tags, strict=True)
        ]
        pairs = [tag.pair_id for tag in tags]
        if any(pairs):
            return Labels(documents, pairs, None, "pairs of the folder")
        return Labels(documents, None, None, "nothing: each document alone")

    table = read_table(path)
    usual = (name for name in table.names if name.lower() == target)
    roles = {
        "document": id,
        "text": text,
        "label": label or next(usual, None),
        "pair": group,
        "domain": domain,
    }
    found = find_columns(table, roles, needed=("text", "label"))
    columns = {role: list(map(_cell, table.columns[name])) for role, name in found.items() if name}
    # ids of rows when there are none: messages then name the row
    ids = ids_of(table, listed(found["document"]))
    documents = [
        (doc_id, body or "", name and require_name(name, target, table.where(row)))
        for row, (doc_id, body, name) in enumerate(
            zip(ids, columns["text"], columns["label"], strict=True)
        )
    ]
    grouped_by = "pair ids in the document ids, if there are any"
    if "pair" in columns:
        grouped_by = f"column {found['pair']!r}"
    return Labels(documents, columns.get("pair"), columns.get("domain"), grouped_by)


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
    tagged = [f"tagged {label}" for label in report.labels]
    table = empty_table(
        f"{detector.target} detector, held out",
        [detector.target],
        ["documents", "AUROC", *tagged, "unknown"],
    )
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
    say(f"wrong, if all were decided   {rate_text(report.error_of_all)}")
    say(
        f"left unknown                 {rate_text(report.unknown)}; {report.unlike.hits:,} of them "
        "unlike the other labelled documents"
    )
    if report.error.n:
        say(
            f"wrong among the decided      {rate_text(report.error)}, wanted at most "
            f"{detector.max_error:.1%}"
        )
    say(
        f"calibration                  Brier score {report.brier:.3f} (0 is perfect), mean "
        f"|accuracy − confidence| {report.calibration_error:.3f}"
    )
    if report.sensitivity is not None and report.specificity is not None:
        say(f"LLM texts tagged as LLM      {rate_text(report.sensitivity)} of the decided")
        say(f"human texts tagged as human  {rate_text(report.specificity)} of the decided")
    _show_elsewhere(detector)
    if detector.threshold is None:
        say(
            f"Warning: no threshold keeps an error of {detector.max_error:.1%}, so this detector "
            "leaves every document unknown; label more documents or raise --max-error"
        )
    if not detector.linear.converged:
        say("Warning: the fit stopped before it converged; the figures above are of that fit")
    say(
        "• the figures hold for documents like the labelled ones, with labels about as frequent; "
        "what is true of yours rag-sourcebias tag verify finds out"
    )


def _show_elsewhere(detector: Detector) -> None:
    if not detector.foreign:
        say(
            "elsewhere                    unknown: one domain is labelled; label several "
            "(--domain, or a file each) to see how wrong it is on one it has not seen"
        )
        return
    numbers = ("documents", "wrong, if all were decided", "left unknown", "wrong of decided")
    table = empty_table("Each domain left out", ["domain"], numbers)
    for one in detector.foreign:
        shares = (one.error_of_all, one.unknown, one.error)
        table.add_row(
            one.domain or "(none)",
            f"{one.error_of_all.n:,}",
            *(f"{rate.value:.1%}" if rate.n else "–" for rate in shares),
        )
    out.print(table)
    wrong = [one.error_of_all.value for one in detector.foreign]
    say(
        f"elsewhere                    {min(wrong):.1%} to {max(wrong):.1%} wrong on a domain not "
        "seen, if all were decided: verify some of your own before you trust a tag"
    )
    if detector.domain.limit >= NOWHERE:
        say(
            f"• no likeness keeps an error of {detector.max_error:.1%} there: without verified "
            "documents every text stays unknown"
        )


# ``tag fit``: learn to tell sources or styles from labelled documents.


def fit(
    labelled: Annotated[
        list[Path],
        typer.Argument(
            help="CSV, TSV, JSON lines or Parquet with text and label, or a folder with "
            "corpus/<source>.jsonl per source (same _id = same document rewritten). Each of "
            "several is a domain."
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
    domain: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_COLUMNS,
            help="Data set, genre or generator; each is left out in turn, to see how wrong the "
            "detector is elsewhere. Default: domain, dataset, … if there, else the file's name.",
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
    The tables it prints are of documents, and of domains, that the model had not seen.

    Needs scikit-learn: pip install 'rag-sourcebias\[detector]'

    For example:

        rag-sourcebias tag fit labelled.csv --output detector

        rag-sourcebias tag fit essays.jsonl --group prompt --one-llm --output detector

        rag-sourcebias tag fit labelled.parquet --target style --label tone --output styles

        rag-sourcebias tag fit essays.jsonl news.csv wiki.parquet --output detector

    Then: rag-sourcebias tag verify sheet.csv --store chroma:./db --detector detector
    """
    kind = choice("target", target, ("source", "style"))
    if one_llm and kind != "source":
        raise DataError("--one-llm goes with --target source")
    check_detector_folder(output)
    labels = Labels.read(
        labelled, target=kind, text=text, label=label, group=group, domain=domain, id=id
    )
    documents = labels.documents
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
                groups=labels.groups,
                domains=labels.domains,
                rng=seed,
                max_error=max_error,
                on_progress=progress.advance,
            )
    except KeyboardInterrupt:
        err.print("\ninterrupted: no detector was written", soft_wrap=True)
        raise SystemExit(INTERRUPTED) from None
    save_detector(detector, output)
    show_detector(detector, grouped_by=labels.grouped_by)
    err.print(f"detector: {output}", soft_wrap=True)


# ``tag apply``: tag every document of a store.


@spread
def apply(
    *,
    store: Annotated[
        str,
        typer.Option(
            help="chroma:FOLDER · chroma:http://host:8000 · corpus:FOLDER or corpus:FILE.jsonl (a "
            "BEIR corpus) · app:MODULE:NAME (your vector store or index); the last two are only "
            "read.",
            rich_help_panel=_STORE,
        ),
    ],
    collection: Collection = None,
    sidecar: Annotated[
        Path | None,
        typer.Option(
            help="Keep the tags in this .sqlite file and leave the store as it is.",
            rich_help_panel=_STORE,
        ),
    ] = None,
    taggers: TaggerOptions,
    verified: Annotated[
        Path | None,
        typer.Option(
            help="Sheet that people filled in for rag-sourcebias tag verify; needed with a "
            "detector of sources.",
            rich_help_panel=_TAGGERS,
        ),
    ] = None,
    unverified: Annotated[
        bool,
        typer.Option(
            "--unverified",
            help="Write a detector's tags although nobody knows its error here; their origin says "
            "so.",
            rich_help_panel=_TAGGERS,
        ),
    ] = False,
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
            help=".sqlite file for the tags that --overwrite replaces (default: beside the store).",
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
--verified sheet.csv --sidecar tags.sqlite

    Then: rag-sourcebias start chroma:./db
    """
    guesses, local = guessing(taggers.detectors(), verified, unverified=unverified, dry_run=dry_run)
    chosen = [*taggers.declared(), *guesses]
    if not chosen:
        raise DataError(
            "nothing to tag with: give at least one of --rules FILE, --provenance, "
            "--id-pattern REGEX, --human-before DATE and --detector FOLDER"
        )
    if backup is not None and not overwrite:
        raise DataError(f"--backup {backup}: no tags are replaced without --overwrite")
    place = store if sidecar is None else f"sidecar:{sidecar}"
    kept = backup_file(backup, place, collection=collection, taggers=chosen) if overwrite else None
    opened = open_store(store, collection=collection, sidecar=sidecar)
    pass_over_shared_dates(chosen, opened)
    try:
        with stages() as progress:
            total = len(opened)
            progress.begin(f"{'counting' if dry_run else 'tagging'} {opened.name}")
            result = tag_store(
                opened,
                chosen,
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
        raise SystemExit(INTERRUPTED) from None
    show(result_parts(opened, result, chosen))
    if local is not None:
        show(local_lines(local))
    if dry_run:
        out.print(example_table(opened, chosen))
