"""An import opens no connection and looks up no name; who may use the network is a short list."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Audit events are raised by the interpreter itself, so code that never touches ``socket.socket``
# is seen too, and so is an attempt whose error is swallowed.
WATCH = """
import importlib, pkgutil, socket, sys

asked = []

def watch(event, args):
    if event in EVENTS or (STRICT and event.startswith("socket.")):
        asked.append(f"{event} {args[1:]}")
        raise PermissionError(f"{event} while importing")

EVENTS = {
    "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr",
    "socket.sendto", "socket.sendmsg", "urllib.Request", "http.client.connect",
}
if STRICT:
    class Refused(socket.socket):
        def __init__(self, *args, **kwargs):
            asked.append("socket.socket")
            raise PermissionError("a socket while importing")

    socket.socket = Refused
sys.addaudithook(watch)
"""
EVERY_MODULE = """
package = importlib.import_module("rag_sourcebias")
names = [m.name for m in pkgutil.walk_packages(package.__path__, "rag_sourcebias.")]
# The modules of neural import torch: tens of seconds, and a benchmark of packaging runs them.
skipped = ("rag_sourcebias.neural.", "rag_sourcebias.__main__")
names = [name for name in names if not name.startswith(skipped)]
for name in names:
    importlib.import_module(name)
assert len(names) > 100
"""


def attempts(code: str, *, strict: bool) -> list[str]:
    script = f"STRICT = {strict}\n{WATCH}\n{code}\nprint('\\n'.join(asked), end='')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_watch_sees_what_it_should() -> None:
    ask = "try: socket.create_connection(('127.0.0.1', 9), timeout=1)\nexcept OSError: pass"
    assert attempts(ask, strict=True)
    assert attempts(ask, strict=False)


def test_no_module_of_the_core_opens_a_socket_at_import() -> None:
    assert attempts(EVERY_MODULE, strict=True) == []


EVERY_INTEGRATION = """
from rag_sourcebias.core.errors import MissingExtraError

for name in ("chroma", "langchain", "opentelemetry", "prometheus", "python"):
    try:
        importlib.import_module(f"rag_sourcebias_integrations.{name}")
    except MissingExtraError:
        pass
"""


@pytest.mark.frameworks
def test_no_integration_asks_the_network_at_import() -> None:
    """Frameworks may try whether the machine has IPv6; none may connect or look up a name."""
    assert attempts(EVERY_INTEGRATION, strict=False) == []


NETWORK = {"socket", "http.client", "urllib.request", "requests", "httpx", "urllib3", "aiohttp"}
MAY = {
    "integrations/rag_sourcebias_integrations/ray/engine.py": "the cluster that the user names",
    "src/rag_sourcebias/monitor/dashboard/server.py": "listens where the user says",
    "src/rag_sourcebias/monitor/sinks.py": "the webhook that the user names",
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_only_named_modules_speak_to_the_network() -> None:
    """There is no telemetry: whoever adds a module that connects must say here to whom."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "integrations")
        for path in (ROOT / folder).rglob("*.py")
        if imported(path) & NETWORK
    }
    assert found == set(MAY)
