"""Random writes while an encoder is swapped again and again: is every acknowledged one there?

    python benchmarks/robustness/encoder_swap.py            # 10,000 writes or more, 100 kills
    python benchmarks/robustness/encoder_swap.py --writes 1000 --kills 0

A Chroma server, two processes that add, update, delete and change metadata, each through a handle
of ours that follows the name and through one of Chroma's that was opened before, and a process that
copies, switches, carries over, rolls back and finishes, and is killed at random points. Before a
handle of Chroma's is opened again, as at a restart, what was written through the old one is carried
over. The exit status is 1 where a document is not as the last acknowledged write left it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from chromadb.errors import NotFoundError

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from chroma_server import chroma_server
from hashing_encoder import HashingEncoder

from rag_sourcebias.core.errors import DataError
from rag_sourcebias_integrations.chroma.carry import Ledger, Phase
from rag_sourcebias_integrations.chroma.collections import open_client
from rag_sourcebias_integrations.chroma.embeddings import EncoderEmbeddingFunction
from rag_sourcebias_integrations.chroma.follow import follow_collection
from rag_sourcebias_integrations.chroma.migration import migrate_encoder, restore_collection

RESULT = Path(__file__).parents[1] / "results" / "encoder_swap.json"
NAME = "shop"
DIMENSIONS = (64, 96)
_STAGES = ("copy", "switch", "carry", "back", "finish")
_REQUESTS = 30  # of a stage, at which a process is killed
_KINDS = ("add", "add", "upsert", "text", "metadata", "delete", "delete")
_WORDS = ["red", "green", "blue", "old", "new", "small", "big", "wool", "silk", "shoe", "coat"]


def function(dimension: int) -> EncoderEmbeddingFunction:
    """One of the encoders that are swapped."""
    return EncoderEmbeddingFunction(HashingEncoder(dimension))


def wanted_vectors(dimension: int, texts: list[str]) -> Any:
    """What a collection of this dimension must hold."""
    return np.asarray(HashingEncoder(dimension).encode_documents(texts))


class Writer:
    """Writes to documents of its own through one handle, and knows what must be there."""

    def __init__(self, handle: Any, prefix: str, rng: random.Random) -> None:
        self.handle, self.prefix, self.rng = handle, prefix, rng
        self.held: dict[str, tuple[str, dict[str, Any]]] = {}
        self.gone: set[str] = set()
        self.tried: set[str] = set()  # added or not, as nobody acknowledged it
        self.count = 0

    def write(self) -> None:
        """Write once; what is remembered was acknowledged."""
        self.count += 1
        rng, known = self.rng, list(self.held)
        text = " ".join(rng.choices(_WORDS, k=5)) + f" {self.prefix}{self.count}"
        metadata = {"n": self.count, "by": self.prefix}
        kind = rng.choice(_KINDS) if known else "add"
        if kind == "add":
            doc_id = f"{self.prefix}-{self.count}"
            self.tried.add(doc_id)
            self.send("add", doc_id, text, metadata)
            self.tried.discard(doc_id)
            self.held[doc_id] = (text, metadata)
            return
        doc_id = rng.choice(known)
        if kind == "upsert":
            self.send("upsert", doc_id, text, metadata)
            self.held[doc_id] = (text, {**self.held[doc_id][1], **metadata})
        elif kind == "text":
            self.send("update", doc_id, text)
            self.held[doc_id] = (text, self.held[doc_id][1])
        elif kind == "metadata":
            self.send("update", doc_id, None, {f"k{self.count % 5}": self.count})
            before, values = self.held[doc_id]
            self.held[doc_id] = (before, {**values, f"k{self.count % 5}": self.count})
        else:
            self.handle.delete(ids=[doc_id])
            del self.held[doc_id]
            self.gone.add(doc_id)

    def send(
        self, method: str, doc_id: str, text: str | None, metadata: dict[str, Any] | None = None
    ) -> None:
        """Write a document; its vector is made for the collection that it goes to."""
        request: dict[str, Any] = {"ids": [doc_id]}
        if text is not None:
            request["documents"] = [text]
        if metadata is not None:
            request["metadatas"] = [metadata]
        getattr(self.handle, method)(**request)


def opened(client: Any) -> Any:
    """A handle of Chroma's own, embedding as its collection was made."""
    plain = client.get_collection(NAME, embedding_function=None)
    dimension = plain.configuration_json["embedding_function"]["config"]["fingerprint"]
    return client.get_collection(
        NAME, embedding_function=function(int(dimension.rpartition("-")[2]))
    )


