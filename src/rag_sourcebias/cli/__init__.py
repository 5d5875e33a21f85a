"""The command line: one module per command group."""

from rag_sourcebias.cli.app import main

__all__ = ["main"]
