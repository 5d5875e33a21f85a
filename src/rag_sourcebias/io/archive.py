"""Unpack archives safely."""

from __future__ import annotations

import re
import secrets
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike

if TYPE_CHECKING:
    import zipfile

__all__ = ["extract_zip"]


def extract_zip(path: PathLike, folder: PathLike) -> Path:
    """Unpack an archive into a new folder, which appears only when complete.

    Raises
    ------
    DataError
        If the file is not a sound zip archive, the folder exists, or a member would land outside
        the folder or is a link (then nothing is written).
    """
    import zipfile

    target = Path(folder)
    if target.exists():
        raise DataError(f"cannot unpack {path}: {target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                _refuse_escape(member, path)
            archive.extractall(temporary)
        temporary.replace(target)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is not a sound zip archive: {error}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be unpacked to {target}: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _refuse_escape(member: zipfile.ZipInfo, path: PathLike) -> None:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or re.match(r"[A-Za-z]:", member.filename):
        raise DataError(f"{path}: member {member.filename!r} points outside the archive; refused")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"{path}: member {member.filename!r} is a link; refused")
