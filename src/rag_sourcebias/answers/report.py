"""The report on correctness scores: what it says, in the order in which it says it.

Systems are compared on questions that all of them answered correctly. In pictures the score as it
is is orange, the adjusted score blue.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from rag_sourcebias.answers.data import AnswerBias, AnswerBiasResults, AnswerScorer
from rag_sourcebias.answers.evidence import evidence_section
from rag_sourcebias.answers.measure import SMALL
from rag_sourcebias.answers.words import (
    both,
    first,
    headline,
    in_sds,
    order_sentence,
    percent,
    sentence,
    threshold_sentence,
    unfairness,
    value,
    with_ends,
)
from rag_sourcebias.core.finding import MISSING, Interval, number
from rag_sourcebias.report import document as d
from rag_sourcebias.report import figures as pic
from rag_sourcebias.report import legacy
from rag_sourcebias.report.document import text_figures, text_frame, text_key, text_notes
from rag_sourcebias.report.legacy import count, counted, estimate, level, score, settings

_KEYS: tuple[pic.Key, ...] = (("score as it is", "other", True), ("adjusted", "baseline", True))
Row = tuple[str, ...]


def document(report: AnswerBiasResults) -> d.Document:
    """Return everything there is to say about correctness scores."""
    sections = (
        _findings(report),
        evidence_section(report),
        _means(report),
        _differences(report),
        _thresholds(report),
        _order(report),
        _auc(report),
        _texts(report),
        _reading(report),
        _caveats(report),
        _data(report),
    )
    return d.Document(
        kind="Answer style report",
        title=f"Answer style: {report.name}",
        name=report.name,
        first=first(report),
        headline=(headline(report),),
        facts=(
            counted(len(report.question_ids), "answer"),
            counted(len(report.systems), "system"),
            counted(len(set(report.question_ids)), "question"),
        ),
        created=report.created,
        cautions="Before you trust a number",
        warnings=report.warnings,
        sections=tuple(section for section in sections if section is not None),
    )


def _findings(report: AnswerBiasResults) -> d.Section:
    rows = []
    for s in report.scorers:
        for name, bias in zip(("as it is", "adjusted"), both(s), strict=False):
            rows.append(
                (
                    s.name,
                    name,
                    unfairness(s, bias),
                    in_sds(bias, bias.spread.unfairness),
                    number(bias.length_correlation, digits=2, signed=True),
                    estimate(bias.auc_within, digits=3),
                )
            )
    columns = ("score", "", "unfairness", "in sd", "ρ with length", "AUC within systems")
    return d.Section(
        id="findings",
        brief=True,
        title="Findings",
        blocks=(
            legacy.listing(tuple((s.name, sentence(s)) for s in report.scorers)),
            d.Table(
                frame=legacy.table(columns=columns, rows=tuple(rows), n_heads=2),
                caption=f"All scores, with {level(report.config.confidence_level)} intervals",
            ),
        ),
    )


def _grid(columns: Row, rows: Iterable[Row], caption: str) -> d.Table:
    """Return a table under two heads; columns of an adjustment that was not made go."""
    full = [(*row, *[MISSING] * (len(columns) - len(row))) for row in rows]
    heads = 2
    kept = [
        at for at in range(len(columns)) if at < heads or any(row[at] != MISSING for row in full)
    ]
    return d.Table(
        frame=legacy.table(
            columns=tuple(columns[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in full),
            n_heads=heads,
        ),
        caption=caption,
    )


def _said(report: AnswerBiasResults, tell: Callable[[AnswerScorer], str]) -> d.Listing:
    rows = tuple((s.name, text) for s in report.scorers if (text := tell(s)))
    return legacy.listing(rows)


# Equally correct answers


def _means(report: AnswerBiasResults) -> d.Section | None:
    if not report.scorers:
        return None
    words = {s.name: number(s.mean_words_correct) for s in report.systems}
    rows = []
    for s in report.scorers:
        for place, system in enumerate(s.raw.spread.systems):
            cells = [s.name, system, words.get(system, MISSING)]
            for bias in both(s):
                cells.append(with_ends(s, bias.spread.means[place], bias.means[place]))
                effects = bias.spread.effects
                effect = None if effects is None else effects[place]
                cells.append(number(effect, digits=2, signed=True))
            rows.append(tuple(cells))
    drawn = [s for s in report.scorers if len(s.raw.spread.systems) > 1 and s.raw.spread.effects]
    pictures = pic.aligned([_means_picture(s) for s in drawn])
    items = tuple(zip((s.name for s in drawn), pictures, strict=True))
    return d.Section(
        id="means",
        nav="Systems",
        title="Systems on equally correct answers",
        lead="Mean score of each system over the questions that all of them answered correctly, "
        "and its distance from the mean of the systems in standard deviations of the scores within "
        "a system. A score of correctness alone would put all systems on the line.",
        blocks=(
            *((d.Pictures(items=items, small=True),) if items else ()),
            _grid(
                ("score", "system", "words", "mean score", "sd", "adjusted", "adjusted, sd"),
                rows,
                "Mean score of equally correct answers; sd is the distance from the mean of the "
                "systems",
            ),
        ),
    )


def _means_picture(scorer: AnswerScorer) -> pic.Intervals:
    """Show means in standard deviations from that of the systems ([W] Fig. 7)."""
    rows = []
    for place, system in enumerate(scorer.raw.spread.systems):
        marks = []
        for bias, (_, colour, _) in zip(both(scorer), _KEYS, strict=False):
            mean, sd, effects = bias.means[place], bias.spread.within_sd, bias.spread.effects
            if effects is None:
                continue
            at, ends = effects[place], None
            if mean is not None and sd:
                ends = (
                    at + (mean.lower - mean.estimate) / sd,
                    at + (mean.upper - mean.estimate) / sd,
                )
            marks.append(pic.Mark(at=at, ends=ends, colour=colour))
        rows.append(pic.Row(label=system, marks=tuple(marks)))
    return pic.Intervals(
        title=f"Mean score of equally correct answers by system, {scorer.name}",
        rows=tuple(rows),
        x=pic.Axis(label="standard deviations from the mean of the systems", digits=2),
        guides=(pic.Guide(at=0),),
        keys=_KEYS[: len(both(scorer))],
    )


def _differences(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        found = [{(pair.first, pair.second): pair for pair in bias.differences} for bias in both(s)]
        for pair in found[0]:
            cells = [s.name, f"{pair[0]} − {pair[1]}"]
            for differences in found:
                if pair in differences:
                    own = differences[pair]
                    apart = own.difference
                    cells.append(with_ends(s, apart.estimate, apart, signed=True))
                    cells.append(number(own.effect, digits=2, signed=True))
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="pairs",
        nav="Pairs",
        title="Every pair of systems",
        lead="Differences of mean scores, question by question. Each interval holds on its own; of "
        "many, some exclude 0 by chance.",
        blocks=(
            _grid(
                ("score", "first − second", "difference", "sd", "adjusted", "adjusted, sd"),
                rows,
                "Differences between systems on equally correct answers",
            ),
        ),
    )


# Verdicts, order, right from wrong


def _thresholds(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        for place, system in enumerate(s.raw.verdicts.systems):
            cells = [s.name, system]
            for bias in both(s):
                right = bias.verdicts.pass_correct[place]
                cells.append(percent(None if right is None else 1 - right))
                cells.append(percent(bias.verdicts.pass_wrong[place]))
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="thresholds",
        brief=True,
        nav="Verdicts",
        title="Verdicts at a threshold",
        lead="An answer counts as correct if its score reaches the threshold. Where such verdicts "
        "contradict people more for one system than for another, its style is rewarded or "
        "punished.",
        blocks=(
            _said(report, threshold_sentence),
            legacy.on_paper(
                _grid(
                    (
                        "score",
                        "system",
                        "correct, fail",
                        "wrong, pass",
                        "adjusted: correct, fail",
                        "wrong, pass",
                    ),
                    rows,
                    "Verdicts that contradict people, as share of the correct and of the wrong "
                    "answers",
                )
            ),
        ),
    )


def _order(report: AnswerBiasResults) -> d.Section | None:
    rows = []
    for s in report.scorers:
        found = [bias.inversions for bias in both(s) if bias.inversions is not None]
        if not found:
            continue
        for place, system in enumerate(found[0].systems):
            cells = [s.name, system, f"{score(found[0].correctness[place])}%"]
            cells += [value(s, order.mean_scores[place]) for order in found]
            rows.append(tuple(cells))
    if not rows:
        return None
    return d.Section(
        id="order",
        brief=True,
        nav="Order",
        title="Order of the systems",
        lead="Who is best, by people and by mean score, over all questions with a verdict and a "
        "score of every system. Systems that lie close may change places by chance.",
        blocks=(
            _said(report, order_sentence),
            legacy.on_paper(
                _grid(
                    ("score", "system", "correct, by people", "mean score", "adjusted"),
                    rows,
                    "Systems by people and by score",
                )
            ),
        ),
    )


def _auc(report: AnswerBiasResults) -> d.Section | None:
    rows: list[Row] = []
    for s in report.scorers:
        if s.raw.auc is None:
            continue
        pooled = (estimate(bias.auc, digits=3) for bias in both(s))
        within = (estimate(bias.auc_within, digits=3) for bias in both(s))
        rows.append((s.name, "all systems", *pooled))
        rows.append((s.name, "within systems", *within))
        for system in s.raw.system_aucs:
            own = (number(bias.system_aucs.get(system), digits=3) for bias in both(s))
            rows.append((s.name, system, *own))
    if not rows:
        return None
    return d.Section(
        id="auc",
        nav="Right from wrong",
        title="Telling right from wrong",
        lead="AUC is the probability that a correct answer scores above a wrong one: 0.5 is "
        "chance, 1 perfect. Over all systems it also moves by putting systems side by side. The "
        "AUC within systems compares answers of one system only: it says whether a score tells "
        "right from wrong.",
        blocks=(
            _grid(
                ("score", "system", "AUC", "adjusted"),
                rows,
                "AUC of correct against wrong answers",
            ),
        ),
    )


def _texts(report: AnswerBiasResults) -> d.Section | None:
    found = report.text_statistics
    if not found:
        return None
    return d.Section(
        id="text",
        nav="Texts",
        title="The texts",
        lead="How the correct answers of the systems differ before any score sees them.",
        note=" ".join(map(str, text_key(found))),
        blocks=(
            d.Pictures(items=text_figures(found, of="Correct answers")),
            d.Table(
                frame=text_frame(found),
                caption="Statistics of the correct answers, against the references",
            ),
        ),
    )


# How to read it, what to doubt, what it was made with


def _reading(report: AnswerBiasResults) -> d.Section:
    rows = [
        (
            "What is unfairness?",
            "The standard deviation of the systems' mean scores over questions that all of them "
            "answered correctly, in the unit of the score. It is 0 for a score that sees only "
            "correctness. Scores have different ranges, so compare them by the same number in "
            "standard deviations within systems.",
        ),
        (
            "Why is a difference style?",
            "Because people called all of these answers correct, to the same questions. What is "
            "left is how they are written: length, wording, extra facts, format. If people were "
            "kinder to one system, or “correct” was judged coarsely, that is in it too.",
        ),
        (
            "When is an effect called small?",
            f"When the systems lie apart by less than {number(SMALL)} standard deviations within "
            "systems. With enough questions even that can be measured.",
        ),
        (
            "What do the intervals cover?",
            f"With {level(report.config.confidence_level)} confidence the value for all questions "
            "like these, one number at a time, for exactly these systems. The two systems named "
            "are those that lie furthest apart, so with few questions their distance is "
            "overstated.",
        ),
    ]
    if report.config.adjust:
        rows.append(
            (
                "What does the adjustment do?",
                "It learns from correct answers how the score changes with length, and subtracts "
                "that; each answer is adjusted by a fit that has not seen its question. It is "
                "worth using if the spread falls and the AUC does not. Where one system alone "
                "writes answers of some length, what is its own and what is length cannot be told "
                "apart, and both go.",
            )
        )
    if report.config.threshold is None:
        rows.append(
            (
                "Where do the thresholds come from?",
                "Each is the one that separates correct from wrong answers best on these data. On "
                "new answers it will do a little worse.",
            )
        )
    return legacy.reading(rows)


def _caveats(report: AnswerBiasResults) -> d.Section:
    noted: list[tuple[str, str]] = []
    made: list[tuple[str, Iterable[object]]] = []
    for s in report.scorers:
        noted += [(s.name, note) for note in s.notes]
        made += [(what, found.assumptions) for what, found in _intervals(s)]
    for system in report.systems:
        if system.n_empty:
            noted.append((system.name, f"without {counted(system.n_empty, 'empty answer')}"))
    noted += [("texts", text) for text in legacy.note_rows(text_notes(report.text_statistics))]
    return legacy.caveats(
        made,
        [row for row in noted if row[1] not in report.warnings],
        warned=bool(report.warnings),
    )


def _intervals(scorer: AnswerScorer) -> Iterator[tuple[str, Interval]]:
    """Return an interval of each kind, for what it assumes."""
    bias: AnswerBias = scorer.raw
    kinds = (
        ("unfairness", bias.unfairness),
        *(("mean scores", mean) for mean in bias.means),
        *(("differences", pair.difference) for pair in bias.differences),
        ("AUC", bias.auc),
        ("AUC within systems", bias.auc_within),
    )
    return ((what, found) for what, found in kinds if found is not None)


def _data(report: AnswerBiasResults) -> d.Section:
    c = report.config
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
        ("threshold", "the best, per score" if c.threshold is None else f"{c.threshold:g}"),
        ("adjustment", f"yes, {c.folds} folds of questions" if c.adjust else "no"),
        ("ddof of the unfairness", str(c.ddof)),
        ("confidence level", level(c.confidence_level)),
        ("resamples", count(c.resamples)),
        ("seed", str(c.seed)),
    )
    scores = []
    for s in report.scorers:
        about = {**s.settings, "threshold": value(s, s.raw.threshold)}
        if s.adjusted is not None:
            about["threshold of the adjusted score"] = value(s, s.adjusted.threshold)
            about["adjustment"] = s.adjustment
        scores.append((s.name, settings(about)))
    return legacy.data(
        (
            ("Data", legacy.table(columns=("data", ""), rows=data)),
            ("Audit", legacy.table(columns=("setting", ""), rows=audit)),
            ("Scores", legacy.table(columns=("score", "settings"), rows=tuple(scores))),
            ("Environment", legacy.environment_table(report.environment, report.created)),
        ),
        _systems_grid(report),
    )


def _systems_grid(report: AnswerBiasResults) -> d.Table:
    rows = tuple(
        (
            s.name,
            count(s.n_answers),
            count(s.n_correct),
            count(s.n_wrong),
            count(s.n_empty),
            number(s.mean_words),
            number(s.mean_words_correct),
        )
        for s in report.systems
    )
    columns = (
        "system", "answers", "correct", "wrong", "empty", "mean words", "of correct ones",
    )  # fmt: skip
    return d.Table(frame=legacy.table(columns=columns, rows=rows), caption="Answers of each system")
