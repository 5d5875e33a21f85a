"""What a folder of rewrites is made of: prompts, human documents, the manifest, jobs."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from rag_sourcebias._version import __version__
from rag_sourcebias.core.codec import PathLike, read_fitted, write_fitted
from rag_sourcebias.core.completions import Request
from rag_sourcebias.core.data import Corpus, Dataset
from rag_sourcebias.core.errors import (
    DataError,
    MissingTagsError,
    require_distinct,
    require_name,
)
from rag_sourcebias.core.protocols import Completer
from rag_sourcebias.intake.beir import checked_folder, corpus_files, source_of_stem, tag_file
from rag_sourcebias.intake.documents import as_corpus, overlaid, read_documents, read_tags

# What a folder of rewrites says about how it was made.


PAIRED_VERSION = 1


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class PairedManifest:
    """``manifest.json`` of a folder of rewrites.

    Parameters
    ----------
    human : HumanTexts
    sources : tuple of RewriteSource
    library_version : str
    """

    human: HumanTexts
    sources: tuple[RewriteSource, ...]
    library_version: str


class RewriteEstimate(NamedTuple):
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
    refused : str
        Why the folder would not be written to; empty where it would.
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
    refused: str = ""


@dataclass(frozen=True, kw_only=True)
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
        return all(s.done == self.manifest.human.n_documents for s in self.manifest.sources)


# Prompts that ask for a rewrite of a text.
# What is quoted from the papers, word for word:
# - ``REWRITE``: the prompt of [K] (Dai et al., KDD 2024), "Please rewrite the following text:". -
# ``REPHRASE``: the nine instructions of [K] Table 7. That the text follows after a space, as in
# ``REWRITE``, is ours. - ``STYLES``: the sentences of the styles 1 to 8 of [W] (Cao, WSDM 2025);
# style 0 is the prompt of [K]. How [W] joined a sentence, the request to rewrite and the text is
# not known to us: that the sentence stands first, followed by ``REWRITE``, is ours.


_PLACEHOLDER = re.compile(r"\{\s*([A-Za-z_][\w .-]*)\s*\}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_TEXT = "{text}"


@dataclass(frozen=True, kw_only=True)
class RewritePrompt:
    """A request to rewrite a text, which knows of no query.

    Parameters
    ----------
    name : str
        Letters, digits, dots, dashes and underscores; it becomes part of the source tag.
    template : str
        Text with ``{text}`` exactly once. Another placeholder, ``{query}`` above all, is refused;
        braces around anything but a name mean nothing.
    style : str, optional
        Style label of the rewrites.

    Raises
    ------
    DataError
        If the name or the template is not of that form.

    Examples
    --------
    >>> RewritePrompt(name="short", template="Shorten: {text}").fill("{a} and {b}")
    'Shorten: {a} and {b}'
    """

    name: str
    template: str
    style: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise DataError(
                f"prompt name {self.name!r} may hold letters, digits, dots, dashes and underscores "
                "only: it becomes part of a source tag"
            )
        foreign = [m for m in _PLACEHOLDER.findall(self.template) if m != "text"]
        if foreign:
            why = (
                "a rewrite must not know the query"
                if "query" in foreign[0].lower()
                else "there is only the text to fill in"
            )
            raise DataError(
                f"prompt {self.name!r} asks for {{{foreign[0]}}}; {why}: use {_TEXT} alone"
            )
        if self.template.count(_TEXT) != 1 or "{{text}}" in self.template:
            raise DataError(
                f"prompt {self.name!r} must hold {_TEXT}, in single braces, exactly once; it is "
                f"{self.template!r:.120}"
            )

    @property
    def digest(self) -> str:
        """A short hash of the template."""
        return blake2b(self.template.encode(), digest_size=8).hexdigest()

    def fill(self, text: str) -> str:
        """Put a text at its place; braces within it mean nothing."""
        return text.join(self.template.split(_TEXT))


REWRITE = RewritePrompt(name="rewrite", template="Please rewrite the following text: {text}")
"""The prompt of [K]."""

REPHRASE: tuple[RewritePrompt, ...] = tuple(
    RewritePrompt(name=f"rephrase-{i}", template=f"{instruction} {_TEXT}")
    for i, instruction in enumerate(
        (
            "Rewrite the text below in your own words:",
            "Paraphrase the provided text while maintaining its meaning:",
            "Summarize the following passage in a concise manner:",
            "Simplify the given passage while keeping the main ideas:",
            "Rephrase the given text using alternative expressions:",
            "Condense the following passage to focus on key points:",
            "Briefly restate the provided text without losing its essence:",
            "Reword the passage below to make it more succinct:",
            "Express the following text in a different way while keeping its intent:",
        ),
        start=1,
    )
)
"""The nine instructions of [K] Table 7, in its order. Some ask for less text, not for a copy."""

_STYLES = (
    "Your writing style is formal, efficient, and concise, using professional language and "
    "focusing on facts, figures, and data.",
    "Your writing style is clear and using simple language, often avoiding idioms or complex "
    "sentences.",
    "Your writing style is informal, often includes emojis, abbreviations, and internet slang.",
    "Your writing style is polite, respectful, and somewhat formal. You use more traditional "
    "language and avoid using slang or abbreviations.",
    "Your writing style is formal, detailed, and precise manner with structured texts. You use "
    "technical language and focus on evidence-based arguments.",
    "Your writing style is energetic, motivational, and positive manner.",
    "Your writing style is friendly, casual, and empathetic manner with personal anecdotes",
    "Your writing style is expressive and emotive (passionate, engaging, empathetic). You use "
    "metaphors, analogies, and storytelling to convey your points.",
)

STYLES: tuple[RewritePrompt, ...] = (
    RewritePrompt(name="style-0", template=REWRITE.template, style="0"),
    *(
        RewritePrompt(name=f"style-{i}", template=f"{words}\n\n{REWRITE.template}", style=str(i))
        for i, words in enumerate(_STYLES, start=1)
    ),
)
"""The nine styles of [W], labelled ``"0"`` to ``"8"``."""


def checked_prompts(prompts: Sequence[RewritePrompt | str]) -> tuple[RewritePrompt, ...]:
    """Return prompts, bare templates named ``prompt-1``, ``prompt-2``, …; names must differ.

    Raises
    ------
    DataError
        If there are none, a name occurs twice or a template is not valid.
    """
    if isinstance(prompts, str):
        raise DataError("prompts must be a list of prompts or templates, not one string")
    found = tuple(
        RewritePrompt(name=f"prompt-{i}", template=p) if isinstance(p, str) else p
        for i, p in enumerate(prompts, start=1)
    )
    if not found:
        raise DataError("prompts: there are none; give at least one")
    require_distinct("prompt", [prompt.name for prompt in found])
    return found


# The human documents that are to be rewritten, read one at a time.


HumanInput = Dataset | Corpus | PathLike
Untagged = Literal["error", "human"]


class HumanRow(NamedTuple):
    """One row of ``corpus/human.jsonl``."""

    doc_id: str
    title: str
    text: str
    metadata: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the row as BEIR writes it."""
        return {"_id": self.doc_id, "title": self.title, "text": self.text} | (
            {"metadata": self.metadata} if self.metadata else {}
        )