class Named:
    """A client that opens collections with the encoder they were made with."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._last: Any = None

    def get_collection(self, name: str, **options: Any) -> Any:
        """Open one; only the shop embeds."""
        if name != NAME or options:
            return self._client.get_collection(name, **options)
        plain = self._client.get_collection(NAME, embedding_function=None)
        if self._last is None or self._last.id != plain.id:
            self._last = opened(self._client)
        return self._last if self._last.id == plain.id else opened(self._client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def write_on(
    port: int, which: int, writes: int, seed: int, asked: Any, done: Any, ended: Any, out: str
) -> None:
    """Write through a following handle and one opened before; open it again when asked."""
    client = open_client(f"http://127.0.0.1:{port}")
    rng = random.Random(seed)
    following = Writer(follow_collection(Named(client), NAME, patience=120), f"f{which}", rng)
    before = Writer(opened(client), f"b{which}", rng)
    raised = 0
    while following.count + before.count < writes or not done[5]:
        if asked.value > done[which]:
            # As an application that is stopped: its handle is opened again once all is carried.
            done[which] = asked.value
            while done[2] < asked.value:
                raised += not _written(following)
            before.handle = opened(client)
            done[which + 3] = asked.value
        writer = rng.choice([following, before])
        if not _written(writer):
            raised += writer is following
            before.handle = opened(client)
    ended[which] = 1
    while not ended[2]:  # restarts go on being asked for
        if asked.value > done[which]:
            done[which] = asked.value
            while done[2] < asked.value and not ended[2]:
                time.sleep(0.01)
            before.handle = opened(client)
            done[which + 3] = asked.value
        time.sleep(0.01)
    counts = following.count + before.count
    state = {
        "writes": counts,
        "held": {**following.held, **before.held},
        "gone": [*following.gone, *before.gone],
        "tried": [*following.tried, *before.tried],
        "raised": raised,
    }
    Path(out).write_text(json.dumps(state))


def _written(writer: Writer) -> bool:
    try:
        writer.write()
    except NotFoundError:  # not acknowledged: the collection was finished
        return False
    return True


def swap_on(
    port: int, asked: Any, done: Any, ended: Any, figures: Any, death: tuple[str, int]
) -> None:
    """Swap the encoder back and forth until the writers have ended.

    Or until a request that kills it: the so-many-th one after it entered a stage.
    """
    client = open_client(f"http://127.0.0.1:{port}")
    begin = partial(die_in, death)
    while True:
        last = bool(ended[0] and ended[1])
        begin("copy")
        if NAME not in {one.name for one in client.list_collections()}:
            restore_collection(client, NAME)
        progress = Ledger(client, NAME).read()
        migration = migrate_encoder(
            client.get_collection(NAME, embedding_function=None),
            function(_target(client, progress)),
            client=client,
            batch_size=500,
        )
        steps = {
            "switch": migration.switch,
            "back": partial(migration.roll_back, function(_other(migration))),
        }
        for name, step in steps.items():
            begin(name)
            _try(step, figures)
            begin("carry")
            for _ in range(3):
                migration.carry()
            _finish(migration, figures, 2.0)  # refused while handles opened before are in use
            if migration.state is Phase.FINISHED:
                break
        if migration.state is not Phase.FINISHED:
            if migration.state is Phase.ROLLED_BACK:
                continue
            restart(migration, asked, done)
            begin("finish")
            _finish(migration, figures, 0.05)
        if last:
            ended[2] = migration.state is Phase.FINISHED
        if ended[2]:
            return


def die_in(death: tuple[str, int], stage: str) -> None:
    """Have this process killed right before, or right after, one of the stage's requests."""
    wanted, request = death
    if stage != wanted or hasattr(httpx.Client, "rsb_counted"):
        return
    send, numbers = httpx.Client.send, itertools.count(1)

    def counted(*args: Any, **kwargs: Any) -> Any:
        number = next(numbers)
        if number == request and request % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(*args, **kwargs)
        if number == request:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    httpx.Client.send = counted  # type: ignore[method-assign]
    httpx.Client.rsb_counted = True  # type: ignore[attr-defined]


def restart(migration: Any, asked: Any, done: Any) -> None:
    """Have both writers stop using the handle they opened before, carry, and go on."""
    asked.value = max(asked.value, done[2]) + 1
    while min(done[0], done[1]) < asked.value:
        time.sleep(0.01)
    migration.carry()
    done[2] = asked.value
    while min(done[3], done[4]) < asked.value:
        time.sleep(0.01)


def _try(step: Any, figures: Any) -> None:
    try:
        step()
    except DataError:
        figures[0] += 1  # written to in every round: nothing happened, try again


def _finish(migration: Any, figures: Any, quiet: float) -> None:
    try:
        migration.finish(quiet=quiet)
        figures[2] += 1
    except DataError:
        figures[1] += 1


