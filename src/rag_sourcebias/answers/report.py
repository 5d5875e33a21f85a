"""The report on correctness scores: what it says, in the order in which it says it.

Systems are compared on questions that all of them answered correctly. In pictures and bars the
score as it is is orange, the adjusted score blue.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from rag_sourcebias.answers.data import (
    AnswerBias,
    AnswerBiasReport,
    AnswerScorer,
    SystemCorrectness,
)
from rag_sourcebias.answers.evidence import evidence_section
from rag_sourcebias.answers.measure import SMALL
from rag_sourcebias.answers.words import (
    both,
    change_of_spread,
    ends,
    finding_of,
    first,
    headline,
    in_brief,
    in_sds,
    order_sentence,
    percent,
    sentence,
    threshold_sentence,
    unfairness,
    value,
    with_ends,
)
from rag_sourcebias.core.values import Interval
from rag_sourcebias.report import blocks as b
from rag_sourcebias.report import pictures as pic
from rag_sourcebias.report.blocks import (
    MISSING,
    count,
    counted,
    estimate,
    interval,
    level,
    number,
    score,
    settings,
    shorten,
)
from rag_sourcebias.report.text_stats import text_figures, text_key, text_notes, text_table

_SHOWN = 6  # pictures of one kind; more are folded away
_COLUMN = 10  # characters of a column in a terminal
_VERDICTS = ("correct, fail", "wrong, pass")  # what a verdict can get wrong
_SIDES: tuple[pic.Colour, ...] = ("other", "baseline")  # of the score as it is, and adjusted
_KEYS: tuple[pic.Key, ...] = (("score as it is", "other", True), ("adjusted", "baseline", True))
_AUCS: tuple[tuple[str, Callable[[AnswerBias], Interval | None]], ...] = (
    ("AUC", lambda bias: bias.auc),
    ("AUC within systems", lambda bias: bias.auc_within),
)
Drawn: TypeAlias = Sequence[tuple[str, pic.Picture]]  # captions with pictures


def document(report: AnswerBiasReport) -> b.Document:
    """Return everything there is to say about correctness scores."""
    return b.Document(
        kind="Answer style report",
        title=f"Answer style: {report.name}",
        name=report.name,
        first=first(report),
        headline=headline(report),
        facts=tuple(
            (counted(n, what),)
            for n, what in (
                (len(report.question_ids), "answer"),
                (len(report.systems), "system"),
                (len(set(report.question_ids)), "question"),
            )
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(
            found
            for make in (
                _findings,
                evidence_section,
                _means,
                _thresholds,
                _order,
                _auc,
                _correctness,
                _texts,
                _reading,
                _caveats,
                _data,
            )
            if (found := make(report)) is not None
        ),
    )


# What was found


def _findings(report: AnswerBiasReport) -> b.Section:
    found = report.scorers
    biases = [bias for s in found for bias in both(s)]
    lows = [auc.lower for x in biases for auc in (x.auc, x.auc_within) if auc is not None]
    sizes = [
        x.unfairness.upper / x.spread.within_sd
        for x in biases
        if x.unfairness is not None and x.spread.within_sd
    ]
    widest, lowest = 1.03 * max([1e-9, *sizes]), min([0.5, *lows])
    adjusted = " Blue: adjusted." if len(biases) > len(found) else ""
    return b.Section(
        id="findings",
        title="Findings",
        blocks=(
            _effects_grid(report),
            b.Paragraph(
                text="Standard deviations from the mean of the systems, on equally correct "
                "answers.",
                look="note",
                to=b.TERMINAL,
            ),
            b.Cards(
                cards=tuple(_card(s, widest, lowest) for s in found), look="answers", to=b.PAGE
            ),
            b.Statements(
                rows=tuple((s.name, "", sentence(s)) for s in found),
                to=(*b.MARKDOWN, *b.TERMINAL),
            ),
            b.Paragraph(
                text=f"{level(report.config.confidence_level)} intervals. Unfairness is in the "
                "unit of the score, its bars are in standard deviations within systems from 0, so "
                f"that scores compare; those of the AUC run from {number(lowest, digits=2)} to 1. "
                f"Orange, hollow: the score as it is.{adjusted}",
                look="note",
                to=b.PAGE,
            ),
            _scorers_grid(report),
        ),
    )


def _effects_grid(report: AnswerBiasReport) -> b.Grid:
    """Return how far each system's correct answers lie from the mean of all systems."""
    rows = (
        ("", "words", *(number(s.mean_words_correct) for s in report.systems)),
        *(
            (scorer.name, called, *(_effect(bias, s.name) for s in report.systems))
            for scorer in report.scorers
            for called, bias in zip(("as it is", "adjusted"), both(scorer), strict=False)
        ),
    )
    return b.Grid(
        table=b.Table(
            columns=("", "", *(shorten(s.name, _COLUMN - 1) for s in report.systems)),
            rows=rows,
            n_heads=2,
        ),
        caption="",
        width=_COLUMN,
        sides=("", *(side for s in report.scorers for side in _SIDES[: len(both(s))])),
        to=b.TERMINAL,
    )


