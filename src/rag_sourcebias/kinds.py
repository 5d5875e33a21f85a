"""Which class reads which kind of stored report."""

from rag_sourcebias.answers.page import AnswerBiasReport
from rag_sourcebias.core.codec import PathLike
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.explain.report import ExplainReport
from rag_sourcebias.judged.page import JudgedReport
from rag_sourcebias.pairs.report import PairReport
from rag_sourcebias.report.render import Report, read
from rag_sourcebias.source.page import SkewReport
from rag_sourcebias.source.shown import ShownReport
from rag_sourcebias.style.page import StyleReport

_KINDS: dict[str | None, tuple[str, type[Report]]] = {
    None: ("skew", SkewReport),  # the first kind there was: it does not say so
    "style": ("style", StyleReport),
    "answers": ("answer", AnswerBiasReport),
    "debias": ("debias", DebiasReport),
    "explain": ("explain", ExplainReport),
    "items": ("judged", JudgedReport),
    "pairs": ("pair", PairReport),
    "shown": ("shown", ShownReport),
    "ranking": ("judged", JudgedReport),
}


def read_report(path: PathLike) -> Report:
    """Read the ``report.json`` of a report of any kind.

    Raises
    ------
    DataError
        If the file is missing, is not JSON, or is not a report.
    UnsupportedVersionError
        If it was written by a release with another schema.
    """
    return read(path, _KINDS)
