"""``labels``: how many human labels, of what, and the interval they give."""

from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import typer

from rag_sourcebias.core.codec import from_plain, to_plain
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.core.finding import Interval
from rag_sourcebias.io.files import sound
from rag_sourcebias.io.trec import read_qrels, read_run
from rag_sourcebias.judged import options as shared
from rag_sourcebias.judged.crc import GainScale, JudgedRanking, RankedLabels, parse_measure
from rag_sourcebias.judged.documents import (
    DocumentSample,
    LabeledDocuments,
    design_document_sample,
    document_interval,
)
from rag_sourcebias.judged.files import (
    judged_sample_file,
    read_judged_items,
    read_label_distributions,
)
from rag_sourcebias.judged.judge_command import Texts, require_texts, texts_of_files
from rag_sourcebias.judged.plan import plan_item_labels, plan_labels
from rag_sourcebias.judged.sheets import (
    SheetRow,
    draw_items,
    read_label_sheet,
    read_shown_texts,
    write_item_sheet,
    write_label_sheet,
)
from rag_sourcebias.terminal.console import err, say
from rag_sourcebias.terminal.options import choice, require_writable_file, spread, used

_ITEMS, _RANKINGS = "Items", "Rankings"


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
            "them first (rag-sourcebias judge grade --run …)"
        )
    return Pool(
        labels=found,
        query_ids=tuple(ranking.labels.query_ids[q] for q in ranking.labels.query_codes[rows]),
        doc_ids=tuple(ranking.labels.doc_ids[d] for d in ranking.labels.doc_codes[rows]),
    )


# ``labels``: how many human labels, and of what.


_GAINS = ("exponential", "linear")
_TARGETS = ("population", "pool")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """A run with the judge's labels of its documents."""

    run: Annotated[Path | None, typer.Option(help="TREC run.", rich_help_panel=_RANKINGS)] = None
    labels: Annotated[
        Path | None,
        typer.Option(
            help="The judge's label distributions of its documents.", rich_help_panel=_RANKINGS
        ),
    ] = None
    measure: Annotated[str, typer.Option(help="DCG@k or P@k.", rich_help_panel=_RANKINGS)] = (
        "DCG@10"
    )
    qrels: Annotated[
        Path | None,
        typer.Option(help="Human judgments there are already.", rich_help_panel=_RANKINGS),
    ] = None
    gain: shared.Gain = "exponential"
    min_grade: shared.MinGrade = 1
    grades: shared.Grades = None

    def pool(self) -> Pool:
        """Join the run with the labels."""
        return read_pool(
            cast("Path", self.run),
            self.labels,
            measure=self.measure,
            gain=choice("gain", self.gain, _GAINS),
            min_grade=self.min_grade,
            n_grades=self.grades,
        )


@spread
def labels(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(help="Items with judge values and a few human labels, as for interval."),
    ] = None,
    *,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="Use the bundled sample of interval.", rich_help_panel=_ITEMS
        ),
    ] = False,
    half_width: Annotated[
        float | None, typer.Option(help="Plan: labels for the estimate ± this.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget",
            "-n",
            min=1,
            help="Items or documents to label, those labelled already included: plan what they "
            "give, or draw them with --output.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Draw: write a blind sheet here (.csv or .jsonl)."),
    ] = None,
    columns: shared.Columns,
    ranked: PoolOptions,
    queries: shared.Queries = None,
    documents: shared.Documents = None,
    show_doc_ids: Annotated[
        bool,
        typer.Option(
            help="Leave out ids that tell the source with --no-show-doc-ids.",
            rich_help_panel=_RANKINGS,
        ),
    ] = True,
    target: Annotated[
        str, typer.Option(help="population (items like these) or pool (these).")
    ] = "population",
    confidence_level: shared.ConfidenceLevel = 0.95,
    seed: shared.Seed = 0,
) -> None:
    """Plan how many human labels are needed, or draw them as a blind sheet.

    Items are drawn at random, documents of a run by what they weigh. Label every row of the
    sheet. The manifest beside a sheet of documents holds the design: keep it, and keep it from the
    annotators.

    For example:

        rag-sourcebias labels --sample --half-width 0.03

        rag-sourcebias labels answers.csv -n 40 --output sheet.csv

        rag-sourcebias labels --run bm25.run --labels judge.tsv --half-width 0.5

        rag-sourcebias labels --run bm25.run --labels judge.tsv -n 500 \
--queries queries.jsonl --documents corpus.jsonl --output sheet.csv

    Then: rag-sourcebias interval --human-file sheet.csv --judge-file answers.csv, or
    rag-sourcebias interval sheet.csv --run bm25.run --labels judge.tsv
    """
    require_writable_file("output", output)
    aim = choice("target", target, _TARGETS)
    if sum((sample, file is not None, ranked.run is not None)) != 1:
        raise DataError("give a file of items, --sample, or --run with --labels")
    if output is not None and (budget is None or half_width is not None):
        raise DataError("--output draws a sheet: say how many with -n, and leave --half-width out")
    useless = used(ctx, shared.Columns if ranked.run else PoolOptions)
    if useless:
        raise DataError(f"{', '.join(useless)}: no use with this input; leave it out")
    if ranked.run is None:
        with judged_sample_file() if file is None else nullcontext(file) as path:
            if output is not None:
                _item_sheet(path, output, cast("int", budget), columns, seed)
            else:
                _plan_items(
                    path, half_width, budget, columns=columns, aim=aim, level=confidence_level
                )
        return
    if output is not None:
        texts = texts_of_files(queries, documents)
        _pool_sheet(
            ranked,
            output,
            cast("int", budget),
            texts=texts,
            show_doc_ids=show_doc_ids,
            seed=seed,
        )
        return
    pool = ranked.pool()
    planned = plan_labels(
        pool.labels,
        half_width=half_width,
        n_labels=budget,
        target=aim,
        confidence_level=confidence_level,
        pilot=pool.labeled(pool.pilot(ranked.qrels)),
    )
    _say(f"{ranked.measure}: {planned}", planned.assumptions)


