"""Each way in which a link ends is reported with the peer's name and the fix."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from core.link import problems
from core.vocabulary.errors import Problem

EVERY = [
    made
    for name, made in vars(problems).items()
    if inspect.isfunction(made) and made.__module__ == problems.__name__ and not name.startswith("_")
]
GIVEN: dict[str, object] = {
    "limit_s": 30.0,
    "seconds": 40.0,
    "waiting_bytes": 5 << 20,
    "detail": "why",
    "message": "why",
    "kind": "events",
}


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.__name__)
def test_every_end_names_the_peer_and_says_what_to_do(made: Callable[..., Problem]) -> None:
    names = inspect.signature(made).parameters
    problem = made(*[GIVEN.get(name, "ben") for name in names])
    assert problem.code and problem.what.endswith(".")
    needs_nothing = made in (problems.renewed, problems.worn, problems.crossed)
    assert problem.fix == "" if needs_nothing else problem.fix.endswith(".")
    if "name" in names:
        assert "ben" in problem.what
    if "detail" in names or "message" in names:
        assert problem.detail == "why"


def test_numbers_are_said_in_units_that_people_read() -> None:
    assert "5.2 MB" in problems.slow("ben", 5 << 20).what
    assert "30 s" in problems.stalled("ben", 30.0).what and "10 s" in problems.silent("ben", 10.0).what


def test_every_end_has_a_code_of_its_own() -> None:
    made = [each(*[GIVEN.get(name, "ben") for name in inspect.signature(each).parameters]) for each in EVERY]
    assert len({problem.code for problem in made}) == len(EVERY) > 8
