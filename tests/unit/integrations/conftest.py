"""What several frameworks need around a test."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hashing_encoder import HashingEncoder
from judged_answers import judged_answers

from rag_sourcebias.answers.measure import (
    StyleAdjustment,
    fit_similarity_adjustment,
    reference_similarity,
)


@pytest.fixture
def own_loop() -> Iterator[None]:
    """LlamaIndex's sync methods take the thread's event loop, and would leave one behind."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder(512)


@pytest.fixture(scope="module")
def adjustment() -> StyleAdjustment:
    return fit_similarity_adjustment(judged_answers(), HashingEncoder(512))


@pytest.fixture(scope="module")
def expected(adjustment: StyleAdjustment) -> Any:
    """What the adjustment makes of the answers, computed without a framework."""
    given = judged_answers()
    cosine = reference_similarity(given.references, given.answers, HashingEncoder(512))
    return adjustment.adjust(given.answers, cosine)
