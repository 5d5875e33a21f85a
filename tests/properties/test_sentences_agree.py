"""What a report says agrees with its numbers: random reports of every kind.

Sentences are read from all blocks of the document, as a reader meets them; the numbers come from
the report. Each rule is also shown a sentence that breaks it. An alarm beside an interval is no
part of a report: the monitor says it, and has tests of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

import answer_reports
import explain_reports
import numpy as np
import pytest
import style_reports
from intervals import normal, similar_p
from judged_reports import items_of
from outputs import document_of
from stored_reports import stored

from rag_sourcebias.answers.data import AnswerConfig
from rag_sourcebias.debias.audit import skew_standing
from rag_sourcebias.debias.data import DebiasConfig, QualityChange, SkewChange
from rag_sourcebias.infer.equivalence import NoninferiorityTest
from rag_sourcebias.judged.audit import judge_items_with_intervals
from rag_sourcebias.judged.data import JudgedConfig
from rag_sourcebias.report import document as d

Rng = np.random.Generator
N_REPORTS = 6


# Reports


def style(rng: Rng) -> Any:
    systems = {
        f"system {i}": style_reports.similarities(
            int(rng.integers(25, 80)),
            rng.normal(0, rng.uniform(0, 0.8), 4),
            seed=int(rng.integers(99)),
        )[:25]
        for i in range(int(rng.integers(1, 7)))
    }
    report = style_reports.style_report(systems)
    measured = stored("style-full").systems[0].quality

    def quality(old: Any) -> Any:
        if old.change is None:
            return old
        found = normal(rng.normal(0, 0.1), rng.uniform(0.01, 0.1))
        p = similar_p(rng, found)
        changes = {"p_value": p, "p_adjusted": min(1.0, 3 * p)}
        return dataclasses.replace(old, mean=0.5 + found.estimate, change=found, **changes)

    return dataclasses.replace(
        report,
        systems=tuple(
            dataclasses.replace(s, quality=tuple(map(quality, measured))) for s in report.systems
        ),
    )


def answers(rng: Rng) -> Any:
    texts = answer_reports.simulated(
        n=int(rng.integers(60, 160)),
        p_correct=rng.uniform(0.6, 0.95),
        seed=int(rng.integers(99)),
        wrong_longer=rng.choice([1.0, 1.5]),
    )
    scores = {
        f"score {i}": answer_reports.score(
            texts,
            slope=rng.choice([0, 0, -0.05, 0.05]),
            own=rng.choice([0, 0, 0.1]),
            gap=rng.uniform(0, 0.3),
            noise=rng.uniform(0.02, 0.3),
            seed=int(rng.integers(99)),
        )
        for i in range(int(rng.integers(1, 4)))
    }
    config = AnswerConfig(resamples=200)
    return answer_reports.measure_answer_bias(scores, texts, config=config, text_statistics=False)


def debias(rng: Rng) -> Any:
    sd, plain = rng.uniform(1, 6), stored("debias-plain")
    base = plain.datasets[0]

    def changed(cutoff: int) -> SkewChange:
        before = normal(rng.normal(0, 12), sd, limit=200)
        after = normal(rng.normal(0, 6), sd, limit=200)
        change = normal(after.estimate - before.estimate, sd)
        p = similar_p(rng, change)
        code, needed = skew_standing(after, DebiasConfig())
        return SkewChange(
            cutoff=cutoff,
            before=before,
            after=after,
            code=code,
            n_needed=needed,
            worse=abs(after.estimate) > abs(before.estimate) + 2 * sd,
            change=change,
            p_value=p,
            p_adjusted=min(1, 2 * p),
        )

    def cost(name: str, cutoff: int) -> QualityChange:
        found = normal(rng.normal(0, 0.01), rng.uniform(0.0005, 0.01))
        relative = 100 * found.estimate / 0.5
        lower = float(relative - 1.645 * (found.upper - found.lower) / 3.92 / 0.005)
        test = NoninferiorityTest(
            quality=name,
            relative_margin=0.01,
            level=0.05,
            change=relative,
            lower=lower,
            p_value=0.01 if lower > -1 else 0.3,
            n_queries=160,
            n_seeds=1,
            n_needed=None if lower > -1 else 900,
        )
        after = 0.5 + found.estimate
        return QualityChange(
            quality=name,
            cutoff=cutoff,
            before=0.5,
            after=after,
            difference=found,
            p_value=similar_p(rng, found),
            test=test,
        )

    def outcome(name: str) -> Any:
        old = base.outcomes[1]
        names = ("human-only", "llm-only", "mixed")
        return dataclasses.replace(
            old,
            scores=dataclasses.replace(old.scores, name=name),
            skew=tuple(map(changed, (1, 3, 5, 10))),
            quality=tuple(cost(q, k) for q in names for k in (5, 10)),
        )

    datasets = tuple(
        dataclasses.replace(
            base,
            data=dataclasses.replace(base.data, name=name),
            outcomes=(
                base.outcomes[0],
                *map(outcome, ("method 1", "method 2")[: rng.integers(1, 3)]),
            ),
        )
        for name in "abcde"[: rng.integers(1, 5)]
    )
    known = rng.integers(0, 3)  # of how many methods it is known what they were fitted on
    methods = tuple(
        dataclasses.replace(m, name=f"method {i}", fitted_on="a" if i <= known else "")
        for i, m in enumerate(stored("debias-full").methods[:2], 1)
    )
    return dataclasses.replace(plain, methods=methods, datasets=datasets, n_tests=24)


def explain(rng: Rng) -> Any:
    sources = [
        explain_reports.explained(
            source,
            n=80,
            seed=int(rng.integers(99)),
            shift=rng.choice([0, 0.2]),
            squeeze=rng.normal(0, 0.1),
            length=rng.normal(0, 0.1),
            score=rng.normal(0, 0.03),
            models=(explain_reports.perplexity(rng, 80, gap=rng.normal(0, 0.1)),),
        )
        for source in ("llm:llama-2", "llm:gpt-4")[: rng.integers(1, 3)]
    ]
    return explain_reports.explain_report(*sources)


def judged(rng: Rng) -> Any:
    n, groups = int(rng.integers(80, 300)), ("one", "two", "three")[: rng.integers(1, 4)]
    k = len(groups)
    truth = rng.normal(3 + 0.3 * np.arange(k), 1, (n, k))
    noise = rng.choice([0.3, 1.0, 2.5, 8.0], k)
    judge = truth + rng.normal(0.2, 0.3, k) + rng.normal(0, 1, (n, k)) * noise
    items = items_of(
        truth.ravel(),
        judge.ravel(),
        n_labeled=int(rng.integers(20, 70)),
        groups=groups * n,
        clusters=tuple(f"q{i // k}" for i in range(k * n)),
    )
    config = JudgedConfig(method=str(rng.choice(["regression", "ppi", "ppi++"])))
    report = judge_items_with_intervals(items, measure="helpfulness", name="random", config=config)

    def another(mean: Any) -> Any:
        """Give labels alone another width: that and what is saved need not agree."""
        alone, factor = mean.labels_alone, rng.uniform(0.7, 1.3)
        ends = (
            alone.estimate + factor * (end - alone.estimate) for end in (alone.lower, alone.upper)
        )
        lower, upper = ends
        return dataclasses.replace(
            mean, labels_alone=dataclasses.replace(alone, lower=lower, upper=upper)
        )

    return dataclasses.replace(report, means=tuple(map(another, report.means)))


KINDS: dict[str, Callable[[Rng], Any]] = {
    f.__name__: f for f in (style, answers, debias, explain, judged)
}


@functools.cache
def report_of(kind: str, seed: int) -> Any:
    return KINDS[kind](np.random.default_rng(seed))


# What a reader meets


@dataclasses.dataclass(frozen=True)
class Said:
    """A text of a report, with whom it is about and what stands before it in its row."""

    place: str
    who: str
    text: str


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, d.Finding):
        yield str(value)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _texts(getattr(value, field.name))


def _read(place: str, block: object) -> Iterator[Said]:
    if isinstance(block, d.Listing):
        for who, text in zip_longest(block.of, block.rows, fillvalue=""):
            yield Said(place, str(who), str(text))
    elif isinstance(block, d.Fold | d.Only):
        for inner in block.blocks:
            yield from _read(place, inner)
    else:
        yield from (Said(place, "", text) for text in _texts(block))


def said(document: Any) -> list[Said]:
    """Return all texts: the row of a statement, an item or a card as one, the rest on its own."""
    found = [Said("headline", "", text) for text in _texts(document.headline)]
    found += [Said("warning", "", str(text)) for text in document.warnings]
    for section in document.sections:
        found += [Said(section.id, "", str(text)) for text in (section.title, section.lead)]
        found += [one for block in section.blocks for one in _read(section.id, block)]
    return [one for one in found if one.text]


def tables(document: Any) -> Iterator[d.Frame]:
    def grids(block: object) -> Iterator[d.Frame]:
        if isinstance(block, d.Table):
            yield block.frame
        for inner in getattr(block, "blocks", ()):
            yield from grids(inner)

    for section in document.sections:
        yield from grids(section)


def value_of(text: str) -> float:
    return float(text.replace("−", "-").replace("+", "").replace(",", ""))


# Rules of any report: of one text


NUMBER = r"[+−-]?\d[\d,]*(?:\.\d+)?"
_ENDS = rf"\[({NUMBER}), ({NUMBER})\]"
_WAYS = (
    r"narrow\w*|widen\w*|wider|cuts?|raises?|lowers?|saves?|costs?|gains?|loses?|"
    r"longer|shorter|higher|lower|larger|smaller|fewer|lost up to"
)


def leans(text: str) -> bool:
    return bool(re.search(r"\blean(s|ed|ing)?\b", text))


def negative_amount(text: str) -> bool:
    """Whether something grows or shrinks by less than nothing."""
    by = rf"\b(?:{_WAYS})\b(?: [a-z]+){{0,5}} by (?:about )?[−-]\d"
    than = rf"(?<!\w)[−-]\d[\d.]*(?:%| \w+)? (?:{_WAYS})\b"
    up_to = r"\b(?:saves?|costs?|lost up to|too high by|too low by)(?: about)? [−-]\d"
    # An interval, or what a number goes to, stands before another verb.
    return any(re.search(found, text) for found in (by, than, up_to))


def wrong_significance(text: str, alpha: float = 0.05) -> bool:
    """Whether a p-value in brackets and the word beside it disagree."""
    for sign, p, word in re.findall(r"adjusted p ([<=]) ([\d.]+)(, not significant)?\)", text):
        small = value_of(p) < alpha or (sign == "<" and value_of(p) <= alpha)
        if small == bool(word):
            return True
    return False


def starred_in_vain(table: d.Frame, alpha: float = 0.05) -> bool:
    """Whether a row has a mark of significance and an adjusted p-value that is none."""
    heads = list(table.titles())
    if "adjusted p" not in heads:
        return False
    marked = False, False
    for row in table.rows():
        p = str(row[heads.index("adjusted p")]).rstrip("*")
        small = p.startswith("<") or (p[:1].isdigit() and value_of(p) < alpha)
        star = any(str(cell).endswith("*") for cell in row)
        marked = marked[0] or star, marked[1] or (star != small)
        if star and not small:
            return True
    return all(marked)


TEXT_RULES = (leans, negative_amount, wrong_significance)


# Rules of a kind: what the sentences claim, against the numbers of the report

Problems = Iterator[str]


def ranked(report: Any, texts: list[Said]) -> Problems:
    """A style stands above or below the original only where the adjusted p says so."""
    alpha = 1 - report.config.confidence_level
    allowed: dict[str, set[tuple[str, str]]] = {}
    for system in report.systems:
        row = next((r for r in system.rows if r.query_style == report.config.original_query), None)
        for c in row.against_original if row else ():
            if c.p_adjusted is not None and c.p_adjusted < alpha:
                way = "above" if c.difference < 0 else "below"
                allowed.setdefault(system.name, set()).add((c.first, way))
    for one in texts:
        for subject, claims in re.findall(
            r"(system \d)?,? ?ranks (.*?)(?:, in places|[.;]|$)", one.text
        ):
            who = subject or one.who
            parts = re.findall(r"((?:style \d|formal|, | and )+) (above|below)", claims)
            named = {
                (style_.removeprefix("style "), way)
                for styles, way in parts
                for style_ in re.findall(r"style \d|formal", styles)
            }
            if who.startswith("system") and not named <= allowed.get(who, set()):
                yield f"{one.place}: {who}: {claims}"


def changed_significantly(report: Any, texts: list[Said]) -> Problems:
    """Quality changes significantly only where the adjusted p says so."""
    alpha = 1 - report.config.confidence_level
    for one in texts:
        for measure, rest in re.findall(r"changes (\S+) significantly by (.*)", one.text):
            ends = re.findall(rf"({NUMBER}) {_ENDS} in ", rest)
            small = [
                q.change
                for s in report.systems
                for q in s.quality
                if q.measure == measure and q.p_adjusted is not None and q.p_adjusted < alpha
            ]
            for value, *_ in ends:
                if not any(abs(100 * i.estimate - value_of(value)) < 0.06 for i in small):
                    yield f"{one.place}: {one.text}"


def spread(report: Any, texts: list[Said]) -> Problems:
    """An adjustment cuts the spread only where it is smaller; one way in all places."""
    for one in texts:
        for found in re.finditer(r"(cuts|widens) the spread of the systems by", one.text):
            scorer = next((s for s in report.scorers if one.who.startswith(s.name)), None)
            if scorer is None:
                continue
            before, after = scorer.raw.spread.unfairness, scorer.adjusted.spread.unfairness
            if (found[1] == "cuts") != (after < before):
                yield f"{one.place}: {one.text}"
    above: dict[str, set[tuple[str, str]]] = {}
    for one in texts:
        claims = re.findall(
            r"answers of (\w+) score [^.;]*?(?:\.\d[^.;]*?)* above those of (\w+)", one.text
        )
        for pair in claims:
            if tuple(reversed(pair)) in above.setdefault(one.who, set()) and one.who:
                yield f"{one.place}: {one.text}"
            above[one.who].add(pair)


def concluded(report: Any, texts: list[Said]) -> Problems:
    """Sources are alike, or one still ranks higher, only where the interval beside it says so."""
    c = report.config
    for one in texts:
        for before, *ends, told in re.findall(
            rf"goes from ({NUMBER}) {_ENDS} to ({NUMBER}) {_ENDS}[^:]*: (.*?)\. NDCG", one.text
        ):
            now, low, high = map(value_of, ends[2:])
            inside = max(abs(low), abs(high)) <= c.tolerance + 0.05
            covers = low - 0.05 <= 0 <= high + 0.05
            favours = re.search(r"favours (human|LLM)", told)
            if (
                ("alike" in told and not inside)
                or (favours and (low <= 0 <= high or (favours[1] == "human") != (now > 0)))
                or ("worse" in told and abs(now) <= abs(value_of(before)))
                or ("cannot tell" in told and not covers)
            ):
                yield f"{one.place}: {one.text}"


def established(report: Any, texts: list[Said]) -> Problems:
    """A difference is told of a source only with an interval that leaves out no difference."""
    for one in texts:
        if one.place != "findings" and not one.place.startswith("source"):
            continue
        ends = [(value_of(low), value_of(high)) for low, high in re.findall(_ENDS, one.text)]
        way = re.search(
            r"versions (?:score|are .*?) (higher|lower|longer|shorter)",
            one.text,
        )
        if "not established" in one.text or not way or not ends:
            continue
        low, high = ends[0]
        up = way[1] in ("higher", "longer")
        if (low <= 0 <= high) or (low > 0) != up:
            yield f"{one.place}: {one.text}"


def called_higher_in_vain(table: d.Frame) -> bool:
    """Whether one system is called higher than another though the interval holds no difference."""
    if "higher" not in table.columns:
        return False
    for row in table.rows():
        cells = dict(zip(table.columns, map(str, row), strict=True))
        low, high = re.findall(_ENDS, cells["95% interval"])[0]
        if (cells["higher"] == "cannot tell") != (value_of(low) <= 0 <= value_of(high)):
            return True
    return False


def helped(report: Any, texts: list[Said]) -> Problems:
    """A judge narrows an interval, or saves labels, only where the interval is narrower."""
    narrower = {
        m.system: m.labels_alone is not None and m.interval.half_width < m.labels_alone.half_width
        for m in report.means
    }
    for one in texts:
        who = [s for s in narrower if s and re.search(rf"\b{s}\b", f"{one.who} {one.text}")]
        if len(who) != 1:
            continue
        if "judge saves" in one.text and not narrower[who[0]]:
            yield f"{one.place}: {one.text}"
        if "judge costs" in one.text and narrower[who[0]]:
            yield f"{one.place}: {one.text}"


def opposite(report: Any, texts: list[Said]) -> Problems:
    """No two places say opposite things of the texts of one source."""
    aspects = {
        "score": r"versions score (?:[\d.]+ )?(higher|lower)",
        "length": r"[\d.]+% (longer|shorter)",
        "perplexity": r"(more|less) predictable",
    }
    for source in report.sources:
        name, ways = source.source.partition(":")[2], dict[str, set[str]]()
        for one in texts:
            for sentence in re.split(r"\. (?=[A-Z])", f"{one.who}. {one.text}"):
                if len(report.sources) == 1 or name in f"{one.who} {sentence}":
                    for aspect, pattern in aspects.items():
                        ways.setdefault(aspect, set()).update(re.findall(pattern, sentence))
        yield from (f"{name}: {aspect}: {way}" for aspect, way in ways.items() if len(way) > 1)


RULES: dict[str, tuple[Callable[[Any, list[Said]], Problems], ...]] = {
    "style": (ranked, changed_significantly),
    "answers": (spread,),
    "debias": (concluded,),
    "explain": (established, opposite),
    "judged": (helped,),
}


def problems(kind: str, report: Any, document: Any) -> list[str]:
    texts = said(document)
    found = [f"{rule.__name__}: {s.text}" for rule in TEXT_RULES for s in texts if rule(s.text)]
    found += [f"marks: {t.rows()}" for t in tables(document) if starred_in_vain(t)]
    found += [f"compared: {t.rows()}" for t in tables(document) if called_higher_in_vain(t)]
    for rule in RULES[kind]:
        found += [f"{rule.__name__}: {text}" for text in rule(report, texts)]
    return found


@pytest.mark.parametrize("seed", range(N_REPORTS))
@pytest.mark.parametrize("kind", KINDS)
def test_sentences_agree_with_numbers(kind: str, seed: int) -> None:
    report = report_of(kind, seed)
    assert problems(kind, report, document_of(report)) == []


# What the rules reject


def spoiled(value: Any, pattern: str, by: str) -> Any:
    """Return blocks with another wording in every text in which a pattern is found."""
    if isinstance(value, str):
        return re.sub(pattern, by, value)
    if isinstance(value, tuple | list):
        return tuple(spoiled(part, pattern, by) for part in value)
    if isinstance(value, Mapping):
        return {key: spoiled(part, pattern, by) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if isinstance(value, d.Pictures):
            return value
        changes = {
            f.name: spoiled(getattr(value, f.name), pattern, by) for f in dataclasses.fields(value)
        }
        return dataclasses.replace(value, **changes)
    return value


@pytest.mark.parametrize(
    ("kind", "rule", "pattern", "by"),
    [
        ("style", "ranked", r"above human text", "below human text"),
        ("style", "ranked", r"ranks style 3 below", "ranks style 3 and formal below"),
        (
            "style",
            "changed_significantly",
            r"nowhere significantly",
            "significantly by −3.1 [−4.0, −2.2] in style 0",
        ),
        ("style", "negative_amount", r"raises it by (\d)", r"raises it by −\1"),
        ("answers", "spread", r"cuts the spread of", "widens the spread of"),
        ("answers", "spread", r"widens the spread of", "cuts the spread of"),
        ("answers", "negative_amount", r"(the spread of the systems by) (\d)", r"\1 −\2"),
        ("debias", "wrong_significance", r", not significant\)", ")"),
        ("debias", "wrong_significance", r"p < 0.001\)", "p < 0.001, not significant)"),
        ("debias", "concluded", r": cannot tell", ": alike within ±5 now"),
        ("debias", "concluded", r"(still|now) favours human", r"\1 favours LLM"),
        ("debias", "concluded", r": (still|now) favours", ": cannot tell"),
        ("debias", "negative_amount", r"lost up to (\d)", r"lost up to −\1"),
        ("explain", "established", r"versions score higher", "versions score lower"),
        ("explain", "established", r"% shorter than", "% longer than"),
        ("explain", "opposite", r"(score [\d.]+) higher", r"\1 lower"),
        ("explain", "opposite", r"(are [\d.]+%) shorter than", r"\1 longer than"),
        ("judged", "helped", r"The judge costs about", "The judge saves at least"),
        ("judged", "compared", r"^cannot tell$", "one"),
    ],
    ids=range(19),
)
def test_a_sentence_that_disagrees_is_found(kind: str, rule: str, pattern: str, by: str) -> None:
    for seed in range(5 * N_REPORTS):
        report = report_of(kind, seed)
        document = document_of(report)
        if any(re.search(pattern, text) for text in _texts_of(document)):
            found = problems(kind, report, spoiled(document, pattern, by))
            if any(text.startswith(rule) for text in found):
                return
    pytest.fail(f"{rule} lets pass, or no report says, {pattern!r}")


def _texts_of(document: Any) -> Iterator[str]:
    yield from (s.text for s in said(document))
    yield from (str(cell) for table in tables(document) for row in table.rows() for cell in row)
