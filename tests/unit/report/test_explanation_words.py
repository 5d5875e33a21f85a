from __future__ import annotations

import dataclasses
import re

from intervals import around
from stored_reports import stored

from rag_sourcebias.explain.report import document, headline
from rag_sourcebias.report.document import Listing


def blocks(report, kind):
    return [
        block
        for section in document(report).sections
        if section.id == "findings"
        for only in section.blocks
        for block in only.blocks
        if isinstance(block, kind)
    ]


def told(part, **changes):
    """Return findings by topic, and the headline, where a part of a clear report is another."""
    clear = stored("explain-clear")
    source = clear.sources[0]
    old = getattr(source, part)
    new = (
        (dataclasses.replace(old[0], **changes),)
        if isinstance(old, tuple)
        else dataclasses.replace(old, **changes)
    )
    report = dataclasses.replace(clear, sources=(dataclasses.replace(source, **{part: new}),))
    (found,) = blocks(report, Listing)
    topics = [of.partition(" (") for of in found.of]
    return {
        topic: (word == "established)", text)
        for (topic, _, word), text in zip(topics, found.rows, strict=True)
    }, headline(report)


def test_a_tail_that_resamples_cannot_hold_is_not_judged():
    found = stored("explain-clear").sources[0].spectrum
    few = dataclasses.replace(found, n=40, head=around(3, 1), tail=None)
    assert (found.n_supported, few.n_supported) == (32, 24)
    for spread, established in ((1, True), (4, False)):
        findings, head = told("spectrum", n=40, head=around(3, spread), tail=None)
        shown, text = findings["spectrum"]
        assert shown is established
        assert ("have singular values 3.0% larger at the head" in head) is established
        assert "The last half is not judged: 40 pairs are too few for 32 values" in text
        assert "(at least 1.7 pairs per value are needed)" in text
        assert "Dai et al." not in text


def test_no_page_calls_perplexity_a_cause():
    for report in (stored("explain-clear"), stored("explain-several")):
        rows = [
            row
            for found in blocks(report, Listing)
            for row in zip(found.of, found.rows, strict=True)
        ]
        established = re.compile(r"perplexity.* \(established\)")
        assert any(established.match(topic) for topic, _ in rows)
        for topic, text in rows:
            if established.match(topic):
                assert "it does not follow that an encoder's scores come from it" in text
            assert "because" not in text


def test_perplexity_at_equal_length():
    gap, topic = stored("explain-clear").sources[0].perplexity[0].gap, "perplexity under smollm2"
    same = dataclasses.replace(gap, gap_equal_length=around(-0.02, 0.05))
    text = told("perplexity", gap=same)[0][topic][1]
    assert "at equal length −0.02 [−0.07, 0.03]" in text
    higher = dataclasses.replace(gap, gap_equal_length=None, gap=around(0.2, 0.1))
    found, head = told("perplexity", gap=higher)
    assert "are less predictable to smollm2 (+0.20 nats per token)" in head
    assert "equal length" not in found[topic][1]
    still_open = dataclasses.replace(gap, gap=around(0.2, 0.3))
    assert not told("perplexity", gap=still_open)[0][topic][0]