def _target(client: Any, progress: Any) -> int:
    """The encoder of the migration under way, or the one that is not in use."""
    if progress is not None:
        marks = {_mark(d): d for d in DIMENSIONS}
        return marks[progress.shadow_name.rpartition("-")[2]]
    plain = client.get_collection(NAME, embedding_function=None).configuration_json
    used = plain["embedding_function"]["config"]["fingerprint"]
    return next(d for d in DIMENSIONS if not used.endswith(f"-{d}"))


def _other(migration: Any) -> int:
    mark = migration.shadow_name.rpartition("-")[2]
    return next(d for d in DIMENSIONS if _mark(d) != mark)


def _mark(dimension: int) -> str:
    fingerprint = HashingEncoder(dimension).fingerprint
    return blake2b(fingerprint.encode(), digest_size=4).hexdigest()


def measure(writes: int, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Run it all, and compare the collection with what was acknowledged."""
    context = multiprocessing.get_context("spawn")
    asked, figures = context.Value("i", 0), context.Array("i", 3)
    done, ended = context.Array("i", 6), context.Array("i", 3)
    rng, killed = random.Random(seed), Counter[str]()
    with chroma_server(folder) as port:
        client = open_client(f"http://127.0.0.1:{port}")
        client.create_collection(NAME, embedding_function=function(DIMENSIONS[0]))
        outs = [str(folder / f"{which}.json") for which in (0, 1)]
        writers = [
            context.Process(
                target=write_on,
                args=(port, which, writes // 2, seed + which, asked, done, ended, outs[which]),
            )
            for which in (0, 1)
        ]
        for writer in writers:
            writer.start()
        began = time.monotonic()
        while not ended[2]:
            done[5] = sum(killed.values()) >= kills
            stage = "none" if done[5] else rng.choice(_STAGES)
            death = (stage, rng.randrange(1, _REQUESTS))
            args = (port, asked, done, ended, figures, death)
            swapper = context.Process(target=swap_on, args=args)
            swapper.start()
            swapper.join()
            if swapper.exitcode == -signal.SIGKILL:
                progress = Ledger(client, NAME).read()
                phase = "no ledger" if progress is None else str(progress.phase)
                killed[f"{stage}: {phase}"] += 1
        for writer in writers:
            writer.join()
        seconds = time.monotonic() - began
        found = client.get_collection(NAME, embedding_function=None).get(
            include=["documents", "metadatas", "embeddings"]
        )
        names = sorted(one.name for one in client.list_collections())
    states = [json.loads(Path(out).read_text()) for out in outs]
    return {
        "writes": sum(state["writes"] for state in states),
        "kills": sum(killed.values()),
        "killed while": dict(sorted(killed.items())),
        "seconds": round(seconds, 1),
        "switches refused": figures[0],
        "finishes refused": figures[1],
        "finished": figures[2],
        "raised by handles that follow": sum(state["raised"] for state in states),
        "not acknowledged": sum(len(state["tried"]) for state in states),
        "collections left": names,
        **compared(states, found),
    }


def compared(states: list[Mapping[str, Any]], found: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as the last acknowledged write left it."""
    held = {doc_id: row for state in states for doc_id, row in state["held"].items()}
    gone = {doc_id for state in states for doc_id in state["gone"]}
    tried = {doc_id for state in states for doc_id in state["tried"]}
    there = {
        doc_id: (text, metadata or {})
        for doc_id, text, metadata in zip(
            found["ids"], found["documents"], found["metadatas"], strict=True
        )
    }
    vectors = np.asarray(found["embeddings"], np.float32)
    again = wanted_vectors(vectors.shape[1], list(found["documents"]))
    far = np.linalg.norm(vectors - again, axis=1) > 1e-3
    return {
        "documents": len(there),
        "missing": sorted(held.keys() - there.keys()),
        "back from deletion": sorted(gone & there.keys()),
        "not written by anybody": sorted(there.keys() - held.keys() - gone - tried),
        "other content": sorted(
            doc_id for doc_id in held.keys() & there.keys() if tuple(held[doc_id]) != there[doc_id]
        ),
        "vector of another text": [i for i, bad in zip(found["ids"], far, strict=True) if bad],
    }


def main() -> int:
    """Run, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULT)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(asked.writes, asked.kills, asked.seed, Path(folder))
    wrong = ("missing", "back from deletion", "not written by anybody", "other content")
    figures["lost"] = sum(len(figures[key]) for key in (*wrong, "vector of another text"))
    print(json.dumps(figures, indent=1))
    asked.out.write_text(json.dumps(figures, indent=1) + "\n")
    return bool(figures["lost"] or figures["raised by handles that follow"])


if __name__ == "__main__":
    raise SystemExit(main())
