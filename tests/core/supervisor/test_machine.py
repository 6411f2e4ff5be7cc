"""A trainer's life, step by step, on its own clock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.supervisor import problems
from core.supervisor.machine import Supervision
from core.supervisor.state import Force, Limits
from core.vocabulary import trainer_messages
from core.vocabulary.errors import Problem
from core.vocabulary.limits import STOP_S
from core.vocabulary.phases import Exit

BOOTED = trainer_messages.Booted(seconds=5.0, devices=())
MET = trainer_messages.Met(strategy="S", replicas=2)
FINISHED = Exit(reason="finished", weights_sha256="ab")
LIMITS = Limits(boot_s=120, grace_s=20, terminate_s=5, leave_s=15, probe_s=3)
PEERS = {"worker:0": "Anna's at 10.0.0.2:20001", "worker:1": "Ben's at 10.0.0.3:20002"}


def fresh(now_s: float = 0.0, cluster: bool = True, limits: Limits = LIMITS) -> Supervision:
    train = trainer_messages.Train(
        run="r",
        task="chief:0",
        folder="/f",
        script="s.py",
        tf_config="{}" if cluster else "",
        peers=PEERS,
        meet_timeout_s=60,
    )
    return Supervision(train, limits, now_s)


def running() -> Supervision:
    machine = fresh()
    assert machine.on_report(BOOTED, 5) == ["train"]
    return machine


def dead(machine: Supervision, status: int, *, memory: bool = False, tail: str = "") -> Exit:
    return machine.on_dead(status, memory=memory, tail=tail)


def code(exit: Exit) -> str:
    assert exit.problem is not None
    return exit.problem.code


def test_only_tensorflow_ends_a_trainer_where_another_member_went_away() -> None:
    tail = "F0000 Terminating process because the coordination service is gone"
    over_tensorflow = running()
    assert dead(over_tensorflow, -6, tail=tail).reason == "lost-peer"
    over_tls = running()
    keys = trainer_messages.ExchangeKeys(generation=1, certificates=(b"a", b"b"), private_key=b"k")
    over_tls.train = replace(over_tls.train, exchange=keys)
    assert code(dead(over_tls, -6, tail=tail)) == "crashed"


def test_the_order_goes_out_once_tensorflow_is_loaded() -> None:
    machine = fresh()
    assert machine.deadline_s == 120
    assert machine.on_report(BOOTED, 5) == ["train"]
    assert machine.deadline_s is None


def test_a_boot_has_a_limit() -> None:
    machine = fresh()
    assert machine.on_time(119) == []
    assert machine.on_time(120) == ["kill"]
    exit = dead(machine, -9, tail="still loading")
    assert (exit.reason, code(exit)) == ("killed", "tensorflow-slow")
    assert "2 min" in str(exit.problem)
    assert exit.problem is not None and exit.problem.detail == "still loading"


def test_running_has_no_limit() -> None:
    machine = running()
    assert machine.on_time(1e9) == []


def test_members_that_meet_in_time_go_on() -> None:
    machine = running()
    machine.on_report(trainer_messages.Connecting(), 10)
    deadline_s = machine.deadline_s
    assert deadline_s == 67
    machine.on_report(MET, 60)
    assert machine.deadline_s is None
    assert machine.on_time(1000) == []


def test_a_peer_that_does_not_answer_is_named_when_the_meeting_is_over() -> None:
    machine = running()
    machine.on_report(trainer_messages.Connecting(), 10)
    assert machine.on_time(67) == ["try-peers"]
    machine.on_answers({"worker:0": "answers", "worker:1": "silent"})
    assert machine.on_time(69) == []
    assert machine.on_time(70) == ["kill"]
    exit = dead(machine, -9)
    assert exit.reason == "never-met"
    assert "worker:1 (Ben's at 10.0.0.3:20002) did not answer" in str(exit.problem)
    assert "Anna" not in str(exit.problem)


def test_a_peer_may_still_come_while_ports_are_tried() -> None:
    machine = running()
    machine.on_report(trainer_messages.Connecting(), 10)
    machine.on_time(67)
    machine.on_report(MET, 68)
    machine.on_answers({"worker:0": "answers", "worker:1": "silent"})
    assert machine.on_time(1000) == []


def test_the_ladder_has_three_rungs() -> None:
    machine = running()
    assert machine.on_stop(0, 100) == ["stop"]
    assert machine.on_stop(0, 101) == []
    assert machine.on_time(119) == []
    assert machine.on_time(120) == ["terminate"]
    assert machine.on_time(125) == ["kill"]
    exit = dead(machine, -9)
    assert (exit.reason, code(exit)) == ("killed", "stop-forced")
    assert "25 s" in str(exit.problem)


def test_a_trainer_has_as_long_to_stop_as_its_run_waits() -> None:
    """Time for a long step, the callbacks, a checkpoint on a slow disk and the model."""
    machine = fresh(limits=Limits())
    machine.on_report(BOOTED, 5)
    machine.on_stop(0, 100)
    assert machine.on_time(100 + STOP_S[0] - 1) == []
    assert machine.on_time(100 + STOP_S[0]) == ["terminate"]


def test_a_script_that_obeys_sigterm_needs_no_kill() -> None:
    machine = running()
    machine.on_stop(0, 100)
    machine.on_time(120)
    assert code(dead(machine, -15)) == "stop-forced"


def test_a_trainer_that_stops_when_asked_has_the_last_word() -> None:
    machine = running()
    machine.on_stop(0, 100)
    machine.on_report(trainer_messages.Ended(exit=Exit(reason="stopped")), 101)
    assert machine.deadline_s == 116
    assert dead(machine, 0) == Exit(reason="stopped")


def test_a_member_that_breaks_after_stop_has_stopped() -> None:
    """Peers that stop a moment earlier break a collective."""
    machine = running()
    machine.on_stop(0, 100)
    assert dead(machine, -6).reason == "stopped"


@pytest.mark.parametrize(("force", "effect"), [(1, "terminate"), (2, "kill")])
def test_force_skips_rungs(force: Force, effect: str) -> None:
    assert running().on_stop(force, 100) == [effect]


@pytest.mark.parametrize(
    "line",
    [
        "train.py: error: unrecognized arguments: --epoch 3",
        "Error: No such option: --epoch (Possible options: --epochs)",
        "FATAL Flags parsing error: Unknown command line flag 'epoch'",
    ],
)
def test_a_script_that_refuses_its_arguments_is_quoted(line: str) -> None:
    exit = problems.with_tail(left_with(2), f"usage: train.py [--epochs N]\n{line}\n\n")
    assert exit.problem is not None
    assert (exit.problem.code, exit.problem.what) == ("script-arguments", line)
    assert "argument" in exit.problem.fix and "sys.exit" not in str(exit.problem)


def test_a_script_that_ends_itself_is_quoted_with_its_last_output() -> None:
    exit = problems.with_tail(left_with(3), "Reading data.csv\nno such column: price\n")
    assert exit.problem is not None
    assert exit.problem.fix == "Its last output: no such column: price"
    assert problems.with_tail(left_with(3), "").problem == left_with(3).problem


def test_tensorflows_log_is_no_reason_why_a_script_ended() -> None:
    noise = "E0000 00:00:1795719463.914767    8468 cuda_platform.cc:52] failed call to cuInit: INTERNAL"
    ours = "Reading data.csv\nno such column: price"
    exit = problems.with_tail(left_with(3), f"{noise}\n{ours}\n")
    assert exit.problem is not None and exit.problem.detail == ours


def left_with(code: int) -> Exit:
    what = f"The script exited with exit code {code}."
    return Exit(reason="script-error", problem=Problem(code="script-left", what=what, fix="See the log."))


def test_force_grows_while_the_ladder_is_climbed() -> None:
    machine = running()
    machine.on_stop(0, 100)
    assert machine.on_stop(1, 101) == ["terminate"]
    assert machine.on_stop(1, 102) == []
    assert machine.on_stop(2, 103) == ["kill"]
    assert machine.on_stop(2, 104) == []


@pytest.mark.parametrize("force", [0, 1])
def test_stop_while_loading_or_meeting_kills_at_once_since_no_orders_are_read_then(force: Force) -> None:
    machine = fresh()
    assert machine.on_stop(force, 1) == ["kill"]
    assert machine.on_report(BOOTED, 2) == []
    assert dead(machine, -9).reason == "stopped"
    machine = running()
    machine.on_report(trainer_messages.Connecting(), 10)
    assert machine.on_stop(force, 11) == ["kill"]
    assert dead(machine, -9).reason == "stopped"


def test_an_order_that_came_just_before_a_meeting_is_not_lost() -> None:
    machine = running()
    machine.on_stop(0, 9)
    assert machine.on_report(trainer_messages.Connecting(), 10) == ["kill"]
    assert dead(machine, -9).reason == "stopped"


def test_after_its_last_report_the_process_has_to_end() -> None:
    machine = running()
    machine.on_report(trainer_messages.Ended(exit=FINISHED), 50)
    assert machine.on_stop(0, 51) == []
    assert machine.on_time(65) == ["kill"]
    assert dead(machine, -9) == FINISHED


def test_the_first_of_several_last_reports_counts() -> None:
    machine = running()
    machine.on_report(trainer_messages.Ended(exit=FINISHED), 50)
    machine.on_report(trainer_messages.Ended(exit=Exit(reason="stopped")), 51)
    assert dead(machine, 0) == FINISHED


def test_a_trainers_own_detail_is_kept() -> None:
    machine = running()
    told = Exit(reason="script-error", problem=Problem(code="c", what="w", detail="its traceback"))
    machine.on_report(trainer_messages.Ended(exit=told), 50)
    assert dead(machine, 1, tail="noise") == told


def test_a_kill_from_outside_is_for_lack_of_memory_if_the_kernel_counted_one() -> None:
    assert dead(running(), -9, memory=True).reason == "out-of-memory"
    assert dead(running(), -9, memory=False).reason == "killed"
    assert dead(running(), -11, memory=True).reason == "killed"
