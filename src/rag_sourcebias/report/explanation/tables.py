"""What was measured of one source's vectors, perplexity and scores, as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.explanation.names import (
    base_of,
    factor_name,
    model_name,
    names_of,
    score_digits,
    share_ends,
)
from rag_sourcebias.report.explanation.rows import (
    as_percent,
    interval_row,
    interval_table,
)
from rag_sourcebias.report.format import MISSING, count, number
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.explain_report import ExplainReport, SourceExplanation
from rag_sourcebias.types.intervals import Interval

__all__ = ["decomposition_table", "geometry_table", "perplexity_table", "spectrum_table"]


def spectrum_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return the mean differences of singular values at the head and in the tail."""
    found = explained.spectrum
    rows = []
    if found is not None:
        m = len(found.human)
        for label, part in (
            (f"first tenth (1 to {max(1, m // 10)})", found.head),
            (f"last half ({m // 2 + 1} to {m})", found.tail),
        ):
            name = f"{label}: too few pairs" if part is None else label
            rows.append(interval_row(report, name, part, digits=1, signed=True, unit="%"))
    return interval_table(report, rows, name="singular values")


def geometry_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return where the vectors of the sources lie."""
    found, base, other = explained.geometry, base_of(report), names_of(report)[explained.source]
    if found is None:
        return interval_table(report, ())

    def percent(label: str, value: Interval | None) -> tuple[str, ...]:
        return interval_row(
            report,
            label,
            value,
            digits=1,
            unit="%",
            change=as_percent,
        )

    def cosine(label: str, value: Interval | None, *, signed: bool = False) -> tuple[str, ...]:
        return interval_row(report, label, value, digits=3, signed=signed)

    shift = ("length of the mean shift", number(found.shift, digits=3), "", count(found.n), "mean")
    return interval_table(
        report,
        [
            percent("linear probe, unseen documents right (chance 50%)", found.probe_accuracy),
            percent("linear probe, pairs ordered right (chance 50%)", found.probe_pair_accuracy),
            percent("squared distance that all pairs share", found.common_share),
            cosine("cosine of the versions of a document", found.twin_cosine),
            cosine(f"anisotropy, {base}", found.anisotropy_human),
            cosine(f"anisotropy, {other}", found.anisotropy_other),
            cosine("anisotropy, difference", found.anisotropy_difference, signed=True),
            shift,
        ],
    )


def perplexity_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return means, gap, share of pairs and gap at equal length of every model."""
    columns = ("model", *interval_table(report, ()).columns)
    rows: list[tuple[str, ...]] = []
    for found in explained.perplexity:
        gap, name = found.gap, f"{model_name(found)} ({found.kind})"
        left_out = f"; {count(gap.n_left_out)} left out" if gap.n_left_out else ""
        for label, mean in ((base_of(report), gap.mean_human), ("other", gap.mean_other)):
            source = names_of(report)[explained.source] if label == "other" else label
            rows.append(
                (
                    name,
                    f"log-perplexity, {source}",
                    number(mean, digits=2),
                    "",
                    count(gap.n),
                    f"mean{left_out}",
                )
            )
        wanted = [("gap", gap.gap), ("gap at equal length", gap.gap_equal_length)]
        if found.bounded is not None:
            wanted.append(("gain from reading the original first", found.bounded.mean))
        rows += [(name, *interval_row(report, k, v, signed=True)) for k, v in wanted]
        lower = interval_row(
            report, "pairs in which it is lower", gap.share_lower, digits=1, unit="%",
            change=as_percent,
        )  # fmt: skip
        rows.append((name, *lower))
        if found.bounded is not None:
            upper, n = number(found.bounded.upper, digits=2), count(found.bounded.n)
            rows.append((name, "ε that holds for 95 of 100 pairs", upper, "", n, "quantile"))
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def decomposition_table(report: ExplainReport, explained: SourceExplanation) -> Table:
    """Return the score gap, its components and the remainder."""
    found = explained.decomposition
    columns = (*interval_table(report, ()).columns[:3], "share of gap", "share of variance",
               "mean", "no difference at", "n", "method")  # fmt: skip
    if found is None:
        return Table(columns=columns, rows=())
    digits = score_digits(found.gap)

    def row(label: str, value: Interval | None, *others: str) -> tuple[str, ...]:
        made = interval_row(report, label, value, digits=digits, signed=True)
        return (*made[:3], *others, *made[3:])

    rows = [row("score gap", found.gap, "100%", share_ends(found.r_squared), "", "")]
    for factor in found.factors:
        part = MISSING if factor.share is None else share_ends(factor.share)
        mark = " (extrapolated)" if factor.extrapolated else ""
        rows.append(
            row(
                f"{factor_name(factor.name)}{mark}",
                factor.component,
                part,
                share_ends(factor.variance_share),
                number(factor.mean, digits=2),
                f"{factor.no_difference:g}",
            )
        )
    rest = found.remainder_share
    rows.append(
        row("remainder", found.remainder, MISSING if rest is None else share_ends(rest),
            "", "", "")
    )  # fmt: skip
    return Table(columns=columns, rows=tuple(rows))
