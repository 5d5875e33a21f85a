"""A detector as a tagger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike
from rag_sourcebias.tagging.detector.features import Perplexity
from rag_sourcebias.tagging.detector.files import load_detector
from rag_sourcebias.tagging.detector.model import Decision, Detector
from rag_sourcebias.types.documents import DocTags

__all__ = ["DetectorTagger"]


class DetectorTagger:
    """Tag the source or style of texts that the detector is sure enough about.

    Put it last: what is declared is better known than what is guessed. For many documents
    :meth:`tag_many` is quicker than one call each.

    Parameters
    ----------
    detector : Detector

    Raises
    ------
    DataError
        If the detector decides nothing at all.
    """

    def __init__(self, detector: Detector) -> None:
        if detector.threshold is None:
            raise DataError(
                f"this detector keeps an error of {detector.max_error:g} at no threshold, so that "
                "every document would stay unknown; label more documents or fit it with a larger "
                "max_error"
            )
        self.detector = detector

    @classmethod
    def load(cls, folder: PathLike, *, perplexity: Perplexity | None = None) -> DetectorTagger:
        """Read the detector of a folder; see :func:`load_detector`."""
        return cls(load_detector(folder, perplexity=perplexity))

    @property
    def fingerprint(self) -> str:
        """Identity of everything that changes the tags."""
        return self.detector.fingerprint

    def __call__(
        self,
        doc_id: str,  # noqa: ARG002 - what every tagger gets
        text: str,
        metadata: Mapping[str, object],  # noqa: ARG002
    ) -> DocTags | None:
        """Tags of one document; None where they are unknown."""
        return self.tag_many([text])[0]

    def tag_many(self, texts: Sequence[str]) -> list[DocTags | None]:
        """Tags of texts, in order; the same as of each alone."""
        return [self._tags(decision) for decision in self.detector.decide(texts)]

    def _tags(self, decision: Decision) -> DocTags | None:
        if decision.label is None:
            return None
        if self.detector.target == "style":  # origin and confidence are those of the source
            return DocTags(style=decision.label)
        return DocTags(source=decision.label, origin="detected", confidence=decision.confidence)
