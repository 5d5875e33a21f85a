"""Import a framework, or say how to install it."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rag_sourcebias.core.errors import MissingExtraError, import_extra

require = import_extra


@cache  # reads a file; what raises is tried again
def outside(package: str, *, extra: str, at_least: str, below: str) -> str:
    """Return what is to be said of a distribution that is too old or too new; "" for others.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        found = version(package)
    except PackageNotFoundError as error:
        raise MissingExtraError(
            package=package, extra=extra, feature=f"instrumenting {package}"
        ) from error
    if _numbers(found) < _numbers(at_least):
        return (
            f"{package} {found} is too old; rag-sourcebias works with {at_least} or newer: "
            f"pip install -U '{package}>={at_least}'"
        )
    if below and _numbers(found) >= _numbers(below):
        return f"{package} {found} is newer than what rag-sourcebias was tested with (<{below})"
    return ""


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; pre-release marks are ignored."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+", maxsplit=1)[0])[:3])
