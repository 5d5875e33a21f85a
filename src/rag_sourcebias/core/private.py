"""Files and folders that only their owner may read."""

import os
from pathlib import Path

from rag_sourcebias.core.errors import DataError

PRIVATE = 0o600


def check_mode(mode: int) -> int:
    """Return the mode of a file that its owner can read and write.

    Raises
    ------
    DataError
        If it is something else.
    """
    if (
        isinstance(mode, bool)
        or not isinstance(mode, int)
        or mode & ~0o777
        or mode & 0o600 != 0o600
    ):
        raise DataError(
            f"file_mode must let the owner read and write, such as 0o600 or 0o640, got {mode!r}"
        )
    return mode


def create_file(path: Path, mode: int = PRIVATE) -> None:
    """Create an empty file with exactly this mode; one that is there stays as it is.

    Raises
    ------
    OSError
        If it cannot be created.
    """
    try:
        opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except FileExistsError:
        return
    with os.fdopen(opened, "wb"):
        if hasattr(os, "fchmod"):  # whatever the umask says
            os.fchmod(opened, mode)


def create_folder(path: Path, mode: int = PRIVATE) -> None:
    """Create a folder, and those above it that are missing, for who may read files of this mode.

    Raises
    ------
    OSError
        If it cannot be created, or is a file.
    """
    wanted = mode | (mode & 0o444) >> 2
    for folder in reversed([path, *path.parents]):
        if not folder.is_dir():
            folder.mkdir(wanted, exist_ok=True)  # another process may have been faster
            folder.chmod(wanted)  # whatever the umask says
