"""A first look at rewrites that were just made: whether they say what their originals say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_sourcebias.audit.pairs import check_paired_corpus
from rag_sourcebias.cli.console import out, stages
from rag_sourcebias.cli.delivery import deliver
from rag_sourcebias.corpora.checks import check_pairs
from rag_sourcebias.corpora.manifest import stem_of
from rag_sourcebias.io import read_beir
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.io.files import read_jsonl
from rag_sourcebias.types.pair_checks import PairChecks
from rag_sourcebias.types.rewrites import RewriteReport, RewriteSource

__all__ = ["print_checks", "report_checks"]

_SHOWN = 3
_MANY = 20_000  # about 20 seconds; beyond, the check is a command of its own


def print_checks(report: RewriteReport, own: Sequence[RewriteSource]) -> None:
    """Check the pairs of these sources, and print how many look wrong and the worst of them."""
    for entry in own:
        if entry.done > _MANY:
            _say(f"{entry.source}: {entry.done:,} pairs are not checked here; use check-pairs")
        elif entry.done:
            _print_source(entry.source, _checked(Path(report.folder), entry))


def report_checks(report: RewriteReport, folder: Path) -> None:
    """Print and write everything that ``check-pairs`` tells without searching."""
    made = Path(report.folder)
    if not any(entry.done for entry in report.manifest.sources):
        return
    with stages() as progress:
        judged = any((made / "qrels").glob("test.*"))
        data = read_beir(made) if judged else read_corpus(made, sources=None, titles=True).corpus
        found = check_paired_corpus(data, on_stage=progress.begin)
    deliver(found, folder)


def _checked(folder: Path, entry: RewriteSource) -> PairChecks:
    file = folder / "corpus" / f"{stem_of(entry.source)}.jsonl"
    others = {row["_id"]: row["text"] for _, row in read_jsonl(file)}
    human_file = folder / "corpus" / "human.jsonl"
    humans = {r["_id"]: r["text"] for _, r in read_jsonl(human_file) if r["_id"] in others}
    return check_pairs(list(humans.values()), [others[i] for i in humans], pair_ids=list(humans))


def _print_source(source: str, checks: PairChecks) -> None:
    found = checks.summary()
    if not found.n_flagged:
        _say(f"{source}: {found.n_pairs:,} pairs checked, none looks wrong")
        return
    flags = ", ".join(f"{name} {n:,}" for name, n in found.flagged.items() if n)
    _say(
        f"{source}: {found.n_pairs:,} pairs checked, {found.n_flagged:,} flagged ({flags}), "
        f"{found.n_broken:,} of them broken; worst:"
    )
    for row in checks.worst(_SHOWN):
        _say(f"  {checks.pair_ids[row]}: {'; '.join(checks.reasons[row])}")


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)
