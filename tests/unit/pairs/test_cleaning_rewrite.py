"""Finding the rewrite in an answer."""

from __future__ import annotations

import pytest

from rag_sourcebias.pairs.rewriting import clean_rewrite

ORIGINAL = "Wet is what water is, as everybody knows who fell into it."
PLAIN = "Water is wet: everybody who fell into it knows."


@pytest.mark.parametrize(
    ("raw", "steps"),
    [
        (PLAIN, ()),
        (f"  {PLAIN}\n", ()),
        (f"Sure, here's a possible rewrite of the text:\n\n{PLAIN}", ("preamble",)),
        (f"Sure, here’s a possible rewrite of the text: {PLAIN}", ("preamble",)),
        (f"Sure! Here is the rewritten text:\n{PLAIN}", ("preamble",)),
        (f"Certainly, I can help with that! Here's a revised version:\n\n{PLAIN}", ("preamble",)),
        (f"Of course!\n\n{PLAIN}", ("preamble",)),
        (f"**Rewritten text:**\n\n{PLAIN}", ("preamble",)),
        (f"Rewritten version: {PLAIN}", ("preamble",)),
        (f"I've rewritten the text below:\n{PLAIN}", ("preamble",)),
        (f'Here is a paraphrased version:\n\n"{PLAIN}"', ("preamble", "quotes")),
        (f"“{PLAIN}”", ("quotes",)),
        (f"```\n{PLAIN}\n```", ("fence",)),
        (f"Here is the text:\n```text\n{PLAIN}\n```\nHope it helps!", ("fence",)),
        (f"{PLAIN}\n\nLet me know if you'd like any changes!", ("postamble",)),
        (f"{PLAIN}\n\nI hope this helps!", ("postamble",)),
        (f"{PLAIN}\n\nNote: I rewrote the text in a plain tone.", ("postamble",)),
        (
            f"{PLAIN}\n\nI made the following changes to enhance the text:\n\n"
            '- Changed "wet" to "wet" to correct the spelling error.\n- Changed more.\n\nEnjoy.',
            ("postamble",),
        ),
        (f"{PLAIN}\n\n**Changes made:**\n\n1. Shorter.", ("postamble",)),
        (f"{PLAIN}\n\nIn this rewritten version, I kept all facts.", ("postamble",)),
        (f"{PLAIN}\n\nI've kept the facts.\n\nLet me know if it fits.", ("postamble",)),
        (f"<think>The user wants…\n\nok</think>\n{PLAIN}", ("thought",)),
    ],
)
def test_what_the_model_put_around_the_rewrite_is_stripped(
    raw: str, steps: tuple[str, ...]
) -> None:
    assert clean_rewrite(raw, original=ORIGINAL) == (PLAIN, None, steps)


@pytest.mark.parametrize(
    "text",
    [
        "Great Britain is an island. Its text of law is long: very long.",
        "Here are three rivers. A version of the story says: none is long.",
        "Sure-footed goats climb well.",
        "This is a passage through the mountains: narrow and steep.",
        '"A" is a letter, and so is "B"',
        "I can't believe that the team won.",
        "Sorry is the hardest word: few say it.",
        "Summary judgments are rare.",
        "The river rises.\n\nNote that the water is cold.",
        "The coast erodes.\n\nChanges in the sea level are one reason.",
        "I kept bees.\n\nI kept no cats.",
        "Use `sudo` and ```code```, then go on.",
        "I cannot swim. Nobody provides lessons here.",
    ],
)
def test_a_rewrite_that_looks_a_little_like_it_is_kept(text: str) -> None:
    assert clean_rewrite(text, original=ORIGINAL) == (text, None, ())


@pytest.mark.parametrize(
    "text",
    [
        "Here is a summary of the text: water is wet.",
        "I'm sorry, but I can't help you, said the baker.",
        "“Water is wet.”",
        "```\nwater = wet\n```",
        "Water is wet.\n\nLet me know if you fell in.",
        "I like water.\n\nI changed a few words with the ferryman.",
    ],
)
def test_what_the_original_has_itself_is_kept(text: str) -> None:
    assert clean_rewrite(text, original=text) == (text, None, ())


@pytest.mark.parametrize(
    "raw",
    [
        "I'm sorry, but I can't assist with that request.",
        "I’m sorry, I cannot rewrite this text.",
        "I cannot fulfill this request.",
        "I'm unable to rewrite this.",
        "As an AI language model, I do not rewrite such texts.",
        "Sure! Please provide the text you would like me to rewrite.",
        "Could you please provide the passage?",
        "Sorry, but this violates the rules.",
    ],
)
def test_refusals_are_no_rewrites(raw: str) -> None:
    assert clean_rewrite(raw, original=ORIGINAL).problem == "refusal"


@pytest.mark.parametrize(
    ("raw", "finish", "problem"),
    [
        ("Water is", "length", "truncated"),
        ("<think>Let me see", "stop", "truncated"),
        ("", "stop", "empty"),
        ("Sure! Here is the rewritten text:", "stop", "empty"),
        ("Water is wet.", "content_filter", "filtered"),
        ("No.", "refusal", "refusal"),
    ],
)
def test_other_answers_without_a_rewrite(raw: str, finish: str, problem: str) -> None:
    assert clean_rewrite(raw, original=ORIGINAL, finish_reason=finish).problem == problem


@pytest.mark.parametrize("noise", ["\n", " ", " \n", "*", "_ ", "```\n", "<think>", '"'])
def test_a_model_in_a_loop_does_not_hold_up_the_run(noise: str) -> None:
    # patterns that go back over a run of white space again and again would not come to an end here
    for raw in (noise * 50_000, f"Sure{noise * 50_000}.", f"{PLAIN}{noise * 50_000}{PLAIN}"):
        assert len(clean_rewrite(raw, original=raw).text) <= len(raw)
        assert len(clean_rewrite(raw, original=ORIGINAL).text) <= len(raw)
