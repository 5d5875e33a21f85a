"""Commands and options of version 0.1 under the names they have now."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple


class _Moved(NamedTuple):
    """What a command is called now, what its options are, and what became of its arguments.

    An option's new name may go before its value (``--retriever app:``); an empty one leaves the
    value as an argument. Arguments are named in turn; the last name stands for all further ones.
    """

    now: str
    options: Mapping[str, str] = {}
    arguments: Sequence[str] = ()


_SYSTEM = {"--baseline": "--baseline-system"}
_ON = {"--judge": "--on", "--method": "--projection"}
_TRAINING = {
    f"--{old}": f"--training {new}="
    for old, new in (
        ("weight", "debias_weight"),
        ("reduction", "reduction"),
        ("scale", "scale"),
        ("hinge-target", "target"),
        ("loss", "loss"),
        ("epochs", "epochs"),
        ("steps", "max_steps"),
        ("batch-size", "batch_size"),
        ("learning-rate", "learning_rate"),
        ("negatives", "hard_negatives"),
        ("max-length", "max_length"),
        ("precision", "precision"),
        ("eval-every", "eval_every"),
        ("checkpoint-every", "checkpoint_every"),
    )
}
_METHODS = {"strength": "project", "offset": "calibrate", "weight": "train"}
_FLAGS = ("--overwrite",)  # of the commands whose arguments are named now
_MOVED = {
    "annotate read": _Moved("annotate"),
    "annotate sheet": _Moved("annotate", {"--other-source": "--source"}),
    "audit answers": _Moved("audit answers", {"--scores": "--judge", "--labels": "--budget"}),
    "audit source": _Moved(
        "audit source", {"--measures": "--measure", "--clusters": "--cluster-file"}
    ),
    "check-pairs": _Moved("check-pairs", {"--sound": "--output"}),
    "datasets": _Moved("start"),
    "debias calibrate": _Moved("debias --method calibrate", _ON),
    "debias compare": _Moved(
        "debias", {**_ON, "--calibration": "--compare"}, ("--encoder", "--compare")
    ),
    "debias project": _Moved("debias --method project", _ON),
    "debias search": _Moved("debias --search", {**_ON, "--over": "--method"}),
    "debias train": _Moved("debias --method train", _ON | _TRAINING),
    "interval": _Moved("interval", _SYSTEM),
    "judge answers": _Moved("judge grade"),
    "judge audit": _Moved("judge audit", {"--anchors": "--output"}),
    "judge drift": _Moved("judge audit", {}, ("--against", "")),
    "judge relevance": _Moved("judge grade"),
    "labels draw": _Moved("labels"),
    "labels interval": _Moved("interval", _SYSTEM),
    "labels plan": _Moved("labels"),
    "monitor forget": _Moved("monitor replay --forget"),
    "monitor probe": _Moved(
        "monitor probe",
        {
            "--ask": "--retriever app:",
            "--id-key": "--id",
            "--other-source": "--source",
            "--points": "--output",
        },
    ),
    "monitor replay": _Moved("monitor replay"),
    "monitor rules": _Moved("monitor serve", {}, ("--alert-rules",)),
    "monitor summary": _Moved("start"),
    "report show": _Moved("start", {"--to": "--report"}),
    "tag fit": _Moved(
        "tag fit",
        {"--out": "--output"}
        | {f"--{n}-column": f"--{n}" for n in ("id", "text", "label", "group")},
    ),
    "tag report": _Moved("start", {"--store": ""}),
}


def current(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return a command line in today's names, and what to say of the old names in it.

    Parameters
    ----------
    args : sequence of str
        Without the name of the program.
    """
    old = next((" ".join(args[:n]) for n in (2, 1) if " ".join(args[:n]) in _MOVED), None)
    if old is None:
        return [*args], []
    moved = _MOVED[old]
    said = [] if old == moved.now else [f"'{old}' is '{moved.now}' now"]
    new = [*moved.now.split(), *_renamed(moved, [*args[len(old.split()) :]], said)]
    if old == "debias search" and "--method" not in new:
        new += ["--method", "project"]
    if old == "labels draw" and not {"-o", "--output"} & {*new}:
        new += ["--output", "sheet.csv"]
    if old.startswith("monitor ") and "--json" in new:  # took no value
        after = new.index("--json") + 1
        if old == "monitor summary" or not new[after:] or new[after].startswith("--"):
            new.insert(after, "-")
            said.append("--json is --json - now")
    return new, [*dict.fromkeys(said)]


def _renamed(moved: _Moved, given: list[str], said: list[str]) -> Iterator[str]:
    """Yield the words after the command, and add what became of options to ``said``."""
    names, name = iter(moved.arguments), ""
    while given:
        word = given.pop(0)
        option, equals, value = word.partition("=")
        if option in moved.options:
            target, _, before = moved.options[option].partition(" ")
            value = value if equals or not given else given.pop(0)
            if option == "--over":
                value = _METHODS.get(value, value)
            yield from filter(None, [target])
            yield before + value
            if target:
                said.append(f"{option} is {target}{' ' * bool(before)}{before} now")
        elif word.startswith("-") or not moved.arguments:
            yield word
            if moved.arguments and not equals and word not in _FLAGS and given:
                yield given.pop(0)
        else:
            name = next(names, name)
            yield from filter(None, [name])
            yield word
