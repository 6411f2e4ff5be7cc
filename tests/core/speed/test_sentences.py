"""Sentences about measured speed. Real-cluster tests check the numbers."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.speed.sentences import (
    achieved,
    advice,
    expected,
    last_time,
    speed_up,
    times,
    wire_words,
)
from core.vocabulary.options import Wire
from core.vocabulary.plan import Plan, Role
from core.vocabulary.plausible import sound, sound_summary
from core.vocabulary.progress import Expectation, Settled, Summary
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


def test_the_expectation_is_one_sentence() -> None:
    words = expected(measured(), PLAN, NAMES)
    assert words.what == (
        "Two laptops: about 1.7× as fast as anna alone; "
        "22 % of each step is network transfer (1.2 MB each way)."
    )
    assert words.advice is None
    assert expected(measured(), PLAN).what.endswith("(1.2 MB each way)."), "the plan's own names do as well"


@pytest.mark.parametrize(
    ("step_s", "range_s", "words"),
    [
        (0.06, (0.055, 0.07), "about 1.7× as fast as anna alone (1.4 to 1.8×); 22 % of"),
        (0.06, (0.0598, 0.0602), "about 1.7× as fast as anna alone; 22 % of"),
        (0.2, (0.15, 0.25), "2.0× slower than anna alone (1.5 to 2.5×); 7 % of"),
        (0.095, (0.08, 0.12), "only 5 % faster than anna alone (0.8 to 1.2× its speed); 14 % of"),
        (0.12, (0.1, 0.13), "1.2× slower than anna alone (0.8 to 1.0× its speed); 11 % of"),
    ],
)
def test_the_expected_speed_is_a_range_where_measurements_differ(
    step_s: float, range_s: tuple[float, float], words: str
) -> None:
    assert words in said(replace(measured(step_s=step_s), step_range_s=range_s))


def test_every_baseline_has_the_range() -> None:
    words = said(replace(measured((0.2, 0.1), 0.07), step_range_s=(0.06, 0.08)))
    assert (
        "about 1.4× as fast as ben alone (1.3 to 1.7×) and 2.9× as fast as anna alone (2.5 to 3.3×);" in words
    )


def test_memory_for_audits_is_mentioned_where_it_is_much() -> None:
    assert said(replace(measured(), audit_bytes=1_240_000_000)) == (
        f"{said(measured())} Comparing a step with one laptop's needs up to 1.2 GB more memory "
        "on one of them."
    )
    assert said(replace(measured(), audit_bytes=99_000_000)) == said(measured())


def test_the_fastest_is_the_measure_and_the_starters_own_laptop_is_named_too() -> None:
    words = said(measured((0.2, 0.1), 0.07))
    assert words.startswith("Two laptops: about 1.4× as fast as ben alone and 2.9× as fast as anna alone;")
    little = said(measured((0.2, 0.1), 0.095))
    assert "only 5 % faster than ben alone, but 2.1× as fast as anna alone" in little
    worse = said(measured((0.2, 0.1), 0.4))
    assert "4.0× slower than ben alone and 2.0× slower than anna alone" in worse


def test_laptops_as_good_as_equal_are_compared_with_the_starters() -> None:
    assert "as anna alone;" in said(measured((0.1001, 0.1)))


def test_three_laptops_and_a_starter_that_takes_no_part() -> None:
    three = plan_of((ANNA, BEN, CLEO))
    assert said(measured((0.1, 0.2, 0.3), 0.05), three).startswith(
        "Three laptops: about 2.0× as fast as anna"
    )
    outside = plan_of((BEN, CLEO), starter=ANNA)
    assert said(measured((0.2, 0.1)), outside).startswith("Two laptops: about 1.7× as fast as cleo alone;")


def test_each_card_of_a_laptop_is_a_member() -> None:
    cards = plan_of((ANNA,), fixed={ANNA: (Role.CHIEF, Role.WORKER)})
    assert said(measured((0.101, 0.1)), cards).startswith(
        "Two cards: about 1.7× as fast as one card of anna alone;"
    )
    both = plan_of((ANNA, BEN), fixed={ANNA: (Role.CHIEF, Role.WORKER)})
    three = measured((0.101, 0.1, 0.3), 0.05, 0.001)
    assert said(three, both).startswith("Two laptops: about 2.0× as fast as one card of anna alone;")
    slow = replace(three, step_s=0.3, wire_s=0.2)
    helps = advice(slow, both, NAMES)
    assert helps is not None and (helps.alone, helps.here, helps.fastest) == (
        "anna",
        True,
        "one card of anna",
    )


@pytest.mark.parametrize(
    ("step_s", "words"),
    [
        (0.0901, "about 1.1× as fast as anna alone"),
        (0.0925, "only 8 % faster than anna alone"),
        (0.0994, "only 1 % faster than anna alone"),
        (0.0996, "no faster than anna alone"),
        (0.1, "no faster than anna alone"),
        (0.1004, "no faster than anna alone"),
        (0.1006, "1 % slower than anna alone"),
        (0.11, "9 % slower than anna alone"),
        (0.112, "1.1× slower than anna alone"),
        (2.1, "21× slower than anna alone"),
        (9.0, "90× slower than anna alone"),
    ],
)
def test_little_gain_and_losses_are_stated_plainly(step_s: float, words: str) -> None:
    expectation = measured(step_s=step_s, wire_s=0.0)
    assert words in said(expectation)
    assert (advice(expectation, PLAN, NAMES) is not None) == (step_s > 0.1 / 1.1)


@pytest.mark.parametrize(
    ("wire_s", "sent", "words"),
    [
        (0.0, 0, "; 0 % of each step is network transfer."),
        (0.0001, 999, "; less than 1 % of each step is network transfer (999 bytes each way)."),
        (0.03, 340_000, "; 50 % of each step is network transfer (340 kB each way)."),
        (0.03, 999_900, "; 50 % of each step is network transfer (1 MB each way)."),
        (9.0, 2_500_000_000, "; 100 % of each step is network transfer (2.5 GB each way)."),
    ],
)
def test_the_wires_part_of_a_step(wire_s: float, sent: int, words: str) -> None:
    assert said(measured(wire_s=wire_s, sent=sent)).endswith(words)


SLOW_WIRE = measured(step_s=0.2, wire_s=0.14, sent=20_000_000)


def blamed(expectation: Expectation, plan: Plan = PLAN) -> str:
    helps = advice(expectation, plan, NAMES)
    return helps.cause if helps is not None else ""


def test_a_wire_that_takes_too_long_is_to_blame() -> None:
    assert blamed(SLOW_WIRE) == "wire"
    for wire in ("bf16", "fp16", "auto"):
        helps = advice(SLOW_WIRE, replace(PLAN, wire=wire), NAMES)
        assert helps is not None and helps.narrow is None


def test_a_slow_wire_has_its_numbers_for_each_choice() -> None:
    """0.06 s of computing, and 0.14 s on the wire; a meeting takes a tenth of the time."""
    helps = advice(SLOW_WIRE, PLAN, NAMES)
    assert helps is not None
    assert helps.together == pytest.approx(0.5)
    assert helps.narrow is helps.larger is None, "one laptop alone stays faster"
    assert helps.rarely == pytest.approx(0.1 / (0.06 * 1.1))
    rare = advice(SLOW_WIRE, replace(PLAN, sync="rare"), NAMES)
    assert rare is not None and rare.rarely is None


def test_choices_on_a_slow_wire_are_compared_with_one_laptop() -> None:
    helps = advice(measured(step_s=0.12, wire_s=0.06, sent=20_000_000), PLAN, NAMES)
    assert helps is not None
    assert helps.narrow == pytest.approx(0.1 / 0.09)
    assert helps.larger == pytest.approx(0.2 / 0.18)


def test_rare_meetings_are_offered_where_they_gain_and_exact_steps_gain_little() -> None:
    little = measured(step_s=0.085, wire_s=0.03)
    helps = advice(little, PLAN, NAMES)
    assert helps is not None and helps.rarely is not None
    assert helps.rarely > 1.3 > helps.together > 1.1
    assert advice(measured(step_s=0.085, wire_s=0.005), PLAN, NAMES) is None, "the wire is not to blame"
    assert advice(measured(step_s=0.076, wire_s=0.03), PLAN, NAMES) is None, "1.3 times as fast is a gain"
    assert advice(little, replace(PLAN, sync="rare"), NAMES) is None


def test_tiny_steps_are_to_blame_where_they_send_little() -> None:
    helps = advice(measured((0.003, 0.003), 0.006, 0.004, 40_000), PLAN, NAMES)
    assert helps is not None
    assert (helps.cause, helps.fastest, helps.fast_s) == ("steps", "anna", 0.003)
    assert blamed(measured((0.019, 0.019), 0.03, 0.01, 400_000)) == "steps"
    for alone_s, sent in ((0.03, 400_000), (0.019, 600_000)):
        assert blamed(measured((alone_s, alone_s), 2 * alone_s, alone_s, sent)) == "wire"


def test_rare_meetings_are_offered_for_small_steps_too() -> None:
    """As handwritten digits at 100 Mbit: 7 ms of computing, 5 ms on the wire."""
    helps = advice(measured((0.011, 0.011), 0.012, 0.005, 153_000), PLAN, NAMES)
    assert helps is not None and helps.cause == "steps"
    assert helps.rarely == pytest.approx(0.011 / 0.0076, rel=0.01), "a meeting takes 5 ms"
    assert helps.larger == pytest.approx(0.022 / 0.019)
    assert helps.narrow is helps.narrowest is None, "its round trips take the time"
    own = advice(measured((0.011, 0.011), 0.012, 0.005, 153_000), replace(PLAN, strategy="own"), NAMES)
    assert own is not None and own.rarely is None


def test_rare_meetings_are_offered_whatever_the_cause_but_only_for_a_gain() -> None:
    """0.05 s at best, and 0.075 s of computing: less than half of what is lost is the wire's."""
    loaded = advice(measured(step_s=0.095, wire_s=0.02), PLAN, NAMES)
    assert loaded is not None and loaded.cause == "load"
    assert loaded.rarely is not None and loaded.rarely > 1.3
    for alone_s, step_s, wire_s in (
        ((0.1, 0.1), 0.2, 0.01),
        ((1.2, 0.1), 0.2, 0.15),
        ((0.003, 0.003), 0.006, 0.001),
    ):
        helps = advice(measured(alone_s, step_s, wire_s, 40_000), PLAN, NAMES)
        assert helps is not None and helps.rarely is None, helps