def human_rows(
    source: HumanInput, *, limit: int | None = None, untagged: Untagged = "error"
) -> Iterator[HumanRow]:
    """Stream the documents by people, in their order; of earlier ones only ids are kept.

    Parameters
    ----------
    source : Dataset, Corpus or path
        A path is a BEIR folder (``corpus/human.jsonl``, or ``corpus.jsonl`` with the source of a
        document in ``tags.tsv``, ``.csv``, ``.jsonl`` or in its metadata; all plain or ``.gz``).
        Documents with another source are left out. In a data set, documents with a pair id are
        named by it, as :func:`rag_sourcebias.read_beir` made the ids.
    limit : int, optional
        End after that many.
    untagged : {"error", "human"}
        What a document without a source is: an error, or written by people because you say so.

    Raises
    ------
    MissingTagsError
        At a document without a source, unless ``untagged="human"``.
    DataError
        If an id occurs twice, a row is malformed, or there is no document by people.
    """
    if isinstance(source, Dataset):
        where, rows = source.name, _of_corpus(source.corpus, source.name, untagged)
    elif isinstance(source, Corpus):
        where, rows = "the corpus", _of_corpus(source, "the corpus", untagged)
    else:
        where, rows = os.fspath(source), _of_folder(Path(source), untagged)
    seen: set[str] = set()
    for row in islice(rows, limit):
        try:
            f"{row.doc_id}{row.title}{row.text}".encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"{where}: document {row.doc_id!r} holds half a character ({error.reason}) and "
                "cannot be written as UTF-8; repair its text"
            ) from error
        if row.doc_id in seen:
            raise DataError(
                f"{where}: document id {row.doc_id!r} occurs twice among the human documents; "
                "each needs its own"
            )
        seen.add(row.doc_id)
        yield row
    if not seen:
        raise DataError(f"{where}: there is no document of source 'human' to rewrite")


