"""The application that ``faults.py`` runs: one search function, under servers and in pools.

    python benchmarks/monitor/faults_app.py LOG answer|fork|forkserver|terminated [N]

Every number is printed after the search for it has returned: that retrieval is acknowledged. A task
of Celery appends it to the file that ``FAULTS_ANSWERED`` names.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
from pathlib import Path

import rag_sourcebias as rsb
from rag_sourcebias import EventLog

DOCUMENTS = [f"d{i}" for i in range(7)]
SOURCES = {name: "human" if i % 2 else "llm:a" for i, name in enumerate(DOCUMENTS)}
if "FAULTS_LOG" not in os.environ:
    os.environ["FAULTS_LOG"] = sys.argv[1]
log = EventLog(os.environ["FAULTS_LOG"])


def ranking(number: int) -> list[str]:
    return [DOCUMENTS[(number + k) % 7] for k in range(number % 5)]


def labels_of(number: int) -> dict[str, str]:
    return {"session": str(number), "user": f"u{number % 50}"}


find = rsb.instrument(ranking, log, tags=SOURCES, labels={"collection": "docs"}).target


def answer(number: int) -> int:
    with rsb.labels(**labels_of(number)):
        find(number)
    return number


async def app(scope: dict, _receive: object, send: object) -> None:
    """Answer over HTTP, as an ASGI application."""
    if scope["type"] != "http":  # it needs no start and no end
        raise ValueError(scope["type"])
    answer(int(scope["path"][1:]))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})


def __getattr__(name: str) -> object:
    """Make ``tasks``, an application of Celery with its messages in a folder, when it is asked."""
    if name != "tasks":
        raise AttributeError(name)
    from celery import Celery

    folder = str(Path(os.environ["FAULTS_LOG"]).parent)
    found = Celery("faults", broker="filesystem://")
    found.conf.update(
        broker_transport_options={
            "data_folder_in": folder,
            "data_folder_out": folder,
            "control_folder": folder,
        },
        worker_prefetch_multiplier=1,
        task_default_queue="faults",
    )

    @found.task(name="answered")
    def answered(number: int) -> None:
        answer(number)
        with Path(os.environ["FAULTS_ANSWERED"]).open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")

    found.answered = answered
    return found


def on_and_on() -> None:
    for number in range(10_000_000):
        print(answer(number), flush=True)


def main() -> None:
    how, n = sys.argv[2], int((*sys.argv, "0")[3])
    logging.disable()
    if how == "answer":
        for line in sys.stdin:
            print(answer(int(line)), flush=True)
        os._exit(0)
    context = multiprocessing.get_context("fork" if how == "terminated" else how)
    if how == "terminated":
        child = context.Process(target=on_and_on)
        child.start()
        sys.stdin.readline()  # until it has answered enough
        child.terminate()
        child.join()
    else:
        with context.Pool(2, maxtasksperchild=20) as pool:  # which ends by terminating it
            for number in pool.imap_unordered(answer, range(n)):
                print(number, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
