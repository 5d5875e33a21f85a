"""Tags from rules on metadata, URL host, document id and text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.conditions import Condition
from rag_sourcebias.tagging.fingerprint import digest
from rag_sourcebias.tagging.tag_rule import PLACEHOLDER, TAG_FIELDS, TagRule
from rag_sourcebias.types.documents import DocTags
from rag_sourcebias.types.source_names import check_source

__all__ = ["RuleTagger", "TagRule"]


class RuleTagger:
    """Tag documents by ordered rules; for each field the first rule that gives it decides.

    Parameters
    ----------
    rules : sequence of TagRule
    url_keys : sequence of str
        Metadata keys that may hold the document's URL; the first one with a text is used.

    Attributes
    ----------
    matched : dict of str to int
        For each rule, the number of documents of which it decided at least one field.

    Raises
    ------
    DataError
        If there is no rule or two have the same name.

    Examples
    --------
    >>> bot = Condition(target="metadata", key="author", operator="equals", value="bot")
    >>> tagger = RuleTagger([TagRule(name="bot", conditions=[bot], source="llm:gpt-4o")])
    >>> tagger("d1", "text", {"author": "bot"}).source
    'llm:gpt-4o'
    """

    def __init__(
        self, rules: Sequence[TagRule], *, url_keys: Sequence[str] = ("url", "source", "link")
    ) -> None:
        names = [rule.name for rule in rules]
        if not names:
            raise DataError("no tag rules; expected at least one")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"two tag rules are named {twice!r}; expected different names")
        self.rules = tuple(rules)
        self.url_keys = tuple(url_keys)
        self.matched = dict.fromkeys(names, 0)
        self._plans = tuple(
            (
                rule,
                rule.conditions[0].match,
                tuple((f, t) for f in TAG_FIELDS if (t := getattr(rule, f)) is not None),
            )
            for rule in self.rules
        )

    @property
    def fingerprint(self) -> str:
        """Identity of the rules in their order; their names do not count."""
        rules = [
            [[getattr(rule, name) for name in TAG_FIELDS], [_asked(c) for c in rule.conditions]]
            for rule in self.rules
        ]
        return "rules:" + digest(rules, self.url_keys)

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
        """Tags of one document, with origin "declared"; None when no rule gives any."""
        url = next((u for k in self.url_keys if isinstance(u := metadata.get(k), str) and u), None)
        found: dict[str, str] = {}
        for rule, first, templates in self._plans:
            if found and all(name in found for name, _ in templates):
                continue
            # most rules fail at their first condition: ask it before anything is set up
            hit = first(doc_id, text, metadata, url)
            if not hit:
                continue
            groups = _groups(rule.conditions, hit, (doc_id, text, metadata, url))
            if groups is None:
                continue
            before = len(found)
            for name, template in templates:
                if name not in found and (value := _fill(template, groups)):
                    found[name] = _checked(value, name, rule)
            self.matched[rule.name] += len(found) > before
        if not found:
            return None
        return DocTags(
            source=found.get("source"),
            style=found.get("style"),
            pair_id=found.get("pair_id"),
            origin="declared" if "source" in found else None,
        )


def _asked(condition: Condition) -> list[object]:
    return [condition.target, condition.key, condition.operator, condition.value]


def _groups(
    conditions: Sequence[Condition],
    first: re.Match[str] | bool,
    document: tuple[str, str, Mapping[str, object], str | None],
) -> dict[str, str | None] | None:
    """Regex groups by name and number, or None when a condition after the first fails."""
    groups: dict[str, str | None] = {}
    for number, condition in enumerate(conditions):
        hit = condition.match(*document) if number else first
        if not hit:
            return None
        if isinstance(hit, re.Match) and condition.operator == "regex" and hit.re.groups:
            groups |= hit.groupdict()
            groups |= {str(n): value for n, value in enumerate(hit.groups(), start=1)}
    return groups


def _fill(template: str, groups: Mapping[str, str | None]) -> str | None:
    names = PLACEHOLDER.findall(template)
    if any(not (groups[name] or "").strip() for name in names):
        return None
    return PLACEHOLDER.sub(lambda m: (groups[m[1]] or "").strip(), template) if names else template


def _checked(value: str, name: str, rule: TagRule) -> str:
    if name != "source":
        return value
    try:
        return check_source(value)
    except DataError as error:
        raise DataError(f"rule {rule.name!r} with source {rule.source!r}: {error}") from error
