"""How rounds alone, exact and rare become rows."""

import time

import pytest

from bench import rare
from bench.engine.pair import Pair
from bench.result import Row
from core.vocabulary.progress import Expectation


def expected(step_s: float, range_s: tuple[float, float]) -> Expectation:
    return Expectation(alone_s=(), step_s=step_s, step_range_s=range_s, wire_s=0.0, wire_bytes=0, shares=())


@pytest.fixture
def found() -> dict[str, Row]:
    measured = rare.Measured(
        alone_s={240: [0.2, 0.4, 0.2], 100: [0.2]},
        half_s={240: [0.1, 0.2, 0.1], 100: [0.1]},
        together_s={
            ("exact", 240): [0.4, 0.4, 0.8],
            ("rare", 240): [0.1, 0.2, 0.2],
            ("rare", 100): [0.4],
        },
        expected={("exact", 240): expected(0.5, (0.45, 0.6)), ("rare", 240): expected(0.21, (0.2, 0.3))},
    )
    rows = rare.rows("gpt", measured)
    assert len(rows) == len({row.what for row in rows})
    return {row.what.partition(": ")[2]: row for row in rows}


def test_each_way_is_compared_with_training_alone_in_its_own_round(found: dict[str, Row]) -> None:
    assert found["a step alone"].value == 200.0
    assert found["exact at 240 Mbit, times alone"].value == 0.5
    assert found["rare at 240 Mbit, times alone"].value == 2.0


def test_rare_meetings_are_compared_with_what_the_machine_allows(found: dict[str, Row]) -> None:
    assert found["the whole batch ÷ half of it"].value == 2.0
    part = found["rare at 240 Mbit ÷ what the machine allows"]
    assert (part.value, part.kept) == (1.0, True)


def test_the_network_allows_exact_steps_what_moving_the_gradients_takes(found: dict[str, Row]) -> None:
    wire_s = 1_268_256 * 4 * 8 / 240e6
    most = found["exact at 240 Mbit: the most that the network allows"]
    assert most.value == pytest.approx(0.2 / wire_s)


def test_what_was_expected_is_compared_with_what_came_out(found: dict[str, Row]) -> None:
    exact, rarely = (found[f"{kind} at 240 Mbit: expected, off by"] for kind in rare.KINDS)
    assert exact.value == pytest.approx(0.25)
    assert rarely.value == pytest.approx(0.05)
    assert (exact.kept, rarely.kept) == (False, True)


def test_a_single_round_on_the_slower_network_is_compared_with_its_own_round_alone(
    found: dict[str, Row],
) -> None:
    assert found["rare at 100 Mbit, times alone"].value == 0.5


def test_an_expectation_that_is_missing_is_a_row_that_breaks_its_promise(found: dict[str, Row]) -> None:
    assert found["rare at 100 Mbit: expected, off by"].kept is False


@pytest.mark.parametrize(("until_s", "count"), [(0.0, 1), (25.0, 2), (35.0, 3), (1000.0, 3)])
def test_no_round_but_the_first_begins_that_would_end_too_late(
    until_s: float, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    begun = []
    for number in rare.rounds(until_s):
        begun.append(number)
        now_s[0] += 10.0
    assert begun == [*range(count)]


@pytest.mark.cluster
def test_a_short_epoch_is_enough_to_ask_what_is_expected() -> None:
    with Pair("tandem", "digits:4", sync="rare") as pair:
        pair.order("expect 1")
        told = pair.answered()
    assert told.steps == 4
    assert told.expectation is not None
    assert told.expectation.step_s > 0
