"""How many files a reader of the code walks through to follow one command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Counts files of which a function is called; being imported does not count.
_WALK = """
import json, sys, threading
from pathlib import Path
import rag_sourcebias
from rag_sourcebias.cli import main

house = str(Path(rag_sourcebias.__file__).parent)
walked = set()

def watch(frame, event, argument):
    code = frame.f_code
    file = code.co_filename  # that of a page's template is no code of ours
    if event == "call" and code.co_name != "<module>" and file.endswith(".py"):
        if file.startswith(house):
            walked.add(file)

threading.setprofile(watch)
sys.setprofile(watch)
try:
    main()
except SystemExit as stop:
    ended = stop.code
sys.setprofile(None)
print("\\n" + json.dumps([ended, sorted(str(Path(file).relative_to(house)) for file in walked)]))
"""


def _walked(arguments: str, folder: Path) -> list[str]:
    command = [sys.executable, "-c", _WALK, *arguments.split(), "--report", str(folder / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ended, walked = json.loads(done.stdout.splitlines()[-1])
    assert ended == 0
    return walked


@pytest.mark.parametrize(
    ("arguments", "most", "met"),
    [
        # the bars of the issue that laid the ground floor
        ("audit source --sample --retriever bm25", 22, "measure/relevance.py"),
        ("interval --sample", 26, "infer/judged.py"),
    ],
)
def test_one_command_walks_through_few_files(
    arguments: str, most: int, met: str, tmp_path: Path
) -> None:
    walked = _walked(arguments, tmp_path)
    assert met in walked  # the watch sees where its numbers are made
    assert len(walked) <= most, " ".join(walked)
