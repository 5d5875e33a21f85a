"""What the parts of the contract share: hooks may be implemented, tests may not be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

__all__ = ["ContractKit"]


class ContractKit:
    """Base of the contract classes.

    A subclass that replaces a test of the kit, or declares something unsupported without a
    reason, is refused when it is defined: an adapter that passes has passed all of it.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset()
    unsupported: ClassVar[Mapping[str, str]] = {}
    """Capabilities the framework does not have, each with the reason; their tests are skipped."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__module__.startswith("rag_sourcebias.testing."):
            return
        inherited = {
            name
            for base in cls.__mro__[1:]
            if base.__module__.startswith("rag_sourcebias.testing.")
            for name in vars(base)
            if name.startswith("test_")
        }
        replaced = sorted(inherited & vars(cls).keys())
        if replaced:
            raise TypeError(f"{cls.__name__} replaces {', '.join(replaced)} of the contract")
        for name, reason in cls.unsupported.items():
            if name not in cls.capabilities:
                raise TypeError(
                    f"{cls.__name__}: {name!r} is no capability; there are "
                    f"{', '.join(sorted(cls.capabilities))}"
                )
            if not reason.strip():
                raise TypeError(f"{cls.__name__}: say why {name!r} is not supported")

    def need(self, capability: str) -> None:
        """Skip the running test where the framework lacks something, with the reason."""
        if capability in self.unsupported:
            pytest.skip(f"{capability}: {self.unsupported[capability]}")
