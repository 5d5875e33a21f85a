"""Errors, results and functions come out of a worker as they went in."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

from rag_sourcebias.core.completions import CompletionError
from rag_sourcebias.core.errors import (
    DataError,
    InsufficientDataError,
    MissingExtraError,
    SourceBiasError,
    TrainingDivergedError,
)
from rag_sourcebias_integrations.ray.worker import (
    WorkerTraceback,
    pack_error,
    pack_job,
    unpack_error,
    unpack_job,
)

pytestmark = pytest.mark.frameworks


def raised(error: Exception) -> Exception:
    try:
        raise error
    except type(error) as caught:
        return caught


@pytest.mark.parametrize(
    "error",
    [
        DataError("x.csv: line 3"),
        InsufficientDataError("few", n=3, n_needed=9),
        MissingExtraError(package="p", extra="e", feature="f"),
        TrainingDivergedError("nan", step=7),
        CompletionError("slow", reason="timeout", retry_after=2.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_our_errors_come_out_as_they_were(error: SourceBiasError) -> None:
    found = unpack_error(pack_error(raised(error)), "item 3 of 9")
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
    assert isinstance(found.__cause__, WorkerTraceback)
    assert "in raised" in str(found.__cause__)


def test_other_errors_are_the_cause_of_one_that_names_the_item() -> None:
    found = unpack_error(pack_error(raised(KeyError("colour"))), "item 3 of 9")
    assert type(found) is SourceBiasError
    assert str(found) == "item 3 of 9 failed in a worker: KeyError: 'colour'"
    assert isinstance(found.__cause__, KeyError)
    assert isinstance(found.__cause__.__cause__, WorkerTraceback)


def test_a_job_brings_its_modules_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_the_caller_has_it.py").write_text("def make():\n    return len\n")
    here = Path.cwd()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    import only_the_caller_has_it

    data = pack_job(only_the_caller_has_it.make)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    monkeypatch.delitem(sys.modules, "only_the_caller_has_it")
    assert unpack_job(data)()("four") == 4
    assert Path.cwd() == tmp_path
