import pytest

from app.cli.exit_codes import ExitCode
from app.cli.leave import leave_on
from core.run.departure import CANNOT
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import LeaveRun, StopRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Preparing, Starting, Training
from tests.app.cli.scripted_node import ME, OTHER, RUN, ScriptedNode, Words, follower, paired, plan

ALONE = Problem(code=CANNOT, what="The script trains in its own way.", fix="Stop the run for all laptops.")


def training() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=plan(OTHER)))
    for phase in (Preparing(), Starting(), Training()):
        node.happen(ev.RunPhaseChanged(run=RUN, phase=phase))
    return node


async def test_this_laptop_leaves_and_the_others_are_named() -> None:
    node, said, told = training(), Words(), Words(json=True)
    assert node.state.run is not None and ME in node.state.run.members
    name = node.state.devices[OTHER].shown_name
    with follower(node) as events:
        assert await leave_on(events, said) == ExitCode.OK
        assert await leave_on(events, told) == ExitCode.OK
    assert node.commands == [LeaveRun(run=RUN)] * 2
    assert said.said == f"This laptop leaves the run after the present step; {name} goes on.\n"
    assert told.told == [{"ok": True, "run": RUN, "did": "leave"}]


async def test_where_the_others_cannot_go_on_it_says_so_or_stops_as_asked() -> None:
    node, said, told = training(), Words(), Words(json=True)
    node.answers[LeaveRun] = Refused(problem=ALONE)
    with follower(node) as events:
        with pytest.raises(TandemError, match="in its own way"):
            await leave_on(events, said)
        assert StopRun() not in node.commands
        assert await leave_on(events, said, or_stop=True) == ExitCode.OK
        assert await leave_on(events, told, or_stop=True) == ExitCode.OK
    assert node.commands.count(StopRun()) == 2
    assert said.said == "The script trains in its own way. The run is being stopped.\n"
    assert told.told == [{"ok": True, "run": RUN, "did": "stop"}]


async def test_without_a_run_there_is_nothing_to_leave() -> None:
    with follower(ScriptedNode()) as events, pytest.raises(TandemError, match="No run is under way"):
        await leave_on(events, Words())
