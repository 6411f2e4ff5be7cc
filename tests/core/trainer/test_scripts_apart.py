"""Scripts that differ on one member: reported on both sides, with the actual cause, and soon."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.exchange import problems
from tests.core.trainer.attended import SCRIPTS
from tests.core.trainer.crew import Crew, Ran

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

NAMED_S = 30.0
NAMES = ("anna", "ben")


@pytest.fixture(scope="module")
def pair(crews: Callable[[tuple[int, ...]], Crew]) -> Crew:
    """Both have loaded what a fit needs: the first run takes longer."""
    pair = crews((1, 1))
    ran = pair.run(SCRIPT, "caught by all")
    assert [exit.reason for exit in ran.exits] == ["finished"] * 2, pair.last_words()
    return pair


SCRIPT = (SCRIPTS / "goes_apart.py").read_text()
CASES = {
    "model": (
        " in fit 1, epoch 1, from batch 1 on:",
        "anna wants a model of 51 numbers in 6 variables (",
        "ben wants a model of 57 numbers in 6 variables (",
    ),
    "batches": (
        "anna wants the first batch, of 16 rows of 4 batches of 16 rows (float32 [4], float32 [1])",
        "ben wants the first batch, of 16 rows of 5 batches of 16 rows (float32 [4], float32 [1])",
    ),
    "batches of a generator": (
        "anna wants gradients of 16 rows",
        "ben wants to decide whether to stop",
    ),
    "rows of a generator": (
        "anna wants the first batch, of 16 rows of some batches (",
        "ben wants the first batch, of 12 rows of some batches (",
    ),
    "shape": ("2 batches of 16 rows (float32 [8, 8, 1]", "2 batches of 16 rows (float32 [10, 10, 1]"),
    "skipped": (
        "anna wants to begin in fit 1, epoch 1, from",
        "ben wants the first batch, ",
        " in evaluate 1.",
    ),
    "skipped one of two": ("anna wants a model of 51 numbers", "ben wants a model of 99 numbers"),
    "caught in a callback": (
        "anna wants to decide whether to stop in fit 1, epoch 1, from batch 5 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by ValueError.",
    ),
    "caught in a step": (
        "anna wants the results (steps: 1) in fit 1, epoch 1, from batch 1 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by InvalidArgumentError.",
    ),
    "caught while gradients are handed over": (
        "anna wants gradients of 16 rows, part 1 of 2 in fit 1, epoch 1, from batch 1 on;",
        "ben wants to begin in fit 2, epoch 1, from batch 1 on, after fit 1 ended by InvalidArgumentError.",
    ),
    "everything is caught": ("anna wants a model of 57 numbers", "ben wants a model of 63 numbers"),
    "ends early": (
        "anna wants to begin in fit 2",
        "ben wants the end of the script in its own code, step 8.",
    ),
    "predict": ("anna wants predictions of 32 rows; ben wants predictions of 24 rows.",),
}
"""Both members' messages, by the difference of one (``scripts/goes_apart.py``)."""


@pytest.mark.parametrize("how", CASES)
def test_each_side_names_what_each_member_wants(pair: Crew, how: str) -> None:
    exits = pair.run(SCRIPT, how, names=NAMES, limit_s=NAMED_S).exits
    for exit in exits:
        assert exit.reason == "script-error" and exit.problem is not None, pair.last_words()
        assert exit.problem.code == problems.MISMATCH, exit
        assert exit.problem.what.startswith("The script went different ways")
        for words in CASES[how]:
            assert words in exit.problem.what
        assert "went away" not in str(exit.problem)
    assert len({exit.problem.what for exit in exits if exit.problem}) == 1


def test_a_member_that_ended_during_anothers_own_code_is_named_when_that_meets_again(pair: Crew) -> None:
    ran = pair.run(SCRIPT, "ends early beside one in its own code", names=NAMES, limit_s=NAMED_S)
    anna, ben = ran.exits
    assert ran.took_s > 10.0, "ben did not wait longer for anna"
    assert anna.problem is not None
    assert "ben wants the end of the script in its own code, step 8." in anna.problem.what
    assert ben.reason == "finished"


def trains(pair: Crew, ran: Ran) -> None:
    assert [exit.reason for exit in ran.exits] == ["finished"] * 2, pair.last_words()
    assert ran.exits[0].weights_sha256 == ran.exits[1].weights_sha256 != ""


def test_an_error_that_all_catch_alike_is_no_difference(pair: Crew) -> None:
    trains(pair, pair.run(SCRIPT, "caught by all", limit_s=NAMED_S))


@pytest.mark.parametrize("shut", [0, 1])
def test_a_run_trains_where_only_one_of_two_can_be_called(pair: Crew, shut: int) -> None:
    trains(pair, pair.run(SCRIPT, "caught by all", shut=shut, limit_s=NAMED_S))
