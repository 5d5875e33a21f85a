"""How a shadowed object is switched, rolled back and closed, whatever framework it is of."""

from __future__ import annotations

from typing import Any

from rag_sourcebias.instrument.shadow import ShadowComparison
from rag_sourcebias.instrument.shadow_runner import ShadowRunner, Side

__all__ = ["ShadowControls"]


class ShadowControls:
    """What every shadowed object offers; a class that has it sets ``_runner``."""

    _runner: ShadowRunner[Any]

    @property
    def comparison(self) -> ShadowComparison:
        """What was found so far; failures and drops are counted in its ``dropped``."""
        return self._runner.comparison

    @property
    def active(self) -> Side:
        """Which one answers: "current" or "candidate"."""
        return self._runner.active

    def switch(self) -> None:
        """Let the candidate answer from the next query on; the current one becomes the shadow."""
        self._runner.switch()

    def roll_back(self) -> None:
        """Let the current one answer again."""
        self._runner.roll_back()

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until all queries so far were compared; False when ``timeout`` seconds passed."""
        return self._runner.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> None:
        """Compare no more, and wait up to ``timeout`` seconds; the active one goes on answering."""
        self._runner.close(timeout)
