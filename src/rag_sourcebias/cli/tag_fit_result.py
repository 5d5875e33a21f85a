"""What ``tag fit`` prints."""

from __future__ import annotations

from rich.table import Table

from rag_sourcebias.cli.console import out
from rag_sourcebias.tagging.detector import Detector, DetectorReport, Rate

__all__ = ["show_detector"]

_WEAK = 0.3  # sensitivity + specificity − 1 below which skew cannot be corrected for tag errors
_LEFT_OUT = {
    "unlabelled": "without a label",
    "empty": "without text",
    "repeated": "repeating another",
    "contradictory": "whose text has two labels",
}


def show_detector(detector: Detector, *, grouped_by: str) -> None:
    """Print what a detector does to documents it has not seen."""
    report = detector.report
    out.print(_labels_table(detector))
    left = [f"{n:,} {_LEFT_OUT[why]}" for why, n in report.left_out.items() if n]
    _say(
        f"{report.n_documents:,} documents in {report.n_groups:,} groups ({grouped_by}), each "
        f"judged by a model of {report.n_folds - 1} of {report.n_folds} folds that saw neither it "
        "nor its group" + (f"; left out: {', '.join(left)}" if left else "")
    )
    _say(f"wrong, if all were decided   {_rate(report.error_of_all)}")
    _say(
        f"left unknown                 {_rate(report.unknown)}; {report.unlike.hits:,} of them "
        "unlike the other labelled documents"
    )
    if report.error.n:
        _say(
            f"wrong among the decided      {_rate(report.error)}, wanted at most "
            f"{detector.max_error:.1%}"
        )
    _say(
        f"calibration                  Brier score {report.brier:.3f} (0 is perfect), mean "
        f"|accuracy − confidence| {report.calibration_error:.3f}"
    )
    _show_sources(report)
    _warn(detector)


def _labels_table(detector: Detector) -> Table:
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
    return table


def _show_sources(report: DetectorReport) -> None:
    if report.sensitivity is None or report.specificity is None:
        return
    _say(f"LLM texts tagged as LLM      {_rate(report.sensitivity)} of the decided")
    _say(f"human texts tagged as human  {_rate(report.specificity)} of the decided")
    if not (report.sensitivity.n and report.specificity.n):
        return
    if report.sensitivity.lower + report.specificity.lower - 1 < _WEAK:
        _say(
            "Warning: too weak or too little tested to correct a measured skew for its errors; "
            "label more documents"
        )


def _warn(detector: Detector) -> None:
    if detector.threshold is None:
        _say(
            f"Warning: no threshold keeps an error of {detector.max_error:.1%}, so this detector "
            "leaves every document unknown; label more documents or raise --max-error"
        )
    if not detector.linear.converged:
        _say("Warning: the fit stopped before it converged; the figures above are of that fit")
    _say(
        "• the figures hold for documents like the labelled ones, with labels about as frequent; "
        "on other topics, genres or models a detector does worse: check some by hand"
    )


def _rate(rate: Rate) -> str:
    if not rate.n:
        return "no document"
    return f"{rate.value:.1%} [{rate.lower:.1%}, {rate.upper:.1%}] ({rate.hits:,} of {rate.n:,})"


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)
