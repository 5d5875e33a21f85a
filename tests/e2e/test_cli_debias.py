"""``debias`` as a user runs it: a tiny model with a known bias, real folders, real reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import inside, refused, succeed
from debias_folder import LLM, N_TRAIN, PER_QUERY, WORDS, write_folder, write_model

from rag_sourcebias.core.progress import Stages
from rag_sourcebias.debias.legacy_report import DebiasReport
from rag_sourcebias.debias.parity import read_parity
from rag_sourcebias.kinds import read_report
from rag_sourcebias.retrieval.projection import read_projection

pytestmark = pytest.mark.frameworks
pytest.importorskip("sentence_transformers")

TINY = ("--encoder", "tiny", "--cache", "cache", "--margin", "0.1")
SETTINGS = "max_steps=4,batch_size=32,learning_rate=0.01,debias_weight=0.3,checkpoint_every=1"
STEPS = ("--training", SETTINGS)
PROJECTED = ("debias", "data", "--method", "project", *TINY, "--projection", "mean")
COMPARE = ("debias", "--encoder", "tiny", "--cache", "cache")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("debias")
    write_folder(root / "data")
    write_model(root / "tiny")
    succeed(*PROJECTED, "--output", "projected", "--report", "report", cwd=root)
    return root


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    for name in ("data", "tiny", "projected", "cache"):
        (tmp_path / name).symlink_to(prepared / name)
    return tmp_path


def report_of(folder: Path) -> DebiasReport:
    found = read_report(folder / "report.json")
    assert isinstance(found, DebiasReport)
    return found


def test_a_projection_is_a_model_folder_with_its_report(prepared: Path) -> None:
    report = report_of(prepared / "report")
    (method,) = report.methods
    assert (method.kind, method.fitted_on, method.n_pairs) == (
        "projection", "data/train", N_TRAIN * PER_QUERY,
    )  # fmt: skip
    assert method.settings["method"] == "mean"
    assert 0.2 < method.encode_cost < 5
    (data,) = report.datasets
    assert data.data.name == "data/dev"
    before, after = data.outcomes
    assert (before.name, after.name) == ("tiny", "projected")
    assert before.skew_at(5).after.upper < 0  # the tiny model prefers rewrites
    assert abs(after.skew_at(5).after.estimate) < abs(before.skew_at(5).after.estimate) / 2
    for name in ("report.html", "report.md"):
        assert "projected" in (prepared / "report" / name).read_text(encoding="utf-8")
    assert read_projection(prepared / "projected" / "source_projection.npz").method == "mean"


def test_all_pairs_without_those_that_are_judged(folder: Path) -> None:
    arguments = (
        "debias",
        "--method",
        "project",
        "data",
        *TINY,
        "--projection",
        "mean",
        "--all-pairs",
    )
    told = succeed(
        *arguments, "--on", "data:dev", "--unseen", "--output", "out", "--report", "r",
        cwd=folder,
    )  # fmt: skip
    report = report_of(folder / "r")
    assert report.methods[0].n_pairs == N_TRAIN * PER_QUERY  # the pairs of dev are left out
    assert report.datasets[0].outcomes[1].n_seen == 0
    assert "caution" not in told


def test_judging_on_the_fitting_data_is_cautioned(folder: Path) -> None:
    code, shown, told = inside(
        *PROJECTED, "--on", "data:train", "--output", "out", cwd=folder,
    )  # fmt: skip
    assert code == 0, told
    assert "caution: data/train is judged on what the method is fitted on" in told
    assert "data/train is judged on what" in " ".join(shown.split())


def test_calibrate_then_compare(folder: Path) -> None:
    succeed("debias", "--method", "calibrate", "data", *TINY, "--output", "parity.json", cwd=folder)
    found = read_parity(folder / "parity.json")
    assert found.sources == (LLM,)
    assert found.gaps[0].upper < 0  # rewrites score higher, and are moved down
    succeed(
        *COMPARE, "--compare", "projected", "--compare", "parity.json", "--on", "data:dev",
        "--on", "data:train", "--fitted-on", "data:train", "--report", "r", cwd=folder,
    )  # fmt: skip
    report = report_of(folder / "r")
    assert [method.kind for method in report.methods] == ["projection", "calibration"]
    assert [data.data.name for data in report.datasets] == ["data/dev", "data/train"]
    dev, train = report.datasets
    assert [outcome.name for outcome in dev.outcomes] == ["tiny", "projected", "tiny+parity"]
    assert [data.outcomes[1].n_seen for data in (dev, train)] == [0, N_TRAIN * PER_QUERY]
    kept = dev.outcomes[2].quality_at("human-only", 10)
    assert kept.before == kept.after  # the order within a source stays


def test_training_goes_on_after_an_interruption(folder: Path, monkeypatch) -> None:
    def interrupt(self: Stages, done: int, total: int | None) -> None:
        if total == 4 and done == 3:
            raise KeyboardInterrupt

    arguments = (
        "debias", "--method", "train", "data", *TINY, *STEPS, "--training", "eval_every=2",
        "--output", "trained", "--report", "r",
    )  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(Stages, "advance", interrupt)
        code, _, told = inside(*arguments, cwd=folder)
    assert code == 130
    assert "checkpoints, if any, are in trained.training" in told
    assert not (folder / "trained").exists()
    succeed(*arguments, cwd=folder)
    assert (folder / "trained" / "modules.json").is_file()
    report = report_of(folder / "r")
    (history,) = report.training
    assert history.n_steps == 4
    assert [point.step for point in history.points] == [0, 2, 4]
    assert report.methods[0].kind == "training"
    before, after = (outcome.skew_at(5).after for outcome in report.datasets[0].outcomes)
    assert after.estimate > before.estimate


def test_search_reports_on_every_strength_and_writes_no_model(folder: Path) -> None:
    asked = ("debias", "data", "--search", *TINY, "--method", "project", "--values", "0.5,1")
    succeed(*asked, "--projection", "mean", "--report", "r", cwd=folder)
    report = report_of(folder / "r")
    search = report.search
    assert search is not None
    assert [point.weight for point in search.points] == [0, 0.5, 1]
    assert (search.searched, search.data, search.n_seeds) == ("strength", "data/dev", 1)
    half, whole = report.datasets[0].outcomes[1:]
    assert half.skew_at(5).after.estimate == search.points[1].relative_delta.estimate
    assert whole.name == "tiny+projection×1"
    assert report.methods[0].settings["strength"] == "0.5"
    told = refused(*asked, "--output", "best", cwd=folder)
    assert "--search writes no projection" in told
    assert "--search goes with" in refused("debias", "data", "--search", *TINY, cwd=folder)


def test_search_over_weights_trains_each_model_once(folder: Path) -> None:
    arguments = (
        "debias", "--search", "data", *TINY, "--method", "train", "--values", "0.3",
        "--training", "max_steps=3,batch_size=32,learning_rate=0.01", "--output", "tried",
    )  # fmt: skip
    succeed(*arguments, "--report", "r", cwd=folder)
    models = sorted(path.name for path in (folder / "tried").iterdir())
    assert models == [f"weight-0.3-seed-{seed}" for seed in range(3)]
    report = report_of(folder / "r")
    assert report.search is not None
    assert report.search.n_seeds == 3
    assert len(report.training) == 3
    assert [outcome.name for outcome in report.datasets[0].outcomes[1:]] == models
    times = {path: path.stat().st_mtime_ns for path in (folder / "tried").iterdir()}
    shutil.rmtree(folder / "tried" / models[-1])
    code, _, told = inside(*arguments, cwd=folder)
    assert code == 0, told
    assert told.count("is trained already") == 2
    assert {p for p, t in times.items() if p.stat().st_mtime_ns != t} == {
        folder / "tried" / models[-1]
    }
    other = ["max_steps=4" if a.startswith("max_steps") else a for a in arguments]
    assert "max_steps 3, not 4" in refused(*other, cwd=folder)


PROJECT = ("--method", "project", "data")
TRAIN = ("--method", "train", "data", "--output", "o", "--training")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*PROJECT, "--split", "tset", "--output", "o"), ("'tset'", "'dev', 'train'")),
        ((*PROJECT, "--output", "tiny"), ("--output tiny", "exists")),
        ((*PROJECT, "--output", "o", "--on", "data:tset"), ("'tset'", "'dev', 'train'")),
        ((*PROJECT, "--output", "o", "--on", "data:dev", "--on", "data:dev"), ("twice",)),
        ((*PROJECT, "--output", "o", "--source", "llm:x"), ("'llm:x'", LLM)),
        ((*PROJECT, "--output", "o", "--baseline-source", "hum"), ("'hum'", "human")),
        ((*PROJECT, "--output", "o", "--encoder", "./none"), ("./none", "no model folder")),
        ((*PROJECT, "--output", "o", "--on", "data:train", "--unseen"), ("--unseen left out",)),
        ((*TRAIN, "steps=2", "--search"), ("'steps=2'", "max_steps")),
        ((*TRAIN, "max_steps=x", "--search"), ("max_steps=x", "not a number")),
    ],
)
def test_bad_input_is_named_with_a_remedy(
    folder: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    encoder = () if "--encoder" in options else ("--encoder", "tiny")
    told = refused("debias", *options, *encoder, "--cache", "cache", cwd=folder)
    for word in words:
        assert word in told
    assert not (folder / "o").exists()


def test_one_of_several_sources_is_asked_for(folder: Path) -> None:
    write_folder(folder / "two", sources=("rewriter", "editor"))
    arguments = (*PROJECTED[:1], "two", *PROJECTED[2:], "--output", "out")
    told = refused(*arguments, cwd=folder)
    assert "llm:editor, llm:rewriter" in told
    assert "--source llm:editor" in told
    succeed(*arguments, "--source", LLM, "--report", "r", cwd=folder)
    assert [d.other for d in report_of(folder / "r").datasets] == ["llm:editor", LLM]


def test_a_failed_report_takes_the_model_away(folder: Path) -> None:
    broken = folder / "broken"
    shutil.copytree(folder / "data", broken)
    (broken / "qrels" / "dev.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\td1\t0\n", encoding="utf-8"
    )
    refused(*PROJECTED, "--output", "out", "--on", "broken:dev", cwd=folder)
    assert not (folder / "out").exists()


def test_what_makes_it_worse_is_said_and_not_written(folder: Path) -> None:
    # the aim is twice the skew there is: taking it out leads away from there
    arguments = ("debias", "data", "--method", "project", *TINY, "--projection", "mean")
    succeed(*arguments, "--output", "best", "--report", "r", cwd=folder)
    skew = report_of(folder / "r").datasets[0].outcomes[1].skew_at(5)
    at_target = (*arguments, f"--target={2 * skew.before.estimate:.3f}", "--output", "worse")
    code, _, told = inside(*at_target, cwd=folder)
    assert code == 1
    assert "made it worse: data/dev: " in told
    assert "worse was not written; --force writes it all the same" in " ".join(told.split())
    assert not (folder / "worse").exists()
    assert "made it worse" in inside(*at_target, "--force", cwd=folder)[2]
    assert (folder / "worse" / "modules.json").is_file()


def test_the_only_split_is_taken_and_one_of_several_is_asked_for(folder: Path) -> None:
    write_folder(folder / "one", splits=("test",))
    asked = ("debias", "one", *TINY, "--output", "parity.json")
    code, _, messages = inside(*asked, cwd=folder)
    assert code == 0
    assert "one is judged on what the method is fitted on" in " ".join(messages.split())
    write_folder(folder / "two", splits=("dev", "test"))
    told = refused("debias", "two", *TINY, "--output", "o.json", cwd=folder)
    assert "dev, test" in told
    assert "--split dev" in told


def test_copies_are_looked_for_without_pairs_to_fit_on(folder: Path) -> None:
    """The same texts under other ids, so that no two documents are a pair."""
    data, rng = write_folder(folder / "copies", splits=("test",)), np.random.default_rng(0)
    human, other = (data / "corpus" / f"{name}.jsonl" for name in ("human", "rewriter"))
    rows = [json.loads(line) for line in human.read_text("utf-8").splitlines()]
    texts = [" ".join(rng.choice(WORDS, 40)) for _ in rows]
    for file, mark in ((human, ""), (other, "x")):
        file.write_text(
            "".join(
                json.dumps({"_id": f"{mark}{row['_id']}", "title": "", "text": text}) + "\n"
                for row, text in zip(rows, texts, strict=True)
            ),
            "utf-8",
        )
    judged = data / "qrels" / "test.tsv"
    lines = judged.read_text("utf-8").splitlines()
    more = [line.replace("\t", "\tx", 1) for line in lines[1:]]
    judged.write_text("\n".join([*lines, *more, ""]), "utf-8")
    asked = ("debias", "copies", "--method", "twins", *TINY, "--output", "twins.sqlite")
    code, _, messages = inside(*asked, "--report", "report", cwd=folder)
    assert code == 0, messages
    assert "judged on what the method is fitted on" not in messages
    after = report_of(folder / "report").datasets[0].outcomes[1].skew_at(5).after
    assert after.estimate == pytest.approx(0, abs=1e-6)
    assert (folder / "twins.sqlite").is_file()
    told = refused(*asked[:-1], "o.sqlite", "--source", LLM, cwd=folder)
    assert "--source: nothing is fitted on pairs" in told
    compare = ("debias", "--compare", "twins.sqlite", "--on", "copies", *TINY)
    code, _, messages = inside(*compare, "--report", "again", cwd=folder)
    assert code == 0, messages
    again = report_of(folder / "again").datasets[0].outcomes[1].skew_at(5).after
    assert again == after
    words = ("--encoder", "bm25")
    succeed(*asked[:4], *words, "--output", "words.sqlite", "--report", "words", cwd=folder)
    first, smoothed = report_of(folder / "words").datasets[0].outcomes
    assert (first.name, smoothed.name) == ("bm25", "bm25+words")
    assert smoothed.skew_at(5).after.estimate == pytest.approx(0, abs=1e-6)
    succeed("debias", "--compare", "words.sqlite", "--on", "copies", *words, cwd=folder)
    told = refused("debias", "--compare", "twins.sqlite", "--on", "copies", *words, cwd=folder)
    assert "the one in use is 'bm25'" in told  # neighbours of a model are not those of words
    for useless in (("copies", "--output", "o.json"), ("--compare", "m", "--on", "copies")):
        assert "no vectors to change" in refused("debias", *useless, *words, cwd=folder)
