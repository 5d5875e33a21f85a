"""``labels``: how many human labels, of what, and the interval they give."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from rag_sourcebias.cli import models as texts_opt
from rag_sourcebias.cli.console import (
    choice,
    err,
    json_text,
    print_json,
    require_writable_file,
    say,
)
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.io.files import write_atomic
from rag_sourcebias.io.trec import read_qrels, read_run
from rag_sourcebias.judged import command as shared
from rag_sourcebias.judged.files import (
    read_judged_items,
    read_label_distributions,
)
from rag_sourcebias.judged.judge_command import texts_of_files
from rag_sourcebias.judged.plan import plan_item_labels, plan_labels
from rag_sourcebias.judged.sheets import (
    SheetRow,
    read_label_sheet,
    read_shown_texts,
    write_item_sheet,
    write_label_sheet,
)
from rag_sourcebias.stats.crc import GainScale, JudgedRanking, RankedLabels, parse_measure
from rag_sourcebias.stats.documents import (
    DocumentSample,
    LabeledDocuments,
    design_document_sample,
    document_interval,
)
from rag_sourcebias.stats.strata import draw_items

# Options of the labels commands, named once.


RunFile = Annotated[Path | None, typer.Option(help="TREC run.")]
JudgeLabels = Annotated[
    Path | None, typer.Option(help="The judge's label distributions of its documents.")
]
Measure = Annotated[str, typer.Option(help="DCG@k or P@k.")]
PilotQrels = Annotated[Path | None, typer.Option(help="Human judgments there are already.")]
Target = Annotated[str, typer.Option(help="population (queries like these) or pool (these).")]


# The judged documents of a run, of which people label a sample.


class Pool(NamedTuple):
    """Ranked label distributions, and the query and document of each row."""

    labels: RankedLabels
    query_ids: tuple[str, ...]
    doc_ids: tuple[str, ...]

    def pilot(self, qrels: Path | None) -> dict[int, int]:
        """Return the grade of each row of the pool that a qrels file judges."""
        if qrels is None:
            return {}
        judged = read_qrels(qrels)
        grade_of = {
            (judged.query_ids[q], judged.doc_ids[d]): int(grade)
            for q, d, grade in zip(judged.query_codes, judged.doc_codes, judged.grades, strict=True)
        }
        pairs = list(zip(self.query_ids, self.doc_ids, strict=True))
        grades = {i: grade_of[pair] for i, pair in enumerate(pairs) if pair in grade_of}
        if not grades:
            raise DataError(
                f"{qrels}: none of its pairs is among the {len(pairs):,} documents of the pool, "
                f"such as query {pairs[0][0]!r}, document {pairs[0][1]!r}"
            )
        row, highest = max(grades.items(), key=lambda one: one[1])
        if highest >= len(self.labels.gains):
            raise DataError(
                f"{qrels}: grade {highest} of query {pairs[row][0]!r}, document "
                f"{pairs[row][1]!r} is outside the judge's scale 0 … {len(self.labels.gains) - 1}"
            )
        return grades

    def labeled(self, pilot: dict[int, int]) -> LabeledDocuments | None:
        """Give the pilot its gains; None where there is no pilot."""
        if not pilot:
            return None
        rows, grades = np.array([*pilot.items()], dtype=np.int64).T
        return LabeledDocuments(rows=rows, human_gains=self.labels.gains[grades])


def read_pool(
    run: Path,
    labels: Path | None,
    *,
    measure: str,
    gain: GainScale,
    min_grade: int,
    n_grades: int | None = None,
) -> Pool:
    """Join a run with the judge's labels.

    Raises
    ------
    DataError
        If the measure is no weighted sum of gains, or nothing joins.
    """
    if labels is None:
        raise DataError("--labels missing: the judge's label distributions of the run's documents")
    ranking = JudgedRanking.join(read_run(run), read_label_distributions(labels, n_grades=n_grades))
    found = ranking.ranked_labels(measure, gain=gain, min_grade=min_grade)
    cutoff = parse_measure(measure)[1]
    # the order in which JudgedRanking.ranked_labels lists them
    rows = np.flatnonzero((ranking.rank > 0) & (ranking.rank <= cutoff))
    rows = rows[np.lexsort((ranking.rank[rows], ranking.labels.query_codes[rows]))]
    if not len(rows):
        raise DataError(
            f"{labels} labels none of the first {cutoff} documents of any query of {run}; judge "
            "them first (rag-sourcebias judge relevance --run …)"
        )
    return Pool(
        labels=found,
        query_ids=tuple(ranking.labels.query_ids[q] for q in ranking.labels.query_codes[rows]),
        doc_ids=tuple(ranking.labels.doc_ids[d] for d in ranking.labels.doc_codes[rows]),
    )


# ``labels``: how many human labels, of what, and the interval they give.


_GAINS = ("exponential", "linear")
_TARGETS = ("population", "pool")
_ONE_INPUT = "give a file of items, or --run with --labels"

app = typer.Typer(
    no_args_is_help=True,
    help="Plan human labels, hand them out, and turn them into an interval.",
)


@app.command()
def plan(
    file: Annotated[
        Path | None,
        typer.Argument(help="Items with judge values and a few human labels, as for interval."),
    ] = None,
    *,
    half_width: Annotated[float | None, typer.Option(help="Wanted: the estimate ± this.")] = None,
    affordable: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--budget",
            min=1,
            help="Documents to label, those judged already (--qrels) included.",
        ),
    ] = None,
    run: RunFile = None,
    labels: JudgeLabels = None,
    measure: Measure = "DCG@10",
    qrels: PilotQrels = None,
    gain: shared.Gain = "exponential",
    min_grade: shared.MinGrade = 1,
    grades: shared.Grades = None,
    id_column: shared.IdColumns = None,
    human: shared.HumanColumn = None,
    judge: shared.JudgeColumn = None,
    target: Target = "population",
    confidence_level: shared.ConfidenceLevel = 0.95,
) -> None:
    """How many human labels for a half-width, with the judge and without.

    [bold]Examples[/]

        rag-sourcebias labels plan answers.csv --half-width 0.03

        rag-sourcebias labels plan --run bm25.run --labels judge.tsv --half-width 0.5

        rag-sourcebias labels plan --run bm25.run --labels judge.tsv -n 500
    """
    aim = choice("target", target, _TARGETS)
    if file is not None and run is None:
        if half_width is None or affordable is not None:
            raise DataError(
                "items are planned for a width: give --half-width, how narrow the interval should "
                "be, and leave out -n"
            )
        items = read_judged_items(file, id=id_column, human=human, judge=judge)
        both = items.labeled & items.judged
        found = plan_item_labels(
            items.human[both],
            items.judge[both],
            len(items) - int(both.sum()),
            half_width=half_width,
            target=aim,
            confidence_level=confidence_level,
        )
        more = ("items of one cluster depend on each other: more are needed",) * (
            items.clusters is not None and len(set(items.clusters)) < len(items)
        )
        _say(str(found), (*found.assumptions, *more))
        return
    if file is not None or run is None:
        raise DataError(_ONE_INPUT)
    pool = read_pool(
        run,
        labels,
        measure=measure,
        gain=choice("gain", gain, _GAINS),
        min_grade=min_grade,
        n_grades=grades,
    )
    planned = plan_labels(
        pool.labels,
        half_width=half_width,
        n_labels=affordable,
        target=aim,
        confidence_level=confidence_level,
        pilot=pool.labeled(pool.pilot(qrels)),
    )
    _say(f"{measure}: {planned}", planned.assumptions)


@app.command()
def draw(
    file: Annotated[
        Path | None,
        typer.Argument(help="Items with judge values, of which some are to be labelled."),
    ] = None,
    *,
    affordable: Annotated[
        int,
        typer.Option(
            "-n",
            "--budget",
            min=1,
            help="Items or documents to label, those labelled already included.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Sheet to write: .csv or .jsonl.")
    ] = Path("sheet.csv"),
    run: RunFile = None,
    labels: JudgeLabels = None,
    queries: texts_opt.Queries = None,
    documents: texts_opt.Documents = None,
    measure: Measure = "DCG@10",
    qrels: PilotQrels = None,
    gain: shared.Gain = "exponential",
    min_grade: shared.MinGrade = 1,
    grades: shared.Grades = None,
    show_doc_ids: Annotated[
        bool, typer.Option(help="Leave out ids that tell the source with --no-show-doc-ids.")
    ] = True,
    id_column: shared.IdColumns = None,
    human: shared.HumanColumn = None,
    judge: shared.JudgeColumns = None,
    group: shared.GroupColumn = None,
    cluster: shared.ClusterColumn = None,
    seed: shared.Seed = 0,
) -> None:
    """Draw what to label and write it as a blind sheet, in random order.

    Items are drawn within strata of their judge value; label every row of the sheet and give it to
    rag-sourcebias interval as --human-file, with the file as --judge-file. Documents of a run are
    drawn by what they weigh; grade every row and send the sheet to rag-sourcebias labels interval.
    Its manifest holds the design; keep it, and keep it from the annotators.

    [bold]Examples[/]

        rag-sourcebias labels draw answers.csv -n 40

        rag-sourcebias labels draw --run bm25.run --labels judge.tsv -n 500 \
