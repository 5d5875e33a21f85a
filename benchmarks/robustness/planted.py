"""Sixty faults planted in the formulas, one at a time: does a test catch each?

    python benchmarks/robustness/planted.py                     # all; results/planted.json
    python benchmarks/robustness/planted.py --only bm25-idf holm-factor
    python benchmarks/robustness/planted.py --list

A fault is a snippet of source text and what somebody could have written in its place. No path is
stored: the snippet occurs exactly once below src/ and integrations/, and a test is looked up by the
name of its function below tests/, so both may move. Faults are planted in a temporary copy; the
checkout is only read. The tests first run on the copy without a fault, and must pass. A fault is
caught where pytest ends with status 1 and a test failed; it is broken where no test ran to its end,
or where the code could not be imported. The exit status of this script is 1 unless all are caught,
and where a snippet or a test does not occur exactly once.

The faults were chosen before the code was cut to size. One (in the normal mixture) went with its
code; "beta-mixture-rest" stands for it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

__all__ = ["FAULTS", "Fault"]

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "planted.json"
PARTS = ("src", "integrations")
LIMIT_S = 300
_FAILED = 1  # status of pytest where a test failed; from 2 on, tests were not run to their end
# What code raises that is no longer Python, rather than another formula.
_NO_CODE = frozenset({"ImportError", "ModuleNotFoundError", "NameError", "SyntaxError"})


@dataclass(frozen=True)
class Fault:
    """One snippet and what replaces it.

    Parameters
    ----------
    name : str
    kind : str
    right, wrong : str
        ``right`` occurs exactly once in all files below src/ and integrations/.
    tests : tuple of str
        Test functions: ``name``, or ``file::name`` where several files define one of that name;
        ``file`` is a pattern of the file's name.
    """

    name: str
    kind: str
    right: str
    wrong: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """How the tests of one fault ended.

    Parameters
    ----------
    verdict : {"caught", "missed", "broken"}
    raised : str
        Class of the error that the first failing test raised; empty where none failed.
    output : str
        End of what pytest printed.
    """

    verdict: str
    raised: str
    output: str


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
        ("test_style_ranks.py::test_against_scipy",),
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
        ("test_is_the_jensen_shannon_divergence_of_scipy",),
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
        "math.sqrt(float(np.sum(sums**2)) * g / (g - 1)) / len(influence)",
        "math.sqrt(float(np.sum(sums**2))) / len(influence)",
        ("test_singletons_give_the_t_interval",),
    ),
    Fault(
        "bootstrap-tail",
        "wrong tail",
        "lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)",
        "lower, upper = np.quantile(draws, [tail / 2, 1 - tail / 2], axis=0)",
        ("test_ends_are_quantiles_at_the_tails_that_student_asks_for",),
    ),
    Fault(
        "sign-flip-exact",
        "wrong comparison",
        "(np.abs(signs @ differences) >= observed)",
        "(np.abs(signs @ differences) > observed * 1.000001)",
        ("test_few_queries_are_tested_exactly",),
    ),
    Fault(
        "sign-flip-drawn",
        "dropped factor",
        "flipped = 2 * (kept @ differences) - total",
        "flipped = (kept @ differences) - total",
        ("test_many_queries_against_the_exact_law_and_student",),
    ),
    Fault(
        "friedman-statistic",
        "off by one",
        "n * (k - 1) * w",
        "n * k * w",
        ("test_friedman.py::test_against_scipy",),
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
        "degrees = max(math.ceil(wanted**2), MIN_QUERIES) - 1",
        "degrees = max(math.ceil(wanted), MIN_QUERIES) - 1",
        ("test_the_queries_needed_are_the_first_number_with_the_power",),
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
        "together / ((1 + len(y) / len(yhat_unlabeled)) * spread), 0.0), 1.0)",
        "together / spread, 0.0), 1.0)",
        ("test_equal_to_ppi_py",),
    ),
    Fault(
        "ppi-plus-clip",
        "missing clip",
        "return min(max(together / ((1 + len(y) / len(yhat_unlabeled)) * spread), 0.0), 1.0)",
        "return together / ((1 + len(y) / len(yhat_unlabeled)) * spread)",
        ("test_equal_to_ppi_py",),
    ),
    Fault(
        "crc-rank",
        "off by one",
        "return math.ceil((n + 1) * (1 - alpha))",
        "return math.ceil(n * (1 - alpha))",
        ("test_ranks_equal_rational_arithmetic",),
    ),
    Fault(
        "crc-misses",
        "off by one",
        "misses = math.floor((n * alpha - (1 - alpha)) / 2)",
        "misses = math.floor(n * alpha / 2)",
        ("test_ranks_equal_rational_arithmetic",),
    ),
    Fault(
        "crc-keep",
        "wrong sign",
        "tails, keep = self.upper if lam >= 0 else self.lower, 1.0 - abs(lam)",
        "tails, keep = self.upper if lam >= 0 else self.lower, 1.0 - lam",
        ("test_utilities_equal_the_equations",),
    ),
    Fault(
        "betting-payoff",
        "swapped arguments",
        "parts.append((lower - rows) / np.maximum(1 - lower, _SMALLEST_SHARE))",
        "parts.append((rows - lower) / np.maximum(1 - lower, _SMALLEST_SHARE))",
        ("test_betting_matches_the_literal_products",),
    ),
    Fault(
        "beta-mixture-rest",
        "off by one",
        "betaln(a + total, b + rest)",
        "betaln(a + total, b + rest + 1)",
        ("test_beta_matches_formula_and_integration",),
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
        ("test_independent_shares_are_close_to_clopper_pearson",),
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
        "return (np.cumsum(count) - (count - 1) / 2)[code]",
        "return (np.cumsum(count) - (count + 1) / 2)[code]",
        ("test_auc_agrees_with_scikit_learn",),
    ),
    Fault(
        "auc-influence",
        "dropped factor",
        "share = (share - auc * np.where(right, n0[codes], n1[codes]))[usable] / pairs",
        "share = (share - np.where(right, n0[codes], n1[codes]))[usable] / pairs",
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
        ("test_documents_are_counted_by_rank",),
    ),
    Fault(
        "bucket-mean",
        "dropped factor",
        "values=np.clip(np.array(self.values) / self.n, 0, 1)",
        "values=np.clip(np.array(self.values), 0, 1)",
        ("test_events_of_a_key_are_averaged_until_its_time_is_over",),
    ),
    Fault(
        "rollup-documents",
        "dropped term",
        "self.documents = self.documents + rows.documents.sum(axis=0)",
        "self.documents = rows.documents.sum(axis=0)",
        ("test_documents_are_counted_by_rank",),
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
        ("test_probabilities_and_mean_votes_are_rounded",),
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
    """Plant the faults and report which were caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    names = [fault.name for fault in FAULTS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="these faults")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    parser.add_argument("--out", type=Path, help="default: results/planted.json; none with --only")
    options = parser.parse_args()
    faults = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    if options.list:
        for fault in faults:
            print(f"{fault.name} ({fault.kind}): {fault.right!r} -> {fault.wrong!r}")
        return 0
    homes, problems = _homes(faults)
    nodes, missing = _nodes({test for fault in faults for test in fault.tests})
    if problems or missing:
        print("\n".join(problems + missing))
        return 1
    start = time.perf_counter()
    try:
        outcomes = _plant_all(faults, homes, nodes)
    except KeyboardInterrupt:
        print("interrupted: nothing was written, the checkout is as it was")
        return 130
    if outcomes is None:
        return 1
    seconds = time.perf_counter() - start
    caught = sum(outcome.verdict == "caught" for outcome in outcomes)
    print(f"{caught} of {len(faults)} caught, {seconds:.0f} s")
    if out := options.out or (None if options.only else RESULTS):
        summary = _summary(faults, outcomes, len(nodes), seconds)
        out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 0 if caught == len(faults) else 1