def test_beside_a_much_faster_one_the_fast_one_alone_is_proposed() -> None:
    helps = advice(measured((1.2, 0.1), 0.095, 0.001), PLAN, NAMES)
    assert helps is not None
    assert (helps.cause, helps.alone, helps.here) == ("unlike", "ben", False)
    assert (helps.fastest, helps.slowest, helps.slow_s) == ("ben", "anna", 1.2)


def test_a_slow_step_without_much_wire_is_blamed_on_the_load() -> None:
    assert blamed(measured((0.1, 0.1), 0.2, 0.01)) == "load"
    for wire_s, cause in ((0.076, "wire"), (0.074, "load")):  # half of the excess 0.15 s
        assert blamed(measured((0.1, 0.1), 0.2, wire_s)) == cause


def test_a_laptop_is_unlike_the_other_only_where_it_has_little_to_add() -> None:
    for slow_s, little in ((1.5, True), (0.9, False)):
        assert (blamed(measured((slow_s, 0.1), 0.1, 0.0)) == "unlike") is little


def test_fixed_shares_are_not_to_blame_between_nearly_equal_laptops_or_in_a_scripts_own_loop() -> None:
    fixed = replace(PLAN, balance=False)
    assert blamed(measured((0.13, 0.1), 0.15, 0.001), fixed) == "shares"
    assert blamed(measured((0.12, 0.1), 0.15, 0.001), fixed) != "shares"
    assert blamed(measured((0.3, 0.1), 0.15, 0.001), replace(fixed, strategy="own")) != "shares"
    uneven = measured((0.3, 0.1), 0.15, 0.001)
    assert blamed(uneven, fixed) == "shares"
    assert blamed(uneven) != "shares"


