"""Where a judge asks from: this process, or the workers of an engine."""

from __future__ import annotations

from dataclasses import dataclass

from rag_sourcebias.adapters import engine_factory
from rag_sourcebias.cli import judge_options as opt
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.cli.judge_models import Asking
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Engine

__all__ = ["Where"]

_ENGINES = ("local", "ray")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Options of the workers."""

    engine: opt.EngineName = "local"
    workers: opt.Workers = None
    address: opt.Address = None

    def engine_of(self, asking: Asking) -> Engine | None:
        """Return the engine that asks; None for this process.

        Raises
        ------
        DataError
            If an option does not go with the engine.
        """
        if choice("engine", self.engine, _ENGINES) == "local":
            if self.workers is not None or self.address is not None:
                raise DataError("--workers and --address are of --engine ray")
            return None
        if asking.max_cost is not None:
            raise DataError(
                "--max-cost cannot be kept by several workers, each of which knows only what it "
                "spent; use --engine local, or --dry-run to see the cost"
            )
        return engine_factory(self.engine)(workers=self.workers, address=self.address)
