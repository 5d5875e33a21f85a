"""What both example applications print at the end."""

from __future__ import annotations

from collections.abc import Sequence

from rag_sourcebias.core.data import Corpus
from rag_sourcebias.observe.observers import ExposureCounts


def print_skew(counts: ExposureCounts, corpus: Corpus, dropped: int) -> None:
    sizes = corpus.tags.counts()
    shares = counts.shares()
    print(f"\n{counts.n_retrievals} retrievals observed, {dropped} events dropped")
    print(f"{'source':<12} {'of corpus':>9} {'of exposure':>11} {'at rank 1':>9}")
    for name, group in counts.groups.items():
        print(
            f"{name or 'untagged':<12} {sizes.get(name, 0) / len(corpus):>9.1%} "
            f"{shares[name]:>11.1%} {group.first / counts.n_retrievals:>9.1%}"
        )


def print_answers(questions: Sequence[str], answers: Sequence[str]) -> None:
    for question, answer in zip(questions, answers, strict=True):
        print(f"Q: {question}\nA: {' '.join(answer.split())}\n")