def read_human_rows(file: Path) -> Iterator[HumanRow]:
    """Stream what :meth:`HumanRow.to_dict` wrote."""
    return map(HumanRow._make, read_documents(file).rows())


def row_digest(rows: Iterator[HumanRow]) -> tuple[int, str]:
    """Count and hash rows, in their order."""
    state, n = blake2b(digest_size=16), 0
    for row in rows:
        more = json.dumps(row.metadata, sort_keys=True) if row.metadata else ""
        state.update("\0".join((row.doc_id, row.title, row.text, more, "\n")).encode())
        n += 1
    return n, state.hexdigest()


def _of_corpus(corpus: Corpus, name: str, untagged: Untagged) -> Iterator[HumanRow]:
    for doc_id, text in corpus:
        tags = corpus.tags.get(doc_id)
        if _is_human(tags.source, doc_id, name, untagged):
            style = {"style": tags.style} if tags.style else {}
            yield HumanRow(tags.pair_id or doc_id, "", text, style)


def _of_folder(folder: Path, untagged: Untagged) -> Iterator[HumanRow]:
    files = corpus_files(checked_folder(folder))
    chosen = [file for source, file in files if source in ("human", None)]
    if not chosen:
        raise DataError(f"{folder} has no corpus/human.jsonl: there is nothing to rewrite")
    paired = files[0][0] is not None
    tags_file = None if paired else tag_file(folder)
    for file in chosen:
        documents = read_documents(file, source="human" if paired else None)
        tags = as_corpus([documents]).tags
        if tags_file is not None:
            tags = overlaid(tags, read_tags(tags_file))
        for row, tagged in zip(documents.rows(), tags.doc_ids, strict=True):
            if _is_human(tags.get(tagged).source, row[0], str(file), untagged):
                yield HumanRow._make(row)


def _is_human(source: str | None, doc_id: str, where: str, untagged: Untagged) -> bool:
    if source is None and untagged == "error":
        raise MissingTagsError(
            f"{where}: document {doc_id!r} has no source; tag it, or say untagged='human' if every "
            "untagged document was written by people"
        )
    return source is None or source == "human"


# ``manifest.json``: how a folder of rewrites was made, written before and after the work.


MANIFEST = "manifest.json"
_KIND = "manifest of a folder of rewrites"


def read_manifest(folder: PathLike) -> PairedManifest:
    """Read the manifest of a folder of rewrites.

    Raises
    ------
    DataError
        If there is none, or it is not one.
    UnsupportedVersionError
        If another release wrote it in a form this one does not know.
    """
    return read_fitted(PairedManifest, Path(folder) / MANIFEST, kind=_KIND, version=PAIRED_VERSION)


def write_manifest(folder: Path, manifest: PairedManifest) -> None:
    """Write the manifest, all of it or nothing."""
    write_fitted(manifest, folder / MANIFEST, kind=_KIND, version=PAIRED_VERSION)


