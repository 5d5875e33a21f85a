"""The search, the training runs and the methods as tables of text."""

from __future__ import annotations

from rag_sourcebias.report.debias.names import (
    KINDS,
    delta_ends,
    loss,
    quality_names,
    weight_text,
)
from rag_sourcebias.report.debias.search_plots import searched_name
from rag_sourcebias.report.format import (
    MISSING,
    count,
    delta,
    interval,
    number,
    p_value,
    score,
    share,
)
from rag_sourcebias.report.tables import Table
from rag_sourcebias.types.debias import DebiasPoint, DebiasSearch
from rag_sourcebias.types.debias_report import DebiasMethod, DebiasReport
from rag_sourcebias.types.debias_training import TrainingHistory
from rag_sourcebias.types.intervals import Interval

__all__ = [
    "method_table",
    "refused_table",
    "search_sentence",
    "search_table",
    "steps_table",
    "training_table",
]


def search_table(report: DebiasReport, search: DebiasSearch) -> Table:
    """Return the curves of a search as numbers."""
    names = quality_names(report)
    rows = [
        (
            weight_text(p.weight),
            delta_ends(p.relative_delta),
            *(_scored(q) for q in (p.human_only, p.llm_only, p.mixed)),
            p_value(p.p_value),
            p_value(p.p_adjusted),
            _standing(search, p),
        )
        for p in search.points
    ]
    columns = (searched_name(report), "Relative Δ", *names.values(), "p", "adjusted p", "")
    return Table(columns=columns, rows=tuple(rows))


def _scored(found: Interval) -> str:
    return f"{score(found.estimate)} {interval(found, scale=100)}"


def _standing(search: DebiasSearch, point: DebiasPoint) -> str:
    if point.weight == 0:
        return "unchanged"
    if point.weight == search.chosen:
        return "chosen"
    return "admitted" if point.admitted else "refused"


def refused_table(report: DebiasReport, search: DebiasSearch) -> Table:
    """Return why weights were refused."""
    rows = tuple(
        (weight_text(p.weight), p.refusal or "no reason given")
        for p in search.points
        if not p.admitted
    )
    return Table(columns=(searched_name(report), "refused because"), rows=rows)


def search_sentence(report: DebiasReport, search: DebiasSearch) -> str:
    """Return what a search found."""
    what = searched_name(report)
    n = len(search.points)
    runs = f", {search.n_seeds} seeds each" if search.n_seeds > 1 else ""
    where = f" on {report.search_data}" if report.search_data else ""
    text = f"{n} values of {what} were tried{where}{runs}. "
    if search.chosen is not None:
        text += f"Chosen is {weight_text(search.chosen)}"
        if search.chosen_relative_delta is not None:
            text += f", with Relative Δ {delta_ends(search.chosen_relative_delta)}"
        text += ": among those that lose less than "
        text += f"{loss(search.relative_margin)} of every quality, the one nearest the target."
    else:
        text += f"None was chosen: {search.refusal or 'no value was admitted'}."
    crossing = search.zero_crossing
    if crossing is not None:
        text += (
            f" Relative Δ meets the target at {crossing.estimate:.2g} "
            f"[{crossing.lower:.2g}, {crossing.upper:.2g}]."
        )
    if search.split:
        text += " Choice and curve rest on different queries."
    return text


def training_table(report: DebiasReport) -> Table:
    """Return every training run in one row."""
    rows = []
    for run in report.training:
        deltas = [p.relative_delta for p in run.points if p.relative_delta is not None]
        hinges = [p.hinge_share for p in run.points if p.hinge_share is not None]
        rows.append(
            (
                run.name,
                f"{weight_text(run.debias_weight)}, seed {run.seed}",
                count(run.n_pairs),
                count(run.n_steps),
                f"{number(run.seconds, digits=0)} s",
                _from_to(delta(deltas[0]), delta(deltas[-1])) if deltas else MISSING,
                _from_to(share(hinges[0]), share(hinges[-1])) if hinges else MISSING,
                run.stopped or "ran to its end",
            )
        )
    columns = ("system", "weight", "triples", "steps", "time", "Relative Δ", "hinge > 0", "end")
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def _from_to(first: str, last: str) -> str:
    return f"{first} → {last}"


def steps_table(report: DebiasReport) -> Table:
    """Return every evaluation of every training run."""
    rows = []
    for run in report.training:
        for p in run.points:
            losses = [MISSING if v is None else f"{v:.4g}" for v in (p.rank_loss, p.debias_loss)]
            scores = [MISSING if v is None else score(v) for v in (p.baseline, p.other)]
            rows.append(
                (
                    f"{run.name}, weight {weight_text(run.debias_weight)}, seed {run.seed}",
                    count(p.step),
                    *losses,
                    MISSING if p.hinge_share is None else share(p.hinge_share),
                    MISSING if p.relative_delta is None else delta(p.relative_delta),
                    *scores,
                )
            )
    columns = (
        "run",
        "step",
        "ranking loss",
        "weighted debias loss",
        "hinge > 0",
        "Relative Δ",
        f"{report.config.baseline_source}",
        "other",
    )
    return Table(columns=columns, rows=tuple(rows), n_heads=2)


def method_table(report: DebiasReport, method: DebiasMethod) -> Table:
    """Return what was done to one system."""
    rows = [
        ("kind", KINDS.get(method.kind, method.kind)),
        ("fitted on", method.fitted_on or "not known"),
        ("pairs", "not known" if method.n_pairs is None else count(method.n_pairs)),
        ("encode cost", _cost(method)),
        ("judged pairs seen in fitting", _seen(report, method)),
        *((str(k), str(v)) for k, v in method.settings.items()),
    ]
    return Table(columns=(method.name, ""), rows=tuple(rows))


def _cost(method: DebiasMethod) -> str:
    if method.encode_cost is None:
        return "not measured"
    return f"{number(100 * (method.encode_cost - 1), signed=True)}% of the time before"


def _seen(report: DebiasReport, method: DebiasMethod) -> str:
    parts = [
        f"{count(o.n_seen)} of {count(d.n_pairs)} on {d.data.name}"
        for d in report.datasets
        for o in d.outcomes[1:]
        if o.name == method.name
    ]
    return "; ".join(parts) or "not judged"


def run_settings(run: TrainingHistory) -> str:
    """Return the settings of a training run on one line."""
    return "; ".join(f"{k} = {v}" for k, v in run.settings.items()) or MISSING
