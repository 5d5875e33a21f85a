"""NumPy files, believed only as far as their size bears them out: no pickles, no huge shapes."""

import io
import math
import os
import zipfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from rag_sourcebias.intake.files import REMEDY, PathLike, check_unpacked, open_file, sound

Array = npt.NDArray[Any]

_KIND = "a complete .npy file of numbers, as numpy.save writes it"


def read_array(path: PathLike, *, remedy: str = REMEDY) -> Array:
    """Read an ``.npy`` file.

    Parameters
    ----------
    path : path
    remedy : str
        What to do about a damaged file, for the message.

    Raises
    ------
    DataError
        If the file is missing, damaged, holds a pickle, or has another size than it says.
    """
    with sound(path, _KIND, remedy=remedy), open_file(path) as stream:
        return _array(stream, os.fstat(stream.fileno()).st_size)


def map_array(path: PathLike, *, remedy: str = REMEDY) -> Array:
    """Return the array of an ``.npy`` file, read from disk where it is used.

    Raises
    ------
    DataError
        As :func:`read_array`.
    """
    with sound(path, _KIND, remedy=remedy), open_file(path) as stream:
        shape, fortran, dtype = _header(stream, os.fstat(stream.fileno()).st_size)
        if not math.prod(shape):
            return np.empty(shape, dtype)
        return np.memmap(
            path, dtype, "r", stream.tell(), shape=shape, order="F" if fortran else "C"
        )


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
    shape, fortran, dtype = _header(stream, size)
    return np.ndarray(shape, dtype, bytearray(stream.read()), order="F" if fortran else "C")


def _header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read what an array is, of a file of that many bytes, and leave the stream at its numbers."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"it has version {version}; expected 1.0 or 2.0")
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which only a pickle can give back")
    declared = math.prod(shape) * dtype.itemsize
    left = size - stream.tell()
    if min(shape, default=0) < 0 or not dtype.itemsize or declared != left:
        raise ValueError(f"shape {shape} of {dtype} takes {declared} bytes, there are {left}")
    return shape, fortran, dtype