def _plan_items(
    file: Path,
    half_width: float | None,
    budget: int | None,
    *,
    columns: shared.Columns,
    aim: Any,  # noqa: ANN401 - a literal
    level: float,
) -> None:
    if half_width is None or budget is not None:
        raise DataError(
            "items are planned for a width: give --half-width, how narrow the interval should be; "
            "or draw -n of them with --output"
        )
    items = read_judged_items(file, id=columns.id, human=columns.human, judge=columns.judge)
    both = items.labeled & items.judged
    found = plan_item_labels(
        items.human[both],
        items.judge[both],
        len(items) - int(both.sum()),
        half_width=half_width,
        target=aim,
        confidence_level=level,
    )
    more = ("items of one cluster depend on each other: more are needed",) * (
        items.clusters is not None and len(set(items.clusters)) < len(items)
    )
    _say(str(found), (*found.assumptions, *more))


@dataclass(frozen=True, kw_only=True)
class PoolDesign:
    """What the interval of a sheet is computed from beside its grades, kept in the manifest."""

    sample: DocumentSample
    measure: str
    gain: GainScale
    min_grade: int
    known: tuple[tuple[int, int], ...]


def _pool_sheet(
    ranked: PoolOptions,
    output: Path,
    n: int,
    *,
    texts: Texts,
    show_doc_ids: bool,
    seed: int,
) -> None:
    pool = ranked.pool()
    known = pool.pilot(ranked.qrels)
    sample = design_document_sample(pool.labels, n, pilot=pool.labeled(known), rng=seed)
    wanted = [row for row in sample.rows.tolist() if row not in known]
    manifest = write_label_sheet(
        output,
        _sheet_rows(pool, wanted, texts),
        n_grades=len(pool.labels.gains),
        design=to_plain(
            PoolDesign(
                sample=sample,
                measure=ranked.measure,
                gain=choice("gain", ranked.gain, _GAINS),
                min_grade=ranked.min_grade,
                known=tuple(known.items()),
            )
        ),
        rng=seed,
        show_doc_ids=show_doc_ids,
    )
    err.print(
        f"sheet: {output} ({len(wanted)} documents to grade 0 … {len(pool.labels.gains) - 1})\n"
        f"manifest: {manifest} (keep it from the annotators)\n"
        f"then: rag-sourcebias interval {output} --run {ranked.run} --labels {ranked.labels}",
        highlight=False,
        soft_wrap=True,
    )


def _item_sheet(file: Path, output: Path, n: int, columns: shared.Columns, seed: int) -> None:
    items = read_judged_items(file, require_human=False, **asdict(columns))
    rows = draw_items(items, n, rng=seed)
    write_item_sheet(
        output,
        read_shown_texts(
            file, id=columns.id, human=columns.human, judge=columns.judge, group=columns.group
        ),
        rows,
        human=items.human,
        rng=seed,
    )
    new = int((~items.labeled[rows]).sum())
    again = replace(columns, human=None).arguments()
    of = ""
    if items.clusters is not None:
        of = f" of {len({items.clusters[row] for row in rows.tolist()})} clusters"
    err.print(
        f"sheet: {output} ({new} items{of} to label, {len(rows) - new} labelled before)\n"
        f"then: rag-sourcebias interval --human-file {output} --judge-file {file} {again}".rstrip(),
        highlight=False,
        soft_wrap=True,
    )


def sheet_interval(
    file: Path,
    *,
    run: Path,
    labels: Path,
    manifest: Path | None,
    grades: int | None,
    target: Any,  # noqa: ANN401 - a literal
    confidence_level: float,
) -> tuple[str, Interval]:
    """Return the measure and interval of a filled sheet, with the files it was drawn from."""
    aim = choice("target", target, _TARGETS)
    filled = read_label_sheet(file, manifest=manifest)
    with sound(file, "a sheet that rag-sourcebias labels drew", names_file=False):
        design = from_plain(PoolDesign, filled.design)
    pool = read_pool(
        run,
        labels,
        measure=design.measure,
        gain=design.gain,
        min_grade=design.min_grade,
        n_grades=grades or filled.n_grades,
    )
    known = dict(design.known)
    on_sheet = iter(filled.grades.tolist())
    given = [known[row] if row in known else next(on_sheet) for row in design.sample.rows.tolist()]
    found = document_interval(
        pool.labels,
        design.sample,
        pool.labels.gains[np.array(given, dtype=np.int64)],
        target=aim,
        confidence_level=confidence_level,
    )
    return design.measure, found


def _sheet_rows(pool: Pool, rows: list[int], texts: Texts) -> list[SheetRow]:
    pairs = [(pool.query_ids[row], pool.doc_ids[row]) for row in rows]
    require_texts(pairs, texts)
    queries, documents = texts
    return [
        SheetRow(query_id=query_id, query=queries[query_id], doc_id=doc_id, text=documents[doc_id])
        for query_id, doc_id in pairs
    ]


def _say(line: str, assumptions: tuple[str, ...]) -> None:
    say("\n• ".join((line, *assumptions)))
