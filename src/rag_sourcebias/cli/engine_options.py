"""Options for work that is done shard by shard."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rag_sourcebias.adapters import engine_factory
from rag_sourcebias.audit import LocalEngine
from rag_sourcebias.cli.checks import choice
from rag_sourcebias.errors import DataError
from rag_sourcebias.protocols import Engine

__all__ = ["Scale"]

_SHARD_DOCUMENTS = 8_192
_ENGINES = ("memory", "local", "ray")
_SCALE = "Large corpora"

_Name = Annotated[
    str,
    typer.Option(
        "--engine",
        help="memory: everything at once. local: one shard of the corpus after another, in "
        "bounded memory. ray: shards on all workers of a Ray cluster. The numbers are the same.",
        rich_help_panel=_SCALE,
    ),
]
_Workers = Annotated[
    int | None,
    typer.Option(help="Workers of --engine ray. \\[default: one per core]", rich_help_panel=_SCALE),
]
_Address = Annotated[
    str | None,
    typer.Option(
        help="Ray cluster to use, host:port of its head node, or auto. \\[default: start one on "
        "this machine]",
        rich_help_panel=_SCALE,
    ),
]
_WorkFolder = Annotated[
    Path | None,
    typer.Option(
        "--work-folder",
        help="Where vectors and results of shards are kept; a stopped audit goes on from it. All "
        "workers must see it. \\[default: shards in the cache folder]",
        rich_help_panel=_SCALE,
    ),
]
_ShardDocuments = Annotated[
    int,
    typer.Option(min=1, help="Documents of a shard, a multiple of 1,024.", rich_help_panel=_SCALE),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where and how the shards of a corpus are worked on."""

    engine: _Name = "memory"
    workers: _Workers = None
    address: _Address = None
    work_folder: _WorkFolder = None
    shard_documents: _ShardDocuments = _SHARD_DOCUMENTS

    @property
    def name(self) -> str:
        """Name of the engine.

        Raises
        ------
        DataError
            If there is none of that name, or an option of another engine was given.
        """
        name: str = choice("engine", self.engine, _ENGINES)
        if name != "ray" and (self.workers is not None or self.address is not None):
            raise DataError("--workers and --address are of --engine ray")
        return name

    def started(self) -> Engine:
        """Return the engine for shards; nothing is started before it is needed."""
        if self.name == "local":
            return LocalEngine()
        return engine_factory(self.name)(workers=self.workers, address=self.address)