def _effect(bias: AnswerBias, system: str) -> str:
    return number(
        dict(zip(bias.spread.systems, bias.spread.effects or (), strict=False)).get(system),
        digits=2,
        signed=True,
    )


def _card(scorer: AnswerScorer, widest: float, lowest: float) -> b.Card:
    biases = list(zip(("", ", adjusted"), _SIDES, both(scorer), strict=False))

    def bar(found: Interval, span: tuple[float, float], side: str) -> b.Bar:
        return b.Bar.over(
            (found.lower, found.estimate, found.upper), span, side=side, solid=side == "baseline"
        )

    rows = (
        *(
            b.CardRow(
                name=f"unfairness{tail}",
                value=value(scorer, bias.spread.unfairness),
                ends=ends(scorer, found) or "no interval",
                bar=bar(found, (0.0, widest * sd), side) if found is not None and sd else None,
            )
            for tail, side, bias in biases
            for found, sd in [(bias.unfairness, bias.spread.within_sd)]
        ),
        *[b.CardRow(name="change", value=change_of_spread(scorer), ends="")] * (len(biases) > 1),
        *(
            b.CardRow(
                name=f"{name}{tail}",
                value=number(auc.estimate, digits=3),
                ends=interval(auc, digits=3),
                bar=bar(auc, (lowest, 1.0), side),
            )
            for name, of in _AUCS
            for tail, side, bias in biases
            if (auc := of(bias)) is not None
        ),
    )
    return b.Card(
        name=scorer.name,
        standing=finding_of(scorer).style,
        short=in_brief(scorer),
        text=sentence(scorer, brief=True),
        rows=rows,
    )