def test_the_result_says_how_far_the_prediction_was_off() -> None:
    summary = Summary(
        expectation=measured(),
        settled=Settled(step_s=0.0637, samples_s=1004.7, wire_s=0.0153, wire_bytes=1_200_000),
    )
    words = achieved(summary, PLAN, NAMES)
    assert words.what == (
        "Expected 1.7×, measured 1.6× the speed of anna alone (each step 6 % longer than expected). "
        "A step took 64 ms, 1,005 samples/s; 24 % of each step was network transfer (1.2 MB each way)."
    )
    assert words.advice is None
    assert (
        last_time(summary, PLAN, NAMES).what
        == "Last time on these laptops: about 1.6× as fast as anna alone."
    )


def test_the_result_repeats_the_range_that_was_expected() -> None:
    ranging = replace(measured(), step_range_s=(0.055, 0.07))
    words = achieved(Summary(expectation=ranging, settled=Settled(step_s=0.0637)), PLAN, NAMES).what
    assert words.startswith("Expected 1.7× (1.4 to 1.8×), measured 1.6× the speed of anna alone")
    slower = replace(measured(step_s=1.9), step_range_s=(1.7, 2.2))
    words = achieved(Summary(expectation=slower, settled=Settled(step_s=2.1)), PLAN, NAMES).what
    assert words.startswith("Expected 19× slower (17 to 22×), measured 21× slower than anna alone")


