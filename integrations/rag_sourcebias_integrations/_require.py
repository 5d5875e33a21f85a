"""Import a framework, or say how to install it."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rag_sourcebias.core.errors import MissingExtraError, UnsupportedVersionError, import_extra

require = import_extra


@cache  # reads a file; what raises is tried again
def require_version(package: str, *, extra: str, at_least: str) -> None:
    """Check that a distribution is installed and not too old.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    UnsupportedVersionError
        If its version is below ``at_least``.
    """
    try:
        found = version(package)
    except PackageNotFoundError as error:
        raise MissingExtraError(
            package=package, extra=extra, feature=f"instrumenting {package}"
        ) from error
    if _numbers(found) < _numbers(at_least):
        raise UnsupportedVersionError(
            f"{package} {found} is too old; rag-sourcebias works with {at_least} or newer: "
            f"pip install -U '{package}>={at_least}'"
        )


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version; pre-release marks are ignored."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+", maxsplit=1)[0])[:3])
