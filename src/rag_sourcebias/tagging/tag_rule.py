"""One tag rule: conditions, and what documents that fulfil them are tagged with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_sourcebias.errors import DataError
from rag_sourcebias.tagging.conditions import Condition
from rag_sourcebias.types.names import require_name
from rag_sourcebias.types.source_names import check_source

__all__ = ["PLACEHOLDER", "TAG_FIELDS", "TagRule"]

TAG_FIELDS = ("source", "style", "pair_id")
#: A group of a regex in a field of a rule.
PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class TagRule:
    """What documents that fulfil all conditions are tagged with.

    Parameters
    ----------
    name : str
        Name under which documents are counted.
    conditions : sequence of Condition
        All must hold.
    source, style, pair_id : str or None
        What to tag, at least one. ``{name}`` stands for a named group of any regex of the rule,
        ``{1}`` for a numbered group where only one regex has groups. A field whose group took no
        part in the match stays unknown.

    Raises
    ------
    DataError
        Without conditions or tags, for a bad source name, control characters or a group that no
        regex has.
    """

    name: str
    conditions: Sequence[Condition]
    source: str | None = None
    style: str | None = None
    pair_id: str | None = None

    def __post_init__(self) -> None:
        if not self.conditions:
            raise DataError(f"rule {self.name!r} has no condition; expected at least one")
        for what, name in (("name", self.name), ("source", self.source), ("style", self.style)):
            require_name(name or "", f"{what} of a rule")
        templates = {name: getattr(self, name) for name in TAG_FIELDS}
        if not any(templates.values()):
            raise DataError(f"rule {self.name!r} tags nothing; expected one of {list(TAG_FIELDS)}")
        known = _known_groups(self)
        for name, template in templates.items():
            for group in PLACEHOLDER.findall(template or ""):
                if group not in known:
                    raise DataError(
                        f"rule {self.name!r}: {name} {template!r} uses the group {{{group}}}, "
                        f"which is not to be had; groups are {sorted(known)} "
                        "(numbers only where one regex alone has groups)"
                    )
        if self.source is not None and not PLACEHOLDER.search(self.source):
            check_source(self.source)


def _known_groups(rule: TagRule) -> set[str]:
    """Names and numbers that the fields of a rule may use."""
    patterns = [
        c.pattern
        for c in rule.conditions
        if c.operator == "regex" and c.pattern is not None and c.pattern.groups
    ]
    names = [name for pattern in patterns for name in pattern.groupindex]
    for name in names:
        if names.count(name) > 1:
            raise DataError(
                f"rule {rule.name!r}: two regexes have a group {name!r}; expected different names"
            )
    numbers = range(1, patterns[0].groups + 1) if len(patterns) == 1 else ()
    return set(names) | {str(n) for n in numbers}
