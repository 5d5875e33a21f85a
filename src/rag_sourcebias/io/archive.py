"""Unpack archives safely."""

from __future__ import annotations

import re
import secrets
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.damage import check_file, check_unpacked, sound
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
        the folder or is a link (then nothing is written), or it
        unpacks to far more than it takes.
    """
    import zipfile

    target = Path(folder)
    if target.exists():
        raise DataError(f"cannot unpack {path}: {target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    size = check_file(path).st_size
    try:
        with sound(path, "a sound zip archive"):
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                for member in members:
                    _refuse_escape(member, path)
                check_unpacked(path, unpacked=sum(m.file_size for m in members), packed=size)
                archive.extractall(temporary)
            temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _refuse_escape(member: zipfile.ZipInfo, path: PathLike) -> None:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or re.match(r"[A-Za-z]:", member.filename):
        raise DataError(f"{path}: member {member.filename!r} points outside the archive; refused")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise DataError(f"{path}: member {member.filename!r} is a link; refused")
