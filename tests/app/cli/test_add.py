import pytest

from app.cli.add import add_on
from app.cli.exit_codes import ExitCode
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import AddLaptops
from core.vocabulary.errors import TandemError
from core.vocabulary.phases import Preparing, Starting, Training
from tests.app.cli.scripted_node import ME, OTHER, PROBLEM, RUN, ScriptedNode, Words, follower, paired, plan


def training() -> ScriptedNode:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.RunPlanned(plan=plan(ME)))
    for phase in (Preparing(), Starting(), Training()):
        node.happen(ev.RunPhaseChanged(run=RUN, phase=phase))
    return node


async def test_a_paired_laptop_is_added_to_the_run_under_way() -> None:
    node, said, told = training(), Words(), Words(json=True)
    name = node.state.devices[OTHER].shown_name
    with follower(node) as events:
        assert await add_on(events, said, name) == ExitCode.OK
        assert await add_on(events, told, name) == ExitCode.OK
    assert node.commands == [AddLaptops(run=RUN, devices=(OTHER,))] * 2
    assert said.said.startswith(f"Asking {name}. Once everything is there, ")
    assert said.said.endswith(f"and goes on with {name} as well.\n")
    assert told.told == [{"ok": True, "run": RUN, "devices": [OTHER]}]


async def test_what_the_node_refuses_is_said() -> None:
    node = training()
    node.answers[AddLaptops] = Refused(problem=PROBLEM)
    with follower(node) as events, pytest.raises(TandemError, match=PROBLEM.what):
        await add_on(events, Words(), node.state.devices[OTHER].shown_name)


async def test_without_a_run_there_is_nothing_to_add_to() -> None:
    node = ScriptedNode()
    node.happen(paired())
    with follower(node) as events, pytest.raises(TandemError, match="No run is under way"):
        await add_on(events, Words(), node.state.devices[OTHER].shown_name)