def _grid(
    scorers: Sequence[AnswerScorer],
    columns: Sequence[str],
    rows: Iterable[tuple[str, ...]],
    caption: str,
    *,
    n_heads: int = 2,
    to: tuple[b.Output, ...] = b.FILES,
) -> b.Grid:
    """Return a table; of a single score without the first of several heads, which names it.

    Rows may lack their last cells; columns of missing values, such as those of an adjustment that
    was not made, go.
    """
    full = [(*row, *[MISSING] * (len(columns) - len(row))) for row in rows]
    first = 1 if len(scorers) == 1 and n_heads > 1 else 0
    kept = [
        i
        for i in range(first, len(columns))
        if i < n_heads or any(row[i] != MISSING for row in full)
    ]
    return b.Grid(
        table=b.Table(
            columns=tuple(columns[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in full),
            n_heads=n_heads - first,
        ),
        caption=caption,
        to=to,
    )


def _scorers_grid(report: AnswerBiasReport) -> b.Grid:
    def auc(bias: AnswerBias) -> str:
        return number(None if bias.auc is None else bias.auc.estimate, digits=3)

    return _grid(
        report.scorers,
        ("score", "unfairness", "in sd", "ρ with length", "AUC", "adjusted", "change", "AUC"),
        (
            (
                s.name,
                unfairness(s, s.raw),
                in_sds(s.raw, s.raw.spread.unfairness),
                number(s.raw.length_correlation, digits=2, signed=True),
                auc(s.raw),
                *((unfairness(s, a), change_of_spread(s), auc(a)) if (a := s.adjusted) else ()),
            )
            for s in report.scorers
        ),
        "All scores",
        n_heads=1,
        to=b.FILES if len(report.scorers) > 1 else b.MARKDOWN,
    )


def _figures(items: Drawn, *, small: bool = False) -> list[b.Block]:
    shown, more = tuple(items[:_SHOWN]), tuple(items[_SHOWN:])
    folded = (b.Figures(items=more, small=small),)
    return [
        *([b.Figures(items=shown, small=small)] if shown else []),
        *([b.Fold(summary=f"{len(more)} more", blocks=folded, to=b.PAGE)] if more else []),
    ]


def _notes(report: AnswerBiasReport, tell: Callable[[AnswerScorer], str]) -> list[b.Block]:
    """Return what there is to say of each score; of a single one without its name."""
    rows = tuple((s.name, text) for s in report.scorers if (text := tell(s)))
    if len(report.scorers) == 1:
        return [b.Paragraph(text=text, to=b.PAGE) for _, text in rows]
    return [b.Items(rows=rows, to=b.PAGE)] if rows else []


# Equally correct answers


def _means(report: AnswerBiasReport) -> b.Section | None:
    scorers = report.scorers
    if not scorers:
        return None
    words = {s.name: number(s.mean_words_correct) for s in report.systems}
    return b.Section(
        id="means",
        nav="Systems",
        title="Systems on equally correct answers",
        lead="Mean score of each system over the questions that all of them answered correctly, as "
        "distance from the mean of the systems in standard deviations of the scores within a "
        "system. A score of correctness alone would put all systems on the line. Lines are "
        "intervals of one mean; differences between systems are known better, because they are "
        "taken question by question.",
        pictures=" Against length, a slope means that the score pays for short or for long "
        "answers; the adjusted marks should lie level.",
        blocks=(
            *_figures(_means_pictures(report), small=True),
            _grid(
                scorers,
                ("score", "system", "words", "mean score", "sd", "adjusted", "adjusted, sd"),
                (
                    (
                        s.name,
                        system,
                        words.get(system, MISSING),
                        *(
                            cell
                            for bias in both(s)
                            for cell in (
                                with_ends(s, bias.spread.means[place], bias.means[place]),
                                _effect(bias, system),
                            )
                        ),
                    )
                    for s in scorers
                    for place, system in enumerate(s.raw.spread.systems)
                ),
                "Mean score of equally correct answers; sd is the distance from the mean of the "
                "systems",
            ),
            *_differences(report),
        ),
    )


def _means_pictures(report: AnswerBiasReport) -> Drawn:
    drawn = [s for s in report.scorers if len(s.raw.spread.systems) > 1 and _effects(s)]
    reach = 1.2 * max([0.25, *(abs(v) for s in drawn for *_, of in _effects(s) for v in of)])
    words = {s.name: s.mean_words_correct or 1.0 for s in report.systems}
    return [
        *zip((s.name for s in drawn), pic.aligned([_means_picture(s) for s in drawn]), strict=True),
        *((f"{s.name}, against length", _length_picture(s, words, reach)) for s in drawn),
    ]


def _effects(scorer: AnswerScorer) -> list[tuple[AnswerBias, pic.Key, tuple[float, ...]]]:
    """Return means in standard deviations from that of the systems, as it is and adjusted."""
    return [
        (bias, key, bias.spread.effects)
        for bias, key in zip(both(scorer), _KEYS, strict=False)
        if bias.spread.effects is not None
    ]


def _means_picture(scorer: AnswerScorer) -> pic.Intervals:
    def mark(bias: AnswerBias, at: float, found: Interval | None, colour: pic.Colour) -> pic.Mark:
        if found is None or not (sd := bias.spread.within_sd):
            return pic.Mark(at=at, colour=colour)
        below, above = ((end - found.estimate) / sd for end in (found.lower, found.upper))
        return pic.Mark(at=at, ends=(at + below, at + above), colour=colour)

    shown = _effects(scorer)
    return pic.Intervals(
        title=f"Mean score of equally correct answers by system, {scorer.name}",
        rows=tuple(
            pic.Row(
                label=system,
                marks=tuple(
                    mark(bias, effects[i], bias.means[i], colour)
                    for bias, (_, colour, _), effects in shown
                ),
            )
            for i, system in enumerate(scorer.raw.spread.systems)
        ),
        x=pic.Axis(label="standard deviations from the mean of the systems", digits=2),
        guides=(pic.Guide(at=0),),
        keys=tuple(key for _, key, _ in shown),
    )


def _length_picture(scorer: AnswerScorer, words: Mapping[str, float], reach: float) -> pic.Points:
    systems, shown = scorer.raw.spread.systems, _effects(scorer)
    x = tuple(words[system] for system in systems)
    return pic.Points(
        title=f"Score against length by system, {scorer.name}",
        curves=tuple(
            pic.Curve(x=x, y=effects, colour=colour, name=name)
            for _, (name, colour, _), effects in shown
        ),
        x=pic.Axis(label="mean words of correct answers", log=True),
        y=pic.Axis(label="sd from the mean", span=(-reach, reach), digits=2),
        guides=(pic.Guide(at=0, level=True),),
        names=systems,
        joined=len(shown) > 1,
    )


def _differences(report: AnswerBiasReport) -> Sequence[b.Block]:
    rows = []
    for s in report.scorers:
        found = [{(d.first, d.second): d for d in bias.differences} for bias in both(s)]
        rows += [
            (
                s.name,
                *pair,
                *(
                    cell
                    for differences in found
                    if (d := differences.get(pair)) is not None
                    for cell in (
                        f"{value(s, d.difference.estimate, signed=True)} {ends(s, d.difference)}",
                        number(d.effect, digits=2, signed=True),
                    )
                ),
            )
            for pair in found[0]
        ]
    if not rows:
        return ()
    key = (
        f"Each interval holds {level(report.config.confidence_level)} on its own; of many, some "
        "exclude 0 by chance"
    )
    return (
        b.Heading(text="Every pair of systems", to=b.MARKDOWN),
        b.Paragraph(text=f"{key}.", to=b.MARKDOWN),
        b.Fold(
            summary="Every pair of systems",
            blocks=(
                _grid(
                    report.scorers,
                    (
                        "score",
                        "first",
                        "second",
                        "first − second",
                        "sd",
                        "adjusted",
                        "adjusted, sd",
                    ),
                    rows,
                    key,
                    n_heads=3,
                ),
            ),
        ),
    )


# Verdicts, order, right from wrong, human correctness


def _thresholds(report: AnswerBiasReport) -> b.Section | None:
    pictures, cells = [], []
    for s in report.scorers:
        errors = {
            system: (_errors(s.raw, place), _errors(s.adjusted, place))
            for place, system in enumerate(s.raw.verdicts.systems)
        }
        cells += [
            (s.name, system, *map(percent, (before[0], after[0], before[1], after[1])))
            for system, (before, after) in errors.items()
        ]
        rows = tuple(
            pic.Row(
                group=system,
                label=what,
                marks=tuple(
                    pic.Mark(at=100 * share, colour=colour)
                    for share, colour in zip(found, _SIDES, strict=True)
                    if share is not None
                ),
                note="none" if found[0] is None else "",
            )
            for system, sides in errors.items()
            for what, *found in zip(_VERDICTS, *sides, strict=True)
        )
        pictures.append(
            (
                s.name,
                pic.Intervals(
                    title=f"Verdicts that contradict people, by system, {s.name}",
                    rows=rows,
                    x=pic.Axis(label="share of these answers, %", span=(-3, 103)),
                    keys=_KEYS[: len(both(s))],
                    joined="line",
                ),
            )
        )
    if not cells:
        return None
    return b.Section(
        id="thresholds",
        nav="Verdicts",
        title="Verdicts at a threshold",
        lead="An answer counts as correct if its score reaches the threshold. Where such verdicts "
        "contradict people more for one system than for another, its style is rewarded or "
        "punished. A threshold that fits all systems needs both rows of each system alike.",
        blocks=(
            *_notes(report, threshold_sentence),
            *_figures(pictures),
            _grid(
                report.scorers,
                ("score", "system", _VERDICTS[0], "adjusted", _VERDICTS[1], "adjusted"),
                cells,
                "Verdicts that contradict people, as share of the correct and of the wrong answers",
            ),
        ),
    )


def _errors(bias: AnswerBias | None, place: int) -> tuple[float | None, float | None]:
    """Return the share of a system's correct answers that fail and of its wrong ones that pass."""
    right = None if bias is None else bias.verdicts.pass_correct[place]
    wrong = None if bias is None else bias.verdicts.pass_wrong[place]
    return None if right is None else 1 - right, wrong


def _order(report: AnswerBiasReport) -> b.Section | None:
    pictures, rows = [], []
    for s in report.scorers:
        found = [bias.inversions for bias in both(s) if bias.inversions is not None]
        if not found:
            continue
        orders = [found[0].correctness, *(x.mean_scores for x in found)]
        ranks = list(map(_ranks, orders))
        rows += [
            (
                s.name,
                system,
                f"{score(orders[0][i])}%, {ranks[0][i]}",
                *(f"{value(s, x[i])}, {r[i]}" for x, r in zip(orders[1:], ranks[1:], strict=True)),
            )
            for i, system in enumerate(found[0].systems)
        ]
        if found[0].n_pairs:
            # A place of its own for each; ties in the order of the report.
            sequences = [sorted(range(len(x)), key=lambda i: -x[i]) for x in orders]
            pictures.append(
                (
                    s.name,
                    pic.Slopes(
                        title=f"Order of systems by people and by score, {s.name}",
                        orders=("people", "score", "adjusted")[: len(orders)],
                        lines=tuple(
                            (system, tuple(sequence.index(i) + 1 for sequence in sequences))
                            for i, system in enumerate(found[0].systems)
                        ),
                    ),
                )
            )
    if not rows:
        return None
    return b.Section(
        id="order",
        nav="Order",
        title="Order of the systems",
        lead="Who is best, by people and by mean score, over all questions with a verdict and a "
        "score of every system. Dashed orange lines lead to a place that people do not give. "
        "Systems that lie close may change places by chance.",
        blocks=(
            *_notes(report, order_sentence),
            *_figures(pictures),
            _grid(
                report.scorers,
                ("score", "system", "correct, by people", "mean score", "adjusted"),
                rows,
                "Systems by people and by score, with their place",
            ),
        ),
    )


def _ranks(values: tuple[float, ...]) -> tuple[str, ...]:
    """Return the place of each value; equal ones share the better.

    Examples
    --------
    >>> _ranks((0.2, 0.9, 0.9, 0.1))
    ('3rd', '1st', '1st', '4th')
    """
    places = [1 + sum(other > v for other in values) for v in values]
    ends = {1: "st", 2: "nd", 3: "rd"}
    return tuple(
        f"{n}{'th' if n % 100 in (11, 12, 13) else ends.get(n % 10, 'th')}" for n in places
    )


def _auc(report: AnswerBiasReport) -> b.Section | None:
    rows = [
        (s.name, where, *cells)
        for s in report.scorers
        if s.raw.auc is not None
        for where, cells in (
            *(
                (where, [estimate(of(bias), digits=3) for bias in both(s)])
                for where, (_, of) in zip(("all systems", "within systems"), _AUCS, strict=True)
            ),
            *(
                (system, [number(bias.system_aucs.get(system), digits=3) for bias in both(s)])
                for system in s.raw.system_aucs
            ),
        )
    ]
    if not rows:
        return None
    return b.Section(
        id="auc",
        nav="Right from wrong",
        title="Telling right from wrong",
        lead="AUC is the probability that a correct answer scores above a wrong one: 0.5 is "
        "chance, 1 perfect. Over all systems it also moves by putting systems side by side. The "
        "AUC within systems compares answers of one system only: it says whether a score tells "
        "right from wrong.",
        blocks=(
            _grid(
                report.scorers,
                ("score", "system", "AUC", "adjusted"),
                rows,
                "AUC of correct against wrong answers",
            ),
        ),
    )


def _correctness(report: AnswerBiasReport) -> b.Section | None:
    useful = any(c.with_scores is not None for s in report.scorers for c in s.correctness)
    # Where no score helps, every score has the same labels: they are said once.
    scorers = [s for s in (report.scorers if useful else report.scorers[:1]) if s.correctness]
    if not scorers:
        return None
    return b.Section(
        id="correctness",
        nav="Human correctness",
        title="Human correctness from few labels" if useful else "Human correctness",
        lead="The share of answers that people would call correct, from a sample of labels alone "
        "and with the score of all other answers. What the score gets wrong is corrected for each "
        "system on its own, so that style cannot favour one. A score that agrees with people "
        "makes the intervals narrower."
        if useful
        else "The share of answers that people call correct, from all labels there are. No score "
        "can add to them; with labels for some answers only, each score would be used on the "
        "others.",
        blocks=(
            *_figures(
                [
                    (s.name, _correctness_picture(s))
                    for s in scorers
                    if any(c.labels_alone is not None for c in s.correctness)
                ]
            ),
            _grid(
                scorers,
                (
                    "score",
                    "system",
                    "labels",
                    "scored only",
                    "from labels, %",
                    "with the score, %",
                    "interval width",
                    "all labels, %",
                ),
                (
                    (
                        s.name,
                        c.system,
                        count(c.n_labeled),
                        count(c.n_unlabeled or None),
                        estimate(c.labels_alone, scale=100),
                        estimate(c.with_scores, scale=100),
                        _width(c),
                        MISSING if c.truth is None else score(c.truth),
                    )
                    for s in scorers
                    for c in s.correctness
                ),
                "Answers people call correct",
            ),
        ),
    )


def _width(c: SystemCorrectness) -> str:
    """Return how much wider the interval is with the score."""
    alone, helped = c.labels_alone, c.with_scores
    if alone is None or helped is None or not alone.half_width:
        return MISSING
    return percent(helped.half_width / alone.half_width - 1, signed=True)


def _correctness_picture(scorer: AnswerScorer) -> pic.Intervals:
    keys: tuple[pic.Key, ...] = (
        ("labels alone", "even", False),
        ("with the score", "baseline", True),
        ("all labels", "ink", True),
    )

    def marks(c: SystemCorrectness) -> Iterator[pic.Mark]:
        for (_, colour, solid), found in zip(keys, (c.labels_alone, c.with_scores), strict=False):
            if found is not None:
                yield pic.mark(found, colour, scale=100, solid=solid)
        if c.truth is not None:
            yield pic.Mark(at=100 * c.truth, colour="ink")

    rows = tuple(pic.Row(label=c.system, marks=tuple(marks(c))) for c in scorer.correctness)
    drawn = {mark.colour for row in rows for mark in row.marks}
    return pic.Intervals(
        title=f"Human correctness by system from few labels, {scorer.name}",
        rows=rows,
        x=pic.Axis(label="answers people call correct, %"),
        keys=tuple(key for key in keys if key[1] in drawn),
    )


def _texts(report: AnswerBiasReport) -> b.Section | None:
    found = report.text_statistics
    if not found:
        return None
    return b.Section(
        id="text",
        nav="Texts",
        title="The texts",
        lead="How the correct answers of the systems differ before any score sees them.",
        blocks=(
            b.Paragraph(text=text_key(found), to=b.PAGE),
            b.Figures(items=text_figures(found, of="Correct answers")),
            b.Grid(
                table=text_table(found),
                caption="Statistics of the correct answers, against the references",
            ),
        ),
    )


# How to read it, what to doubt, what it was made with


def _reading(report: AnswerBiasReport) -> b.Section:
    rows = (
        (
            True,
            "What is unfairness?",
            "The standard deviation of the systems' mean scores over questions that all of them "
            "answered correctly, in the unit of the score. It is 0 for a score that sees only "
            "correctness. Scores have different ranges, so compare them by the same number in "
            "standard deviations within systems.",
        ),
        (
            True,
            "Why is a difference style?",
            "Because people called all of these answers correct, to the same questions. What is "
            "left is how they are written: length, wording, extra facts, format. If people were "
            "kinder to one system, or “correct” was judged coarsely, that is in it too.",
        ),
        (
            True,
            "When is an effect called small?",
            f"When the systems lie apart by less than {number(SMALL)} standard deviations within "
            "systems. With enough questions even that can be measured.",
        ),
        (
            True,
            "What do the intervals cover?",
            f"With {level(report.config.confidence_level)} confidence the value for all questions "
            "like these, one number at a time, for exactly these systems. The two systems named "
            "are those that lie furthest apart, so with few questions their distance is "
            "overstated.",
        ),
        (
            any(s.adjusted is not None for s in report.scorers),
            "What does the adjustment do?",
            "It learns from correct answers how the score changes with style, such as length, "
            "and subtracts that; each answer is adjusted by a fit that has not seen its "
            "question. It is worth using if the spread falls and the AUC does not. Where one "
            "system alone writes answers of some length, what is its own and what is length "
            "cannot be told apart, and both go.",
        ),
        (
            True,
            "Are differing verdicts all style?",
            "No. Equally correct answers to one question also differ by the chances of wording, "
            "which no adjustment removes, so their share does not fall to 0. What should fall is "
            "the difference between systems.",
        ),
        (
            report.config.threshold is None,
            "Where do the thresholds come from?",
            "Each is the one that separates correct from wrong answers best on these data, "
            "separately for the score as it is and adjusted. On new answers it will do a "
            "little worse.",
        ),
    )
    return b.reading((question, answer) for shown, question, answer in rows if shown)


def _caveats(report: AnswerBiasReport) -> b.Section:
    used = [(s.name, *found) for s in report.scorers for found in _intervals(s)]
    noted = [
        *((s.name, note) for s in report.scorers for note in s.notes),
        *(
            (s.name, f"without {counted(s.n_empty, 'empty answer')}")
            for s in report.systems
            if s.n_empty
        ),
        *(("texts", note) for note in text_notes(report.text_statistics)),
        *((name, note) for name, _, found in used for note in found.notes),
    ]
    return b.caveats(
        b.assumed(
            [
                *((where, found.assumptions) for _, where, found in used),
                *(
                    ("text statistics", s.mean.assumptions)
                    for s in report.text_statistics
                    if s.mean is not None
                ),
            ]
        ),
        dict.fromkeys(row for row in noted if row[1] not in report.warnings),
        warned=bool(report.warnings),
    )


def _intervals(scorer: AnswerScorer) -> Iterator[tuple[str, Interval]]:
    found: tuple[tuple[str, Interval | None], ...] = (
        *(
            row
            for bias in both(scorer)
            for row in (
                ("unfairness", bias.unfairness),
                *(("mean scores", mean) for mean in bias.means),
                *(("differences", d.difference) for d in bias.differences),
                *((name, of(bias)) for name, of in _AUCS),
            )
        ),
        *(
            row
            for c in scorer.correctness
            for row in (
                ("human correctness from labels alone", c.labels_alone),
                ("human correctness with the score", c.with_scores),
            )
        ),
    )
    return ((where, interval_) for where, interval_ in found if interval_ is not None)


def _data(report: AnswerBiasReport) -> b.Section:
    c = report.config
    chosen = "what separates correct from wrong best, per score"
    scores = (
        {
            **s.settings,
            "threshold": value(s, s.raw.threshold),
            **(
                {
                    "threshold of the adjusted score": value(s, s.adjusted.threshold),
                    "adjustment": s.adjustment,
                }
                if s.adjusted is not None
                else {}
            ),
        }
        for s in report.scorers
    )
    data = (
        ("name", report.name),
        ("questions", count(len(set(report.question_ids)))),
        ("systems", count(len(report.systems))),
        ("answers", count(len(report.question_ids))),
        ("answers people judged", count(int(np.count_nonzero(~np.isnan(report.correct))))),
        ("licence", report.license or "not stated"),
        ("attribution", report.attribution or "not stated"),
    )
    audit = (
        ("threshold", chosen if c.threshold is None else f"{c.threshold:g}"),
        ("adjustment", f"yes, {c.folds} folds of questions" if c.adjust else "no"),
        ("ddof of the unfairness", str(c.ddof)),
        ("labels per system", "all there are" if c.labels is None else count(c.labels)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    used = zip((s.name for s in report.scorers), map(settings, scores), strict=True)
    return b.data(
        (
            ("Data", b.Table(columns=("data", ""), rows=data)),
            ("Audit", b.Table(columns=("setting", ""), rows=audit)),
            ("Scores", b.Table(columns=("score", "settings"), rows=tuple(used))),
            ("Environment", b.environment_table(report.environment, report.created)),
        ),
        _systems_grid(report),
    )


def _systems_grid(report: AnswerBiasReport) -> b.Grid:
    return b.Grid(
        table=b.Table(
            columns=(
                "system",
                "answers",
                "correct",
                "wrong",
                "not judged",
                "empty",
                "mean words",
                "of correct ones",
            ),
            rows=tuple(
                (
                    s.name,
                    count(s.n_answers),
                    count(s.n_correct),
                    count(s.n_wrong),
                    count(s.n_answers - s.n_correct - s.n_wrong),
                    count(s.n_empty),
                    number(s.mean_words),
                    number(s.mean_words_correct),
                )
                for s in report.systems
            ),
        ),
        caption="Answers of each system",
    )
