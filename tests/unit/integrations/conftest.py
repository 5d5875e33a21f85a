"""What several frameworks need around a test."""

import asyncio
from collections.abc import Iterator

import pytest


@pytest.fixture
def own_loop() -> Iterator[None]:
    """LlamaIndex's sync methods take the thread's event loop, and would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()