def merged(
    folder: Path, human: HumanTexts, wanted: tuple[RewriteSource, ...]
) -> tuple[PairedManifest, tuple[RewriteSource, ...]]:
    """Join what is wanted with what a folder already holds.

    Returns
    -------
    manifest : PairedManifest
        Sources of other models or prompts as they were, then those wanted.
    wanted : tuple of RewriteSource
        As the folder has them where they are finished, else with the day on which they were begun.

    Raises
    ------
    DataError
        If the folder was made from other documents, or has the same source made otherwise.
    """
    known: dict[str, RewriteSource] = {}
    if (folder / MANIFEST).exists():
        before = read_manifest(folder)
        if (before.human.digest, before.human.limit) != (human.digest, human.limit):
            raise DataError(
                f"{folder} was made from other documents ({before.human.n_documents} of "
                f"{before.human.name!r}, limit {before.human.limit}; now {human.n_documents} of "
                f"{human.name!r}, limit {human.limit}); choose another folder"
            )
        human = before.human
        known = {source.source: source for source in before.sources}
    begun: list[RewriteSource] = []
    asked = ("fingerprint", "template", "style", "temperature", "seed", "max_tokens")
    for new in wanted:
        old = known.get(new.source, new)
        differ = [name for name in asked if getattr(old, name) != getattr(new, name)]
        if differ:
            told = (f"{x} {getattr(old, x)!r} (now {getattr(new, x)!r})" for x in differ)
            raise DataError(
                f"{folder} holds {new.source!r} made with {', '.join(told)}; choose another "
                "folder, or name the prompt or the model differently"
            )
        begun.append(old if old.finished else replace(new, date=old.date))
    sources = known | {source.source: source for source in begun}
    return PairedManifest(
        human=human, sources=tuple(sources.values()), library_version=__version__
    ), tuple(begun)


def source_tag(model: str, prompt: str) -> str:
    """Return the source of rewrites: the prompt of [K] needs no name.

    Examples
    --------
    >>> source_tag("gpt-4o", "rewrite"), source_tag("gpt-4o", "style-3")
    ('llm:gpt-4o', 'llm:gpt-4o+style-3')
    """
    if not model or model != model.strip():
        raise DataError(f"model name {model!r} cannot be a source; give a name with model=")
    require_name(model, "model name")
    return f"llm:{model}" if prompt == "rewrite" else f"llm:{model}+{prompt}"


def stem_of(source: str) -> str:
    """Return the name, without ``.jsonl``, of the file that holds a source.

    Examples
    --------
    >>> stem_of("llm:meta/llama+style-3"), stem_of("llm:human")
    ('meta%2Fllama+style-3', 'llm%3Ahuman')
    """
    for name in (source.removeprefix("llm:"), source):
        stem = quote(name, safe="+ ,=@()[]")
        stem = f"%2E{stem[1:]}" if stem.startswith(".") else stem
        if source_of_stem(stem) == source:
            return stem
    raise DataError(f"source {source!r} cannot be the name of a corpus file")


# What is to be made: one job for each prompt.


@dataclass(frozen=True, kw_only=True)
class Job:
    """One file of rewrites that is to be made.

    Parameters
    ----------
    folder : Path
    source : RewriteSource
        As it was begun.
    prompt : RewritePrompt
    """

    folder: Path
    source: RewriteSource
    prompt: RewritePrompt

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
        return (
            self.source.finished
            and not self.source.failed
            and (self.raw_file.is_file() and (self.corpus_file.is_file() or not self.source.done))
        )

    def request(self, row: HumanRow) -> Request | None:
        """Return what is asked about a document: its text and nothing else; None if it has none."""
        text = row.text.strip()
        if not text:
            return None
        return Request(
            prompt=self.prompt.fill(text),
            max_tokens=self.source.max_tokens,
            temperature=self.source.temperature,
            sample=self.source.seed,
        )


def model_name(completer: Completer) -> str:
    """Return the name that source tags have by default: where a model runs is no part of it."""
    return completer.name.removeprefix("local:")


def planned_jobs(
    folder: Path,
    completer: Completer,
    prompts: Sequence[RewritePrompt | str],
    *,
    model: str | None = None,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    seed: int = 0,
) -> tuple[Job, ...]:
    """Return a job for each prompt, begun today; nothing is read or written.

    Raises
    ------
    DataError
        If a prompt or an option is not valid, or the model's name cannot be a source.
    """
    Request(prompt="", max_tokens=max_tokens, temperature=temperature, sample=seed)  # or refuse
    return tuple(
        Job(
            folder=folder,
            prompt=prompt,
            source=RewriteSource(
                source=source_tag(model or model_name(completer), prompt.name),
                model=completer.name,
                fingerprint=completer.fingerprint,
                settings=dict(completer.settings),
                prompt=prompt.name,
                template=prompt.template,
                digest=prompt.digest,
                style=prompt.style,
                temperature=float(temperature),
                seed=seed,
                max_tokens=max_tokens,
                date=datetime.now(UTC).date().isoformat(),
            ),
        )
        for prompt in checked_prompts(prompts)
    )
