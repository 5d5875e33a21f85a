"""Each code of a source audit has one sentence, which is right with numbers at their edges."""

from __future__ import annotations

import pytest
import wordings

from rag_sourcebias.core.finding import Code
from rag_sourcebias.source.findings import SourceCode


@pytest.mark.parametrize("code", SourceCode, ids=lambda code: code.name)
def test_a_sentence_is_right_at_the_edges(code: SourceCode) -> None:
    for finding in wordings.findings(code):
        assert wordings.faults(finding) == [], str(finding)


@pytest.mark.parametrize("code", SourceCode, ids=lambda code: code.name)
def test_a_number_that_is_missing_is_an_error(code: SourceCode) -> None:
    finding = next(wordings.findings(code))
    for name in wordings.specifications(code):
        numbers = {key: value for key, value in finding.numbers.items() if key != name}
        with pytest.raises(KeyError, match=name):
            code(**numbers)


class WrongCode(Code, home="wrong"):
    """Templates as they must not be."""

    PLURAL = "{n} queries are few."
    SINGULAR = "{n} query is few."
    SAME = "{n:query|query} of the run."
    HYPHEN = "The change is -{delta:2}."
    BLANKS = "The change  is {delta:signed}."
    UNSIGNED = "The interval is {delta:ends:signed}, from [−12.5, 3.0]."
    BRACE = "{{n}} queries."
    END = "{n:query|queries} .."


@pytest.mark.parametrize("code", WrongCode, ids=lambda code: code.name)
def test_a_wrong_template_is_found(code: WrongCode) -> None:
    if code is WrongCode.UNSIGNED:
        assert (
            str(code(delta=wordings.NEGATIVE))
            == "The interval is [−20.0, −5.0], from [−12.5, 3.0]."
        )
        return
    assert any(wordings.faults(finding) for finding in wordings.findings(code))


def test_no_two_codes_say_the_same() -> None:
    said = [code.template for code in SourceCode.__members__.values()]
    assert len(set(said)) == len(said) == len(SourceCode)
