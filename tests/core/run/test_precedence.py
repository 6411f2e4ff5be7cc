"""Train pressed twice at the same moment: one run goes first, the same one on every laptop."""

from __future__ import annotations

import asyncio
from itertools import permutations
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.run import precedence
from core.run.precedence import HeldRequest, Present
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed, Finished
from core.vocabulary.plan import Plan, RunSpec
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.lan import Lan, LanNode
from tests.core.run.world import MANIFEST

WHY = Problem(code="stopped", what="Stopped.")


def run_of(starter: DeviceId, run: str, *others: DeviceId) -> Plan:
    return replace(plan_of((starter, *others), starter=starter), run=RunId(run))


ANNAS, BENS = run_of(ANNA, "1-a", BEN, CLEO), run_of(BEN, "2-b", ANNA, CLEO)


def test_the_later_run_gives_way_and_the_earlier_one_stays() -> None:
    assert precedence.gives_way(Present(BENS, launched=False), ANNAS)
    assert not precedence.gives_way(Present(ANNAS, launched=False), BENS)
    assert precedence.why_busy(Present(ANNAS, launched=False), BENS).code == "train-crossed"
    assert (
        "pressed on Anna's at the same moment"
        in precedence.why_busy(Present(ANNAS, launched=False), BENS).what
    )
    lost = precedence.lost_to(ANNAS)
    assert (lost.code, lost.what.startswith("Anna's does not take part: ")) == ("train-crossed", True)


@pytest.mark.parametrize(
    ("present", "launched", "coming"),
    [
        (BENS, True, ANNAS),
        (run_of(BEN, "2-b", CLEO), False, ANNAS),
        (BENS, False, run_of(ANNA, "1-a", CLEO)),
        (BENS, False, run_of(BEN, "1-b", ANNA)),
        (run_of(BEN, "2-b"), False, ANNAS),
    ],
    ids=["launched", "without the other", "not asked by the other", "of one starter", "alone"],
)
def test_runs_that_do_not_cross_are_no_reason_to_give_way(
    present: Plan, launched: bool, coming: Plan
) -> None:
    assert not precedence.gives_way(Present(present, launched), coming)
    assert precedence.why_busy(Present(present, launched), coming).code == "device-busy"


def test_while_a_run_is_planned_or_tandem_closes_others_hear_that_it_is_busy() -> None:
    assert precedence.why_busy(None, ANNAS).code == "device-busy"


def test_the_first_waiting_request_by_id_is_taken_in_any_order_of_arrival() -> None:
    plans = (ANNAS, BENS, run_of(CLEO, "3-c", ANNA, BEN))
    for order in permutations(plans):
        waiting = HeldRequest()
        left = [waiting.hold(plan.starter, ms.Prepare(plan=plan, manifest=MANIFEST)) for plan in order]
        refused = [each[1].plan for each in left if each is not None]
        assert sorted(plan.run for plan in refused) == ["2-b", "3-c"], "each starter gets its answer"
        held = waiting.take()
        assert held is not None and held[1].plan is ANNAS
        assert waiting.take() is None


def test_a_request_that_was_given_up_is_no_longer_held() -> None:
    waiting = HeldRequest()
    given_up = ms.RunAbandoned(run=ANNAS.run, problem=WHY)
    waiting.hold(ANNA, ms.Prepare(plan=ANNAS, manifest=MANIFEST))
    waiting.on_message(BEN, given_up)
    waiting.on_message(ANNA, ms.RunAbandoned(run=BENS.run, problem=WHY))
    waiting.on_link_down(BEN)
    assert waiting.take() is not None
    waiting.hold(ANNA, ms.Prepare(plan=ANNAS, manifest=MANIFEST))
    waiting.on_message(ANNA, given_up)
    assert waiting.take() is None
    waiting.hold(ANNA, ms.Prepare(plan=ANNAS, manifest=MANIFEST))
    waiting.on_link_down(ANNA)
    assert waiting.take() is None


# --- whole nodes -------------------------------------------------------------------------------------------


async def press(node: LanNode, spec: RunSpec, turns: int) -> RunId | str:
    """After that many turns of the loop. Returns the run, or the refusal's code."""
    for _ in range(turns):
        await asyncio.sleep(0)
    try:
        return await node.runs.start(spec)
    except TandemError as error:
        return error.code


