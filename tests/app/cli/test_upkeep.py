from argparse import Namespace

import pytest

from app.cli.exit_codes import ExitCode
from app.cli.upkeep import clear, doctor
from core.doctor.reach import finding
from core.doctor.trial import Reach
from core.vocabulary.answers import Cleared, Finding, Findings, Refused
from core.vocabulary.commands import Clear, Mend, RunDoctor
from core.vocabulary.errors import TandemError
from tests.app.cli.scripted_node import PROBLEM, ScriptedNode, Words, follower

FINE = Finding(code="python", topic="software", level="ok", what="Python 3.11.")
BROKEN = Finding(
    code="key-mode", topic="files", level="error", what="Others can read the key.", fix="chmod", mend=True
)


class Doctored(ScriptedNode):
    def __init__(self, *findings: Finding) -> None:
        super().__init__()
        self.held.set()
        self.answers[RunDoctor] = Findings(findings=findings)


async def test_what_works_is_no_failure() -> None:
    node, screen = Doctored(FINE), Words()
    with follower(node) as events:
        assert await doctor(Namespace(deep=True, mend=None), screen, events) == ExitCode.OK
    assert node.commands == [RunDoctor(deep=True)]
    assert screen.said == "✓ software: Python 3.11.\n"


async def test_what_does_not_work_comes_with_its_mend() -> None:
    node, screen = Doctored(FINE, BROKEN), Words()
    with follower(node) as events:
        assert await doctor(Namespace(deep=False, mend=None), screen, events) == ExitCode.FAILED
    assert "✗ files: Others can read the key.\n    chmod\n" in screen.said
    assert "tandem doctor --mend key-mode" in screen.said


async def test_tandem_mends_what_it_is_asked_to_before_it_looks_again() -> None:
    node, screen = Doctored(FINE), Words(json=True)
    with follower(node) as events:
        assert await doctor(Namespace(deep=False, mend="key-mode"), screen, events) == ExitCode.OK
    assert node.commands == [Mend(code="key-mode"), RunDoctor()]
    assert screen.told[0]["ok"] is True
    assert screen.told[0]["findings"][0]["code"] == "python"


async def test_one_open_way_is_no_failure_and_none_is() -> None:
    one_way = finding("ben", Reach("silent", "answers", own_host="10.0.0.1", peer_host="10.0.0.2"))
    neither = finding("ben", Reach("silent", "refused", own_host="10.0.0.1", peer_host="10.0.0.2"))

    node, screen = Doctored(one_way), Words()
    with follower(node) as events:
        assert await doctor(Namespace(deep=False, mend=None), screen, events) == ExitCode.OK
    assert "· network: A connection from ben" in screen.said and "One direction is enough" in screen.said

    node, screen = Doctored(neither), Words(json=True)
    with follower(node) as events:
        assert await doctor(Namespace(deep=False, mend=None), screen, events) == ExitCode.FAILED
    assert screen.told[0]["findings"][0]["code"] == "reach-closed"


async def test_what_others_left_is_cleared_and_how_much_it_was_is_said() -> None:
    node, said, told = ScriptedNode(), Words(), Words(json=True)
    node.answers[Clear] = Cleared(freed_bytes=2_000_000)
    with follower(node) as events:
        assert await clear(Namespace(), said, events) == ExitCode.OK
        assert await clear(Namespace(), told, events) == ExitCode.OK
    assert said.said.strip() == "Freed 2 MB." and told.told[0]["freed_bytes"] == 2_000_000


async def test_a_refusal_is_said() -> None:
    node = ScriptedNode()
    node.answers[Clear] = Refused(problem=PROBLEM)
    with follower(node) as events, pytest.raises(TandemError) as refusal:
        await clear(Namespace(), Words(), events)
    assert refusal.value.problem == PROBLEM
