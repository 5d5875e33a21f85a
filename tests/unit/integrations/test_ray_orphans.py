"""A driver that is killed: what it started ends, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from rag_sourcebias_integrations.ray.orphans import MARK, Watch

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]

DRIVER = """
import os, subprocess, sys, time
from rag_sourcebias_integrations.ray.orphans import MARK, Watch
mark, how = sys.argv[1:]
watch = Watch(mark) if how != "unwatched" else None
forked = os.fork() if how == "forked" else 0
if how == "forked" and not forked:
    time.sleep(60)
    os._exit(0)
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)"]
# One whose child hides its environment, as Ray's agents do, and outlives it.
parent = [
    sys.executable,
    "-c",
    "import subprocess, time; "
    f"print(subprocess.Popen({sleep}, env={{}}, start_new_session=True).pid, flush=True); "
    "time.sleep(60)",
]
for command, value in ((parent, mark), (sleep, mark), (sleep, "another")):
    one = subprocess.Popen(
        command, env=os.environ | {MARK: value}, start_new_session=True,
        stdout=subprocess.PIPE if command is parent else None, text=True,
    )
    print(one.pid, flush=True)
    if command is parent:
        print(one.stdout.readline().strip(), flush=True)
print(forked, flush=True)
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "XZ"


def ended(pids: list[int], *, within: float = 30) -> bool:
    last = time.monotonic() + within
    while any(map(is_alive, pids)) and time.monotonic() < last:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


@pytest.mark.parametrize("how", ["watched", "forked", "unwatched"])
def test_what_a_killed_driver_started_ends(how: str) -> None:
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, uuid4().hex, how], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    *marked, other, forked = [int(driver.stdout.readline()) for _ in range(5)]
    try:
        time.sleep(1)  # the watch has looked
        driver.kill()
        driver.wait()
        if how == "unwatched":  # as it was
            assert not ended(marked, within=1.5)
        else:
            assert ended(marked)
        assert is_alive(other)  # it is not ours
        assert not forked or is_alive(forked)  # it has the pipe to the watch
    finally:
        driver.stdout.close()
        for pid in filter(is_alive, filter(None, (*marked, other, forked))):
            os.kill(pid, signal.SIGKILL)


def test_closing_ends_what_is_left_and_the_watch() -> None:
    mark = uuid4().hex
    watch = Watch(mark)
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env=os.environ | {MARK: mark}
    )
    assert watch._process is not None
    process = watch._process.pid
    watch.close()
    assert left.wait(60) == -signal.SIGKILL
    assert not is_alive(process)
    watch.close()
