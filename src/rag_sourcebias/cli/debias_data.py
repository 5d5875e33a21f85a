"""What ``debias`` is fitted on and judged on: BEIR folders, their splits, the bundled sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_sourcebias.errors import DataError
from rag_sourcebias.io import list_datasets, load_dataset, load_sample, read_beir
from rag_sourcebias.io.beir_corpus import read_corpus
from rag_sourcebias.mitigate.twin_rows import paired_sources
from rag_sourcebias.mitigate.twin_texts import twin_texts
from rag_sourcebias.types import Corpus, Dataset, Qrels

__all__ = [
    "FittingData",
    "fitted_sources",
    "pair_texts",
    "read_fitting",
    "read_judged",
]

_ENDINGS = (".tsv.gz", ".txt.gz", ".tsv", ".txt")


@dataclass(frozen=True, kw_only=True, eq=False)
class FittingData:
    """Pairs to fit on.

    Parameters
    ----------
    name : str
        As reports name it.
    corpus : Corpus
    dataset : Dataset or None
        None where every pair of the corpus is used, whatever the judgments.
    folder : Path or None
        None for the bundled sample.
    split : str
        Empty without judgments.
    """

    name: str
    corpus: Corpus
    dataset: Dataset | None = None
    folder: Path | None = None
    split: str = ""

    @property
    def qrels(self) -> Qrels | None:
        """Judgments that select the pairs."""
        return None if self.dataset is None else self.dataset.qrels

    @property
    def judged(self) -> Dataset:
        """Queries and judgments, where a method needs them."""
        if self.dataset is None:
            raise DataError(f"{self.name}: this needs the judgments of a split")
        return self.dataset


def read_fitting(
    folder: Path | None, *, sample: bool, split: str, all_pairs: bool = False
) -> FittingData:
    """Read the pairs; ``all_pairs`` needs neither queries nor judgments."""
    if sample == (folder is not None):
        raise DataError("give one data set to fit on: a BEIR folder, or --sample")
    if folder is None:
        data = load_sample()
        return FittingData(name=data.name, corpus=data.corpus, dataset=None if all_pairs else data)
    if all_pairs and folder.is_dir():
        corpus = read_corpus(folder, sources=None, titles=True).corpus
        return FittingData(name=folder.resolve().name, corpus=corpus, folder=folder)
    data = read_beir(folder, split=split, name=_name(folder, split))
    return FittingData(name=data.name, corpus=data.corpus, dataset=data, folder=folder, split=split)


def read_judged(
    specs: Sequence[str] | None, fitting: FittingData | None, *, unseen: bool = False
) -> tuple[tuple[Dataset, ...], tuple[str, ...]]:
    """Read the data for the report, and say what is wrong with judging on it."""
    if specs:
        found = [_read_spec("judge", text) for text in specs]
    elif fitting is None:
        raise DataError("nothing to judge on: give --judge <folder>[:<split>]")
    else:
        found = [_default(fitting)]
    twice = {name for name, n in Counter(data.name for data in found).items() if n > 1}
    named = specs or [found[0].name]
    datasets = tuple(
        replace(data, name=text) if data.name in twice else data
        for data, text in zip(found, named, strict=True)
    )
    if len({data.name for data in datasets}) < len(datasets):
        raise DataError(f"--judge names the same data twice: {', '.join(named)}")
    same = [
        data.name
        for data in datasets
        if fitting is not None and not unseen and _same(data, fitting)
    ]
    return datasets, tuple(
        f"{name} is judged on what the method is fitted on: its figures show what can be reached, "
        "not what to expect elsewhere; name other data with --judge <folder>[:<split>]"
        for name in same
    )


def read_seen(specs: Sequence[str] | None, *, baseline: str) -> frozenset[str]:
    """Baseline texts of the pairs of ``FOLDER`` (all) or ``FOLDER:SPLIT`` (those judged)."""
    found: set[str] = set()
    for text in specs or ():
        if Path(text).is_dir():
            corpus = read_corpus(Path(text), sources=None, titles=True).corpus
            found |= pair_texts(corpus, None, baseline=baseline)
        else:
            data = _read_spec("fitted-on", text)
            found |= pair_texts(data.corpus, data.qrels, baseline=baseline)
    return frozenset(found)


def pair_texts(corpus: Corpus, qrels: Qrels | None, *, baseline: str) -> frozenset[str]:
    """Baseline texts of the pairs that judgments call relevant, or of all."""
    return frozenset(
        text
        for source in paired_sources(corpus.tags, baseline=baseline)
        for text in twin_texts(corpus, source=source, baseline=baseline, qrels=qrels).baseline_texts
    )


def fitted_sources(fitting: FittingData, asked: str | None, *, baseline: str) -> tuple[str, ...]:
    """Sources to fit on: the one asked for, or all that have pairs with the baseline."""
    found = paired_sources(fitting.corpus.tags, baseline=baseline)
    if asked is not None and asked not in found:
        raise DataError(
            f"--source {asked!r} has no pairs with {baseline!r} in {fitting.name}; "
            f"{', '.join(found) or 'no source'} has"
        )
    if not found:
        raise DataError(
            f"{fitting.name}: no other source shares a pair id with {baseline!r}; documents and "
            "their rewrites need the same _id"
        )
    return found if asked is None else (asked,)


def _same(data: Dataset, fitting: FittingData) -> bool:
    queries = None if fitting.dataset is None else fitting.dataset.queries
    return data.corpus.texts == fitting.corpus.texts and queries in (None, data.queries)


def _default(fitting: FittingData) -> Dataset:
    """Another split of the folder, or the data itself."""
    if fitting.folder is not None:
        others = [s for s in _splits(fitting.folder) if s != fitting.split]
        for split in ("dev", "test", *others):
            if split in others:
                return read_beir(fitting.folder, split=split, name=_name(fitting.folder, split))
    if fitting.dataset is not None:
        return fitting.dataset
    if fitting.folder is None:
        return load_sample()
    raise DataError(
        f"{fitting.folder} has no judgments (qrels/<split>.tsv) to judge the result on: give "
        "--judge <folder>[:<split>]"
    )


def _read_spec(option: str, text: str) -> Dataset:
    """Read ``FOLDER[:SPLIT]``, or a name that ``datasets`` lists."""
    whole = Path(text)
    head, colon, tail = text.rpartition(":")
    if not whole.exists() and colon and head and tail:
        return read_beir(head, split=tail, name=_name(Path(head), tail))
    if not whole.exists() and text in (info.name for info in list_datasets()):
        return load_dataset(text)
    splits = _splits(whole)
    split = next((s for s in ("test", "dev", *splits[:1]) if s in splits), "test")
    if split not in ("test", "dev") and len(splits) > 1:
        raise DataError(
            f"--{option} {text} has the splits {', '.join(splits)}: name one as {text}:{splits[0]}"
        )
    return read_beir(whole, split=split, name=_name(whole, split))


def _splits(folder: Path) -> list[str]:
    qrels = folder / "qrels"
    names = [path.name for path in qrels.iterdir()] if qrels.is_dir() else []
    return sorted({n.removesuffix(e) for n in names for e in _ENDINGS if n.endswith(e)})


def _name(folder: Path, split: str) -> str:
    """Name of the folder, with the split where it has several."""
    name = folder.resolve().name
    return f"{name}/{split}" if len(_splits(folder)) > 1 else name
