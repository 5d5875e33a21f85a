"""Detectors: their pieces against definitions, honest figures, files, and as taggers."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from simulated_texts import Documents, simulated
from sklearn.metrics import brier_score_loss, roc_auc_score

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError, InsufficientDataError, UnsupportedVersionError
from rag_sourcebias.tagging.detector.features import (
    N_HASHED,
    STYLE_FEATURES,
    extract,
    stylometry,
)
from rag_sourcebias.tagging.detector.fit import (
    DetectorTagger,
    choose_threshold,
    fit_detector,
    group_folds,
    load_detector,
    save_detector,
)
from rag_sourcebias.tagging.detector.model import (
    Detector,
    Rate,
    auroc,
    average,
    brier_score,
    calibration_error,
    evaluate,
    fit_calibration,
    fit_linear,
    standards,
)
from rag_sourcebias.tagging.documents import tag_documents


def test_auroc_and_brier_score_agree_with_scikit_learn() -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 8, size=200) / 8  # many ties
    positive = rng.random(200) < 0.3 + 0.4 * scores
    assert auroc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))
    both = np.column_stack([1 - scores, scores])
    expected = brier_score_loss(positive, scores)
    assert brier_score(both, positive.astype(int)) == pytest.approx(expected)
    assert np.isnan(auroc(scores, np.ones(200, dtype=bool)))


def test_clopper_pearson_edges_and_a_known_interval() -> None:
    assert (Rate.of(0, 20).lower, Rate.of(20, 20).upper) == (0.0, 1.0)
    assert Rate.of(0, 20).upper == pytest.approx(1 - 0.025 ** (1 / 20))
    known = Rate.of(7, 20)
    assert (known.lower, known.upper) == pytest.approx((0.15391, 0.59219), abs=1e-5)
    empty = Rate.of(0, 0)
    assert (empty.lower, empty.upper) == (0.0, 1.0)
    assert np.isnan(empty.value)


def test_calibration_error_of_promises_kept_and_broken() -> None:
    confidence = np.repeat([0.6, 0.9], 50)
    kept = np.concatenate([np.arange(50) < 30, np.arange(50) < 45])
    assert calibration_error(confidence, kept, n_bins=2) == pytest.approx(0.0)
    none = np.zeros(100, dtype=bool)
    assert calibration_error(confidence, none, n_bins=2) == pytest.approx(0.75)


def test_calibration_recovers_a_known_scale() -> None:
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(4000, 3))
    truth = np.exp(2.0 * logits + [0.5, 0.0, -0.5])
    truth /= truth.sum(axis=1, keepdims=True)
    codes = (rng.random((4000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    found = fit_calibration(logits, codes)
    assert found.factor == pytest.approx(2.0, rel=0.1)
    assert found.bias - found.bias.mean() == pytest.approx([0.5, 0.0, -0.5], abs=0.15)


def test_threshold_by_hand() -> None:
    confidence = np.linspace(1.0, 0.5, 51)  # 1.00, 0.99, …
    right = np.ones(51, dtype=bool)
    right[30:] = False
    # Wilson limits, z = 1: none wrong of 30 is 1/31 = .032, one of 31 .080, two of 32 .117
    assert choose_threshold(confidence, right, max_error=0.05) == pytest.approx(confidence[29])
    assert choose_threshold(confidence, right, max_error=0.09) == pytest.approx(confidence[30])
    assert choose_threshold(confidence, right, max_error=0.03) is None
    assert choose_threshold(confidence, ~right, max_error=0.05) is None
    everything = choose_threshold(confidence, np.ones(51, dtype=bool), max_error=0.05)
    assert everything == pytest.approx(0.5)


def test_threshold_does_not_cut_through_a_tie() -> None:
    confidence = np.repeat([0.9, 0.6], [30, 30])
    right = np.concatenate([np.ones(30, bool), np.arange(30) < 20])
    assert choose_threshold(confidence, right, max_error=0.05) == 0.9


def test_folds_keep_groups_whole_and_labels_even() -> None:
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(40), rng.integers(1, 9, size=40))
    codes = (np.arange(len(groups)) % 3).astype(np.int64)
    folds = group_folds(codes, groups, rng=np.random.default_rng(0))
    assert all(len(set(folds[groups == g])) == 1 for g in range(40))
    table = np.array([[np.sum((folds == f) & (codes == c)) for c in range(3)] for f in range(5)])
    assert table.min() > 0.6 * table.mean()
    assert table.max() < 1.5 * table.mean()


def test_the_average_of_models_scores_the_mean_of_their_scores() -> None:
    texts = [text for _, text, _ in simulated(20, seed=1)]
    features = extract(texts)
    mean, scale = standards(features.dense)
    codes = np.arange(40) % 2
    models = [
        fit_linear(features, codes, 2, mean=mean, scale=scale, strength=c) for c in (0.1, 10.0)
    ]
    expected = np.mean([model.scores(features) for model in models], axis=0)
    assert average(models).scores(features) == pytest.approx(expected, abs=1e-5)
    assert models[1].scores(features).argmax(axis=1).tolist() == codes.tolist()


def column(text: str, name: str) -> float:
    return float(stylometry([text])[0, STYLE_FEATURES.index(name)])


def test_stylometry_by_hand() -> None:
    text = "I don't know. It's the END, my friend!\n\n- **Bold** 12 🙂"
    assert column(text, "log words") == pytest.approx(np.log1p(10))
    assert column(text, "contractions") == pytest.approx(2 / 10)
    assert column(text, "upper-case words") == pytest.approx(2 / 10)  # I, END
    assert column(text, "bold marks") == pytest.approx(2 / 10)
    assert column(text, "list lines") == pytest.approx(1 / 3)
    assert column(text, "digits") == pytest.approx(2 / len(text))
    assert column(text, "symbols") == pytest.approx(1 / len(text))
    assert column(text, "mark exclamation") == pytest.approx(1 / len(text))
    assert column(text, "word the") == pytest.approx(1 / 10)
    assert column("One two. One two three four.", "sentence length") == 3.0
    assert column("One two. One two three four.", "sentence length sd") == 1.0
    assert column("a bb bb", "type-token ratio") == pytest.approx(2 / 3)
    assert column("a bb bb", "words once") == pytest.approx(1 / 3)
    assert column("a bbbb", "word length") == 2.5
    assert column("a bbbb", "word length sd") == 1.5


def test_hashed_blocks_have_length_1_and_know_no_length() -> None:
    found = extract(["one two three", "", "one two three " * 50])
    assert found.hashed.shape == (3, N_HASHED)
    chars, words = found.hashed[:, : N_HASHED // 2], found.hashed[:, N_HASHED // 2 :]
    for block in (chars, words):
        sizes = np.sqrt(block.multiply(block).sum(axis=1)).ravel()
        assert np.asarray(sizes).ravel() == pytest.approx([1.0, 0.0, 1.0])


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    cut = "word " * 4_000  # 20,000 characters
    found = extract([cut + "other things", cut])
    assert (found.hashed[0] != found.hashed[1]).nnz == 0
    assert np.array_equal(found.dense[0], found.dense[1])


# Detectors: what is refused, whether the figures are honest, files, and as taggers


WEAK = 0.3  # about one in six wrong when every text is decided


@pytest.fixture(scope="module")
def weak() -> Detector:
    return fit_detector(simulated(250, seed=3, strength=WEAK), rng=0)


@pytest.fixture(scope="module")
def fresh() -> Documents:
    return simulated(400, seed=4, strength=WEAK)


def figures(detector: Detector, documents: Documents):
    found = detector.predict([text for _, text, _ in documents])
    codes = np.array([detector.labels.index(label) for _, _, label in documents])
    return evaluate(found, codes, labels=detector.labels, sources=True)


def test_figures_are_kept_on_fresh_documents(weak: Detector, fresh: Documents) -> None:
    report = figures(weak, fresh)
    assert report.error_of_all.value > 0.10
    assert 0.1 < report.unknown.value < 0.9
    assert report.error.value <= weak.max_error + 0.025
    assert weak.report.auroc["human"] == pytest.approx(report.auroc["human"], abs=0.05)
    assert weak.report.error_of_all.value == pytest.approx(report.error_of_all.value, abs=0.05)
    assert weak.report.unknown.value == pytest.approx(report.unknown.value, abs=0.15)
    assert report.calibration_error < 0.06
    assert weak.report.calibration_error < 0.06


def test_confusion_counts_every_document_once(weak: Detector) -> None:
    report = weak.report
    table = np.array(report.confusion)
    assert table.shape == (2, 3)
    assert table.sum() == report.n_documents == 500
    assert table[:, 2].sum() == report.unknown.hits
    assert table[0, 1] + table[1, 0] == report.error.hits
    assert report.n_groups == 250


def test_any_llm_counts_as_llm_where_several_are_told_apart() -> None:
    labels = ("human", "llm:a", "llm:b")
    detector = fit_detector(
        simulated(60, seed=1, labels=labels, strength=0.5), rng=0, max_error=0.15
    )
    table = np.array(detector.report.confusion)
    assert detector.report.sensitivity is not None
    assert detector.report.sensitivity.n == table[1:, :3].sum()
    assert detector.report.sensitivity.hits == table[1:, 1:3].sum()
    assert table[1, 2] + table[2, 1] > 0  # one LLM taken for the other is no error here


def test_labels_without_a_trace_in_the_text_leave_everything_unknown() -> None:
    reports = [fit_detector(simulated(60, seed=s, strength=0.0), rng=0).report for s in range(6)]
    assert all(report.unknown.value > 0.9 for report in reports)
    # one of them strays by .09 (standard deviation over 12 seeds)
    assert np.mean([report.auroc["human"] for report in reports]) == pytest.approx(0.5, abs=0.1)


def test_twins_stay_together_so_that_topics_do_not_help() -> None:
    # the label is a property of the topic here: whoever knows the topic knows the label
    rng = np.random.default_rng(0)
    documents, topics = [], {}
    for topic in range(16):
        words = [f"{a}{b}{topic}" for a in "bcdfg" for b in "aei"]
        for copy in range(8):
            doc_id = f"t{topic}-{copy}"
            text = " ".join(rng.choice(words, size=40))
            documents.append((doc_id, text, "human" if topic % 2 else "llm:x"))
            topics[doc_id] = f"topic {topic}"
    leaking = fit_detector(documents, rng=0).report
    honest = fit_detector(documents, groups=topics, rng=0).report
    assert leaking.auroc["human"] > 0.95
    assert honest.auroc["human"] < 0.75
    assert honest.n_groups == 16


def test_same_seed_same_model_other_seed_other_folds() -> None:
    documents = simulated(40, seed=1, strength=0.3)
    first, second = (fit_detector(documents, rng=7) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    assert first.report == second.report
    assert fit_detector(documents, rng=np.random.default_rng(7)).fingerprint == first.fingerprint
    other = fit_detector(documents, rng=8)
    assert other.fingerprint != first.fingerprint


def test_what_cannot_be_learned_from_is_counted() -> None:
    documents = simulated(30, seed=1)
    _, text, _ = documents[0]
    extra: Documents = [
        ("e1", "", "human"),
        ("e2", " \n\t", "llm:x"),
        ("u1", "no label", None),
        ("u2", "no label either", " "),
        ("r1", text.replace(" ", "  "), "human"),
        ("c1", "The very same text.", "human"),
        ("c2", "The very same text.", "llm:x"),
    ]
    report = fit_detector([*documents, *extra], rng=0).report
    assert report.left_out == {"unlabelled": 2, "empty": 2, "repeated": 1, "contradictory": 2}
    assert report.n_documents == 60


def test_too_few_documents_say_how_many_are_needed() -> None:
    documents = simulated(30, seed=1)
    few = [d for d in documents if d[2] == "human"] + documents[1:14:2]
    with pytest.raises(InsufficientDataError, match=r"'llm:x' has 7 usable.*at least 20") as found:
        fit_detector(few, rng=0)
    assert (found.value.n, found.value.n_needed) == (7, 20)
    with pytest.raises(InsufficientDataError, match="30 usable documents in 3 groups"):
        fit_detector(documents, groups=[str(i % 3) for i in range(60)], rng=0)


def test_bad_labels_are_named() -> None:
    documents = simulated(30, seed=1)
    one = [d for d in documents if d[2] == "human"]
    with pytest.raises(DataError, match="at least two labels; found human"):
        fit_detector(one, rng=0)
    with pytest.raises(DataError, match="found no labelled document"):
        fit_detector([], rng=0)
    with pytest.raises(DataError, match="document 'x': source 'gpt-4' is not a source name"):
        fit_detector([*documents, ("x", "text", "gpt-4")], rng=0)
    with pytest.raises(DataError, match="id 'x' occurs 2 times"):
        fit_detector([*documents, ("x", "a", "human"), ("x", "b", "human")], rng=0)
    with pytest.raises(DataError, match="target 'tone' is not one of"):
        fit_detector(documents, target="tone", rng=0)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(DataError, match="max_error"):
            fit_detector(documents, rng=0, max_error=wrong)


# Detectors on disk
TEXTS = [text for _, text, _ in simulated(10, seed=9)]


@pytest.fixture(scope="module")
def detector() -> Detector:
    return fit_detector(simulated(30, seed=1, labels=("human", "llm:Ünïcode")), rng=0)


@pytest.fixture
def folder(detector: Detector, tmp_path: Path) -> Path:
    save_detector(detector, tmp_path / "detector")
    return tmp_path / "detector"


def change(folder: Path, **values: object) -> None:
    file = folder / "detector.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values), "utf-8")


def test_round_trip_keeps_every_bit(detector: Detector, folder: Path) -> None:
    read = load_detector(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["detector.json", "model.npz"]
    assert np.array_equal(read.predict(TEXTS).probabilities, detector.predict(TEXTS).probabilities)
    for name, array in detector.arrays().items():
        assert read.arrays()[name].dtype == array.dtype
        assert np.array_equal(read.arrays()[name], array)
    assert read.report == detector.report
    assert read.threshold == detector.threshold
    assert read.labels == ("human", "llm:Ünïcode")
    assert read.fingerprint == detector.fingerprint == DetectorTagger(read).fingerprint
    assert read.versions["scikit-learn"]


def test_a_detector_replaces_another_but_nothing_else(detector: Detector, folder: Path) -> None:
    other = fit_detector(simulated(30, seed=5), rng=0)
    save_detector(other, folder)
    assert load_detector(folder).fingerprint == other.fingerprint
    assert [p.name for p in folder.parent.iterdir()] == ["detector"]
    foreign = folder.parent / "thesis"
    foreign.mkdir()
    (foreign / "chapter.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds other files"):
        save_detector(detector, foreign)
    with pytest.raises(DataError, match="is a file"):
        save_detector(detector, foreign / "chapter.txt")
    assert (foreign / "chapter.txt").read_text() == "years of work"


def test_no_detector_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder"):
        load_detector(tmp_path / "none")
    (tmp_path / "detector.json").write_text('{"format": "something else"}')
    with pytest.raises(DataError, match="is no detector"):
        load_detector(tmp_path)


def test_a_newer_schema_is_refused(folder: Path) -> None:
    change(folder, schema_version=2)
    with pytest.raises(UnsupportedVersionError, match=r"schema version 2; this release reads .* 1"):
        load_detector(folder)


@pytest.mark.parametrize("cut", [0, 10, -1])
def test_cut_arrays_are_damaged(folder: Path, cut: int) -> None:
    file = folder / "model.npz"
    file.write_bytes(file.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"is not a complete detector: model.npz is not the one"):
        load_detector(folder)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"labels": ["human"]}, "its values are not those of fingerprint"),
        ({"target": "tone"}, "'tone' - at 'target'"),
        ({"report": {}}, "labels' - at 'report'"),
        ({"threshold": "high"}, "at 'threshold'"),
        ({"threshold": 2.0, "factor": None}, "at 'factor'"),
        ({"threshold": 0.0}, "fingerprint"),
    ],
)
def test_changed_values_are_damage(folder: Path, values: dict, message: str) -> None:
    change(folder, **values)
    with pytest.raises(DataError, match=f"is not a complete detector.*{message}"):
        load_detector(folder)


def test_pickles_are_not_read(folder: Path, detector: Detector) -> None:
    import hashlib
    import io

    packed = io.BytesIO()
    np.savez(packed, **(detector.arrays() | {"bias": np.array([{}], dtype=object)}))
    (folder / "model.npz").write_bytes(packed.getvalue())
    change(folder, arrays_sha256=hashlib.sha256(packed.getvalue()).hexdigest())
    with pytest.raises(DataError, match="Python objects, which only a pickle can give back"):
        load_detector(folder)


# Detectors as taggers
ODD = ["", " \n", "…", "日本語の文章です。", "🙂" * 50, "\ud800 lone", "a" * 200_000, "\x00\x00"]


@pytest.fixture(scope="module")
def fitted() -> Detector:
    return fit_detector(simulated(80, seed=1, strength=0.35), rng=0)


@pytest.fixture(scope="module")
def others() -> Documents:
    return simulated(60, seed=2, strength=0.35)


def test_tags_are_detected_sources_with_their_probability(
    fitted: Detector, others: Documents
) -> None:
    tagger = DetectorTagger(fitted)
    texts = [text for _, text, _ in others]
    tags = tagger.tag_many(texts)
    found = fitted.predict(texts)
    unknown = [t is None for t in tags]
    assert 0 < sum(unknown) < len(tags)
    for tag, row, alike in zip(tags, found.probabilities, found.alike, strict=True):
        if tag is None:
            assert row.max() < fitted.threshold or not alike
        else:
            assert tag == DocTags(
                source=fitted.labels[row.argmax()],
                origin="detected",
                confidence=round(row.max(), 6),
            )


def test_odd_texts_are_read_and_empty_ones_unknown(fitted: Detector) -> None:
    tags = DetectorTagger(fitted).tag_many(ODD)
    assert tags[:2] == [None, None]
    probabilities = fitted.predict(ODD).probabilities
    assert np.isfinite(probabilities).all()
    assert probabilities.sum(axis=1) == pytest.approx(1.0)
    assert DetectorTagger(fitted).tag_many([]) == []


def test_texts_of_another_kind_stay_unknown(fitted: Detector, others: Documents) -> None:
    prose = [
        "The committee met on Tuesday and, after some debate, adopted the budget.",
        "def f(x):\n    return x ** 2  # squares\n",
        "Die Fähre legt bei Sturm nicht ab; wer trotzdem reisen will, nimmt den Bus.",
    ]
    assert not fitted.predict(prose).alike.any()
    assert DetectorTagger(fitted).tag_many(prose) == [None] * 3
    assert fitted.predict([text for _, text, _ in others]).alike.mean() > 0.9


def test_declared_tags_come_before_detected_ones(fitted: Detector, others: Documents) -> None:
    def declared(doc_id: str, text: str, metadata: object) -> DocTags | None:
        return DocTags(source="llm:known", origin="declared") if doc_id == others[0][0] else None

    rows = [(doc_id, text, {}) for doc_id, text, _ in others]
    found = dict(tag_documents(rows, [declared, DetectorTagger(fitted)]))
    assert found[others[0][0]] == DocTags(source="llm:known", origin="declared")
    assert sum(tags.origin == "detected" for tags in found.values()) > 20


def test_a_detector_that_decides_nothing_is_no_tagger(fitted: Detector, others: Documents) -> None:
    mute = dataclasses.replace(fitted, threshold=None)
    assert not mute.predict([others[0][1]]).decided.any()
    with pytest.raises(DataError, match="every document would stay unknown"):
        DetectorTagger(mute)
