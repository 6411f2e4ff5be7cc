from __future__ import annotations

import signal

import pytest

from core.supervisor import problems
from core.supervisor.state import Answer
from core.vocabulary.phases import Exit

PEERS = {"chief:0": "Anna's laptop at 10.0.0.2:20001", "worker:0": "Ben at home at [fe80::1]:20002"}


def died(status: int, *, booted: bool = True, cluster: bool = False, tail: str = "") -> Exit:
    exit = problems.died(status, booted=booted, cluster=cluster, memory=False, tail=tail)
    assert exit.problem is not None and exit.problem.what and exit.problem.fix
    return exit


def test_an_abort_in_a_cluster_that_mentions_peers_is_a_lost_peer() -> None:
    tail = "F0000 coordination_service_agent.cc: UNAVAILABLE: failed to connect to all addresses"
    assert died(-signal.SIGABRT, cluster=True, tail=tail).reason == "lost-peer"
    assert died(-signal.SIGABRT, cluster=False, tail=tail).reason == "killed"
    assert died(-signal.SIGABRT, cluster=True, tail="double free").reason == "killed"


def test_a_crash_names_its_signal() -> None:
    assert "SIGSEGV" in str(died(-signal.SIGSEGV).problem)
    assert "SIGRTMIN" in str(died(-signal.SIGRTMIN).problem) or "signal" in str(died(-40).problem)


def test_before_the_boot_it_is_tensorflows_fault() -> None:
    assert died(1, booted=False).problem.code == "tensorflow-broken"  # type: ignore[union-attr]
    assert "SIGILL" in str(died(-signal.SIGILL, booted=False).problem)


@pytest.mark.parametrize(
    ("answer", "saying", "mend"),
    [
        ("refused", "is there, but nothing listens on that port", "its trainer did not start"),
        ("silent", "did not answer on that port", "firewall"),
        ("unreachable", "cannot be reached from here", "same network"),
    ],
)
def test_the_verdict_names_peer_port_time_and_fix(answer: Answer, saying: str, mend: str) -> None:
    problem = problems.never_met(PEERS, {"chief:0": "answers", "worker:0": answer}, 60.0)
    assert problem.code == "never-met"
    assert f"worker:0 (Ben at home at [fe80::1]:20002) {saying}" in problem.what
    assert "within 60 s" in problem.what
    assert "Anna" not in problem.what
    assert mend in problem.fix


def test_peers_that_all_answer_are_named_too() -> None:
    problem = problems.never_met(PEERS, {"chief:0": "answers", "worker:0": "answers"}, 60.0)
    assert "Anna" in problem.what and "Ben" in problem.what and problem.fix


def test_an_end_while_loading_names_the_signal_or_the_code() -> None:
    for status, words in (
        (-11, "(SIGSEGV)"),
        (-200, "(signal 200)"),
        (0, "(exit code 0)"),
        (3, "(exit code 3)"),
    ):
        end = died(status, booted=False)
        assert end.problem is not None and end.problem.code == "tensorflow-broken"
        assert words in end.problem.what


def test_a_kill_for_lack_of_memory_is_told_from_one_by_somebody() -> None:
    for memory, code in ((True, "out-of-memory"), (False, "killed")):
        end = problems.died(-9, booted=False, cluster=False, memory=memory, tail="last")
        assert end.problem is not None and (end.problem.code, end.problem.detail) == (code, "last")
        assert end.reason == code


def test_a_slow_boot_is_reported_with_its_limit() -> None:
    slow = problems.slow_boot(119.6)
    assert slow.problem is not None and "within 2 min" in slow.problem.what and slow.reason == "killed"
    forced = problems.forced("It took too long.", "last")
    assert forced.problem is not None
    assert (forced.problem.what, forced.problem.detail) == ("It took too long.", "last")
