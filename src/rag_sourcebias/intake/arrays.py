"""NumPy files, believed only as far as their size bears them out: no pickles, no huge shapes."""

import io
import math
import os
import zipfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.core.codec import REMEDY, PathLike, check_file, sound
from rag_sourcebias.intake.files import check_unpacked, open_file

Array = npt.NDArray[Any]

_KIND = "a complete .npy file of numbers, as numpy.save writes it"


def map_array(path: PathLike, *, remedy: str = REMEDY) -> Array:
    """Return the array of an ``.npy`` file, read from disk where it is used.

    Raises
    ------
    DataError
        If the file is missing, damaged, holds a pickle, or has another size than it says.
    """
    size = check_file(path).st_size
    with sound(path, _KIND, remedy=remedy):
        array = np.lib.format.open_memmap(path, mode="r")
        if array.offset + array.nbytes != size:
            raise ValueError(f"it is longer than an array of shape {array.shape}")
        return array


def read_arrays(
    path: PathLike,
    *,
    content: bytes | None = None,
    expected: str = "a complete .npz file, as numpy.savez writes it",
    remedy: str = REMEDY,
) -> dict[str, Array]:
    """Read all arrays of an ``.npz`` file.

    Parameters
    ----------
    path : path
    content : bytes, optional
        What the file holds, where it was read already.
    expected, remedy : str
        What the file should be and what to do about a damaged one, for the message.

    Raises
    ------
    DataError
        If the file is missing, damaged, holds a pickle, unpacks to far more than it takes, or an
        array has another size than it says.
    """
    opened = open_file(path) if content is None else io.BytesIO(content)
    with sound(path, expected, remedy=remedy), opened as stream, zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        check_unpacked(
            path,
            unpacked=sum(member.file_size for member in members),
            packed=stream.seek(0, os.SEEK_END),
        )
        found: dict[str, Array] = {}
        for member in members:
            with archive.open(member) as data:
                found[member.filename.removesuffix(".npy")] = _array(data, member.file_size)
        return found


def _array(stream: IO[bytes], size: int) -> Array:
    """Read an array from a file of that many bytes."""
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"it has version {version}; expected 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which only a pickle can give back")
    declared = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or declared != size - stream.tell():
        raise ValueError(f"shape {shape} of {dtype} takes other bytes than there are")
    return np.ndarray(shape, dtype, bytearray(stream.read()), order="F" if fortran else "C")
