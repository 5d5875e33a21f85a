"""``tag fit``: learn to tell sources or styles from labelled documents."""

from __future__ import annotations

from rag_sourcebias.cli import tag_fit_options as opt
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.console import err, stages
from rag_sourcebias.cli.tag_fit_inputs import read_labelled
from rag_sourcebias.cli.tag_fit_result import show_detector
from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.detector import check_detector_folder, fit_detector, save_detector

__all__ = ["fit"]

_INTERRUPTED = 130


def fit(
    labelled: opt.LabelledPath,
    *,
    out: opt.Out,
    target: opt.Target = "source",
    text_column: opt.TextColumn = None,
    label_column: opt.LabelColumn = None,
    group_column: opt.GroupColumn = None,
    id_column: opt.IdColumn = None,
    one_llm: opt.OneLlm = False,
    max_error: opt.MaxError = 0.05,
    seed: opt.Seed = 0,
) -> None:
    r"""Learn to tell sources or styles from documents that you labelled.

    Label at least 20 documents of every source, better several hundred, out of your own corpus.
    The table it prints is of documents that the model had not seen; it is stored beside the model,
    with what is needed to correct a measured skew for wrong tags.

    Needs scikit-learn: pip install 'rag-sourcebias\[detector]'

    [bold]Examples[/]

        rag-sourcebias tag fit labelled.csv --out detector

        rag-sourcebias tag fit essays.jsonl --group-column prompt --one-llm --out detector

        rag-sourcebias tag fit labelled.parquet --target style --label-column tone --out styles

    Then: rag-sourcebias tag apply --store chroma:./db --detector detector
    """
    kind = choice("target", target, ("source", "style"))
    if one_llm and kind != "source":
        raise DataError("--one-llm goes with --target source")
    check_detector_folder(out)
    data = read_labelled(
        labelled,
        target=kind,
        text=text_column,
        label=label_column,
        group=group_column,
        id=id_column,
    )
    if one_llm:
        data = data.with_one_llm()
    try:
        with stages() as progress:
            progress.begin(f"learning {kind}s from {len(data.documents):,} documents")
            detector = fit_detector(
                data.documents,
                target=kind,
                groups=data.groups,
                rng=seed,
                max_error=max_error,
                on_progress=progress.advance,
            )
    except KeyboardInterrupt:
        err.print("\ninterrupted: no detector was written", soft_wrap=True)
        raise SystemExit(_INTERRUPTED) from None
    save_detector(detector, out)
    show_detector(detector, grouped_by=data.grouped_by)
    err.print(f"detector: {out}", highlight=False, soft_wrap=True)
