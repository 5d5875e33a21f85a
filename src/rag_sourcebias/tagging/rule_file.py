"""Tag rules from a YAML file; whatever is wrong is named with file, line and key.

::

    rules:
      - name: house bot              # optional
        when:                        # all must hold
          metadata:
            author: bot              # a value: equals; a list: one of
            generator: {regex: '^gpt-(?P<model>.+)$'}
            crawl.agent: {present: true}
          url_host: {glob: '*.example.com'}
          id: {regex: '^(?P<original>.+)-rewrite$'}
          text: {regex: '(?i)as an AI language model'}
        set:
          source: "llm:gpt-{model}"
          style: news
          pair_id: "{original}"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.conditions import OPERATORS, Condition
from rag_sourcebias.tagging.tag_rule import TagRule
from rag_sourcebias.tagging.yaml_file import Place, read_yaml
from rag_sourcebias.tagging.yaml_nodes import entries, items, kind, scalar
from rag_sourcebias.types.source_names import check_source

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = ["read_rules"]


def read_rules(path: str | Path) -> tuple[TagRule, ...]:
    """Read tag rules, in the order of the file.

    Parameters
    ----------
    path : str or Path
        YAML file with the key ``rules``, a list. A rule has ``when`` (conditions on ``metadata``,
        ``url_host``, ``id`` or ``text``, which must all hold), ``set`` (``source``, ``style``,
        ``pair_id``) and perhaps a ``name``, such as::

            rules:
              - when:
                  metadata: {generator: {regex: '^gpt-(?P<model>.+)$'}}
                set: {source: "llm:gpt-{model}", style: news}

    Raises
    ------
    DataError
        If the file cannot be read, is empty or no YAML, or a rule has an unknown or repeated key,
        a value of a wrong type, a bad regex, a bad source name or a group that no regex has; names
        file, line and key and what would be accepted.
    """
    root = read_yaml(Path(path), expected="a mapping with the key 'rules'")
    top = Place(file=Path(path), key="the file")
    found = entries(root, top, allowed=("rules",), required=("rules",))
    place, node = found["rules"]
    rules = [_rule(n, p, number) for number, (p, n) in enumerate(items(node, place), start=1)]
    seen: dict[str, int] = {}
    for rule, (_, item) in zip(rules, items(node, place), strict=True):
        line = item.start_mark.line + 1
        if rule.name in seen:
            raise place.error(
                item, f"the name {rule.name!r} is also that of the rule in line {seen[rule.name]}"
            )
        seen[rule.name] = line
    return tuple(rules)


def _rule(node: Node, place: Place, number: int) -> TagRule:
    found = entries(node, place, allowed=("name", "when", "set"), required=("when", "set"))
    name = f"rule {number}"
    if "name" in found:
        name = str(scalar(found["name"][1], found["name"][0], kinds=(str,)))
    when_place, when = found["when"]
    set_place, chosen = found["set"]
    conditions = _conditions(when, when_place)
    tags: dict[str, str] = {}
    fields = ("source", "style", "pair_id")
    for field, (where, value) in entries(chosen, set_place, allowed=fields).items():
        tags[field] = str(scalar(value, where, kinds=(str,)))
        if field == "source" and "{" not in tags[field]:
            with where.naming(value):
                check_source(tags[field])
    with set_place.naming(chosen):
        return TagRule(
            name=name,
            conditions=conditions,
            source=tags.get("source"),
            style=tags.get("style"),
            pair_id=tags.get("pair_id"),
        )


def _conditions(node: Node, place: Place) -> list[Condition]:
    conditions: list[Condition] = []
    targets = ("metadata", "url_host", "id", "text")
    for target, (where, value) in entries(node, place, allowed=targets).items():
        if target == "metadata":
            for key, (at, test) in entries(value, where).items():
                conditions.append(_condition(test, at, "metadata", key))
        elif target == "url_host":
            conditions.append(_condition(value, where, "url_host", None))
        else:
            conditions.append(_condition(value, where, "id" if target == "id" else "text", None))
    return conditions


def _condition(
    node: Node, place: Place, target: Literal["metadata", "url_host", "id", "text"], key: str | None
) -> Condition:
    """Build a condition from a value (equals), a list (in) or a mapping with one operator."""
    operator, at = "equals", place
    if kind(node) == "sequence":
        operator = "in"
    elif kind(node) == "mapping":
        tests = entries(node, place, allowed=OPERATORS)
        if len(tests) != 1:
            raise place.error(node, f"{len(tests)} tests {list(tests)}; expected exactly one")
        operator, (at, node) = next(iter(tests.items()))
    value: object
    if operator == "in":
        value = [scalar(item, where) for where, item in items(node, at)]
    else:
        value = scalar(node, at)
    with at.naming(node):
        try:
            return Condition(target=target, key=key, operator=operator, value=value)
        except DataError as error:
            # the place already ends with the operator
            raise DataError(str(error).removeprefix(f"{operator}: ")) from error
