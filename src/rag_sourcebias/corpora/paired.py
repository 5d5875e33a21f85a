"""From a corpus by people to a paired corpus: each document beside its rewrites."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from rag_sourcebias.corpora.humans import (
    HumanInput,
    Untagged,
    human_rows,
    read_human_rows,
    row_digest,
)
from rag_sourcebias.corpora.manifest import MANIFEST, merged, write_manifest
from rag_sourcebias.corpora.plan import Options, planned_jobs
from rag_sourcebias.corpora.prompts import REWRITE, RewritePrompt
from rag_sourcebias.corpora.relevance import copy_relevance
from rag_sourcebias.corpora.rewrite import rewrite_source
from rag_sourcebias.errors import DataError
from rag_sourcebias.io.files import PathLike, jsonl_text, write_atomic
from rag_sourcebias.llm.ask import Asker
from rag_sourcebias.llm.cache import CompletionCache
from rag_sourcebias.llm.cost import Prices
from rag_sourcebias.llm.retry import RetryPolicy
from rag_sourcebias.protocols import Completer
from rag_sourcebias.types import Corpus, Dataset
from rag_sourcebias.types.rewrites import HumanTexts, RewriteReport

__all__ = ["ANSWERS", "build_paired_corpus", "check_paired_folder"]

ANSWERS = "answers.sqlite"
"""Where answers are kept, in the folder, unless another cache is given."""


def build_paired_corpus(
    source: HumanInput,
    completer: Completer,
    output: PathLike,
    *,
    prompts: Sequence[RewritePrompt | str] = (REWRITE,),
    model: str | None = None,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    seed: int = 0,
    concurrency: int | None = None,
    cache: CompletionCache | None = None,
    retry: RetryPolicy | None = None,
    resume: bool = True,
    limit: int | None = None,
    untagged: Untagged = "error",
    prices: Prices | None = None,
    today: date | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RewriteReport:
    """Have every human document rewritten and write a folder that an audit can read.

    The model sees the prompt and the text of one document: neither title nor query. The folder
    holds ``corpus/human.jsonl`` and one ``corpus/<model>.jsonl`` per prompt (ids and titles
    copied), ``queries.jsonl`` and ``qrels/`` (copied), ``raw/`` (one record per document and
    prompt: how it ended, and all that the model wrote) and ``manifest.json``. Read it with
    :func:`rag_sourcebias.io.read_beir`. A document without a rewrite stays in
    ``corpus/human.jsonl``; ``RewriteReport.complete`` tells whether there is any.

    A run may be killed at any moment and called again with the same arguments: answers that came
    are not asked again, and the files are those of an uninterrupted run, byte for byte, if the
    model's answers are. Documents that failed are asked again; finished ones are left alone. Other
    prompts or another model may be added to a folder by a later call. Two runs must not write to
    one folder at the same time.

    Parameters
    ----------
    source : Dataset, Corpus or path
        Only documents of source ``"human"`` are taken. A path is a BEIR folder, which is streamed:
        memory does not grow with its size. A corpus, or a folder without queries and judgments,
        gives a folder that lacks them.
    completer : Completer
    output : path
        Made if missing.
    prompts : sequence of RewritePrompt or str
        A string is a template with ``{text}``. The default is the prompt of [K].
    model : str, optional
        Name in the source tags ``llm:<model>`` (of ``REWRITE``) and ``llm:<model>+<prompt>``; the
        completer's by default, without ``local:``.
    max_tokens : int
        Of one rewrite. One that reaches it lacks its end and is skipped as ``"truncated"``.
    temperature : float
        0, the most likely answer, by default; [W] used 0.5.
    seed : int
    concurrency : int, optional
    cache : CompletionCache, optional
        ``answers.sqlite`` in the folder by default.
    retry : RetryPolicy, optional
    resume : bool
        False refuses a folder that is not empty.
    limit : int, optional
        Take the first documents only, with the judgments of these and their queries.
    untagged : {"error", "human"}
    prices : Prices, optional
    today : date, optional
        For the manifest; the day in UTC by default.
    on_progress : callable, optional
        Told how many of how many rewrites have ended.

    Raises
    ------
    DataError
        If an argument is out of range, the source is malformed or has no human documents, or the
        folder was made from other documents, with other settings or by something else.
    CompletionError
        If the run had to stop before anything was answered (a wrong key, no server).
    """
    if limit is not None and limit < 1:
        raise DataError(f"limit must be at least 1, got {limit}")
    folder = _checked_output(Path(output), source, resume=resume)
    jobs = planned_jobs(
        folder,
        completer,
        prompts,
        Options(max_tokens=max_tokens, temperature=temperature, seed=seed),
        model=model,
        date=(today or datetime.now(UTC).date()).isoformat(),
    )
    n, digest = row_digest(human_rows(source, limit=limit, untagged=untagged))
    human = _described(source, n, digest, limit)
    manifest, begun = merged(folder, human, tuple(job.source for job in jobs))
    _make_room(folder)
    write_manifest(folder, manifest)  # first: it tells whose files the others are
    _prepare(source, folder, limit=limit, untagged=untagged)
    answers = CompletionCache(folder / ANSWERS) if cache is None else cache
    asker = Asker(completer, cache=answers, concurrency=concurrency, retry=retry)
    progress = _Progress(n * len(jobs), on_progress)
    for position, (entry, planned) in enumerate(zip(begun, jobs, strict=True), start=1):
        job = replace(planned, source=entry)
        if not job.ready:
            done = rewrite_source(job, asker, answers, prices=prices, on_ended=progress.one)
            sources = (done if s.source == done.source else s for s in manifest.sources)
            manifest = replace(manifest, sources=tuple(sources))
            write_manifest(folder, manifest)
        progress.at(n * position)  # documents without text were not asked about
    usage = asker.usage
    paid = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return RewriteReport(
        folder=str(folder),
        manifest=manifest,
        requests=usage.requests,
        from_cache=usage.from_cache,
        retries=usage.retries,
        cost=None if prices is None else prices.cost(**paid),
        **paid,
    )


def check_paired_folder(
    source: HumanInput,
    completer: Completer,
    output: PathLike,
    *,
    prompts: Sequence[RewritePrompt | str] = (REWRITE,),
    model: str | None = None,
    max_tokens: int = 1024,
    temperature: float = 0.0,
    seed: int = 0,
    limit: int | None = None,
    untagged: Untagged = "error",
) -> None:
    """Look whether :func:`build_paired_corpus` would write to a folder; nothing is changed.

    Parameters are those of the builder.

    Raises
    ------
    DataError
        If it was made from other documents, with other settings or by something else.
    UnsupportedVersionError
        If another release made it in a form this one does not know.
    """
    folder = _checked_output(Path(output), source, resume=True)
    if not (folder / MANIFEST).exists():
        return
    options = Options(max_tokens=max_tokens, temperature=temperature, seed=seed)
    jobs = planned_jobs(folder, completer, prompts, options, model=model, date="")
    n, digest = row_digest(human_rows(source, limit=limit, untagged=untagged))
    merged(folder, _described(source, n, digest, limit), tuple(job.source for job in jobs))


class _Progress:
    def __init__(self, total: int, tell: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._tell = tell
        self._ended = 0

    def one(self) -> None:
        self.at(self._ended + 1)

    def at(self, ended: int) -> None:
        if ended > self._ended and self._tell is not None:
            self._tell(ended, self._total)
        self._ended = ended


def _checked_output(folder: Path, source: HumanInput, *, resume: bool) -> Path:
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; expected a folder to write to")
    if not isinstance(source, Dataset | Corpus) and Path(source).resolve() == folder.resolve():
        raise DataError(f"{folder} holds the documents themselves; write to another folder")
    there = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if not resume and there:
        raise DataError(f"{folder} is not empty; choose another, or resume what it holds")
    strange = [name for name in there if _is_strange(folder / name)]
    if strange and MANIFEST not in there:
        raise DataError(
            f"{folder} holds {', '.join(strange[:3])} but no {MANIFEST}: it was not made by this "
            "builder and would be overwritten; write to another folder"
        )
    return folder


def _is_strange(path: Path) -> bool:
    """Whether a file is none that a killed run leaves before it writes the manifest."""
    if path.is_dir():
        return any(path.iterdir())
    return not path.name.startswith((".", ANSWERS))


def _described(source: HumanInput, n: int, digest: str, limit: int | None) -> HumanTexts:
    told = {}
    if isinstance(source, Dataset):
        name, told = source.name, {"license": source.license, "attribution": source.attribution}
    else:
        name = "corpus" if isinstance(source, Corpus) else Path(source).resolve().name
    return HumanTexts(name=name, n_documents=n, digest=digest, limit=limit, **told)


def _make_room(folder: Path) -> None:
    """Make the folders, and remove what a killed run was writing."""
    try:
        for part in ("corpus", "raw"):
            (folder / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder} cannot be written: {error.strerror or error}") from error
    for leftover in (*folder.glob(".*.tmp"), *folder.glob("*/.*.tmp")):
        leftover.unlink(missing_ok=True)


def _prepare(source: HumanInput, folder: Path, *, limit: int | None, untagged: Untagged) -> None:
    """Write what needs no model."""
    human_file = folder / "corpus" / "human.jsonl"
    rows = human_rows(source, limit=limit, untagged=untagged)
    write_atomic(human_file, jsonl_text(row.to_dict() for row in rows))
    kept = None if limit is None else lambda: read_human_rows(human_file)
    copy_relevance(source, folder, kept=kept)
