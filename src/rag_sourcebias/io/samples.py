"""Data sets by name: the bundled samples and the public sets."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, cast

from rag_sourcebias.core.data import Corpus, Dataset, DocTags, Qrels, Query, TagTable
from rag_sourcebias.core.errors import (
    DataError,
    require_at_least,
)
from rag_sourcebias.io.beir import read_beir
from rag_sourcebias.io.files import (
    Address,
    PathLike,
    address_of,
    check_file,
    check_unpacked,
    read_jsonl,
    sound,
)

if TYPE_CHECKING:
    import http.client


# Where downloaded data is kept.


def cache_dir() -> Path:
    """Return the cache folder, which need not exist yet.

    ``RAG_SOURCEBIAS_CACHE`` if set, else ``rag-sourcebias`` below ``XDG_CACHE_HOME``, else
    ``~/.cache/rag-sourcebias``.
    """
    own = os.environ.get("RAG_SOURCEBIAS_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "rag-sourcebias"


# Unpack archives safely.


def extract_zip(path: PathLike, folder: PathLike) -> Path:
    """Unpack an archive into a new folder, which appears only when complete.

    Raises
    ------
    DataError
        If the file is not a sound zip archive, the folder exists, or a member would land outside
        the folder or is a link (then nothing is written), or it
        unpacks to far more than it takes.
    """
    import zipfile

    target = Path(folder)
    if target.exists():
        raise DataError(f"cannot unpack {path}: {target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    size = check_file(path).st_size
    try:
        with sound(path, "a sound zip archive"):
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                for member in members:
                    name = PurePosixPath(member.filename.replace("\\", "/"))
                    if (
                        name.is_absolute()
                        or ".." in name.parts
                        or re.match(r"[A-Za-z]:", member.filename)
                    ):
                        raise DataError(
                            f"{path}: member {member.filename!r} points outside the archive; "
                            "refused"
                        )
                    if stat.S_ISLNK(member.external_attr >> 16):
                        raise DataError(f"{path}: member {member.filename!r} is a link; refused")
                check_unpacked(path, unpacked=sum(m.file_size for m in members), packed=size)
                archive.extractall(temporary)
            temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


# Download a file once, completely and verified.


Progress = Callable[[int, int | None], None]


class _TryAgainError(Exception):
    """A passing fault: the connection broke or the server was not ready."""


def download(
    url: str,
    target: PathLike,
    *,
    checksum: str,
    progress: Progress | None = None,
    timeout: float = 30.0,
    attempts: int = 5,
    backoff: float = 1.0,
) -> Path:
    """Download a file, resuming where an earlier attempt broke off.

    Parameters
    ----------
    url : str
        An http or https address. A user and password in it are sent to its host alone; messages
        show neither them nor its query.
    target : path
        Missing folders are made. Incoming data lies in ``<target>.part``; the target appears only
        complete and verified. If it exists with the right checksum, nothing is downloaded.
    checksum : str
        ``"md5:<32 hex digits>"`` or ``"sha256:<64 hex digits>"`` of the file.
    progress : callable or None
        Called as ``progress(received, total)``, in bytes; total is None when unknown.
    timeout : float
        Seconds without any data after which an attempt is given up.
    attempts : int
        Broken connections and the answers 408, 429 and 5xx are tried again, up to this many times.
    backoff : float
        Seconds before the second attempt, doubled for each further one.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    DataError
        If the file cannot be had, is not the one expected (it is removed then), or lies behind a
        redirection that leaves http and https, or https for http.
    """
    address = address_of(url, "url")
    require_at_least(1, attempts=attempts)
    file = Path(target)
    if has_checksum(file, checksum):
        return file
    part = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(attempts):
            try:
                _attempt(address, part, progress, timeout)
                break
            except _TryAgainError as error:
                if attempt + 1 == attempts:
                    raise DataError(
                        f"cannot download {address.url} ({attempts} attempts): {error}; what was "
                        "received is kept, try again later or put the file at "
                        f"{part.with_suffix('')} yourself"
                    ) from error
                time.sleep(backoff * 2**attempt)
    except OSError as error:
        raise DataError(f"cannot write {part}: {error.strerror or error}") from error
    found = _digest(part, checksum)
    if found != checksum:
        part.unlink()
        raise DataError(
            f"{address.url} is not the expected file: its checksum is {found}, expected "
            f"{checksum}; the download was removed"
        )
    part.replace(file)
    return file


def has_checksum(file: Path, checksum: str) -> bool:
    """Whether the file exists and has this checksum (as :func:`download` takes it)."""
    if not re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", checksum):
        raise DataError(f"checksum {checksum!r} is neither md5:<32 hex> nor sha256:<64 hex>")
    return file.is_file() and _digest(file, checksum) == checksum


def _digest(file: Path, checksum: str) -> str:
    kind = checksum.partition(":")[0]
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))
    return f"{kind}:{digest.hexdigest()}"


def _attempt(address: Address, part: Path, progress: Progress | None, timeout: float) -> None:
    """Fetch what is missing of ``part``; raise `_TryAgainError` if it is still incomplete."""
    have = part.stat().st_size if part.exists() else 0
    with _request(address, have, timeout) as response:
        if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            if response.headers.get("Content-Range") == f"bytes */{have}":
                return  # nothing was missing
            part.unlink()
            raise _TryAgainError("the partial file did not fit the one on the server")
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        # A server that knows no ranges answers 200 with the whole file.
        start = have if response.status == HTTPStatus.PARTIAL_CONTENT and resumed else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        with part.open("ab" if start else "wb") as stream:
            received = start
            for chunk in _chunks(response):
                stream.write(chunk)
                received += len(chunk)
                if progress is not None:
                    progress(received, total)
    if total is not None and received < total:
        raise _TryAgainError(f"the connection broke after {received} of {total} bytes")


def _request(address: Address, have: int, timeout: float) -> http.client.HTTPResponse:
    """Ask for the file from byte ``have`` on; answers 2xx and 416 are returned."""
    import http.client
    import urllib.error
    import urllib.request

    # followed neither out of http and https nor out of https
    class Redirections(urllib.request.HTTPRedirectHandler):
        def redirect_request(
            self,
            req: urllib.request.Request,
            *answer: Any,  # noqa: ANN401
        ) -> urllib.request.Request | None:
            scheme = answer[-1].partition(":")[0].lower()  # of the new address
            if scheme != "https" and (scheme != "http" or req.type == "https"):
                raise DataError(
                    f"cannot download from {req.type}://{req.host}: it redirects to an address of "
                    f"{scheme}, which is not followed; give an address that needs no redirection"
                )
            return super().redirect_request(req, *answer)

    request = urllib.request.Request(
        f"{address.url}?{address.query}" if address.query else address.url,
        headers={"User-Agent": "rag-sourcebias"},
    )
    if address.authorization is not None:  # not for where a redirection leads
        request.add_unredirected_header("Authorization", address.authorization)
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.build_opener(Redirections).open(request, timeout=timeout)
        return cast("http.client.HTTPResponse", answer)
    except urllib.error.HTTPError as error:
        if have and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return cast("http.client.HTTPResponse", error)  # it can be read like a response
        error.close()
        text = f"the server answered {error.code} {error.reason}"
        if error.code >= 500 or error.code in (408, 429):
            raise _TryAgainError(text) from error
        raise DataError(f"cannot download {address.url}: {address.redacted(text)}") from error
    except urllib.error.URLError as error:
        raise _TryAgainError(f"no connection ({address.redacted(str(error.reason))})") from error
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgainError(f"the connection broke ({address.redacted(repr(error))})") from error


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    import http.client

    try:
        while chunk := response.read(1 << 16):
            yield chunk
    except (http.client.HTTPException, OSError) as error:
        raise _TryAgainError(f"the connection broke ({error!r})") from error


# The samples that come with the package.


SAMPLE_LICENSE = "CC BY 4.0"
_REPOSITORY = "https://github.com/webis-de/sigir25-rag-crowdsourcing"
# [5], [3,12], [4, 7.] and [11,1516,] (a slip in the data), but neither years nor words in brackets.
_CITATION = re.compile(r"[ \t]*\[\s*\d{1,2}(?:[\s,.]+\d{1,4})*[\s,.]*\]")
_Row = tuple[str, str, DocTags, str, str]  # document id, text, tags, query id, query text


def load_sample(name: str = "crowdrag-rewrites", *, split: str | None = None) -> Dataset:
    """Load a bundled sample; it needs no connection.

    Parameters
    ----------
    name : {"crowdrag-rewrites", "crowdrag25", "outfox-essays"}
        ``crowdrag-rewrites`` (design ``"rewrites"``): the openings of 160 essays by people and
        their rewrites by an LLM, both relevant to their query. ``crowdrag25`` (design
        ``"independent"``): six texts per query, by people and by GPT-4o as bullet list, essay and
        news item, all relevant; citation marks are removed. ``outfox-essays`` (design
        ``"independent"``): the openings of essays by students and by ChatGPT on 640 problem
        statements.
    split : {"train", "test"}, optional
        Half of the queries of ``outfox-essays``: to fit on, or to judge on. The corpus stays
        whole.

    Raises
    ------
    DataError
        If there is no such sample.
    """
    if name not in _BUNDLED:
        raise DataError(f"no bundled sample {name!r}; there are {', '.join(_BUNDLED)}")
    if split is not None and (name != "outfox-essays" or split not in ("train", "test")):
        raise DataError(f"sample {name!r} has no split {split!r}; outfox-essays has train and test")
    file, read, design, licence, attribution = _BUNDLED[name]
    with resources.as_file(resources.files(__package__).joinpath("samples", file)) as path:
        rows = [row for _, record in read_jsonl(path) for row in read(record)]
    queries = {query_id: text for *_, query_id, text in rows}
    if split is not None:
        part = slice(_TRAIN_ESSAYS) if split == "train" else slice(_TRAIN_ESSAYS, None)
        queries = dict(list(queries.items())[part])
    return Dataset(
        name=name if split is None else f"{name}/{split}",
        corpus=Corpus(
            texts=tuple(text for _, text, *_ in rows),
            tags=TagTable.from_tags((doc_id, tags) for doc_id, _, tags, *_ in rows),
        ),
        queries=tuple(Query(query_id=query_id, text=text) for query_id, text in queries.items()),
        # each document has grade 1 for its own query
        qrels=Qrels.from_rows((q, doc_id, 1) for doc_id, _, _, q, _ in rows if q in queries),
        design=design,
        license=licence,
        attribution=attribution,
    )


def _rewrite_rows(record: Mapping[str, Any]) -> Iterator[_Row]:
    query_id = record["query_id"]
    for source, text in (
        ("human", record["human"]),
        ("llm:claude", record["doc_styles"]["0"]),
    ):
        yield (
            f"{query_id}@{source}",
            text,
            DocTags(source=source, pair_id=query_id, origin="declared"),
            query_id,
            record["query"],
        )


def _response_rows(record: Mapping[str, Any]) -> Iterator[_Row]:
    topic, style = record["topic"], record["style"]
    # The model is named by scripts/create_llm_responses.py of the source repository.
    source = "human" if record["kind"] == "human" else "llm:gpt-4o"
    yield (
        record["response"],
        _CITATION.sub("", record["text"]).strip(),
        DocTags(source=source, style=style, pair_id=f"{topic}/{style}", origin="declared"),
        topic,
        record["query"],
    )


def _essay_rows(record: Mapping[str, Any]) -> Iterator[_Row]:
    for source, key in (("human", "human"), ("llm:chatgpt", "chatgpt")):
        yield (
            f"{record['id']}@{source}",
            record[key],
            DocTags(source=source, pair_id=record["id"], origin="declared"),
            record["id"],
            record["query"],
        )


# File, rows of a record, design, licence and attribution of each sample.
_BUNDLED: dict[
    str,
    tuple[
        str,
        Callable[[Mapping[str, Any]], Iterator[_Row]],
        Literal["rewrites", "independent"],
        str,
        str,
    ],
] = {
    "crowdrag-rewrites": (
        "crowdrag-rewrites/pairs.jsonl.gz",
        _rewrite_rows,
        "rewrites",
        SAMPLE_LICENSE,
        f"Passages from Webis CrowdRAG-25 ({_REPOSITORY}), shortened, citation marks removed; "
        "rewritten by a large language model (Claude)",
    ),
    "crowdrag25": (
        "crowdrag25/responses.jsonl.gz",
        _response_rows,
        "independent",
        SAMPLE_LICENSE,
        f"Webis CrowdRAG-25 ({_REPOSITORY}), citation marks removed",
    ),
    "outfox-essays": (
        "outfox/essays.jsonl.gz",
        _essay_rows,
        "independent",
        "Apache-2.0",
        "OUTFOX (Koike et al., AAAI 2024, https://github.com/ryuryukke/OUTFOX), openings of essays",
    ),
}
_TRAIN_ESSAYS = 340  # the first queries of outfox-essays are there to fit on


# Named public data sets: the Cocktail benchmark (Dai et al., Findings of ACL 2024).
# Checksums are the md5 sums of the archives as printed in the README of
# https://github.com/KID-22/Cocktail at the commit in the address below. Two of the archives lie in
# that repository; for the others no address of the archive is known, only its checksum.


_BASE_URL = (
    "https://github.com/KID-22/Cocktail/raw/0cf2682129b7ab3358d538eea4eef8b7cd2ce2c7/dataset"
)


Access = Literal["bundled", "downloaded", "by hand"]


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
    checksum : str
        Of ``<name>.zip``, as :func:`download` takes it.
    license, attribution : str
    """

    name: str
    n_documents: int
    n_queries: int
    checksum: str
    base_url: str | None = None
    license: str = "academic use only (Cocktail); the licence of the original data set applies too"
    attribution: str = (
        "Dai et al.: Cocktail: A Comprehensive Information Retrieval Benchmark with LLM-Generated "
        "Documents Integration, Findings of ACL 2024, https://github.com/KID-22/Cocktail"
    )

    @property
    def access(self) -> Access:
        """Whether it is downloaded or has to be fetched by hand."""
        return "downloaded" if self.base_url else "by hand"

    @property
    def how(self) -> str:
        """How to get it."""
        if self.access == "downloaded":
            return f"load_dataset({self.name!r}) downloads it once into the cache folder"
        return (
            f"not downloaded: get the archive ({self.checksum}, "
            "https://huggingface.co/IR-Cocktail) and use "
            f"<cache>/datasets/{self.name}.zip, or read_beir(folder) on the unpacked data"
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
        *(
            PublicSet(name=n, n_documents=2 * size, n_queries=queries, checksum=f"md5:{md5}")
            for n, size, queries, md5 in (
                ("msmarco", 542_203, 6_979, "985926f3e906fadf0dc6249f23ed850f"),
                ("dl19", 542_203, 43, "d652af47ec0e844af43109c0acf50b74"),
                ("dl20", 542_203, 54, "3afc48141dce3405ede2b6b937c65036"),
                ("trec-covid", 128_585, 50, "1e1e2264b623d9cb7cb50df8141bd535"),
                ("nq", 104_194, 3_446, "a10bfe33efdec54aafcc974ac989c338"),
                ("hotpotqa", 111_107, 7_405, "74467760fff8bf8fbdadd5094bf9dd7b"),
                ("fiqa", 57_450, 648, "4e1e688539b0622630fb6e65d39d26fa"),
                ("webis-touche2020", 101_922, 49, "d58ec465ccd567d8f75edb419b0faaed"),
                ("cqadupstack", 39_962, 1_563, "d48d963bc72689c765f381f04fc26f8b"),
                ("dbpedia-entity", 145_037, 400, "43292f4f1a1927e2e323a4a7fa165fc1"),
                ("scidocs", 25_259, 1_000, "4058c0915594ab34e9b2b67f885c595f"),
                ("fever", 114_529, 6_666, "98b631887d8c38772463e9633c477c69"),
                ("climate-fever", 101_339, 1_535, "5734d6ac34f24f5da496b27e04ff991a"),
                ("scifact", 5_183, 300, "b5b8e24ccad98c9ca959061af14bf833"),
            )
        ),
    )
}


