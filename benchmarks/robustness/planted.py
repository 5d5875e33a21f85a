"""Sixty faults planted in the formulas, one at a time: does a test catch each?

    python benchmarks/robustness/planted.py                 # all
    python benchmarks/robustness/planted.py --only bm25-idf holm-factor
    python benchmarks/robustness/planted.py --list

A fault is a snippet of source text and what a person could have written in its place. Neither the
file of the snippet nor that of a test is stored: the snippet stands exactly once under src/, and a
test is found by the name of its function under tests/, so both may be moved. The faults are planted
in a temporary copy of src and integrations; the checkout is only read. The tests first run
without a fault and must pass. A fault is caught where pytest ends with status 1. The exit status of
this script is 1 where a fault is not caught, a snippet is not found exactly once, or a test does
not exist. With all faults, the counts are written to benchmarks/results/planted.json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "planted.json"
CAUGHT = 1  # status of pytest where a test failed; 2 and above: no test ran to its end
LIMIT_S = 300


@dataclass(frozen=True)
class Fault:
    """One snippet and what replaces it.

    Parameters
    ----------
    name : str
    kind : str
    right, wrong : str
        ``right`` stands exactly once in all files under src/.
    tests : tuple of str
        Names of test functions.
    """

    name: str
    kind: str
    right: str
    wrong: str
    tests: tuple[str, ...]


FAULTS = (
    Fault(
        "dcg-discount",
        "off by one",
        "np.cumsum(1 / np.log2(np.arange(2, k + 2)))",
        "np.cumsum(1 / np.log2(np.arange(3, k + 3)))",
        ("test_equals_pytrec_eval_per_query",),
    ),
    Fault(
        "ndcg-ideal-place",
        "off by one",
        "np.log2(self.ideal_place[top] + 2)",
        "np.log2(self.ideal_place[top] + 1.5)",
        ("test_equals_pytrec_eval_per_query",),
    ),
    Fault(
        "map-hits-above",
        "off by one",
        "at_start = self.before + 1 - (self.start + 1) * slope",
        "at_start = self.before - (self.start + 1) * slope",
        ("test_equals_pytrec_eval_per_query",),
    ),
    Fault(
        "relative-delta-sign",
        "wrong sign",
        "200.0 * ((mean_baseline - mean_other) / total)",
        "200.0 * ((mean_other - mean_baseline) / total)",
        ("test_toy_example_of_the_paper",),
    ),
    Fault(
        "relative-delta-factor",
        "dropped factor",
        "200.0 * ((self.h - self.l) / (self.h + self.l))",
        "100.0 * ((self.h - self.l) / (self.h + self.l))",
        ("test_formula",),
    ),
    Fault(
        "average-rank-order",
        "wrong sign",
        "ranks += other > values",
        "ranks += other < values",
        ("test_against_scipy",),
    ),
    Fault(
        "unfairness-axis",
        "wrong axis",
        "np.ptp(ranks, axis=-1) * ranks.std(axis=-1, ddof=ddof)",
        "np.ptp(ranks, axis=0) * ranks.std(axis=0, ddof=ddof)",
        ("test_against_the_definition",),
    ),
    Fault(
        "unfairness-ddof",
        "wrong ddof",
        "np.ptp(ranks, axis=-1) * ranks.std(axis=-1, ddof=ddof)",
        "np.ptp(ranks, axis=-1) * ranks.std(axis=-1, ddof=1 - ddof)",
        ("test_default_is_the_population_form",),
    ),
    Fault(
        "exposure-discount",
        "off by one",
        "return 1 / np.log2(rank + 1)",
        "return 1 / np.log2(rank + 2)",
        ("test_attention_weights",),
    ),
    Fault(
        "awrf-divergence",
        "dropped factor",
        "middle = (found.shares + goal[:, None]) / 2",
        "middle = found.shares + goal[:, None]",
        ("test_delta_ndsr_against_literal_loops",),
    ),
    Fault(
        "length-slope",
        "wrong sign",
        "means[..., :k] - _slope(means, k)[..., None] * means[..., k : 2 * k]",
        "means[..., :k] + _slope(means, k)[..., None] * means[..., k : 2 * k]",
        ("test_against_regression_with_dummies",),
    ),
    Fault(
        "chance-centre",
        "swapped arguments",
        "terms = by_chance[1] - by_chance[0]",
        "terms = by_chance[0] - by_chance[1]",
        ("test_expectation_is_the_mean_over_all_arrangements",),
    ),
    Fault(
        "fieller-covariance",
        "wrong sign",
        "v_diff = pair.v_h + pair.v_l - 2 * pair.cov",
        "v_diff = pair.v_h + pair.v_l + 2 * pair.cov",
        ("test_fieller_is_the_set_of_ratios_that_a_t_test_does_not_reject",),
    ),
    Fault(
        "clusters-factor",
        "dropped factor",
        "math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / n, g",
        "math.sqrt(float(np.sum(sums**2))) / n, g",
        ("test_singletons_give_the_t_interval",),
    ),
    Fault(
        "bootstrap-tail",
        "wrong tail",
        "lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)",
        "lower, upper = np.quantile(draws, [tail / 2, 1 - tail / 2], axis=0)",
        ("test_of_a_mean_it_is_about_student",),
    ),
    Fault(
        "sign-flip-exact",
        "wrong comparison",
        "extreme = np.abs(signs @ differences) >= observed",
        "extreme = np.abs(signs @ differences) > observed * 1.000001",
        ("test_few_queries_are_tested_exactly",),
    ),
    Fault(
        "sign-flip-drawn",
        "dropped factor",
        "flipped = 2 * (bits.reshape(rows, n).astype(np.float64) @ differences) - total",
        "flipped = (bits.reshape(rows, n).astype(np.float64) @ differences) - total",
        ("test_many_queries_against_the_exact_law_and_student",),
    ),
    Fault(
        "friedman-statistic",
        "off by one",
        "n * (k - 1) * w",
        "n * k * w",
        ("test_against_scipy",),
    ),
    Fault(
        "sign-test-sides",
        "wrong tail",
        "min(1.0, 2 * float(bdtr(",
        "min(1.0, float(bdtr(",
        ("test_two_styles_are_a_sign_test_that_leaves_out_ties",),
    ),
    Fault(
        "holm-factor",
        "off by one",
        "p[order] * (m - np.arange(m))",
        "p[order] * (m - 1 - np.arange(m))",
        ("test_against_definitions",),
    ),
    Fault(
        "bh-factor",
        "off by one",
        "p[order] * m / np.arange(1, m + 1)",
        "p[order] * m / np.arange(2, m + 2)",
        ("test_against_definitions",),
    ),
    Fault(
        "tost-level",
        "wrong tail",
        "confidence_level=1 - 2 * level,",
        "confidence_level=1 - level,",
        ("test_is_two_one_sided_paired_t_tests",),
    ),
    Fault(
        "tost-needed",
        "dropped factor",
        "n = math.ceil(((normal_quantile(1 - level) + beta) * spread / margin) ** 2)",
        "n = math.ceil((normal_quantile(1 - level) + beta) * spread / margin)",
        ("test_the_queries_needed_give_the_power_promised",),
    ),
    Fault(
        "ppi-variance",
        "wrong sign",
        "variance = spread * (1 / n - 1 / (n + n_pool))",
        "variance = spread * (1 / n + 1 / (n + n_pool))",
        ("test_variance_by_target",),
    ),
    Fault(
        "ppi-plus-lambda",
        "dropped factor",
        "together / ((1 + ratio) * spread), 0.0), 1.0)",
        "together / spread, 0.0), 1.0)",
        ("test_equal_to_ppi_py",),
    ),
    Fault(
        "ppi-plus-clip",
        "missing clip",
        "return min(max(together / ((1 + ratio) * spread), 0.0), 1.0)",
        "return together / ((1 + ratio) * spread)",
        ("test_equal_to_ppi_py",),
    ),
    Fault(
        "crc-rank",
        "off by one",
        "return ceil((n + 1) * (1 - alpha))",
        "return ceil(n * (1 - alpha))",
        ("test_ranks_equal_rational_arithmetic",),
    ),
    Fault(
        "crc-misses",
        "off by one",
        "misses = floor((n * alpha - (1 - alpha)) / 2)",
        "misses = floor(n * alpha / 2)",
        ("test_ranks_equal_rational_arithmetic",),
    ),
    Fault(
        "crc-keep",
        "wrong sign",
        "rising, keep = shift >= 0, 1.0 - np.abs(shift)",
        "rising, keep = shift >= 0, 1.0 - shift",
        ("test_equals_the_equations",),
    ),
    Fault(
        "betting-payoff",
        "swapped arguments",
        "parts.append((lower - rows) / np.maximum(1 - lower, _SMALLEST_SHARE))",
        "parts.append((rows - lower) / np.maximum(1 - lower, _SMALLEST_SHARE))",
        ("test_betting_matches_the_literal_products",),
    ),
    Fault(
        "e-process-grown",
        "off by one",
        "grown = n * rho**2 + 1",
        "grown = n * rho**2",
        ("test_margin_is_where_the_normal_mixture_reaches_the_threshold",),
    ),
    Fault(
        "cusum-start",
        "wrong comparison",
        "np.maximum(self._sums, 1)",
        "np.maximum(self._sums, 0)",
        ("test_detectors_match_their_definition",),
    ),
    Fault(
        "weighted-ratio",
        "swapped arguments",
        "float(self.numerator.sum()) / float(self.denominator.sum())",
        "float(self.denominator.sum()) / float(self.numerator.sum())",
        ("test_ends_are_quantiles_of_drawn_weights",),
    ),
    Fault(
        "weighted-sides",
        "wrong tail",
        "return float(min(2 * min(below, above), 1.0))",
        "return float(min(min(below, above), 1.0))",
        ("test_p_value_of_an_end_is_the_level",),
    ),
    Fault(
        "auc-mid-ranks",
        "off by one",
        "mid_ranks = (np.cumsum(count) - (count - 1) / 2)[code]",
        "mid_ranks = (np.cumsum(count) - (count + 1) / 2)[code]",
        ("test_auc_agrees_with_scikit_learn",),
    ),
    Fault(
        "auc-influence",
        "dropped factor",
        "share = (share - auc * opposite)[usable] / pairs",
        "share = (share - opposite)[usable] / pairs",
        ("test_influences_are_what_leaving_out_a_question_changes",),
    ),
    Fault(
        "effect-spread-ddof",
        "wrong ddof",
        "pairs.scores.var(axis=0, ddof=1).mean()",
        "pairs.scores.var(axis=0).mean()",
        ("test_spread_is_the_literal_definition",),
    ),
    Fault(
        "effect-spread-axis",
        "wrong axis",
        "means = pairs.scores.mean(axis=0)",
        "means = pairs.scores.mean(axis=1)",
        ("test_spread_is_the_literal_definition",),
    ),
    Fault(
        "adjustment-clip",
        "missing clip",
        "length = np.clip(np.log1p(answers.words), *span)",
        "length = np.log1p(answers.words)",
        ("test_beyond_the_lengths_seen_the_offset_is_constant",),
    ),
    Fault(
        "adjustment-sign",
        "wrong sign",
        "answers.with_scores(answers.scores - self.offset(answers))",
        "answers.with_scores(answers.scores + self.offset(answers))",
        ("test_a_pure_length_effect_is_removed",),
    ),
    Fault(
        "projection-strength",
        "wrong sign",
        "np.eye(self.dimension) - self.strength * product",
        "np.eye(self.dimension) + self.strength * product",
        ("test_apply_is_the_matrix_product_and_only_unit_rows_are_scaled",),
    ),
    Fault(
        "parity-beyond",
        "missing clip",
        "moved: FloatArray = np.interp(scores, self.knots, self.values) + beyond",
        "moved: FloatArray = np.interp(scores, self.knots, self.values)",
        ("test_a_map_keeps_the_order_and_its_inverse_takes_it_back",),
    ),
    Fault(
        "offset-gap",
        "swapped arguments",
        "gaps = twins.baseline_scores - twins.source_scores",
        "gaps = twins.source_scores - twins.baseline_scores",
        ("test_the_offset_is_the_mean_gap_of_the_twins",),
    ),
    Fault(
        "decomposition-ratio",
        "dropped factor",
        "return interval(ratio + (part - ratio * gaps) / gap.estimate)",
        "return interval(ratio + (part - gaps) / gap.estimate)",
        ("test_parts_sum_to_the_gap_and_shares_to_one",),
    ),
    Fault(
        "perplexity-mean",
        "off by one",
        "values = np.where(tokens > 0, loss / np.maximum(tokens, 1), np.nan)",
        "values = np.where(tokens > 0, loss / (tokens + 1), np.nan)",
        ("test_causal_equals_one_token_at_a_time",),
    ),
    Fault(
        "jaccard",
        "swapped arguments",
        "return len(a & b) / len(a | b) if a | b else 1.0",
        "return len(a & b) / len(b) if a | b else 1.0",
        ("test_overlap_and_jaccard",),
    ),
    Fault(
        "lexical-idf",
        "dropped factor",
        "(n_documents - document_frequency + 0.5) / (document_frequency + 0.5)",
        "n_documents / (document_frequency + 0.5)",
        ("test_shares_of_weight_are_those_of_the_definition",),
    ),
    Fault(
        "monitor-visible",
        "wrong comparison",
        "visible = rank < (len(column) if shown is None else shown)",
        "visible = rank <= (len(column) if shown is None else shown)",
        ("test_counts_are_those_of_an_exposure_observer",),
    ),
    Fault(
        "bucket-mean",
        "dropped factor",
        "mean = np.clip(np.array(self.values) / self.n, 0, 1)",
        "mean = np.clip(np.array(self.values), 0, 1)",
        ("test_events_of_a_key_are_averaged_until_its_time_is_over",),
    ),
    Fault(
        "rollup-documents",
        "wrong axis",
        "self.documents = self.documents + rows.documents.sum(axis=0)",
        "self.documents = rows.documents.sum(axis=0)",
        ("test_counts_are_those_of_an_exposure_observer",),
    ),
    Fault(
        "hashed-length",
        "dropped factor",
        "length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())",
        "length = np.asarray(counts.multiply(counts).sum(axis=1)).ravel()",
        ("test_hashed_blocks_have_length_1_and_know_no_length",),
    ),
    Fault(
        "stylometry-spread",
        "missing clip",
        "math.sqrt(max(square - mean * mean, 0.0))",
        "math.sqrt(square)",
        ("test_stylometry_by_hand",),
    ),
    Fault(
        "tag-errors-transpose",
        "wrong axis",
        "np.linalg.solve(np.array(self.confusion).T, observed)",
        "np.linalg.solve(np.array(self.confusion), observed)",
        ("test_two_groups_are_corrected_as_in_the_formula",),
    ),
    Fault(
        "hinge-sign",
        "wrong sign",
        "return (query * (llm - human)).sum(dim=-1)",
        "return (query * (human - llm)).sum(dim=-1)",
        ("test_equation_1_and_2_by_hand",),
    ),
    Fault(
        "grade-middles",
        "dropped factor",
        "middle = (grades[1:] + grades[:-1]) / 2",
        "middle = grades[:-1]",
        (
            "test_kappas_are_those_of_scikit_learn",
            "test_what_is_not_graded_or_undefined",
        ),
    ),
    Fault(
        "votes-agreement",
        "off by one",
        "(counts * (counts - 1)).sum(axis=1, keepdims=True) / (m * (m - 1))",
        "(counts * (counts - 1)).sum(axis=1, keepdims=True) / (m * m)",
        ("test_percent_and_alpha_follow_their_definitions",),
    ),
    Fault(
        "bm25-tf-part",
        "swapped arguments",
        "bm25s.BM25(k1=k1, b=b,",
        "bm25s.BM25(k1=b, b=k1,",
        ("test_scores_are_the_formula",),
    ),
    Fault(
        "bm25-idf",
        "dropped factor",
        'method=method, backend="numpy")',
        'method="lucene", backend="numpy")',
        ("test_scores_are_the_formula",),
    ),
    Fault(
        "rerank-depth",
        "off by one",
        "top = run.top(depth)",
        "top = run.top(depth + 1)",
        ("test_reranking_orders_the_top_and_drops_the_rest",),
    ),
    Fault(
        "cosine-norm",
        "dropped factor",
        "norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)",
        "norms = np.linalg.norm(a, axis=1)",
        ("test_cosines_row_by_row",),
    ),
)


def main() -> int:
    """Plant what was asked for and say what was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these faults, without a file")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    asked = parser.parse_args()
    known = {fault.name: fault for fault in FAULTS}
    if unknown := sorted(set(asked.only or ()) - set(known)):
        parser.error(f"no fault of this name: {', '.join(unknown)}")
    faults = [known[name] for name in asked.only] if asked.only else list(FAULTS)
    if asked.list:
        for fault in faults:
            print(f"{fault.name} ({fault.kind}): {fault.right!r} -> {fault.wrong!r}")
        return 0
    places = _test_files(name for fault in faults for name in fault.tests)
    sources = {p: p.read_text(encoding="utf-8") for p in sorted((ROOT / "src").rglob("*.py"))}
    homes = {fault.name: _homes(fault.right, sources) for fault in faults}
    problems = [f"{name}: no test of this name" for name, files in places.items() if not files]
    problems += [
        f"{name}: the snippet stands {len(found)} times under src/"
        for name, found in homes.items()
        if len(found) != 1
    ]
    if problems:
        print("\n".join(problems))
        return 1
    began = time.perf_counter()
    missed: list[Fault] = []
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder)
        for part in ("src", "integrations"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        status, said = _run(copy, sorted({name for f in faults for name in f.tests}), places)
        print(f"without a fault: status {status}, {time.perf_counter() - began:.1f} s", flush=True)
        if status:
            print(said)
            return 1
        for fault in faults:
            start = time.perf_counter()
            home = homes[fault.name][0]
            target = copy / home.relative_to(ROOT)
            target.write_text(sources[home].replace(fault.right, fault.wrong), encoding="utf-8")
            status, said = _run(copy, list(fault.tests), places)
            target.write_text(sources[home], encoding="utf-8")
            if status != CAUGHT:
                missed.append(fault)
            found = "caught" if status == CAUGHT else f"NOT CAUGHT (status {status})"
            print(f"{fault.name}: {found}, {time.perf_counter() - start:.1f} s", flush=True)
    seconds = time.perf_counter() - began
    print(f"{len(faults) - len(missed)} of {len(faults)} caught, {seconds:.0f} s")
    if not asked.only:
        RESULTS.write_text(json.dumps(_summary(faults, missed), indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


def _homes(right: str, sources: dict[Path, str]) -> list[Path]:
    """Return the file of each place where a snippet stands."""
    return [path for path, text in sources.items() for _ in range(text.count(right))]


def _test_files(names: Iterable[str]) -> dict[str, list[str]]:
    """Return for each test function the files under tests/ that define it."""
    wanted: dict[str, list[str]] = {name: [] for name in names}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^def (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            if name in wanted:
                wanted[name].append(str(path))
    return wanted


def _run(copy: Path, tests: list[str], places: dict[str, list[str]]) -> tuple[int, str]:
    """Run tests against a copy; return the status of pytest and the end of what it said."""
    chosen = [f"{path}::{name}" for name in tests for path in places[name]]
    given = {
        **os.environ,
        "PYTHONPATH": f"{copy / 'src'}{os.pathsep}{copy / 'integrations'}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    options = ["-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=short"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *chosen],
            cwd=ROOT,
            env=given,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within {LIMIT_S} s"
    return done.returncode, (done.stdout + done.stderr)[-2_000:]


def _summary(faults: list[Fault], missed: list[Fault]) -> dict[str, object]:
    total, lost = Counter(f.kind for f in faults), Counter(f.kind for f in missed)
    return {
        "faults": len(faults),
        "caught": len(faults) - len(missed),
        "by_kind": {k: {"faults": n, "caught": n - lost[k]} for k, n in sorted(total.items())},
        "not_caught": [fault.name for fault in missed],
    }


if __name__ == "__main__":
    sys.exit(main())
