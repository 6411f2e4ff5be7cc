from __future__ import annotations

from typing import get_args

import pytest

from core.run import problems
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit, ExitReason
from tests.core.cluster.laptops import ANNA, BEN, plan_of


@pytest.mark.parametrize("reason", [reason for reason in get_args(ExitReason) if reason != "finished"])
def test_every_end_has_words_and_a_mend_and_names_its_laptop(reason: ExitReason) -> None:
    problem = problems.trainer_failed(plan_of(), BEN, "worker:0", Exit(reason=reason))
    assert problem.what.startswith("On Ben's: ")
    assert problem.fix
    assert problem.code == reason


def test_alone_no_laptop_is_named_and_the_traceback_stays() -> None:
    problem = Problem(code="script-error", what="It failed.", detail="Traceback …")
    end = Exit(reason="script-error", problem=problem)
    assert problems.trainer_failed(plan_of((ANNA,)), ANNA, "chief:0", end) == problem
    assert problems.trainer_failed(plan_of(), BEN, "worker:0", end).detail == "Traceback …"


def test_names_are_listed_as_in_a_sentence() -> None:
    assert problems.listed(["A"]) == "A"
    assert problems.listed(["A", "B"]) == "A and B"
    assert problems.listed(["A", "B", "C"]) == "A, B and C"