def test_choices_that_were_not_measured_have_a_wider_range() -> None:
    helps = advice(replace(SLOW_WIRE, step_range_s=(0.19, 0.22)), PLAN, NAMES)
    assert helps is not None
    assert helps.spread == pytest.approx((0.2 / 0.22 / 1.15, 0.2 / 0.19 * 1.15))


def test_steps_too_small_to_share_are_compared_with_nothing_unless_they_gain() -> None:
    tiny = measured((0.004, 0.006), 0.03, 0.02, 150_000)
    summary = Summary(expectation=tiny, settled=Settled(step_s=0.02, samples_s=590.0, wire_s=0.01))
    words, before = achieved(summary, PLAN, NAMES), last_time(summary, PLAN, NAMES)
    assert words.what == (
        "A step took 20 ms, 590 samples/s; 50 % of each step was network transfer (150 kB each way)."
    )
    assert before.what == "Last time on these laptops: 590 samples/s."
    for said in (words, before):
        assert said.advice is not None and said.advice.cause == "steps", "the advice stays"
    assert speed_up(summary) is None
    gains = replace(summary, settled=Settled(step_s=0.002))
    assert speed_up(gains) == pytest.approx(2.0)
    assert "2.0× as fast as anna alone" in last_time(gains, PLAN, NAMES).what
    large = replace(summary, expectation=replace(tiny, wire_bytes=9_000_000))
    assert speed_up(large) == pytest.approx(0.2)
    assert "5.0× slower" in last_time(large, PLAN, NAMES).what


