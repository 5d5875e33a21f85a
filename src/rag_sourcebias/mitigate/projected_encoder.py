"""An encoder whose vectors are projected as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.mitigate.projection import SourceProjection
from rag_sourcebias.protocols import Encoder
from rag_sourcebias.types.arrays import Float32Array

__all__ = ["ProjectedEncoder"]


class ProjectedEncoder:
    """An encoder followed by a :class:`SourceProjection`.

    Parameters
    ----------
    encoder : Encoder
        May be cached: its own vectors are what the cache holds, whatever the strength.
    projection : SourceProjection
        With ``sides="documents"``, queries are left as they are.
    name : str, optional
        Name in reports; the encoder's with ``"+projection"`` by default.

    Raises
    ------
    DataError
        If the projection was fitted on vectors of another encoder.
    """

    def __init__(
        self, encoder: Encoder, projection: SourceProjection, *, name: str | None = None
    ) -> None:
        if projection.encoder and projection.encoder != encoder.fingerprint:
            raise DataError(
                f"the projection was fitted on vectors of {projection.encoder!r}, but encoder "
                f"{encoder.name!r} is {encoder.fingerprint!r}; fit one on its own vectors"
            )
        self.name = name or f"{encoder.name}+projection"
        self.encoder = encoder
        self.projection = projection

    @property
    def fingerprint(self) -> str:
        """Fingerprints of the encoder and of the projection."""
        return f"{self.encoder.fingerprint}|projection:{self.projection.fingerprint}"

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of the encoder and of the projection."""
        found = self.projection
        return {
            **self.encoder.settings,
            "projection": f"{found.method}, {found.directions.shape[1]} direction(s), strength "
            f"{found.strength:g}, {found.sides}, fitted on {found.n_pairs} pairs",
        }

    def encode_queries(self, texts: Sequence[str]) -> Float32Array:
        """Encode the query side, projected unless only documents are."""
        vectors = self.encoder.encode_queries(texts)
        return vectors if self.projection.sides == "documents" else self.projection.apply(vectors)

    def encode_documents(self, texts: Sequence[str]) -> Float32Array:
        """Encode the document side, projected; shape (len(texts), d)."""
        return self.projection.apply(self.encoder.encode_documents(texts))
