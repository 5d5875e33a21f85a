"""Import a framework, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from rag_sourcebias.errors import MissingExtraError

__all__ = ["require"]


def require(module: str, *, package: str, extra: str, feature: str) -> ModuleType:
    """Import ``module``; a framework that is there but broken raises its own error."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(package=package, extra=extra, feature=feature) from error