# Data sets by name: the bundled samples and the public sets.


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What :func:`load_dataset` knows about a name.

    Parameters
    ----------
    n_documents : int
        Of all sources together.
    access : {"bundled", "downloaded", "by hand"}
    how : str
        Where it comes from, in words.
    """

    name: str
    description: str
    n_documents: int
    n_queries: int
    license: str
    access: Access
    how: str


_SAMPLES = (
    DatasetInfo(
        name="crowdrag-rewrites",
        description="160 passages by people and their rewrites by an LLM (Claude)",
        n_documents=320,
        n_queries=160,
        license=SAMPLE_LICENSE,
        access="bundled",
        how="bundled",
    ),
    DatasetInfo(
        name="crowdrag25",
        description="301 queries, each answered by people and by an LLM (GPT-4o) in three styles",
        n_documents=1_806,
        n_queries=301,
        license=SAMPLE_LICENSE,
        access="bundled",
        how="bundled",
    ),
    DatasetInfo(
        name="outfox-essays",
        description="openings of essays by students and by ChatGPT on 640 problem statements",
        n_documents=1_280,
        n_queries=640,
        license="Apache-2.0",
        access="bundled",
        how="bundled",
    ),
)


def list_datasets() -> tuple[DatasetInfo, ...]:
    """Return every known data set, bundled samples first."""
    return _SAMPLES + tuple(
        DatasetInfo(
            name=entry.name,
            description="Cocktail benchmark: human documents and their Llama-2 rewrites",
            n_documents=entry.n_documents,
            n_queries=entry.n_queries,
            license=entry.license,
            access=entry.access,
            how=entry.how,
        )
        for entry in PUBLIC_SETS.values()
    )


def load_dataset(
    name: str,
    *,
    split: str = "test",
    cache: PathLike | None = None,
    base_url: str | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Load a data set by its name, downloading a public one on first use.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`.
    split : str
        Of a public set; a bundled sample has one split only.
    cache : path or None
        Folder for downloads; None takes :func:`cache_dir`. A ``<name>.zip`` with the right
        checksum that already lies in its ``datasets`` folder is used without any connection.
    base_url : str or None
        A mirror of the folder that holds ``<name>.zip``; its checksum is verified all the same.
    progress : callable or None
        Called as ``progress(received_bytes, total_bytes)`` during a download.

    Raises
    ------
    DataError
        If the name is unknown, or the set cannot or may not be downloaded.
    """
    if name in _BUNDLED:
        return load_sample(name)
    if name not in PUBLIC_SETS:
        raise DataError(
            f"no data set {name!r}; there are {', '.join(info.name for info in list_datasets())}"
        )
    entry = PUBLIC_SETS[name]
    address = base_url or entry.base_url
    store = Path(cache or cache_dir()) / "datasets"
    folder = store / f"{name}-{entry.checksum.partition(':')[2][:8]}"
    if not folder.is_dir():
        archive = store / f"{name}.zip"
        if address is not None:
            download(
                f"{address.rstrip('/')}/{archive.name}",
                archive,
                checksum=entry.checksum,
                progress=progress,
            )
        elif not has_checksum(archive, entry.checksum):
            raise DataError(
                f"data set {name!r} is {entry.how}; {archive} is "
                f"{'with another checksum' if archive.exists() else 'missing'}"
            )
        extract_zip(archive, folder)
    # the shallowest folder of the archive that holds a corpus and queries
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
    root = min(holders, key=lambda p: (len(p.parts), str(p)))
    return replace(
        read_beir(root, split=split, name=name),
        license=entry.license,
        attribution=entry.attribution,
    )
