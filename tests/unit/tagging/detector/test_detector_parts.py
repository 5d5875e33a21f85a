"""The pieces of a detector against definitions and other implementations."""

import numpy as np
import pytest
from simulated_texts import simulated
from sklearn.metrics import brier_score_loss, roc_auc_score

from rag_sourcebias.tagging.detector.features import (
    N_HASHED,
    STYLE_FEATURES,
    extract,
    stylometry,
)
from rag_sourcebias.tagging.detector.fit import choose_threshold, group_folds
from rag_sourcebias.tagging.detector.model import (
    Rate,
    auroc,
    average,
    brier_score,
    calibration_error,
    fit_calibration,
    fit_linear,
    standards,
)


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
