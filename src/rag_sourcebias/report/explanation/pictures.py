"""All pictures of one source, by section of the page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rag_sourcebias.report.explanation.gap_plot import gap_plot
from rag_sourcebias.report.explanation.histogram_plot import Drawn, histogram_plot
from rag_sourcebias.report.explanation.map_plot import map_caption, map_plot
from rag_sourcebias.report.explanation.names import base_of, model_name, names_of
from rag_sourcebias.report.explanation.spectrum_plot import spectrum_caption, spectrum_plot
from rag_sourcebias.report.page import Figures
from rag_sourcebias.types.explain_report import (
    ExplainReport,
    Histogram,
    ModelPerplexity,
    SourceExplanation,
)

__all__ = ["pictures"]


def pictures(
    report: ExplainReport, explained: SourceExplanation, uid: Iterator[str]
) -> dict[str, Figures]:
    """Return pictures by section; ``uid`` yields a new prefix of ids each time."""
    base = base_of(report)
    found: dict[str, Figures] = {"texts": [], "vectors": [], "perplexity": [], "gap": []}
    for title, label, histogram in (
        ("Jaccard index", "words in both / words in either", explained.texts.jaccard),
        (f"Overlap with the {base} text", f"words in both / words of {base}",
         explained.texts.overlap),
    ):  # fmt: skip
        found["texts"].append((title, partial(_single, histogram, label, title, next(uid))))
    if explained.spectrum is not None:
        picture = partial(spectrum_plot, report, explained, uid=next(uid))
        found["vectors"].append((spectrum_caption(explained.spectrum), picture))
    if explained.map is not None:
        picture = partial(map_plot, report, explained, uid=next(uid))
        found["vectors"].append((f"Map: {map_caption(explained.map)}", picture))
    if explained.cosine is not None:
        title = "Cosine of the two versions of a document"
        picture = partial(_single, explained.cosine, "cosine", title, next(uid), digits=3)
        found["vectors"].append((title, picture))
    for model in explained.perplexity:
        title = f"{model_name(model)}, {model.kind}"
        found["perplexity"].append(
            (title, partial(_perplexity, report, explained, model, title, next(uid)))
        )
    if explained.decomposition is not None:
        title = "The score gap and its parts"
        found["gap"].append((title, partial(gap_plot, report, explained, uid=next(uid))))
    return found


def _single(found: Histogram, label: str, title: str, uid: str, *, digits: int = 2) -> str:
    drawn = Drawn(name="", found=found, side="even")
    return histogram_plot([drawn], label=label, uid=uid, title=title, digits=digits)


def _perplexity(
    report: ExplainReport,
    explained: SourceExplanation,
    model: ModelPerplexity,
    title: str,
    uid: str,
) -> str:
    shown = [
        Drawn(name=base_of(report), found=model.human, side="baseline"),
        Drawn(name=names_of(report)[explained.source], found=model.other, side="other"),
    ]
    label = "log-perplexity, nats per token"
    return histogram_plot(shown, label=label, uid=uid, title=title)
