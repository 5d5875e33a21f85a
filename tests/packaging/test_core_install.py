"""A plain install: every command starts, and what needs an extra says which."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What the extras bring, under the names they are imported by.
EXTRAS = re.findall(
    r"\w+",
    """Stemmer accelerate bm25s chromadb datasets faiss gguf h11 instructor jinja2
    langchain_classic langchain_community langchain_core llama_index matplotlib nltk numba
    openai opentelemetry pandas prometheus_client pyarrow ragas ray rouge_score sacrebleu
    safetensors sentence_transformers sklearn starlette tokenizers torch transformers
    uvicorn""",
)
BLOCKED = """
import importlib, pathlib, sys
extras = set(sys.argv[1].split(","))
class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in extras:
            raise ModuleNotFoundError(f"no {name}", name=name.partition(".")[0])
sys.meta_path.insert(0, Blocked())
"""
EVERY = """
import rag_sourcebias
root = pathlib.Path(rag_sourcebias.__file__).parent
for path in sorted(root.rglob("*.py")):
    name = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
    if path.stem != "__main__":
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(name, type(error).__name__)
"""
COMMAND = """
from rag_sourcebias.cli import main
print(*(name for name in ("asyncio", "numpy.random", "scipy") if name in sys.modules))
sys.argv = ["rag-sourcebias", *sys.argv[2:]]
main()
"""


def plain(code: str, *args: str, extras: list[str] = EXTRAS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, ",".join(extras), *args],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_COLOR": "1", "COLUMNS": "200"},
    )


def test_the_names_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    core = {line.partition(">")[0].replace("-", "_") for line in project["dependencies"]}
    assert core.isdisjoint(EXTRAS)


def test_every_module_but_three_of_training_is_imported() -> None:
    done = plain(EVERY)
    assert done.stdout.splitlines() == [
        "rag_sourcebias.neural.losses MissingExtraError",
        "rag_sourcebias.neural.train MissingExtraError",
        "rag_sourcebias.neural.training_state MissingExtraError",
    ], done.stderr


@pytest.mark.parametrize("args", [("--help",), ("interval", "--sample"), ("monitor", "--help")])
def test_commands_start_and_load_nothing_heavy(args: tuple[str, ...]) -> None:
    done = plain(COMMAND, *args)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == ""


def test_a_dependency_that_lacks_is_noticed() -> None:
    assert plain(COMMAND, "--help", extras=[*EXTRAS, "numpy"]).returncode == 1
