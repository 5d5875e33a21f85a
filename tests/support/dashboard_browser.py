"""A headless Chromium that tests speak to over a pipe (DevTools protocol): no port, no driver."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "chromium"]

PATIENCE = 60.0
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--hide-scrollbars", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
)


def chromium() -> str | None:
    """Path of the browser; None where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Browser:
    """One page in a browser of its own; what the browser complains of gathers in ``complaints``."""

    def __init__(self, program: str, folder: Path) -> None:
        ends = [*os.pipe(), *os.pipe()]
        read_there, self._write, self._read, write_there = (
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends
        )
        for end in ends:
            os.close(end)
        log = os.open(folder / "browser.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        dup = os.POSIX_SPAWN_DUP2
        actions = [(dup, read_there, 3), (dup, write_there, 4), (dup, log, 1), (dup, log, 2)]
        command = [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._pid = os.posix_spawn(
            program, command, dict(os.environ), file_actions=actions, setsid=True
        )
        for end in (read_there, write_there, log):
            os.close(end)
        self._left, self._last, self._session = b"", 0, ""
        self.complaints: list[str] = []

    def connect(self) -> None:
        """Wait for the browser and take its page; end it with :meth:`close` in any case."""
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: object) -> Any:
        """Send one command and return its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._next(until)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._left:
            # Not select(): it refuses descriptors above 1,023.
            poll = select.poll()
            poll.register(self._read, select.POLLIN)
            ready = poll.poll(max(until - time.monotonic(), 0) * 1000)
            found = os.read(self._read, 1 << 20) if ready else b""
            if not found:
                raise AssertionError("the browser does not answer")
            self._left += found
        message, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, message: dict[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.complaints.append(json.dumps(told["args"]))

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """Return the value of an expression as soon as it is true."""
        until = time.monotonic() + PATIENCE
        while not (found := self.run(script)):
            if time.monotonic() > until:
                text = self.run("document.body.innerText")
                raise AssertionError(f"not true: {script}\n{self.complaints}\n{text}")
            time.sleep(0.05)
        return found

    def open(self, url: str) -> None:
        """Leave the page there was, go to another, and wait until it is loaded."""
        self.ask("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        self.complaints.clear()
        self.ask("Page.navigate", url=url)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Become a screen of that size in CSS pixels, with that colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    def press(self, key: str) -> None:
        """Press and release a key such as "ArrowLeft"."""
        code = {"Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9}[key]
        for kind in ("rawKeyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def click(self, x: float, y: float) -> None:
        """Move the mouse there and click."""
        for kind in ("mouseMoved", "mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    def picture(self, path: Path) -> None:
        """Write what the page looks like as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser and everything it started."""
        for end in (self._write, self._read):
            os.close(end)
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
