"""What ``debias search`` makes of its curves: one choice, written and compared, or none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rag_sourcebias.cli.console import Stages, err
from rag_sourcebias.cli.debias_job import Job
from rag_sourcebias.cli.debias_methods import distinct_name
from rag_sourcebias.cli.debias_models import removed_on_failure
from rag_sourcebias.cli.debias_tried import TriedSystems
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.retrieval import DenseSpec
from rag_sourcebias.types import DebiasReport, DebiasSearch

if TYPE_CHECKING:
    from rag_sourcebias.audit.debias_search import DebiasVariant

__all__ = ["conclude", "measured_choice"]


def measured_choice(
    job: Job, before: Encoder, tried: TriedSystems, output: Path, progress: Stages
) -> DebiasReport:
    """Search, write what was chosen, and compare it (or the nearest to the target) with before."""
    from rag_sourcebias.audit.debias_search import search_debias

    judged = job.judged
    data = judged.datasets[0]
    found = search_debias(
        data,
        tried.variants,
        other=job.source if job.source in data.corpus.tags.sources else None,
        config=judged.config,
        deterministic=tried.deterministic,
        on_stage=progress.begin,
        rng=judged.config.seed,
    )
    shown = _shown(tried.variants, found)
    written = found.chosen is not None
    name = shown.spec.name
    if written:
        tried.write(shown, output)
        name = distinct_name(output.stem if output.is_file() else output.name, [before.name])
    with removed_on_failure(output) if written else nullcontext():
        measured = judged.report(
            DenseSpec(before),
            [tried.system(shown, name)],
            methods=[tried.method(shown, name, output if written else None)],
            fitted_texts=job.fitted_texts,
            search=found,
            searched=tried.searched,
            search_data=data.name,
            training=tried.training,
            progress=progress,
        )
    of_seed = "" if shown.seed is None else f", seed {shown.seed}"
    said = (
        f"{name} is {tried.searched} {shown.weight:g}{of_seed}, chosen on {data.name}: its figures "
        "there are those of a choice, other data show what it is worth"
        if written
        else f"{name} was not admitted and not written; it is shown as the nearest to the target"
    )
    return replace(measured, warnings=(*measured.warnings, said))


def _shown(variants: Sequence[DebiasVariant], found: DebiasSearch) -> DebiasVariant:
    """Return the chosen variant, of the first seed, or the one nearest the target."""
    weight = found.chosen if found.chosen is not None else found.selected
    if weight is None:
        tried = [point for point in found.points if point.weight > 0]
        weight = min(tried, key=lambda p: abs(p.relative_delta.estimate - found.target)).weight
    return next(variant for variant in variants if variant.weight == weight)


def conclude(found: DebiasSearch | None, searched: str, output: Path) -> None:
    """Say what was chosen; exit code 1 where nothing was."""
    if found is not None and found.chosen is not None:
        err.print(f"{searched} {found.chosen:g}: {output}", highlight=False, soft_wrap=True)
        return
    refusal = "" if found is None else found.refusal
    err.print(f"nothing was written: {refusal}", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(1)
