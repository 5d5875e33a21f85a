"""Is the error that is stated of a detector the true one, on a domain that it has not seen?

    python benchmarks/detector/elsewhere.py [--data FOLDER] [--output FILE]

Leaves each domain out, fits a detector on the others, and compares two statements with its error
on all documents of that domain: the held-out error of `tag fit`, and the error on 50 to 400
documents drawn evenly, as `tag verify` states it (2,000 draws, with replacement as from a large
store: share within 5 points, and how often the interval holds the truth). Then from how many on 95
of 100 draws are within 5 points, and how often detected tags, or coins, are refused as telling
nothing.

Two sets hold no documents of either kind to leave out: perplexity_trap has no texts but 20 lists of
tokens, and all answers of pandalm are by models, of which verification is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np
import sets
from scipy.stats import binom
from sets import Labelled

from rag_sourcebias.core.codec import environment
from rag_sourcebias.core.errors import InsufficientDataError
from rag_sourcebias.infer.verified import Verification, require_informative
from rag_sourcebias.tagging.detector.fit import fit_detector
from rag_sourcebias.tagging.detector.model import Rate, auroc

HERE = Path(__file__).parent
DATA = "RAG_SOURCEBIAS_DATA"
PER_LABEL, TESTED, DRAWS, COIN_DRAWS = 100, 1_000, 2_000, 500
SIZES = (50, 100, 200, 400)


def domains(root: Path) -> dict[str, Labelled]:
    essays = sets.outfox(root)
    found: dict[str, Labelled] = {}
    for part in ("test", "valid"):
        for name in ("chatgpt", "text_davinci_003", "flan_t5_xxl"):
            rows = [
                i
                for i, (doc, _, _) in enumerate(essays.documents)
                if doc.startswith(part) and doc.endswith(("/human", f"/{name}"))
            ]
            found[f"outfox {part}, {name}"] = essays.take(rows)
    found["crowdrag25"] = sets.crowdrag(root)
    found |= {name: sets.rewrites(root, name) for name in ("nq-utd", "nfcorpus")}
    return {name: one.any_llm() for name, one in found.items()}


def sampled(one: Labelled, per_label: int, seed: int = 0) -> Labelled:
    order = np.random.default_rng(seed).permutation(len(one.documents))
    left = dict.fromkeys(("human", sets.ANY), per_label)
    rows = []
    for i in order.tolist():
        label = one.documents[i][2]
        if left[label]:
            left[label] -= 1
            rows.append(i)
    return one.take(rows)


def left_out(name: str, all_domains: dict[str, Labelled]) -> dict:
    # the same essays by people stand in three domains: leave out the whole essay set
    kin = name.partition(",")[0]
    rest = {k: v for k, v in all_domains.items() if k.partition(",")[0] != kin}
    parts = [(k, sampled(v, PER_LABEL)) for k, v in rest.items()]
    documents, groups = [], []
    for place, part in parts:
        for (doc, text, label), group in zip(part.documents, part.groups, strict=True):
            documents.append((f"{place}/{doc}", text, label))
            groups.append(group)
    detector = fit_detector(documents, groups=groups, rng=0)
    test = sampled(all_domains[name], TESTED // 2, seed=1)
    found = detector.predict([text for _, text, _ in test.documents])
    codes = np.array([detector.labels.index(label) for _, _, label in test.documents])
    wrong = found.probabilities.argmax(axis=1) != codes
    row = {
        "domain": name,
        "n": len(codes),
        "auroc": round(auroc(found.probabilities[:, 0], codes == 0), 4),
        "true": round(float(wrong.mean()), 4),
        "held_out": round(detector.report.error_of_all.value, 4),
    }
    rng = np.random.default_rng(2)
    for n in SIZES:
        hits = rng.choice(wrong, (DRAWS, n)).sum(axis=1).tolist()
        of = {k: Rate.of(k, n) for k in set(hits)}
        rates = [of[k] for k in hits]
        row[f"verified_{n}"] = {
            "within_5": round(
                float(np.mean([abs(r.value - row["true"]) <= 0.05 for r in rates])), 4
            ),
            "held": round(float(np.mean([r.lower <= row["true"] <= r.upper for r in rates])), 4),
        }
    row["enough"] = enough(row["true"])
    row["refused_200"] = refused(codes, found.probabilities.argmax(axis=1), rng)
    row["refused_200_coins"] = refused(codes, None, rng)
    return row


def enough(error: float) -> int:
    """From how many verified documents on 95 of 100 statements are within 5 points."""
    n = np.arange(20, 1_000)
    low, high = np.ceil(n * (error - 0.05) - 1e-9) - 1, np.floor(n * (error + 0.05) + 1e-9)
    held = binom.cdf(high, n, error) - binom.cdf(low, n, error) >= 0.95
    return int(n[~held][-1]) + 1


def refused(codes: np.ndarray, guessed: np.ndarray | None, rng: np.random.Generator) -> float:
    """How often 200 verified documents are refused; tags are coins where none are guessed."""
    names, n_refused = ("human", sets.ANY), 0
    for _ in range(COIN_DRAWS):
        rows = rng.integers(len(codes), size=200)
        tags = rng.integers(2, size=200) if guessed is None else guessed[rows]
        drawn = Verification(
            kind="store",
            detector="d",
            tags={str(i): names[tag] for i, tag in enumerate(tags)},
            chance={},
            truth={str(i): names[code] for i, code in enumerate(codes[rows])},
            score={},
            decided=frozenset(),
            n_drawn=200,
        )
        try:
            require_informative(drawn)
        except InsufficientDataError:
            n_refused += 1
    return round(n_refused / COIN_DRAWS, 4)


def table(rows: list[dict]) -> str:
    lines = [
        "| left out | AUROC | truly wrong | stated held out | "
        f"within 5 points, of {' / '.join(map(str, SIZES))} verified | interval holds it | "
        "within 5 points in 95 of 100 from | refused, of 200 verified |",
        f"|{'---|' * 8}",
    ]
    for row in rows:
        each = [row[f"verified_{n}"] for n in SIZES]
        lines.append(
            f"| {row['domain']} | {row['auroc']:.3f} | {row['true']:.1%} | {row['held_out']:.1%} | "
            f"{' / '.join(format(e['within_5'], '.0%') for e in each)} | "
            f"{min(e['held'] for e in each):.1%} | {row['enough']} | {row['refused_200']:.0%} "
            f"(coins: {row['refused_200_coins']:.0%}) |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Stated and true errors on domains left out.")
    parser.add_argument("--data", type=Path, help=f"default: the folder named by {DATA}")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    root = options.data or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if root is None:
        parser.error(f"give --data, or set {DATA} to the folder of real data sets")
    every = domains(root)
    rows = []
    for name in every:
        rows.append(left_out(name, every))
        print(rows[-1], file=sys.stderr, flush=True)
    output = options.output or HERE.parent / "results" / "detector_elsewhere.json"
    record = {"environment": environment(), "rows": rows}
    output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
