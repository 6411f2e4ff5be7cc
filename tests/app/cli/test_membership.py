from argparse import Namespace

import pytest

from app.cli.exit_codes import ExitCode
from app.cli.membership import add, leave
from core.run.departure import CANNOT
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import AddLaptops, LeaveRun, StopRun
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Preparing, Starting, Training
from tests.app.cli.scripted_node import ME, OTHER, PROBLEM, RUN, ScriptedNode, Words, follower, paired, plan

ALONE = Problem(code=CANNOT, what="The script trains in its own way.", fix="Stop the run for all laptops.")
NAMED = Namespace(names="other")
LEAVE, OR_STOP = Namespace(or_stop=False), Namespace(or_stop=True)


@pytest.fixture
def node() -> ScriptedNode:
    """It trains with the other laptop."""
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=plan(OTHER)))
    for phase in (Preparing(), Starting(), Training()):
        node.happen(ev.RunPhaseChanged(run=RUN, phase=phase))
    assert node.state.run is not None and ME in node.state.run.members
    return node


async def test_a_paired_laptop_is_added_to_the_run_under_way(node: ScriptedNode) -> None:
    said, told = Words(), Words(json=True)
    with follower(node) as events:
        assert await add(NAMED, said, events) == ExitCode.OK
        assert await add(NAMED, told, events) == ExitCode.OK
    assert node.commands == [AddLaptops(run=RUN, devices=(OTHER,))] * 2
    assert said.said.startswith("Asking other. Once the files are there, ")
    assert said.said.endswith("and goes on with other as well.\n")
    assert told.told == [{"ok": True, "run": RUN, "devices": [OTHER]}]


async def test_what_the_node_refuses_is_said(node: ScriptedNode) -> None:
    node.answers[AddLaptops] = Refused(problem=PROBLEM)
    with follower(node) as events, pytest.raises(TandemError, match=PROBLEM.what):
        await add(NAMED, Words(), events)


async def test_this_laptop_leaves_and_the_others_are_named(node: ScriptedNode) -> None:
    said, told = Words(), Words(json=True)
    with follower(node) as events:
        assert await leave(LEAVE, said, events) == ExitCode.OK
        assert await leave(LEAVE, told, events) == ExitCode.OK
    assert node.commands == [LeaveRun(run=RUN)] * 2
    assert said.said == "This laptop leaves the run after the present step; other goes on.\n"
    assert told.told == [{"ok": True, "run": RUN, "did": "leave"}]


async def test_where_the_others_cannot_go_on_it_says_so_or_stops_as_asked(node: ScriptedNode) -> None:
    said, told = Words(), Words(json=True)
    node.answers[LeaveRun] = Refused(problem=ALONE)
    with follower(node) as events:
        with pytest.raises(TandemError, match="in its own way"):
            await leave(LEAVE, said, events)
        assert StopRun() not in node.commands
        assert await leave(OR_STOP, said, events) == ExitCode.OK
        assert await leave(OR_STOP, told, events) == ExitCode.OK
    assert node.commands.count(StopRun()) == 2
    assert said.said == "The script trains in its own way. The run is being stopped.\n"
    assert told.told == [{"ok": True, "run": RUN, "did": "stop"}]


async def test_without_a_run_there_is_nothing_to_add_to_or_to_leave() -> None:
    node = ScriptedNode()
    node.happen(paired())
    with follower(node) as events:
        for subcommand, arguments in ((add, NAMED), (leave, LEAVE)):
            with pytest.raises(TandemError, match="No run is under way"):
                await subcommand(arguments, Words(), events)