@pytest.mark.parametrize(
    ("longer", "words"),
    [
        (1.014, "as expected"),
        (0.986, "as expected"),
        (1.02, "each step 2 % longer than expected"),
        (0.98, "each step 2 % shorter than expected"),
        (1.99, "each step 99 % longer than expected"),
        (2.5, "each step 2.5× as long as expected"),
        (15.0, "each step 15× as long as expected"),
    ],
)
def test_a_small_miss_is_as_expected_and_a_large_one_is_said_in_times(longer: float, words: str) -> None:
    summary = Summary(expectation=measured(), settled=Settled(step_s=0.06 * longer))
    assert f"({words})" in achieved(summary, PLAN, NAMES).what


def test_values_not_measured_at_the_end_are_left_out() -> None:
    words = achieved(Summary(expectation=measured(), settled=Settled(step_s=0.06)), PLAN, NAMES).what
    assert words.endswith("A step took 60 ms.")
    assert not achieved(Summary(settled=Settled(step_s=0.06)), PLAN, NAMES)
    assert not achieved(Summary(expectation=measured()), PLAN, NAMES)


def test_the_advice_follows_from_the_result_and_not_from_the_expectation() -> None:
    """The wire is blamed for its actual time; if unknown, for the measured one."""
    before = measured((0.1, 0.1), 0.2, 0.14)
    for settled, cause in (
        (Settled(step_s=0.2), "wire"),
        (Settled(step_s=0.2, wire_s=0.001, wire_bytes=1), "load"),
    ):
        helps = achieved(Summary(expectation=before, settled=settled), PLAN, NAMES).advice
        assert helps is not None and helps.cause == cause


@pytest.mark.parametrize(
    ("ratio", "words"), [(0.25, "0.2"), (1.66, "1.7"), (9.94, "9.9"), (9.96, "10"), (1234.5, "1,234")]
)
def test_a_ratio_has_two_digits(ratio: float, words: str) -> None:
    assert times(ratio) == words


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (1_000, "1 kB"),
        (9_900, "9.9 kB"),
        (10_400, "10.4 kB"),
        (999_000, "999 kB"),
        (9_900_000, "9.9 MB"),
        (12_000_000, "12 MB"),
        (999_900_000, "1 GB"),
    ],
)
def test_the_bytes_sent_are_stated_with_the_wires_part(sent: int, words: str) -> None:
    assert wire_words(0.022, 0.1, sent) == f"22 % of each step is network transfer ({words} each way)"


def test_nothing_is_said_about_an_unknown_wire() -> None:
    assert wire_words(0.0, 0.1, None) == "0 % of each step is network transfer"
    assert wire_words(0.001, 0.1, 0) == "1 % of each step is network transfer"
    for wire_s, step_s in ((None, 0.1), (0.1, None), (0.1, 0.0), (math.nan, 0.1), (0.1, math.inf)):
        assert wire_words(wire_s, step_s, 1) == ""


def test_a_slower_result_is_followed_by_advice() -> None:
    slow = Settled(step_s=0.2, wire_s=0.15, wire_bytes=20_000_000)
    words = achieved(Summary(expectation=measured(), settled=slow), PLAN, NAMES)
    assert "measured 0.5× the speed of anna alone (each step 3.3× as long as expected)" in words.what
    assert words.advice is not None and words.advice.cause == "wire"
    assert last_time(Summary(expectation=measured(), settled=slow), PLAN, NAMES).advice == words.advice


def test_a_slower_run_is_reported_by_how_much_slower_it_is() -> None:
    slow = Settled(step_s=2.1, wire_s=1.9, wire_bytes=20_000_000)
    words = achieved(Summary(expectation=measured(step_s=1.9), settled=slow), PLAN, NAMES).what
    assert words.startswith("Expected 19× slower, measured 21× slower than anna alone (each step 11 % longer")
    hardly = achieved(Summary(expectation=measured(step_s=0.09), settled=slow), PLAN, NAMES).what
    assert hardly.startswith("Expected 1.1×, measured 0.05× the speed of anna alone")


