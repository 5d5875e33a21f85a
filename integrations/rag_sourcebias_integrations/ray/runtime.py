"""Ray itself: started here, joined, or found running in this process."""

from __future__ import annotations

import math
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from uuid import uuid4

from rag_sourcebias.errors import DataError, MissingExtraError
from rag_sourcebias_integrations._require import require
from rag_sourcebias_integrations.ray.orphans import MARK, Watch

__all__ = ["load_ray", "quiet", "reach", "session", "start", "stop", "unreported"]

_watched: list[Watch] = []
_FEATURE = "the Ray engine"
_PATIENCE = 5.0  # seconds for the first answer of a cluster
# Statistics of use would go to Ray's makers.
_UNREPORTED = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DATA_USAGE_DISABLED": "1"}
# What Ray would write to standard error, or take from an environment of uv.
_SILENT = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


def load_ray() -> None:
    """Import Ray and Ray Data.

    Raises
    ------
    MissingExtraError
        If either is not installed.
    """
    with quiet():
        require("ray", package="ray", extra="ray", feature=_FEATURE)
        try:
            import ray.data  # noqa: F401
        except ImportError as error:
            if error.name not in ("pyarrow", "pandas", "fsspec"):
                raise
            raise MissingExtraError(package="ray[data]", extra="ray", feature=_FEATURE) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Ray's warnings about itself from the caller, who cannot act on them."""
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        yield


@contextmanager
def unreported() -> Iterator[None]:
    """Keep Ray from collecting statistics of use, unless the caller asked for them; see quiet."""
    with quiet(), _environment(_UNREPORTED):
        yield


def start(address: str | None, cpus: float | None) -> bool:
    """Make sure that Ray runs in this process.

    Parameters
    ----------
    address : str or None
        Cluster to join, ``host:port`` or "auto"; None joins what ``RAY_ADDRESS`` names and
        otherwise starts Ray on this machine, with as many CPUs as the workers need.
    cpus : float or None
        None for all.

    Returns
    -------
    bool
        False if it ran already: it then is the caller's, whatever its address.

    Raises
    ------
    DataError
        If the cluster does not answer.
    """
    import ray

    if ray.is_initialized():
        return False
    wanted = address or os.environ.get("RAY_ADDRESS") or None
    if wanted is None:
        _start_here(cpus)
        return True
    with unreported(), _environment(_SILENT):
        reach(wanted)
        try:
            ray.init(address=wanted, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError) as error:
            if "Authentication" in f"{error} {error.__cause__}":
                raise DataError(
                    f"the Ray cluster at {wanted!r} does not let this process in; give it the "
                    "cluster's token (RAY_AUTH_MODE=token, RAY_AUTH_TOKEN_PATH)"
                ) from error
            raise DataError(f"no Ray cluster answers at {wanted!r}: {error}") from error
    return True


def _start_here(cpus: float | None) -> None:
    import ray

    mark = uuid4().hex
    _watched.append(Watch(mark))
    try:
        with unreported(), _environment({**_SILENT, MARK: mark}):
            ray.init(
                address="local",
                num_cpus=None if cpus is None else math.ceil(cpus),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                _node_ip_address="127.0.0.1",
            )
    except BaseException:
        _watched.pop().close()
        raise


def session() -> str | None:
    """Return what tells one start of Ray in this process from another; None where it is off."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else None


def stop() -> None:
    """Leave the cluster, or end what was started on this machine."""
    import ray

    with quiet():
        ray.shutdown()
    while _watched:
        _watched.pop().close()


def reach(address: str) -> None:
    """Connect once: Ray itself would try for minutes and then end the process."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise DataError(
            f"Ray address {address!r} is not understood; expected host:port of the head node "
            "(such as 10.0.0.5:6379) or 'auto'"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise DataError(
            f"no Ray cluster answers at {address!r} ({error}); start one with "
            "ray start --head, or leave the address out to use this machine"
        ) from error


@contextmanager
def _environment(wanted: Mapping[str, str]) -> Iterator[None]:
    """Set variables that are not set, and remove them again."""
    ours = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name, None)
