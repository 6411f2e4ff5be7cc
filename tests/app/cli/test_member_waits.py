"""Whom a launched run's member reports waiting for, and whom it gives up."""

from __future__ import annotations

from app.cli.member_waits import MemberWaits
from core.vocabulary.errors import Problem
from core.vocabulary.waits import PeerWait, TrainerStatus

NAMES = {0: "member 0 at n0:20000", 1: "member 1 at n1:20000", 2: "member 2 at n2:20000"}


def status(*peers: PeerWait) -> TrainerStatus:
    return TrainerStatus(activity="exchange", lasted_s=60.0, peers=peers)


def silent(rank: int, heard_s: float, *, connected: bool = False) -> PeerWait:
    return PeerWait(rank=rank, lasted_s=60.0, connected=connected, heard_s=heard_s)


def test_who_is_slow_is_waited_for_without_a_word() -> None:
    waits = MemberWaits(NAMES, 600.0)
    slow = PeerWait(rank=1, lasted_s=3600.0, heard_s=0.4)
    assert waits.on_status(status(slow)) == []
    assert waits.on_status(TrainerStatus(activity="script", lasted_s=3600.0)) == []


def test_a_silent_member_is_said_once_and_again_when_it_is_back() -> None:
    waits = MemberWaits(NAMES, 600.0)
    assert waits.on_status(status(silent(1, 4.0))) == []
    assert waits.on_status(status(silent(1, 12.0))) == [
        "Nothing received from member 1 at n1:20000 for 12 s; still waiting."
    ]
    assert waits.on_status(status(silent(1, 16.0))) == []
    assert waits.on_status(None) == ["member 1 at n1:20000 is back."]
    assert waits.on_status(None) == []


def test_who_was_silent_too_long_ends_the_run_by_name() -> None:
    waits = MemberWaits(NAMES, 600.0)
    (end,) = waits.on_status(status(silent(1, 610.0), silent(2, 700.0, connected=True)))
    assert isinstance(end, Problem) and end.code == "member-lost" and end.fix
    assert end.what == "Nothing received from member 2 at n2:20000 for 12 min; it is still connected."
    (end,) = waits.on_status(status(silent(1, 610.0)))
    assert isinstance(end, Problem) and "it is not connected" in end.what
