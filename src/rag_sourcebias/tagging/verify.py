"""Draw documents for people to say who wrote them, and say how wrong a detector was on those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from rag_sourcebias.core.data import DocTags, Qrels, Run
from rag_sourcebias.core.errors import DataError, as_generator
from rag_sourcebias.infer.verified import (
    Verification,
    draw_chances,
    draw_rows,
    relevant_slots,
    side,
)
from rag_sourcebias.intake.belong import check_run
from rag_sourcebias.tagging.detector.model import Detector, Rate, auroc
from rag_sourcebias.tagging.documents import Row, Tagger, digest, tag_documents

ENOUGH_AUROC = 0.8  # from here on a detector may not leave documents unknown


class LocalError(NamedTuple):
    """How wrong a detector was on verified documents of a store.

    Parameters
    ----------
    auroc : float
    error_of_all, unknown, error : Rate
        Wrong if every document were decided; left unknown where it may abstain; wrong among the
        rest.
    sensitivity, specificity : Rate
        Of all.
    n_unclear : int
        Documents of which nobody could tell.
    kind : str
        As of the :class:`Verification`.
    """

    auroc: float
    error_of_all: Rate
    unknown: Rate
    error: Rate
    sensitivity: Rate
    specificity: Rate
    n_unclear: int
    kind: str

    @property
    def abstains(self) -> bool:
        """Whether it may leave documents unknown."""
        return self.auroc < ENOUGH_AUROC

    @classmethod
    def of(cls, found: Verification) -> LocalError:
        """Hold the tags of a verification against what people found."""
        ids = [doc for doc, source in found.truth.items() if side(source)]
        truth = np.array([side(found.truth[doc]) for doc in ids])
        tag = np.array([side(found.tags[doc]) for doc in ids])
        area = auroc(np.array([found.score[doc] for doc in ids]), truth == -1)
        sure = np.array([doc in found.decided for doc in ids]) | (area >= ENOUGH_AUROC)
        right = tag == truth
        shares = (~right, ~sure, (~right)[sure], right[truth == -1], right[truth == 1])
        rates = [Rate.of(int(share.sum()), len(share)) for share in shares]
        return cls(
            auroc=area,
            error_of_all=rates[0],
            unknown=rates[1],
            error=rates[2],
            sensitivity=rates[3],
            specificity=rates[4],
            n_unclear=len(found.truth) - len(ids),
            kind=found.kind,
        )


class VerifiedTagger:
    """Tag documents as people verified them.

    Parameters
    ----------
    truth : mapping of str to str or None
        Source by document id.
    """

    def __init__(self, truth: Mapping[str, str | None]) -> None:
        self.truth = truth
        self.fingerprint = f"verified {digest(truth)}"

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document; None where nobody looked or could tell."""
        source = self.truth.get(doc_id)
        return None if source is None else DocTags(source=source, origin="declared")


def draw_store(
    documents: Iterable[Row],
    declared: Sequence[Tagger],
    detector: Detector,
    n: int,
    *,
    rng: np.random.Generator | int,
) -> tuple[Verification, dict[str, str]]:
    """Draw evenly from the documents of a store whose source nobody declares.

    Returns
    -------
    Verification
        With nothing verified yet.
    dict of str to str
        Text of each document drawn.
    """
    generator = as_generator(rng)
    drawn: list[tuple[str, str]] = []
    total = 0
    for doc_id, text in _undeclared(documents, declared):
        total += 1
        place = len(drawn) if len(drawn) < n else int(generator.integers(total))
        if place == len(drawn):
            drawn.append((doc_id, text))
        elif place < n:
            drawn[place] = (doc_id, text)
    texts = {drawn[i][0]: drawn[i][1] for i in generator.permutation(len(drawn)).tolist()}
    chances = dict.fromkeys(texts, len(texts) / max(total, 1))
    return _verification(detector, texts, chance=chances, drawn=list(texts)), texts


def draw_slots(
    documents: Iterable[Row],
    declared: Sequence[Tagger],
    detector: Detector,
    n: int,
    *,
    runs: Sequence[Run],
    qrels: Qrels,
    cutoff: int,
    rng: np.random.Generator | int,
) -> tuple[Verification, dict[str, str]]:
    """Draw relevant documents by what they weigh in the rankings of runs.

    Returns
    -------
    Verification
        With the tags of all relevant documents, and nothing verified yet.
    dict of str to str
        Text of each document drawn.

    Raises
    ------
    DataError
        If a relevant document is not in the store.
    """
    generator = as_generator(rng)
    for run in runs:
        check_run(run, qrels)
    slots = [relevant_slots(run, qrels, "NDCG", cutoff) for run in runs]
    relevant = {qrels.doc_ids[d] for one in slots for d in np.unique(one.doc).tolist()}
    rows = [row for row in documents if row[0] in relevant]
    if missing := relevant - {row[0] for row in rows}:
        raise DataError(
            f"{len(missing)} of {len(relevant)} relevant documents, such as {min(missing)!r}, are "
            "not in the store; give the store that the runs were retrieved from"
        )
    known = {d: tags.source for d, tags in tag_documents(rows, declared)} if declared else {}
    guessed = {d: text for d, text, _ in rows if known.get(d) is None}
    chance = draw_chances(slots, np.array([d in guessed for d in qrels.doc_ids]), n)
    chosen = generator.permutation(draw_rows(chance, generator)).tolist()
    chances = {d: float(c) for d, c in zip(qrels.doc_ids, chance, strict=True) if d in guessed}
    drawn = [qrels.doc_ids[i] for i in chosen]
    declared_tags = {d: source for d, source in known.items() if source is not None}
    found = _verification(
        detector, guessed, kind="slots", declared=declared_tags, chance=chances, drawn=drawn
    )
    return found, {d: guessed[d] for d in drawn}


def _undeclared(documents: Iterable[Row], declared: Sequence[Tagger]) -> Iterable[tuple[str, str]]:
    for row in documents:
        ((_, tags),) = tag_documents([row], declared) if declared else ((row[0], DocTags()),)
        if tags.source is None:
            yield row[0], row[1]


def _verification(
    detector: Detector,
    texts: Mapping[str, str],
    *,
    chance: Mapping[str, float],
    drawn: Sequence[str],
    kind: Literal["store", "slots"] = "store",
    declared: Mapping[str, str] | None = None,
) -> Verification:
    if detector.target != "source" or "human" not in detector.labels:
        raise DataError(
            f"verification needs a detector of 'human' and LLM text; this one tells the "
            f"{detector.target}s {', '.join(detector.labels)} apart"
        )
    if not texts:
        raise DataError("every document declares its source; there is nothing to verify")
    found = detector.predict(list(texts.values()))
    top = [detector.labels[i] for i in found.probabilities.argmax(axis=1)]
    human = found.probabilities[:, detector.labels.index("human")]
    model = dict(zip(texts, np.round(1 - human, 6).tolist(), strict=True))
    sure = dict(zip(texts, found.decided.tolist(), strict=True))
    return Verification(
        kind=kind,
        detector=detector.fingerprint,
        tags={**(declared or {}), **dict(zip(texts, top, strict=True))},
        chance=chance,
        truth={},
        score={doc: model[doc] for doc in drawn},
        decided=frozenset(doc for doc in drawn if sure[doc]),
        n_drawn=len(drawn),
    )
