"""Tags that documents declare, that their ids hold, or that rules of a YAML file give.

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

import fnmatch
import html
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

from rag_sourcebias.core.codec import sound
from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import (
    DataError,
    check_source,
    meant,
    require_distinct,
    require_name,
    require_one_of,
)
from rag_sourcebias.intake.files import read_text
from rag_sourcebias.tagging.documents import digest

# Provenance fields of a text that is an HTML page.


_PAGE = re.compile(r"\s*<(?:!doctype\s+html|html|head|\?xml)\b", re.IGNORECASE)
_END_OF_HEAD = re.compile(r"</head\s*>|<body\b", re.IGNORECASE)
_META = re.compile(r"<meta\s([^>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_JSON_LD = re.compile(
    r"""<script\b[^>]*type\s*=\s*["']?application/ld\+json["']?[^>]*>(.*?)</script""",
    re.IGNORECASE | re.DOTALL,
)
_MEDIA = {"ImageObject", "VideoObject", "AudioObject", "MediaObject", "Photograph"}


def html_fields(text: str) -> Iterator[tuple[str, str]]:
    """Name and value of the ``<meta>`` tags of the head and of JSON-LD ``digitalSourceType``.

    A text that is no page (it only talks about these fields) gives nothing, and neither does what
    the JSON-LD says of the page's pictures.

    Examples
    --------
    >>> list(html_fields('<html><head><meta name="AI-Disclosure" content="mode=none"></head>'))
    [('AI-Disclosure', 'mode=none')]
    """
    page = text.lstrip("\ufeff")
    if not _PAGE.match(page):
        return
    end = _END_OF_HEAD.search(page)
    # comments are no part of the page
    head = re.sub(r"<!--.*?-->", "", page[: end.start() if end else len(page)], flags=re.DOTALL)
    for tag in _META.findall(head):
        given = {k.casefold(): a or b or c for k, a, b, c in _ATTRIBUTE.findall(tag)}
        name = given.get("name") or given.get("property") or given.get("http-equiv")
        if name and given.get("content"):
            yield name, html.unescape(given["content"])
    for block in _JSON_LD.findall(page):
        yield from (("digitalSourceType", value) for value in _source_types(block))


def _source_types(block: str) -> Iterator[str]:
    try:
        content = json.loads(block)
    except (ValueError, RecursionError):  # a broken page is not our caller's error
        return
    nodes = content if isinstance(content, list) else [content]
    nodes += [n for node in nodes if isinstance(node, dict) for n in _list(node.get("@graph"))]
    for node in nodes:
        if isinstance(node, dict) and not set(map(str, _list(node.get("@type")))) & _MEDIA:
            yield from (v for v in _list(node.get("digitalSourceType")) if isinstance(v, str))


