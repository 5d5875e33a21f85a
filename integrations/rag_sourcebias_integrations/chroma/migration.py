"""A collection and its copy under another encoder, ready to take its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from rag_sourcebias.errors import DataError

__all__ = ["BEFORE", "Migration"]

BEFORE = "--before-"


@dataclass(slots=True, kw_only=True)
class Migration:
    """A verified copy of a collection; the original is in use until :meth:`switch`.

    Parameters
    ----------
    client : chromadb client
    name : str
        Name that applications open.
    old, new : chromadb.Collection
        The original, and its copy under the new encoder.
    n_documents : int
    keep_old : bool
        Whether the original is kept, under another name, after the switch.
    state : {"ready", "switched", "rolled back"}
    """

    client: Any
    name: str
    old: Any
    new: Any
    n_documents: int
    keep_old: bool = True
    state: Literal["ready", "switched", "rolled back"] = "ready"
    shadow_name: str = field(init=False)

    def __post_init__(self) -> None:
        self.shadow_name = self.new.name

    def switch(self) -> Any:  # noqa: ANN401 - a chromadb collection
        """Let the copy take the name, and return it; the original is renamed or deleted.

        Applications that are running keep the collection they opened: restart them.

        Raises
        ------
        DataError
            If it was switched before, or documents were added or deleted since the copy was
            verified, or a name is taken (the original then has its name again).
        """
        if self.state != "ready":
            raise DataError(f"the migration of {self.name!r} is {self.state}, not ready")
        counts = self.old.count(), self.new.count()
        if counts[0] != counts[1]:
            raise DataError(
                f"collection {self.name!r} holds {counts[0]} documents, its copy {counts[1]}: it "
                "changed since; run the migration again, it goes on where it was"
            )
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self._exchange(
            (self.old, self.name, f"{self.name}{BEFORE}{stamp}"),
            (self.new, self.shadow_name, self.name),
        )
        self.state = "switched"
        if not self.keep_old:
            self.client.delete_collection(self.old.name)
        return self.new

    def roll_back(self) -> Any:  # noqa: ANN401 - a chromadb collection
        """Give the original its name again, and return it; the copy gets its former name.

        Raises
        ------
        DataError
            If it was not switched, or the original was not kept.
        """
        if self.state != "switched":
            raise DataError(f"the migration of {self.name!r} is {self.state}, not switched")
        if not self.keep_old:
            raise DataError(
                f"the original of {self.name!r} was deleted (keep_old=False) and cannot come back"
            )
        self._exchange(
            (self.new, self.name, self.shadow_name), (self.old, self.old.name, self.name)
        )
        self.state = "rolled back"
        return self.old

    def _exchange(self, first: tuple[Any, str, str], second: tuple[Any, str, str]) -> None:
        """Rename both collections, or neither."""
        collection, before, after = first
        self._rename(collection, after)
        try:
            self._rename(second[0], second[2])
        except BaseException:
            collection.modify(name=before)
            raise

    @staticmethod
    def _rename(collection: Any, name: str) -> None:  # noqa: ANN401
        rename: Callable[..., None] = collection.modify
        try:
            rename(name=name)
        except Exception as error:  # of which kind depends on the client
            raise DataError(
                f"collection {collection.name!r} cannot be renamed to {name!r} ({error!s:.200})"
            ) from error
