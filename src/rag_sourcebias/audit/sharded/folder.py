"""Where an audit over shards keeps what it has done, so that a killed one goes on from there."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.arrays import map_array, read_arrays

__all__ = ["Arrays", "WorkFolder", "identity"]

_REMEDY = "delete it and start again to redo it"
_MARK = "work-folder"
Arrays = dict[str, npt.NDArray[Any]]


def identity(*parts: object) -> str:
    """Return a short name for everything that changes what is stored under it."""
    return blake2b(json.dumps([str(part) for part in parts]).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """One file per shard and step, complete or absent.

    All workers read and write it: on several machines it lies on storage that they share.

    Parameters
    ----------
    path : Path
        Created on first use.
    root : Path, optional
        The whole work folder, which is not created where it is missing.
    mark : str, optional
        What a file in it says: another folder may lie under its path on another machine.
    """

    path: Path
    root: Path | None = None
    mark: str = ""

    @classmethod
    def opened(cls, path: Path) -> WorkFolder:
        """Return a work folder by which workers can tell whether they see the same one.

        Raises
        ------
        DataError
            If it cannot be created or read.
        """
        file = path / _MARK
        try:
            path.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError), file.open("x", encoding="utf-8") as stream:
                stream.write(uuid4().hex)
            return cls(path, path, file.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise _unwritable(file, error) from error

    def sub(self, *names: str) -> WorkFolder:
        """Return a folder within."""
        return replace(self, path=self.path.joinpath(*names))

    def file(self, index: int, ending: str) -> Path:
        """Return the file of a shard."""
        return self.path / f"{index:06d}.{ending}"

    def write_array(self, index: int, values: npt.NDArray[Any]) -> None:
        """Store one array for a shard."""
        self._write(self.file(index, "npy"), lambda file: np.save(file, values))

    def write_arrays(self, index: int, values: Mapping[str, npt.NDArray[Any]]) -> None:
        """Store several arrays for a shard."""
        self._write(
            self.file(index, "npz"), lambda file: np.savez(file, allow_pickle=False, **dict(values))
        )

    def map_array(self, index: int) -> npt.NDArray[Any]:
        """Return the array of a shard, read from disk where it is used.

        Raises
        ------
        DataError
            If the file is missing or damaged.
        """
        return map_array(self.file(index, "npy"), remedy=_REMEDY)

    def read_arrays(self, index: int) -> Arrays:
        """Return the arrays of a shard.

        Raises
        ------
        DataError
            If the file is missing or damaged.
        """
        return read_arrays(self.file(index, "npz"), remedy=_REMEDY)

    def _check_root(self) -> None:
        if self.root is None:
            return
        seen = None
        with suppress(OSError):
            seen = (self.root / _MARK).read_text(encoding="utf-8", errors="replace")
        if seen != self.mark:
            what = "missing" if seen is None else "another folder"
            raise DataError(
                f"work folder {self.root} is {what} on {platform.node()}: all machines must "
                "see it under this path; put it on storage that they share"
            )

    def _write(self, path: Path, save: Callable[[IO[bytes]], None]) -> None:
        self._check_root()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # Two workers may do one shard, when the first was taken for lost: the last one wins.
            handle, name = tempfile.mkstemp(dir=self.path, prefix=".unfinished-")
            try:
                with os.fdopen(handle, "wb") as file:
                    save(file)
                Path(name).replace(path)
            finally:
                Path(name).unlink(missing_ok=True)
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path} cannot be written: {error.strerror or error}; choose another work folder"
    )
