"""Advice in the words of the terminal and in those of the window."""

from typing import get_args

import pytest
from msgspec.structs import replace

from app.words.advice_words import TERMINAL, WINDOW, advice_words
from core.vocabulary.progress import Advice, Blamed

ADVICE = Advice(
    cause="wire",
    alone="anna",
    here=True,
    fastest="anna",
    slowest="ben",
    fast_s=0.003,
    slow_s=0.036,
    together=0.4,
    narrow=1.05,
    rarely=1.5,
    larger=1.2,
)


def advice_on(cause: Blamed) -> Advice:
    """With the numbers that such advice has."""
    if cause == "wire":
        return ADVICE
    few = replace(ADVICE, cause=cause, narrow=None)
    return few if cause == "steps" else replace(few, rarely=None, larger=None)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("unlike", "anna is 12× as fast as ben, which adds little. Train"),
        (
            "steps",
            "Steps are too short for an exchange in each: anna alone takes 3 ms. Use a larger batch_size "
            "(twice the rows: about 1.2× as fast), or set steps_per_execution. Or meet rarely (--sync rare: "
            "about 1.5× as fast); the result is then not that of one machine. Or train",
        ),
        (
            "wire",
            "Use a cable, a faster network or a larger batch_size (twice the rows: about 1.2× as fast). Or "
            "send half the bytes (--wire bf16: only 5 % faster) or meet rarely (--sync rare: about 1.5× as "
            "fast); the result is then not that of one machine. Or train",
        ),
        ("shares", "Leave out --share, and each laptop gets as many rows as it can compute. Or train"),
        ("load", "Use a larger batch_size, and close other programs on all laptops. Or train"),
    ],
)
def test_the_terminal_names_options(cause: Blamed, words: str) -> None:
    advice = advice_on(cause)
    assert advice_words(advice, TERMINAL) == f"{words} on anna alone (--solo)."
    assert advice_words(replace(advice, here=False), TERMINAL).endswith("(--solo on anna).")


def test_each_choice_has_the_range_of_its_speed() -> None:
    words = advice_words(replace(ADVICE, narrow=0.7, larger=0.8, spread=(0.8, 1.2)), TERMINAL)
    assert "(twice the rows: 1.2× slower, 0.6 to 1.0× its speed)" in words
    assert "(--wire bf16: 1.4× slower, 1.2 to 1.8×)" in words
    assert "(--sync rare: about 1.5× as fast, 1.2 to 1.8×)" in words


@pytest.mark.parametrize("cause", get_args(Blamed))
@pytest.mark.parametrize("here", [True, False])
def test_the_window_names_no_option_of_the_terminal(cause: Blamed, here: bool) -> None:
    assert "--" not in advice_words(replace(ADVICE, cause=cause, here=here), WINDOW)


def test_only_what_is_faster_than_one_laptop_is_advised() -> None:
    words = advice_words(replace(ADVICE, narrow=None), TERMINAL)
    assert (
        "(twice the rows: about 1.2× as fast). Or meet rarely (--sync rare: about 1.5× as fast); the" in words
    )
    nothing = replace(ADVICE, narrow=None, rarely=None, larger=None)
    assert (
        advice_words(nothing, TERMINAL) == "Use a cable or a faster network. Or train on anna alone (--solo)."
    )
    short = "Steps are too short for an exchange in each: anna alone takes 3 ms."
    few = replace(nothing, cause="steps")
    assert advice_words(few, TERMINAL) == f"{short} Train on anna alone (--solo)."
    assert advice_words(replace(few, rarely=1.5), TERMINAL).startswith(f"{short} Meet rarely (--sync rare: ")


@pytest.mark.parametrize("cause", get_args(Blamed))
def test_rare_meetings_are_named_with_their_speed_and_price_whatever_the_cause(cause: Blamed) -> None:
    words = advice_words(replace(advice_on(cause), rarely=1.4), WINDOW)
    assert (
        "meet rarely (Options: on slow networks, meet rarely: about 1.4× as fast); the result is then"
        in words
    )


def test_training_alone_is_not_advised_where_together_is_faster() -> None:
    assert "train on anna alone" not in advice_words(replace(ADVICE, together=1.2), TERMINAL)
