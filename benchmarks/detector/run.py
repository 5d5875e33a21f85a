"""How well do the source and the style detector do on real text, and elsewhere?

    python benchmarks/detector/run.py [--data FOLDER] [--output FILE]

Reads outfox, crowdrag25, nq-utd and nq-utd-styles from the folder (default: the one named by
RAG_SOURCEBIAS_DATA), prints a Markdown table and writes JSON with versions and machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import sets
from sets import Labelled

from rag_sourcebias.core.values import environment, to_plain
from rag_sourcebias.tagging.detector.fit import fit_detector
from rag_sourcebias.tagging.detector.model import Detector, DetectorReport, evaluate

HERE = Path(__file__).parent
DATA = "RAG_SOURCEBIAS_DATA"
SEED = 0


def fitted(train: Labelled, *, target: str = "source") -> tuple[Detector, float]:
    start = time.perf_counter()
    detector = fit_detector(train.documents, target=target, groups=train.groups, rng=SEED)
    return detector, time.perf_counter() - start


def tested(detector: Detector, test: Labelled) -> tuple[DetectorReport, float]:
    """Figures on documents that had no part in the fit, and documents tagged per second."""
    texts = [text for _, text, _ in test.documents]
    codes = np.array([detector.labels.index(label) for _, _, label in test.documents])
    start = time.perf_counter()
    found = detector.predict(texts)
    speed = len(texts) / (time.perf_counter() - start)
    report = evaluate(
        found,
        codes,
        labels=detector.labels,
        sources=detector.target == "source",
        n_groups=len(set(test.groups)),
    )
    return report, speed


def experiments(root: Path) -> list[dict]:
    essays, answers = sets.outfox(root), sets.crowdrag(root).any_llm()
    essay_halves, answer_halves = essays.any_llm().halves(), answers.halves()
    both = essay_halves[0] + answer_halves[0]
    style_halves, pair_halves = sets.styles(root).halves(), sets.rewrites(root).halves()
    attacked = sets.paraphrased(root).halves()[1]
    plan = [
        ("outfox + crowdrag25", both, "source", {
            "outfox + crowdrag25": essay_halves[1] + answer_halves[1],
            "outfox": essay_halves[1],
            "crowdrag25": answer_halves[1],
            "outfox, LLM essays paraphrased": attacked,
            "nq-utd (other topics, another LLM)": pair_halves[1].any_llm(),
        }),
        ("outfox, each LLM apart", essays.halves()[0], "source", {"outfox": essays.halves()[1]}),
        ("outfox", essay_halves[0], "source", {
            "outfox": essay_halves[1], "crowdrag25, all": answers,
        }),
        ("crowdrag25", answer_halves[0], "source", {
            "crowdrag25": answer_halves[1], "outfox, all": essays.any_llm(),
        }),
        ("nq-utd (rewrites)", pair_halves[0], "source", {"nq-utd (rewrites)": pair_halves[1]}),
        ("nq-utd-styles", style_halves[0], "style", {"nq-utd-styles": style_halves[1]}),
    ]  # fmt: skip
    rows = []
    for name, train, target, tests in plan:
        detector, seconds = fitted(train, target=target)
        rows.append(row(name, "held out while fitting", detector, detector.report, seconds=seconds))
        for test_name, test in tests.items():
            report, speed = tested(detector, test)
            rows.append(row(name, test_name, detector, report, speed=speed))
    return rows


def repeats(root: Path, *, n_splits: int = 10) -> dict:
    """Fit on a random half of nq-utd and test on the other, again and again.

    One split says little: a few hundred documents are decided, of which a handful is wrong.
    """
    pairs = sets.rewrites(root)
    names = sorted(set(pairs.groups))
    splits = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(names)
        half = set(order[: len(names) // 2].tolist())
        detector, _ = fitted(pairs.where(half.__contains__))
        report, _ = tested(detector, pairs.where(lambda name, half=half: name not in half))
        splits.append({
            name: {"held_out": rate(detector.report), "tested": rate(report)}
            for name, rate in (
                ("auroc", lambda r: round(r.auroc["human"], 4)),
                ("unknown", lambda r: round(r.unknown.value, 4)),
                ("wrong", lambda r: [r.error.hits, r.error.n]),
            )
        })  # fmt: skip
    return {"set": "nq-utd (rewrites)", "splits": splits}


def pooled(found: dict) -> str:
    shares = []
    for side in ("held_out", "tested"):
        wrong, decided = np.sum([split["wrong"][side] for split in found["splits"]], axis=0)
        each = [w / n for w, n in (split["wrong"][side] for split in found["splits"]) if n]
        shares.append(
            f"{wrong / decided:.1%} ({wrong} of {decided}; {min(each):.1%} … {max(each):.1%})"
        )
    return (
        f"{found['set']}, {len(found['splits'])} random halves: wrong of decided {shares[0]} held "
        f"out, {shares[1]} tested"
    )


def row(
    train: str,
    test: str,
    detector: Detector,
    report: DetectorReport,
    *,
    seconds: float | None = None,
    speed: float | None = None,
) -> dict:
    return {
        "train": train,
        "test": test,
        "target": detector.target,
        "max_error": detector.max_error,
        "threshold": detector.threshold,
        "fit_seconds": seconds and round(seconds, 1),
        "documents_per_second": speed and round(speed),
        "report": rounded(to_plain(report)),
    }


def rounded(value: object) -> object:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def share(rate: dict | None) -> str:
    if rate is None or not rate["n"]:
        return "–"
    return f"{rate['hits'] / rate['n']:.1%} [{rate['lower']:.1%}, {rate['upper']:.1%}]"


def area(report: dict) -> str:
    known = [value for value in report["auroc"].values() if value is not None]
    if not known:
        return "–"
    low, high = min(known), max(known)
    return f"{low:.3f}" if round(low, 3) == round(high, 3) else f"{low:.3f} … {high:.3f}"


def table(rows: list[dict]) -> str:
    lines = [
        "| trained on half of | tested on | n | AUROC | Brier | ECE | wrong, all decided | unknown "
        "| of them unlike | wrong of decided | sensitivity | specificity |",
        f"|{'---|' * 12}",
    ]
    for line in rows:
        report = line["report"]
        cells = (
            line["train"],
            line["test"],
            f"{report['n_documents']:,}",
            area(report),
            f"{report['brier']:.3f}",
            f"{report['calibration_error']:.3f}",
            share(report["error_of_all"]),
            share(report["unknown"]),
            f"{report['unlike']['hits']:,}",
            share(report["error"]),
            share(report["sensitivity"]),
            share(report["specificity"]),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Source and style detectors on real text.")
    parser.add_argument("--data", type=Path, help=f"default: the folder named by {DATA}")
    parser.add_argument("--output", type=Path, help="default: benchmarks/results/detector.json")
    options = parser.parse_args()
    root = options.data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if root is None:
        parser.error(f"give --data, or set {DATA} to the folder of real data sets")
    rows, again = experiments(root), repeats(root)
    import sklearn

    found = environment() | {"scikit-learn": sklearn.__version__}
    text = ",\n    ".join(json.dumps(line, ensure_ascii=False) for line in rows)
    record = (
        f'{{\n  "environment": {json.dumps(found)},\n  "rows": [\n    {text}\n  ],\n'
        f'  "repeats": {json.dumps(again)}\n}}\n'
    )
    output = options.output or HERE.parent / "results" / "detector.json"
    output.write_text(record, encoding="utf-8")
    print(table(rows))
    print(pooled(again))
    return 0


if __name__ == "__main__":
    sys.exit(main())