def test_without_a_measurement_only_the_rate_is_known() -> None:
    assert not achieved(Summary(), PLAN)
    assert not last_time(Summary(), PLAN)
    assert last_time(Summary(samples_s=590.4), PLAN).what == "Last time on these laptops: 590 samples/s."
    alone = plan_of((ANNA,))
    assert last_time(Summary(samples_s=590.4), alone, NAMES).what == "Last time on anna alone: 590 samples/s."
    assert not expected(measured((0.1,)), alone), "one alone is compared with nobody"


def test_the_steady_rate_is_said_before_that_of_the_whole_run() -> None:
    steady = Settled(step_s=0.1, samples_s=640.0)
    assert last_time(Summary(settled=steady, samples_s=590.0), PLAN).what.endswith(" 640 samples/s.")
    assert last_time(Summary(settled=Settled(step_s=0.1), samples_s=590.0), PLAN).what.endswith(
        " 590 samples/s."
    )
    for rate in (0.0, -1.0, math.nan, math.inf):
        assert not last_time(Summary(samples_s=rate), PLAN)
    assert last_time(Summary(samples_s=0.6), PLAN)


def test_more_laptops_than_there_are_words_for_are_counted() -> None:
    six = plan_of((ANNA, BEN), fixed={ANNA: (Role.CHIEF, *[Role.WORKER] * 5), BEN: (Role.NONE,)})
    assert said(measured((0.1,) * 6, 0.03), six).startswith("6 cards: about 3.3× as fast")
    four = plan_of((ANNA, BEN), fixed={ANNA: (Role.CHIEF, *[Role.WORKER] * 3), BEN: (Role.NONE,)})
    assert said(measured((0.1,) * 4, 0.03), four).startswith("Four cards:")


def test_runs_of_one_member_have_no_speed_up() -> None:
    alone = Summary(expectation=measured((0.1,)), settled=Settled(step_s=0.05))
    assert speed_up(alone) is None
    assert speed_up(Summary(expectation=measured())) is None
    assert speed_up(Summary(settled=Settled(step_s=0.05))) is None
    assert speed_up(Summary(expectation=measured((0.2, 0.0)), settled=Settled(step_s=0.05))) is None


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
    for words in (expected(expectation, plan), achieved(summary, plan), last_time(summary, plan)):
        assert not re.search(r"\b(nan|inf)\b", f"{words.what} {words.advice}")
        assert words.what.endswith(".") or not words
        assert len(words.what) < 2_000
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
        assert words.advice is not None
    if min(alone_s) > 1.3001 * step_s:
        assert words.advice is None
    if words.advice is not None:
        offered = (words.advice.narrow, words.advice.rarely, words.advice.larger)
        least = max(1.0, 0.999 * words.advice.together)
        assert all(gain is None or gain >= least for gain in offered), "faster than one, and than the run"


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
        replace(measured(), step_range_s=(0.05,)),
        replace(measured(), step_range_s=(0.05, 0.06, 0.07)),
        replace(measured(), step_range_s=(0.061, 0.07)),
        replace(measured(), step_range_s=(0.05, 0.059)),
        replace(measured(), step_range_s=(0.0, 0.07)),
        replace(measured(), step_range_s=(0.05, math.nan)),
    ],
)
def test_impossible_numbers_are_not_sound(odd: Expectation) -> None:
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
def test_a_summarys_own_numbers_are_checked_too(odd: Settled) -> None:
    assert sound_summary(Summary(settled=Settled(step_s=1.0, shares={ANNA: 3})), PLAN)
    assert not sound_summary(Summary(settled=odd), PLAN)


def test_a_members_name_is_only_shown() -> None:
    odd = {ANNA: "an\x1b[1mna\n" * 50}
    words = said(measured()) and expected(measured(), PLAN, odd).what
    assert "\x1b" not in words and "\n" not in words and len(words) < 300
