"""What a folder of rewrites says about how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "PAIRED_VERSION",
    "HumanTexts",
    "PairedManifest",
    "RewriteEstimate",
    "RewriteReport",
    "RewriteSource",
]

PAIRED_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanTexts:
    """The documents that were rewritten.

    Parameters
    ----------
    name : str
        Name of the data set or folder.
    n_documents : int
    digest : str
        Hash of ids, titles, texts and metadata, in their order.
    limit : int or None
        Only that many documents, the first ones, were asked for.
    license, attribution : str
    """

    name: str
    n_documents: int
    digest: str
    limit: int | None = None
    license: str = ""
    attribution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteSource:
    """One model and one prompt: one file of rewrites.

    Parameters
    ----------
    source : str
        Tag of the rewrites, ``"llm:<model>"`` or ``"llm:<model>+<prompt>"``.
    model, fingerprint : str
        Name and identity of the completer.
    settings : mapping
        What the completer states about itself.
    prompt, template, digest : str
        Name, text and hash of the prompt.
    style : str or None
    temperature : float
    seed, max_tokens : int
    date : str
        Day on which it was begun, as YYYY-MM-DD in UTC.
    finished : bool
        False while documents may still be without an end.
    done : int
        Documents with a rewrite.
    skipped, failed : mapping of str to int
        Documents by reason. Skipped: the model answered (or had nothing to rewrite) and the answer
        is no rewrite. Failed: no answer came; a later run asks again.
    cleaned : mapping of str to int
        Rewrites from which something was stripped, by what.
    prompt_tokens, completion_tokens : int
        Of all answers that the file was made from, whenever they were paid.
    cost : float or None
        Of these tokens, None without prices.
    currency : str
    """

    source: str
    model: str
    fingerprint: str
    settings: Mapping[str, str]
    prompt: str
    template: str
    digest: str
    style: str | None
    temperature: float
    seed: int
    max_tokens: int
    date: str
    finished: bool = False
    done: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    cleaned: Mapping[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    currency: str = ""

    @property
    def request(self) -> tuple[object, ...]:
        """What decides the answers; two runs that agree in it write the same file."""
        asked = (self.fingerprint, self.template, self.style)
        return (*asked, self.temperature, self.seed, self.max_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedManifest:
    """``manifest.json`` of a folder of rewrites.

    Parameters
    ----------
    human : HumanTexts
    sources : tuple of RewriteSource
    library_version : str
    schema_version : int
    """

    human: HumanTexts
    sources: tuple[RewriteSource, ...]
    library_version: str
    schema_version: int = PAIRED_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteEstimate:
    """What rewriting a corpus would ask; nothing was asked.

    Parameters
    ----------
    n_documents : int
    requests : int
        One per document that has text, and prompt.
    cached : int
        Of these, answered already.
    prompt_tokens : int
        Of the rest: characters / 4.
    completion_tokens : int
        Of the rest, if each rewrite is as long as its document.
    most_completion_tokens : int
        Of the rest, if each is as long as ``max_tokens`` allows.
    cost, most_cost : float or None
        With either of these; None without prices.
    currency : str
    """

    n_documents: int
    requests: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    most_completion_tokens: int
    cost: float | None
    most_cost: float | None
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteReport:
    """How one run of the builder ended.

    Parameters
    ----------
    folder : str
    manifest : PairedManifest
    requests : int
        In this run; ``from_cache`` of them were paid before.
    from_cache, retries : int
    prompt_tokens, completion_tokens : int
        Of the answers that were new in this run.
    cost : float or None
        Of these, None without prices.
    """

    folder: str
    manifest: PairedManifest
    requests: int
    from_cache: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None

    @property
    def complete(self) -> bool:
        """Whether every document has a rewrite from every source."""
        sources = self.manifest.sources
        return all(s.done == self.manifest.human.n_documents for s in sources)
