"""Sentences about measured speed. Whether the numbers hold is tested with real clusters."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.speed.sentences import advice, came_out, expected, last_time, speed_up, wire_words
from core.vocabulary.plan import Plan, Wire
from core.vocabulary.plausible import sound, sound_summary
from core.vocabulary.progress import Expectation, Settled, Summary
from core.vocabulary.roles import Role
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of

NAMES = {ANNA: "anna", BEN: "ben", CLEO: "cleo"}
PLAN = plan_of()


def measured(
    alone_s: tuple[float, ...] = (0.1, 0.1),
    step_s: float = 0.06,
    wire_s: float = 0.0132,
    sent: int = 1_200_000,
) -> Expectation:
    return Expectation(
        alone_s=alone_s, step_s=step_s, wire_s=wire_s, wire_bytes=sent, shares=(32,) * len(alone_s)
    )


def said(expectation: Expectation, plan: Plan = PLAN) -> str:
    return expected(expectation, plan, NAMES).what


def test_what_is_expected_is_one_sentence() -> None:
    words = expected(measured(), PLAN, NAMES)
    assert words.what == (
        "Two laptops: about 1.7 times as fast as anna alone; the wire takes 22 % of a step (1.2 MB each way)."
    )
    assert words.fix == ""
    assert expected(measured(), PLAN).what.endswith("(1.2 MB each way)."), "the plan's own names do as well"


def test_the_fastest_is_the_measure_and_the_starters_own_laptop_is_named_too() -> None:
    words = said(measured((0.2, 0.1), 0.07))
    assert words.startswith(
        "Two laptops: about 1.4 times as fast as ben alone and 2.9 times as fast as anna alone;"
    )
    little = said(measured((0.2, 0.1), 0.095))
    assert "only 5 % faster than ben alone, but 2.1 times as fast as anna alone" in little
    worse = said(measured((0.2, 0.1), 0.4))
    assert "only 0.2 times as fast as ben alone and only 0.5 times as fast as anna alone" in worse


def test_laptops_as_good_as_equal_are_compared_with_the_starters() -> None:
    assert "as anna alone;" in said(measured((0.1001, 0.1)))


def test_three_laptops_and_a_starter_that_takes_no_part() -> None:
    three = plan_of((ANNA, BEN, CLEO))
    assert said(measured((0.1, 0.2, 0.3), 0.05), three).startswith(
        "Three laptops: about 2.0 times as fast as anna"
    )
    outside = plan_of((BEN, CLEO), starter=ANNA)
    assert said(measured((0.2, 0.1)), outside).startswith(
        "Two laptops: about 1.7 times as fast as cleo alone;"
    )


def test_each_card_of_a_laptop_is_a_member() -> None:
    cards = plan_of((ANNA,), fixed={ANNA: (Role.CHIEF, Role.WORKER)})
    assert said(measured((0.101, 0.1)), cards).startswith(
        "Two cards: about 1.7 times as fast as one card of anna alone;"
    )
    both = plan_of((ANNA, BEN), fixed={ANNA: (Role.CHIEF, Role.WORKER)})
    three = measured((0.101, 0.1, 0.3), 0.05, 0.001)
    assert said(three, both).startswith("Two laptops: about 2.0 times as fast as one card of anna alone;")
    slow = replace(three, step_s=0.3, wire_s=0.2)
    assert advice(slow, both, NAMES).endswith("Or train on anna alone (--solo).")


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.0901, "about 1.1 times as fast as anna alone"),
        (0.0925, "only 8 % faster than anna alone"),
        (0.1, "no faster than anna alone"),
        (0.105, "5 % slower than anna alone"),
        (0.2, "only 0.5 times as fast as anna alone"),
        (9.0, "less than a tenth as fast as anna alone"),
    ],
)
def test_little_gain_and_losses_are_said_as_they_are(step_s: float, words: str) -> None:
    expectation = measured(step_s=step_s, wire_s=0.0)
    assert words in said(expectation)
    assert bool(advice(expectation, PLAN, NAMES)) == (step_s > 0.1 / 1.1)


@pytest.mark.parametrize(
    ("wire_s", "sent", "words"),
    [
        (0.0, 0, "; the wire takes 0 % of a step."),
        (0.0001, 999, "; the wire takes less than 1 % of a step (999 bytes each way)."),
        (0.03, 340_000, "; the wire takes 50 % of a step (340 KB each way)."),
        (0.03, 999_900, "; the wire takes 50 % of a step (1.0 MB each way)."),
        (9.0, 2_500_000_000, "; the wire takes 100 % of a step (2.5 GB each way)."),
    ],
)
def test_the_wires_part_of_a_step(wire_s: float, sent: int, words: str) -> None:
    assert said(measured(wire_s=wire_s, sent=sent)).endswith(words)


SLOW_WIRE = measured(step_s=0.2, wire_s=0.14, sent=20_000_000)


def test_a_wire_that_takes_too_long_is_helped_by_fewer_bytes_or_a_faster_one() -> None:
    help_ = advice(SLOW_WIRE, PLAN, NAMES)
    assert help_.startswith(
        "What would help: half the bytes (--wire bf16), a cable or a faster network, a larger batch_size."
    )
    assert help_.endswith("Or train on anna alone (--solo).")
    for wire in ("bf16", "fp16", "auto"):
        assert "--wire" not in advice(SLOW_WIRE, replace(PLAN, wire=wire), NAMES)


def test_tiny_steps_are_helped_by_larger_batches() -> None:
    help_ = advice(measured((0.003, 0.003), 0.006, 0.004, 40_000), PLAN, NAMES)
    assert "anna alone does it in 3.0 ms" in help_
    assert "batch_size" in help_ and "steps_per_execution" in help_


def test_beside_a_much_faster_one_the_fast_one_alone_is_proposed() -> None:
    help_ = advice(measured((1.2, 0.1), 0.095, 0.001), PLAN, NAMES)
    assert help_.startswith("ben is 12 times as fast as anna")
    assert help_.endswith("Or train on ben alone (--solo on ben).")


def test_fixed_shares_that_do_not_fit_are_named() -> None:
    uneven = measured((0.3, 0.1), 0.15, 0.001)
    assert "without --share" in advice(uneven, replace(PLAN, balance=False), NAMES)
    assert "--share" not in advice(uneven, PLAN, NAMES)


def test_afterwards_it_is_said_how_far_the_prediction_was_off() -> None:
    summary = Summary(
        expectation=measured(),
        settled=Settled(step_s=0.0637, samples_s=1004.7, wire_s=0.0153, wire_bytes=1_200_000),
    )
    words = came_out(summary, PLAN, NAMES)
    assert words.what == (
        "Expected 1.7 times as fast as anna alone, came out 1.6 (each step 6 % longer than expected). "
        "A step took 64 ms, 1,005 samples/s; the wire took 24 % of a step (1.2 MB each way)."
    )
    assert words.fix == ""
    assert (
        last_time(summary, PLAN, NAMES).what
        == "Last time on these laptops: about 1.6 times as fast as anna alone."
    )


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.0604, "as expected"),
        (0.05, "each step 17 % shorter than expected"),
        (0.9, "each step 15 times as long as expected"),
    ],
)
def test_the_words_for_a_prediction(step_s: float, words: str) -> None:
    summary = Summary(expectation=measured(), settled=Settled(step_s=step_s))
    assert f"({words})" in came_out(summary, PLAN, NAMES).what


def test_what_came_out_worse_is_followed_by_what_would_help() -> None:
    slow = Settled(step_s=0.2, wire_s=0.15, wire_bytes=20_000_000)
    words = came_out(Summary(expectation=measured(), settled=slow), PLAN, NAMES)
    assert "came out 0.5 (each step 3.3 times as long as expected)" in words.what
    assert "--wire bf16" in words.fix
    assert last_time(Summary(expectation=measured(), settled=slow), PLAN, NAMES).fix == words.fix


def test_without_a_measurement_only_the_rate_is_known() -> None:
    assert not came_out(Summary(), PLAN)
    assert not last_time(Summary(), PLAN)
    assert last_time(Summary(samples_s=590.4), PLAN).what == "Last time on these laptops: 590 samples/s."
    alone = plan_of((ANNA,))
    assert last_time(Summary(samples_s=590.4), alone, NAMES).what == "Last time on anna alone: 590 samples/s."
    assert not expected(measured((0.1,)), alone), "one alone is compared with nobody"


def test_runs_are_compared_by_their_speed_up() -> None:
    assert speed_up(Summary()) is None
    assert speed_up(Summary(expectation=measured((0.2, 0.1)), settled=Settled(step_s=0.05))) == 2.0
    assert speed_up(Summary(expectation=measured((0.2, math.nan)), settled=Settled(step_s=0.0))) is None


floats = st.floats(allow_nan=True, allow_infinity=True)
wires: st.SearchStrategy[Wire] = st.sampled_from(["f32", "bf16"])


@given(st.lists(floats, max_size=4), floats, floats, st.integers(-5, 2**63 - 1), st.booleans(), wires)
def test_no_number_breaks_a_sentence(
    alone_s: list[float], step_s: float, wire_s: float, sent: int, balance: bool, wire: Wire
) -> None:
    expectation = Expectation(
        alone_s=tuple(alone_s), step_s=step_s, wire_s=wire_s, wire_bytes=sent, shares=(1,) * len(alone_s)
    )
    plan = replace(PLAN, balance=balance, wire=wire)
    settled = Settled(step_s=step_s, samples_s=wire_s, wire_s=wire_s, wire_bytes=sent)
    summary = Summary(expectation=expectation, settled=settled, samples_s=wire_s)
    for words in (expected(expectation, plan), came_out(summary, plan), last_time(summary, plan)):
        for line in words.lines:
            assert not re.search(r"\b(nan|inf)\b", line)
            assert line.endswith(".")
            assert len(line) < 2_000
    if expected(expectation, plan):
        assert sound(expectation, plan)
        assert all(math.isfinite(each) for each in alone_s)
    wire_words(wire_s, step_s, sent)


@given(
    st.tuples(*[st.floats(1e-4, 10.0)] * 2), st.floats(1e-4, 10.0), st.floats(0.0, 1.0), st.integers(0, 10**9)
)
def test_a_loss_is_never_called_a_gain(
    alone_s: tuple[float, float], step_s: float, part: float, sent: int
) -> None:
    expectation = measured(alone_s, step_s, part * step_s, sent)
    words = expected(expectation, PLAN, NAMES)
    if min(alone_s) < step_s:
        assert "about" not in words.what.split(";")[0].split(", but")[0]
        assert "(--solo" in words.fix
    if min(alone_s) > 1.1001 * step_s:
        assert words.fix == ""


@pytest.mark.parametrize(
    "odd",
    [
        measured((0.1,)),
        measured((0.1, 0.0)),
        measured((0.1, math.nan)),
        measured(step_s=math.inf),
        measured(wire_s=-1.0),
        measured(sent=-1),
        replace(measured(), shares=(0, 0)),
        replace(measured(), shares=(1, 2, 3)),
    ],
)
def test_numbers_that_cannot_be_are_not_sound(odd: Expectation) -> None:
    assert sound(measured(), PLAN)
    assert not sound(odd, PLAN)
    assert not sound_summary(Summary(expectation=odd), PLAN)


@pytest.mark.parametrize(
    "odd",
    [
        Settled(step_s=0.0),
        Settled(step_s=math.nan),
        Settled(step_s=1.0, wire_s=math.inf),
        Settled(step_s=1.0, samples_s=1e300),
        Settled(step_s=1.0, wire_bytes=-1),
        Settled(step_s=1.0, shares={CLEO: 3}),
        Settled(step_s=1.0, shares={ANNA: -3}),
    ],
)
def test_a_summarys_own_numbers_are_looked_at_too(odd: Settled) -> None:
    assert sound_summary(Summary(settled=Settled(step_s=1.0, shares={ANNA: 3})), PLAN)
    assert not sound_summary(Summary(settled=odd), PLAN)


def test_a_members_name_is_only_shown() -> None:
    odd = {ANNA: "an\x1b[1mna\n" * 50}
    words = said(measured()) and expected(measured(), PLAN, odd).what
    assert "\x1b" not in words and "\n" not in words and len(words) < 300
