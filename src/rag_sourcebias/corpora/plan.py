"""What is to be made: one job for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rag_sourcebias.corpora.humans import HumanRow
from rag_sourcebias.corpora.manifest import source_tag, stem_of
from rag_sourcebias.corpora.prompts import RewritePrompt, checked_prompts
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types.completions import Request
from rag_sourcebias.types.rewrites import RewriteSource

__all__ = ["Job", "Options", "model_name", "planned_jobs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a model is to write."""

    max_tokens: int
    temperature: float
    seed: int

    def request(self, prompt: str) -> Request:
        """Return a request; a DataError says what is out of range."""
        return Request(
            prompt=prompt,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            sample=self.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One file of rewrites that is to be made.

    Parameters
    ----------
    folder : Path
    source : RewriteSource
        As it was begun.
    prompt : RewritePrompt
    options : Options
    """

    folder: Path
    source: RewriteSource
    prompt: RewritePrompt
    options: Options

    @property
    def human_file(self) -> Path:
        """The documents."""
        return self.folder / "corpus" / "human.jsonl"

    @property
    def corpus_file(self) -> Path:
        """The rewrites."""
        return self.folder / "corpus" / f"{stem_of(self.source.source)}.jsonl"

    @property
    def raw_file(self) -> Path:
        """One record per document: how it ended, and what the model wrote."""
        return self.folder / "raw" / f"{stem_of(self.source.source)}.jsonl"

    @property
    def ready(self) -> bool:
        """Whether there is nothing left to do: all ended, none of them by a failure."""
        written = self.raw_file.is_file() and (self.corpus_file.is_file() or not self.source.done)
        return self.source.finished and not self.source.failed and written

    def request(self, row: HumanRow) -> Request | None:
        """Return what is asked about a document: its text and nothing else; None if it has none."""
        text = row.text.strip()
        return self.options.request(self.prompt.fill(text)) if text else None


def model_name(completer: Completer) -> str:
    """Return the name that source tags have by default: where a model runs is no part of it."""
    return completer.name.removeprefix("local:")


def planned_jobs(
    folder: Path,
    completer: Completer,
    prompts: Sequence[RewritePrompt | str],
    options: Options,
    *,
    model: str | None,
    date: str,
) -> tuple[Job, ...]:
    """Return a job for each prompt; nothing is read or written.

    Raises
    ------
    DataError
        If a prompt or an option is not valid, or the model's name cannot be a source.
    """
    found = checked_prompts(prompts)
    options.request("")
    jobs: list[Job] = []
    for prompt in found:
        source = RewriteSource(
            source=source_tag(model or model_name(completer), prompt.name),
            model=completer.name,
            fingerprint=completer.fingerprint,
            settings=dict(completer.settings),
            prompt=prompt.name,
            template=prompt.template,
            digest=prompt.digest,
            style=prompt.style,
            temperature=float(options.temperature),
            seed=options.seed,
            max_tokens=options.max_tokens,
            date=date,
        )
        jobs.append(Job(folder=folder, source=source, prompt=prompt, options=options))
    return tuple(jobs)
