"""One Chroma client on disk for all tests that need no folder of their own.

Clients in memory share one state and one set of settings per process.
"""

import atexit
import shutil
import tempfile
from functools import cache
from typing import Any


@cache
def shared_client() -> Any:
    from rag_sourcebias_integrations.chroma.collections import open_client

    folder = tempfile.mkdtemp(prefix="chroma-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return open_client(folder)
