from app.cli.doctor import doctor_on
from app.cli.exit_codes import ExitCode
from core.doctor.reach import finding
from core.doctor.trial import Reach
from core.vocabulary.answers import Finding, Findings
from core.vocabulary.commands import Mend, RunDoctor
from tests.app.cli.scripted_node import ScriptedNode, Words, follower

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
        assert await doctor_on(events, screen, deep=True, mend=None) == ExitCode.OK
    assert node.commands == [RunDoctor(deep=True)]
    assert screen.said == "✓ software: Python 3.11.\n"


async def test_what_does_not_work_comes_with_its_mend() -> None:
    node, screen = Doctored(FINE, BROKEN), Words()
    with follower(node) as events:
        assert await doctor_on(events, screen, deep=False, mend=None) == ExitCode.FAILED
    assert "✗ files: Others can read the key.\n    chmod\n" in screen.said
    assert "tandem doctor --mend key-mode" in screen.said


async def test_tandem_mends_what_it_is_asked_to_before_it_looks_again() -> None:
    node, screen = Doctored(FINE), Words(json=True)
    with follower(node) as events:
        assert await doctor_on(events, screen, deep=False, mend="key-mode") == ExitCode.OK
    assert node.commands == [Mend(code="key-mode"), RunDoctor()]
    assert screen.told[0]["ok"] is True
    assert screen.told[0]["findings"][0]["code"] == "python"


async def test_one_open_way_is_no_failure_and_none_is() -> None:
    one_way = finding("ben", Reach("silent", "answers", own_host="10.0.0.1", peer_host="10.0.0.2"))
    neither = finding("ben", Reach("silent", "refused", own_host="10.0.0.1", peer_host="10.0.0.2"))

    node, screen = Doctored(one_way), Words()
    with follower(node) as events:
        assert await doctor_on(events, screen, deep=False, mend=None) == ExitCode.OK
    assert "· network: A connection from ben" in screen.said and "One direction is enough" in screen.said

    node, screen = Doctored(neither), Words(json=True)
    with follower(node) as events:
        assert await doctor_on(events, screen, deep=False, mend=None) == ExitCode.FAILED
    assert screen.told[0]["findings"][0]["code"] == "reach-closed"
