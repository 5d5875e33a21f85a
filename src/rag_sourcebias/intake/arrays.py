"""NumPy files, believed only as far as their size bears them out: no pickles, no huge shapes."""

import io
import os
import zipfile
from typing import Any

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
        return {
            member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members
        }


def _array(content: bytes) -> Array:
    """Return the array that an ``.npy`` file holds, over its bytes: no shape asks for more."""
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which only a pickle can give back")
    data = bytearray(stream.read())
    array: Array = np.ndarray(shape, dtype, data, order="F" if fortran else "C")
    if array.nbytes != len(data):
        raise ValueError(f"shape {shape} of {dtype} takes other bytes than there are")
    return array
