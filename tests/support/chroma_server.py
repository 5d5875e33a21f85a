"""A real Chroma server in a process of its own."""

import gc
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chroma_server(folder: Path) -> Iterator[int]:
    """Serve a folder; gives the port."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        # Chroma keeps its HTTP clients in a cache of the process and never closes them.
        for client in gc.get_objects():
            if type(client) is httpx.Client:  # isinstance would wake lazy objects of torch
                client.close()
        process.terminate()
        process.wait(timeout=20)