def _list(value: object) -> list[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


# What a document declares about its origin in standard fields, read as it stands.
# IPTC NewsCodes ``digitalSourceType``; ``AI-Disclosure`` as in draft-abaris-aicdh-01. A value that
# is not in the tables below says nothing.


Says = Literal["human", "llm", "mixed", "nothing"]
_TYPES: dict[str, Says] = {
    "trainedalgorithmicmedia": "llm",
    "compositewithtrainedalgorithmicmedia": "mixed",
    "compositesynthetic": "mixed",
    "digitalcreation": "human",
    "humanedits": "human",
    # made or improved by an algorithm that need not be a language model, or not about authorship
    "algorithmicallyenhanced": "nothing",
    "algorithmicmedia": "nothing",
}
_MODES: dict[str, Says] = {
    "none": "human",
    "ai-modified": "mixed",
    "ai-originated": "llm",
    "machine-generated": "llm",
}
_CONTAINERS = ("headers", "http_headers", "response_headers", "iptc", "xmp", "provenance", "meta")
_PARAMETER = re.compile(r"""([A-Za-z][\w-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,;"]+))""")


class Declaration(NamedTuple):
    """What one declared field says.

    Parameters
    ----------
    says : {"human", "llm", "mixed", "nothing"}
        ``"mixed"`` is human text changed by a model; ``"nothing"`` a value that names no origin.
    model : str or None
        The model, where the field names one.
    """

    says: Says
    model: str | None = None


def read_declarations(text: str, metadata: Mapping[str, object]) -> Iterator[Declaration]:
    """Every declaration of one document: metadata, then HTML fields."""
    for fields in (metadata, *map(metadata.get, _CONTAINERS)):
        if isinstance(fields, Mapping):
            yield from _of_fields(fields)
    for name, value in html_fields(text):
        yield from _of_fields({name: value})


def _of_fields(fields: Mapping[str, object]) -> Iterator[Declaration]:
    for key, value in fields.items():
        name = _plain(key)
        if name is None or not isinstance(value, str) or not value.strip():
            continue
        if name == "digitalsourcetype":
            yield Declaration(_type(value))
        else:
            given = {k.casefold(): quoted or bare for k, quoted, bare in _PARAMETER.findall(value)}
            yield Declaration(
                says=_MODES.get(given.get("mode", value.strip()).casefold(), "nothing"),
                model=given.get("model", "").strip() or None,
            )


@lru_cache(maxsize=1024)
def _plain(key: object) -> str | None:
    """Field name without namespace, case and separators; None when it is none of ours."""
    name = re.sub(r"[-_ ]", "", re.split(r"[:./]", str(key))[-1]).casefold()
    return name if name in {"digitalsourcetype", "aidisclosure"} else None


def _type(value: str) -> Says:
    term = re.split(r"[/#:]", value.strip().rstrip("/"))[-1].casefold()
    return _TYPES.get(term.removesuffix("digitalsource"), "nothing")


# Tags from provenance that a document declares in standard fields.
# Read are IPTC ``digitalSourceType`` (NewsCodes URI, bare term, or the schema.org form) and the
# ``AI-Disclosure`` field (draft-abaris-aicdh). Nothing is verified and nothing is guessed: a
# declaration that names neither of the two origins gives no source.


#: Source of a text declared as generated where no model is named.
UNNAMED_MODEL = "llm:unnamed"


class ProvenanceTagger:
    """Tag documents by what they declare about themselves.

    Fields are read from the metadata (any spelling of the two names, also under ``headers``,
    ``iptc``, ``xmp``, ``provenance``, ``meta``), and from the head and the JSON-LD of a text that
    is an HTML page. When declarations disagree the source stays unknown. The origin is "provenance"
    even where the source is unknown: the document said something.

    Examples
    --------
    >>> tagger = ProvenanceTagger()
    >>> tagger("d1", "text", {"AI-Disclosure": 'mode=ai-originated, model="gpt-4o"'}).source
    'llm:gpt-4o'
    """

    @property
    def fingerprint(self) -> str:
        """Identity of what is read as a declaration; a release that reads more changes it."""
        return "provenance:1"

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document; None when it declares nothing."""
        found = list(read_declarations(text, metadata))
        if not found:
            return None
        said = {d.says for d in found} - {"nothing"}
        models = {d.model for d in found if d.says == "llm" and d.model}
        source = None
        if said == {"human"}:
            source = "human"
        elif said == {"llm"} and len(models) < 2:
            source = f"llm:{models.pop()}" if models else UNNAMED_MODEL
        return DocTags(source=source, origin="provenance")


# Documents older than the models that could have written them.


_DATES = re.compile(
    r"(dc)?(date|dates|year|timestamp|issued|pubdate)|(date|last|crawl)?(publi(shed|cation)"
    r"|created|creation|updated?|modified|crawled)(at|on|date|year)?"
)
_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?![\d-])")


def read_day(text: str) -> str:
    """Return the last day that a date may mean: a year, a month or a day, as ISO 8601 has it.

    Raises
    ------
    DataError
        If it is none.

    Examples
    --------
    >>> read_day("2022-10"), read_day("2022-10-03T12:00:00Z")
    ('2022-10-31', '2022-10-03')
    """
    found = _DAY.match(text.strip())
    if found is None:
        raise DataError(f"{text!r} is no date; write YYYY, YYYY-MM or YYYY-MM-DD")
    year, month, day = found.groups()
    return f"{year}-{month or '12'}-{day or '31'}"


#: Days at which clocks and calendars of programs begin: a date that starts there means none.
_NO_DAYS = (
    "0001-01-01", "1601-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1904-01-01",
    "1969-12-31", "1970-01-01", "1980-01-01",
)  # fmt: skip
_MOST = 0.5  # of the dated documents: the day of a crawl or a default, not of what people wrote
_FEW = 20  # documents of which most may have one date by chance


def _dates(metadata: Mapping[str, object]) -> list[str]:
    """Return what metadata give as dates, but for those that mean none."""
    given = [v for k, v in metadata.items() if _DATES.fullmatch(re.sub(r"[\W_]", "", k).lower())]
    texts = [str(value).strip() for value in given if value not in (None, "")]
    return [text for text in texts if not any(day.startswith(text[:10]) for day in _NO_DAYS)]


def shared_date(documents: Iterable[tuple[str, str, Mapping[str, object]]]) -> tuple[str, int]:
    """Return the date that most documents have, and how many; "" if there is none."""
    counts: Counter[str] = Counter()
    dated = 0
    for _, _, metadata in documents:
        days = {text[:10] for text in _dates(metadata)}
        counts.update(days)
        dated += bool(days)
    day, n = max(counts.items(), key=lambda one: one[1], default=("", 0))
    return (day, n) if n >= _FEW and n > _MOST * dated else ("", 0)


class DateTagger:
    """Tag documents as human whose newest date is before models wrote what people read.

    Parameters
    ----------
    before : str
        Such as ``"2022-11"``, the month of the first widely used chat model.

    Attributes
    ----------
    shared : str
        A date that says nothing, as :func:`shared_date` finds it.

    Notes
    -----
    Dates are read from the top of the metadata (date, year, published_at, created, modified, …),
    as ISO 8601. A document without one, or with one that cannot be read, stays unknown; so does
    one whose dates are those at which clocks begin, such as 1970-01-01.
    """

    def __init__(self, before: str) -> None:
        read_day(before)
        self.before = before.strip()
        self.shared = ""

    @property
    def fingerprint(self) -> str:
        """Identity of what dates say."""
        return f"dates before {self.before}, not {self.shared or 'when clocks begin'}"

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document; None unless all of its dates are old."""
        try:
            days = [read_day(text) for text in _dates(metadata) if text[:10] != self.shared]
        except DataError:
            return None
        if not days or max(days) >= self.before:
            return None
        return DocTags(source="human", origin="provenance")


# Conditions of tag rules: one test on the metadata, the URL, the id or the text of a document.


OPERATORS = ("equals", "in", "regex", "glob", "present")
_Scalar = str | int | float  # a bool is an int
Target = Literal["metadata", "url_host", "id", "text"]
_TARGETS = get_args(Target)
_HOST = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^@/?#]*@)?(\[[^\]]*\]|[^/:?#]+)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One condition; it is checked when it is made.

    Parameters
    ----------
    target : {"metadata", "url_host", "id", "text"}
        What is tested. ``"url_host"`` is the lower-cased host of the document's URL.
    key : str or None
        Metadata key, for ``target="metadata"`` only. ``a.b`` is the key ``"a.b"`` or, where there
        is none, the key ``"b"`` of the mapping under ``"a"``.
    operator : {"equals", "in", "regex", "glob", "present"}
        ``regex`` searches, ``glob`` fits the whole value; both are case-sensitive (``(?i)`` makes
        a regex insensitive). A list in the metadata holds when one of its elements does.
    value : object
        What it is tested against; True or False for ``present``.

    Raises
    ------
    DataError
        For an unknown target or operator, a missing key, a bad regex or a value of a wrong type.
    """

    target: Target
    operator: str
    value: object
    key: str | None = None
    pattern: re.Pattern[str] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        require_one_of("target", self.target, _TARGETS)
        if (self.target == "metadata") != bool(self.key):
            raise DataError(f"key {self.key!r}: a metadata condition names a key, no other does")
        expected: Any = self.value
        require_one_of("operator", self.operator, OPERATORS)
        text = isinstance(expected, str) and expected != ""
        several = isinstance(expected, Collection) and not isinstance(expected, str)
        pattern_given = (text, "a pattern; expected a non-empty text")
        fits, wanted = {
            "regex": pattern_given,
            "glob": pattern_given,
            "present": (isinstance(expected, bool), "true or false"),
            "equals": (isinstance(expected, _Scalar), "one text, number, true or false"),
            "in": (
                several and expected and all(isinstance(one, _Scalar) for one in expected),
                "a list of texts or numbers",
            ),
        }[self.operator]
        named = f"{self.operator}: {expected!r:.200}"
        if not fits:
            raise DataError(f"{named} is not {wanted}")
        if self.operator in ("regex", "glob"):
            pattern = fnmatch.translate(expected) if self.operator == "glob" else expected
            object.__setattr__(self, "pattern", regular_expression(pattern, named=named))

    def _holds(self, value: object) -> re.Match[str] | bool | None:
        if self.operator == "present":
            return (value is not None) is self.value
        if self.pattern is not None:
            if value is None:
                return None
            glob = self.operator == "glob"
            return self.pattern.match(str(value)) if glob else self.pattern.search(str(value))
        expected = self.value if self.operator == "in" else (self.value,)
        # isinstance keeps True from being equal to 1
        return any(
            value == one and isinstance(value, bool) is isinstance(one, bool)
            for one in cast("Collection[object]", expected)
        )

    def match(
        self, doc_id: str, text: str, metadata: Mapping[str, object], url: str | None
    ) -> re.Match[str] | bool | None:
        """Test one document; a regex gives its match, so that its groups can be used."""
        if self.key is not None:
            value: object = metadata.get(self.key)
            if value is None:
                value = metadata
                for part in self.key.split("."):
                    value = value.get(part) if isinstance(value, Mapping) else None
            if isinstance(value, (list, tuple)) and self.operator != "present":
                return next((hit for v in value if (hit := self._holds(v))), None)
            return self._holds(value)
        if self.target == "url_host":
            host = _HOST.match(url.strip()) if url else None
            return self._holds(host[1].casefold() if host else None)
        return self._holds(doc_id if self.target == "id" else text)


def regular_expression(pattern: str, *, named: str) -> re.Pattern[str]:
    """Compile a pattern somebody gave; a bad one is refused in one sentence that begins ``named``.

    Raises
    ------
    DataError
        Also for brackets nested too deep and for counts of repetition that are too large.
    """
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        deep = isinstance(error, RecursionError)
        reason = "its brackets are nested too deep" if deep else str(error)[:200]
        raise DataError(
            f"{named} is not a regular expression: {reason}; "
            "expected the syntax of Python's re module"
        ) from error


# Tags from document ids such as ``d17#llm:gpt-4o``.


#: ``<id>#<source>`` or ``<id>@<source>``; the id before the mark is the pair id.
ID_PATTERN = (
    r"^(?P<pair_id>.+)[#@](?P<source>human|llm:.+?)(?P<chunk>#.*|[/_]\d+|::\d+|-chunk-?\d+)?$"
)
TAG_FIELDS = ("source", "style", "pair_id")
_GROUPS = (*TAG_FIELDS, "model", "chunk")


class IdTagger:
    """Read pair, source and style from document ids.

    Parameters
    ----------
    pattern : str
        Regex searched in the id, with at least one of the named groups ``pair_id``, ``source``,
        ``model`` (the source is then ``llm:<model>``) and ``style``. The default reads
        ``<pair_id>#<source>`` and ``<pair_id>@<source>``, where the source is ``human`` or
        ``llm:<model>``, and what stands behind as the number of a chunk: ``#chunk3``, ``/0``,
        ``_1``. A document with a group ``chunk`` is no version of another, so it has no pair.

    Raises
    ------
    DataError
        For a bad regex, one without these groups or one with both ``source`` and ``model``; when
        tagging, for an id whose source text is no source name.

    Examples
    --------
    >>> tags = IdTagger()("d17#llm:gpt-4o", "", {})
    >>> tags.pair_id, tags.source
    ('d17', 'llm:gpt-4o')
    """

    def __init__(self, pattern: str = ID_PATTERN) -> None:
        self._pattern = regular_expression(pattern, named=f"id pattern {pattern!r:.200}")
        named = set(self._pattern.groupindex)
        if not named or not named <= set(_GROUPS) or {"source", "model"} <= named:
            raise DataError(
                f"id pattern {pattern!r} has the named groups {sorted(named)}; expected some of "
                f"{list(_GROUPS)}, and not both source and model"
            )

    @property
    def fingerprint(self) -> str:
        """Identity of the pattern."""
        return "ids:" + digest(self._pattern.pattern)

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:  # noqa: ARG002
        """Tags of one document, with origin "declared"; None when the pattern does not fit."""
        found = self._pattern.search(doc_id)
        if found is None:
            return None
        groups = found.groupdict()
        given = {name: groups[name] for name in TAG_FIELDS if groups.get(name)}
        if "source" in given:
            check_source(given["source"])
        if groups.get("model"):
            given["source"] = f"llm:{groups['model']}"
        if groups.get("chunk"):
            given.pop("pair_id", None)
        return _declared(given)


def _declared(tags: Mapping[str, str]) -> DocTags | None:
    """Return what a document declares as its tags; None where it declares nothing."""
    if not tags:
        return None
    return DocTags(
        source=tags.get("source"),
        style=tags.get("style"),
        pair_id=tags.get("pair_id"),
        origin="declared" if "source" in tags else None,
    )


# One tag rule: conditions, and what documents that fulfil them are tagged with.


#: Metadata keys that may hold the URL of a document; the first one with a text is used.
_URL_KEYS = ("url", "source", "link")
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
        What to tag, at least one. ``{name}`` stands for a named group of any regex of the rule. A
        field whose group took no part in the match stays unknown.

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
        groups = [
            name
            for condition in self.conditions
            if condition.operator == "regex" and condition.pattern is not None
            for name in condition.pattern.groupindex
        ]
        require_distinct(f"rule {self.name!r}: group", groups)
        for name, template in templates.items():
            for group in PLACEHOLDER.findall(template or ""):
                if group not in groups:
                    raise DataError(
                        f"rule {self.name!r}: {name} {template!r} uses the group {{{group}}}, "
                        f"which no regex has; groups are {sorted(groups)}"
                    )
        if self.source is not None and not PLACEHOLDER.search(self.source):
            check_source(self.source)


# Tags from rules on metadata, URL host, document id and text.


class RuleTagger:
    """Tag documents by ordered rules; for each field the first rule that gives it decides.

    Parameters
    ----------
    rules : sequence of TagRule

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

    def __init__(self, rules: Sequence[TagRule]) -> None:
        names = [rule.name for rule in rules]
        if not names:
            raise DataError("no tag rules; expected at least one")
        require_distinct("rule", names)
        self.rules = tuple(rules)
        self.matched = dict.fromkeys(names, 0)

    @property
    def fingerprint(self) -> str:
        """Identity of the rules in their order; their names do not count."""
        return "rules:" + digest(
            [
                [
                    [getattr(rule, name) for name in TAG_FIELDS],
                    [[c.target, c.key, c.operator, c.value] for c in rule.conditions],
                ]
                for rule in self.rules
            ],
            _URL_KEYS,
        )

    def __call__(self, doc_id: str, text: str, metadata: Mapping[str, object]) -> DocTags | None:
        """Tags of one document, with origin "declared"; None when no rule gives any."""
        urls = (metadata.get(key) for key in _URL_KEYS)
        url = next((url for url in urls if isinstance(url, str) and url), None)
        found: dict[str, str] = {}
        for rule in self.rules:
            missing = [name for name in TAG_FIELDS if getattr(rule, name) and name not in found]
            groups = _groups(rule.conditions, doc_id, text, metadata, url) if missing else None
            if groups is None:
                continue
            before = len(found)
            for name in missing:
                value = _fill(getattr(rule, name), groups)
                if value:
                    found[name] = value if name != "source" else _source(value, rule)
            self.matched[rule.name] += len(found) > before
        return _declared(found)


def _groups(
    conditions: Sequence[Condition],
    doc_id: str,
    text: str,
    metadata: Mapping[str, object],
    url: str | None,
) -> dict[str, str] | None:
    """Regex groups by name, or None when a condition fails."""
    groups: dict[str, str] = {}
    for condition in conditions:
        hit = condition.match(doc_id, text, metadata, url)
        if not hit:
            return None
        if isinstance(hit, re.Match) and condition.operator == "regex":
            groups |= {name: text.strip() for name, text in hit.groupdict("").items()}
    return groups


def _fill(template: str, groups: Mapping[str, str]) -> str | None:
    if not all(groups[name] for name in PLACEHOLDER.findall(template)):
        return None
    return PLACEHOLDER.sub(lambda m: groups[m[1]], template)


def _source(value: str, rule: TagRule) -> str:
    try:
        return check_source(value)
    except DataError as error:
        raise DataError(f"rule {rule.name!r} with source {rule.source!r}: {error}") from error


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
        file, line and rule and what would be accepted.
    """
    content = _content(Path(path))
    listed = _entries(content, ("rules",), required=("rules",), where=f"{path}")["rules"]
    if not isinstance(listed, list) or not listed:
        raise DataError(f"{path}: rules: {listed!r:.200}; expected a list with at least one rule")
    rules = []
    for number, item in enumerate(listed, start=1):
        try:
            rules.append(_rule(item, number))
        except DataError as error:
            line = item.line if isinstance(item, _Entries) else content.line
            raise DataError(f"{path}:{line}: rules[{number}]: {error}") from error
    return tuple(rules)


class _Entries(dict[Any, Any]):
    """A mapping of a YAML file, which knows the line on which it begins."""

    line = 1


def _content(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML in which a key stands once and a date is a text."""

    def entries(loader: Any, node: Any) -> _Entries:  # noqa: ANN401 - of an untyped library
        found = _Entries(loader.construct_mapping(node, deep=True))
        found.line = node.start_mark.line + 1
        if len(found) < len(node.value):
            raise yaml.MarkedYAMLError(problem="a key stands twice", problem_mark=node.start_mark)
        return found

    def text(loader: Any, node: Any) -> str:  # noqa: ANN401, ARG001 - as above
        return str(node.value)

    Loader.add_constructor("tag:yaml.org,2002:map", entries)
    Loader.add_constructor("tag:yaml.org,2002:timestamp", text)
    expected = "a YAML file of tag rules"
    remedy = "correct it"
    with sound(path, expected, remedy=remedy):
        return yaml.load(read_text(path, expected, remedy=remedy), Loader=Loader)


def _entries(
    value: Any,  # noqa: ANN401 - whatever the file holds
    allowed: Sequence[str],
    *,
    where: str,
    required: Sequence[str] = (),
) -> _Entries:
    """Return a mapping that has no other keys than these, and those that it must have."""
    if not isinstance(value, _Entries) or not value:
        raise DataError(
            f"{where}: {value!r:.200}; expected a mapping with keys out of {list(allowed)}"
        )
    for key in value:
        if key not in allowed:
            near = meant(key, allowed)
            raise DataError(f"{where}: unknown key {key!r:.200}; accepted: {list(allowed)}{near}")
    for key in required:
        if key not in value:
            raise DataError(f"{where}: the key {key!r} is missing; found {list(value)}")
    return value


def _rule(item: Any, number: int) -> TagRule:  # noqa: ANN401 - whatever the file holds
    given = _entries(item, ("name", "when", "set"), required=("when", "set"), where="the rule")
    tags = _entries(given["set"], TAG_FIELDS, where="set")
    name = given.get("name", f"rule {number}")
    for key, value in {"name": name, **tags}.items():
        if not isinstance(value, str) or not value:
            raise DataError(f"{key}: {value!r:.200}; expected a text (quote what is no word)")
    conditions = []
    for target, test in _entries(given["when"], _TARGETS, where="when").items():
        if target != "metadata":
            conditions.append(_condition(test, target, None))
            continue
        if not isinstance(test, _Entries) or not test:
            raise DataError(f"metadata: {test!r:.200}; expected a mapping from key to test")
        conditions += [_condition(one, target, str(key)) for key, one in test.items()]
    return TagRule(name=name, conditions=conditions, **tags)


def _condition(test: object, target: Any, key: str | None) -> Condition:  # noqa: ANN401
    """Build a condition from a value (equals), a list (in) or a mapping with one operator."""
    operator = "in" if isinstance(test, list) else "equals"
    where = key or target
    if isinstance(test, _Entries):
        _entries(test, OPERATORS, where=where)
        if len(test) != 1:
            raise DataError(f"{where}: {len(test)} tests {list(test)}; expected exactly one")
        ((operator, test),) = test.items()
    try:
        return Condition(target=target, key=key, operator=operator, value=test)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