--queries queries.jsonl --documents corpus.jsonl
    """
    require_writable_file("output", output)
    if file is not None and run is None:
        _item_sheet(
            file,
            output,
            affordable,
            shared.Columns(id=id_column, human=human, judge=judge, group=group, cluster=cluster),
            seed,
        )
        return
    if file is not None or run is None:
        raise DataError(_ONE_INPUT)
    pool = read_pool(
        run,
        labels,
        measure=measure,
        gain=choice("gain", gain, _GAINS),
        min_grade=min_grade,
        n_grades=grades,
    )
    known = pool.pilot(qrels)
    sample = design_document_sample(pool.labels, affordable, pilot=pool.labeled(known), rng=seed)
    wanted = [row for row in sample.rows.tolist() if row not in known]
    texts = texts_of_files(queries, documents)
    manifest = write_label_sheet(
        output,
        [_sheet_row(pool, row, *texts) for row in wanted],
        n_grades=len(pool.labels.gains),
        design={
            "sample": sample.to_dict(),
            "measure": measure,
            "gain": gain,
            "min_grade": min_grade,
            "known": [[row, grade] for row, grade in known.items()],
        },
        rng=seed,
        show_doc_ids=show_doc_ids,
    )
    err.print(
        f"sheet: {output} ({len(wanted)} documents to grade 0 … {len(pool.labels.gains) - 1})\n"
        f"manifest: {manifest} (keep it from the annotators)",
        highlight=False,
        soft_wrap=True,
    )


def _item_sheet(file: Path, output: Path, n: int, columns: shared.Columns, seed: int) -> None:
    items = read_judged_items(
        file,
        id=columns.id,
        human=columns.human,
        judge=columns.judge,
        group=columns.group,
        cluster=columns.cluster,
        require_human=False,
    )
    drawn = draw_items(items, n, rng=seed)
    write_item_sheet(
        output,
        read_shown_texts(
            file, id=columns.id, human=columns.human, judge=columns.judge, group=columns.group
        ),
        drawn,
        human=items.human,
        rng=seed,
    )
    rows = drawn.rows
    new = int((~items.labeled[rows]).sum())
    named = {
        "id": columns.id, "judge": columns.judge,
        "group": (columns.group,), "cluster": (columns.cluster,),
    }  # fmt: skip
    again = "".join(f" --{k} {v}" for k, given in named.items() for v in given or () if v)
    of = "" if items.clusters is None else f" of {int(drawn.drawn.sum())} clusters"
    err.print(
        f"sheet: {output} ({new} items{of} to label, {len(rows) - new} labelled before, from "
        f"{len(drawn.drawn)} strat{'um' if len(drawn.drawn) == 1 else 'a'} of the judge's value)\n"
        f"then: rag-sourcebias interval --human-file {output} --judge-file {file}{again}",
        highlight=False,
        soft_wrap=True,
    )


@app.command()
def interval(
    file: Annotated[Path, typer.Argument(help="The filled sheet.")],
    *,
    run: Annotated[Path, typer.Option(help="TREC run.")],
    labels: Annotated[Path, typer.Option(help="The judge's label distributions of its documents.")],
    manifest: Annotated[
        Path | None, typer.Option(help="Manifest of the sheet; beside it by default.")
    ] = None,
    grades: shared.Grades = None,
    target: Target = "population",
    confidence_level: shared.ConfidenceLevel = 0.95,
    json: shared.JsonFile = None,
) -> None:
    """Turn a filled sheet into an interval; run and labels are those the sheet was drawn from."""
    aim = choice("target", target, _TARGETS)
    require_writable_file("json", None if json in (None, "-") else Path(json))
    filled = read_label_sheet(file, manifest=manifest)
    design = filled.design
    lacking = [k for k in ("sample", "measure", "gain", "min_grade", "known") if k not in design]
    if lacking:
        raise DataError(
            f"the manifest of {file} lacks {', '.join(lacking)}; it is not of a sheet that "
            "rag-sourcebias labels draw wrote"
        )
    pool = read_pool(
        run,
        labels,
        measure=design["measure"],
        gain=design["gain"],
        min_grade=design["min_grade"],
        n_grades=grades or filled.n_grades,
    )
    sample = DocumentSample.from_dict(design["sample"])
    known = {int(row): int(grade) for row, grade in design["known"]}
    on_sheet = iter(filled.grades.tolist())
    given = [known[row] if row in known else next(on_sheet) for row in sample.rows.tolist()]
    found = document_interval(
        pool.labels,
        sample,
        pool.labels.gains[np.array(given, dtype=np.int64)],
        target=aim,
        confidence_level=confidence_level,
    )
    if json == "-":
        print_json(found.to_dict())
        return
    if json is not None:
        write_atomic(json, json_text(found.to_dict()))
    _say(f"{design['measure']} {found}", found.assumptions)


def _sheet_row(pool: Pool, row: int, queries: Any, documents: Any) -> SheetRow:  # noqa: ANN401
    query_id, doc_id = pool.query_ids[row], pool.doc_ids[row]
    for kind, name, known in (("query", query_id, queries), ("document", doc_id, documents)):
        if name not in known:
            raise DataError(
                f"{kind} {name!r} has no text in --{'queries' if kind == 'query' else 'documents'};"
                f" ids there look like {next(iter(known), None)!r}"
            )
    return SheetRow(
        query_id=query_id, query=queries[query_id], doc_id=doc_id, text=documents[doc_id]
    )


def _say(line: str, assumptions: tuple[str, ...]) -> None:
    say("\n• ".join((line, *assumptions)))
