"""What sways a judge: each effect by its literal definition, and what gives no finding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_sourcebias.core.completions import JudgedItems
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.judged import read_audited_items
from rag_sourcebias.judged.judge_audit import BiasColumns, family_of, judge_biases, slope_of

N = 240


def world(seed=0, *, size=1, verbose=0.0, own=0.0, first=0.0):
    """Grades 0 to 3 by people, and a judge that errs and may be swayed by known amounts."""
    rng = np.random.default_rng(seed)
    clusters = np.arange(N) // size
    shared = rng.normal(size=clusters[-1] + 1)[clusters]
    human = rng.integers(0, 4, N).astype(float)
    length = np.exp2(rng.uniform(4, 9, N) + 0.5 * human)  # better answers are longer
    family = rng.integers(0, 3, N)
    noise = 0.4 * rng.normal(size=N) + 0.3 * shared
    judge = 0.5 * human + 1 + noise + verbose * np.log2(length) + own * (family == 0)
    items = JudgedItems(
        ids=tuple(map(str, range(N))),
        human=human,
        judge=judge,
        groups=tuple(np.array(["gpt-3.5", "llama-3", "claude-2"])[family].tolist()),
        clusters=None if size == 1 else tuple(map(str, clusters)),
    )
    columns = BiasColumns(
        length=length,
        swapped=judge + 0.3 * rng.normal(size=N) - first,
        judge_name="gpt-4o",
    )
    return items, columns


def found(items, columns):
    return {bias.kind: bias for bias in judge_biases(items, columns)}


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    ("planted", "kind"),
    [("verbose", "verbosity"), ("own", "self_preference"), ("first", "first_place")],
)
def test_a_planted_bias_is_found_and_no_other(size, planted, kind):
    biases = found(*world(3, size=size, **{planted: 0.4}))
    assert biases[kind].effect.lower < 0.4 < biases[kind].effect.upper
    assert biases[kind].p_adjusted < 0.001
    others = {"verbosity", "self_preference", "first_place"} - {kind}
    assert all(biases[other].p_adjusted > 0.05 for other in others)
    assert all(not biases[other].effect.excludes(0) for other in others)


def test_length_is_not_held_at_equal_value_and_verbosity_is():
    """Better answers are longer and this judge is too mild to weak ones: an error, no verbosity."""
    biases = found(*world(1))
    assert biases["length"].effect.upper < 0
    assert not biases["verbosity"].effect.excludes(0)


def test_slope_is_that_of_least_squares_with_a_mean_for_every_grade():
    items, columns = world(5, verbose=0.1)
    x, y, f = np.log2(columns.length), items.human, items.judge
    design = np.column_stack((x, *(y == g for g in range(4))))
    literal = np.linalg.lstsq(design, f, rcond=None)[0][0]
    slope, _ = slope_of(x, f, y, np.arange(N), level=0.95)
    assert slope.estimate == pytest.approx(literal, abs=1e-10)
    # graded too finely for means: a line through the human values instead
    fine = y + 0.001 * np.arange(N)
    design = np.column_stack((x, np.ones(N), fine))
    literal = np.linalg.lstsq(design, f, rcond=None)[0][0]
    of_line, _ = slope_of(x, f, fine, np.arange(N), level=0.95)
    assert of_line.estimate == pytest.approx(literal, abs=1e-10)
    assert of_line.estimate != pytest.approx(slope.estimate, abs=1e-6)


def test_order_by_its_definition():
    rng = np.random.default_rng(0)
    first = rng.choice([0.0, 0.5, 1.0], 80)
    second = np.where(rng.random(80) < 0.3, 1 - first, first)
    items = JudgedItems(ids=tuple(map(str, range(80))), human=np.full(80, np.nan), judge=first)
    biases = found(items, BiasColumns(swapped=second))
    assert set(biases) == {"first_place", "flips"}  # no human label is needed
    assert biases["first_place"].effect.estimate == pytest.approx((first - second).mean())
    flips = biases["flips"]
    side = {0.0: "B", 0.5: "tie", 1.0: "A"}
    changed = [side[a] != side[b] for a, b in zip(first, second, strict=True)]
    assert flips.effect.estimate == pytest.approx(np.mean(changed))
    assert 0 < flips.effect.lower < flips.effect.upper < 1
    assert flips.p_value is flips.p_adjusted is None
    graded = replace(items, judge=3 * first)
    assert set(found(graded, BiasColumns(swapped=3 * second))) == {"first_place"}  # no verdicts


def test_nothing_is_said_without_columns():
    items, columns = world()
    assert judge_biases(items, BiasColumns()) == ()
    assert set(found(items, BiasColumns(judge_name="gpt-4o"))) == {"self_preference"}
    assert judge_biases(replace(items, groups=None), BiasColumns(judge_name="gpt-4o")) == ()
    for lone in ("human", "gpt-4"):  # nobody of its family, or nobody else
        with pytest.raises(DataError, match=f"of other known families; the groups are {lone}"):
            judge_biases(replace(items, groups=(lone,) * N), BiasColumns(judge_name="gpt-4o"))
    assert judge_biases(items, BiasColumns(length=np.full(N, 7.0))) == ()
    few = items.take(np.arange(9))
    assert judge_biases(few, BiasColumns(length=columns.length[:9])) == ()
    same = found(items, BiasColumns(swapped=items.judge))["first_place"].effect
    assert same.estimate == 0
    assert same.lower < 0 < same.upper  # never asked otherwise is not never swayed


def test_p_values_are_adjusted_over_the_biases():
    biases = judge_biases(*world(2))
    raw = sorted(b.p_value for b in biases)
    assert len(raw) == 4
    assert min(b.p_adjusted for b in biases) == pytest.approx(min(4 * raw[0], 1))


@pytest.mark.parametrize(
    ("name", "family"),
    [("gpt-4o-mini", "OpenAI"), ("ChatGPT", "OpenAI"), ("text-davinci-003", "OpenAI"),
     ("o3-mini", "OpenAI"), ("claude-3-5-sonnet", "Anthropic"), ("google/gemma-2-9b", "Google"),
     ("Meta-Llama-3-8B-Instruct", "Llama"), ("Qwen2.5-7B", "Qwen"), ("Mixtral-8x7B", "Mistral"),
     ("deepseek-r1-distill-llama-8b", None), ("gpt-neox-20b", None),
     ("cerebras-gpt-6.7B", "Cerebras"), ("opt-7b", "OPT"), ("optimised", None),
     ("human", None),
     ("bm25", None), ("photo3", None)],
)  # fmt: skip
def test_families(name, family):
    assert family_of(name) == family


def test_columns_of_a_file(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"k{i},{i % 2},0.5,{'word ' * (i + 1)},{i},0.25,0.75\n" for i in range(12))
    path.write_text(f"id,human,judge,answer,size,judge_swapped,other\n{rows}", encoding="utf-8")
    items, lengths, swapped = read_audited_items(path)
    assert len(items) == 12
    assert lengths.tolist() == [5 * (i + 1) for i in range(12)]
    assert swapped.tolist() == [0.25] * 12
    _, lengths, _ = read_audited_items(path, length="size")
    assert lengths.tolist() == list(range(12))
