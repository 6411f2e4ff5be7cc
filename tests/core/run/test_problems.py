from __future__ import annotations

from typing import get_args

import pytest

from core.run import problems
from core.vocabulary.errors import Problem
from core.vocabulary.phases import Exit, ExitReason
from core.vocabulary.plan import Role
from core.vocabulary.settings import Settings
from tests.core.cluster.laptops import ANNA, BEN, plan_of


@pytest.mark.parametrize("reason", [reason for reason in get_args(ExitReason) if reason != "finished"])
def test_every_end_has_a_sentence_and_a_fix_and_names_its_laptop(reason: ExitReason) -> None:
    problem = problems.trainer_failed(plan_of(), BEN, "worker:0", Exit(reason=reason))
    assert problem.what.startswith("On Ben's: ")
    assert problem.fix
    assert problem.code == reason


def test_alone_no_laptop_is_named_and_the_traceback_stays() -> None:
    problem = Problem(code="script-error", what="It failed.", detail="Traceback …")
    end = Exit(reason="script-error", problem=problem)
    assert problems.trainer_failed(plan_of((ANNA,)), ANNA, "chief:0", end) == problem
    assert problems.trainer_failed(plan_of(), BEN, "worker:0", end).detail == "Traceback …"


WHY = Problem(code="why", what="The link closed.", fix="Look there.", detail="Traceback …")


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (
            problems.no_consent(["Anna", "Ben"]),
            "no-consent",
            "on Anna and Ben answered within 5 min",
        ),
        (problems.declined("Ben", WHY), "why", "Ben does not take part: The link closed."),
        (problems.refused_by_user(), "consent-refused", "its user did not allow"),
        (problems.busy(), "device-busy", "busy with another run"),
        (problems.known_run(), "run-known", "seen this run before"),
        (problems.part_gone(), "part-gone", "it has left the run; its Tandem says why"),
        (problems.not_prepared(["Ben"]), "not-prepared", "Ben did not get ready: no sign"),
        (
            problems.not_started(["Ben"], [20001], 270.0),
            "not-started",
            "on Ben (TCP port 20001) did not start",
        ),
        (problems.not_started(["Ben"], [], 270.0), "not-started", "on Ben did not start"),
        (
            problems.lost_device(plan_of(), BEN, WHY),
            "device-lost",
            "Ben's was lost during the run: The link closed.",
        ),
        (problems.lost_starter("Ben", WHY), "starter-lost", "Ben, which started the run, was lost"),
        (problems.never_launched("Ben"), "never-launched", "Ben asked for this run"),
        (problems.starter_silent("Ben"), "starter-silent", "did not say how it ended"),
        (problems.still_running(["Ben"]), "still-running", "still runs on Ben, 10 min after"),
        (problems.outputs_missing("Ben", WHY), "outputs-missing", "did not arrive: The link closed."),
        (problems.outputs_missing("Ben"), "outputs-missing", "nothing came for 60 s."),
        (problems.model_too_large("Ben"), "outputs-left", "it stays on Ben"),
        (problems.model_unmoved("Ben", OSError(28, "No space left")), "outputs-left", "(No space left)"),
        (problems.model_unmoved("Ben", OSError("odd")), "outputs-left", "(odd)"),
        (problems.bad_message("Ben"), "broken-talk", "Ben sent a message"),
        (problems.closed("Ben"), "closed", "closed on Ben"),
    ],
)
def test_every_failure_says_what_happened_and_what_to_do(problem: Problem, code: str, words: str) -> None:
    assert problem.code == code
    assert words in problem.what and problem.fix


@pytest.mark.parametrize(
    "problem",
    [
        problems.outputs_missing("Ben"),
        problems.model_too_large("Ben"),
        problems.model_unmoved("Ben", OSError("odd")),
    ],
)
def test_outputs_that_stay_on_another_laptop_are_said_to_be_removed_one_day(problem: Problem) -> None:
    assert "Ben keeps it as long as its settings say (30 days by default)." in problem.fix
    assert Settings(name="Ben").keep_days == 30


def test_the_details_of_a_cause_are_not_lost() -> None:
    for passed_on in (
        problems.declined("Ben", WHY),
        problems.lost_device(plan_of(), BEN, WHY),
        problems.lost_starter("Ben", WHY),
        problems.outputs_missing("Ben", WHY),
    ):
        assert passed_on.detail == WHY.detail
    assert problems.declined("Ben", WHY).fix == WHY.fix


def test_a_laptop_with_several_trainers_names_the_one_that_failed() -> None:
    cards = plan_of((ANNA, BEN), fixed={BEN: (Role.WORKER, Role.WORKER)})
    what = problems.trainer_failed(cards, BEN, "worker:1", Exit(reason="killed")).what
    assert what.startswith("On Ben's (worker:1): ")


def test_a_stop_is_no_failure_that_needs_a_fix() -> None:
    assert problems.stopped_by("Ben") == Problem(code="stopped", what="The run was stopped on Ben.")


def test_times_are_given_in_seconds_and_long_ones_in_minutes() -> None:
    assert "now terminated" in problems.slow_to_stop(["Ben"], 120.0, 1)
    assert "within 15 s; the training there is now killed" in problems.slow_to_stop(["Ben"], 15.0, 2)
    assert problems.ended_by_force(["Anna", "Ben"]).startswith("Anna and Ben did not say that")
    assert problems.nothing_shared()


def test_a_laptop_that_itself_slept_says_so_of_a_run_that_was_lost_by_that() -> None:
    slept = Problem(code="link-slept", what="This laptop slept for 40 s.", fix="Keep it awake.")
    assert problems.lost_starter("Ben", slept) == slept, "seen on that laptop alone"
    lost = problems.lost_device(plan_of(), BEN, slept)
    assert lost.what == "On Anna's: This laptop slept for 40 s.", "every member sees it"
    assert (lost.code, lost.fix) == (slept.code, slept.fix)


def test_over_tls_one_open_firewall_of_two_is_enough() -> None:
    never_met = problems.trainer_failed(plan_of(), BEN, "worker:0", Exit(reason="never-met"))
    for problem in (never_met, problems.not_started(["Ben"], [], 270.0)):
        assert "20000–32000" in problem.fix and "over TLS, one of two is enough" in problem.fix


def test_arguments_that_a_script_refuses_name_no_single_laptop() -> None:
    refused = Exit(reason="script-error", problem=Problem(code="script-arguments", what="error: --epoch 3"))
    assert problems.trainer_failed(plan_of(), BEN, "worker:0", refused) == refused.problem
