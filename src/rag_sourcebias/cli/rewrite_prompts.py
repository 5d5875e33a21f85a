"""Prompts from the command line: known names, a template, or a YAML file of one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rag_sourcebias.corpora.prompts import (
    REPHRASE,
    REWRITE,
    STYLES,
    RewritePrompt,
    checked_prompts,
)
from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.yaml_file import Place, read_yaml
from rag_sourcebias.tagging.yaml_nodes import entries, kind, scalar

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = ["read_prompts"]

_KNOWN = {prompt.name: prompt for prompt in (REWRITE, *REPHRASE, *STYLES)}
_GROUPS = {"rephrase": REPHRASE, "styles": STYLES}
_NAMED = re.compile(r"(?P<name>[A-Za-z][\w.-]*)=(?P<template>.+)", re.DOTALL)
_FILE_ENDINGS = (".yaml", ".yml")


def read_prompts(texts: list[str]) -> tuple[RewritePrompt, ...]:
    """Read the values of ``--prompts``.

    Each is a list of names (``rewrite``, ``rephrase``, ``styles``, ``rephrase-1`` … ``style-8``),
    a YAML file (``name: template``, or ``name: {template: …, style: …}``) or a template, which
    ``name=`` may precede.

    Raises
    ------
    DataError
        If a name is unknown, a template is not valid, or a name occurs twice.

    Examples
    --------
    >>> [p.name for p in read_prompts(["style-3,rewrite", "short=Shorten: {text}"])]
    ['style-3', 'rewrite', 'short']
    """
    found: list[RewritePrompt] = []
    for text in texts:
        if text.lower().endswith(_FILE_ENDINGS):
            found += _of_file(Path(text))
        elif any(c in text for c in "{}\n") or re.search(r"[^,\s]\s+[^,\s]", text):
            found.append(_template(text, number=len(found) + 1))
        else:
            found += _named(text)
    return checked_prompts(found)


def _named(text: str) -> list[RewritePrompt]:
    found: list[RewritePrompt] = []
    for name in (part.strip() for part in text.split(",") if part.strip()):
        if name in _GROUPS:
            found += _GROUPS[name]
        elif name in _KNOWN:
            found.append(_KNOWN[name])
        else:
            raise DataError(
                f"--prompts: {name!r} is no prompt; there are rewrite, rephrase (rephrase-1 to "
                f"rephrase-{len(REPHRASE)}), styles (style-0 to style-{len(STYLES) - 1}), a .yaml "
                "file, or a template of your own such as 'Shorten this: {text}'"
            )
    return found


def _template(text: str, *, number: int) -> RewritePrompt:
    named = _NAMED.fullmatch(text)
    if named is None:
        return RewritePrompt(name=f"prompt-{number}", template=text)
    return RewritePrompt(name=named["name"], template=named["template"])


def _of_file(file: Path) -> list[RewritePrompt]:
    expected = "a mapping, one 'name: template with {text}' per prompt"
    root = read_yaml(file, expected=expected)
    found = entries(root, Place(file=file, key="the file"))
    return [_of_entry(name, place, node) for name, (place, node) in found.items()]


def _of_entry(name: str, place: Place, node: Node) -> RewritePrompt:
    """Read ``name: template``, or a mapping with a style."""
    fields = {"template": (place, node)}
    if kind(node) == "mapping":
        fields = entries(node, place, allowed=("template", "style"), required=("template",))
    told = {field: scalar(value, where) for field, (where, value) in fields.items()}
    with place.naming(node):
        return RewritePrompt(
            name=name,
            template=str(told["template"]).rstrip("\n"),
            style=str(told["style"]) if "style" in told else None,
        )
