"""One browser for all tests of this folder, and the pages they look at."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard_browser import Browser, chromium

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("no chromium or google-chrome on this machine: apt-get install chromium")
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    try:
        found.connect()
        yield found
    finally:
        found.close()
