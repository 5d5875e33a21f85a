"""Points and alarms of a probe from its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from rag_sourcebias.measures.source import relative_delta
from rag_sourcebias.monitor.canary.sequence import RelativeDeltaSequence
from rag_sourcebias.types.canary import CanaryPoint
from rag_sourcebias.types.monitor import Alarm

__all__ = ["Probed"]

_Rule = Literal["canary", "canary-change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What is measured, and where; fields as in :class:`CanaryPoint`."""

    measure: str
    human: str
    llm: str
    labels: Mapping[str, str]

    def point(
        self,
        scores: npt.NDArray[np.float64],
        sequence: RelativeDeltaSequence,
        *,
        at: float,
        failed: int,
        seconds: float,
    ) -> CanaryPoint:
        """Sum up a round whose ``scores``, shape (n, 2), are already in the sequence."""
        lower, upper = sequence.interval()
        return CanaryPoint(
            at=at,
            measure=self.measure,
            human=self.human,
            llm=self.llm,
            labels=self.labels,
            round_n=len(scores),
            round_relative_delta=relative_delta(*scores.sum(axis=0).tolist()),
            n=sequence.n,
            relative_delta=sequence.estimate,
            lower=lower,
            upper=upper,
            confidence_level=sequence.confidence_level,
            reference=sequence.reference,
            alarm=sequence.left_at > 0,
            failed=failed,
            seconds=seconds,
        )

    def alarms(
        self, sequence: RelativeDeltaSequence, *, before: tuple[int, int], at: float
    ) -> list[Alarm]:
        """Say that the bounds left the reference, or that Relative Δ moved away from it.

        ``share``, ``lower``, ``upper`` and ``baseline`` are shares in [0, 1], as in every alarm:
        the human part of both scores, ½ + Δ/400. The message has Relative Δ itself.

        Parameters
        ----------
        sequence : RelativeDeltaSequence
        before : (int, int)
            ``left_at`` and ``changed_at`` before the round: what was told is not told again.
        at : float
            Unix time.
        """
        rules: list[_Rule] = []
        if sequence.left_at and not before[0]:
            rules.append("canary")
        if sequence.changed_at and not before[1]:
            rules.append("canary-change")
        return [self._alarm(rule, sequence, at=at) for rule in rules]

    def _alarm(self, rule: _Rule, sequence: RelativeDeltaSequence, *, at: float) -> Alarm:
        estimate = sequence.estimate or 0.0
        lower, upper = sequence.interval()
        left = rule == "canary"
        n = sequence.left_at if left else sequence.changed_at
        message = (
            f"Relative Δ of {self.measure} between {self.human} and {self.llm} is {estimate:.1f} % "
            f"({100 * sequence.confidence_level:g} % confidence sequence {lower:.1f} to "
            f"{upper:.1f}): "
            + ("it left" if left else "it moved away from")
            + f" the reference {sequence.reference:.1f} after {n} canary queries"
        )
        return Alarm(
            rule=rule,
            labels=self.labels,
            by="source",
            group=self.human,
            measure=self.measure,
            n=n,
            share=_share(estimate),
            lower=_share(lower),
            upper=_share(upper),
            baseline=_share(sequence.reference),
            evidence=sequence.evidence if left else sequence.change_evidence,
            at=at,
            message=message,
        )


def _share(delta: float) -> float:
    return 0.5 + delta / 400