def _plant_all(
    faults: Sequence[Fault], homes: dict[str, Path], nodes: dict[str, str]
) -> list[Outcome] | None:
    """Plant each fault in a copy; None where the tests do not pass without one."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder)
        for part in PARTS:
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        _check_imports(copy)
        status, output = _pytest(copy, sorted(nodes.values()))
        print(f"without a fault: {_counts(output)}", flush=True)
        if status != 0 or " skipped" in _counts(output):
            print(output)
            return None
        begin = time.perf_counter()
        for i, fault in enumerate(faults, 1):
            target = copy / homes[fault.name]
            text = target.read_text(encoding="utf-8")
            target.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")
            outcome = _outcome(*_pytest(copy, [nodes[test] for test in fault.tests]))
            target.write_text(text, encoding="utf-8")
            outcomes.append(outcome)
            minutes = (time.perf_counter() - begin) / 60 / i * (len(faults) - i)
            verdict = f"{outcome.verdict} {outcome.raised}".rstrip()
            print(f"{i}/{len(faults)} {fault.name}: {verdict}, {minutes:.1f} min left", flush=True)
            if outcome.verdict != "caught":
                print(outcome.output, flush=True)
    return outcomes


def _homes(faults: Sequence[Fault]) -> tuple[dict[str, Path], list[str]]:
    """Return the file of each snippet, below the root, and what is wrong with the others."""
    paths = [path for part in PARTS for path in sorted((ROOT / part).rglob("*.py"))]
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}
    homes, problems = {}, []
    for fault in faults:
        places = [path for path, text in texts.items() for _ in range(text.count(fault.right))]
        if len(places) == 1:
            homes[fault.name] = places[0]
        else:
            problems.append(f"{fault.name}: the snippet occurs {len(places)} times, not once")
    return homes, problems


def _nodes(tests: set[str]) -> tuple[dict[str, str], list[str]]:
    """Return the pytest id of each test, and what is wrong with the others."""
    defined = [
        (path, node, name)
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node, name in _functions(ast.parse(path.read_text(encoding="utf-8")).body)
    ]
    nodes, problems = {}, []
    for test in sorted(tests):
        pattern, _, function = test.rpartition("::")
        ids = [
            f"{path}::{node}"
            for path, node, name in defined
            if name == function and fnmatch(path.name, pattern or "*")
        ]
        if len(ids) == 1:
            nodes[test] = ids[0]
        else:
            problems.append(f"{test}: {len(ids)} tests of this name, not one")
    return nodes, problems


def _functions(body: Sequence[ast.stmt], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the id within its file, and the name, of each test function."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, f"{above}{statement.name}::")
        elif isinstance(statement, ast.FunctionDef) and statement.name.startswith("test_"):
            yield above + statement.name, statement.name


def _environment(copy: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(copy / part) for part in PARTS),
        # A file rewritten within a second, at the same length, would be read from its bytecode.
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / ".hypothesis"),
        "OMP_NUM_THREADS": "1",
        "CI": "1",  # hypothesis draws the same examples each time, and pytest shortens no line
    }


def _check_imports(copy: Path) -> None:
    """Raise where an installed package hides the copy."""
    command = "import rag_sourcebias as a, rag_sourcebias_integrations as b; print(a.__path__[0])"
    done = subprocess.run(
        [sys.executable, "-c", command + "; print(b.__path__[0])"],
        env=_environment(copy),
        capture_output=True,
        text=True,
        check=True,
    )
    if not all(line.startswith(str(copy)) for line in done.stdout.splitlines()):
        raise RuntimeError(f"the tests would import another copy: {done.stdout.split()}")


def _pytest(copy: Path, ids: Sequence[str]) -> tuple[int, str]:
    """Return the status of pytest and the end of what it printed."""
    plugins = ["-p", "no:xdist", "-p", "no:randomly", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "--tb=short", *plugins, *ids],
            cwd=ROOT,
            env=_environment(copy),
            capture_output=True,
            text=True,
            timeout=LIMIT_S * (1 if len(ids) < 5 else 4),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, f"no end within the limit of {LIMIT_S} s for a test"
    return done.returncode, (done.stdout + done.stderr)[-3_000:]


def _outcome(status: int, output: str) -> Outcome:
    raised = ""
    if line := re.search(r"^FAILED .*? - (.*)$", output, re.MULTILINE):
        # A bare assert is shown as its expression, without the name of the class.
        error = re.match(r"(?:\w+\.)*(\w+)(?::|$)", line[1])
        raised = error[1] if error else "AssertionError"
    failed = status == _FAILED and " failed" in _counts(output)
    if failed and raised not in _NO_CODE:
        return Outcome("caught", raised, output)
    return Outcome("missed" if status == 0 else "broken", raised, output)


def _counts(output: str) -> str:
    """Return the line in which pytest counts what passed and failed."""
    lines = re.findall(r"^\d+ (?:passed|failed|skipped|error)\b.* in \d.*$", output, re.MULTILINE)
    return lines[-1] if lines else ""


def _summary(
    faults: Sequence[Fault], outcomes: Sequence[Outcome], n_tests: int, seconds: float
) -> dict[str, object]:
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    kinds = Counter(fault.kind for fault in faults)
    caught = Counter(
        fault.kind for fault, o in zip(faults, outcomes, strict=True) if o.verdict == "caught"
    )
    return {
        "faults": len(faults),
        **{verdict: verdicts[verdict] for verdict in ("caught", "missed", "broken")},
        "tests": n_tests,
        "seconds": round(seconds, 1),
        "by_kind": {k: {"faults": n, "caught": caught[k]} for k, n in sorted(kinds.items())},
        "each": [
            {"name": f.name, "kind": f.kind, "verdict": o.verdict, "raised": o.raised}
            for f, o in zip(faults, outcomes, strict=True)
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
