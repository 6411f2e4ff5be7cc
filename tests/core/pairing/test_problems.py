"""Each way in which a pairing ends is reported with who, where and the fix."""

from __future__ import annotations

import pytest

from core.net.tls import unreachable
from core.pairing import problems
from core.vocabulary.errors import Problem


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (problems.attack("Eve is there."), "pairing-attack", "Possible attack: Eve is there."),
        (problems.different(True, "ben"), "pairing-different", "pressed here"),
        (problems.different(False, "ben"), "pairing-different", "pressed on ben"),
        (problems.cancelled(True, "ben"), "pairing-cancelled", "cancelled here"),
        (problems.cancelled(False, "ben"), "pairing-cancelled", "cancelled on ben"),
        (problems.busy("ben"), "pairing-busy", "ben is pairing with another"),
        (problems.paused("here", 59.6), "pairing-paused", "is paused here for 60 more seconds"),
        (problems.paused("on ben"), "pairing-paused", "is paused on ben for a while"),
        (problems.version(2, 1), "pairing-version", "uses version 2"),
        (
            unreachable("10.0.0.2:1", "no route"),
            "unreachable",
            "10.0.0.2:1 can't be reached (no route)",
        ),
        (problems.pairing_under_way("ben").problem, "pairing-busy", "with ben is under way"),
        (problems.mixed_name("b\u0435n", ("Cyrillic", "Latin")), "pairing-mixed-name", "Cyrillic and Latin"),
        (problems.new_key("ben"), "pairing-new-key", "named ben is paired already, with another key"),
        (problems.itself(), "pairing-self", "this device's own"),
        (problems.malformed("a frame"), "pairing-malformed", "protocol: a frame."),
        (problems.refused("ben"), "pairing-refused", "ben refused"),
        (problems.lost("ben"), "pairing-lost", "connection to ben broke"),
        (
            problems.no_code("ben", "10.0.0.2:1", 10.0),
            "pairing-timeout",
            "ben at 10.0.0.2:1 did not get to the code",
        ),
        (problems.no_answer(True, "ben", 60.0), "pairing-unanswered", "Different here within 60 s"),
        (problems.no_answer(False, "ben", 60.0), "pairing-unanswered", "Different on ben within 60 s"),
        (problems.gave_up_waiting("ben"), "pairing-unanswered", "ben waited"),
        (problems.no_proof("ben", 20.0, "why"), "pairing-unproven", "ben did not prove its key within 20 s"),
        (problems.nothing_to_answer().problem, "no-pairing", "no code to compare"),
    ],
)
def test_every_end_says_what_happened_and_what_to_do(problem: Problem, code: str, words: str) -> None:
    assert problem.code == code
    assert words in problem.what and problem.fix


def test_the_older_side_is_the_one_to_update() -> None:
    assert "this laptop" in problems.version(2, 1).fix
    assert "the other laptop" in problems.version(1, 2).fix