def trained(node: LanNode) -> bool:
    return bool(node.trainers) and node.runs_a_trainer


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
async def test_one_of_two_that_press_at_once_wins_and_the_other_takes_part(
    lan: Lan, spec: RunSpec, tmp_path: Path, turns: int
) -> None:
    anna, ben = lan.nodes["Anna"], lan.nodes["Ben"]
    pressed = await asyncio.gather(press(anna, spec, 0), press(ben, spec, turns))
    await lan.wait_until(lambda: trained(anna) and trained(ben))
    runs = {node.state.run.plan.run for node in (anna, ben) if node.state.run is not None}
    assert len(runs) == 1, "both are in one run"
    (run,) = runs
    assert run in pressed
    (loser,) = [node for node, got in zip((anna, ben), pressed, strict=True) if got != run]
    lost = [phase.problem.code for phase in loser.last_phases() if isinstance(phase, Failed)]
    assert lost == ["train-crossed"] or ({*pressed} - {run} <= {"train-crossed", "busy"} and not lost)
    for node in (anna, ben):
        node.trainers[-1].end()
    await lan.wait_until(lambda: anna.over and ben.over)
    assert anna.phase == ben.phase == Finished()
    assert not anna.runs.busy and not ben.runs.busy


@pytest.mark.parametrize("turns", [(0, 0, 0), (0, 1, 2), (5, 0, 3), (0, 8, 8), (2, 0, 0), (13, 8, 0)])
async def test_one_of_three_that_press_at_once_wins(
    three: Lan, spec: RunSpec, turns: tuple[int, int, int]
) -> None:
    nodes = list(three.nodes.values())
    await asyncio.gather(*(press(node, spec, after) for node, after in zip(nodes, turns, strict=True)))
    await three.wait_until(lambda: all(trained(node) for node in nodes))
    assert len({node.state.run.plan.run for node in nodes if node.state.run is not None}) == 1
    for node in nodes:
        node.trainers[-1].end()
    await three.wait_until(lambda: all(node.over for node in nodes))


async def test_the_earlier_of_two_crossing_requests_counts(lan: Lan, spec: RunSpec) -> None:
    lan.pause()
    runs = {await node.runs.start(spec): node for node in lan.nodes.values()}
    winner, loser = (runs[run] for run in sorted(runs))
    lan.go_on()
    await lan.wait_until(lambda: trained(winner) and trained(loser))
    (lost,) = loser.last_phases()
    assert isinstance(lost, Failed) and lost.problem.code == "train-crossed"
    assert f"Train was pressed on {winner.name} at the same moment" in lost.problem.what
    assert not winner.last_phases()
    for node in (winner, loser):
        node.trainers[-1].end()
    await lan.wait_until(lambda: winner.over and loser.over)


async def test_the_starter_that_gave_way_is_asked_like_anybody_else(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes["Anna"], lan.nodes["Ben"]
    for node, other in ((anna, ben), (ben, anna)):
        node.ask_before_running(other)
    await asyncio.gather(press(anna, spec, 0), press(ben, spec, 0))
    await lan.wait_until(lambda: anna.state.consents or ben.state.consents)
    await asyncio.sleep(0.05)
    asked = [node for node in (anna, ben) if node.state.consents]
    assert len(asked) == 1, "one question, on one laptop"
    await asked[0].runs.answer_consent(asked[0].state.consents[0].run, "once")
    await lan.wait_until(lambda: trained(anna) and trained(ben))
    for node in (anna, ben):
        node.trainers[-1].end()


async def test_train_pressed_while_another_laptop_asks_says_which_run_goes_first(
    lan: Lan, spec: RunSpec
) -> None:
    anna, ben = lan.nodes["Anna"], lan.nodes["Ben"]
    ben.ask_before_running(anna)
    run = await anna.runs.start(spec)
    await lan.wait_until(lambda: ben.state.consents)
    with pytest.raises(TandemError, match="Anna has just asked this laptop to take part") as caught:
        await ben.runs.start(spec)
    assert caught.value.code == "train-crossed" and "Say here whether" in caught.value.fix
    await ben.runs.answer_consent(run, "once")
    await lan.wait_until(lambda: trained(anna) and trained(ben))
    assert await press(ben, spec, 0) == "busy"
    for node in (anna, ben):
        node.trainers[-1].end()
    await lan.wait_until(lambda: anna.over and ben.over)


async def test_a_run_alone_gives_way_to_nobody(lan: Lan, spec: RunSpec) -> None:
    anna, ben = lan.nodes["Anna"], lan.nodes["Ben"]
    alone = replace(spec, solo=True)
    pressed = await asyncio.gather(press(ben, alone, 0), press(anna, spec, 0))
    await lan.wait_until(lambda: anna.over and trained(ben))
    ben.trainers[-1].end()
    assert ben.state.run is not None and ben.state.run.plan.run == pressed[0]
    assert isinstance(anna.phase, Failed) and anna.phase.problem.code == "device-busy"
