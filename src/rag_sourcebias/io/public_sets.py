"""Named public data sets: the Cocktail benchmark (Dai et al., Findings of ACL 2024).

Checksums are the md5 sums of the archives as printed in the README of
https://github.com/KID-22/Cocktail at the commit named below. Two of the archives lie in that
repository; for the others no address of the archive is known, only its checksum.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_sourcebias.errors import DataError
from rag_sourcebias.io.archive import extract_zip
from rag_sourcebias.io.beir import read_beir
from rag_sourcebias.io.cache import cache_dir
from rag_sourcebias.io.downloads import download, has_checksum

if TYPE_CHECKING:
    from rag_sourcebias.io.downloads import Progress
    from rag_sourcebias.io.files import PathLike
    from rag_sourcebias.types import Dataset

__all__ = ["PUBLIC_SETS", "PublicSet", "load_public_set"]

_COMMIT = "0cf2682129b7ab3358d538eea4eef8b7cd2ce2c7"
_BASE_URL = f"https://github.com/KID-22/Cocktail/raw/{_COMMIT}/dataset"
_PAGE = "https://huggingface.co/IR-Cocktail"
_ATTRIBUTION = (
    "Dai et al.: Cocktail: A Comprehensive Information Retrieval Benchmark with LLM-Generated "
    "Documents Integration, Findings of ACL 2024, https://github.com/KID-22/Cocktail"
)
_ACADEMIC = "academic use only (Cocktail); the licence of the original data set applies too"


@dataclass(frozen=True, kw_only=True)
class PublicSet:
    """A public data set of human documents and their rewrites.

    Parameters
    ----------
    name : str
    n_documents, n_queries : int
        Documents of both sources together, and test queries.
    base_url : str or None
        Folder on the web that holds ``<name>.zip``; None where no address is known to be good.
    checksum : str or None
        Of ``<name>.zip``, as :func:`download` takes it; None where none was published.
    license, attribution : str
    """

    name: str
    n_documents: int
    n_queries: int
    base_url: str | None = None
    checksum: str | None = None
    license: str = _ACADEMIC
    attribution: str = _ATTRIBUTION

    @property
    def how(self) -> str:
        """How to get it."""
        if self.base_url and self.checksum:
            return f"load_dataset({self.name!r}) downloads it once into the cache folder"
        archive = f"<cache>/datasets/{self.name}.zip, or read_beir(folder) on the unpacked data"
        if self.checksum:
            return f"not downloaded: get the archive ({self.checksum}, {_PAGE}) and use {archive}"
        return f"not downloaded: no checksum was published; get it from {_PAGE} and use read_beir"


def _elsewhere(name: str, n_per_source: int, n_queries: int, md5: str) -> PublicSet:
    return PublicSet(
        name=name, n_documents=2 * n_per_source, n_queries=n_queries, checksum=f"md5:{md5}"
    )


PUBLIC_SETS: dict[str, PublicSet] = {
    entry.name: entry
    for entry in (
        PublicSet(
            name="nq-utd",
            n_documents=1_600,
            n_queries=80,
            base_url=_BASE_URL,
            checksum="md5:2e12e66393829cd4be715718f99d2436",
            license="MIT (NQ-UTD); data of the Cocktail project for academic use only",
        ),
        PublicSet(
            name="nfcorpus",
            n_documents=7_266,
            n_queries=323,
            base_url=_BASE_URL,
            checksum="md5:695327760647984c5014d64b2fee8de0",
        ),
        _elsewhere("msmarco", 542_203, 6_979, "985926f3e906fadf0dc6249f23ed850f"),
        _elsewhere("dl19", 542_203, 43, "d652af47ec0e844af43109c0acf50b74"),
        _elsewhere("dl20", 542_203, 54, "3afc48141dce3405ede2b6b937c65036"),
        _elsewhere("trec-covid", 128_585, 50, "1e1e2264b623d9cb7cb50df8141bd535"),
        _elsewhere("nq", 104_194, 3_446, "a10bfe33efdec54aafcc974ac989c338"),
        _elsewhere("hotpotqa", 111_107, 7_405, "74467760fff8bf8fbdadd5094bf9dd7b"),
        _elsewhere("fiqa", 57_450, 648, "4e1e688539b0622630fb6e65d39d26fa"),
        _elsewhere("webis-touche2020", 101_922, 49, "d58ec465ccd567d8f75edb419b0faaed"),
        _elsewhere("cqadupstack", 39_962, 1_563, "d48d963bc72689c765f381f04fc26f8b"),
        _elsewhere("dbpedia-entity", 145_037, 400, "43292f4f1a1927e2e323a4a7fa165fc1"),
        _elsewhere("scidocs", 25_259, 1_000, "4058c0915594ab34e9b2b67f885c595f"),
        _elsewhere("fever", 114_529, 6_666, "98b631887d8c38772463e9633c477c69"),
        _elsewhere("climate-fever", 101_339, 1_535, "5734d6ac34f24f5da496b27e04ff991a"),
        _elsewhere("scifact", 5_183, 300, "b5b8e24ccad98c9ca959061af14bf833"),
    )
}


def load_public_set(
    entry: PublicSet,
    *,
    split: str = "test",
    cache: PathLike | None = None,
    base_url: str | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Download a public set on first use, and read it.

    Parameters
    ----------
    entry : PublicSet
    split : str
    cache : path or None
        None takes :func:`cache_dir`. A ``<name>.zip`` with the right checksum that already lies in
        its ``datasets`` folder is used without any connection.
    base_url : str or None
        A mirror of the folder that holds ``<name>.zip``; the checksum stays the same.
    progress : callable or None
        As for :func:`download`.

    Raises
    ------
    DataError
        If the set has no known checksum or address, cannot be downloaded, or is not a BEIR folder.
    """
    address = base_url or entry.base_url
    if entry.checksum is None:
        raise DataError(f"data set {entry.name!r} is {entry.how}")
    store = Path(cache or cache_dir()) / "datasets"
    folder = store / f"{entry.name}-{entry.checksum.partition(':')[2][:8]}"
    if not folder.is_dir():
        archive = store / f"{entry.name}.zip"
        if address is not None:
            url = f"{address.rstrip('/')}/{archive.name}"
            download(url, archive, checksum=entry.checksum, progress=progress)
        elif not has_checksum(archive, entry.checksum):
            found = "with another checksum" if archive.exists() else "missing"
            raise DataError(f"data set {entry.name!r} is {entry.how}; {archive} is {found}")
        extract_zip(archive, folder)
    dataset = read_beir(_beir_root(folder), split=split, name=entry.name)
    return dataclasses.replace(dataset, license=entry.license, attribution=entry.attribution)


def _beir_root(folder: Path) -> Path:
    """Return the shallowest folder of an unpacked archive that holds a corpus and queries."""
    holders = [
        path.parent
        for path in folder.rglob("queries.jsonl*")
        if any((path.parent / n).exists() for n in ("corpus", "corpus.jsonl", "corpus.jsonl.gz"))
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
    ]
    if not holders:
        found = sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))
        raise DataError(
            f"{folder} holds no folder with queries.jsonl and a corpus; it holds {found[:10]}"
        )
    return min(holders, key=lambda p: (len(p.parts), str(p)))
